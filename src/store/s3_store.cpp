#include "store/s3_store.h"

#include "core/error.h"
#include "core/lowered.h"
#include "core/options.h"
#include "core/per_process.h"
#include "http/http_fetch.h"
#include "http/http_headers.h"
#include "http/libcrypto.h"
#include "http/libcurl.h"
#include "io/sink.h"
#include "store/aws_config.h"
#include "store/aws_credentials.h"
#include "store/endpoint.h"
#include "store/refusal.h"
#include "store/s3_xml.h"
#include "store/server_clock.h"
#include "store/sigv4.h"
#include "store/store_list.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace shf {

namespace {

constexpr const char* first_region = "us-east-1";
// A clock that is off by less is not worth another attempt.
constexpr std::string_view checksum_mode = "x-amz-checksum-mode";
constexpr int64_t clock_slack = 60;  // seconds
constexpr size_t most_s3_page = size_t{64} << 20;

// What servers taught this process.
struct Learned {
    std::mutex mutex;
    std::map<std::string, std::string> regions;  // by server and bucket
    std::set<std::string> without_checksums;     // servers that refuse to be asked for them
};
constinit PerProcess<Learned> learned;

bool is_one_of(char c, std::string_view marks) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || marks.find(c) != marks.npos;
}

// It becomes part of a host name.
bool is_region(std::string_view text) {
    return !text.empty() && text.size() <= 64 &&
           std::all_of(text.begin(), text.end(), [](char c) { return is_one_of(c, "-"); });
}

// Whether it can stand in front of a host; under TLS a dot would fit no certificate.
bool is_host_label(std::string_view bucket) {
    return std::all_of(bucket.begin(), bucket.end(), [](char c) { return is_one_of(c, "-"); });
}

// The region in "bucket.s3.eu-west-1.amazonaws.com" or "bucket.s3-eu-west-1.amazonaws.com".
std::string region_of_host(const std::string& host) {
    const size_t end = host.find(".amazonaws.");
    if (end == host.npos) return {};
    const size_t start = host.rfind("s3", end);
    if (start == host.npos || start + 3 > end) return {};
    return host.substr(start + 3, end - start - 3);
}

class S3Store final : public HttpStore {
  public:
    S3Store(std::string bucket, const SourceContext& context) : bucket_(std::move(bucket)) {
        const Options& options = context.options;
        const AwsConfig config = aws_config(options);
        anonymous_ = options.s3_anonymous;
        if (anonymous_ && !options.s3_access_key.empty())
            throw Error(SHF_E_USAGE, "the options s3_anonymous and s3_access_key do not fit",
                        "leave one of them out");
        region_ = config.region(options);
        if (!region_.empty() && !is_region(region_))
            throw Error(SHF_E_USAGE, "the region \"" + escape(region_) + "\" has bad characters",
                        "write it like eu-central-1");
        endpoint_ = options.s3_endpoint.empty() ? config.endpoint("s3") : options.s3_endpoint;
        if (!endpoint_.empty())
            endpoint_ = checked_endpoint(
                endpoint_, "S3",
                "look at the option s3_endpoint, at AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL, and "
                "at endpoint_url in ~/.aws/config");
        S3Addressing style = options.s3_addressing;
        if (style == S3Addressing::automatic) {
            const std::string text = config.setting("s3.addressing_style");
            if (text == "path") style = S3Addressing::path;
            if (text == "virtual") style = S3Addressing::virtual_host;
        }
        in_path_ = style == S3Addressing::path || !is_host_label(bucket_) ||
                   (style == S3Addressing::automatic && !endpoint_.empty());
    }

