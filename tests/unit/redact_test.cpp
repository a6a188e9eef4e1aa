// What messages and samples show of a URL.
#include "url/redact.h"
#include "io/source.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using shf::redact;

struct Case {
    const char* url;
    const char* shown;
};

void check(const Case& c) {
    EXPECT_EQ(redact(c.url), c.shown);
}

TEST(Redact, urls_lose_userinfo_query_and_fragment) {
    for (const Case& c : {
             Case{"https://u:p@host/a.tar?sig=x&y#z", "https://host/a.tar"},
             Case{"https://u:p@ss@host:80/a@b.tar", "https://host:80/a@b.tar"},
             Case{"https://host?sig=x", "https://host"},
             Case{"https://u:p@host", "https://host"},
             Case{"https://host/a.tar#x", "https://host/a.tar"},
             Case{"s3://key:secret@bucket/a.tar", "s3://bucket/a.tar"},
             Case{"abfss://my-c@a.dfs.core.windows.net/a?b",
                  "abfss://my-c@a.dfs.core.windows.net/a"},
             Case{"abfs://u:p@a.dfs.core.windows.net/a", "abfs://a.dfs.core.windows.net/a"},
             Case{"abfs://U@c@a.dfs.core.windows.net/a", "abfs://a.dfs.core.windows.net/a"},
             Case{"https://c@host/a", "https://host/a"},
             Case{"file:///data/a.tar", "file:///data/a.tar"},
         })
        check(c);
}

TEST(Redact, paths_stay_as_they_are) {
    for (const char* path : {"/data/a@b.tar?x#y", "a.tar", "-", "", "/x/http://u@h", "@list",
                             "C:\\data\\a.tar", "train \"1\".tar", "/data/\xc3\xa4.tar"})
        check({path, path});
}

TEST(Redact, commands_lose_the_secrets_of_urls) {
    for (const Case& c : {
             Case{"pipe:curl -fsSL https://u:p@h/a?sig=1 | zstd -d",
                  "pipe:curl -fsSL https://h/a | zstd -d"},
             Case{"pipe:curl 'https://h/a?X-Amz-Signature=1&b=2' > /x",
                  "pipe:curl 'https://h/a' > /x"},
             Case{"pipe:curl \"https://h/a?b=1;c=2\"|cat", "pipe:curl \"https://h/a\"|cat"},
             Case{"pipe:a http://x:y@h/1 b http://x:y@h/2", "pipe:a http://h/1 b http://h/2"},
             Case{"pipe:curl --url=https://u:p@h/", "pipe:curl --url=https://h/"},
             Case{"pipe:cat a.tar", "pipe:cat a.tar"},
             Case{"pipe:awk '{print $1}' x  y", "pipe:awk '{print $1}' x  y"},
             Case{"pipe:grep \"can't\" x", "pipe:grep \"can't\" x"},
         })
        check(c);
}

TEST(Redact, commands_lose_the_secrets_of_options_and_variables) {
    const std::string secret = "hunter2";
    for (const char* command : {
             "curl -H 'Authorization: Bearer hunter2' h",
             "curl -H \"Authorization: Bearer hunter2\" h",
             "curl -fsSLH 'X: hunter2' h",
             "curl -H'X: hunter2' h",
             "curl -sHX:hunter2 h",
             "curl --header 'X: hunter2' h",
             "curl --header='X: hunter2' h",
             "curl -u me:hunter2 h",
             "curl -ume:hunter2 h",
             "curl -su me:hunter2 h",
             "curl --user me:hunter2 h",
             "curl --user=me:hunter2 h",
             "curl --proxy-user me:hunter2 h",
             "x --password hunter2",
             "x --password=hunter2",
             "x --token  hunter2",
             "x --access-token hunter2",
             "x --oauth2-bearer hunter2",
             "AWS_SECRET_ACCESS_KEY=hunter2 aws s3 cp s3://b/k -",
             "env AWS_SESSION_TOKEN='hun hunter2' aws",
             "x -c my_credential=hunter2",
             "x X-Amz-Signature=hunter2",
             "export TOKEN=hunter2;cat x",
             "sh -c \"curl -H 'X: hunter2' h\"",
             "sh -c 'curl -H \"X: a hunter2\" h'",
             "sh -c \"curl -H \\\"X: a hunter2\\\" h\"",
             "x=\"$(curl -H 'X: hunter2' h)\"; echo $x",
             "x $(curl -u a:hunter2 h)",
             "cat x|curl -u a:hunter2",
             "curl -H 'X: hunter2",
         }) {
        const std::string shown = redact(std::string("pipe:") + command);
        EXPECT_EQ(shown.find(secret), shown.npos) << shown;
        EXPECT_NE(shown.find("***"), shown.npos) << shown;
    }
    check({"pipe:curl -H 'A: b' -o x https://h/", "pipe:curl -H *** -o x https://h/"});
    check({"pipe:A_TOKEN=x cat y", "pipe:A_TOKEN=*** cat y"});
    check({"pipe:tar -cf - x", "pipe:tar -cf - x"});
}

TEST(Redact, has_no_control_bytes) {
    check({"a\x1b[31m\n\x7f\r.tar", "a\\x1b[31m\\x0a\\x7f\\x0d.tar"});
    check({"pipe:cat x\ncat y", "pipe:cat x\\x0acat y"});
    check({"\xff\xc2\x9b!", "\\xff\\xc2\\x9b!"});
    EXPECT_NE(redact("a\n"), redact("a\\x0a"));
    EXPECT_EQ(redact(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Redact, is_not_cut) {
    std::string name = "/data/";
    for (int i = 0; i < 1000; ++i) name += "\xc3\xa4\xe2\x82\xac";
    EXPECT_EQ(redact(name), name);
    EXPECT_EQ(redact("x" + name), "x" + name);
    EXPECT_EQ(redact("xy" + name), "xy" + name);
    const std::string bad(1000, '\x80');
    EXPECT_EQ(redact(bad).size(), 4000U);
}

}  // namespace
