// Readers that get no descriptor wait for those of other readers, and never for ever.
#include "dataset_builder.h"

#include <sys/resource.h>

#include <fcntl.h>
#include <filesystem>
#include <thread>

namespace shf::test {
namespace {

// All descriptors but `left` are in use while it lives.
class FewDescriptors {
  public:
    explicit FewDescriptors(size_t left) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit low = before_;
        low.rlim_cur = 256;
        ::setrlimit(RLIMIT_NOFILE, &low);
        for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
            taken_.push_back(fd);
        leave(left);
    }
    ~FewDescriptors() {
        leave(taken_.size());
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;
    void leave(size_t more) {
        for (; more > 0 && !taken_.empty(); --more) {
            ::close(taken_.back());
            taken_.pop_back();
        }
    }

  private:
    rlimit before_ = {};
    std::vector<int> taken_;
};

// UBSan looks whether memory can be read by writing it into a pipe, which takes descriptors.
class Descriptors : public testing::Test {
  protected:
    void SetUp() override {
        if (SANITIZED) GTEST_SKIP() << "sanitizers need descriptors of their own";
    }
    const Watchdog watchdog{120};
    const TempDirectory directory;
};

// Each number of descriptors gives all samples, or an error that says which limit it is.
TEST_F(Descriptors, every_number_of_them) {
    const std::vector<uint64_t> counts(40, 30);
    write_shards(directory, counts);
    const std::string url = directory / "{000..039}.tar";
    const std::string command = "pipe:cat " + url;
    size_t whole = 0, refused = 0;
    for (const Settings& way :
         {Settings{{"threads", "8"}}, Settings{{"threads", "8"}, {"shuffle", "20"}},
          Settings{{"lanes", "8"}, {"threads", "8"}}})
        for (const bool pipe : {false, true})
            for (size_t left = 0; left < 14; ++left) {
                Client client(pipe ? command : url, way);
                std::vector<std::string> keys;
                {
                    const FewDescriptors few(left);
                    keys = client.keys();
                }
                if (client.code == SHF_END) {
                    EXPECT_EQ(keys.size(), 1200U);
                    ++whole;
                } else {
                    EXPECT_EQ(client.code, SHF_E_IO) << client.message();
                    EXPECT_EQ(client.error.os_error, EMFILE) << client.message();
                    EXPECT_NE(client.message().find("ulimit -n"), std::string::npos)
                        << client.message();
                    ++refused;
                }
                // One is enough for files: the others wait for it.
                if (!pipe && left >= 2) {
                    EXPECT_EQ(client.code, SHF_END) << left << client.message();
                }
                if (left == 0) {
                    EXPECT_NE(client.code, SHF_END);
                }
            }
    std::cout << whole << " runs were whole, " << refused << " refused\n";
}

// The shards of all lanes must be open at once, and none of them fits into memory: an error, soon.
TEST_F(Descriptors, lanes_that_wait_for_each_other) {
    const auto urls = write_shards(directory, std::vector<uint64_t>(6, 300), 40'000);
    Client client(urls, {{"lanes", "6"}, {"threads", "6"}, {"memory", "8MiB"}});
    const FewDescriptors few(4);
    EXPECT_LT(client.keys().size(), 1800U);
    EXPECT_EQ(client.code, SHF_E_IO) << client.message();
    EXPECT_EQ(client.error.os_error, EMFILE) << client.message();
}

// Threads that read files which a dataset does not keep open wait for the descriptor of another
// one.
TEST_F(Descriptors, threads_of_a_dataset) {
    write_shards(directory, std::vector<uint64_t>(40, 30), 40'000);
    rlimit before = {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit low = {.rlim_cur = 24, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);  // 12 files are kept open
    const Samples data(directory / "{000..039}.tar", {{"index", "memory"}});
    ::setrlimit(RLIMIT_NOFILE, &before);
    ASSERT_EQ(data.count(), 1200U) << data.message();
    const FewDescriptors few(1);
    std::atomic<size_t> failed{0};
    {
        std::vector<std::jthread> threads;
        for (uint64_t t = 0; t < 8; ++t)
            threads.emplace_back([&, t] {
                for (uint64_t i = 0; i < 200; ++i) {
                    shf_sample* sample = nullptr;
                    shf_error error = {};
                    if (shf_dataset_get(data.dataset, 600 + (t * 151 + i * 37) % 600, &sample,
                                        &error) != SHF_OK)
                        ++failed;
                    shf_sample_unref(sample);
                }
            });
    }
    EXPECT_EQ(failed, 0U);
}

// A stream that nobody reads keeps its descriptors; a timeout, a cancel and a close end the wait.
TEST_F(Descriptors, waits_end) {
    const auto urls = write_shards(directory, {2000, 300}, 40'000);
    Client idle(urls[0], {{"memory", "8MiB"}});
    EXPECT_EQ(idle.keys(1).size(), 1U);
    Client waiting(urls[1], {{"timeout", "50ms"}});
    FewDescriptors few(0);
    EXPECT_FALSE(waiting.next());
    EXPECT_EQ(waiting.code, SHF_E_TIMEOUT) << waiting.message();
    std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        shf_stream_cancel(waiting.stream);
    });
    while (!waiting.next() && waiting.code == SHF_E_TIMEOUT) {
    }
    canceller.join();
    EXPECT_EQ(waiting.code, SHF_E_CANCELLED) << waiting.message();
    {
        Client closed(urls[1], {{"timeout", "20ms"}});
        EXPECT_FALSE(closed.next());
        EXPECT_EQ(closed.code, SHF_E_TIMEOUT) << closed.message();
    }
    // Without any of them the wait ends with an error: nobody will read the other stream.
    Client stuck(urls[1], {});
    EXPECT_FALSE(stuck.next());
    EXPECT_EQ(stuck.error.os_error, EMFILE) << stuck.message();
    // What comes in time is taken.
    Client later(urls[1], {});
    std::thread closer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        few.leave(3);
    });
    EXPECT_EQ(later.keys().size(), 300U);
    closer.join();
    EXPECT_EQ(later.code, SHF_END) << later.message();
}

}  // namespace
}  // namespace shf::test
