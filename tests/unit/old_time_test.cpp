// A file that was written again in place, and whose old modification time was put back: it is
// noticed by its status change time, which chmod and links change too.
#include "dataset_builder.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <chrono>
#include <thread>

namespace shf::test {
namespace {

class OldTime : public testing::Test {
  protected:
    // A shard of 60 samples, 600 kB; the second version has other bytes of the same length.
    static std::string tar_of(char filling) {
        std::string tar;
        for (uint64_t i = 0; i < 60; ++i)
            tar += member(sample_key(0, i) + ".txt", sample_key(0, i) + std::string(9990, filling));
        return tar + end_marker();
    }
    static std::string zip_of(char filling) {
        NamedBytes members;
        for (uint64_t i = 0; i < 60; ++i)
            members.emplace_back(sample_key(0, i) + ".txt",
                                 sample_key(0, i) + std::string(9990, filling));
        return stored_zip(members);
    }

    // Clocks of time stamps tick every few milliseconds.
    static void tick() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

    // The same file with these bytes, of the age that it had.
    static void rewrite(const std::string& path, const std::string& bytes) {
        struct stat state = {};
        ASSERT_EQ(::stat(path.c_str(), &state), 0);
        ASSERT_EQ(static_cast<size_t>(state.st_size), bytes.size());
        tick();
        const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
        ::close(fd);
        const std::array<timespec, 2> times{state.st_atim, state.st_mtim};
        ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
        tick();
    }
    // What changes the status of a file and none of its bytes.
    static void touch(const std::string& path) {
        tick();
        ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
        ASSERT_EQ(::link(path.c_str(), (path + ".link").c_str()), 0);
        ASSERT_EQ(::unlink((path + ".link").c_str()), 0);
        tick();
    }

