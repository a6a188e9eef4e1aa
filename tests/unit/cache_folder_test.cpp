// The folder of the cache: room, whose it is, what is left over, and disks that take nothing.
#include "cache_client.h"

#include "core/little_endian.h"
#include "index/index_store.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

namespace {

using namespace shf::test;
using shf::cache_block_size;
using shf::CacheFolder;

const std::string url = "test://host/a.tar";

using CacheRoom = CacheTest;

std::string name_of_shard(int number) {
    return "test://host/" + std::to_string(number) + ".tar";
}

uint64_t bytes_in(const std::string& path) {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
        if (entry.is_regular_file()) bytes += shf::on_disk(entry.file_size());
    return bytes;
}

// What the folder's own count says.
uint64_t used_bytes(const std::string& folder) {
    std::ifstream file(folder + "/usage", std::ios::binary);
    uint8_t bytes[16] = {};
    file.read(reinterpret_cast<char*>(bytes), sizeof bytes);
    EXPECT_EQ(file.gcount(), 16);
    return shf::le64(bytes);
}

mode_t mode_of(const std::filesystem::path& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
}

// ---- Size ---------------------------------------------------------------------------------------

// Two readers begin a new cache at once: the second one's block is kept as well.
TEST_F(CacheRoom, a_block_waits_for_the_first_counting) {
    CacheFolder folder(options.cache, options.cache_size, true);
    const shf::Descriptor other(::open((root() + "/evict").c_str(), O_RDWR | O_CREAT, 0600));
    ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
    std::thread counting([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        CacheFolder(options.cache, options.cache_size, false).recount();
        ::flock(other.get(), LOCK_UN);
    });
    EXPECT_TRUE(folder.reserve(cache_block_size));
    counting.join();
    EXPECT_EQ(used_bytes(root()), shf::on_disk(cache_block_size));
}

// Who counts for long is not waited for, and what was not counted is not taken off either.
TEST_F(CacheRoom, a_long_counting_is_not_waited_for) {
    CacheFolder folder(options.cache, options.cache_size, true);
    const shf::Descriptor other(::open((root() + "/evict").c_str(), O_RDWR | O_CREAT, 0600));
    ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
    EXPECT_FALSE(folder.reserve(cache_block_size));
    ::flock(other.get(), LOCK_UN);
    EXPECT_TRUE(folder.reserve(cache_block_size));
    EXPECT_EQ(used_bytes(root()), shf::on_disk(cache_block_size));
}

// As on a disk without room for one more file: the writing of the block says that, not silence.
TEST_F(CacheRoom, a_lock_that_cannot_be_made_is_not_held_by_another) {
    CacheFolder folder(options.cache, options.cache_size, true);
    ASSERT_EQ(::mkdir((root() + "/evict").c_str(), 0700), 0);
    EXPECT_TRUE(folder.reserve(cache_block_size));
    EXPECT_EQ(used_bytes(root()), shf::on_disk(cache_block_size));
}

TEST_F(CacheRoom, what_was_not_used_for_longest_goes_first) {
    constexpr uint64_t one = 300000;
    options.cache_size = 2'000'000;
    for (int i = 0; i < 5; ++i) {
        serve(name_of_shard(i), one, static_cast<uint64_t>(i));
        rest_of(*open(name_of_shard(i)));
    }
    open(name_of_shard(0));  // an opening is a use
    for (int i = 5; i < 12; ++i) {
        const std::string& bytes = serve(name_of_shard(i), one, static_cast<uint64_t>(i));
        EXPECT_EQ(rest_of(*open(name_of_shard(i))), bytes);
        EXPECT_LE(bytes_in(root() + "/shards"), options.cache_size);
        if (i == 6) {  // 0 is kept, 1 was there for longest
            fetched();
            rest_of(*open(name_of_shard(0)));
            EXPECT_EQ(fetched(), 0U);
            rest_of(*open(name_of_shard(1)));
            EXPECT_EQ(fetched(), one);
        }
    }
    fetched();
    rest_of(*open(name_of_shard(11)));
    EXPECT_EQ(fetched(), 0U);
    EXPECT_TRUE(warnings.empty());
}

TEST_F(CacheRoom, readers_of_what_is_evicted_go_on) {
    options.cache_size = 5 * cache_block_size;
    const std::string a = serve(name_of_shard(0), 3 * cache_block_size, 1);
    rest_of(*open(name_of_shard(0)));
    const auto source = open(name_of_shard(0));
    const auto reader = source->open_sequential(0);
    std::vector<uint8_t> buffer(100000);
    std::string text;
    for (int i = 0; i < 3; ++i) {
        const size_t count = reader->read(buffer);
        text.append(reinterpret_cast<const char*>(buffer.data()), count);
    }
    serve(name_of_shard(1), 4 * cache_block_size, 2);
    EXPECT_EQ(rest_of(*open(name_of_shard(1))).size(), 4 * cache_block_size);
    while (const size_t count = reader->read(buffer))
        text.append(reinterpret_cast<const char*>(buffer.data()), count);
    EXPECT_EQ(text, a);
    EXPECT_EQ(part_of(*source, 5, 500), a.substr(5, 500));
    EXPECT_LE(bytes_in(root() + "/shards"), options.cache_size);
}

TEST_F(CacheRoom, a_limit_below_one_shard_is_an_error_when_it_is_opened) {
    const uint64_t size = 3 * cache_block_size;
    serve(url, size, 3);
    options.cache_size = size;  // and the headers
    const auto [code, text] = error_of([&] { open(url); });
    EXPECT_EQ(code, SHF_E_LIMIT);
    EXPECT_NE(text.find("cache_size"), std::string::npos) << text;
    EXPECT_NE(text.find("help: raise cache_size"), std::string::npos) << text;
    options.cache_size = size + 4 * 4096;
    EXPECT_EQ(rest_of(*open(url)).size(), size);
    fetched();
    rest_of(*open(url));
    EXPECT_EQ(fetched(), 0U);
    options.cache_size = 0;
    open(url);
}

TEST_F(CacheRoom, a_limit_of_one_shard_serves_many_readers) {
    const Watchdog watchdog(60);
    options.cache_size = 2 * cache_block_size + 4 * 4096;
    for (int i = 0; i < 4; ++i)
        serve(name_of_shard(i), 2 * cache_block_size, static_cast<uint64_t>(i));
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 8; ++i) {
                const std::string name = name_of_shard((t + i) % 4);
                if (rest_of(*open(name)) != Server::get().shards.at(name).bytes) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(parts().empty());
    EXPECT_LE(bytes_in(root() + "/shards"), options.cache_size + 5 * 4096);
}

TEST_F(CacheRoom, a_wrong_count_is_counted_again) {
    options.cache_size = 10 * cache_block_size;
    serve(url, cache_block_size, 4);
    rest_of(*open(url));
    for (const std::string& usage : {std::string(), std::string(16, '\xff'), std::string("x")}) {
        write_file(root() + "/usage", usage);
        serve(name_of_shard(1), cache_block_size, 5, "\"" + std::to_string(usage.size()) + "\"");
        rest_of(*open(name_of_shard(1)));
        EXPECT_EQ(file_bytes(root() + "/usage").size(), 16U);
    }
    fetched();
    rest_of(*open(url));
    EXPECT_EQ(fetched(), 0U);
}

// ---- Whose it is --------------------------------------------------------------------------------

TEST_F(CacheRoom, nobody_else_can_read_or_write_it) {
    serve(url, 1000, 6);
    const mode_t before = ::umask(0);
    rest_of(*open(url));
    (void)shf::cache_index_folder(options);
    ::umask(before);
    EXPECT_EQ(mode_of(root()), 0700U);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root()))
        EXPECT_EQ(mode_of(entry.path()), entry.is_directory() ? 0700U : 0600U) << entry.path();
}

