#include "store/azure_store.h"

#include "core/error.h"
#include "core/lowered.h"
#include "core/options.h"
#include "core/per_process.h"
#include "http/http_fetch.h"
#include "http/http_headers.h"
#include "io/sink.h"
#include "store/azure_credentials.h"
#include "store/azure_shared_key.h"
#include "store/azure_token.h"
#include "store/azure_xml.h"
#include "store/endpoint.h"
#include "store/refusal.h"
#include "store/server_clock.h"
#include "store/sigv4.h"
#include "store/store_list.h"
#include "url/azure_host.h"
#include "url/percent.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <set>
#include <utility>

namespace shf {

namespace {

// Emulators refuse newer ones.
constexpr const char* service_version = "x-ms-version: 2021-12-02";
// A clock that is off by less is not why a signature is refused.
constexpr int64_t clock_slack = 14 * 60;  // seconds
constexpr size_t most_azure_page = size_t{64} << 20;

// What servers taught this process.
struct Learned {
    std::mutex mutex;
    std::set<std::string> not_public;  // endpoints and containers
};
constinit PerProcess<Learned> learned;

bool is_container(std::string_view text) {
    return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '$';
    });
}

// The signature in a shared access signature: that alone is secret, as it is sent and as it is.
std::vector<std::string> secrets_of(const AzureKeys& keys) {
    std::vector<std::string> result;
    if (!keys.token.empty()) result.push_back(keys.token);
    if (!keys.sas.empty()) {
        result.push_back(keys.sas);
        const std::string query = "&" + keys.sas;
        const size_t at = query.find("&sig=") + 5;
        result.push_back(query.substr(at, query.find('&', at) - at));
        result.push_back(percent_decoded(result.back()));
    }
    return result;
}

constexpr const char* rights_help =
    "these credentials need the role Storage Blob Data Reader, or the rights r and l of a shared "
    "access signature, and a network that the account lets in";
constexpr const char* busy_help = "read with fewer processes, or later";
constexpr Refusal azure_refusals[] = {
    {"AuthenticationFailed", SHF_E_AUTH,
     "look at the key or the shared access signature, when it ends, and at the clock of this "
     "machine"},
    {"InvalidAuthenticationInfo", SHF_E_AUTH, "look at the credentials: the token is not for this"},
    {"NoAuthenticationInformation", SHF_E_AUTH, "the container is not public: give credentials"},
    {"AuthorizationFailure", SHF_E_AUTH, rights_help},
    {"AuthorizationPermissionMismatch", SHF_E_AUTH, rights_help},
    {"AuthorizationResourceTypeMismatch", SHF_E_AUTH, rights_help},
    {"AuthorizationServiceMismatch", SHF_E_AUTH, rights_help},
    {"AuthorizationProtocolMismatch", SHF_E_AUTH, "the shared access signature is for https alone"},
    {"AuthorizationSourceIPMismatch", SHF_E_AUTH,
     "the shared access signature is for other addresses"},
    {"InsufficientAccountPermissions", SHF_E_AUTH, rights_help},
    {"KeyBasedAuthenticationNotPermitted", SHF_E_AUTH,
     "the account takes no keys: give this machine or program an identity"},
    {"PublicAccessNotPermitted", SHF_E_AUTH,
     "the account has no public containers: leave "
     "az_anonymous out, and give credentials"},
    {"AccountIsDisabled", SHF_E_AUTH, "look at the state of the account, and of what pays for it"},
    {"BlobNotFound", SHF_E_NET_PERMANENT, "look at the spelling of the blob"},
    {"ContainerNotFound", SHF_E_NET_PERMANENT,
     "look at the spelling of the container, and at az_account"},
    {"ResourceNotFound", SHF_E_NET_PERMANENT,
     "look at the spelling of the container and the blob; without credentials what is not public "
     "looks like this too"},
    {"ContainerBeingDeleted", SHF_E_NET_PERMANENT, "look at who deletes the container"},
    {"InvalidQueryParameterValue", SHF_E_NET_PERMANENT, "look at what serves this endpoint"},
    {"InvalidHeaderValue", SHF_E_NET_PERMANENT, "look at what serves this endpoint"},
    {"BlobArchived", SHF_E_NET_PERMANENT, "bring the blob to the tier Hot or Cool first"},
    {"BlobBeingRehydrated", SHF_E_NET_PERMANENT, "wait until the blob is in the tier Hot or Cool"},
    {"ServerBusy", SHF_E_THROTTLED, busy_help},
    {"OperationTimedOut", SHF_E_NET_TRANSIENT, "try again later"},
    {"InternalError", SHF_E_NET_TRANSIENT, "try again later"},
};

constexpr const char* azure_write_help =
    "these credentials need the role Storage Blob Data Contributor, or the rights r, c and w of a "
    "shared access signature";
