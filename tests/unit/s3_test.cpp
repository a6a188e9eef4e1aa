// What is read of the files of aws, and of the XML and JSON of its services.
#include "core/error.h"
#include "store/aws_chain.h"
#include "store/aws_config.h"
#include "store/s3_store.h"
#include "store/s3_xml.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace shf {
namespace {

template <typename Action>
std::string refused(int32_t code, Action action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no error";
    return {};
}

TEST(AwsConfig, sections_and_nested_blocks) {
    const AwsFile file = parse_aws_file(
        "\xef\xbb\xbf# comment\r\n[default]\r\nregion = eu-west-1\r\n\n[profile  \"my one\"]\n"
        "s3 =\n  addressing_style = path\n  ; comment\n  max = 3\nAWS_Secret_Access_Key = a=b#c\n"
        "[services x]\ns3 =\n\tendpoint_url=http://h\n",
        "f");
    EXPECT_EQ(file.at("default").at("region"), "eu-west-1");
    const AwsSection& mine = file.at("profile my one");
    EXPECT_EQ(mine.at("s3.addressing_style"), "path");
    EXPECT_EQ(mine.at("s3.max"), "3");
    EXPECT_EQ(mine.at("aws_secret_access_key"), "a=b#c");
    EXPECT_EQ(file.at("services x").at("s3.endpoint_url"), "http://h");
}

TEST(AwsConfig, faults_name_the_line_and_no_secret) {
    for (const char* bad : {"[default]\nhush", "[default\nhush=1", "hush = 1\n", "[a]\n= hush"}) {
        const std::string said =
            refused(SHF_E_USAGE, [&] { (void)parse_aws_file(bad, "my file"); });
        EXPECT_NE(said.find("my file\" line "), said.npos) << said;
        EXPECT_EQ(said.find("hush"), said.npos) << said;
    }
}

TEST(AwsConfig, profile_default_comes_before_default) {
    AwsConfig config = {};
    config.config = parse_aws_file("[default]\na=1\n[profile default]\na=2\n[x]\na=3\n", "f");
    EXPECT_EQ(config.find("default")->at("a"), "2");
    EXPECT_EQ(config.find("x"), nullptr);
}

TEST(AwsConfig, words_of_a_command) {
    EXPECT_EQ(words_of_command("a  'b c' \"d\\\"e\" f\\ g ''"),
              (std::vector<std::string>{"a", "b c", "d\"e", "f g", ""}));
    (void)refused(SHF_E_USAGE, [] { (void)words_of_command("a 'b"); });
}

TEST(S3Url, bucket_and_key) {
    const S3Url url = parse_s3_url("s3://b.x/a b%20?#/../c");
    EXPECT_EQ(url.bucket, "b.x");
    EXPECT_EQ(url.key, "a b%20?#/../c");
    EXPECT_EQ(s3_target(url.key), "/a%20b%2520%3F%23/%2E%2E/c");
    for (const char* bad : {"s3://", "s3:///k", "s3://b@c/k", "s3://b:1/k", "s3://b c/k", "s3:b"})
        (void)refused(SHF_E_USAGE, [&] { (void)parse_s3_url(bad); });
}

std::string page(std::string_view inside, std::string_view truncated = "false") {
    return "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3/\"><IsTruncated>" +
           std::string(truncated) + "</IsTruncated>" + std::string(inside) + "</ListBucketResult>";
}

TEST(S3List, keys_with_entities) {
    const StorePage result = parse_s3_page(
        page("<KeyCount>3</KeyCount><NextContinuationToken>t&amp;+</NextContinuationToken>"
             "<Contents><Key>a&amp;b+%20&#xA;</Key></Contents><Contents><Key> </Key></Contents>"
             "<Contents><Key><![CDATA[<c>]]></Key></Contents>",
             "true"));
    EXPECT_EQ(result.keys, (std::vector<std::string>{"a&b+%20\n", " ", "<c>"}));
    EXPECT_EQ(result.next, "t&+");
}

TEST(S3List, keys_that_are_encoded) {
    const StorePage result = parse_s3_page(
        page("<EncodingType>url</EncodingType><Contents><Key>a+b%2B%01</Key></Contents>"));
    EXPECT_EQ(result.keys, std::vector<std::string>{"a b+\x01"});
}

// Never fewer shards.
TEST(S3List, what_is_not_whole_is_an_error) {
    const std::string whole = page("<Contents><Key>a</Key></Contents>");
    for (size_t size = 0; size < whole.size(); ++size)
        (void)refused(SHF_E_NET_PERMANENT, [&] { (void)parse_s3_page(whole.substr(0, size)); });
    for (const std::string& bad :
         {page("", "true"), page("", "maybe"), page("<KeyCount>2</KeyCount>"),
          page("<Contents></Contents>"), std::string("<html><body/></html>"),
          page("<EncodingType>url</EncodingType><Contents><Key>%4</Key></Contents>"),
          page("<EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents>"),
          page("<EncodingType>url</EncodingType><Contents><Key>a%00</Key></Contents>")})
        (void)refused(SHF_E_NET_PERMANENT, [&] { (void)parse_s3_page(bad); });
}

TEST(S3Fault, says_what_it_can) {
    const S3Fault fault = parse_s3_fault(
        "<Error><Code>NoSuchKey</Code><Message>m</Message><RequestId>r</RequestId><HostId>h</"
        "HostId>"
        "<Region>eu</Region></Error>");
    EXPECT_EQ(fault.code + fault.message + fault.request_id + fault.host_id + fault.region,
              "NoSuchKeymrheu");
    EXPECT_EQ(parse_s3_fault("<html>").code, "");
    EXPECT_EQ(parse_s3_fault("<ErrorResponse><Error><Code>c</Code></Error></ErrorResponse>").code,
              "c");
}

TEST(AwsKeys, of_sts_and_json) {
    const TemporaryKeys sts = parse_sts_keys(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>a</AccessKeyId>"
        "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
        "<Expiration>1970-01-02T00:00:01.5Z</Expiration></Credentials></AssumeRoleResult>"
        "</AssumeRoleResponse>");
    EXPECT_EQ(sts.value, (AwsKeys{.access_key = "a", .secret_key = "s", .session_token = "t"}));
    EXPECT_EQ(sts.expires, 86401);
    const KeyNames names = {"A", "S", "T", "E"};
    EXPECT_EQ(
        parse_json_keys(R"({"A":"a","S":"s","E":"2000-03-01T00:00:00+01:00"})", "x", names).expires,
        951865200);
    for (const char* bad : {"", "[]", "{", R"({"A":"a"})", R"({"A":1,"S":[]})"})
        (void)refused(SHF_E_AUTH, [&] { (void)parse_json_keys(bad, "x", names); });
    (void)refused(SHF_E_AUTH, [] { (void)parse_sts_keys("<a/>"); });
    EXPECT_FALSE(parse_time("2000-13-01T00:00:00Z"));
    EXPECT_FALSE(parse_time("2000-01-01T00:00:00"));
}

}  // namespace
}  // namespace shf