    void expect_changed(int32_t code, const std::string& message) const {
        EXPECT_EQ(code, SHF_E_CHANGED) << message;
        EXPECT_NE(message.find("old modification time"), std::string::npos) << message;
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
    const std::string tar = directory / "a.tar", zip = directory / "a.zip";
};

TEST_F(OldTime, while_a_stream_reads) {
    // The reader must not have come to the end: it may hold little.
    const Settings small{{"memory", "1MiB"}, {"threads", "1"}};
    std::string large;
    for (int i = 0; i < 20; ++i)
        for (uint64_t k = 0; k < 60; ++k)
            large += member(sample_key(static_cast<uint64_t>(i), k) + ".txt",
                            sample_key(static_cast<uint64_t>(i), k) + std::string(9990, 'a'));
    std::string other = large;
    std::replace(other.begin(), other.end(), 'a', 'b');  // no header has an a
    directory.write("a.tar", large + end_marker());
    {
        Client client(tar, small);
        EXPECT_EQ(client.keys(10).size(), 10U);
        touch(tar);
        EXPECT_EQ(client.keys().size(), 1190U);
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
    Client client(tar, small);
    EXPECT_EQ(client.keys(3).size(), 3U);
    rewrite(tar, other + end_marker());
    EXPECT_LT(client.keys().size(), 117U);
    expect_changed(client.code, client.message());
}

// The first and last bytes are those that were seen: the reader compares the last bytes that it
// read.
TEST_F(OldTime, in_the_middle_of_a_file_that_a_stream_reads) {
    std::string large;
    for (uint64_t k = 0; k < 120; ++k)
        large += member(sample_key(0, k) + ".txt", std::string(100'000, 'a'));
    large += end_marker();
    std::string other = large;
    std::replace(other.begin() + 128 * 1024, other.end() - 128 * 1024, 'a', 'b');
    directory.write("a.tar", large);
    Client client(tar, {{"memory", "1MiB"}, {"threads", "1"}});
    EXPECT_EQ(client.keys(10).size(), 10U);
    rewrite(tar, other);
    EXPECT_LT(client.keys().size(), 1190U);
    expect_changed(client.code, client.message());
}

// A dataset that keeps few files open compares a file that it opens again with what it saw first.
TEST_F(OldTime, of_a_file_that_is_opened_again) {
    rlimit before = {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few = {.rlim_cur = 40, .rlim_max = before.rlim_max};
    for (int i = 0; i < 25; ++i)
        directory.write(numbered("s", static_cast<uint64_t>(i)) + ".tar", tar_of('a'));
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    {
        Samples data(directory / "s*.tar", {{"index", "memory"}});
        ASSERT_EQ(data.code, SHF_OK) << data.message();
        const std::string last = directory / "s9.tar";  // in the order of bytes
        const uint64_t number = 24 * 60 + 30;
        EXPECT_NE(data.text(number), "") << data.message();
        touch(last);
        EXPECT_NE(data.text(number), "") << data.message();
        rewrite(last, tar_of('b'));
        EXPECT_EQ(data.text(number).substr(0, 60), "");
        expect_changed(data.code, data.message());
    }
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(OldTime, under_an_open_dataset) {
    directory.write("a.tar", tar_of('a'));
    directory.write("a.zip", zip_of('a'));
    for (const std::string& path : {tar, zip}) {
        Samples data(path);
        ASSERT_EQ(data.code, SHF_OK) << data.message();
        const std::string before = data.text(30);
        touch(path);
        EXPECT_EQ(data.text(30), before) << data.message();
        EXPECT_EQ(data.texts({1, 2, 3, 30}).size(), 4U) << data.message();
        rewrite(path, path == tar ? tar_of('b') : zip_of('b'));
        for (const uint64_t number : {uint64_t{30}, uint64_t{0}, uint64_t{59}}) {
            EXPECT_EQ(data.text(number).substr(0, 60), "");
            expect_changed(data.code, data.message());
        }
        EXPECT_TRUE(data.texts({1, 2, 3}).empty());
        expect_changed(data.code, data.message());
        // The first bytes come back: now it is the file that was opened.
        rewrite(path, path == tar ? tar_of('a') : zip_of('a'));
        EXPECT_EQ(data.text(30), before) << data.message();
    }
}

TEST_F(OldTime, under_an_open_archive) {
    directory.write("a.tar", tar_of('a'));
    directory.write("a.zip", zip_of('a'));
    for (const std::string& path : {tar, zip}) {
        shf_error error = {};
        shf_archive* archive = nullptr;
        ASSERT_EQ(shf_archive_open(&archive, path.c_str(), nullptr, &error), SHF_OK)
            << error.message;
        std::string bytes(10'000, '\0');
        const auto read = [&] {
            return shf_archive_read(archive, 30, bytes.data(), bytes.size(), &error);
        };
        EXPECT_EQ(read(), SHF_OK) << error.message;
        touch(path);
        EXPECT_EQ(read(), SHF_OK) << error.message;
        EXPECT_TRUE(bytes.starts_with(sample_key(0, 30) + "aaa"));
        rewrite(path, path == tar ? tar_of('b') : zip_of('b'));
        EXPECT_NE(read(), SHF_OK);
        expect_changed(error.code, error.message);
        shf_archive_close(archive);
    }
}

// Of what is neither at the start nor at the end of the file, a tar knows its headers.
TEST_F(OldTime, in_the_middle_of_a_tar) {
    directory.write("a.tar", tar_of('a'));
    std::string other = tar_of('a');
    const size_t at = other.find(sample_key(0, 30) + ".txt");
    other.replace(at, 512, header({.name = "other.txt", .size = 9980}));
    shf_error error = {};
    shf_archive* archive = nullptr;
    ASSERT_EQ(shf_archive_open(&archive, tar.c_str(), nullptr, &error), SHF_OK) << error.message;
    Samples data(tar);
    rewrite(tar, other);
    std::string bytes(10'000, '\0');
    EXPECT_EQ(shf_archive_read(archive, 29, bytes.data(), bytes.size(), &error), SHF_OK)
        << error.message;
    EXPECT_EQ(shf_archive_read(archive, 30, bytes.data(), bytes.size(), &error), SHF_E_CHANGED)
        << error.message;
    shf_archive_close(archive);
    EXPECT_NE(data.text(29), "");
    EXPECT_EQ(data.text(30), "");
    EXPECT_EQ(data.code, SHF_E_FORMAT) << data.message();
}

}  // namespace
}  // namespace shf::test
