#include "store/gs_store.h"

#include "core/error.h"
#include "core/options.h"
#include "core/times.h"
#include "http/http_fetch.h"
#include "http/http_headers.h"
#include "io/sink.h"
#include "store/endpoint.h"
#include "store/gs_credentials.h"
#include "store/gs_json.h"
#include "store/refusal.h"
#include "store/s3_store.h"
#include "store/s3_xml.h"
#include "store/settings.h"
#include "store/sigv4.h"
#include "store/store_list.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <mutex>
#include <utility>

namespace shf {

namespace {

constexpr const char* google = "https://storage.googleapis.com";
constexpr size_t most_gs_page = size_t{64} << 20;
constexpr std::string_view bearer = "Bearer ";
constexpr std::string_view pinned = "?generation=";

constexpr const char* read_help =
    "the account needs storage.objects.get on the shards and storage.objects.list for lists, as "
    "the role Storage Object Viewer has them; without the second a missing object looks like this "
    "too";
constexpr const char* gs_write_help =
    "the account needs storage.objects.create and storage.objects.get, and storage.objects.delete "
    "to overwrite, as the role Storage Object User has them";

class GsStore final : public HttpStore {
  public:
    GsStore(const SourceContext& context, bool objects, GsRights rights)
        : objects_(objects), rights_(rights) {
        const Options& options = context.options;
        if (options.gs_access_key.empty() != options.gs_secret_key.empty())
            throw Error(SHF_E_USAGE,
                        "one of the options gs_access_key and gs_secret_key is missing",
                        "give both or none");
        const std::array given = {options.gs_anonymous, !options.gs_token.empty(),
                                  !options.gs_credentials.empty(), !options.gs_access_key.empty()};
        if (std::count(given.begin(), given.end(), true) > 1)
            throw Error(SHF_E_USAGE,
                        "the options gs_anonymous, gs_token, gs_credentials and gs_access_key do "
                        "not fit",
                        "give one of them");
        endpoint_ = options.gs_endpoint;
        const std::string emulator =
            endpoint_.empty() ? gs_emulator(environment("STORAGE_EMULATOR_HOST")) : "";
        if (!emulator.empty()) endpoint_ = emulator;
        if (endpoint_.empty()) endpoint_ = google;
        endpoint_ =
            checked_endpoint(endpoint_, "Google Cloud Storage",
                             "look at the option gs_endpoint, and at STORAGE_EMULATOR_HOST");
        has_keys_ = !options.gs_access_key.empty();
        // An emulator wants no credentials, and those of Google are none of its business.
        const bool none_given = std::count(given.begin(), given.end(), true) == 0;
        anonymous_ = options.gs_anonymous || (!emulator.empty() && none_given);
    }

    [[nodiscard]] bool has_keys() const { return has_keys_; }

    void prepare(HttpRequest& request, const SourceContext& context) override {
        const Options& options = context.options;
        std::string target = request.target;
        // The address of an upload has all that belongs to it.
        if (!options.gs_user_project.empty() && target.find("upload_id=") == target.npos)
            target += (target.find('?') == target.npos ? "?userProject=" : "&userProject=") +
                      percent_encode(options.gs_user_project);
        request.url = endpoint_ + target;
        request.certificate = true;
        add_own_headers(request, options);
        // As it is stored: else it would be decompressed on the way, without length and ranges.
        if (objects_ && !writes(request)) request.headers.emplace_back("Accept-Encoding: gzip");
        if (anonymous_) return;
        if (has_keys_) {
            sign(request, options);
            return;
        }
        const std::string token = gs_token(context, rights_);
        request.headers.push_back("Authorization: " + std::string(bearer) + token);
        request.secrets.push_back(token);
    }

    bool repair(const HttpRequest& sent, const HttpAnswer& answer, std::string_view body,
                const SourceContext& context) override {
        if (learn(sent, answer, context)) return true;
        if (writes(sent)) throw write_error(answer, body);
        return false;
    }

    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view body) const override {
        return error_of(answer, body, read_help);
    }
    [[nodiscard]] bool follows_redirects() const override { return false; }
    [[nodiscard]] std::string server(const HttpRequest& /*request*/) const override {
        return server_of(endpoint_);
    }

    // The numbers of versions are never used again; tags are the same for the same bytes.
    [[nodiscard]] std::string version(const HttpAnswer& answer) const override {
        const std::string number = generation(answer);
        return number.empty() ? HttpStore::version(answer) : "generation-" + number;
    }
    [[nodiscard]] bool pins(const HttpAnswer& answer) const override {
        return !generation(answer).empty() || HttpStore::pins(answer);
    }
    void pin(HttpRequest& request, const HttpAnswer& first) const override {
        const std::string number = generation(first);
        if (number.empty())
            HttpStore::pin(request, first);
        else
            request.target += std::string(pinned) + number;
    }

  private:
    static bool writes(const HttpRequest& request) {
        return request.method != "GET" && request.method != "HEAD";
    }
    [[nodiscard]] Error write_error(const HttpAnswer& answer, std::string_view body) const {
        if (answer.status == 412) return target_exists();
        return error_of(answer, body, gs_write_help);
    }
    // `rights_help`: for 403.
    [[nodiscard]] Error error_of(const HttpAnswer& answer, std::string_view body,
                                 const char* rights_help) const;

    bool learn(const HttpRequest& sent, const HttpAnswer& answer, const SourceContext& context) {
        // The version that was asked for is no more.
        if (answer.status == 404 && sent.target.find(pinned) != sent.target.npos)
            throw object_changed();
        if (answer.status != 401 || anonymous_ || has_keys_) return false;
        const std::string refused = sent_header(sent, "authorization").substr(bearer.size());
        // Another reader may have renewed it.
        return gs_token(context, rights_) != refused || renew_gs_token(refused, context, rights_);
    }

