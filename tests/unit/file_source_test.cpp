// Shards that are local files, FIFOs, devices, standard input or memory.
#include "core/error.h"
#include "core/options.h"
#include "io/sources.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using shf::Cancel;
using shf::Error;
using shf::Options;
using shf::Sequential;
using shf::Source;
using shf::Sources;

std::string text_of(Sequential& reader, size_t chunk = 1000) {
    std::string text;
    std::vector<uint8_t> buffer(chunk);
    while (const size_t size = reader.read(buffer))
        text.append(reinterpret_cast<const char*>(buffer.data()), size);
    reader.finish();
    return text;
}

shf::Fault fault_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.fault();
    }
    shf::Fault none;
    none.code = SHF_OK;
    return none;
}

size_t descriptors() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class Files : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/shardfeed-file-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        directory = name;
        for (int i = 0; bytes.size() < 300000; ++i) bytes += std::to_string(i * 7919) + ",";
        path = directory + "/a.tar";
        write(path, bytes);
    }
    void TearDown() override { std::filesystem::remove_all(directory); }

    static void write(const std::string& name, const std::string& text) {
        std::ofstream(name, std::ios::binary) << text;
    }
    std::unique_ptr<Source> open(const std::string& url) {
        return Sources(options, cancel).open(url);
    }

    // Reads 1,000 bytes, lets `action` happen to the file, and reads on to the end.
    shf::Fault fault_after(const std::function<void()>& action) {
        write(path, bytes);
        // The clock of time stamps ticks every few milliseconds on old kernels.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const auto source = open(path);
        const auto reader = source->open_sequential(0);
        std::vector<uint8_t> buffer(1000);
        EXPECT_GT(reader->read(buffer), 0U);
        action();
        return fault_of([&] { text_of(*reader); });
    }

    Options options;
    Cancel cancel;
    std::string directory, path, bytes;
};

TEST_F(Files, are_read_in_order_and_at_random) {
    const auto source = open(path);
    EXPECT_EQ(source->size(), bytes.size());
    EXPECT_TRUE(source->seekable());
    EXPECT_EQ(source->identity().size, bytes.size());
    EXPECT_GT(source->identity().modified, 0);
    EXPECT_FALSE(source->identity().tag.empty());
    EXPECT_EQ(open(path)->identity(), source->identity());
    for (const size_t chunk : {1000U, 4096U, 1000000U})
        EXPECT_EQ(text_of(*source->open_sequential(0), chunk), bytes);
    EXPECT_EQ(text_of(*source->open_sequential(12345)), bytes.substr(12345));
    EXPECT_EQ(text_of(*source->open_sequential(bytes.size())), "");
    EXPECT_EQ(text_of(*source->open_sequential(UINT64_MAX)), "");
    std::vector<uint8_t> buffer(5000);
    EXPECT_EQ(source->read(777, buffer), 5000U);
    EXPECT_EQ(std::string(buffer.begin(), buffer.end()), bytes.substr(777, 5000));
    EXPECT_EQ(source->read(bytes.size() - 3, buffer), 3U);
    EXPECT_EQ(source->read(bytes.size(), buffer), 0U);
    EXPECT_EQ(source->read(UINT64_MAX, buffer), 0U);
}

TEST_F(Files, share_one_descriptor_and_close_it) {
    const size_t before = descriptors();
    {
        auto source = open(path);
        std::vector<std::unique_ptr<Sequential>> readers;
        for (int i = 0; i < 10; ++i) readers.push_back(source->open_sequential(0));
        EXPECT_EQ(descriptors(), before + 1);
        source.reset();
        for (const auto& reader : readers) EXPECT_EQ(text_of(*reader), bytes);
    }
    EXPECT_EQ(descriptors(), before);
}

