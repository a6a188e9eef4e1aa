// The members of a tar or ZIP file in sequence, as a program in C reads them.
#include "filter_encoders.h"
#include "member/member_walk.h"
#include "temp_shards.h"
#include "zip_encoders.h"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

namespace shf::test {
namespace {

// What was seen of a member. The data is that of read() until its end.
struct Seen {
    std::string name, data;
    uint64_t kind = 0;

    bool operator==(const Seen&) const = default;
};

class Reader {
  public:
    explicit Reader(const std::string& url, const Settings& settings = {},
                    const std::function<void(shf_options*)>& more = {}) {
        shf_options* options = shf_options_new();
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
                << error.message;
        if (more) more(options);
        code = shf_members_open(&members, url.c_str(), options, &error);
        shf_options_free(options);
    }
    ~Reader() { shf_members_close(members); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    bool next() {
        shf_bytes bytes;
        code = shf_members_next(members, &bytes, &error);
        name = text_of(bytes);
        return code == SHF_OK;
    }
    // The bytes of one call; empty at the end of the member and after an error.
    std::string piece(size_t capacity = 4096) {
        std::string out(capacity, '\0');
        size_t size = 0;
        code = shf_members_read(members, out.data(), capacity, &size, &error);
        out.resize(size);
        return out;
    }
    std::string data(size_t capacity = 4096) {
        std::string all;
        for (std::string more; !(more = piece(capacity)).empty();) all += more;
        return all;
    }
    std::vector<Seen> rest(size_t capacity = 4096) {
        std::vector<Seen> seen;
        while (code == SHF_OK && next()) {
            seen.push_back({name, {}, info(SHF_MEMBER_KIND)});
            if (seen.back().kind != SHF_KIND_SPARSE) seen.back().data = data(capacity);
        }
        return seen;
    }
    [[nodiscard]] uint64_t info(int32_t what) const { return shf_members_info(members, what); }
    [[nodiscard]] std::string text(int32_t what) const {
        shf_bytes bytes;
        return shf_members_text(members, what, &bytes) == SHF_OK ? text_of(bytes) : "";
    }
    [[nodiscard]] std::string message() const { return error.message; }

    shf_members* members = nullptr;
    shf_error error = {};
    int32_t code = SHF_OK;
    std::string name;
};

const std::string long_name = "dir/" + std::string(300, 'n') + ".txt";

std::string mixed_tar() {
    return pax({{"comment", "made for this test"}}, 'g') +
           member({.name = "dir/", .type = '5'}, "") + member("dir/a.txt", "first") +
           member("dir/a.txt", "second, same name") +
           member({.name = "dir/link", .type = '2', .link = "a.txt"}, "") +
           member({.name = "dir/hard", .type = '1', .link = "dir/a.txt"}, "") +
           member({.name = "pipe", .type = '6'}, "") + member("no_suffix", "") +
           gnu_name(long_name) + member(long_name.substr(0, 100), "long", Carrier::gnu) +
           member("__meta__.json", "{}") + end_marker();
}

std::vector<Seen> mixed_members() {
    return {{"dir/", "", SHF_KIND_DIRECTORY},
            {"dir/a.txt", "first", SHF_KIND_FILE},
            {"dir/a.txt", "second, same name", SHF_KIND_FILE},
            {"dir/link", "", SHF_KIND_SYMBOLIC_LINK},
            {"dir/hard", "", SHF_KIND_HARD_LINK},
            {"pipe", "", SHF_KIND_SPECIAL},
            {"no_suffix", "", SHF_KIND_FILE},
            {long_name, "long", SHF_KIND_FILE},
            {"__meta__.json", "{}", SHF_KIND_FILE}};
}

// An entry with this Unix mode and these extra fields in its local header.
Entry unix_entry(Entry entry, uint32_t mode, const std::string& extra = {}) {
    entry.central = [mode](CentralHeader& header) { header.attributes = mode << 16; };
    entry.local = [extra](LocalHeader& header) { header.extra = extra; };
    return entry;
}

class MembersTest : public testing::Test {
  protected:
    std::string file(std::string_view name, std::string_view bytes) {
        directory.write(name, bytes);
        return directory / name;
    }
    const TempDirectory directory;
};

TEST_F(MembersTest, all_members_of_a_tar_come_as_they_are) {
    const std::string path = file("a.tar", mixed_tar());
    for (const size_t capacity : {1U, 3U, 512U, 100000U}) {
        Reader reader(path);
        EXPECT_EQ(reader.rest(capacity), mixed_members());
        EXPECT_EQ(reader.code, SHF_END) << reader.message();
        EXPECT_FALSE(reader.next());
        EXPECT_EQ(reader.code, SHF_END);
    }
}

TEST_F(MembersTest, pipes_and_compressed_tars_have_the_same_members) {
    file("a.tar", mixed_tar());
    file("a.tar.gz", gzip(mixed_tar()));
    for (const std::string& url : {directory / "a.tar.gz", "pipe:cat " + (directory / "a.tar"),
                                   "pipe:cat " + (directory / "a.tar.gz")}) {
        Reader reader(url);
        EXPECT_EQ(reader.rest(), mixed_members()) << url;
        EXPECT_EQ(reader.code, SHF_END) << reader.message();
    }
}

TEST_F(MembersTest, members_that_are_not_read_are_skipped) {
    const std::string big = noise(3 << 20);
    const std::string bytes =
        member("a", big) + member("b", "b") + member("c", big) + member("d", "d") + end_marker();
    file("a.tar", bytes);
    for (const std::string& url : {directory / "a.tar", "pipe:cat " + (directory / "a.tar")}) {
        Reader reader(url);
        ASSERT_TRUE(reader.next());
        EXPECT_EQ(reader.piece(1000), big.substr(0, 1000));
        ASSERT_TRUE(reader.next());
        EXPECT_EQ(reader.data(), "b");
        ASSERT_TRUE(reader.next());
        ASSERT_TRUE(reader.next());
        EXPECT_EQ(reader.name, "d");
        EXPECT_FALSE(reader.next());
        EXPECT_EQ(reader.code, SHF_END) << reader.message();
    }
}

TEST_F(MembersTest, headers_say_owner_mode_and_time) {
    const std::string plain = with(header({.name = "plain"}), 265, "ada\0"s);
    const std::string owned = with(plain, 297, "users\0"s);
    const std::string overridden = pax(
        {{"uid", "4000000000"}, {"mtime", "-1.5"}, {"uname", "\xc3\xa4"}, {"linkpath", "over"}});
    const std::string before_1970 = with(header({.name = "old", .carrier = Carrier::gnu}), 136,
                                         std::string(11, '\xff') + "\xfe");
    file("a.tar", owned + overridden + header({.name = "pax", .type = '2', .link = "short"}) +
                      before_1970 + gnu_long("far\0"s, 'K') +
                      header({.name = "k", .type = '2', .carrier = Carrier::gnu, .link = "x"}) +
                      with(header({.name = "v7", .carrier = Carrier::v7}), 100, "nonsense") +
                      pax({{"gname", "all"}, {"mtime", "7"}, {"uid", "8"}}, 'g') +
                      header({.name = "global"}) +
                      pax({{"gname", ""}, {"mtime", ""}, {"uid", "x"}}) +
                      header({.name = "deleted"}) + end_marker());
    Reader reader(directory / "a.tar");
    EXPECT_EQ(reader.info(SHF_MEMBER_SIZE), UINT64_MAX);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.info(SHF_MEMBER_MODE), 0644);
    EXPECT_EQ(reader.info(SHF_MEMBER_UID), 1000);
    EXPECT_EQ(reader.info(SHF_MEMBER_GID), 1000);
    EXPECT_EQ(reader.info(SHF_MEMBER_MTIME), 1700000000000000000);
    EXPECT_EQ(reader.info(SHF_MEMBER_OFFSET), 0);
    EXPECT_EQ(reader.info(SHF_MEMBER_METHOD), 0);
    EXPECT_EQ(reader.info(SHF_MEMBER_CRC32), UINT64_MAX);
    EXPECT_EQ(reader.text(SHF_MEMBER_USER), "ada");
    EXPECT_EQ(reader.text(SHF_MEMBER_GROUP), "users");
    EXPECT_EQ(reader.text(SHF_MEMBER_LINK), "");
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.info(SHF_MEMBER_UID), 4000000000);
    EXPECT_EQ(static_cast<int64_t>(reader.info(SHF_MEMBER_MTIME)), -1500000000);
    EXPECT_EQ(reader.text(SHF_MEMBER_USER), "\xc3\xa4");
    EXPECT_EQ(reader.text(SHF_MEMBER_LINK), "over");
    EXPECT_EQ(reader.info(SHF_MEMBER_OFFSET), 512);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(static_cast<int64_t>(reader.info(SHF_MEMBER_MTIME)), -2000000000);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.text(SHF_MEMBER_LINK), "far");
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.info(SHF_MEMBER_MODE), UINT64_MAX);
    EXPECT_EQ(reader.text(SHF_MEMBER_USER), "");
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.text(SHF_MEMBER_GROUP), "all");
    EXPECT_EQ(reader.info(SHF_MEMBER_MTIME), 7000000000);
    EXPECT_EQ(reader.info(SHF_MEMBER_UID), 8);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.text(SHF_MEMBER_GROUP), "");
    EXPECT_EQ(reader.info(SHF_MEMBER_MTIME), UINT64_MAX);
    EXPECT_EQ(reader.info(SHF_MEMBER_UID), UINT64_MAX);
    EXPECT_EQ(reader.info(SHF_MEMBER_GID), 1000);
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.code, SHF_END) << reader.message();
    EXPECT_EQ(reader.info(SHF_MEMBER_SIZE), UINT64_MAX);
}

