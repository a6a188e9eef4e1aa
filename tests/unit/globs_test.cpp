// Shell patterns and ~ in URLs, and ranges in braces that are none.
#include "core/error.h"
#include "core/options.h"
#include "io/urls.h"
#include "temp_shards.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using shf::Error;
using shf::Options;
using shf::ShardList;
using Strings = std::vector<std::string>;

// A folder of files, which is the working directory and the folder of the user.
class Globs : public testing::Test {
  protected:
    void SetUp() override {
        before_ = std::filesystem::current_path();
        home_ = std::getenv("HOME") ? std::getenv("HOME") : "/";
        std::filesystem::current_path(root());
        ::setenv("HOME", root().c_str(), 1);
    }
    void TearDown() override {
        std::filesystem::current_path(before_);
        ::setenv("HOME", home_.c_str(), 1);
    }

    [[nodiscard]] std::string root() const { return (directory_ / "").substr(0, size_); }

    void files(const Strings& names) const {
        for (const std::string& name : names) {
            const std::filesystem::path path(directory_ / name);
            std::filesystem::create_directories(path.parent_path());
            std::ofstream(path).put('x');
        }
    }

    static Strings expand(const Strings& urls, const Options& options = {}) {
        std::vector<const char*> pointers;
        for (const std::string& url : urls) pointers.push_back(url.c_str());
        const ShardList list(pointers, options);
        Strings all;
        for (uint64_t i = 0; i < list.size(); ++i) all.push_back(list.at(i));
        return all;
    }

    static shf::Fault failure(const std::string& url) {
        try {
            const Strings urls = expand({url});
            ADD_FAILURE() << url << " gave " << urls.size();
        } catch (const Error& error) {
            return error.fault();
        }
        return {};
    }

  private:
    shf::test::TempDirectory directory_;
    size_t size_ = (directory_ / "").size() - 1;
    std::filesystem::path before_;
    std::string home_;
};

TEST_F(Globs, match_files_in_the_order_of_their_bytes) {
    files({"b.tar", "a10.tar", "a9.tar", "A.tar", "a.zip", ".hidden.tar", "\xc3\xa4.tar"});
    EXPECT_EQ(expand({"*.tar"}), (Strings{"A.tar", "a10.tar", "a9.tar", "b.tar", "\xc3\xa4.tar"}));
    EXPECT_EQ(expand({"a?.tar", "b.tar"}), (Strings{"a9.tar", "b.tar"}));
    EXPECT_EQ(expand({"[!Aa\xc3]*.tar"}), Strings{"b.tar"});
    EXPECT_EQ(expand({"a[0-9]*.tar::*.zip"}), (Strings{"a10.tar", "a9.tar", "a.zip"}));
    EXPECT_EQ(expand({root() + "/a.*"}), Strings{root() + "/a.zip"});
    EXPECT_EQ(expand({"./b*"}), Strings{"./b.tar"});
    EXPECT_EQ(expand({".*.tar"}), Strings{".hidden.tar"});
}

TEST_F(Globs, stand_in_folders_too) {
    files({"x/1/a.tar", "x/2/a.tar", "x/2/b.tar", "y/1/a.tar", "x/file"});
    EXPECT_EQ(expand({"x/*/a.tar"}), (Strings{"x/1/a.tar", "x/2/a.tar"}));
    EXPECT_EQ(expand({"?/*/?.tar"}), (Strings{"x/1/a.tar", "x/2/a.tar", "x/2/b.tar", "y/1/a.tar"}));
    EXPECT_EQ(expand({"x//2/*"}), (Strings{"x//2/a.tar", "x//2/b.tar"}));
    EXPECT_EQ(expand({"x/*"}), (Strings{"x/1", "x/2", "x/file"}));  // none is left out in silence
}

