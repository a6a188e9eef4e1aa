// Where index files lie, when one is believed, and what happens to one that is not.
#include "temp_shards.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace shf::test {
namespace {

namespace fs = std::filesystem;

struct DatasetClose {
    void operator()(shf_dataset* dataset) const { shf_dataset_close(dataset); }
};
using DatasetHandle = std::unique_ptr<shf_dataset, DatasetClose>;
struct OptionsFree {
    void operator()(shf_options* options) const { shf_options_free(options); }
};

// One opening of a dataset, and what it said.
struct Opening {
    std::vector<std::pair<int32_t, std::string>> messages;
    shf_error error = {};
    int32_t code = SHF_OK;
    std::vector<std::string> samples;  // keys and texts

    explicit Opening(const std::string& url, const Settings& settings = {}) {
        const std::unique_ptr<shf_options, OptionsFree> options(shf_options_new());
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options.get(), name.c_str(), value.c_str(), &error), SHF_OK);
        shf_options_set_log(
            options.get(), SHF_LOG_INFO,
            [](void* ctx, int32_t level, const char* message) {
                static_cast<Opening*>(ctx)->messages.emplace_back(level, message);
            },
            this);
        const char* given = url.c_str();
        shf_dataset* opened = nullptr;
        code = shf_dataset_open(&opened, &given, 1, options.get(), &error);
        const DatasetHandle dataset(opened);
        for (uint64_t i = 0; i < shf_dataset_sample_count(opened); ++i) {
            shf_sample* sample = nullptr;
            code = shf_dataset_get(opened, i, &sample, &error);
            const SampleHandle owned(sample);
            shf_bytes text;
            if (code != SHF_OK || shf_sample_find(sample, "txt", 3, &text) != SHF_OK) break;
            samples.push_back(key_of(sample) + "=" + text_of(text));
        }
    }
    [[nodiscard]] size_t count(int32_t level, std::string_view part) const {
        return static_cast<size_t>(std::ranges::count_if(messages, [&](const auto& message) {
            return message.first == level && message.second.find(part) != std::string::npos;
        }));
    }
    [[nodiscard]] bool walked() const { return count(SHF_LOG_INFO, "making its index") == 1; }
    [[nodiscard]] bool saved() const { return count(SHF_LOG_INFO, "index saved as") == 1; }
    [[nodiscard]] size_t warnings() const { return count(SHF_LOG_WARNING, ""); }
};

std::string tar_of(const std::vector<std::pair<std::string, std::string>>& samples) {
    std::string bytes;
    for (const auto& [key, text] : samples) bytes += member(key + ".txt", text);
    return bytes + end_marker();
}
const std::vector<std::pair<std::string, std::string>> two = {{"a", "first"}, {"b", "second"}};
const std::vector<std::string> two_read = {"a=first", "b=second"};

