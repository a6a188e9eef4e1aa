// What URLs expand to, and which of them are refused.
#include "io/urls.h"
#include "core/error.h"
#include "core/options.h"
#include "url/braces.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using shf::BracePattern;
using shf::Error;
using shf::Options;
using shf::ShardList;

struct Vector {
    const char* pattern;
    std::vector<std::string> expansions;  // empty: unbalanced
};

// Made by Python's braceexpand 0.1.7.
// clang-format off
const Vector vectors[] = {
    {"", {""}},
    {"plain.tar", {"plain.tar"}},
    {"{a}", {"{a}"}},
    {"x{a}{1..3}", {"x{a}1", "x{a}2", "x{a}3"}},
    {"{0009..11}", {"0009", "0010", "0011"}},
    {"item{1..3}", {"item1", "item2", "item3"}},
    {"{a..c}", {"a", "b", "c"}},
    {"index.html{,.backup}", {"index.html", "index.html.backup"}},
    {"python{2.{5..7},3.{2,3}}", {"python2.5", "python2.6", "python2.7", "python3.2", "python3.3"}},
    {"{07..10}", {"07", "08", "09", "10"}},
    {"{a..g..2}", {"a", "c", "e", "g"}},
    {"{4..1}", {"4", "3", "2", "1"}},
    {"{2..-1}", {"2", "1", "0", "-1"}},
    {"{1{2,3}", {}},
    {"{1\\{2,3}", {"1{2", "3"}},
    {"{", {}},
    {"}", {}},
    {"a}b", {}},
    {"}{", {"}{"}},
    {"}a{", {"}a{"}},
    {"}{{a,b}", {"}{a", "}{b"}},
    {"{{a,b}", {}},
    {"{a,b}}", {}},
    {"{a}}{", {"{a}}{"}},
    {"{}", {"{}"}},
    {"{,}", {"", ""}},
    {"{,,}", {"", "", ""}},
    {"a{,}{,}b", {"ab", "ab", "ab", "ab"}},
    {"{1..1}", {"1"}},
    {"{0..-0}", {"0"}},
    {"{-0..2}", {"0", "1", "2"}},
    {"{-01..1}", {"-01", "000", "001"}},
    {"{01..-1}", {"01", "00", "-1"}},
    {"{00..2}", {"00", "01", "02"}},
    {"{0..2..0}", {"0", "1", "2"}},
    {"{0..10..-3}", {"0", "3", "6", "9"}},
    {"{10..0..3}", {"10", "7", "4", "1"}},
    {"{9..11..100000000000000000000000}", {"9"}},
    {"{-5..-3}", {"-5", "-4", "-3"}},
    {"{-5..05}", {"-5", "-4", "-3", "-2", "-1", "00", "01", "02", "03", "04", "05"}},
    {"{1..3..}", {"{1..3..}"}},
    {"{1..}", {"{1..}"}},
    {"{..3}", {"{..3}"}},
    {"{1...3}", {"{1...3}"}},
    {"{a..e..2}", {"a", "c", "e"}},
    {"{e..a}", {"e", "d", "c", "b", "a"}},
    {"{e..A..20}", {"e", "K"}},
    {"{X..c}", {"X", "Y", "Z", "a", "b", "c"}},
    {"{c..X}", {"c", "b", "a", "Z", "Y", "X"}},
    {"{Z..a}", {"Z", "a"}},
    {"{a..Z}", {"a", "Z"}},
    {"{a..1}", {"{a..1}"}},
    {"{aa..b}", {"{aa..b}"}},
    {"{a..b..-1}", {"a", "b"}},
    {"{a..c..0}", {"a", "b", "c"}},
    {"{{1..2}..3}", {"{1..3}", "{2..3}"}},
    {"{{1..3}}", {"{1}", "{2}", "{3}"}},
    {"{{a,b}}", {"{a}", "{b}"}},
    {"{{{a,b}}}", {"{{a}}", "{{b}}"}},
    {"{x{1..2}y}", {"{x1y}", "{x2y}"}},
    {"{a{b,c}d,e{1..2}}", {"abd", "acd", "e1", "e2"}},
    {"{a,{b,{c,{d,e}}}}", {"a", "b", "c", "d", "e"}},
    {"\\{a,b\\}", {"{a,b}"}},
    {"{a\\,b,c}", {"a,b", "c"}},
    {"{a\\,b}", {"{a,b}"}},
    {"\\\\{a,b}", {"\\a", "\\b"}},
    {"{\\\\,x}y", {"y", "xy"}},
    {"{\\\\\\\\,x}y", {"\\y", "xy"}},
    {"a\\b", {"ab"}},
    {"a\\\\b", {"a\\b"}},
    {"a\\", {"a\\"}},
    {"{a,b}\\", {"a\\", "b\\"}},
    {"\\\012{a,b}", {"\\\012a", "\\\012b"}},
    {"{a\\},b}", {"a}", "b"}},
    {"s-{0..1}-{a,b}-{8..9}.tar", {"s-0-a-8.tar", "s-0-a-9.tar", "s-0-b-8.tar", "s-0-b-9.tar", "s-1-a-8.tar", "s-1-a-9.tar", "s-1-b-8.tar", "s-1-b-9.tar"}},
    {"{train,val}-{000..002}.tar", {"train-000.tar", "train-001.tar", "train-002.tar", "val-000.tar", "val-001.tar", "val-002.tar"}},
    {"pipe:awk \"{print $1}\" x-{1..2}", {"pipe:awk \"{print $1}\" x-1", "pipe:awk \"{print $1}\" x-2"}},
    {"${X:-{1,2}}", {"${X:-1}", "${X:-2}"}},
    {"http://h/{a..b}?x={1,2}", {"http://h/a?x=1", "http://h/a?x=2", "http://h/b?x=1", "http://h/b?x=2"}},
    {"{1..2}{3..4}{5..6}", {"135", "136", "145", "146", "235", "236", "245", "246"}},
    {"{\303\244,\303\266}x", {"\303\244x", "\303\266x"}},
    {"{1 ..2}", {"{1 ..2}"}},
    {"{+1..3}", {"{+1..3}"}},
    {"{1,2", {}},
    {"1,2}", {}},
    {"{a,b}{", {}},
    {"{a..b,c..d}", {"a..b", "c..d"}},
    {"{1..2,3}", {"1..2", "3"}},
};
// clang-format on