TEST_F(Globs, come_after_braces_and_names) {
    files({"t-0-a", "t-0-b", "t-1-a", "v-0-z", "{1}-q"});
    EXPECT_EQ(expand({"t-{0..1}-*"}), (Strings{"t-0-a", "t-0-b", "t-1-a"}));
    EXPECT_EQ(expand({"{v-0,t-1}-?"}), (Strings{"v-0-z", "t-1-a"}));
    EXPECT_EQ(expand({"{t-0-a,t-1-*}"}), (Strings{"t-0-a", "t-1-a"}));
    EXPECT_EQ(expand({"\\{1\\}-*"}), Strings{"{1}-q"});
    ::setenv("WDS_SHF_GLOB", "t-0-*", 1);
    EXPECT_EQ(expand({"${SHF_GLOB}"}), (Strings{"t-0-a", "t-0-b"}));
}

TEST_F(Globs, nothing_that_matches_is_an_error) {
    files({"a-0.tar", "sub/x"});
    for (const char* url : {"b*", "none/*.tar", "a-{0..1}*.tar", "a-0.tar/*", "sub/[y-z]"}) {
        const shf::Fault fault = failure(url);
        EXPECT_EQ(fault.code, SHF_E_IO) << url;
        EXPECT_EQ(fault.os_error, ENOENT) << url;
        EXPECT_NE(fault.cause.find("no file matches \""), std::string::npos) << fault.text();
    }
    EXPECT_NE(failure("a-{0..1}*.tar").cause.find("\"a-1*.tar\""), std::string::npos);
    EXPECT_NE(failure("b*").help.find("expand=false"), std::string::npos);
}

TEST_F(Globs, a_file_of_that_very_name_wins) {
    files({"x[1].tar", "x1.tar", "what?", "whats", "y[1]-0", "y[1]-1"});
    EXPECT_EQ(expand({"x[1].tar", "what?", "x[1]*"}), (Strings{"x[1].tar", "what?", "x1.tar"}));
    EXPECT_EQ(expand({"y[1]-{0..1}"}), (Strings{"y[1]-0", "y[1]-1"}));
}

TEST_F(Globs, a_backslash_makes_a_character_stand_for_itself) {
    files({"a*b", "axb", "a[x]b", "a\\xb", "~/f"});
    EXPECT_EQ(expand({"a\\*b"}), Strings{"a*b"});
    EXPECT_EQ(expand({"a\\[?]b"}), Strings{"a[x]b"});
    EXPECT_EQ(expand({"{a\\**,a\\[*}"}), (Strings{"a*b", "a[x]b"}));
    EXPECT_EQ(expand({"a\\\\x?"}), Strings{"a\\xb"});
    EXPECT_EQ(expand({"\\~/{f,*}"}), (Strings{"~/f", "~/f"}));
    // With nothing to look for the list stays a pattern, and knows nothing of files.
    EXPECT_EQ(expand({"none\\*{1..2}"}), (Strings{"none*1", "none*2"}));
}

TEST_F(Globs, only_paths_of_this_machine_have_them) {
    files({"http:/x"});
    for (const char* url :
         {"https://host/x?a=*", "pipe:cat *.tar", "s3://bucket/[a]", "-", "file:///data/*.tar"})
        EXPECT_EQ(expand({url}), Strings{url});
    EXPECT_EQ(
        expand({"https://host/{1..2}?a=b", "pipe:cat [a]{1..2}*"}),
        (Strings{"https://host/1?a=b", "https://host/2?a=b", "pipe:cat [a]1*", "pipe:cat [a]2*"}));
    Options literal;
    literal.set("expand", "false");
    EXPECT_EQ(expand({"*", "~/x", "{0-1}"}, literal), (Strings{"*", "~/x", "{0-1}"}));
}

// What matches is a file, whatever it is called: never a program.
TEST_F(Globs, names_of_files_are_no_urls) {
    files({"pipe:touch made", "-", "@list", "s3:/x"});
    EXPECT_EQ(expand({"*"}), (Strings{"./-", "./@list", "./pipe:touch made", "s3:"}));
    EXPECT_EQ(expand({"p?pe:*", "?"}), (Strings{"./pipe:touch made", "./-"}));
}