TEST_F(CacheRoom, a_folder_that_may_be_another_ones_is_not_used) {
    const std::string& bytes = serve(url, 100000, 7);
    std::filesystem::create_directories(options.cache);
    const auto refused = [&](const std::string& why) {
        use.warned = 0;
        warnings.clear();
        fetched();
        for (int i = 0; i < 2; ++i) EXPECT_EQ(rest_of(*open(url)), bytes);
        EXPECT_EQ(fetched(), 2 * bytes.size());
        ASSERT_EQ(warnings.size(), 1U);
        EXPECT_NE(warnings[0].find(why), std::string::npos) << warnings[0];
        EXPECT_NE(warnings[0].find("help: "), std::string::npos) << warnings[0];
        std::filesystem::remove_all(root());
    };
    std::filesystem::create_directory(folder / "elsewhere");
    std::filesystem::create_directory_symlink(folder / "elsewhere", root());
    refused("is a link");
    EXPECT_TRUE(std::filesystem::is_empty(folder / "elsewhere"));
    write_file(root(), "a file");
    refused("is a link, or no folder");
    std::filesystem::create_directory(root());
    ::chmod(root().c_str(), 0770);
    refused("mode is not 0700");
    std::filesystem::create_directory(root());
    ::chmod(root().c_str(), 0700);
    write_file(root() + "/thesis.tex", "dear");
    refused("files of others");
    std::filesystem::create_directory(root());
    ::chmod(root().c_str(), 0700);
    write_file(root() + "/CACHEDIR.TAG", "Signature: something else, which is not ours");
    refused("not ours");
    if (::geteuid() == 0) {
        std::filesystem::create_directory(root());
        ::chmod(root().c_str(), 0700);
        ASSERT_EQ(::chown(root().c_str(), 12345, 12345), 0);
        refused("belongs to another user");
    }
}