void set_time(const std::string& path, int64_t seconds, int64_t nanoseconds = 0) {
    const timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (!entry.is_directory()) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

// A folder with a shard, and a cache of the user that is not the real one.
class IndexStore : public testing::Test {
  protected:
    IndexStore() {
        fs::create_directories(directory / "shards");
        directory.write("shards/x.tar", tar_of(two));
        set_time(shard, 1700000000, 123456789);
        ::setenv("XDG_CACHE_HOME", (directory / "cache").c_str(), 1);
    }

    TempDirectory directory;
    const std::string shard = directory / "shards/x.tar";
    const std::string index = shard + ".sfidx";
};

// ---- index=auto ---------------------------------------------------------------------------------

TEST_F(IndexStore, is_made_once_and_used_again) {
    const Opening first(shard);
    EXPECT_EQ(first.samples, two_read);
    EXPECT_TRUE(first.walked() && first.saved());
    EXPECT_EQ(first.count(SHF_LOG_INFO, index), 1U);
    const std::string file = read_file(index);
    const Opening second(shard);
    EXPECT_EQ(second.samples, two_read);
    EXPECT_TRUE(second.messages.empty());
    EXPECT_EQ(read_file(index), file);
    EXPECT_EQ(names_in(directory / "."), (std::vector<std::string>{"x.tar", "x.tar.sfidx"}));
}

// A second opening reads nothing between the first and the last 64 KiB.
TEST_F(IndexStore, saves_the_walk) {
    ASSERT_EQ(Opening(shard).code, SHF_OK);
    const std::string file = read_file(index);
    // The same size and time, first and last 64 KiB, with another middle.
    std::string bytes;
    for (size_t i = 0; i < 100; ++i)
        bytes += member(numbered("s", i) + ".txt", std::string(2000, 'x'));
    directory.write("shards/x.tar", bytes + end_marker());
    set_time(shard, 1700000000);
    EXPECT_EQ(Opening(shard).samples.size(), 100U);
    overwrite(bytes, 50 * 2560, "t");  // the name in a header, whose checksum is wrong now
    directory.write("shards/x.tar", bytes + end_marker());
    set_time(shard, 1700000000);
    const Opening blind(shard);
    EXPECT_TRUE(blind.messages.empty());
    // What the walk would have found is found when the sample is read.
    EXPECT_EQ(blind.samples.size(), 50U);
    EXPECT_EQ(blind.code, SHF_E_FORMAT);
    EXPECT_EQ(Opening(shard, {{"index", "memory"}}).samples.size(), 0U);
}

TEST_F(IndexStore, of_another_version_of_the_shard) {
    const std::vector<std::pair<std::string, std::string>> other = {{"a", "FIRST"},
                                                                    {"b", "second"}};
    struct Change {
        const char* what;
        std::string bytes;
        int64_t seconds;
    };
    for (const Change& change :
         {Change{"contents", tar_of(other), 1700000000},
          Change{"size", tar_of(two) + zeros(512), 1700000000},
          Change{"time", tar_of(two), 1700000001}, Change{"nothing", tar_of(two), 1700000000}}) {
        SCOPED_TRACE(change.what);
        fs::remove(index);
        directory.write("shards/x.tar", tar_of(two));
        set_time(shard, 1700000000);
        ASSERT_TRUE(Opening(shard).walked());
        const std::string before = read_file(index);
        directory.write("shards/x.tar", change.bytes);
        set_time(shard, change.seconds);
        const bool changed = change.what != std::string_view("nothing");

        const Opening required(shard, {{"index", "require"}});
        EXPECT_EQ(required.code, changed ? SHF_E_CHANGED : SHF_OK) << required.error.message;
        EXPECT_EQ(required.warnings(), changed ? 1U : 0U);
        EXPECT_EQ(read_file(index), before);

        const Opening again(shard);
        EXPECT_EQ(again.code, SHF_OK);
        EXPECT_EQ(again.samples[0], change.bytes == tar_of(other) ? "a=FIRST" : "a=first");
        EXPECT_EQ(again.warnings(), changed ? 1U : 0U);
        EXPECT_EQ(again.count(SHF_LOG_WARNING, "another version"), changed ? 1U : 0U);
        EXPECT_EQ(again.walked() && again.saved(), changed);
        EXPECT_TRUE(Opening(shard).messages.empty());
    }
}

TEST_F(IndexStore, a_time_before_1970) {
    set_time(shard, -1000, 5);
    EXPECT_TRUE(Opening(shard).walked());
    EXPECT_TRUE(Opening(shard).messages.empty());
    set_time(shard, -1000, 6);
    EXPECT_EQ(Opening(shard).warnings(), 1U);
}

TEST_F(IndexStore, damaged) {
    ASSERT_TRUE(Opening(shard).saved());
    const std::string good = read_file(index);
    std::string flipped = good, version = good;
    flipped[good.size() - 3] ^= 1;
    version[17] = 3;
    struct Damage {
        const char* what;
        std::string bytes;
        int32_t code;
    };
    for (const Damage& damage :
         {Damage{"empty", "", SHF_E_FORMAT}, Damage{"text", "no index at all", SHF_E_FORMAT},
          Damage{"cut", good.substr(0, good.size() - 1), SHF_E_FORMAT},
          Damage{"longer", good + "x", SHF_E_FORMAT}, Damage{"bit", flipped, SHF_E_INTEGRITY},
          Damage{"version", version, SHF_E_UNSUPPORTED}}) {
        SCOPED_TRACE(damage.what);
        directory.write("shards/x.tar.sfidx", damage.bytes);
        const Opening required(shard, {{"index", "require"}});
        EXPECT_EQ(required.code, damage.code) << required.error.message;
        EXPECT_NE(std::string(required.error.message).find("x.tar"), std::string::npos);
        EXPECT_EQ(read_file(index), damage.bytes);
        const Opening repaired(shard);
        EXPECT_EQ(repaired.samples, two_read);
        EXPECT_EQ(repaired.warnings(), 1U);
        EXPECT_EQ(repaired.count(SHF_LOG_WARNING, index), 1U);
        EXPECT_TRUE(repaired.walked() && repaired.saved());
        EXPECT_EQ(read_file(index), good);
    }
}

// What is no file in the place of the index: it is passed over, and the index goes to the cache.
TEST_F(IndexStore, no_file_in_its_place) {
    fs::create_directory(index);
    const Opening beside_folder(shard);
    EXPECT_EQ(beside_folder.samples, two_read);
    EXPECT_EQ(beside_folder.warnings(), 1U);
    EXPECT_TRUE(beside_folder.saved());
    EXPECT_FALSE(Opening(shard).walked());
    fs::remove(index);
    fs::remove_all(directory / "cache");
    ASSERT_EQ(::mkfifo(index.c_str(), 0600), 0);
    const Opening beside_fifo(shard);
    EXPECT_EQ(beside_fifo.samples, two_read);
    EXPECT_EQ(beside_fifo.count(SHF_LOG_WARNING, "no index file"), 1U);
}

// A sparse file that claims more than any index has takes no memory.
TEST_F(IndexStore, a_file_that_is_too_large) {
    directory.write("shards/x.tar.sfidx", "");
    ASSERT_EQ(::truncate(index.c_str(), off_t{1} << 42), 0);
    const Opening opening(shard);
    EXPECT_EQ(opening.samples, two_read);
    EXPECT_EQ(opening.count(SHF_LOG_WARNING, "no index file"), 1U);
    EXPECT_TRUE(opening.saved());
    EXPECT_LT(fs::file_size(index), 1000U);
}

// ---- The other choices --------------------------------------------------------------------------

TEST_F(IndexStore, required) {
    const Opening missing(shard, {{"index", "require"}});
    EXPECT_EQ(missing.code, SHF_E_NOT_FOUND);
    EXPECT_NE(std::string(missing.error.message).find(index), std::string::npos)
        << missing.error.message;
    EXPECT_FALSE(missing.walked());
    EXPECT_FALSE(fs::exists(index));
    ASSERT_TRUE(Opening(shard).saved());
    const Opening there(shard, {{"index", "require"}});
    EXPECT_EQ(there.samples, two_read);
    EXPECT_TRUE(there.messages.empty());
}

TEST_F(IndexStore, rebuilt) {
    for (int i = 0; i < 2; ++i) {
        const Opening opening(shard, {{"index", "rebuild"}});
        EXPECT_EQ(opening.samples, two_read);
        EXPECT_TRUE(opening.walked() && opening.saved());
        EXPECT_EQ(opening.warnings(), 0U);
    }
    directory.write("shards/x.tar.sfidx", "damaged");
    const Opening opening(shard, {{"index", "rebuild"}});
    EXPECT_TRUE(opening.walked() && opening.saved());
    EXPECT_TRUE(Opening(shard).messages.empty());
}

TEST_F(IndexStore, in_memory) {
    const Opening opening(shard, {{"index", "memory"}});
    EXPECT_EQ(opening.samples, two_read);
    EXPECT_TRUE(opening.walked());
    EXPECT_FALSE(opening.saved());
    EXPECT_EQ(names_in(directory / "."), (std::vector<std::string>{"x.tar"}));
    directory.write("shards/x.tar.sfidx", "left alone");
    EXPECT_EQ(Opening(shard, {{"index", "memory"}}).warnings(), 0U);
    EXPECT_EQ(read_file(index), "left alone");
}

TEST_F(IndexStore, made_by_itself) {
    shf_error error;
    ASSERT_EQ(shf_index_build(shard.c_str(), nullptr, &error), SHF_OK) << error.message;
    const Opening opening(shard, {{"index", "require"}});
    EXPECT_EQ(opening.samples, two_read);
    EXPECT_TRUE(opening.messages.empty());
    const std::string none = directory / "shards/none.tar";
    EXPECT_EQ(shf_index_build(none.c_str(), nullptr, &error), SHF_E_IO);
    EXPECT_NE(std::string(error.message).find("none.tar"), std::string::npos);
    EXPECT_EQ(shf_index_build("pipe:cat x.tar", nullptr, &error), SHF_E_USAGE);
    directory.write("shards/x.zip", "PK\x05\x06"s + zeros(18));
    EXPECT_EQ(shf_index_build((directory / "shards/x.zip").c_str(), nullptr, &error),
              SHF_E_UNSUPPORTED);
    EXPECT_NE(std::string(error.message).find("needs no index"), std::string::npos);
}

// What a walk under these options would refuse is refused with an index too.
TEST_F(IndexStore, made_under_other_options) {
    const std::string a = member("a.txt", "first"), b = member("b.txt", "second"),
                      end = end_marker();
    struct Case {
        const char *option, *value;
        std::string bytes;
        int32_t refused;
    };
    for (const Case& lenient :
         {Case{"end_marker", "optional", a + b, SHF_E_TRUNCATED},
          Case{"concat", "true", a + end + b + end, SHF_E_FORMAT},
          Case{"trailing", "ignore", a + b + end + "junk", SHF_E_FORMAT},
          Case{"duplicate_keys", "accept", a + b + member("a.x", "") + end, SHF_E_AMBIGUOUS},
          Case{"allow_empty", "true", end, SHF_E_FORMAT}}) {
        SCOPED_TRACE(lenient.option);
        const Settings accept = {{lenient.option, lenient.value}};
        directory.write("shards/x.tar", lenient.bytes);
        EXPECT_TRUE(Opening(shard, accept).saved());
        EXPECT_TRUE(Opening(shard, accept).messages.empty());
        const Opening required(shard, {{"index", "require"}});
        EXPECT_EQ(required.code, SHF_E_USAGE) << required.error.message;
        const Opening strict(shard);
        EXPECT_EQ(strict.code, lenient.refused) << strict.error.message;
        EXPECT_EQ(strict.count(SHF_LOG_WARNING, lenient.option), 1U);
        EXPECT_TRUE(Opening(shard, accept).messages.empty());
        // Where nothing was passed over, the index becomes one for all.
        directory.write("shards/x.tar", tar_of(two));
        EXPECT_TRUE(Opening(shard, accept).saved());
        EXPECT_TRUE(Opening(shard).saved());
        EXPECT_TRUE(Opening(shard).messages.empty());
        EXPECT_TRUE(Opening(shard, accept).messages.empty());
    }
}

// ---- Places -------------------------------------------------------------------------------------

TEST_F(IndexStore, urls_of_one_shard) {
    for (const std::string& url : {"file:" + shard, "file://" + shard, "FILE://localhost" + shard,
                                   directory / "shards/../shards/./x.tar"}) {
        SCOPED_TRACE(url);
        EXPECT_TRUE(Opening(url).saved());
        EXPECT_TRUE(fs::exists(index));
        EXPECT_TRUE(Opening(shard).messages.empty());
        fs::remove(index);
    }
    const fs::path before = fs::current_path();
    fs::current_path(directory / "shards");
    const Opening missing("x.tar", {{"index", "require"}});
    EXPECT_NE(std::string(missing.error.message).find("makes x.tar.sfidx"), std::string::npos)
        << missing.error.message;
    EXPECT_TRUE(Opening("x.tar").saved());
    fs::current_path(before);
    EXPECT_TRUE(Opening(shard).messages.empty());
    EXPECT_EQ(names_in(directory / "."), (std::vector<std::string>{"x.tar", "x.tar.sfidx"}));
}

TEST_F(IndexStore, folder_of_its_own) {
    const Settings settings = {{"index_dir", directory / "indexes/deep"}};
    EXPECT_EQ(Opening(shard, settings + Settings{{"index", "require"}}).code, SHF_E_NOT_FOUND);
    EXPECT_TRUE(Opening(shard, settings).saved());
    EXPECT_TRUE(Opening(shard, settings).messages.empty());
    EXPECT_FALSE(fs::exists(index));
    // Shards of the same name in two folders.
    fs::create_directories(directory / "more");
    directory.write("more/x.tar", tar_of({{"c", "third"}}));
    EXPECT_TRUE(Opening(directory / "more/x.tar", settings).saved());
    EXPECT_EQ(Opening(directory / "more/x.tar", settings).samples[0], "c=third");
    EXPECT_TRUE(Opening(shard, settings).messages.empty());
    const auto names = names_in(directory / "indexes");
    ASSERT_EQ(names.size(), 2U);
    for (const std::string& name : names) {
        EXPECT_EQ(name.size(), std::string("x.tar.0123456789abcdef.sfidx").size()) << name;
        EXPECT_TRUE(name.starts_with("x.tar.") && name.ends_with(".sfidx")) << name;
    }
    shf_error error;
    shf_options* options = shf_options_new();
    ASSERT_EQ(shf_options_set(options, "index_dir", (directory / "other").c_str(), &error), SHF_OK);
    EXPECT_EQ(shf_index_build(shard.c_str(), options, &error), SHF_OK);
    EXPECT_EQ(names_in(directory / "other").size(), 1U);
    // A folder that cannot be made: the dataset opens all the same, index_build does not.
    ASSERT_EQ(shf_options_set(options, "index_dir", (shard + "/below/a/file").c_str(), &error),
              SHF_OK);
    EXPECT_EQ(shf_index_build(shard.c_str(), options, &error), SHF_E_IO);
    EXPECT_EQ(error.os_error, ENOTDIR);
    shf_options_free(options);
    const Opening opening(shard, {{"index_dir", shard + "/below/a/file"}});
    EXPECT_EQ(opening.samples, two_read);
    EXPECT_EQ(opening.count(SHF_LOG_INFO, "could not be saved"), 1U);
}

TEST_F(IndexStore, cache_where_the_folder_is_read_only) {
    // Root may write everywhere: a child without privileges shows it.
    ::chmod((directory / ".").c_str(), 0777);
    ::chmod((directory / "shards").c_str(), 0555);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(10);
        const Opening first(shard);
        const Opening second(shard);
        const auto cached = names_in(directory / "cache/shardfeed");
        ::_exit(first.samples != two_read    ? 1
                : !first.saved()             ? 2
                : first.warnings() != 0      ? 3
                : !second.messages.empty()   ? 4
                : second.samples != two_read ? 5
                : cached.size() != 1         ? 6
                : fs::exists(index)          ? 7
                                             : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ::chmod((directory / "shards").c_str(), 0755);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    // One in the cache that is stale does not keep the one beside from being used.
    set_time(shard, 1800000000);
    const Opening stale(shard);
    EXPECT_EQ(stale.warnings(), 1U);
    EXPECT_TRUE(stale.saved());
    EXPECT_TRUE(fs::exists(index));
    EXPECT_TRUE(Opening(shard).messages.empty());
}

TEST_F(IndexStore, long_names) {
    // The name of the index has six bytes more than that of the shard, of at most 255.
    const std::string fits = directory / ("shards/" + std::string(245, 'n') + ".tar");
    fs::rename(shard, fits);
    EXPECT_TRUE(Opening(fits).saved());
    EXPECT_TRUE(fs::exists(fits + ".sfidx"));
    EXPECT_TRUE(Opening(fits).messages.empty());
    const std::string longer = directory / ("shards/" + std::string(251, 'n') + ".tar");
    fs::rename(fits, longer);
    const Opening opening(longer);
    EXPECT_EQ(opening.samples, two_read);
    EXPECT_EQ(opening.warnings(), 0U);
    EXPECT_EQ(names_in(directory / "cache/shardfeed").size(), 1U);
    EXPECT_TRUE(Opening(longer).messages.empty());
}

TEST_F(IndexStore, no_place_at_all) {
    ::setenv("XDG_CACHE_HOME", shard.c_str(), 1);  // where no folder can be
    fs::create_directory(index);
    const Opening opening(shard);
    EXPECT_EQ(opening.samples, two_read);
    EXPECT_EQ(opening.count(SHF_LOG_INFO, "could not be saved: Not a directory"), 1U);
    shf_error error;
    EXPECT_EQ(shf_index_build(shard.c_str(), nullptr, &error), SHF_E_IO);
    EXPECT_EQ(error.os_error, ENOTDIR);
    EXPECT_NE(std::string(error.message).find("saving the index"), std::string::npos);
}

TEST_F(IndexStore, cache_of_the_home) {
    ::unsetenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const std::string before = home ? home : "";
    ::setenv("HOME", (directory / "home").c_str(), 1);
    fs::create_directory(index);  // nothing can be saved beside the shard
    EXPECT_TRUE(Opening(shard).saved());
    EXPECT_EQ(names_in(directory / "home/.cache/shardfeed").size(), 1U);
    ::setenv("XDG_CACHE_HOME", "not/absolute", 1);  // is passed over, says the specification
    EXPECT_FALSE(Opening(shard).walked());
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("HOME");
    const Opening homeless(shard);
    EXPECT_EQ(homeless.samples, two_read);
    EXPECT_FALSE(homeless.saved());
    if (home) ::setenv("HOME", before.c_str(), 1);
}

// ---- Several processes --------------------------------------------------------------------------

TEST_F(IndexStore, eight_processes_start_cold) {
    constexpr int count = 8;
    std::string bytes;
    for (size_t i = 0; i < 2000; ++i) bytes += sample_members(0, i);
    directory.write("shards/x.tar", bytes + end_marker());
    for (int round = 0; round < 5; ++round) {
        fs::remove(index);
        int gate[2];
        ASSERT_EQ(::pipe(gate), 0);
        std::fflush(nullptr);
        std::vector<pid_t> children;
        for (int i = 0; i < count; ++i) {
            children.push_back(::fork());
            if (children.back() != 0) continue;
            ::alarm(100);
            ::close(gate[1]);
            char byte = 0;
            (void)!::read(gate[0], &byte, 1);  // all start when the parent closes its end
            const Opening opening(shard);
            ::_exit(opening.code != SHF_OK            ? 1
                    : opening.samples.size() != 2000U ? 2
                    : opening.warnings() != 0         ? 3
                                                      : 0);
        }
        ::close(gate[0]);
        ::close(gate[1]);
        for (const pid_t child : children) {
            int status = 0;
            ASSERT_EQ(::waitpid(child, &status, 0), child);
            EXPECT_TRUE(WIFEXITED(status));
            EXPECT_EQ(WEXITSTATUS(status), 0);
        }
        EXPECT_EQ(names_in(directory / "."), (std::vector<std::string>{"x.tar", "x.tar.sfidx"}));
        EXPECT_TRUE(Opening(shard).messages.empty());
    }
}

}  // namespace
}  // namespace shf::test