std::vector<std::string> all(const ShardList& list) {
    std::vector<std::string> urls;
    for (uint64_t i = 0; i < list.size(); ++i) urls.push_back(list.at(i));
    return urls;
}

std::vector<std::string> expand(std::vector<const char*> urls, const Options& options = {}) {
    return all(ShardList(urls, options));
}

// The error of an expansion; code 0 when there is none.
shf::Fault failure(std::vector<const char*> urls, const Options& options = {}) {
    try {
        ShardList list(urls, options);
    } catch (const Error& error) {
        return error.fault();
    }
    shf::Fault none;
    none.code = SHF_OK;
    return none;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

using Strings = std::vector<std::string>;

class Lists : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/shardfeed-urls-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        directory = name;
    }
    void TearDown() override { (void)!std::system(("rm -r " + directory).c_str()); }

    // "@PATH" of a new list file with these bytes.
    std::string list(const std::string& text, const std::string& name = "list") {
        std::ofstream(directory + "/" + name, std::ios::binary) << text;
        return "@" + directory + "/" + name;
    }

    std::string directory;
};

TEST(Braces, are_those_of_braceexpand) {
    for (const Vector& vector : vectors) {
        SCOPED_TRACE(vector.pattern);
        if (vector.expansions.empty()) {
            EXPECT_THROW(BracePattern{vector.pattern}, Error);
            continue;
        }
        const BracePattern pattern(vector.pattern);
        Strings got;
        for (uint64_t i = 0; i < pattern.count(); ++i) got.push_back(pattern.at(i));
        EXPECT_EQ(got, vector.expansions);
    }
}