    void prepare(HttpRequest& request, const SourceContext& context) override {
        const Options& options = context.options;
        const std::string region = current_region(), base = base_url(region);
        const std::string server = server_of(base);
        const size_t query = std::min(request.target.find('?'), request.target.size());
        std::string path = base.substr(server.size()) + request.target.substr(0, query);
        if (path.empty()) path = "/";
        request.url = server + path + request.target.substr(query);
        request.certificate = true;
        add_own_headers(request, options);
        if (options.s3_requester_pays)
            request.headers.emplace_back("x-amz-request-payer: requester");
        if (request.digest && has_digests())
            request.headers.push_back(std::string(checksum_mode) + ": ENABLED");
        if (anonymous_) return;
        const AwsKeys keys = aws_keys(context);
        const int64_t time = server_time(server);
        const std::string_view payload = request.payload();
        // By which the server verifies the bytes too.
        const std::string hash =
            payload.empty() ? std::string(empty_payload) : hex(text_of(sha256(payload)));
        request.headers.push_back("x-amz-date: " + amz_date(time));
        request.headers.push_back("x-amz-content-sha256: " + hash);
        if (!keys.session_token.empty()) {
            request.headers.push_back("x-amz-security-token: " + keys.session_token);
            request.secrets.push_back(keys.session_token);
        }
        SigV4Request wanted = {
            .method = request.method,
            .path = signed_path(path),
            .query = request.target.substr(std::min(query + 1, request.target.size())),
            .headers = {{"host", server.substr(server.find("://") + 3)}},
            .payload_hash = hash};
        for (const std::string& line : request.headers)
            if (std::string name = header_name(line); name.starts_with("x-amz-"))
                wanted.headers.emplace_back(std::move(name), line.substr(line.find(':') + 1));
        request.headers.push_back(
            "Authorization: " +
            sigv4(wanted, keys, {.region = region, .service = "s3", .time = time}));
    }

    bool repair(const HttpRequest& sent, const HttpAnswer& answer, std::string_view body,
                const SourceContext& context) override {
        const S3Fault fault = parse_s3_fault(body);
        if (learn(sent, answer, fault, context)) return true;
        if (sent.method != "GET" && sent.method != "HEAD") throw write_error(sent, answer, fault);
        return false;
    }

    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view body) const override;
    // With a range they come where it is the whole object.
    [[nodiscard]] bool has_digests() const override {
        Learned& all = learned.get();
        const std::lock_guard lock(all.mutex);
        return !all.without_checksums.contains(endpoint_);
    }
    [[nodiscard]] bool follows_redirects() const override { return false; }
    [[nodiscard]] std::string server(const HttpRequest& /*request*/) const override {
        return server_of(base_url(current_region()));
    }

  private:
    // Of a request that writes.
    [[nodiscard]] Error write_error(const HttpRequest& sent, const HttpAnswer& answer,
                                    const S3Fault& fault) const;
    [[nodiscard]] Error error_of(const HttpAnswer& answer, const S3Fault& fault,
                                 std::span<const Refusal> rows) const;

    bool learn(const HttpRequest& sent, const HttpAnswer& answer, const S3Fault& fault,
               const SourceContext& context) {
        if (learn_region(sent, answer, fault)) return true;
        if (learn_checksums(sent, answer, fault)) return true;
        if (anonymous_) return false;
        if (fault.code == "RequestTimeTooSkewed") return learn_clock(sent, answer);
        if (fault.code == "ExpiredToken" || fault.code == "ExpiredTokenException" ||
            fault.code == "TokenRefreshRequired") {
            const AwsKeys keys = aws_keys(context);
            // Another reader may have renewed them.
            return keys.session_token != sent_header(sent, "x-amz-security-token") ||
                   renew_aws_keys(keys, context);
        }
        return false;
    }

    [[nodiscard]] std::string current_region() const {
        Learned& all = learned.get();
        const std::lock_guard lock(all.mutex);
        const auto at = all.regions.find(endpoint_ + " " + bucket_);
        if (at != all.regions.end()) return at->second;
        return region_.empty() ? first_region : region_;
    }

    // Of the bucket.
    [[nodiscard]] std::string base_url(const std::string& region) const {
        const std::string end = region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
        const std::string url = endpoint_.empty() ? "https://s3." + region + end : endpoint_;
        if (in_path_) return url + "/" + bucket_;
        const size_t host = url.find("://") + 3;
        return url.substr(0, host) + bucket_ + "." + url.substr(host);
    }

    bool learn_region(const HttpRequest& sent, const HttpAnswer& answer, const S3Fault& fault) {
        std::string region(answer.header("x-amz-bucket-region"));
        if (region.empty()) region = fault.region;
        if (region.empty() && (answer.status == 301 || answer.status == 307))
            region = region_of_host(fault.endpoint);
        if (!is_region(region)) return false;
        if (region != current_region()) {
            Learned& all = learned.get();
            const std::lock_guard lock(all.mutex);
            all.regions[endpoint_ + " " + bucket_] = region;
            return true;
        }
        // Another reader may have learned it after this request was made.
        if (!anonymous_)
            return sent_header(sent, "authorization").find("/" + region + "/s3/") ==
                   std::string::npos;
        return !sent.url.starts_with(base_url(region));
    }

    // Some servers refuse headers that they do not know.
    bool learn_checksums(const HttpRequest& sent, const HttpAnswer& answer, const S3Fault& fault) {
        if (sent_header(sent, checksum_mode).empty()) return false;
        const bool named = lowered(fault.message).find(checksum_mode) != std::string::npos;
        if (answer.status != 501 && !(answer.status == 400 && named)) return false;
        Learned& all = learned.get();
        const std::lock_guard lock(all.mutex);
        all.without_checksums.insert(endpoint_);
        return true;
    }

    static bool learn_clock(const HttpRequest& sent, const HttpAnswer& answer) {
        // 20261124T081500Z, as dates in headers are written.
        const std::string time = sent_header(sent, "x-amz-date");
        if (time.size() != 16) return false;
        const std::string date = time.substr(0, 8) + " " + time.substr(9, 2) + ":" +
                                 time.substr(11, 2) + ":" + time.substr(13, 2) + " GMT";
        return learn_server_time(server_of(sent.url), date, answer, clock_slack);
    }

    const std::string bucket_;
    std::string endpoint_;  // empty: AWS
    std::string region_;    // empty: not given
    bool anonymous_ = false;
    bool in_path_ = false;  // where the bucket stands
};

