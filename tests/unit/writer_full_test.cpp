// A disk that is full at every place where a writer can find it so. The disk is a tmpfs of this
// test, in a mount namespace of its own.
#include "writer_client.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

bool write_text(const char* path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    return file.flush().good();
}

// Mounts of this process are seen by nobody else from then on. Returns why not; empty: they are.
std::string own_mounts() {
    const auto said = [](const char* what) { return std::string(what) + ": " + strerror(errno); };
    const uid_t user = ::getuid();
    const gid_t group = ::getgid();
    if (::unshare(CLONE_NEWNS) != 0) {
        if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return said("unshare");
        if (!write_text("/proc/self/setgroups", "deny") ||
            !write_text("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") ||
            !write_text("/proc/self/gid_map", "0 " + std::to_string(group) + " 1"))
            return said("user namespace");
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return said("mount /");
    return {};
}

class SmallDisk {
  public:
    SmallDisk(std::string path, const std::string& limits) : path_(std::move(path)) {
        fs::create_directories(path_);
        if (::mount("shardfeed-test", path_.c_str(), "tmpfs", 0, limits.c_str()) != 0)
            throw fs::filesystem_error("mount", path_,
                                       std::error_code(errno, std::generic_category()));
    }
    ~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;

    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + "/" + name;
    }

  private:
    std::string path_;
};

constexpr uint64_t in_shard = 6, all_samples = 17;

// Bytes that do not compress, so that a compressed shard is as long.
std::string payload(uint64_t number) {
    std::string data(9000 + number * 379, '\0');
    uint64_t state = number + 1;
    for (char& c : data) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        c = static_cast<char>(state >> 56);
    }
    return data;
}

struct Kind {
    const char* suffix;
    Settings settings;
    bool salvaged;  // samples of a shard that is not ended can be read
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
    for (const auto& [name, value] : kind.settings) out << name << "=" << value << " ";
    return out << kind.suffix;
}

// What a run came to.
struct Filling {
    bool full = false;
    std::string message = {};
    uint64_t acknowledged = 0;
    std::vector<std::string> listed = {};  // names of shards that the writer calls published
};

class WriterFull : public testing::Test {
  protected:
    static void SetUpTestSuite() { refused = own_mounts(); }
    void SetUp() override {
        if (!refused.empty()) GTEST_SKIP() << "no small file system can be mounted: " << refused;
    }

    static Filling write(const SmallDisk& disk, const Kind& kind, bool keep) {
        Settings settings = kind.settings;
        settings.emplace_back("max_samples", std::to_string(in_shard));
        settings.emplace_back("compress_threads", "1");
        settings.emplace_back("keep_partial", keep ? "true" : "false");
        for (auto& [name, value] : settings)
            if (name == "wids_index") value = disk / value;
        WriterClient client(disk / (std::string("a-%02d") + kind.suffix), settings);
        Filling run;
        for (uint64_t i = 0; i < all_samples && client.code == SHF_OK; ++i) {
            client.write("k" + std::to_string(i), {{"bin", payload(i)}});
            if (client.code != SHF_OK || i % 2 == 0) continue;
            if (!kind.salvaged && i % in_shard != in_shard - 1) continue;
            if (!kind.salvaged) client.code = shf_writer_next_shard(client.writer, &client.error);
            if (client.code == SHF_OK)
                client.code = shf_writer_flush(client.writer, 1, &client.error);
            if (client.code == SHF_OK) run.acknowledged = i + 1;
        }
        if (client.code == SHF_OK) client.finish();
        if (client.code == SHF_OK) {
            run.acknowledged = all_samples;
        } else {
            run.full = true;
            run.message = client.message();
            EXPECT_EQ(client.code, SHF_E_NOSPACE) << run.message;
            // It stays what it is, and says the same.
            EXPECT_EQ(client.write("later", {{"bin", "x"}}), SHF_E_NOSPACE);
            EXPECT_EQ(client.finish(), SHF_E_NOSPACE);
            EXPECT_EQ(client.message(), run.message);
        }
        for (uint64_t i = 0; i < shf_writer_shards(client.writer); ++i)
            run.listed.push_back(fs::path(client.shard(i)).filename());
        return run;
    }

    // Number and bytes of each member that comes before the file breaks off.
    static std::vector<std::pair<uint64_t, std::string>> whole_members(const std::string& path) {
        std::vector<std::pair<uint64_t, std::string>> whole;
        shf_error error = {};
        shf_members* members = nullptr;
        EXPECT_EQ(shf_members_open(&members, path.c_str(), nullptr, &error), SHF_OK);
        shf_bytes name;
        while (shf_members_next(members, &name, &error) == SHF_OK) {
            const uint64_t number = std::stoull(text_of(name).substr(1));
            std::string data(1 << 20, '\0');
            size_t filled = 0, got = 0;
            do {
                if (shf_members_read(members, data.data() + filled, data.size() - filled, &got,
                                     &error) != SHF_OK)
                    break;
                filled += got;
            } while (got > 0);
            data.resize(filled);
            if (filled == shf_members_info(members, SHF_MEMBER_SIZE))
                whole.emplace_back(number, data);
        }
        shf_members_close(members);
        return whole;
    }