TEST(Braces, unbalanced_ones_have_a_position) {
    const auto position = [](const char* url) { return failure({url}).cause; };
    EXPECT_TRUE(contains(position("ab{c,d"), "unbalanced '{' at position 2"));
    EXPECT_TRUE(contains(position("{a,b}{"), "unbalanced '{' at position 5"));
    EXPECT_TRUE(contains(position("ab}"), "unbalanced '}' at position 2"));
    EXPECT_TRUE(contains(position("{a,b}}"), "unbalanced '}' at position 5"));
    EXPECT_EQ(failure({"ab{c,d"}).code, SHF_E_USAGE);
    EXPECT_FALSE(failure({"ab{c,d"}).help.empty());
}

TEST(Braces, are_bounded) {
    EXPECT_EQ(failure({(std::string(5000, '{') + std::string(5000, '}')).c_str()}).code,
              SHF_E_USAGE);
    EXPECT_EQ(failure({"{1..99999999999999999999}"}).code, SHF_E_USAGE);
    EXPECT_EQ(failure({"{1..99999999999999}{1..99999999999999}{1..9}"}).code, SHF_E_LIMIT);
    EXPECT_EQ(BracePattern("{1..1000000000000000000}{0..99}").count(), UINT64_MAX);
}

TEST(Urls, ten_million_shards_cost_a_pattern) {
    const size_t before = mallinfo2().uordblks;
    const char* urls[] = {"s3://bucket/train-{0000000..9999999}.tar"};
    const ShardList list(urls, Options());
    EXPECT_LT(mallinfo2().uordblks - before, 4096U);
    ASSERT_EQ(list.size(), 10000000U);
    EXPECT_EQ(list.at(0), "s3://bucket/train-0000000.tar");
    EXPECT_EQ(list.at(9999999), "s3://bucket/train-9999999.tar");
    EXPECT_THROW((void)list.at(10000000), Error);
}

TEST(Urls, rightmost_group_varies_fastest) {
    const ShardList list(std::vector<const char*>{"{a,b}/{x,y,z}-{00..99}"}, Options());
    ASSERT_EQ(list.size(), 600U);
    EXPECT_EQ(list.at(101), "a/y-01");
    EXPECT_EQ(list.at(599), "b/z-99");
}

TEST(Urls, are_split_and_joined_in_order) {
    EXPECT_EQ(expand({"a{1..2}::b", "c", "d::{x,y}"}),
              (Strings{"a1", "a2", "b", "c", "d", "x", "y"}));
    EXPECT_EQ(failure({"a::"}).code, SHF_E_USAGE);
    EXPECT_EQ(failure({""}).code, SHF_E_USAGE);
    EXPECT_EQ(failure({"{,a}"}).code, SHF_E_USAGE);
    EXPECT_EQ(failure({nullptr}).code, SHF_E_USAGE);
    EXPECT_TRUE(expand({}).empty());
}

TEST(Urls, many_plain_ones_share_a_buffer) {
    std::vector<std::string> names;
    for (int i = 0; i < 100000; ++i) names.push_back("shard-" + std::to_string(i) + ".tar");
    std::vector<const char*> urls;
    for (const std::string& name : names) urls.push_back(name.c_str());
    const size_t before = mallinfo2().uordblks;
    const ShardList list(urls, Options());
    EXPECT_LT(mallinfo2().uordblks - before + mallinfo2().hblkhd, 64U << 20);
    EXPECT_EQ(all(list), names);
}

TEST(Urls, names_come_from_the_environment) {
    ::setenv("WDS_SHF_ROOT", "/data/${SHF_SUB}", 1);
    ::setenv("WDS_SHF_SUB", "{a,b}", 1);
    ::setenv("WDS_SHF_LOOP", "${SHF_LOOP}x", 1);
    ::setenv("WDS_SHF_SELF", "${SHF_SELF}", 1);
    ::unsetenv("WDS_SHF_NONE");
    EXPECT_EQ(expand({"${SHF_ROOT}/x.tar"}), (Strings{"/data/a/x.tar", "/data/b/x.tar"}));
    EXPECT_EQ(expand({"$SHF_ROOT ${A:-1} ${}"}), (Strings{"$SHF_ROOT ${A:-1} ${}"}));
    EXPECT_EQ(expand({"${SHF_SELF}"}), (Strings{"${SHF_SELF}"}));
    EXPECT_EQ(failure({"${SHF_LOOP}"}).code, SHF_E_USAGE);
    const shf::Fault missing = failure({"${SHF_NONE}/x.tar"});
    EXPECT_EQ(missing.code, SHF_E_USAGE);
    EXPECT_TRUE(contains(missing.cause, "WDS_SHF_NONE"));
    EXPECT_FALSE(missing.help.empty());
}