constexpr Refusal s3_refusals[] = {
    {"AccessDenied", SHF_E_AUTH,
     "these credentials need s3:GetObject on the shards and s3:ListBucket on the bucket; without "
     "the second a missing object looks like this too"},
    {"SignatureDoesNotMatch", SHF_E_AUTH, "look at the secret key: it is not that of the key id"},
    {"InvalidAccessKeyId", SHF_E_AUTH, "look at the key id, and at which endpoint it belongs to"},
    {"XAdminUserNotFound", SHF_E_AUTH, "look at the key id, and at which endpoint it belongs to"},
    {"InvalidToken", SHF_E_AUTH, "look at the session token"},
    {"ExpiredToken", SHF_E_AUTH, "get new credentials; those of roles and profiles are renewed"},
    {"ExpiredTokenException", SHF_E_AUTH,
     "get new credentials; those of roles and profiles are renewed"},
    {"TokenRefreshRequired", SHF_E_AUTH,
     "get new credentials; those of roles and profiles are renewed"},
    {"RequestTimeTooSkewed", SHF_E_AUTH, "set the clock of this machine"},
    {"AuthorizationHeaderMalformed", SHF_E_AUTH, "look at the option s3_region"},
    {"InvalidObjectState", SHF_E_NET_PERMANENT, "restore the object from its archive first"},
    {"NoSuchKey", SHF_E_NET_PERMANENT, "look at the spelling of the key"},
    {"NoSuchBucket", SHF_E_NET_PERMANENT, "look at the spelling of the bucket, and at s3_endpoint"},
    {"PermanentRedirect", SHF_E_NET_PERMANENT, "set s3_region to the region of the bucket"},
    {"SlowDown", SHF_E_THROTTLED, "read with fewer processes, or later"},
    {"ServiceUnavailable", SHF_E_THROTTLED, "read with fewer processes, or later"},
    {"RequestTimeout", SHF_E_NET_TRANSIENT, "try again later"},
};