TEST_F(MembersTest, entries_of_a_zip_come_in_the_order_of_the_file) {
    const std::string large = noise(700000) + text(600000);  // decoded in pieces
    std::vector<Entry> entries = {
        {.name = "b", .data = "stored"},
        unix_entry({.name = "a/", .data = ""}, 040755),
        packed_entry("a/1", zip_deflate, text(200000)),
        packed_entry("a/2", zip_deflate, large),
        packed_entry("a/3", zip_lzma, large),
        packed_entry("a/4", zip_zstd, large),
        packed_entry("a/5", zip_bzip2, large),
        packed_entry("a/6", zip_xz, large),
        {.name = "a/7", .data = large, .descriptor = true},
        unix_entry({.name = "link", .data = "a/1"}, 0120777),
    };
    file("a.zip", Zip{.entries = entries, .order = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}}.bytes());
    for (const bool piped : {false, true}) {
        const size_t capacity = piped ? 777 : 1000000;
        Reader reader((piped ? "pipe:cat " : "") + (directory / "a.zip"));
        for (const Entry& entry : entries) {
            ASSERT_TRUE(reader.next()) << reader.message();
            EXPECT_EQ(reader.name, entry.name);
            EXPECT_EQ(reader.info(SHF_MEMBER_SIZE), entry.data.size());
            EXPECT_EQ(reader.info(SHF_MEMBER_METHOD), entry.method);
            EXPECT_EQ(reader.info(SHF_MEMBER_CRC32), crc_of(entry.data));
            EXPECT_TRUE(reader.data(capacity) == entry.data) << entry.name;
            EXPECT_EQ(reader.code, SHF_OK) << reader.message();
            if (entry.name == "a/") {
                EXPECT_EQ(reader.info(SHF_MEMBER_KIND), SHF_KIND_DIRECTORY);
                EXPECT_EQ(reader.info(SHF_MEMBER_MODE), 0755);
            }
        }
        EXPECT_EQ(reader.info(SHF_MEMBER_KIND), SHF_KIND_SYMBOLIC_LINK);
        EXPECT_FALSE(reader.next());
        EXPECT_EQ(reader.code, SHF_END) << reader.message();
    }
}