    // What is on the disk: whole shards, and of the others what the writer was asked to keep.
    static void check(const SmallDisk& disk, const Kind& kind, bool keep, const Filling& run) {
        uint64_t found = 0;
        std::vector<std::string> shards, rest;
        for (const std::string& name : names_in(disk / "")) {
            if (name.ends_with(".partial"))
                rest.push_back(name);
            else if (name.ends_with(kind.suffix))
                shards.push_back(name);
        }
        EXPECT_EQ(shards, run.listed);
        for (const std::string& name : shards) {
            const auto samples = samples_of({disk / name});
            ASSERT_EQ(samples.size(), std::min(in_shard, all_samples - found)) << name;
            for (const std::string& sample : samples) {
                ASSERT_EQ(sample, "k" + std::to_string(found) + " bin=" + payload(found)) << name;
                ++found;
            }
        }
        if (!keep) {
            EXPECT_TRUE(rest.empty()) << rest[0];
            return;
        }
        for (const std::string& name : rest) {
            if (!kind.salvaged || !name.starts_with(".a-")) continue;
            for (const auto& [number, data] : whole_members(disk / name)) {
                ASSERT_EQ(data, payload(number));
                if (number == found) ++found;
            }
        }
        ASSERT_GE(found, run.acknowledged) << "samples that were acknowledged are lost";
    }

    // Tries disks of every size, page by page, up to one on which all fits.
    static void fill(const Kind& kind) {
        const TempDirectory folder;
        std::vector<std::string> messages;
        for (uint64_t pages = 1;; ++pages) {
            ASSERT_LT(pages, 400U) << "never large enough";
            const SmallDisk disk(folder / "disk", "size=" + std::to_string(pages * 4) + "k");
            const bool keep = pages % 2 == 0 || pages > 250;
            const Filling run = write(disk, kind, keep);
            check(disk, kind, keep, run);
            if (testing::Test::HasFailure()) FAIL() << kind << ", " << pages << " pages";
            if (!run.full) break;
            EXPECT_NE(run.message.find(disk / "a-0"), std::string::npos) << run.message;
            EXPECT_NE(run.message.find("No space left on device"), std::string::npos)
                << run.message;
            messages.push_back(run.message);
        }
        ASSERT_GT(messages.size(), 40U);
    }

    static std::string refused;
};
std::string WriterFull::refused;

TEST_F(WriterFull, tar) {
    fill({".tar", {}, true});
}
TEST_F(WriterFull, tar_that_is_not_durable) {
    fill({".tar", {{"durable", "false"}}, true});
}
TEST_F(WriterFull, gzip) {
    fill({".tar.gz", {}, true});
}
TEST_F(WriterFull, zstd) {
    fill({".tar.zst", {}, true});
}
TEST_F(WriterFull, lz4) {
    fill({".tar.lz4", {}, true});
}
TEST_F(WriterFull, zip) {
    fill({".zip", {}, false});
}
TEST_F(WriterFull, tar_with_its_index) {
    fill({".tar", {{"write_index", "true"}}, true});
}
TEST_F(WriterFull, tar_with_all_indexes) {
    fill({".tar",
          {{"write_index", "true"}, {"index_for", "dali,energon"}, {"wids_index", "a-0.json"}},
          true});
}

// A disk that has room, but for no more files: the index is what fails, and its shard stays.
TEST_F(WriterFull, no_room_for_the_file_of_an_index) {
    const TempDirectory folder;
    uint64_t failures = 0;
    for (const Kind& kind :
         {Kind{".tar", {{"write_index", "true"}}, true},
          Kind{".tar", {{"index_for", "dali,energon"}, {"wids_index", "a-0.json"}}, true}}) {
        for (uint64_t files = 2; files < 20; ++files) {
            const SmallDisk disk(folder / "disk", "size=4m,nr_inodes=" + std::to_string(files));
            const Filling run = write(disk, kind, true);
            check(disk, kind, true, run);
            if (!run.full) break;
            EXPECT_NE(run.message.find(disk / "a-0"), std::string::npos) << run.message;
            failures += run.message.find("index") != run.message.npos ? 1 : 0;
        }
    }
    EXPECT_GE(failures, 4U);
}

}  // namespace
