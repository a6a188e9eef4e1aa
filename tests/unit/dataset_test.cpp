// A dataset gives by number what a stream gives in order, or says why not.
#include "dataset_builder.h"

#include "dataset/dataset.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <numeric>
#include <random>

namespace shf::test {
namespace {

std::string payload(size_t size, uint64_t seed) {
    std::string out(size, '\0');
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    for (char& c : out) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        c = static_cast<char>(state);
    }
    return out;
}

// Compares every way to ask a dataset with the stream over the same shards.
void expect_like_stream(const std::vector<std::string>& urls, const Settings& settings = {}) {
    Client stream(urls, settings);
    std::vector<std::string> all, keys;
    std::vector<uint64_t> shards;
    while (const SampleHandle sample = stream.next()) {
        all.push_back(description(sample.get()));
        keys.push_back(key_of(sample.get()));
        shards.push_back(shf_sample_info(sample.get(), SHF_SAMPLE_SHARD));
    }
    ASSERT_EQ(stream.code, SHF_END) << stream.message();
    for (const char* index : {"memory", "auto", "require"}) {
        SCOPED_TRACE(index);
        Samples data(urls, settings + Settings{{"index", index}});
        ASSERT_EQ(data.code, SHF_OK) << data.message();
        ASSERT_EQ(data.count(), all.size());
        uint64_t first = 0;
        for (uint64_t i = 0; i < all.size(); ++i) {
            ASSERT_EQ(data.text(i), all[i]) << data.message();
            uint64_t shard = 0, start = 0;
            EXPECT_EQ(shf_dataset_shard(data.dataset, i, &shard, &start), SHF_OK);
            if (i == 0 || shards[i] != shards[i - 1]) first = i;
            EXPECT_EQ(shard, shards[i]);
            EXPECT_EQ(start, first);
            EXPECT_EQ(data.find(keys[i]), i) << data.message();
        }
        std::vector<uint64_t> order(all.size());
        std::iota(order.begin(), order.end(), 0);
        std::mt19937 random(7);
        std::shuffle(order.begin(), order.end(), random);
        order.push_back(order[0]);  // the same one twice
        const auto texts = data.texts(order);
        ASSERT_EQ(texts.size(), order.size()) << data.message();
        for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(texts[i], all[order[i]]);
        EXPECT_EQ(data.find("no such key"), UINT64_MAX);
        EXPECT_EQ(data.code, SHF_E_NOT_FOUND);
        EXPECT_EQ(data.text(all.size()), "");
        EXPECT_EQ(data.code, SHF_E_USAGE);
    }
}

// ---- The same as the stream ---------------------------------------------------------------------

TEST(Dataset, tars_and_zips_in_one_list) {
    const TempDirectory directory;
    directory.write("0.tar", tar_of_members({{"t/a.jpg", payload(3000, 1)},
                                             {"t/a.cls", "7"},
                                             {"README", "no sample"},
                                             {"t/a.json", "{}"},
                                             {"t/b.jpg", payload(100000, 2)},
                                             {"t/b.cls", ""}}));
    directory.write("1.zip", stored_zip({{"z/a.JPG", payload(70000, 3)},
                                         {"z/a.cls", ""},
                                         {"z/", ""},
                                         {"z/b.Seg.PNG", payload(10, 4)},
                                         {"__meta__/x.json", "{}"},
                                         {"z/c.", "unnamed"}}));
    directory.write("2.tar", pax({{"path", "p/long.txt"}, {"mtime", "1.5"}}) +
                                 member("short", payload(600, 5)) +
                                 gnu_name("p/" + std::string(200, 'n') + ".txt") +
                                 member("n", payload(5000, 6), Carrier::gnu) +
                                 pax({{"mtime", "1.5"}}) + member("p/plain.txt", "plain") +
                                 header({.name = "p/", .type = '5'}) +
                                 member("p/plain.cls", payload(200000, 7)) + end_marker());
    directory.write("3.zip", stored_zip({{"last.txt", "the end"}}));
    expect_like_stream({directory / "{0.tar,1.zip,2.tar}", directory / "3.zip"});
    expect_like_stream({directory / "3.zip::" + (directory / "0.tar")});
}

TEST(Dataset, random_shapes) {
    for (uint32_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(seed);
        const TempDirectory directory;
        std::mt19937 random(seed);
        std::vector<std::string> urls;
        for (size_t shard = 0; shard < 4; ++shard) {
            const auto largest = 4 + random() % 16;
            NamedBytes members;
            size_t bytes = 0;
            for (size_t i = 0; i < 80 && bytes < (3 << 20); ++i)
                for (size_t k = 0, count = 1 + random() % 5; k < count; ++k) {
                    const size_t size = random() % (size_t{1} << (1 + random() % largest));
                    const std::string key = numbered("s", shard) + numbered("/k", i);
                    members.emplace_back(key + numbered(".f", k), payload(size, i * 100 + k));
                    if (random() % 7 == 0)
                        members.emplace_back("README", payload(random() % 9000, i));
                    bytes += size;
                }
            // ZIP files have no two members of one name.
            const std::string name = numbered("", shard) + (shard % 2 == 0 ? ".tar" : ".zip");
            if (shard % 2 != 0)
                std::erase_if(members, [](const auto& member) { return member.first == "README"; });
            directory.write(name, shard % 2 == 0 ? tar_of_members(members) : stored_zip(members));
            urls.push_back(directory / name);
        }
        expect_like_stream(urls);
    }
}

TEST(Dataset, shards_without_samples) {
    const TempDirectory directory;
    directory.write("0.tar", tar_of_members({{"README", ""}}));
    directory.write("1.zip", stored_zip({{"README", ""}}));
    directory.write("2.tar", tar_of_members({{"a.x", "1"}, {"b.x", "2"}}));
    directory.write("3.tar", tar_of_members({{"README", ""}}));
    directory.write("4.zip", stored_zip({{"c.x", "3"}}));
    directory.write("5.tar", tar_of_members({{"README", ""}}));
    expect_like_stream({directory / "{0.tar,1.zip,2.tar,3.tar,4.zip,5.tar}"},
                       {{"allow_empty", "true"}});
    for (const char* name : {"0.tar", "1.zip"}) {
        const Samples refused(directory / name);
        EXPECT_EQ(refused.code, SHF_E_FORMAT);
        EXPECT_NE(refused.message().find("empty shard"), std::string::npos);
        Samples empty(directory / name, {{"allow_empty", "true"}});
        EXPECT_EQ(empty.code, SHF_OK) << empty.message();
        EXPECT_EQ(empty.count(), 0U);
        EXPECT_EQ(empty.find("a"), UINT64_MAX);
        EXPECT_EQ(empty.code, SHF_E_NOT_FOUND);
        EXPECT_EQ(empty.text(0), "");
        EXPECT_EQ(empty.code, SHF_E_USAGE);
    }
}

TEST(Dataset, one_shard_twice) {
    const TempDirectory directory;
    directory.write("0.tar", tar_of_members({{"a.x", "1"}, {"b.x", "2"}}));
    Samples data(std::vector<std::string>(2, directory / "0.tar"));
    ASSERT_EQ(data.count(), 4U);
    EXPECT_NE(data.text(3).find("b of "), std::string::npos);
    EXPECT_NE(data.text(3).find(", shard 1, byte 1024, "), std::string::npos) << data.text(3);
}

// ---- Keys ---------------------------------------------------------------------------------------

TEST(Dataset, keys_that_are_there_twice) {
    const TempDirectory directory;
    directory.write("0.tar", tar_of_members({{"a.x", "1"}, {"b.x", "2"}}));
    directory.write("1.tar", tar_of_members({{"c.x", "3"}, {"b.x", "4"}, {"B.x", "5"}}));
    directory.write("2.zip", stored_zip({{"d.x", "6"}, {"b.x", "7"}}));
    Samples two(directory / "{0,1}.tar");
    EXPECT_EQ(two.find("b"), UINT64_MAX);
    EXPECT_EQ(two.code, SHF_E_AMBIGUOUS);
    EXPECT_NE(two.message().find("samples 1 and 3"), std::string::npos) << two.message();
    EXPECT_EQ(two.find("B"), 4U);
    EXPECT_EQ(two.find("c"), 2U);
    Samples three({directory / "{0,1}.tar", directory / "2.zip"});
    EXPECT_EQ(three.find("b"), UINT64_MAX);
    EXPECT_EQ(three.code, SHF_E_AMBIGUOUS);
    EXPECT_NE(three.message().find("3 times"), std::string::npos) << three.message();
    EXPECT_EQ(three.find(""), UINT64_MAX);
    EXPECT_EQ(three.code, SHF_E_NOT_FOUND);
    // In one shard, where it is allowed.
    directory.write("3.tar", tar_of_members({{"a.x", "1"}, {"b.x", "2"}, {"a.y", "3"}}));
    EXPECT_EQ(Samples(directory / "3.tar").code, SHF_E_AMBIGUOUS);
    Samples accepted(directory / "3.tar", {{"duplicate_keys", "accept"}});
    EXPECT_EQ(accepted.count(), 3U);
    EXPECT_EQ(accepted.find("a"), UINT64_MAX);
    EXPECT_EQ(accepted.code, SHF_E_AMBIGUOUS);
    EXPECT_EQ(accepted.find("b"), 1U);
}

// ---- What no dataset can be made of -------------------------------------------------------------

TEST(Dataset, shards_that_cannot_be_read_in_place) {
    const TempDirectory directory;
    const std::string tar = tar_of_members({{"a.x", "1"}});
    directory.write("0.tar", tar);
    directory.write("1.tar.gz", "\x1f\x8b\x08 and no more of it");
    ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
    const int keeps_open = ::open((directory / "fifo").c_str(), O_RDWR | O_CLOEXEC);
    struct Case {
        std::string url;
        int32_t code;
        const char *cause, *help;
    };
    for (const Case& wrong :
         {Case{directory / "1.tar.gz", SHF_E_FORMAT, "gzip", "copy it again"},
          Case{"pipe:cat " + (directory / "0.tar"), SHF_E_USAGE, "any offset", "copy the shard"},
          Case{"-", SHF_E_USAGE, "any offset", "copy the shard"},
          Case{directory / "fifo", SHF_E_USAGE, "any offset", "copy the shard"},
          Case{directory / "none.tar", SHF_E_IO, "open", ""},
          Case{directory / ".", SHF_E_IO, "directory", ""},
          Case{"elsewhere://bucket/x.tar", SHF_E_UNSUPPORTED, "elsewhere", ""}}) {
        SCOPED_TRACE(wrong.url);
        const Samples data({directory / "0.tar", wrong.url});
        EXPECT_EQ(data.dataset, nullptr);
        EXPECT_STREQ(shf_error_name(data.code), shf_error_name(wrong.code)) << data.message();
        for (const char* part : {wrong.cause, wrong.help})
            EXPECT_NE(data.message().find(part), std::string::npos) << data.message();
        EXPECT_TRUE(data.message().starts_with(wrong.url)) << data.message();
    }
    ::close(keeps_open);
    EXPECT_EQ(Samples(std::vector<std::string>()).code, SHF_E_USAGE);
    EXPECT_EQ(Samples(directory / "{0..9}.tar", {{"max_shards", "9"}}).code, SHF_E_LIMIT);
    // secure=true refuses child processes before it is asked what they are for.
    EXPECT_EQ(Samples("pipe:true", {{"secure", "true"}}).code, SHF_E_USAGE);
}

TEST(Dataset, limits_hold_for_each_sample) {
    const TempDirectory directory;
    const NamedBytes members = {{"a.x", "small"},
                                {"b.x", std::string(3000, 'b')},
                                {"b.y", std::string(3000, 'b')},
                                {"c.x", std::string(5000, 'c')},
                                {"d.x", std::string(2 << 20, 'd')},
                                {"e.x", "small"}};
    directory.write("0.tar", tar_of_members(members));
    directory.write("0.zip", stored_zip(members));
    for (const char* name : {"0.tar", "0.zip"}) {
        SCOPED_TRACE(name);
        const auto codes = [&](const Settings& settings, const char* option) {
            Samples data(directory / name, settings);
            EXPECT_EQ(data.code, SHF_OK) << data.message();
            std::string out;
            for (uint64_t i = 0; i < data.count(); ++i) {
                if (!data.text(i).empty()) {
                    out += 'o';
                    continue;
                }
                EXPECT_EQ(data.code, SHF_E_LIMIT);
                EXPECT_NE(data.message().find(option), std::string::npos) << data.message();
                EXPECT_TRUE(data.message().starts_with(directory / name)) << data.message();
                out += 'L';
            }
            return out;
        };
        EXPECT_EQ(codes({}, ""), "ooooo");
        EXPECT_EQ(codes({{"max_member", "4999"}}, "max_member=4999"), "ooLLo");
        EXPECT_EQ(codes({{"max_member", "5000"}}, "max_member=5000"), "oooLo");
        EXPECT_EQ(codes({{"max_sample", "5999"}}, "max_sample=5999"), "oLoLo");
        EXPECT_EQ(codes({{"max_sample", "6000"}}, "max_sample=6000"), "oooLo");
        EXPECT_EQ(codes({{"memory", "1MiB"}}, "memory=1048576"), "oooLo");
        EXPECT_EQ(codes({{"memory", "2MiB"}}, ""), "ooooo");
    }
    Samples zip(directory / "0.zip", {{"max_sample", "5999"}});
    EXPECT_EQ(zip.text(1), "");
    EXPECT_NE(zip.message().find("member \"b.x\": at byte 38: a sample of 6000 bytes"),
              std::string::npos)
        << zip.message();
}

// ---- get_many -----------------------------------------------------------------------------------

// Large ones, and small ones that share memory.
class ManyAtOnce : public testing::TestWithParam<size_t> {};

TEST_P(ManyAtOnce, with_a_bad_one) {
    const TempDirectory directory;
    NamedBytes members;
    for (size_t i = 0; i < 300; ++i)
        members.emplace_back(
            numbered("k", i) + ".txt",
            numbered("k", i) + std::string(i % 50 == 7 ? 10 * GetParam() : GetParam(), 't'));
    directory.write("0.zip", stored_zip(members));
    directory.write("1.tar", tar_of_members(members));
    std::vector<uint64_t> order(600);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(3);
    std::shuffle(order.begin(), order.end(), random);
    for (const char* threads : {"0", "1", "3"}) {
        Samples data({directory / "0.zip", directory / "1.tar"},
                     {{"threads", threads}, {"max_member", std::to_string(5 * GetParam())}});
        EXPECT_TRUE(data.texts(order).empty());
        EXPECT_EQ(data.code, SHF_E_LIMIT);
        // The first bad one in the list, wherever it is in the files.
        const auto bad = std::ranges::find_if(order, [](uint64_t i) { return i % 300 % 50 == 7; });
        const shf_error of_many = data.error;
        EXPECT_EQ(data.text(*bad), "");
        EXPECT_STREQ(of_many.message, data.error.message);
        std::vector<uint64_t> good = order;
        std::erase_if(good, [](uint64_t i) { return i % 300 % 50 == 7; });
        EXPECT_EQ(data.texts(good).size(), good.size()) << data.message();
        good.push_back(600);
        EXPECT_TRUE(data.texts(good).empty());
        EXPECT_EQ(data.code, SHF_E_USAGE);
        EXPECT_TRUE(data.texts({}).empty());
        EXPECT_EQ(data.code, SHF_OK);
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ManyAtOnce, testing::Values(20000, 100));

// Memory of many samples is used again by the next call, also when it is more than single ones
// leave.
TEST(Dataset, many_use_their_memory_again) {
    const TempDirectory directory;
    NamedBytes members;
    for (size_t i = 0; i < 24; ++i)
        members.emplace_back(numbered("k", i) + ".bin", std::string(1 << 20, 'b'));
    directory.write("0.tar", tar_of_members(members));
    Samples data(directory / "0.tar", {{"memory", "64MiB"}});
    std::vector<uint64_t> numbers(24);
    std::iota(numbers.begin(), numbers.end(), 0);
    const auto faults_of_a_call = [&] {
        rusage before{}, after{};
        std::vector<shf_sample*> samples(numbers.size());
        ::getrusage(RUSAGE_SELF, &before);
        EXPECT_EQ(shf_dataset_get_many(data.dataset, numbers.data(), numbers.size(), samples.data(),
                                       nullptr),
                  SHF_OK);
        ::getrusage(RUSAGE_SELF, &after);
        for (shf_sample* sample : samples) shf_sample_unref(sample);
        return after.ru_minflt - before.ru_minflt;
    };
    faults_of_a_call();
    EXPECT_LT(faults_of_a_call(), 1000);  // they take 6144 pages
}

// Neighbours that lie together in the file, with and without something between them.
TEST(Dataset, many_small_ones_with_gaps) {
    const TempDirectory directory;
    std::mt19937 random(11);
    std::string tar;
    for (size_t i = 0; i < 300; ++i) {
        const std::string key = numbered("k", i);
        for (size_t f = 0; f < 1 + i % 3; ++f) {
            tar += member(key + numbered(".f", f), payload(random() % 3000, 10 * i + f));
            if (random() % 4 == 0) tar += member("README", std::string(random() % 6000, 'r'));
        }
        if (i % 7 == 0)  // the walker must read this name
            tar += pax({{"path", numbered("long/p", i) + ".txt"}}) + member("x", numbered("t", i));
    }
    directory.write("0.tar", tar + end_marker());
    expect_like_stream({directory / "0.tar"});
    Samples data(directory / "0.tar");
    for (size_t step = 1; step <= 9; step += 2) {
        std::vector<uint64_t> numbers;
        for (uint64_t i = 0; i < data.count(); i += step) numbers.insert(numbers.end(), i % 5, i);
        const std::vector<std::string> texts = data.texts(numbers);
        ASSERT_EQ(texts.size(), numbers.size()) << data.message();
        for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(texts[i], data.text(numbers[i]));
    }
}

// ---- Files that change --------------------------------------------------------------------------

// What a get says after something was done to the shard under an open dataset.
class ChangedShard : public testing::TestWithParam<const char*> {
  protected:
    ChangedShard() : zip(GetParam() == std::string_view("zip")) { write(path, 'x'); }

    [[nodiscard]] std::string bytes(char fill) const {
        NamedBytes members;
        for (size_t i = 0; i < 50; ++i)
            members.emplace_back(numbered("k", i) + ".txt", std::string(10000, fill));
        return zip ? stored_zip(members) : tar_of_members(members);
    }
    void write(const std::string& to, char fill) const {
        std::ofstream(to, std::ios::binary) << bytes(fill);
    }
    // The codes that samples of the open dataset give; whole ones have the old bytes.
    static std::vector<int32_t> codes(Samples& data) {
        std::vector<int32_t> codes;
        for (uint64_t i = 0; i < data.count(); i += 7) {
            const SampleHandle sample = data.get(i);
            shf_bytes text;
            if (sample && (shf_sample_find(sample.get(), "txt", 3, &text) != SHF_OK ||
                           text_of(text) != std::string(10000, 'x')))
                ADD_FAILURE() << "wrong bytes";
            codes.push_back(data.code);
        }
        return codes;
    }
    // What many of them at once give.
    static int32_t code_of_many(Samples& data) {
        std::vector<uint64_t> numbers(data.count());
        std::iota(numbers.begin(), numbers.end(), 0);
        std::ranges::reverse(numbers);
        const std::vector<std::string> texts = data.texts(numbers);
        EXPECT_EQ(texts.size(), data.code == SHF_OK ? numbers.size() : 0);
        for (const std::string& text : texts)
            EXPECT_NE(text.find(std::string(10000, 'x')), std::string::npos) << "wrong bytes";
        return data.code;
    }
    static std::vector<int32_t> all(int32_t code) { return std::vector<int32_t>(8, code); }

    const bool zip;
    const TempDirectory directory;
    const std::string path = directory / (zip ? "0.zip" : "0.tar");
};

TEST_P(ChangedShard, written_in_place) {
    Samples data(path);
    EXPECT_EQ(codes(data), all(SHF_OK));
    EXPECT_EQ(code_of_many(data), SHF_OK);
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << bytes('y');
    EXPECT_EQ(codes(data), all(SHF_E_CHANGED)) << data.message();
    EXPECT_EQ(code_of_many(data), SHF_E_CHANGED) << data.message();
    EXPECT_TRUE(data.message().starts_with(path)) << data.message();
}

TEST_P(ChangedShard, longer) {
    Samples data(path);
    std::ofstream(path, std::ios::binary | std::ios::app) << 'z';
    // A ZIP file has checksums, which prove that the bytes are still the old ones.
    EXPECT_EQ(codes(data), all(zip ? SHF_OK : SHF_E_CHANGED)) << data.message();
    EXPECT_EQ(code_of_many(data), zip ? SHF_OK : SHF_E_CHANGED) << data.message();
}

TEST_P(ChangedShard, cut) {
    Samples data(path);
    ASSERT_EQ(::truncate(path.c_str(), 300000), 0);
    std::vector<int32_t> cut = all(SHF_E_TRUNCATED);
    if (zip) std::fill_n(cut.begin(), 5, SHF_OK);  // these are whole
    EXPECT_EQ(codes(data), cut) << data.message();
    EXPECT_EQ(code_of_many(data), SHF_E_TRUNCATED) << data.message();
    ASSERT_EQ(::truncate(path.c_str(), 0), 0);
    EXPECT_EQ(codes(data), all(SHF_E_TRUNCATED)) << data.message();
}

// The file that was opened is still there.
TEST_P(ChangedShard, replaced_or_removed) {
    Samples data(path);
    write(path + ".new", 'y');
    ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
    EXPECT_EQ(codes(data), all(SHF_OK)) << data.message();
    ASSERT_EQ(::unlink(path.c_str()), 0);
    EXPECT_EQ(codes(data), all(SHF_OK)) << data.message();
    EXPECT_EQ(code_of_many(data), SHF_OK) << data.message();
}

// Sets how many descriptors the process may have, for the time of a test.
class FewDescriptors {
  public:
    explicit FewDescriptors(rlim_t most) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit few = {most, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    }
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

  private:
    rlimit before_ = {};
};

// A file that is opened for each read may be another one by then.
TEST_P(ChangedShard, replaced_or_removed_between_reads) {
    const FewDescriptors few(40);
    std::vector<std::string> urls(60, path);
    write(directory / "first", 'x');
    std::fill_n(urls.begin(), 30, directory / (zip ? "f.zip" : "f.tar"));
    ASSERT_EQ(::rename((directory / "first").c_str(), urls[0].c_str()), 0);
    Samples data(urls);
    ASSERT_EQ(data.count(), 60 * 50U) << data.message();
    write(path + ".new", 'y');
    ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
    EXPECT_EQ(data.text(60 * 50 - 1), "");
    EXPECT_EQ(data.code, SHF_E_CHANGED) << data.message();
    ASSERT_EQ(::unlink(path.c_str()), 0);
    EXPECT_EQ(data.text(60 * 50 - 1), "");
    EXPECT_EQ(data.code, SHF_E_IO) << data.message();
    EXPECT_NE(data.text(0), "");
}

INSTANTIATE_TEST_SUITE_P(Formats, ChangedShard, testing::Values("tar", "zip"),
                         [](const auto& format) { return std::string(format.param); });

// ---- Bounds -------------------------------------------------------------------------------------

TEST(Dataset, more_shards_than_descriptors) {
    const TempDirectory directory;
    constexpr size_t shards = 100;
    for (size_t i = 0; i < shards; ++i) {
        const std::string key = sample_key(i, 0);
        directory.write(numbered("", i) + ".tar", tar_of_members({{key + ".txt", key}}));
        directory.write(numbered("", i) + ".zip", stored_zip({{key + ".txt", key}}));
    }
    const FewDescriptors few(50);
    const std::vector<std::string> urls = {directory / "{0..99}.tar", directory / "{0..99}.zip"};
    std::vector<std::unique_ptr<Samples>> several;  // none takes the descriptors of the others
    for (int i = 0; i < 6; ++i) several.push_back(std::make_unique<Samples>(urls));
    for (int round = 0; round < 2; ++round) {
        for (const auto& data : several) {
            ASSERT_EQ(data->count(), 2 * shards) << data->message();
            for (size_t i = 0; i < data->count(); ++i) {
                const SampleHandle sample = data->get(i);
                ASSERT_TRUE(sample) << data->message();
                EXPECT_EQ(key_of(sample.get()), sample_key(i % shards, 0));
                EXPECT_TRUE(is_whole(sample.get()));
            }
        }
        several.erase(several.begin(), several.begin() + 3);
        several.push_back(std::make_unique<Samples>(urls));  // takes what the others gave back
    }
    EXPECT_NE(::fcntl(24, F_GETFD), -1);  // half of them are in use
}

// A kept sample holds at most 64 KiB more than 8 times its own size.
TEST(Dataset, kept_samples_hold_little) {
    const TempDirectory directory;
    size_t shared = 0;
    for (uint32_t seed = 1; seed <= 6; ++seed) {
        std::mt19937 random(seed);
        NamedBytes members;
        const auto largest = seed == 1 ? 1 : 2 + random() % 16;
        const size_t most_fields = seed < 4 ? 3000 : 30;
        for (size_t i = 0, bytes = 0; i < 20 && bytes < (2 << 20); ++i)
            for (size_t k = 0, count = 1 + random() % most_fields; k < count; ++k) {
                const size_t size = random() % (size_t{1} << random() % largest);
                members.emplace_back(numbered("s", i) + numbered(".f", k), payload(size, i + k));
                bytes += size;
            }
        directory.write("0.zip", stored_zip(members));
        std::string tar;
        for (const auto& [name, data] : members) {
            tar += member(name, data);
            if (random() % 3 == 0) tar += member("README", std::string(random() % 5000, 'r'));
        }
        directory.write("0.tar", tar + end_marker());
        for (const char* name : {"0.tar", "0.zip"}) {
            const std::string url = directory / name;
            const char* const given[] = {url.c_str()};
            const Dataset data(given, Options());
            for (size_t i = 0; i < data.count(); ++i) {
                Sample* sample = data.get(i);
                const Block& block = *sample->block;
                EXPECT_EQ(block.count, 1U);
                EXPECT_LE(block.storage_bytes(), 64 * 1024 + 8 * block.payload_bytes)
                    << name << " seed " << seed << ", " << block.field_count << " fields";
                sample->block->unref();
            }
            // Asked for at once they share blocks, in pieces of any gaps.
            std::vector<uint64_t> numbers(data.count());
            std::iota(numbers.begin(), numbers.end(), 0);
            std::erase_if(numbers, [&](uint64_t) { return random() % 4 == 0; });
            std::ranges::shuffle(numbers, random);
            std::vector<Sample*> samples(numbers.size());
            data.get_many(numbers, samples);
            for (const Sample* sample : samples) {
                const uint64_t own = sample->block->payload_of(sample->index);
                EXPECT_LE(sample->block->storage_bytes(), 64 * 1024 + 8 * own);
                if (sample->block->count > 1) {
                    EXPECT_LE(sample->block->memory(), 64 * 1024U) << name << " seed " << seed;
                    ++shared;
                }
            }
            for (const Sample* sample : samples) sample->block->unref();
        }
        if (seed == 5) expect_like_stream({directory / "0.tar"});
    }
    EXPECT_GT(shared, 50U);
}

}  // namespace
}  // namespace shf::test