TEST_F(CacheRoom, links_inside_are_not_followed) {
    const std::string& bytes = serve(url, 100000, 8);
    rest_of(*open(url));
    const auto block = blocks()[0];
    const std::string copy = folder / "copy";
    std::filesystem::rename(block, copy);
    std::filesystem::create_symlink(copy, block);
    fetched();
    EXPECT_EQ(rest_of(*open(url)), bytes);
    EXPECT_EQ(fetched(), bytes.size());
    EXPECT_FALSE(std::filesystem::is_symlink(block));
}

TEST_F(CacheRoom, a_fifo_in_its_place_does_not_stop_a_reader) {
    const Watchdog watchdog(20);
    const std::string& bytes = serve(url, 100000, 9);
    rest_of(*open(url));
    for (const char* name : {"00000000", "version", "lock"}) {
        const auto found = files([&](const std::string& file) { return file == name; });
        ASSERT_EQ(found.size(), 1U);
        std::filesystem::remove(found[0]);
        ASSERT_EQ(::mkfifo(found[0].c_str(), 0600), 0);
        EXPECT_EQ(rest_of(*open(url)), bytes);
        std::filesystem::remove(found[0]);
        EXPECT_EQ(rest_of(*open(url)), bytes);
    }
}

TEST_F(CacheRoom, files_of_others_are_never_removed) {
    options.cache_size = 2 * cache_block_size + 4 * 4096;
    serve(url, 100000, 10);
    rest_of(*open(url));
    const auto place = blocks()[0].parent_path();
    write_file(place / "notes.txt", "mine");
    write_file(root() + "/shards/readme", "mine");
    std::filesystem::create_directory(root() + "/shards/other");
    write_file(root() + "/shards/other/00000000", "mine");
    serve(name_of_shard(1), 2 * cache_block_size, 11);
    rest_of(*open(name_of_shard(1)));
    EXPECT_FALSE(std::filesystem::exists(place / "00000000"));
    EXPECT_TRUE(std::filesystem::exists(place / "notes.txt"));
    EXPECT_TRUE(std::filesystem::exists(root() + "/shards/readme"));
    EXPECT_TRUE(std::filesystem::exists(root() + "/shards/other/00000000"));
}

// ---- What is left over --------------------------------------------------------------------------

TEST_F(CacheRoom, leftovers_go_when_they_are_an_hour_old_and_nobody_writes_them) {
    serve(url, 100000, 12);
    rest_of(*open(url));
    const auto place = blocks()[0].parent_path();
    const auto leave = [&](const std::string& name, int minutes) {
        write_file(place / name, "half a block");
        const auto now = std::filesystem::file_time_type::clock::now();
        std::filesystem::last_write_time(place / name, now - std::chrono::minutes(minutes));
        return place / name;
    };
    const auto young = leave("00000001.1-1.part", 55), old = leave("00000001.1-2.part", 65),
               held = leave("00000001.1-3.part", 65);
    const int fd = ::open(held.c_str(), O_RDWR);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(::fcntl(fd, F_OFD_SETLK, &lock), 0);
    CacheFolder(options.cache, 0, false).recount();
    EXPECT_TRUE(std::filesystem::exists(young));
    EXPECT_FALSE(std::filesystem::exists(old));
    EXPECT_TRUE(std::filesystem::exists(held));
    ::close(fd);
}

// ---- What a program sees of it ------------------------------------------------------------------