TEST_F(MembersTest, a_zip_says_time_and_owner_in_its_local_headers) {
    const std::string time = extra(0x5455, "\1" + le32(1700000000));
    const std::string owner = extra(0x7875, "\1\4" + le32(1234) + "\2" + le16(56));
    file("a.zip", Zip{.entries = {unix_entry({.name = "unix", .data = "u"}, 0100640, time + owner),
                                  {.name = "dos", .data = "d"}}}
                      .bytes());
    Reader reader(directory / "a.zip");
    ASSERT_TRUE(reader.next()) << reader.message();
    EXPECT_EQ(reader.info(SHF_MEMBER_MTIME), 1700000000000000000);
    EXPECT_EQ(reader.info(SHF_MEMBER_UID), 1234);
    EXPECT_EQ(reader.info(SHF_MEMBER_GID), 56);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.info(SHF_MEMBER_MTIME), 1725192000000000000);  // 2024-09-01 12:00:00
    EXPECT_EQ(reader.info(SHF_MEMBER_UID), UINT64_MAX);
}

TEST_F(MembersTest, damage_to_one_zip_entry_leaves_the_others) {
    const std::string large = noise(2 << 20);
    std::string bytes = Zip{.entries = {{.name = "a", .data = "stored"},
                                        packed_entry("b", zip_deflate, noise(5000)),
                                        packed_entry("c", zip_deflate, large),
                                        {.name = "d", .data = "last"}}}
                            .bytes();
    for (const size_t at : {bytes.find("stored"), size_t{2500}, size_t{1 << 20}}) bytes[at] ^= 1;
    file("a.zip", bytes);
    Reader reader(directory / "a.zip");
    ASSERT_TRUE(reader.next()) << reader.message();
    reader.data();
    EXPECT_EQ(reader.code, SHF_E_INTEGRITY);
    EXPECT_NE(reader.message().find("member \"a\""), std::string::npos) << reader.message();
    EXPECT_NE(reader.message().find("help: "), std::string::npos);
    EXPECT_EQ(reader.error.offset, 0);
    reader.piece();
    EXPECT_EQ(reader.code, SHF_E_INTEGRITY);
    for (const char* name : {"b", "c"}) {
        ASSERT_TRUE(reader.next()) << reader.message();
        reader.data();
        EXPECT_LT(reader.code, SHF_OK) << name;
        EXPECT_NE(reader.message().find("member \"" + std::string(name)), std::string::npos);
    }
    ASSERT_TRUE(reader.next()) << reader.message();
    EXPECT_EQ(reader.data(), "last");
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.code, SHF_END);
}