TEST(Urls, are_taken_literally_without_expand) {
    Options options;
    options.set("expand", "false");
    const Strings urls = {"a{1..2}::b", "@x", "${NONE}", "}", "pipe:cat x"};
    EXPECT_EQ(expand({urls[0].c_str(), urls[1].c_str(), urls[2].c_str(), urls[3].c_str(),
                      urls[4].c_str()},
                     options),
              urls);
}

TEST(Urls, too_many_are_a_limit) {
    Options options;
    options.set("max_shards", "10");
    EXPECT_EQ(expand({"{1..10}"}, options).size(), 10U);
    for (const char* url : {"{1..11}", "{1..5}::{1..6}", "a::b::c::d::e::f::g::h::i::j::k"}) {
        const shf::Fault fault = failure({url}, options);
        EXPECT_EQ(fault.code, SHF_E_LIMIT);
        EXPECT_TRUE(contains(fault.help, "max_shards"));
    }
}

TEST(Urls, messages_have_no_secrets) {
    const std::string text = failure({"https://user:hunter2@host/a?sig=hunter2&x={"}).text();
    EXPECT_FALSE(contains(text, "hunter2")) << text;
}

TEST(Urls, may_be_asked_for_by_any_thread) {
    const ShardList list(std::vector<const char*>{"{0..999}{a..z}"}, Options());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (uint64_t i = 0; i < list.size(); ++i)
                EXPECT_EQ(list.at(i), std::to_string(i / 26) + static_cast<char>('a' + i % 26));
        });
    for (std::thread& thread : threads) thread.join();
}

TEST_F(Lists, have_one_url_a_line) {
    const std::string url = list(
        "\xef\xbb\xbf# shards\r\n\r\na.tar\r\n  b.tar \n\n   \n # more\nc{1..2}.tar\nd.tar::e.tar\n"
        "f.tar");
    EXPECT_EQ(expand({"x", url.c_str(), "y"}),
              (Strings{"x", "a.tar", "b.tar", "c1.tar", "c2.tar", "d.tar", "e.tar", "f.tar", "y"}));
    EXPECT_TRUE(expand({list("\n#\n", "empty").c_str()}).empty());
    EXPECT_TRUE(expand({list("", "nothing").c_str()}).empty());
}

TEST_F(Lists, are_named_by_patterns_and_file_urls) {
    const std::string a = list("1\n", "a"), b = list("2\n", "b");
    EXPECT_EQ(expand({("@" + directory + "/{a,b}").c_str()}), (Strings{"1", "2"}));
    EXPECT_EQ(expand({("@file://" + directory + "/%61").c_str()}), (Strings{"1"}));
    EXPECT_EQ(failure({("{" + a + "," + b + "}").c_str()}).code, SHF_E_USAGE);
}

TEST_F(Lists, of_a_million_lines_are_one_buffer) {
    std::string text;
    for (int i = 0; i < 1000000; ++i) text += "/data/train/shard-" + std::to_string(i) + ".tar\n";
    const std::string url = list(text);
    const struct mallinfo2 before = mallinfo2();
    const ShardList lines(std::vector<const char*>{url.c_str()}, Options());
    const struct mallinfo2 after = mallinfo2();
    EXPECT_LT(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd,
              text.size() + (5U << 20));
    ASSERT_EQ(lines.size(), 1000000U);
    EXPECT_EQ(lines.at(777777), "/data/train/shard-777777.tar");
}