constexpr Refusal azure_write_refusals[] = {
    {"AuthorizationPermissionMismatch", SHF_E_AUTH, azure_write_help},
    {"AuthorizationFailure", SHF_E_AUTH, azure_write_help},
    {"InsufficientAccountPermissions", SHF_E_AUTH, azure_write_help},
    {"Md5Mismatch", SHF_E_NET_TRANSIENT, "look at what is between this machine and the server"},
    {"InvalidBlobType", SHF_E_NET_PERMANENT, "remove the blob of another type that is there"},
    {"LeaseIdMissing", SHF_E_NET_PERMANENT, "look at who has a lease of the blob"},
    {"InvalidBlockList", SHF_E_NET_PERMANENT,
     "let one writer at a time write a shard of this name"},
    {"ServerBusy", SHF_E_THROTTLED, "write with fewer processes, or later"},
};

class AzureStore final : public HttpStore {
  public:
    AzureStore(const AzureUrl& url, const SourceContext& context)
        : account_(azure_account(url.account, url.endpoint, context)),
          place_(account_.endpoint + "/" + url.container),
          anonymous_(context.options.az_anonymous),
          web_(url.web) {}

    void prepare(HttpRequest& request, const SourceContext& context) override {
        request.url = account_.endpoint + request.target;
        request.certificate = true;
        add_own_headers(request, context.options);
        const std::string server = server_of(account_.endpoint);
        request.headers.push_back("x-ms-date: " + http_date(server_time(server)));
        if (sent_header(request, "x-ms-version").empty())
            request.headers.emplace_back(service_version);
        const AzureKeys keys = current_keys(context);
        if (!keys.account_key.empty()) {
            if (account_.name.empty())
                throw Error(SHF_E_USAGE, "a key of an account, and nothing says which",
                            "give az_account, or set AZURE_STORAGE_ACCOUNT");
            request.headers.push_back("Authorization: " +
                                      shared_key(request, account_.name, keys.account_key));
        } else if (!keys.token.empty()) {
            if (!is_safe_service(account_.endpoint))
                throw Error(SHF_E_USAGE, "a token is not sent to an endpoint without TLS",
                            "write the endpoint with https://");
            request.headers.push_back("Authorization: Bearer " + keys.token);
        } else if (!keys.sas.empty()) {
            request.url += (request.url.find('?') == std::string::npos ? "?" : "&") + keys.sas;
        }
        for (std::string& secret : secrets_of(keys)) request.secrets.push_back(std::move(secret));
    }

    bool repair(const HttpRequest& sent, const HttpAnswer& answer, std::string_view body,
                const SourceContext& context) override {
        if (learn(sent, answer, body, context)) return true;
        if (sent.method != "GET" && sent.method != "HEAD") throw write_error(answer, body);
        return false;
    }

    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view body) const override {
        return error_of(answer, fault_of(answer, body), azure_refusals);
    }
    [[nodiscard]] bool follows_redirects() const override { return false; }
    [[nodiscard]] std::string server(const HttpRequest& /*request*/) const override {
        return server_of(account_.endpoint);
    }

  private:
    // Of a request that writes.
    [[nodiscard]] Error write_error(const HttpAnswer& answer, std::string_view body) const {
        const AzureFault fault = fault_of(answer, body);
        if (fault.code == "BlobAlreadyExists" || answer.status == 412) return target_exists();
        for (const Refusal& refusal : azure_write_refusals)
            if (fault.code == refusal.code) return error_of(answer, fault, azure_write_refusals);
        return error_of(answer, fault, azure_refusals);
    }
    [[nodiscard]] Error error_of(const HttpAnswer& answer, const AzureFault& fault,
                                 std::span<const Refusal> rows) const {
        std::string said = fault.message;
        if (!fault.detail.empty()) said += (said.empty() ? "" : ": ") + fault.detail;
        return refusal_error(
            answer, {.code = fault.code, .message = said}, rows,
            anonymous_ ? "the container is not public: leave az_anonymous out, and give credentials"
                       : nullptr,
            "look at the credentials and their rights");
    }

    bool learn(const HttpRequest& sent, const HttpAnswer& answer, std::string_view body,
               const SourceContext& context) {
        const std::string authorization = sent_header(sent, "authorization");
        if (authorization.starts_with("SharedKey "))
            return fault_of(answer, body).code == "AuthenticationFailed" &&
                   learn_server_time(server_of(account_.endpoint), sent_header(sent, "x-ms-date"),
                                     answer, clock_slack);
        if (authorization.starts_with("Bearer ") && answer.status == 401) {
            const AzureKeys keys = azure_keys(account_, context);
            // Another reader may have renewed it.
            return "Bearer " + keys.token != authorization || renew_azure_keys(keys, context);
        }
        return web_ && authorization.empty() && sent.url == account_.endpoint + sent.target &&
               learn_not_public(answer, context);
    }

    [[nodiscard]] AzureKeys current_keys(const SourceContext& context) const {
        if (anonymous_) return {};
        if (!web_ || known_not_public()) return azure_keys(account_, context);
        return configured_azure_keys(account_, context).value_or(AzureKeys());
    }

    static AzureFault fault_of(const HttpAnswer& answer, std::string_view body) {
        AzureFault fault = parse_azure_fault(body);
        if (const std::string code(answer.header("x-ms-error-code")); !code.empty())
            fault.code = code;
        return fault;
    }

    [[nodiscard]] bool known_not_public() const {
        Learned& all = learned.get();
        const std::lock_guard lock(all.mutex);
        return all.not_public.contains(place_);
    }

    // A URL of the web was asked for without credentials, and the machine may have some.
    [[nodiscard]] bool learn_not_public(const HttpAnswer& answer,
                                        const SourceContext& context) const {
        if (answer.status != 401 && answer.status != 403 && answer.status != 404 &&
            answer.status != 409)
            return false;
        try {
            if (azure_keys(account_, context).none()) return false;
        } catch (const Error& error) {
            if (error.code() == SHF_E_AUTH) return false;
            throw;
        }
        Learned& all = learned.get();
        const std::lock_guard lock(all.mutex);
        all.not_public.insert(place_);
        return true;
    }

    const AzureAccount account_;
    const std::string place_;
    const bool anonymous_;
    const bool web_;
};

