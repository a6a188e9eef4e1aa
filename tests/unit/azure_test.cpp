// Signatures of Azure Storage, and what is read of its URLs, settings, XML and JSON.
#include "core/error.h"
#include "http/libcrypto.h"
#include "store/azure_credentials.h"
#include "store/azure_shared_key.h"
#include "store/azure_store.h"
#include "store/azure_token.h"
#include "store/azure_xml.h"
#include "store/sigv4.h"
#include "url/azure_host.h"

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

// ---- Shared Key ---------------------------------------------------------------------------------

// The examples of "Authorize with Shared Key" in Microsoft's documentation of the REST API.
TEST(SharedKey, text_of_get_container_metadata) {
    HttpRequest request;
    request.url =
        "https://myaccount.blob.core.windows.net/mycontainer?restype=container"
        "&comp=metadata&timeout=20";
    request.headers = {"x-ms-version: 2015-02-21", "x-ms-date: Fri, 26 Jun 2015 23:39:12 GMT"};
    EXPECT_EQ(shared_key_text(request, "myaccount"),
              "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n"
              "x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\n"
              "restype:container\ntimeout:20");
}

TEST(SharedKey, text_of_list_blobs) {
    HttpRequest request;
    request.url =
        "https://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=list"
        "&include=snapshots&include=metadata&include=uncommittedblobs";
    const std::string text = shared_key_text(request, "myaccount");
    // "The canonicalized resource string": several values of one parameter are sorted by the
    // caller.
    EXPECT_EQ(text.substr(text.find('/')),
              "/myaccount/mycontainer\ncomp:list\n"
              "include:snapshots,metadata,uncommittedblobs\nrestype:container");
}

TEST(SharedKey, text_with_a_range_and_a_condition) {
    HttpRequest request;
    request.url = "http://127.0.0.1:10000/acct/c/a%20b?Prefix=x%2Fy%26";
    request.whole = false;
    request.first = 5;
    request.last = 9;
    request.if_match = "\"0x8D\"";
    request.headers = {"X-MS-B:  two  ", "x-ms-a: 1",       "x-ms-a: 2",    "Date: now",
                       "Accept: x",      "Content-Type: t", "x-ms-date: d", "Content-Length: 0"};
    EXPECT_EQ(shared_key_text(request, "acct"),
              "GET\n\n\n\n\nt\n\n\n\"0x8D\"\n\n\nbytes=5-9\nx-ms-a:1,2\nx-ms-b:two\nx-ms-date:d\n"
              "/acct/acct/c/a%20b\nprefix:x/y&");
    request.last.reset();
    EXPECT_NE(shared_key_text(request, "acct").find("bytes=5-\n"), std::string::npos);
}

// Made by another implementation of HMAC: openssl dgst -mac HMAC.
TEST(SharedKey, authorization) {
    HttpRequest request;
    request.url = "https://acct1.blob.core.windows.net/";
    request.headers = {"x-ms-date: " + http_date(1435361952), "x-ms-version: 2015-02-21"};
    EXPECT_EQ(request.headers[0], "x-ms-date: Fri, 26 Jun 2015 23:39:12 GMT");
    EXPECT_EQ(shared_key(request, "acct1", "hush-key"),
              "SharedKey acct1:mHAZjVyn4hcT6l4QQu5QXzGUgf2Q/CWWdCKx3VPaDxs=");
}

TEST(Base64, is_canonical) {
    // RFC 4648, 10.
    const std::vector<std::pair<std::string, std::string>> vectors = {{"", ""},
                                                                      {"f", "Zg=="},
                                                                      {"fo", "Zm8="},
                                                                      {"foo", "Zm9v"},
                                                                      {"foob", "Zm9vYg=="},
                                                                      {"fooba", "Zm9vYmE="},
                                                                      {"foobar", "Zm9vYmFy"}};
    for (const auto& [data, text] : vectors) {
        EXPECT_EQ(base64_encode(data), text);
        EXPECT_EQ(base64_decode(text), data);
    }
    EXPECT_EQ(base64_decode("AAA="), std::string(2, '\0'));
    for (const char* bad : {"Zg", "Zg=", "Zh==", "Zm9=", "Zg==\n",
                            " Zg==", "Z===", "====", "Zg==Zg==", "Zm-_", "Zm9v\n", "\nZm9vZm9"})
        EXPECT_FALSE(base64_decode(bad)) << bad;
}

// ---- URLs ---------------------------------------------------------------------------------------

