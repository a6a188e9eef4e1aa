// What Google says in JSON, and files of credentials.
#pragma once

#include "store/renewed.h"
#include "store/store_list.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// One page of objects.list of the JSON API. Throws Error(NET_PERMANENT) for what is no such page.
StorePage parse_gs_page(std::string_view body);

// What an object is made of: its key, the number of its upload, and where it is known its MD5, as
// bytes.
std::string gs_object_json(const std::string& key, const std::string& id,
                           const std::optional<std::string>& md5);
// What the server says of an object. Empty: not said.
struct GsObject {
    std::string md5{};  // base64
    std::string generation{};
};
// Of any text; what is no such JSON says nothing.
GsObject parse_gs_object(std::string_view body);

// One step of a copy in the store.
struct GsRewrite {
    bool done = false;
    std::string token{};  // of the next step; empty: not said
};
// Of any text; what is no such JSON says nothing.
GsRewrite parse_gs_rewrite(std::string_view body);

// A refusal: the XML of the XML API, the JSON of the JSON API, or that of OAuth. Empty: not said.
struct GsFault {
    std::string code{}, message{};
};
// Of any text; what is none of these says nothing.
GsFault parse_gs_fault(std::string_view body);

// An access token, which goes into a header.
using GsToken = Expiring<std::string>;
// The answer of a server that gives tokens, at the time `now`: that of OAuth, or of the service
// that lets one account act as another. Throws Error(AUTH), which shows nothing of it.
GsToken parse_gs_token(std::string_view body, int64_t now);

enum class GsAccountKind : uint8_t { service, user, external, impersonated };

// A file of credentials.
struct GsAccount {
    GsAccountKind kind{};
    std::string token_url{};  // who gives tokens
    // Of a service account.
    std::string email{}, private_key{}, key_id{};
    // Of a user.
    std::string client_id{}, client_secret{}, refresh_token{};
    // Of an external account: what it shows is in a file, or given by a server.
    std::string audience{}, subject_type{}, subject_file{}, subject_url{};
    std::vector<std::string> subject_headers{};  // "Name: value"
    std::string subject_field{};                 // of JSON; empty: it is plain text
    // The account that it acts as; empty: itself.
    std::string impersonation_url{};
    std::vector<std::string> delegates{};
    std::shared_ptr<const GsAccount> source{};  // of an impersonated one: who acts
};
// `name` is the file's, for messages, which show nothing of its text. Throws Error: AUTH, and
// UNSUPPORTED for kinds that are not known.
GsAccount parse_gs_account(std::string_view text, const std::string& name);

// The text of a field in JSON, "" or all of a text that is plain. Throws Error(AUTH).
std::string subject_token(const std::string& text, const std::string& field);

}  // namespace shf