    static std::string generation(const HttpAnswer& answer) {
        const std::string_view text = answer.header("x-goog-generation");
        const bool number =
            !text.empty() && text.size() <= 20 && text.find_first_not_of("0123456789") == text.npos;
        return number ? std::string(text) : std::string();
    }

    // As Google verifies requests that are made for S3: the region is any.
    static void sign(HttpRequest& request, const Options& options) {
        const std::string server = server_of(request.url);
        const size_t query = std::min(request.url.find('?'), request.url.size());
        const int64_t time = seconds_now();
        SigV4Request wanted = {
            .method = request.method,
            .path = signed_path(request.url.substr(server.size(), query - server.size())),
            .query = request.url.substr(std::min(query + 1, request.url.size())),
            .headers = {{"host", server.substr(server.find("://") + 3)},
                        {"x-amz-content-sha256", std::string(empty_payload)},
                        {"x-amz-date", amz_date(time)}},
            .payload_hash = std::string(empty_payload)};
        for (const auto& [name, value] : wanted.headers)
            if (name != "host") request.headers.push_back(name + ": " + value);
        const AwsKeys keys = {.access_key = options.gs_access_key,
                              .secret_key = options.gs_secret_key};
        request.headers.push_back(
            "Authorization: " +
            sigv4(wanted, keys, {.region = "auto", .service = "s3", .time = time}));
    }

    const bool objects_;  // not lists
    const GsRights rights_;
    std::string endpoint_;
    bool has_keys_ = false;  // of HMAC
    bool anonymous_ = false;
};

constexpr const char* read_less = "read with fewer processes, or later";
constexpr const char* pay_help =
    "name a project that pays with gs_user_project; the account needs serviceusage.services.use "
    "in it";
constexpr Refusal gs_refusals[] = {
    {"SignatureDoesNotMatch", SHF_E_AUTH, "look at gs_secret_key: it is not that of gs_access_key"},
    {"InvalidSecurity", SHF_E_AUTH, "look at gs_access_key"},
    {"InvalidAccessKeyId", SHF_E_AUTH, "look at gs_access_key"},
    {"RequestTimeTooSkewed", SHF_E_AUTH, "set the clock of this machine"},
    {"UserProjectMissing", SHF_E_AUTH, pay_help},
    {"UserProjectAccessDenied", SHF_E_AUTH, pay_help},
    {"NoSuchKey", SHF_E_NET_PERMANENT, "look at the spelling of the key"},
    {"NoSuchBucket", SHF_E_NET_PERMANENT, "look at the spelling of the bucket, and at gs_endpoint"},
    {"notFound", SHF_E_NET_PERMANENT, "look at the spelling of the bucket, and at gs_endpoint"},
    {"SlowDown", SHF_E_THROTTLED, read_less},
    {"rateLimitExceeded", SHF_E_THROTTLED, read_less},
    {"userRateLimitExceeded", SHF_E_THROTTLED, read_less},
};

Error GsStore::error_of(const HttpAnswer& answer, std::string_view body,
                        const char* rights_help) const {
    const GsFault fault = parse_gs_fault(body);
    Refused refused = {.code = fault.code, .message = fault.message};
    if (refused.code.empty() && refused.message.empty() && answer.status == 404)
        refused.message = "there is no such object or bucket";
    return refusal_error(
        answer, refused, gs_refusals,
        anonymous_ ? "the bucket is not public: leave gs_anonymous out, and give credentials"
                   : nullptr,
        answer.status == 403 ? rights_help
                             : "look at the credentials: the server does not take them");
}

}  // namespace

GsUrl parse_gs_url(std::string_view url) {
    const size_t start = std::min(url.find("://"), url.size());
    const std::string_view rest = url.substr(std::min(start + 3, url.size()));
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view bucket = rest.substr(0, slash);
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    };
    if (bucket.empty() || bucket.size() > 222 || bucket[0] == '.' ||
        !std::all_of(bucket.begin(), bucket.end(), fits))
        refuse_bucket(bucket, "write gs://BUCKET/KEY");
    return {.bucket = std::string(bucket),
            .key = std::string(rest.substr(std::min(slash + 1, rest.size())))};
}

std::shared_ptr<HttpStore> gs_store(const SourceContext& context, GsRights rights) {
    return std::make_shared<GsStore>(context, true, rights);
}

std::string gs_target(const GsUrl& object) {
    return "/" + object.bucket + encoded_path(object.key);
}

std::string gs_list_target(const GsUrl& wanted, std::string_view token) {
    Fields query = {{"fields", "items(name),nextPageToken,kind"},
                    {"maxResults", "1000"},
                    {"prefix", wanted.key}};
    if (!token.empty()) query.emplace_back("pageToken", token);
    return "/storage/v1/b/" + wanted.bucket + "/o?" + canonical_query(query);
}

std::string gs_emulator(std::string_view host) {
    if (host.empty()) return {};
    return (host.find("://") == host.npos ? "http://" : "") + std::string(host);
}

std::vector<std::string> list_gs(const GsUrl& wanted, const SourceContext& context) {
    GsStore store(context, false, GsRights::read);
    const auto fetch = [&](std::string target) {
        HttpRequest request;
        request.target = std::move(target);
        return http_fetch(request, store, context, most_gs_page).body;
    };
    return list_pages(
        wanted.key, "bucket", context.options, [&](const std::string& token) -> StorePage {
            if (!store.has_keys()) return parse_gs_page(fetch(gs_list_target(wanted, token)));
            // The JSON API takes no HMAC keys.
            return parse_s3_page(fetch("/" + wanted.bucket + s3_list_target(wanted.key, token)));
        });
}

}  // namespace shf
