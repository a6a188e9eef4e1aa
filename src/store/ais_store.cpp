#include "store/ais_store.h"

#include "core/error.h"
#include "core/options.h"
#include "http/http_fetch.h"
#include "http/http_headers.h"
#include "store/endpoint.h"
#include "store/json_text.h"
#include "store/settings.h"
#include "store/sigv4.h"
#include "store/store_list.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace shf {

namespace {

constexpr const char* endpoint_help =
    "set the option ais_endpoint, or AIS_ENDPOINT, to the address of a proxy, as in "
    "http://aistore:51080";
constexpr std::string_view member_mark = "?archpath=";

std::string text_in(const nlohmann::json& json, const char* name) {
    if (!json.is_object()) return {};
    const auto at = json.find(name);
    return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// Where the ais command keeps what it got by ais auth login.
std::string token_of(const Options& options) {
    if (!options.ais_token.empty()) return options.ais_token;
    if (std::string token = environment("AIS_AUTHN_TOKEN"); !token.empty()) return token;
    std::string path = environment("AIS_AUTHN_TOKEN_FILE"), text;
    if (path.empty()) {
        const std::string config = environment("XDG_CONFIG_HOME");
        path = config.empty() ? home_path(".config/ais/cli/auth.token")
                              : config + "/ais/cli/auth.token";
    }
    if (!read_small_file(path, text)) return {};
    return text_in(parse_json(text), "token");
}

class AisStore final : public HttpStore {
  public:
    explicit AisStore(const Options& options) : token_(token_of(options)) {
        endpoint_ =
            options.ais_endpoint.empty() ? environment("AIS_ENDPOINT") : options.ais_endpoint;
        if (endpoint_.empty())
            throw Error(SHF_E_USAGE, "nothing says where AIStore is", endpoint_help);
        endpoint_ = checked_endpoint(endpoint_, "AIStore", endpoint_help);
        if (std::any_of(token_.begin(), token_.end(), [](char c) { return c <= ' ' || c > '~'; }))
            throw Error(SHF_E_USAGE, "the token of AIStore has bad characters",
                        "look at the option ais_token, at AIS_AUTHN_TOKEN, and at the file that "
                        "ais auth login writes");
    }

    void prepare(HttpRequest& request, const SourceContext& context) override {
        request.url = endpoint_ + request.target;
        // Members and what a job transforms have no ranges; the server refuses the request for one.
        if (request.target.find("&archpath=") != request.target.npos ||
            request.target.find("&etl_name=") != request.target.npos)
            request.whole = true;
        request.certificate = true;
        add_own_headers(request, context.options);
        if (!request.body.empty()) request.headers.emplace_back("Content-Type: application/json");
        if (!token_.empty()) {
            request.headers.push_back("Authorization: Bearer " + token_);
            request.secrets.push_back(token_);
        }
    }

    // Its servers look at no If-Match; every answer has the checksum of the whole object.
    [[nodiscard]] std::string version(const HttpAnswer& answer) const override {
        const std::string_view checksum = answer.header("ais-checksum-value");
        if (checksum.empty()) return answer.etag;
        return std::string(answer.header("ais-checksum-type")) + ":" + std::string(checksum);
    }
    [[nodiscard]] bool pins(const HttpAnswer& answer) const override {
        return !answer.header("ais-checksum-value").empty() || !answer.strong_tag().empty();
    }
    // The proxy knows better where the object is the next time.
    [[nodiscard]] bool redirects_last() const override { return false; }

    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view body) const override {
        const Error plain = answer.error();
        const std::string said = text_in(parse_json(body), "message");
        std::string cause = plain.fault().cause;
        if (!said.empty()) cause += ": " + escape(said);
        if (plain.code() == SHF_E_AUTH)
            return Error(SHF_E_AUTH, cause,
                         token_.empty()
                             ? "run ais auth login, or set AIS_AUTHN_TOKEN"
                             : "look at the rights of the token, and whether it expired");
        if (answer.status == 409) return Error(SHF_E_NET_TRANSIENT, cause, "try again later");
        return Error(plain.code(), cause, plain.fault().help);
    }
    [[nodiscard]] std::string server(const HttpRequest& /*request*/) const override {
        return server_of(endpoint_);
    }

  private:
    const std::string token_;
    std::string endpoint_;
};

}  // namespace

