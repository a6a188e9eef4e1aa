#include "store/gs_json.h"

#include "core/error.h"
#include "http/libcrypto.h"
#include "store/json_text.h"
#include "store/s3_xml.h"

#include <algorithm>
#include <limits>

namespace shf {

namespace {

using Json = nlohmann::json;

constexpr const char* oauth_server = "https://oauth2.googleapis.com/token";
constexpr const char* exchange_server = "https://sts.googleapis.com/v1/token";

[[noreturn]] void refuse_list(const char* cause) {
    throw Error(SHF_E_NET_PERMANENT, std::string("the list of the bucket cannot be used: ") + cause,
                "look at what serves this endpoint, or name the shards one by one");
}

// NULL: there is none.
const Json* field_of(const Json& json, const char* name) {
    if (!json.is_object()) return nullptr;
    const auto at = json.find(name);
    return at == json.end() ? nullptr : &*at;
}

// Empty: there is none, or it is no text.
std::string text_in(const Json& json, const char* name) {
    const Json* const field = field_of(json, name);
    return field && field->is_string() ? field->get<std::string>() : std::string();
}

// What becomes part of a header or of a form must be whole lines.
bool is_one_line(std::string_view text) {
    return std::none_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Tokens and signatures go to servers that prove who they are, or to this machine.
bool is_safe(const std::string& url) {
    // In paths an account may have an @.
    if (!is_one_line(url) || url.find_first_of(" #") != url.npos ||
        url.substr(0, url.find('/', std::min(url.find("://") + 3, url.size()))).find('@') !=
            url.npos)
        return false;
    if (url.starts_with("https://")) return url.size() > 8;
    for (const char* const near : {"http://127.0.0.1", "http://localhost", "http://[::1]"}) {
        if (!url.starts_with(near)) continue;
        const size_t end = std::string_view(near).size();
        if (end == url.size() || url[end] == ':' || url[end] == '/') return true;
    }
    return false;
}

class AccountFile {
  public:
    explicit AccountFile(const std::string& name) : name_(name) {}

    [[nodiscard]] GsAccount read(const Json& json, bool nested) const {
        GsAccount account;
        const std::string type = text_in(json, "type");
        account.token_url = url_in(json, type == "external_account" ? "token_url" : "token_uri",
                                   type == "external_account" ? exchange_server : oauth_server);
        if (type == "service_account") {
            account.kind = GsAccountKind::service;
            account.email = needed(json, "client_email");
            account.private_key = needed(json, "private_key", true);
            account.key_id = text_in(json, "private_key_id");
        } else if (type == "authorized_user") {
            account.kind = GsAccountKind::user;
            account.client_id = needed(json, "client_id");
            account.client_secret = needed(json, "client_secret");
            account.refresh_token = needed(json, "refresh_token");
        } else if (type == "external_account") {
            account.kind = GsAccountKind::external;
            read_external(json, account);
        } else if (type == "impersonated_service_account" && !nested) {
            account.kind = GsAccountKind::impersonated;
            account.impersonation_url = url_in(json, "service_account_impersonation_url", nullptr);
            const Json* const source = field_of(json, "source_credentials");
            if (!source) refuse("it has no \"source_credentials\"");
            account.source = std::make_shared<GsAccount>(read(*source, true));
            read_delegates(json, account);
        } else if (type.empty()) {
            refuse("it has no \"type\"");
        } else {
            throw Error(SHF_E_UNSUPPORTED,
                        "the credentials in \"" + escape(name_) + "\" are of the type \"" +
                            escape(type) + "\", which is not supported",
                        "supported are service_account, authorized_user, external_account with a "
                        "file or url, and impersonated_service_account; or give gs_token");
        }
        return account;
    }

    [[noreturn]] void refuse(const std::string& cause) const {
        throw Error(SHF_E_AUTH,
                    "the credentials in \"" + escape(name_) + "\" cannot be used: " + cause,
                    "look at the file, or make it again; gcloud auth application-default login "
                    "makes that of a user");
    }

  private:
    void read_external(const Json& json, GsAccount& account) const {
        account.audience = needed(json, "audience");
        account.subject_type = needed(json, "subject_token_type");
        if (field_of(json, "service_account_impersonation_url"))
            account.impersonation_url = url_in(json, "service_account_impersonation_url", nullptr);
        const Json* const source = field_of(json, "credential_source");
        if (!source) refuse("it has no \"credential_source\"");
        account.subject_file = text_in(*source, "file");
        if (account.subject_file.empty()) {
            if (!field_of(*source, "url") || field_of(*source, "environment_id"))
                throw Error(SHF_E_UNSUPPORTED,
                            "the external account in \"" + escape(name_) +
                                "\" has a source that is neither file nor url",
                            "AWS, programs and certificates are not supported as sources: give "
                            "gs_token, or a file that something else renews");
            account.subject_url = text_in(*source, "url");
            // It is asked for what is worth nothing without the rest, and may be near.
            if (!is_one_line(account.subject_url) || (!account.subject_url.starts_with("http://") &&
                                                      !account.subject_url.starts_with("https://")))
                refuse("its \"url\" is not http or https");
            if (const Json* const headers = field_of(*source, "headers");
                headers && headers->is_object())
                for (const auto& [name, value] : headers->items()) {
                    const std::string text = text_in(*headers, name.c_str());
                    if (!is_one_line(name) || !is_one_line(text) || name.find(':') != name.npos)
                        refuse("one of its \"headers\" is no header");
                    account.subject_headers.push_back(name + ": " + text);
                }
        }
        const Json* const format = field_of(*source, "format");
        if (format && text_in(*format, "type") == "json")
            account.subject_field = needed(*format, "subject_token_field_name");
    }

    void read_delegates(const Json& json, GsAccount& account) const {
        const Json* const delegates = field_of(json, "delegates");
        if (!delegates || delegates->is_null()) return;
        if (!delegates->is_array()) refuse("its \"delegates\" is no list");
        for (const Json& one : *delegates) {
            if (!one.is_string()) refuse("its \"delegates\" is no list of texts");
            account.delegates.push_back(one.get<std::string>());
        }
    }

    std::string needed(const Json& json, const char* name, bool lines = false) const {
        std::string text = text_in(json, name);
        if (text.empty()) refuse(std::string("it has no \"") + name + "\"");
        if (!lines && !is_one_line(text))
            refuse(std::string("its \"") + name + "\" has control characters");
        return text;
    }

    std::string url_in(const Json& json, const char* name, const char* otherwise) const {
        if (otherwise && !field_of(json, name)) return otherwise;
        std::string url = needed(json, name);
        if (!is_safe(url)) refuse(std::string("its \"") + name + "\" is no https URL");
        return url;
    }

    const std::string& name_;
};

}  // namespace

StorePage parse_gs_page(std::string_view body) {
    const Json json = parse_json(body);
    if (!json.is_object()) refuse_list("it is not whole, or no JSON");
    const Json* const items = field_of(json, "items");
    // A page without objects may have nothing but its kind.
    if (!items && text_in(json, "kind") != "storage#objects" && !field_of(json, "nextPageToken") &&
        !json.empty())
        refuse_list("it is something else");
    StorePage page;
    if (items && !items->is_array()) refuse_list("it is something else");
    if (items)
        for (const Json& object : *items) {
            std::string key = text_in(object, "name");
            if (key.empty()) refuse_list("an object without a key");
            if (key.find('\0') != key.npos) refuse_list("a key with a NUL byte");
            page.keys.push_back(std::move(key));
        }
    if (field_of(json, "nextPageToken")) {
        page.next = text_in(json, "nextPageToken");
        if (page.next.empty()) refuse_list("it does not say where the next page is");
    }
    return page;
}

std::string gs_object_json(const std::string& key, const std::string& id,
                           const std::optional<std::string>& md5) {
    Json object = {{"name", key},
                   {"contentType", "application/octet-stream"},
                   {"metadata", {{"shardfeed-upload", id}}}};
    if (md5) object["md5Hash"] = base64_encode(*md5);
    return object.dump();
}

GsObject parse_gs_object(std::string_view body) {
    const Json object = parse_json(body);
    return {.md5 = text_in(object, "md5Hash"), .generation = text_in(object, "generation")};
}

GsRewrite parse_gs_rewrite(std::string_view body) {
    const Json step = parse_json(body);
    const Json* const done = field_of(step, "done");
    const bool is_done = done && done->is_boolean() && done->get<bool>();
    return {.done = is_done, .token = is_done ? std::string() : text_in(step, "rewriteToken")};
}

GsFault parse_gs_fault(std::string_view body) {
    const S3Fault xml = parse_s3_fault(body);
    if (!xml.code.empty() || !xml.message.empty())
        return {.code = xml.code,
                .message = xml.message + (xml.details.empty() ? "" : ": " + xml.details)};
    const Json json = parse_json(body);
    const Json* const error = field_of(json, "error");
    if (!error) return {};
    if (error->is_string())
        return {.code = error->get<std::string>(), .message = text_in(json, "error_description")};
    GsFault fault = {.code = text_in(*error, "status"), .message = text_in(*error, "message")};
    const Json* const errors = field_of(*error, "errors");
    if (errors && errors->is_array() && !errors->empty())
        if (std::string reason = text_in(errors->front(), "reason"); !reason.empty())
            fault.code = std::move(reason);
    return fault;
}

GsToken parse_gs_token(std::string_view body, int64_t now) {
    const Json json = parse_json(body);
    GsToken token = {.value = text_in(json, "access_token"), .expires = {}};
    if (token.value.empty()) {
        token.value = text_in(json, "accessToken");
        token.expires = parse_time(text_in(json, "expireTime"));
    }
    if (token.value.empty() || !is_one_line(token.value))
        throw Error(SHF_E_AUTH, "the answer has no access token",
                    "look at which server gives tokens here, and at what stands in between");
    if (const Json* const lasts = field_of(json, "expires_in");
        lasts && lasts->is_number_integer()) {
        constexpr int64_t most = std::numeric_limits<int32_t>::max();
        token.expires = now + std::clamp<int64_t>(lasts->get<int64_t>(), 0, most);
    }
    return token;
}

GsAccount parse_gs_account(std::string_view text, const std::string& name) {
    const Json json = parse_json(text);
    const AccountFile file(name);
    if (!json.is_object()) file.refuse("it is no JSON");
    return file.read(json, false);
}

std::string subject_token(const std::string& text, const std::string& field) {
    std::string token = field.empty() ? text : text_in(parse_json(text), field.c_str());
    while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
    if (token.empty() || !is_one_line(token))
        throw Error(SHF_E_AUTH, "the source of the external account has no token",
                    "look at credential_source in the file of credentials");
    return token;
}

}  // namespace shf