TEST_F(MembersTest, a_cut_tar_ends_where_a_stream_says_so) {
    const std::string whole =
        member("a.txt", "whole") + member("b.txt", noise(100000)) + end_marker();
    for (const size_t size : {size_t{0}, size_t{700}, size_t{1024}, size_t{1300}, size_t{2000},
                              size_t{60000}, whole.size() - 1024, whole.size() - 512}) {
        for (const bool compressed : {false, true}) {
            const std::string cut = whole.substr(0, size);
            file("a.tar", compressed ? gzip(cut) : cut);
            Reader reader(directory / "a.tar");
            reader.rest();
            Client stream(directory / "a.tar", {});
            while (stream.next()) {
            }
            EXPECT_EQ(reader.code, SHF_E_TRUNCATED) << size;
            EXPECT_EQ(reader.code, stream.code) << size << stream.error.message;
            EXPECT_EQ(reader.error.offset, stream.error.offset) << size;
            // It also says how a stream goes on.
            std::string said = stream.error.message;
            if (const size_t skips = said.find(", or use on_error="); skips != said.npos)
                said.resize(skips);
            EXPECT_EQ(reader.message(), said) << size;
            EXPECT_FALSE(reader.next());  // it repeats
            EXPECT_EQ(reader.code, stream.code);
            EXPECT_EQ(reader.piece(), "");
            EXPECT_EQ(reader.code, stream.code);
        }
    }
}

TEST_F(MembersTest, damage_is_that_of_a_stream) {
    std::string bad_sum = member("a.txt", "whole") + member("b.txt", "second") + end_marker();
    bad_sum[1024] ^= 1;
    const std::string good = member("a.txt", "whole") + end_marker();
    std::string bad_crc = gzip(good);
    bad_crc[bad_crc.size() - 6] ^= 1;
    for (const std::string& bytes : {bad_sum, good + "junk", std::string(2000, 'x'), bad_crc,
                                     gzip(good).substr(0, 40), std::string("{\"no\": \"tar\"}")}) {
        file("a.tar", bytes);
        Reader reader(directory / "a.tar");
        reader.rest();
        Client stream(directory / "a.tar", {});
        while (stream.next()) {
        }
        EXPECT_LT(reader.code, SHF_OK);
        EXPECT_EQ(reader.code, stream.code) << stream.error.message;
        EXPECT_EQ(reader.error.offset, stream.error.offset);
    }
}

