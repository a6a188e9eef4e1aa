// What is read of the JSON of Google Cloud Storage, and of files of credentials; signatures.
#include "core/error.h"
#include "http/libcrypto.h"
#include "store/gs_json.h"
#include "store/gs_store.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <memory>
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

TEST(GsTargets, what_is_asked_for) {
    const GsUrl url = parse_gs_url("gs://b.x_1/a b%?#/../c");
    EXPECT_EQ(gs_target(url), "/b.x_1/a%20b%25%3F%23/%2E%2E/c");
    EXPECT_EQ(gs_list_target({.bucket = "b", .key = "a/+"}, "t=&"),
              "/storage/v1/b/b/o?fields=items%28name%29%2CnextPageToken%2Ckind&maxResults=1000&"
              "pageToken=t%3D%26&prefix=a%2F%2B");
    const std::string said = refused(SHF_E_USAGE, [] { (void)parse_gs_url("gs://a@b/c"); });
    EXPECT_NE(said.find("gs://BUCKET/KEY"), said.npos) << said;
    EXPECT_EQ(gs_emulator(""), "");
    EXPECT_EQ(gs_emulator("h:1"), "http://h:1");
    EXPECT_EQ(gs_emulator("https://h"), "https://h");
}

TEST(GsPage, keys_and_the_next_page) {
    const StorePage page = parse_gs_page(
        R"({"kind":"storage#objects","nextPageToken":"t","items":[{"name":"a\n\u00e9"},{"name":"b"}]})");
    EXPECT_EQ(page.keys, (std::vector<std::string>{"a\n\xc3\xa9", "b"}));
    EXPECT_EQ(page.next, "t");
    for (const char* empty : {"{}", R"({"kind":"storage#objects"})", R"({"items":[]})"})
        EXPECT_TRUE(parse_gs_page(empty).keys.empty());
}

TEST(GsPage, what_is_not_all_of_it_is_refused) {
    const std::string whole = R"({"items":[{"name":"a"}],"nextPageToken":"t"})";
    for (size_t size = 0; size < whole.size(); ++size)
        (void)refused(SHF_E_NET_PERMANENT, [&] { (void)parse_gs_page(whole.substr(0, size)); });
    for (const char* bad :
         {"[]", "<html>", R"({"error":{"code":500}})", R"({"items":{}})", R"({"items":[{}]})",
          R"({"items":[{"name":7}]})", R"({"items":[{"name":""}]})",
          R"({"items":[{"name":"a\u0000"}]})", R"({"items":[],"nextPageToken":""})",
          R"({"items":[],"nextPageToken":null})"})
        (void)refused(SHF_E_NET_PERMANENT, [&] { (void)parse_gs_page(bad); });
}

TEST(GsFault, xml_and_json) {
    const GsFault xml = parse_gs_fault(
        "<?xml version='1.0' encoding='UTF-8'?><Error><Code>AccessDenied</Code><Message>Access "
        "denied.</Message><Details>x does not have storage.objects.get</Details></Error>");
    EXPECT_EQ(xml.code, "AccessDenied");
    EXPECT_EQ(xml.message, "Access denied.: x does not have storage.objects.get");
    const GsFault json = parse_gs_fault(
        R"({"error":{"code":404,"message":"m","errors":[{"reason":"notFound","message":"m"}]}})");
    EXPECT_EQ(json.code, "notFound");
    EXPECT_EQ(json.message, "m");
    const GsFault oauth =
        parse_gs_fault(R"({"error":"invalid_grant","error_description":"Bad Request"})");
    EXPECT_EQ(oauth.code, "invalid_grant");
    EXPECT_EQ(oauth.message, "Bad Request");
    for (const char* none : {"", "<html>", "{}", "[1]", R"({"error":7})", "Not Found"})
        EXPECT_EQ(parse_gs_fault(none).code + parse_gs_fault(none).message, "");
}

TEST(GsToken, of_oauth_and_of_impersonation) {
    const GsToken token = parse_gs_token(R"({"access_token":"t","expires_in":3599})", 1000);
    EXPECT_EQ(token.value, "t");
    EXPECT_EQ(token.expires, 4599);
    const GsToken other =
        parse_gs_token(R"({"accessToken":"u","expireTime":"1970-01-01T00:01:00Z"})", 0);
    EXPECT_EQ(other.value, "u");
    EXPECT_EQ(other.expires, 60);
    EXPECT_FALSE(parse_gs_token(R"({"access_token":"t"})", 0).expires);
    for (const char* bad : {"", "<html>hush", R"({"access_token":""})", R"({"x":"hush"})",
                            R"({"access_token":"hush\r\nX: y"})"}) {
        const std::string said = refused(SHF_E_AUTH, [&] { (void)parse_gs_token(bad, 0); });
        EXPECT_EQ(said.find("hush"), said.npos) << said;
    }
}

TEST(GsAccount, the_kinds) {
    const GsAccount service = parse_gs_account(
        R"({"type":"service_account","client_email":"e","private_key":"a\nb","private_key_id":"7"})",
        "f");
    EXPECT_EQ(service.kind, GsAccountKind::service);
    EXPECT_EQ(service.private_key, "a\nb");
    EXPECT_EQ(service.token_url, "https://oauth2.googleapis.com/token");
    const std::string user =
        R"({"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"})";
    EXPECT_EQ(parse_gs_account(user, "f").kind, GsAccountKind::user);
    const GsAccount external = parse_gs_account(
        R"({"type":"external_account","audience":"a","subject_token_type":"t","credential_source":
            {"url":"http://h/","headers":{"X":"y"},"format":{"type":"json",
             "subject_token_field_name":"v"}}})",
        "f");
    EXPECT_EQ(external.token_url, "https://sts.googleapis.com/v1/token");
    EXPECT_EQ(external.subject_headers, std::vector<std::string>{"X: y"});
    EXPECT_EQ(external.subject_field, "v");
    const GsAccount acting = parse_gs_account(
        R"({"type":"impersonated_service_account","service_account_impersonation_url":"https://i/v1/projects/-/serviceAccounts/r@p.iam.gserviceaccount.com:generateAccessToken",
            "delegates":["d"],"source_credentials":)" +
            user + "}",
        "f");
    EXPECT_EQ(acting.source->refresh_token, "r");
    EXPECT_EQ(acting.delegates, std::vector<std::string>{"d"});
}