AisUrl parse_ais_url(std::string_view url) {
    std::string_view rest = url.substr(std::min(url.find("://") + 3, url.size()));
    AisUrl result;
    const size_t slash = std::min(rest.find('/'), rest.size());
    result.bucket = rest.substr(0, slash);
    if (result.bucket.empty() || result.bucket.size() > 64 ||
        !std::all_of(result.bucket.begin(), result.bucket.end(), [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                   c == '.';
        }))
        refuse_bucket(result.bucket, "write ais://BUCKET/NAME");
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    if (const size_t mark = rest.find(member_mark); mark != rest.npos) {
        result.member = rest.substr(mark + member_mark.size());
        rest = rest.substr(0, mark);
        if (result.member.empty())
            throw Error(SHF_E_USAGE, "archpath names no member",
                        "write ais://BUCKET/NAME?archpath=MEMBER");
    }
    result.name = rest;
    return result;
}

std::shared_ptr<HttpStore> ais_store(const SourceContext& context) {
    return std::make_shared<AisStore>(context.options);
}

std::string ais_target(const AisUrl& url, const SourceContext& context) {
    const Options& options = context.options;
    std::string target = "/v1/objects/" + url.bucket + encoded_path(url.name) +
                         "?provider=" + percent_encode(options.ais_provider);
    if (!url.member.empty()) target += "&archpath=" + percent_encode(url.member, "/");
    if (!options.ais_etl.empty()) target += "&etl_name=" + percent_encode(options.ais_etl);
    return target;
}

AisPage parse_ais_page(const std::string& body) {
    const auto json = parse_json(body);
    const auto refuse = [] {
        throw Error(SHF_E_NET_PERMANENT, "the list of the bucket is not one",
                    "look at what serves this endpoint, or name the shards one by one");
    };
    // Errors come as objects too, {"status": 503, "message": ...}; every page has its identifier.
    if (!json.is_object() || text_in(json, "uuid").empty()) refuse();
    if (const auto token = json.find("continuation_token");
        token != json.end() && !token->is_string() && !token->is_null())
        refuse();
    AisPage page{
        .names = {}, .next = text_in(json, "continuation_token"), .uuid = text_in(json, "uuid")};
    const auto entries = json.find("entries");
    // A bucket without objects has none, or null.
    if (entries == json.end() || entries->is_null()) return page;
    if (!entries->is_array()) refuse();
    for (const auto& entry : *entries) {
        std::string name = text_in(entry, "name");
        if (name.empty()) refuse();
        page.names.push_back(std::move(name));
    }
    return page;
}

std::vector<std::string> list_ais(const AisUrl& url, const SourceContext& context) {
    const auto store = ais_store(context);
    std::string uuid;
    return list_pages(url.name, "bucket", context.options, [&](const std::string& next) {
        nlohmann::json wanted = {{"prefix", url.name}, {"props", "name"}, {"flags", "16"}};
        if (!next.empty()) wanted.update({{"continuation_token", next}, {"uuid", uuid}});
        HttpRequest request;
        request.target = "/v1/buckets/" + url.bucket +
                         "?provider=" + percent_encode(context.options.ais_provider);
        try {
            request.body = nlohmann::json{{"action", "list"}, {"value", wanted}}.dump();
        } catch (const nlohmann::json::exception&) {
            throw Error(SHF_E_USAGE, "the names of AIStore are UTF-8, and this is not",
                        "look at where the URL was put together");
        }
        AisPage page = parse_ais_page(http_fetch(request, *store, context).body);
        uuid = std::move(page.uuid);
        return StorePage{.keys = std::move(page.names), .next = std::move(page.next)};
    });
}

}  // namespace shf
