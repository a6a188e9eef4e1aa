#include "store/hf_store.h"

#include "core/error.h"
#include "core/lowered.h"
#include "core/options.h"
#include "http/http_fetch.h"
#include "http/http_headers.h"
#include "http/http_url.h"
#include "store/endpoint.h"
#include "store/json_text.h"
#include "store/settings.h"
#include "store/sigv4.h"
#include "store/store_list.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace shf {

namespace {

constexpr const char* form = "write hf://datasets/OWNER/NAME/PATH, or hf://OWNER/NAME/PATH";
constexpr const char* endpoint_help = "look at the option hf_endpoint, and at HF_ENDPOINT";

std::string endpoint_of(const Options& options) {
    std::string url =
        options.hf_endpoint.empty() ? environment("HF_ENDPOINT") : options.hf_endpoint;
    if (url.empty()) url = "https://huggingface.co";
    return checked_endpoint(std::move(url), "Hugging Face", endpoint_help);
}

bool is_set(const char* name) {
    std::string value = environment(name);
    for (char& c : value) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// As huggingface_hub looks for it.
std::string token_path() {
    if (std::string path = environment("HF_TOKEN_PATH"); !path.empty()) return path;
    if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/token";
    if (const std::string home = environment("XDG_CACHE_HOME"); !home.empty())
        return home + "/huggingface/token";
    return home_path(".cache/huggingface/token");
}

// Empty: there is none.
std::string token_of(const Options& options) {
    if (!options.hf_token.empty()) return options.hf_token;
    if (is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return {};
    for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
        if (std::string token = environment(name); !token.empty()) return token;
    std::string token;
    if (!read_small_file(token_path(), token)) return {};
    const size_t end = token.find_last_not_of(" \t\r\n");
    token.erase(end == token.npos ? 0 : end + 1);
    token.erase(0, token.find_first_not_of(" \t\r\n"));
    return token;
}

class HfStore final : public HttpStore {
  public:
    HfStore(const HfUrl& url, const Options& options)
        : repository_(url.repository), endpoint_(endpoint_of(options)), token_(token_of(options)) {
        if (std::any_of(token_.begin(), token_.end(), [](char c) { return c <= ' ' || c > '~'; }))
            throw Error(SHF_E_USAGE, "the token of Hugging Face has bad characters",
                        "look at the option hf_token, at HF_TOKEN, and at the file that hf auth "
                        "login writes");
    }

    void prepare(HttpRequest& request, const SourceContext& context) override {
        request.url = endpoint_ + request.target;
        request.certificate = true;
        add_own_headers(request, context.options);
        if (!token_.empty()) {
            request.headers.push_back("Authorization: Bearer " + token_);
            request.secrets.push_back(token_);
        }
    }

    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view /*body*/) const override {
        const Error plain = answer.error();
        const std::string code(answer.header("x-error-code"));
        if (code.empty()) return plain;
        const std::string said(answer.header("x-error-message"));
        const std::string cause =
            "the server answers " + std::to_string(answer.status) + " " + escape(code) +
            (said.empty() ? "" : ": " + escape(said)) +
            (answer.request_id.empty() ? "" : " (request " + escape(answer.request_id) + ")");
        if (code == "GatedRepo")
            return Error(SHF_E_AUTH, cause,
                         "agree to the conditions at " + endpoint_ + "/" + repository_ +
                             (token_.empty() ? ", and run hf auth login or set HF_TOKEN"
                                             : ", as the owner of the token"));
        // Of a private repository the server says the same.
        if (code == "RepoNotFound")
            return Error(
                token_.empty() || answer.status != 404 ? SHF_E_AUTH : SHF_E_NET_PERMANENT, cause,
                token_.empty() ? "look at the spelling of " + repository_ +
                                     "; for a private repository run hf auth login or set HF_TOKEN"
                               : "look at the spelling of " + repository_ +
                                     ", and at the rights of the token");
        if (code == "RevisionNotFound")
            return Error(SHF_E_NET_PERMANENT, cause, "look at what stands behind @ in the URL");
        if (code == "EntryNotFound")
            return Error(SHF_E_NET_PERMANENT, cause, "look at the spelling of the path");
        return Error(plain.code(), cause, plain.fault().help);
    }
    [[nodiscard]] std::string server(const HttpRequest& /*request*/) const override {
        return server_of(endpoint_);
    }

  private:
    const std::string repository_, endpoint_, token_;
};

// The folder in which all paths are that begin with that of `url`.
std::string list_target(const HfUrl& url) {
    const std::string kind = url.repository.find('/') == url.repository.rfind('/') ? "models/" : "";
    const size_t slash = url.path.rfind('/');
    const std::string folder = slash == url.path.npos ? "" : url.path.substr(0, slash);
    return "/api/" + kind + url.repository + "/tree/" +
           percent_encode(url.revision.empty() ? "main" : url.revision) +
           (folder.empty() ? "" : encoded_path(folder)) + "?recursive=true&limit=1000";
}

// The parameters of a link (RFC 8288, 3), from `at` on, which is moved behind them: to the comma
// before the next link, or the end. A comma inside of quotes is none.
std::string_view parameters_of_link(std::string_view link, size_t& at) {
    const size_t first = at;
    bool quoted = false;
    for (; at < link.size() && (quoted || link[at] != ','); ++at) {
        if (quoted && link[at] == '\\')
            ++at;
        else if (link[at] == '"')
            quoted = !quoted;
    }
    at = std::min(at, link.size());
    return link.substr(first, at - first);
}

// Whether the first "rel" has the relation "next"; names and relations in any case (RFC 8288, 3.3).
bool is_next(std::string_view parameters) {
    std::string text = lowered(parameters);
    for (size_t at = 0; (at = text.find("rel", at)) != text.npos; ++at) {
        const size_t before = text.find_last_not_of(" \t", at - 1);
        const size_t equal = text.find_first_not_of(" \t", at + 3);
        if (at == 0 || before == text.npos || text[before] != ';' || equal == text.npos ||
            text[equal] != '=')
            continue;
        size_t value = text.find_first_not_of(" \t", equal + 1);
        if (value == text.npos) return false;
        const bool quoted = text[value] == '"';
        if (quoted) ++value;
        const size_t end = std::min(text.find_first_of(quoted ? "\"" : "; \t", value), text.size());
        const std::string relations = " " + text.substr(value, end - value) + " ";
        return relations.find(" next ") != relations.npos;
    }
    return false;
}

}  // namespace

HfUrl parse_hf_url(std::string_view url) {
    const auto refuse = [&] {
        throw Error(SHF_E_USAGE, "this URL names no file of a repository", form);
    };
    std::string_view rest = url.substr(std::min(url.find("://") + 3, url.size()));
    HfUrl result;
    const auto take = [&] {
        const size_t end = std::min(rest.find('/'), rest.size());
        const std::string_view part = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        return std::string(part);
    };
    std::string owner = take();
    if (owner == "datasets" || owner == "spaces" || owner == "models") {
        if (owner != "models") result.repository = owner + "/";
        owner = take();
    }
    std::string name = take();
    if (const size_t at = name.find('@'); at != name.npos) {
        result.revision = name.substr(at + 1);
        for (const char* const slash : {"%2F", "%2f"})
            for (size_t found; (found = result.revision.find(slash)) != result.revision.npos;)
                result.revision.replace(found, 3, 1, '/');
        name.erase(at);
        if (result.revision.empty()) refuse();
        // "refs/pr/1" and "refs/convert/parquet" are written with their slashes too.
        if (result.revision == "refs") {
            result.revision += "/" + take();
            result.revision += "/" + take();
        }
    }
    const auto fits = [](const std::string& part) {
        return !part.empty() && part.size() <= 96 && part[0] != '.' &&
               std::all_of(part.begin(), part.end(), [](char c) {
                   return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
                          c == '_' || c == '.';
               });
    };
    if (!fits(owner) || !fits(name)) refuse();
    result.repository += owner + "/" + name;
    result.path = rest;
    return result;
}

std::shared_ptr<HttpStore> hf_store(const HfUrl& url, const SourceContext& context) {
    return std::make_shared<HfStore>(url, context.options);
}

std::string hf_target(const HfUrl& url) {
    return "/" + url.repository + "/resolve/" +
           percent_encode(url.revision.empty() ? "main" : url.revision) + encoded_path(url.path);
}

std::vector<std::string> parse_hf_page(const std::string& body) {
    const auto json = parse_json(body);
    const auto refuse = [] {
        throw Error(SHF_E_NET_PERMANENT, "the list of the repository is not one",
                    "look at what serves this endpoint, or name the shards one by one");
    };
    if (!json.is_array()) refuse();
    std::vector<std::string> paths;
    for (const auto& entry : json) {
        if (!entry.is_object() || !entry.contains("type") || !entry["type"].is_string() ||
            !entry.contains("path") || !entry["path"].is_string())
            refuse();
        if (entry["type"] == "file") paths.push_back(entry["path"].get<std::string>());
    }
    return paths;
}

std::string next_hf_page(std::string_view link, const std::string& endpoint) {
    size_t at = 0;
    while ((at = link.find('<', at)) != link.npos) {
        const size_t close = link.find('>', at);
        if (close == link.npos) break;
        const std::string place(link.substr(at + 1, close - at - 1));
        at = close + 1;
        if (!is_next(parameters_of_link(link, at))) continue;
        const std::string next = resolve_url(endpoint + "/", place);
        if (!next.starts_with(endpoint + "/"))
            throw Error(SHF_E_NET_PERMANENT, "the list continues on another server", endpoint_help);
        return next.substr(endpoint.size());
    }
    return {};
}

std::vector<std::string> list_hf(const HfUrl& url, const SourceContext& context) {
    const auto store = hf_store(url, context);
    const std::string endpoint = endpoint_of(context.options);
    return list_pages(url.path, "repository", context.options, [&](const std::string& next) {
        HttpRequest request;
        request.target = next.empty() ? list_target(url) : next;
        const HttpReply reply = http_fetch(request, *store, context);
        StorePage page{.keys = parse_hf_page(reply.body),
                       .next = next_hf_page(reply.answer.headers_of("link"), endpoint)};
        if (page.next.empty() && !reply.answer.all_headers)
            throw Error(SHF_E_NET_PERMANENT,
                        "the list cannot be used: with more than 256 headers it does not say "
                        "whether there is another page",
                        endpoint_help);
        // The whole folder was asked for.
        std::erase_if(page.keys,
                      [&](const std::string& path) { return !path.starts_with(url.path); });
        return page;
    });
}

}  // namespace shf
