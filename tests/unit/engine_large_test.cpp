// A member of 1 GiB: in one piece, within the option `memory` and 64 MiB, from a file and a pipe.
// The shards are sparse files, so that they take no room on the disk.
#include "temp_shards.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <string>

namespace {

using namespace shf::test;

constexpr uint64_t MiB = 1 << 20, GiB = 1 << 30;

// A small sample, one of 1 GiB of zeros with a mark at both ends, and a small one.
void write_large_shard(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ASSERT_GE(fd, 0);
    const auto put = [&](const std::string& bytes, uint64_t at) {
        ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)),
                  static_cast<ssize_t>(bytes.size()));
    };
    const std::string before = sample_members(0, 0) + header({.name = "large.bin", .size = GiB});
    put(before, 0);
    put("first", before.size());
    put("last", before.size() + GiB - 4);
    put(sample_members(0, 1) + end_marker(), before.size() + GiB);
    ::close(fd);
}

// Runs in a child process, whose peak is its own. Its exit status tells what was wrong.
int read_large_shard(const std::string& url, const char* memory, uint64_t peak_bound) {
    Client client({url}, {{"memory", memory}});
    size_t count = 0;
    while (const SampleHandle sample = client.next()) {
        ++count;
        if (key_of(sample.get()) != "large") continue;
        shf_bytes data;
        if (shf_sample_find(sample.get(), "bin", 3, &data) != SHF_OK || data.size != GiB) return 2;
        const std::string_view bytes(reinterpret_cast<const char*>(data.data), data.size);
        if (!bytes.starts_with("first") || !bytes.ends_with("last")) return 3;
        for (size_t i = 4096; i < GiB; i += 4096)
            if (bytes[i] != '\0') return 4;
    }
    if (client.code == SHF_E_LIMIT && client.message().find("raise memory") != std::string::npos)
        return 10;
    if (client.code != SHF_END || count != 3) return 5;
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    const uint64_t peak = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    if (peak > peak_bound) {
        std::fprintf(stderr, "peak memory %llu MiB\n", static_cast<unsigned long long>(peak / MiB));
        return 6;
    }
    return 0;
}

// A fresh process image would be cleaner still, but the child starts with what the parent holds,
// and the parent holds next to nothing.
int in_child(const std::string& url, const char* memory, uint64_t peak_bound) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(read_large_shard(url, memory, peak_bound));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

TEST(EngineLarge, a_gigabyte_in_one_piece) {
    const Watchdog watchdog(600);
    const TempDirectory directory;
    const std::string path = directory / "large.tar";
    write_large_shard(path);
    for (const std::string& url : {path, "pipe:cat " + path}) {
        EXPECT_EQ(in_child(url, "1GiB", GiB + 64 * MiB), 0) << url;
        EXPECT_EQ(in_child(url, "1073741823", GiB), 10) << url;
        EXPECT_EQ(in_child(url, "256MiB", 320 * MiB), 10) << url;
    }
}

}  // namespace