[[noreturn]] void refuse_url(const std::string& cause) {
    throw Error(SHF_E_USAGE, cause,
                "write az://CONTAINER/BLOB or "
                "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/BLOB");
}

}  // namespace

AzureUrl parse_azure_url(std::string_view url) {
    AzureUrl result;
    const size_t mark = std::min(url.find("://"), url.size());
    const std::string scheme = lowered(url.substr(0, mark));
    const size_t first = std::min(mark + 3, url.size());
    const size_t slash = std::min(url.find('/', first), url.size());
    std::string_view authority = url.substr(first, slash - first);
    size_t start = std::min(slash + 1, url.size());
    result.web = scheme == "https";
    if (scheme == "az") {
        result.container = authority;
    } else {
        if (result.web) {
            const size_t end = std::min(url.find('/', start), url.size());
            result.container = percent_decoded(url.substr(start, end - start));
            start = std::min(end + 1, url.size());
        } else {
            const size_t at = std::min(authority.find('@'), authority.size());
            result.container = authority.substr(0, at);
            authority.remove_prefix(std::min(at + 1, authority.size()));
        }
        const auto host = azure_host(authority);
        if (!host) refuse_url("there is no host of Azure in this URL");
        result.account = host->account;
        result.endpoint = "https://" + host->blob_host;
    }
    if (!is_container(result.container))
        refuse_url("\"" + escape(result.container) + "\" is not the name of a container");
    result.start = url.substr(0, start);
    const std::string_view name = url.substr(start);
    result.blob = result.web ? percent_decoded(name) : std::string(name);
    for (size_t at = 0; result.web && (at = name.find('%', at)) != name.npos; ++at)
        if (name.size() - at < 3 || percent_decoded(name.substr(at, 3)).size() != 1)
            throw Error(SHF_E_USAGE, "a percent sign in this URL begins no %XX",
                        "write %25 for a percent sign");
    result.target = "/" + result.container + encoded_path(result.blob);
    return result;
}

std::string azure_url_of(std::string_view blob, const AzureUrl& near, std::string_view url) {
    const std::string_view rest = blob.substr(near.blob.size());
    return std::string(url) + (near.web ? percent_encode(rest, "/") : std::string(rest));
}

std::shared_ptr<HttpStore> azure_store(const AzureUrl& url, const SourceContext& context) {
    return std::make_shared<AzureStore>(url, context);
}

std::string azure_list_target(std::string_view container, std::string_view prefix,
                              std::string_view marker) {
    Fields query = {{"restype", "container"}, {"comp", "list"}, {"maxresults", "5000"}};
    if (!prefix.empty()) query.emplace_back("prefix", prefix);
    if (!marker.empty()) query.emplace_back("marker", marker);
    return std::string("/").append(container) + "?" + canonical_query(query);
}

std::vector<std::string> list_azure(const AzureUrl& url, const SourceContext& context) {
    const auto store = azure_store(url, context);
    return list_pages(url.blob, "container", context.options, [&](const std::string& marker) {
        HttpRequest request;
        request.target = azure_list_target(url.container, url.blob, marker);
        return parse_azure_page(http_fetch(request, *store, context, most_azure_page).body);
    });
}

}  // namespace shf