TEST_F(MembersTest, options_accept_other_ends) {
    file("none.tar", member("a", "a"));
    Reader refused(directory / "none.tar");
    refused.rest();
    EXPECT_EQ(refused.code, SHF_E_TRUNCATED);
    Reader accepted(directory / "none.tar", {{"end_marker", "optional"}});
    EXPECT_EQ(accepted.rest().size(), 1);
    EXPECT_EQ(accepted.code, SHF_END) << accepted.message();
    file("two.tar", pax({{"uid", "7"}}, 'g') + member("a", "a") + end_marker() + member("b", "b") +
                        end_marker());
    Reader two(directory / "two.tar", {{"concat", "true"}});
    ASSERT_TRUE(two.next()) << two.message();
    EXPECT_EQ(two.info(SHF_MEMBER_UID), 7);
    ASSERT_TRUE(two.next()) << two.message();
    EXPECT_EQ(two.info(SHF_MEMBER_UID), 1000);  // a global header holds for its own archive
    EXPECT_FALSE(two.next());
    EXPECT_EQ(two.code, SHF_END) << two.message();
}

TEST_F(MembersTest, kinds_without_data_are_shown_and_refused_when_read) {
    file("a.tar", sparse_old_gnu("s", 2) + member("after", "here") + end_marker());
    Reader reader(directory / "a.tar");
    ASSERT_TRUE(reader.next()) << reader.message();
    EXPECT_EQ(reader.info(SHF_MEMBER_KIND), SHF_KIND_SPARSE);
    reader.piece();
    EXPECT_EQ(reader.code, SHF_E_UNSUPPORTED);
    EXPECT_NE(reader.message().find("a sparse member"), std::string::npos);
    ASSERT_TRUE(reader.next()) << reader.message();
    EXPECT_EQ(reader.data(), "here");
}

// Gives `bytes` in steps with pauses between them.
std::string slow_pipe(const TempDirectory& directory, std::string_view bytes, size_t steps) {
    directory.write("slow", bytes);
    std::string command = "pipe:";
    const size_t step = (bytes.size() + steps - 1) / steps;
    for (size_t i = 0; i < steps; ++i)
        command += "tail -c +" + std::to_string(i * step + 1) + " " + (directory / "slow") +
                   " | head -c " + std::to_string(step) + "; sleep 0.01; ";
    return command + "true";
}

TEST_F(MembersTest, a_timeout_loses_nothing) {
    const std::string zip =
        Zip{.entries = {{.name = "a", .data = "stored"}, {.name = "b", .data = "more"}}}.bytes();
    const std::string tar = sparse_old_gnu("s", 2) + pax({{"path", long_name}, {"mtime", "5"}}) +
                            member("x", "first") + gnu_name(long_name) +
                            member("y", std::string(3000, 'y')) + member("z", "z") + end_marker() +
                            zeros(4096);
    for (const std::string& bytes : {tar, gzip(tar), zip}) {
        Reader patient(slow_pipe(directory, bytes, 30));
        const auto expected = patient.rest();
        ASSERT_EQ(patient.code, SHF_END) << patient.message();
        Reader reader(slow_pipe(directory, bytes, 30), {{"timeout", "2ms"}});
        std::vector<Seen> seen;
        int timeouts = 0;
        while (reader.code != SHF_END) {
            ASSERT_TRUE(reader.code == SHF_OK || reader.code == SHF_E_TIMEOUT) << reader.message();
            if (!reader.next()) {
                timeouts += reader.code == SHF_E_TIMEOUT;
                continue;
            }
            seen.push_back({reader.name, {}, reader.info(SHF_MEMBER_KIND)});
            while (seen.back().kind != SHF_KIND_SPARSE) {
                const std::string more = reader.piece();
                seen.back().data += more;
                timeouts += reader.code == SHF_E_TIMEOUT;
                if (more.empty() && reader.code != SHF_E_TIMEOUT) break;
            }
        }
        EXPECT_EQ(seen, expected);
        EXPECT_GT(timeouts, 0);
    }
}

// Gives up to `most` bytes, and a TIMEOUT before each of them.
class Stuttering final : public Sequential {
  public:
    Stuttering(std::string_view bytes, size_t most) : bytes_(bytes), most_(most) {}

    size_t read(std::span<uint8_t> out) override {
        if (!std::exchange(ready_, true)) throw Error(SHF_E_TIMEOUT, "wait");
        ready_ = false;
        const size_t count = std::min({out.size(), most_, bytes_.size()});
        std::copy_n(bytes_.begin(), count, out.begin());
        bytes_.remove_prefix(count);
        return count;
    }