TEST(AzureUrl, of_all_kinds) {
    const AzureUrl own = parse_azure_url("az://my-c/a b%20?#/../c");
    EXPECT_EQ(own.container + "|" + own.blob + own.account + own.endpoint, "my-c|a b%20?#/../c");
    EXPECT_EQ(own.target, "/my-c/a%20b%2520%3F%23/%2E%2E/c");
    const AzureUrl lake = parse_azure_url("abfss://$web@Acct1.dfs.core.windows.net/a%20b/");
    EXPECT_EQ(lake.container + "|" + lake.blob + "|" + lake.account, "$web|a%20b/|acct1");
    EXPECT_EQ(lake.endpoint, "https://acct1.blob.core.windows.net");
    EXPECT_EQ(azure_url_of("a%20b/x%.tar", lake, "abfss://$web@Acct1.dfs.core.windows.net/a%20b/"),
              "abfss://$web@Acct1.dfs.core.windows.net/a%20b/x%.tar");
    const std::string text = "https://acct1.z12.blob.storage.azure.net/c/a%20b(";
    const AzureUrl web = parse_azure_url(text);
    EXPECT_EQ(web.container + "|" + web.blob + "|" + web.endpoint,
              "c|a b(|https://acct1.z12.blob.storage.azure.net");
    EXPECT_EQ(azure_url_of("a b(1)/%.tar", web, text), text + "1%29/%25.tar");
    for (const char* bad :
         {"az://", "az:///b", "az://A/b", "az://c@d/b", "az://c:1/b",
          "abfs://acct1.dfs.core.windows.net/b", "abfs://c@acct1.dfs.example.com/b",
          "abfs://c@acct1.dfs.core.windows.net.example.com/b",
          "abfs://c:p@acct1.dfs.core.windows.net/b", "abfs://c@x@acct1.dfs.core.windows.net/b",
          "abfs://c@acct1.dfs.core.windows.net:1/b", "https://acct1.blob.core.windows.net/c/%",
          "https://acct1.blob.core.windows.net/c/%zz"})
        (void)refused(SHF_E_USAGE, [&] { (void)parse_azure_url(bad); });
}

TEST(AzureUrl, which_of_the_web) {
    const std::string host = "https://acct1.blob.core.windows.net";
    for (const std::string& good : {host + "/c/", host + "/c/a.tar", host + "/c/*.tar"})
        EXPECT_TRUE(is_azure_blob_url(good)) << good;
    for (const std::string& bad :
         {host + "/c/a.tar?sig=x", host + "/c/a.tar#x", host + "/a.tar", host + "//", host,
          host + ":443/c/a.tar", std::string("http://acct1.blob.core.windows.net/c/a.tar"),
          std::string("https://u@acct1.blob.core.windows.net/c/a.tar"),
          std::string("https://acct1.dfs.core.windows.net/c/a.tar"),
          std::string("https://a.b.blob.core.windows.net/c/a.tar"),
          std::string("https://acct1.blob.core.windows.net.example.com/c/a.tar"),
          std::string("https://example.com/acct1.blob.core.windows.net/c/a.tar")})
        EXPECT_FALSE(is_azure_blob_url(bad)) << bad;
}

TEST(AzureUrl, list_targets_are_encoded) {
    EXPECT_EQ(azure_list_target("c", "", ""), "/c?comp=list&maxresults=5000&restype=container");
    EXPECT_EQ(azure_list_target("c", "a/&", "2!8=="),
              "/c?comp=list&marker=2%218%3D%3D&maxresults=5000&prefix=a%2F%26&restype=container");
}

// ---- Settings -----------------------------------------------------------------------------------

TEST(AzureConnection, of_all_kinds) {
    const AzureConnection key = parse_azure_connection(
        "DefaultEndpointsProtocol=http;accountname=acct1;AccountKey=a+/==;EndpointSuffix=h.cn;",
        "f");
    EXPECT_EQ(key.account + "|" + key.account_key + "|" + key.endpoint,
              "acct1|a+/==|http://acct1.blob.h.cn");
    const AzureConnection sas = parse_azure_connection(
        "BlobEndpoint=https://h/x/;SharedAccessSignature=sv=1&sig=a%3D;QueueEndpoint=q", "f");
    EXPECT_EQ(sas.account + "|" + sas.sas + "|" + sas.endpoint, "|sv=1&sig=a%3D|https://h/x");
    const AzureConnection emulator = parse_azure_connection("UseDevelopmentStorage=true", "f");
    EXPECT_EQ(emulator.endpoint, "http://127.0.0.1:10000/devstoreaccount1");
    EXPECT_TRUE(base64_decode(emulator.account_key));
    for (const char* bad :
         {"hush", "=hush", "AccountKey=hush", "AccountName=Hush", "AccountName=a;AccountName=hush",
          "AccountName=a;AccountKey=hu sh", "BlobEndpoint=ftp://hush",
          "AccountName=a;EndpointSuffix=h@x", "BlobEndpoint=http://u:hush@h"}) {
        const std::string said =
            refused(SHF_E_USAGE, [&] { (void)parse_azure_connection(bad, "f"); });
        EXPECT_EQ(said.find("hush"), said.npos) << said;
    }
}