TEST_F(Globs, stand_in_list_files) {
    files({"a-0.tar", "a-1.tar", "sub/b.tar"});
    std::ofstream("list") << "# all\na-*.tar\nsub/{b,b}.*\n~/sub/b.tar\nhttps://host/x?y=1\n";
    const Strings expected = {
        "a-0.tar",           "a-1.tar", "sub/b.tar", "sub/b.tar", root() + "/sub/b.tar",
        "https://host/x?y=1"};
    EXPECT_EQ(expand({"@list"}), expected);
    EXPECT_EQ(expand({"@~/list"}), expected);
    std::ofstream("list") << "a-0.tar\nz*\n";
    EXPECT_NE(failure("@list").cause.find("line 2: no file matches"), std::string::npos);
}

TEST_F(Globs, home_is_the_folder_of_the_user) {
    files({"a.tar", "b.tar", "odd {1,2}*/c.tar"});
    EXPECT_EQ(expand({"~/a.tar"}), Strings{root() + "/a.tar"});
    EXPECT_EQ(expand({"~/{x,y}", "~/?.tar"}),
              (Strings{root() + "/x", root() + "/y", root() + "/a.tar", root() + "/b.tar"}));
    EXPECT_EQ(expand({"{~/a,b}"}), (Strings{root() + "/a", "b"}));
    EXPECT_EQ(expand({"~", "~user/x", "./~/x", "x~/y"}),
              (Strings{"~", "~user/x", "./~/x", "x~/y"}));
    const std::string odd = root() + "/odd {1,2}*";
    ::setenv("HOME", odd.c_str(), 1);
    EXPECT_EQ(expand({"~/c.tar", "~/?.tar", "~/{c,d}.tar", "~/{c.*,d}", "{~/?.tar,~/d}"}),
              (Strings{odd + "/c.tar", odd + "/c.tar", odd + "/c.tar", odd + "/d.tar",
                       odd + "/c.tar", odd + "/d", odd + "/c.tar", odd + "/d"}));
    ::unsetenv("HOME");
    EXPECT_EQ(failure("~/a.tar").code, SHF_E_USAGE);
    EXPECT_EQ(expand({"./~/x"}), Strings{"./~/x"});
}

TEST_F(Globs, a_dash_in_braces_is_no_range) {
    files({"f-{0-1}"});
    for (const char* url : {"x-{000000-000003}.tar", "{a,b}/{000000-000003}.tar"}) {
        const shf::Fault fault = failure(url);
        EXPECT_EQ(fault.code, SHF_E_USAGE);
        EXPECT_NE(fault.cause.find("{000000-000003} is no range"), std::string::npos);
        EXPECT_NE(fault.help.find("write {000000..000003}"), std::string::npos) << fault.help;
    }
    // A name that there is; braces that are escaped, or hold something else; a program's.
    for (const char* url : {"f-{0-1}", "x-{a-b}", "x-{0-b}", "x-{-1}", "pipe:sed {0-1}"})
        EXPECT_EQ(expand({url}), Strings{url});
    EXPECT_EQ(expand({"x-\\{0-1\\}", "{0-1,2}"}).size(), 3U);
}

TEST_F(Globs, a_folder_that_cannot_be_listed_is_an_error) {
    files({"closed/a.tar", "open/a.tar"});
    if (::geteuid() == 0) {  // whom nothing is closed to, but for a link that leads to itself
        std::filesystem::remove_all("closed");
        std::filesystem::create_symlink("closed", "closed");
        EXPECT_EQ(failure("closed/*.tar").code, SHF_E_IO);
        EXPECT_EQ(failure("closed/*.tar").os_error, ELOOP);
        EXPECT_EQ(failure("*/*.tar").os_error, ELOOP);
    } else {
        ::chmod("closed", 0);
        EXPECT_EQ(failure("closed/*.tar").os_error, EACCES);
        EXPECT_EQ(failure("*/*.tar").os_error, EACCES);
        ::chmod("closed", 0700);
    }
}

TEST_F(Globs, stay_within_max_shards) {
    files({"1", "2", "3"});
    Options options;
    options.set("max_shards", "2");
    try {
        (void)expand({"*"}, options);
        ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), SHF_E_LIMIT);
    }
    options.set("max_shards", "3");
    EXPECT_EQ(expand({"*"}, options).size(), 3U);
}

}  // namespace
