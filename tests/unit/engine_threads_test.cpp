// Threads that the system does not start: an error that says which, and no hang.
#include "batch_client.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

namespace shf::test {
namespace {

constexpr rlim_t no_limit = RLIM_INFINITY;

// What a child process writes that may have `threads` threads beside its first one. The limit
// counts those of a user, and not for the superuser: then the child is a user without any other.
// As another user there are none beside the first one, whatever `threads` says.
std::string in_child(rlim_t threads, const std::function<std::string()>& act) {
    int ends[2];
    if (::pipe(ends) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        constexpr uid_t nobody_else = 54321;
        const bool superuser = ::geteuid() == 0;
        if (superuser && ::setresuid(nobody_else, nobody_else, nobody_else) != 0) ::_exit(3);
        const rlim_t most = threads == no_limit ? no_limit : superuser ? threads + 1 : 1;
        const rlimit limit{most, most};
        if (::setrlimit(RLIMIT_NPROC, &limit) != 0) ::_exit(4);
        const std::string text = act();
        const bool written =
            ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
        ::_exit(written ? 0 : 5);
    }
    ::close(ends[1]);
    std::string text(4096, '\0');
    size_t size = 0;
    for (ssize_t got = 0; (got = ::read(ends[0], &text[size], text.size() - size)) > 0;)
        size += static_cast<size_t>(got);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    text.resize(size);
    return status == 0 ? text : "status " + std::to_string(status);
}

class EngineThreads : public testing::Test {
  protected:
    EngineThreads() {
        // For the user that the child becomes.
        std::filesystem::permissions(std::filesystem::path(directory / "x").parent_path(),
                                     std::filesystem::perms::all);
        // More than the readers may hold: none of them ends before the last thread was started.
        write_shards(directory, {30, 30, 30, 30}, 60000);
    }
    // All samples with these settings, or the error, and whether it repeats.
    [[nodiscard]] std::string outcome(const Settings& settings) const {
        BatchClient client(directory / "{000..003}.tar", settings);
        size_t rows = 0;
        while (const BatchHandle batch = client.next_batch())
            rows += shf_batch_row_count(batch.get());
        if (client.code == SHF_END) return std::to_string(rows) + " rows";
        const int32_t first = client.code;
        const int os_error = client.error.os_error;
        const std::string message = client.message();
        return std::string(shf_error_name(first)) + " " + std::to_string(os_error) + " " + message +
               (client.next_batch() || client.code != first ? " and other" : "");
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
    const Settings settings = {
        {"batch", "2"}, {"threads", "2"}, {"decode_threads", "3"}, {"memory", "1MiB"}};
};

TEST_F(EngineThreads, are_named_when_they_cannot_start) {
    if (SANITIZED) GTEST_SKIP() << "sanitizers have threads of their own";
    const std::string limit = "LIMIT " + std::to_string(EAGAIN) + " ";
    for (rlim_t threads = 0; threads < 5; ++threads) {
        const std::string found = in_child(threads, [this] { return outcome(settings); });
        const rlim_t run = ::geteuid() == 0 ? threads : 0;
        const std::string wanted =
            run < 2 ? "thread " + std::to_string(run + 1) + " of 2 readers could not be started: "
                    : "thread " + std::to_string(run - 1) +
                          " of 3 decode threads could not be started: ";
        EXPECT_TRUE(found.starts_with(limit + wanted)) << threads << ": " << found;
        EXPECT_NE(found.find("; " + std::to_string(run < 2 ? run : run - 2) + " run; help: set "),
                  std::string::npos)
            << found;
        EXPECT_FALSE(found.ends_with("and other")) << found;
    }
    const std::string enough =
        in_child(::geteuid() == 0 ? 5 : no_limit, [this] { return outcome(settings); });
    EXPECT_EQ(enough, "120 rows");
}

// A data set reads with the threads that it gets.
TEST_F(EngineThreads, of_a_dataset_may_be_fewer) {
    if (SANITIZED) GTEST_SKIP() << "sanitizers have threads of their own";
    write_shards(directory, {40}, 100000);
    const std::string found = in_child(0, [this] {
        shf_options* options = shf_options_new();
        shf_error error = {};
        shf_dataset* dataset = nullptr;
        for (const auto& [name, value] :
             Settings{{"index", "memory"}, {"threads", "4"}, {"decode_threads", "4"}})
            shf_options_set(options, name.c_str(), value.c_str(), nullptr);
        const std::string url = directory / "000.tar";
        const char* const given = url.c_str();
        shf_batch* batch = nullptr;
        std::vector<uint64_t> numbers(40);
        for (uint64_t i = 0; i < 40; ++i) numbers[i] = 39 - i;
        if (shf_dataset_open(&dataset, &given, 1, options, &error) != SHF_OK ||
            shf_dataset_get_batch(dataset, numbers.data(), 40, nullptr, &batch, &error) != SHF_OK)
            return std::string(error.message);
        return std::to_string(shf_batch_row_count(batch)) + " rows";
    });
    EXPECT_EQ(found, "40 rows");
}

}  // namespace
}  // namespace shf::test