TEST(AzureToken, of_all_services) {
    EXPECT_EQ(parse_azure_token(R"({"access_token":"t","expires_in":3599})", "x", 100).expires,
              3699);
    EXPECT_EQ(parse_azure_token(R"({"access_token":"t","expires_in":"5"})", "x", 100).expires, 105);
    const AzureToken both =
        parse_azure_token(R"({"access_token":"t","expires_on":"77","expires_in":"5"})", "x", 100);
    EXPECT_EQ(both.value, "t");
    EXPECT_EQ(both.expires, 77);
    for (const char* odd :
         {R"({"access_token":"t","expires_on":-1})", R"({"access_token":"t","expires_on":"1 "})",
          R"({"access_token":"t","expires_on":99999999999999999999})"})
        EXPECT_FALSE(parse_azure_token(odd, "x", 100).expires) << odd;
    for (const char* bad : {"", "[]", "{", "{}", R"({"access_token":1})", R"({"access_token":""})",
                            R"({"access_token":"a\nb"})", R"({"access_token":"a b"})"})
        (void)refused(SHF_E_AUTH, [&] { (void)parse_azure_token(bad, "x", 0); });
}

TEST(AzureToken, where_secrets_may_go) {
    for (const char* good :
         {"https://h/x", "http://localhost:1/x", "http://127.0.0.1", "http://[::1]:1/",
          "http://169.254.129.2:8081/msi/token", "http://10.0.0.1/"})
        EXPECT_TRUE(is_safe_service(good)) << good;
    for (const char* bad :
         {"http://h/x", "http://8.8.8.8/", "http://localhost.example.com/", "http://127.0.0.1@h/",
          "http://", "https://", "ftp://127.0.0.1/", "http://127.0.0.1.h/",
          "http://[2001:4860::1]/", "http://abc/", "127.0.0.1"})
        EXPECT_FALSE(is_safe_service(bad)) << bad;
}

// ---- XML ----------------------------------------------------------------------------------------

std::string page(std::string_view blobs, std::string_view next = "<NextMarker/>") {
    return "\xef\xbb\xbf<?xml version=\"1.0\"?><EnumerationResults><Blobs>" + std::string(blobs) +
           "</Blobs>" + std::string(next) + "</EnumerationResults>";
}

TEST(AzureList, names) {
    const StorePage result = parse_azure_page(page(
        "<Blob><Name>a&amp;b+%20</Name></Blob><Blob><Name> </Name></Blob>"
        "<Blob><Name><![CDATA[<c>]]></Name></Blob><Blob><Name Encoded=\"true\">d+%01</Name></Blob>"
        "<Blob><Name Encoded=\"false\">e%41</Name></Blob><Blob><Name>f</Name><Properties>"
        "<ResourceType>directory</ResourceType></Properties></Blob><BlobPrefix><Name>g/</Name>"
        "</BlobPrefix>",
        "<NextMarker>2!8&amp;</NextMarker>"));
    EXPECT_EQ(result.keys, (std::vector<std::string>{"a&b+%20", " ", "<c>", "d+\x01", "e%41"}));
    EXPECT_EQ(result.next, "2!8&");
}

// Never fewer shards.
TEST(AzureList, what_is_not_whole_is_an_error) {
    const std::string whole = page("<Blob><Name>a</Name></Blob>");
    EXPECT_EQ(parse_azure_page(whole).keys, std::vector<std::string>{"a"});
    for (size_t size = 0; size < whole.size(); ++size)
        (void)refused(SHF_E_NET_PERMANENT, [&] { (void)parse_azure_page(whole.substr(0, size)); });
    for (const std::string& bad :
         {page("", ""), page("<Blob/>"), page("<Blob><Name Encoded='true'>a%00</Name></Blob>"),
          std::string("<html><body/></html>"),
          std::string("<EnumerationResults><NextMarker/></EnumerationResults>")})
        (void)refused(SHF_E_NET_PERMANENT, [&] { (void)parse_azure_page(bad); });
}

TEST(AzureFault, says_what_it_can) {
    const AzureFault fault = parse_azure_fault(
        "\xef\xbb\xbf<?xml version=\"1.0\"?><Error><Code>c</Code><Message>m\nRequestId:r</Message>"
        "<AuthenticationErrorDetail>d</AuthenticationErrorDetail></Error>");
    EXPECT_EQ(fault.code + fault.message + fault.detail, "cmd");
    EXPECT_EQ(parse_azure_fault("<html>").code, "");
    EXPECT_EQ(parse_azure_fault("").code, "");
}

}  // namespace
}  // namespace shf