  private:
    std::string_view bytes_;
    const size_t most_;
    bool ready_ = false;
};

TEST(TarWalkTest, every_read_may_end_a_call) {
    const std::string tar = mixed_tar().substr(0, mixed_tar().size() - 1024) +
                            pax({{"path", long_name}, {"mtime", "5"}}) + sparse_old_gnu("s", 3) +
                            end_marker() + zeros(1536) + member("second archive", "b") +
                            end_marker() + "junk" + zeros(2000);
    Options options;
    options.trailing = Trailing::ignore;
    options.concat = true;
    const Cancel cancel;
    const auto all = [&](std::unique_ptr<Sequential> input) {
        const auto walk = tar_walk(std::move(input), nullptr, options, cancel);
        const auto again = [](auto call) {
            for (;;) try {
                    return call();
                } catch (const Error& error) {
                    if (error.code() != SHF_E_TIMEOUT) throw;
                }
        };
        std::string seen;
        std::array<uint8_t, 300> piece;
        while (again([&] { return walk->next(); })) {
            seen += std::string(walk->member().name) + std::to_string(walk->member().data_offset);
            seen += std::to_string(walk->number(SHF_MEMBER_MTIME).value_or(0));
            while (const size_t size = again([&] { return walk->read(piece); }))
                seen.append(reinterpret_cast<const char*>(piece.data()), size);
        }
        return seen;
    };
    const auto plain = memory_source({bytes_of(tar), tar.size()});
    const std::string expected = all(plain->open_sequential(0));
    EXPECT_NE(expected.find("second archive"), std::string::npos);
    std::vector<std::string> inputs = {tar};
    for (const char* codec : codecs) inputs.push_back(compress(codec, tar));
    for (const std::string& input : inputs)
        for (const size_t most : {1U, 5U, 513U, 100000U})
            EXPECT_EQ(all(std::make_unique<Stuttering>(input, most)), expected) << most;
}

TEST_F(MembersTest, a_cancel_ends_a_wait_for_good) {
    Reader reader("pipe:sleep 30");
    const auto start = std::chrono::steady_clock::now();
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        shf_members_cancel(reader.members);
    });
    EXPECT_FALSE(reader.next());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    other.join();
    EXPECT_EQ(reader.code, SHF_E_CANCELLED);
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.code, SHF_E_CANCELLED);
}

// Also those that would not wait.
TEST_F(MembersTest, all_calls_after_a_cancel_say_so) {
    const std::string tar = file("a.tar", member("a", noise(5000)) + end_marker());
    Reader middle(tar), end(tar);
    ASSERT_TRUE(middle.next());
    middle.piece(10);
    shf_members_cancel(middle.members);
    middle.piece(10);
    EXPECT_EQ(middle.code, SHF_E_CANCELLED);
    while (end.next()) {
    }
    EXPECT_EQ(end.code, SHF_END);
    shf_members_cancel(end.members);
    EXPECT_FALSE(end.next());
    EXPECT_EQ(end.code, SHF_E_CANCELLED);
}

TEST_F(MembersTest, an_interrupt_ends_one_call) {
    int32_t answer = 1;
    const auto set = [&](shf_options* options) {
        shf_options_set_interrupt(
            options, [](void* ctx) { return *static_cast<int32_t*>(ctx); }, &answer);
    };
    file("a.tar", member("a", "a") + end_marker());
    Reader reader("pipe:sleep 0.2; cat " + (directory / "a.tar"), {}, set);
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.code, SHF_E_CANCELLED);
    answer = 0;
    EXPECT_TRUE(reader.next()) << reader.message();
    EXPECT_EQ(reader.data(), "a");
}