TEST_F(Lists, start_no_program_and_read_no_standard_input) {
    ::setenv("WDS_SHF_PIPE", "pipe:touch", 1);
    ::setenv("WDS_SHF_DASH", "-", 1);
    const std::string touched = directory + "/touched";
    for (const char* line :
         {"pipe:touch %", "{pipe:touch %,b}", "{p,q}ipe:touch %", "pip{e,f}:touch %",
          "{o..q}ipe:touch %", "{x,{y,pi}}pe:touch %", "a::pipe:touch %", "\\pipe:touch %",
          "{\\pipe,x}:touch %", "${SHF_PIPE} %", "-", "{-,a}", "a::-", "\\-", "${SHF_DASH}",
          "{,-}{,a}"}) {
        std::string text = line;
        if (const size_t at = text.find('%'); at != text.npos) text.replace(at, 1, touched);
        const shf::Fault fault = failure({list("a.tar\n\n" + text + "\n").c_str()});
        EXPECT_EQ(fault.code, SHF_E_USAGE) << line;
        EXPECT_TRUE(contains(fault.cause, directory + "/list\" line 3")) << fault.text();
    }
    struct stat state = {};
    EXPECT_NE(::stat(touched.c_str(), &state), 0);
    EXPECT_EQ(expand({list("pipes/a\n./-\n-a\n--\n{pipe,-x}\n{p,q}ipes:\n").c_str()}),
              (Strings{"pipes/a", "./-", "-a", "--", "pipe", "-x", "pipes:", "qipes:"}));
    EXPECT_EQ(expand({"pipe:cat {a,b}", "-"}), (Strings{"pipe:cat a", "pipe:cat b", "-"}));
}

TEST_F(Lists, name_no_other_lists) {
    list("a.tar\n", "inner");
    for (const std::string& line : {"@" + directory + "/inner", "a::@" + directory + "/inner",
                                    "{@a,@b}" + directory, std::string("@{a,b}")})
        EXPECT_EQ(failure({list("x\n" + line + "\n").c_str()}).code, SHF_E_USAGE) << line;
}

TEST_F(Lists, report_their_faults) {
    shf::Fault fault = failure({("@" + directory + "/absent").c_str()});
    EXPECT_EQ(fault.code, SHF_E_IO);
    EXPECT_EQ(fault.os_error, ENOENT);
    EXPECT_TRUE(contains(fault.cause, "absent"));
    fault = failure({("@" + directory).c_str()});
    EXPECT_EQ(fault.code, SHF_E_IO);
    EXPECT_EQ(fault.os_error, EISDIR);
    fault = failure({list(std::string("a\nb\0c\n", 6)).c_str()});
    EXPECT_EQ(fault.code, SHF_E_USAGE);
    EXPECT_TRUE(contains(fault.cause, "line 2"));
    fault = failure({list("a\n{b\n").c_str()});
    EXPECT_TRUE(contains(fault.cause, "line 2"));
    for (const char* url : {"@", "@-", "@pipe:cat x"}) EXPECT_EQ(failure({url}).code, SHF_E_USAGE);
    Options options;
    options.set("max_shards", "2");
    EXPECT_EQ(failure({list("a\nb\nc\n").c_str()}, options).code, SHF_E_LIMIT);
}

TEST(Secure, refuses_pipes_when_the_list_is_made) {
    Options options;
    options.set("secure", "true");
    for (const char* url : {"pipe:cat x", "{p,q}ipe:cat x", "a::pipe:cat x", "\\pipe:x"})
        EXPECT_EQ(failure({url}, options).code, SHF_E_USAGE) << url;
    EXPECT_EQ(expand({"a", "-"}, options).size(), 2U);
    Options literal = options;
    literal.set("expand", "false");
    EXPECT_EQ(failure({"pipe:cat x"}, literal).code, SHF_E_USAGE);
    ::setenv("SHARDFEED_SECURE", "1", 1);
    EXPECT_EQ(failure({"pipe:cat x"}).code, SHF_E_USAGE);
    ::setenv("SHARDFEED_SECURE", "0", 1);
    EXPECT_EQ(failure({"pipe:cat x"}).code, SHF_OK);
    ::unsetenv("SHARDFEED_SECURE");
}

}  // namespace