TEST(GsAccount, faults_name_the_file_and_no_secret) {
    for (const char* bad :
         {"", "hush", "[]", R"({"private_key":"hush"})",
          R"({"type":"service_account","private_key":"hush"})",
          R"({"type":"service_account","private_key":"hush","client_email":"a\nb"})",
          R"({"type":"service_account","private_key":"hush","client_email":"e",
              "token_uri":"http://example.com/"})",
          R"({"type":"service_account","private_key":"hush","client_email":"e",
              "token_uri":"http://127.0.0.1.example.com/"})",
          R"({"type":"service_account","private_key":"hush","client_email":"e",
              "token_uri":"https://u@h/"})",
          R"({"type":"authorized_user","client_secret":"hush","client_id":"i"})",
          R"({"type":"external_account","audience":"a","subject_token_type":"t"})"}) {
        const std::string said =
            refused(SHF_E_AUTH, [&] { (void)parse_gs_account(bad, "my file"); });
        EXPECT_NE(said.find("\"my file\" cannot be used: "), said.npos) << said;
        EXPECT_EQ(said.find("hush"), said.npos) << said;
    }
    for (const char* bad : {R"({"type":"gdch_service_account"})",
                            R"({"type":"external_account","audience":"a","subject_token_type":"t",
              "credential_source":{"environment_id":"aws1","url":"http://h"}})",
                            R"({"type":"external_account","audience":"a","subject_token_type":"t",
              "credential_source":{"executable":{}}})"})
        (void)refused(SHF_E_UNSUPPORTED, [&] { (void)parse_gs_account(bad, "f"); });
}

TEST(GsAccount, tokens_of_sources) {
    EXPECT_EQ(subject_token("t\r\n", ""), "t");
    EXPECT_EQ(subject_token(R"({"v":"t"})", "v"), "t");
    for (const char* bad : {"", "\n", "a\nb"})
        (void)refused(SHF_E_AUTH, [&] { (void)subject_token(bad, ""); });
    (void)refused(SHF_E_AUTH, [&] { (void)subject_token(R"({"w":"t"})", "v"); });
}

TEST(Libcrypto, a_signature_that_the_public_key_verifies) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), EVP_PKEY_free);
    ASSERT_TRUE(key);
    const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), BIO_free);
    ASSERT_EQ(
        PEM_write_bio_PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::string pem(4096, '\0');
    const int size = BIO_read(text.get(), pem.data(), static_cast<int>(pem.size()));
    ASSERT_GT(size, 0);
    pem.resize(static_cast<size_t>(size));
    const auto verify = [&](const std::string& data, const std::string& signature) {
        const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                              EVP_MD_CTX_free);
        EXPECT_EQ(EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()),
                  1);
        return EVP_DigestVerify(
            context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
            signature.size(), reinterpret_cast<const unsigned char*>(data.data()), data.size());
    };
    const std::string signature = rsa_sha256(pem, "header.claims");
    EXPECT_EQ(signature.size(), 256U);
    EXPECT_EQ(verify("header.claims", signature), 1);
    EXPECT_NE(verify("header.claimz", signature), 1);
}

}  // namespace
}  // namespace shf