constexpr const char* damaged_help = "look at what is between this machine and the server";
constexpr Refusal s3_write_refusals[] = {
    {"AccessDenied", SHF_E_AUTH,
     "these credentials need s3:PutObject on the shards, and s3:AbortMultipartUpload"},
    {"NoSuchUpload", SHF_E_NET_PERMANENT,
     "look at who aborts uploads: a rule of the bucket, or somebody"},
    {"ConditionalRequestConflict", SHF_E_NET_PERMANENT,
     "let one writer at a time write a shard of this name"},
    {"BadDigest", SHF_E_NET_TRANSIENT, damaged_help},
    {"XAmzContentSHA256Mismatch", SHF_E_NET_TRANSIENT, damaged_help},
    {"XAmzContentChecksumMismatch", SHF_E_NET_TRANSIENT, damaged_help},
    {"EntityTooLarge", SHF_E_LIMIT, "set max_bytes"},
    {"QuotaExceeded", SHF_E_NOSPACE, "make room in the bucket, or raise its quota"},
    {"SlowDown", SHF_E_THROTTLED, "write with fewer processes, or later"},
    {"ServiceUnavailable", SHF_E_THROTTLED, "write with fewer processes, or later"},
};

Error S3Store::write_error(const HttpRequest& sent, const HttpAnswer& answer,
                           const S3Fault& fault) const {
    if (answer.status == 412 && !sent_header(sent, "if-none-match").empty()) return target_exists();
    for (const Refusal& refusal : s3_write_refusals)
        if (fault.code == refusal.code) return error_of(answer, fault, s3_write_refusals);
    return error_of(answer, fault, s3_refusals);
}

Error S3Store::error(const HttpAnswer& answer, std::string_view body) const {
    return error_of(answer, parse_s3_fault(body), s3_refusals);
}

Error S3Store::error_of(const HttpAnswer& answer, const S3Fault& fault,
                        std::span<const Refusal> rows) const {
    std::string host(answer.header("x-amz-id-2"));
    if (host.empty()) host = fault.host_id;
    return refusal_error(
        answer, {fault.code, fault.message, fault.request_id, host}, rows,
        anonymous_ ? "the bucket is not public: leave s3_anonymous out, and give credentials"
                   : nullptr,
        "look at the credentials and their rights");
}

}  // namespace

S3Url parse_s3_url(std::string_view url) {
    const size_t start = std::min(url.find("://"), url.size());
    const std::string_view rest = url.substr(std::min(start + 3, url.size()));
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view bucket = rest.substr(0, slash);
    const auto fits = [](char c) { return is_one_of(c, ".-_") || (c >= 'A' && c <= 'Z'); };
    if (bucket.empty() || bucket.size() > 255 || bucket[0] == '.' ||
        !std::all_of(bucket.begin(), bucket.end(), fits))
        refuse_bucket(bucket, "write s3://BUCKET/KEY");
    return {.bucket = std::string(bucket),
            .key = std::string(rest.substr(std::min(slash + 1, rest.size())))};
}

std::shared_ptr<HttpStore> s3_store(const std::string& bucket, const SourceContext& context) {
    return std::make_shared<S3Store>(bucket, context);
}

std::string s3_target(std::string_view key) {
    return encoded_path(key);
}

std::string s3_list_target(std::string_view prefix, std::string_view continuation) {
    Fields query = {{"list-type", "2"}, {"prefix", std::string(prefix)}, {"encoding-type", "url"}};
    if (!continuation.empty()) query.emplace_back("continuation-token", continuation);
    return std::string("?").append(canonical_query(query));
}

std::string s3_uploads_target(std::string_view prefix, const S3UploadPage& page) {
    Fields query = {{"uploads", ""}, {"prefix", std::string(prefix)}, {"encoding-type", "url"}};
    if (page.more) {
        query.emplace_back("key-marker", page.next.key);
        query.emplace_back("upload-id-marker", page.next.number);
    }
    return std::string("?").append(canonical_query(query));
}

std::vector<std::string> list_s3(const std::string& bucket, const std::string& prefix,
                                 const SourceContext& context) {
    const auto store = s3_store(bucket, context);
    return list_pages(prefix, "bucket", context.options, [&](const std::string& next) {
        HttpRequest request;
        request.target = s3_list_target(prefix, next);
        return parse_s3_page(http_fetch(request, *store, context, most_s3_page).body);
    });
}

}  // namespace shf