TEST_F(Files, serve_many_threads) {
    const auto source = open(path);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            std::vector<uint8_t> buffer(100);
            for (size_t at = 0; at + 100 < bytes.size(); at += 100) {
                ASSERT_EQ(source->read(at, buffer), 100U);
                ASSERT_TRUE(std::equal(
                    buffer.begin(), buffer.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

TEST_F(Files, are_named_by_paths_and_file_urls) {
    write(directory + "/a b#c?d%25.tar", "x");
    write(directory + "/@list", "y");
    EXPECT_EQ(text_of(*open(directory + "/a b#c?d%25.tar")->open_sequential(0)), "x");
    EXPECT_EQ(text_of(*open(directory + "/@list")->open_sequential(0)), "y");
    for (const std::string prefix : {"file://", "file://localhost", "FILE://LocalHost", "file:"})
        EXPECT_EQ(
            text_of(*open(prefix + directory + "/a%20b%23c%3fd%2525.tar")->open_sequential(0)),
            "x");
    for (const std::string& url :
         {"file://other" + directory + "/x", "file://" + directory + "/a?b",
          "file://" + directory + "/a#b", "file://" + directory + "/%zz",
          "file://" + directory + "/%2", "file://" + directory + "/%00", std::string("file://"),
          std::string(), std::string("a\0b", 3)})
        EXPECT_EQ(fault_of([&] { open(url); }).code, SHF_E_USAGE) << url;
    // What is advised is a program that can fetch it.
    for (const auto& [url, program] :
         {std::pair{"s3://bucket/a.tar", "aws s3 cp"}, std::pair{"https://h/a.tar", "curl -fsSL"},
          std::pair{"HTTP://h/a.tar", "curl -fsSL"}, std::pair{"gs://b/a.tar", "gcloud storage"},
          std::pair{"hf://datasets/x/a.tar", "hf download"}, std::pair{"x-y+z://a", "pipe:"}}) {
        const shf::Fault fault = fault_of([&, url = url] { open(url); });
        EXPECT_EQ(fault.code, SHF_E_UNSUPPORTED);
        EXPECT_NE(fault.help.find(program), std::string::npos) << fault.text();
        EXPECT_EQ(fault.help.find("curl") != std::string::npos,
                  std::string(program) == "curl -fsSL")
            << fault.text();
    }
}

TEST_F(Files, that_cannot_be_opened_say_why) {
    shf::Fault fault = fault_of([&] { open(directory + "/absent"); });
    EXPECT_EQ(fault.code, SHF_E_IO);
    EXPECT_EQ(fault.os_error, ENOENT);
    fault = fault_of([&] { open(directory); });
    EXPECT_EQ(fault.code, SHF_E_IO);
    EXPECT_EQ(fault.os_error, EISDIR);
    EXPECT_EQ(fault_of([&] { open(path + "/x"); }).os_error, ENOTDIR);
    EXPECT_EQ(fault_of([&] { open("s3:/bucket"); }).os_error, ENOENT);
}

TEST_F(Files, that_are_cut_are_truncated) {
    EXPECT_EQ(fault_after([] {}).code, SHF_OK);
    EXPECT_EQ(fault_after([&] { std::filesystem::resize_file(path, 100000); }).code,
              SHF_E_TRUNCATED);
    EXPECT_EQ(fault_after([&] { std::filesystem::resize_file(path, 0); }).code, SHF_E_TRUNCATED);
    EXPECT_EQ(fault_after([&] { std::filesystem::resize_file(path, bytes.size() - 1); }).code,
              SHF_E_TRUNCATED);
    write(path, bytes);
    const auto source = open(path);
    std::filesystem::resize_file(path, 10);
    std::vector<uint8_t> buffer(100);
    EXPECT_EQ(fault_of([&] { source->read(0, buffer); }).code, SHF_E_TRUNCATED);
}

TEST_F(Files, that_are_altered_have_changed) {
    EXPECT_EQ(fault_after([&] { write(path, std::string(bytes.size(), 'x')); }).code,
              SHF_E_CHANGED);
    EXPECT_EQ(fault_after([&] { write(path, bytes + "x"); }).code, SHF_E_CHANGED);
    EXPECT_EQ(fault_after([&] {
                  write(path + "2", bytes);
                  std::filesystem::rename(path + "2", path);
              }).code,
              SHF_E_CHANGED);
    EXPECT_EQ(fault_after([&] { std::filesystem::remove(path); }).code, SHF_OK);
    EXPECT_EQ(fault_after([&] { ::chmod(path.c_str(), 0600); }).code, SHF_OK);
    const auto source = open(path);
    const shf::Identity version = source->identity();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write(path, std::string(bytes.size(), 'x'));
    std::vector<uint8_t> buffer(100);
    EXPECT_EQ(fault_of([&] { source->read(0, buffer); }).code, SHF_E_CHANGED);
    EXPECT_NE(open(path)->identity(), version);
}

TEST_F(Files, stay_off_the_standard_descriptors) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(0);
        ::close(2);
        const auto source = open(path);
        const bool off = ::fcntl(0, F_GETFD) < 0 && ::fcntl(2, F_GETFD) < 0;
        const bool good = text_of(*source->open_sequential(0)) == bytes;
        ::_exit(off && good ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(Files, are_close_on_exec) {
    const auto source = open(path);
    bool found = false;
    for (int fd = 3; fd < 256; ++fd) {
        char name[4096] = {};
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        if (::readlink(link.c_str(), name, sizeof name - 1) < 0 || path != name) continue;
        found = true;
        EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    }
    EXPECT_TRUE(found);
}

TEST_F(Files, may_be_read_by_a_forked_child) {
    const auto source = open(path);
    const auto reader = source->open_sequential(0);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool good =
            text_of(*reader) == bytes && text_of(*source->open_sequential(0)) == bytes;
        ::_exit(good ? 0 : 1);
    }
    EXPECT_EQ(text_of(*reader), bytes);
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(Files, say_how_many_descriptors_are_open) {
    rlimit old = {};
    ::getrlimit(RLIMIT_NOFILE, &old);
    rlimit low = old;
    low.rlim_cur = 64;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    std::vector<std::unique_ptr<Source>> sources;
    const shf::Fault fault = fault_of([&] {
        for (int i = 0; i < 100; ++i) sources.push_back(open(path));
    });
    ::setrlimit(RLIMIT_NOFILE, &old);
    EXPECT_EQ(fault.code, SHF_E_IO);
    EXPECT_EQ(fault.os_error, EMFILE);
    EXPECT_NE(fault.cause.find("64 descriptors"), std::string::npos);
    EXPECT_FALSE(fault.help.empty());
}

TEST_F(Files, end_with_a_cancel) {
    const auto source = open(path);
    const auto reader = source->open_sequential(0);
    cancel.request();
    std::vector<uint8_t> buffer(100);
    EXPECT_EQ(fault_of([&] { reader->read(buffer); }).code, SHF_E_CANCELLED);
    EXPECT_EQ(fault_of([&] { open(path); }).code, SHF_E_CANCELLED);
}

TEST_F(Files, fifos_are_read_from_start_to_end) {
    const std::string fifo = directory + "/fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const auto source = open(fifo);  // before there is a writer
    EXPECT_FALSE(source->seekable());
    EXPECT_FALSE(source->size().has_value());
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(fault_of([&] { source->read(0, buffer); }).code, SHF_E_USAGE);
    EXPECT_EQ(fault_of([&] { source->open_sequential(1); }).code, SHF_E_USAGE);
    const auto reader = source->open_sequential(0);
    EXPECT_EQ(fault_of([&] { source->open_sequential(0); }).code, SHF_E_USAGE);
    EXPECT_FALSE(reader->ready());
    std::thread writer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        write(fifo, bytes);
    });
    EXPECT_EQ(text_of(*reader), bytes);
    writer.join();
    EXPECT_TRUE(reader->ready());
}

TEST_F(Files, a_fifo_without_writer_ends_with_a_cancel) {
    const std::string fifo = directory + "/fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const auto reader = open(fifo)->open_sequential(0);
    std::chrono::steady_clock::time_point asked;
    std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        asked = std::chrono::steady_clock::now();
        cancel.request();
    });
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(fault_of([&] { reader->read(buffer); }).code, SHF_E_CANCELLED);
    canceller.join();
    EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::milliseconds(100));
    EXPECT_TRUE(reader->ready());
}