using Call = int32_t (*)(shf_cache_report**, const char* const*, size_t, uint64_t,
                         const shf_options*, shf_error*);

// A report as "URL data faults" lines.
std::string said(Call call, const std::string& dir, const std::vector<const char*>& urls = {},
                 uint64_t older_than = 0) {
    shf_options* options = shf_options_new();
    shf_error error{};
    EXPECT_EQ(shf_options_set(options, "cache", dir.c_str(), &error), SHF_OK);
    shf_cache_report* report = nullptr;
    const int32_t code = call(&report, urls.data(), urls.size(), older_than, options, &error);
    shf_options_free(options);
    if (code != SHF_OK) {
        EXPECT_EQ(report, nullptr);
        return shf_error_name(code) + (": " + std::string(error.message));
    }
    std::string text;
    for (size_t i = 0; i < shf_cache_count(report); ++i) {
        shf_bytes row;
        EXPECT_EQ(shf_cache_text(report, i, SHF_CACHE_URL, &row), SHF_OK);
        text += text_of(row) + " " + std::to_string(shf_cache_number(report, i, SHF_CACHE_DATA)) +
                " " + std::to_string(shf_cache_number(report, i, SHF_CACHE_FAULTS)) + "\n";
        EXPECT_LT(shf_cache_number(report, i, SHF_CACHE_AGE), 60'000'000'000U);
        EXPECT_GE(shf_cache_number(report, i, SHF_CACHE_DISK),
                  shf_cache_number(report, i, SHF_CACHE_DATA));
        EXPECT_EQ(shf_cache_number(report, i, 99), UINT64_MAX);
        EXPECT_EQ(shf_cache_text(report, i, SHF_CACHE_SIZE, &row), SHF_E_NOT_FOUND);
    }
    EXPECT_EQ(shf_cache_number(report, 99, SHF_CACHE_SIZE), UINT64_MAX);
    shf_cache_report_free(report);
    return text;
}

TEST_F(CacheRoom, it_is_listed_verified_and_cleared) {
    EXPECT_TRUE(said(shf_cache_list, options.cache).starts_with("NOT_FOUND: "));
    ::unsetenv("SHARDFEED_CACHE");
    EXPECT_TRUE(said(shf_cache_list, "").starts_with("USAGE: "));
    serve("test://h/a.tar", 100000, 17);
    serve("test://h/b/b.tar", 3 * cache_block_size, 18);
    rest_of(*open("test://h/a.tar"));
    part_of(*open("test://h/b/b.tar"), 0, 2 * cache_block_size);
    const std::string a = "test://h/a.tar 100000 ", b = "test://h/b/b.tar 4194304 ";
    EXPECT_EQ(said(shf_cache_list, options.cache), a + "0\n" + b + "0\n");
    EXPECT_EQ(said(shf_cache_list, options.cache, {"TEST://user:x@h/a.tar?token=1"}), a + "0\n");
    EXPECT_EQ(said(shf_cache_list, options.cache, {"test://h/b/"}), b + "0\n");
    EXPECT_EQ(said(shf_cache_list, options.cache, {"test://h/b"}), "");
    EXPECT_EQ(said(shf_cache_list, options.cache, {}, 3600), "");
    EXPECT_TRUE(said(shf_cache_list, options.cache, {}, UINT64_MAX).starts_with("USAGE: "));
    EXPECT_EQ(said(shf_cache_verify, options.cache), a + "0\n" + b + "0\n");
    for (const auto& block : blocks()) {
        std::string bad = file_bytes(block);
        bad[bad.size() / 2] ^= 1;
        write_file(block, bad);
    }
    EXPECT_EQ(said(shf_cache_verify, options.cache, {"test://h/b/"}), "test://h/b/b.tar 0 2\n");
    EXPECT_EQ(said(shf_cache_verify, options.cache), "test://h/a.tar 0 1\ntest://h/b/b.tar 0 0\n");
    EXPECT_TRUE(blocks().empty());
    rest_of(*open("test://h/a.tar"));
    const std::string label = (blocks()[0].parent_path() / "version").string();
    write_file(label, "SHFVERS1 and nothing more");
    EXPECT_TRUE(said(shf_cache_verify, options.cache).starts_with(" 0 1\n"));
    EXPECT_TRUE(blocks().empty());
    rest_of(*open("test://h/a.tar"));
    EXPECT_EQ(said(shf_cache_clear, options.cache, {}, 3600), "");
    EXPECT_EQ(said(shf_cache_clear, options.cache, {"test://h/a.tar"}), a + "0\n");
    EXPECT_EQ(said(shf_cache_list, options.cache), "test://h/b/b.tar 0 0\n");
    said(shf_cache_clear, options.cache);
    EXPECT_EQ(said(shf_cache_list, options.cache), "");
    EXPECT_EQ(shf_cache_list(nullptr, nullptr, 0, 0, nullptr, nullptr), SHF_E_USAGE);
    shf_cache_report_free(nullptr);
}

// ---- Disks that take nothing --------------------------------------------------------------------

// Runs `action` in a child, which gives 0 when all went well.
int in_child(const std::function<int()>& action) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(action());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(CacheRoom, a_full_disk_at_any_byte_changes_nothing_for_the_reader) {
    const uint64_t size = cache_block_size + 100000;
    const std::string& bytes = serve(url, size, 13);
    // A limit on the size of files fails a write in its middle, as a full disk does.
    for (const rlim_t limit :
         {0ULL, 1ULL, 15ULL, 50ULL, 100ULL, 4095ULL, 4096ULL, 4097ULL, 70000ULL, 104095ULL,
          104096ULL, 104097ULL, 200000ULL, 1000000ULL, 2101247ULL, 2101248ULL}) {
        EXPECT_EQ(in_child([&] {
                      std::signal(SIGXFSZ, SIG_IGN);
                      const rlimit most{limit, limit};
                      if (::setrlimit(RLIMIT_FSIZE, &most) != 0) return 2;
                      if (rest_of(*open(url)) != bytes) return 3;
                      if (part_of(*open(url), 0, size) != bytes) return 4;
                      if (!parts().empty()) return 5;
                      const bool whole = limit >= 2101248;
                      if (warnings.size() != (whole ? 0U : 1U)) return 6;
                      return whole || warnings[0].find("cannot be written") != std::string::npos ||
                                     warnings[0].find("without the cache") != std::string::npos
                                 ? 0
                                 : 7;
                  }),
                  0)
            << limit;
        // The next one finds nothing that is wrong.
        shf::SourceUse next;
        EXPECT_EQ(rest_of(*shf::Sources(options, cancel, next).open(url)), bytes);
        EXPECT_EQ(next.cache_faults, 0U);
        std::filesystem::remove_all(options.cache);
    }
}

TEST_F(CacheRoom, a_folder_that_cannot_be_made_or_written_is_reported_once) {
    const std::string& bytes = serve(url, 100000, 14);
    write_file(folder / "file", "");
    for (const std::string& place :
         {folder / "file", std::string("/proc/nowhere"), (folder / "file") + "/below"}) {
        options.cache = place;
        use.warned = 0;
        warnings.clear();
        for (int i = 0; i < 3; ++i) EXPECT_EQ(rest_of(*open(url)), bytes);
        ASSERT_EQ(warnings.size(), 1U);
        EXPECT_NE(warnings[0].find(place), std::string::npos) << warnings[0];
        EXPECT_EQ(shf::cache_index_folder(options), "");
    }
}

TEST_F(CacheRoom, a_folder_without_write_permission_is_still_read) {
    const std::string a = serve(name_of_shard(0), 100000, 15),
                      b = serve(name_of_shard(1), 100000, 16);
    rest_of(*open(name_of_shard(0)));
    fetched();
    std::filesystem::permissions(
        folder / "", std::filesystem::perms::owner_all | std::filesystem::perms::others_exec);
    std::filesystem::permissions(blocks()[0].parent_path(), std::filesystem::perms(0500));
    std::filesystem::permissions(root() + "/shards", std::filesystem::perms(0500));
    EXPECT_EQ(in_child([&] {
                  if (::geteuid() == 0) {  // root may write anywhere
                      // The folder is root's: another user has none of it, and reads on.
                      if (::seteuid(12345) != 0) return 2;
                  }
                  if (rest_of(*open(name_of_shard(0))) != a) return 3;
                  if (rest_of(*open(name_of_shard(1))) != b) return 4;
                  return warnings.size() == 1 ? 0 : 5;
              }),
              0);
    std::filesystem::permissions(root() + "/shards", std::filesystem::perms(0700));
    std::filesystem::permissions(blocks()[0].parent_path(), std::filesystem::perms(0700));
    EXPECT_EQ(rest_of(*open(name_of_shard(0))), a);
}

}  // namespace