// The time of silence is not that of one call.
TEST_F(MembersTest, a_silent_command_fails_though_calls_are_shorter) {
    file("a.tar", member("a", "a") + end_marker());
    for (const std::string& command :
         {std::string("sleep 20"), "cat " + (directory / "a.tar") + "; exec >&-; sleep 20"}) {
        Reader reader("pipe:" + command, {{"timeout", "100ms"}, {"pipe_timeout", "300ms"}});
        const auto start = std::chrono::steady_clock::now();
        do {
            reader.next();
        } while ((reader.code == SHF_OK || reader.code == SHF_E_TIMEOUT) &&
                 std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
        EXPECT_EQ(reader.code, SHF_E_CHILD) << command;
    }
}

TEST_F(MembersTest, a_zip_in_a_pipe_is_bounded_by_memory) {
    file("a.zip", Zip{.entries = {{.name = "a", .data = noise(3 << 20)}}}.bytes());
    Reader reader("pipe:cat " + (directory / "a.zip"), {{"memory", "1MiB"}});
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.code, SHF_E_LIMIT);
    EXPECT_NE(reader.message().find("memory=1048576"), std::string::npos) << reader.message();
    Reader in_place(directory / "a.zip", {{"memory", "1MiB"}});
    EXPECT_TRUE(in_place.next());
    EXPECT_TRUE(in_place.data() == noise(3 << 20));
}

// No more is read than shows that it is too much.
TEST_F(MembersTest, a_zip_in_a_pipe_is_read_up_to_memory) {
    // With memory that doubles it would be 16 MiB. The command fills the pipe meanwhile.
    constexpr uint64_t memory = 12 << 20, pipes = 3 << 20;
    Reader reader(
        "pipe:(printf 'PK\\003\\004'; head -c 40000000 /dev/zero) | tee " + (directory / "read"),
        {{"memory", std::to_string(memory)}});
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.code, SHF_E_LIMIT) << reader.message();
    EXPECT_LT(std::filesystem::file_size(directory / "read"), memory + pipes);
}

TEST_F(MembersTest, wrong_use_is_said) {
    shf_error error;
    shf_members* members = reinterpret_cast<shf_members*>(this);
    EXPECT_EQ(shf_members_open(&members, nullptr, nullptr, &error), SHF_E_USAGE);
    EXPECT_EQ(members, nullptr);
    EXPECT_EQ(shf_members_open(&members, (directory / "none").c_str(), nullptr, &error), SHF_E_IO);
    EXPECT_EQ(shf_members_next(nullptr, nullptr, &error), SHF_E_USAGE);
    EXPECT_EQ(shf_members_info(nullptr, SHF_MEMBER_SIZE), UINT64_MAX);
    shf_members_close(nullptr);
    shf_members_cancel(nullptr);
    Reader reader(file("a.tar", member("a", "a") + end_marker()));
    reader.piece();
    EXPECT_EQ(reader.code, SHF_E_USAGE);
    ASSERT_TRUE(reader.next());
    size_t size = 1;
    char buffer[8];
    EXPECT_EQ(shf_members_read(reader.members, buffer, 0, &size, &error), SHF_E_USAGE);
    EXPECT_EQ(size, 0);
    EXPECT_EQ(reader.data(), "a");
    shf_bytes text;
    EXPECT_EQ(shf_members_text(reader.members, SHF_MEMBER_LINK, &text), SHF_E_NOT_FOUND);
    EXPECT_EQ(reader.info(99), UINT64_MAX);
}

TEST_F(MembersTest, three_gigabytes_pass_in_little_memory) {
    constexpr uint64_t size = uint64_t{3} << 30;
    file("head", header({.name = "large", .size = size}));
    file("tail", member("after", "end") + end_marker());
    Reader reader("pipe:cat " + (directory / "head") + "; head -c " + std::to_string(size) +
                  " /dev/zero; cat " + (directory / "tail"));
    rusage before = {}, after = {};
    getrusage(RUSAGE_SELF, &before);
    ASSERT_TRUE(reader.next()) << reader.message();
    EXPECT_EQ(reader.info(SHF_MEMBER_SIZE), size);
    std::vector<uint8_t> buffer(1 << 20);
    uint64_t total = 0;
    for (size_t got = 1; got > 0; total += got)
        ASSERT_EQ(
            shf_members_read(reader.members, buffer.data(), buffer.size(), &got, &reader.error),
            SHF_OK)
            << reader.message();
    EXPECT_EQ(total, size);
    ASSERT_TRUE(reader.next()) << reader.message();
    EXPECT_EQ(reader.data(), "end");
    getrusage(RUSAGE_SELF, &after);
    if (SANITIZED == 0) {
        EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 16 * 1024);  // KiB
    }
}

}  // namespace
}  // namespace shf::test