TEST_F(Files, devices_are_read) {
    EXPECT_EQ(text_of(*open("/dev/null")->open_sequential(0)), "");
    std::vector<uint8_t> buffer(10, 1);
    EXPECT_EQ(open("/dev/zero")->open_sequential(0)->read(buffer), 10U);
    EXPECT_EQ(buffer, std::vector<uint8_t>(10, 0));
}

// Standard input is a pipe in these.
class StandardInput : public Files {
  protected:
    void SetUp() override {
        Files::SetUp();
        saved = ::fcntl(0, F_DUPFD_CLOEXEC, 10);
        int fds[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        ::dup2(fds[0], 0);
        ::close(fds[0]);
        writer = fds[1];
    }
    void TearDown() override {
        ::close(writer);
        if (saved >= 0) {
            ::dup2(saved, 0);
            ::close(saved);
        }
        Files::TearDown();
    }
    int saved = -1, writer = -1;
};

TEST_F(StandardInput, is_read_and_stays_open_and_blocking) {
    auto source = open("-");
    EXPECT_FALSE(source->seekable());
    auto reader = source->open_sequential(0);
    EXPECT_FALSE(reader->ready());
    ASSERT_EQ(::write(writer, "abc", 3), 3);
    EXPECT_TRUE(reader->ready());
    ::shutdown(writer, SHUT_WR);
    EXPECT_EQ(text_of(*reader), "abc");
    reader.reset();
    source.reset();
    EXPECT_GE(::fcntl(0, F_GETFD), 0);
    EXPECT_EQ(::fcntl(0, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(StandardInput, has_one_reader) {
    auto source = open("-");
    EXPECT_EQ(fault_of([&] { open("-"); }).code, SHF_E_USAGE);
    auto reader = source->open_sequential(0);
    source.reset();
    EXPECT_EQ(fault_of([&] { open("-"); }).code, SHF_E_USAGE);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(fault_of([&] { open("-"); }).code == SHF_OK ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(fault_of([&] { open("-"); }).code, SHF_E_USAGE);
    reader.reset();
    EXPECT_EQ(fault_of([&] { open("-"); }).code, SHF_OK);
}

TEST_F(StandardInput, may_be_non_blocking) {
    ::fcntl(0, F_SETFL, O_NONBLOCK);
    const auto reader = open("-")->open_sequential(0);
    std::thread late([&] {
        for (int i = 0; i < 5; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            (void)!::write(writer, "x", 1);
        }
        ::shutdown(writer, SHUT_WR);
    });
    EXPECT_EQ(text_of(*reader), "xxxxx");
    late.join();
}

TEST_F(StandardInput, ends_with_a_cancel) {
    const auto reader = open("-")->open_sequential(0);
    std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        cancel.request();
    });
    std::vector<uint8_t> buffer(10);
    EXPECT_EQ(fault_of([&] { reader->read(buffer); }).code, SHF_E_CANCELLED);
    canceller.join();
}

TEST(Memory, is_read_in_chunks) {
    const std::string text = "0123456789";
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()),
                                         text.size());
    const auto source = shf::memory_source(bytes, 3, false);
    EXPECT_FALSE(source->size().has_value());
    EXPECT_TRUE(source->seekable());
    EXPECT_EQ(shf::memory_source(bytes)->size(), 10U);
    const auto reader = source->open_sequential(4);
    std::vector<uint8_t> buffer(100);
    EXPECT_EQ(reader->read(buffer), 3U);
    EXPECT_EQ(reader->read(buffer), 3U);
    EXPECT_EQ(reader->read(buffer), 0U);
    EXPECT_EQ(source->read(8, buffer), 2U);
    EXPECT_EQ(source->read(99, buffer), 0U);
    EXPECT_EQ(text_of(*shf::memory_source({})->open_sequential(0)), "");
}

}  // namespace
