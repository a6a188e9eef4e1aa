#include "http/http_exchange.h"

#include "core/options.h"
#include "http/http_url.h"

#include <array>
#include <utility>

namespace shf {

namespace {

constexpr unsigned most_redirects = 10;
constexpr unsigned most_repairs = 3;
// Of the body of a refusal: the XML or JSON of a store, which says why.
constexpr size_t most_reason = 64 * 1024;

// As far as it comes: without it the status says enough.
std::string reason_of(HttpTransfer& transfer) {
    std::string text;
    std::array<uint8_t, 4096> piece;
    try {
        while (text.size() < most_reason) {
            const size_t count = transfer.read(piece);
            if (count == 0) break;
            text.append(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(count));
        }
    } catch (const Error& error) {
        if (error.code() != SHF_E_NET_TRANSIENT) throw;
    }
    return text;
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// `text` with *** in place of each `secret`.
std::string without(std::string text, const std::string& secret) {
    constexpr std::string_view instead = "***";
    for (size_t at = 0; !secret.empty() && (at = text.find(secret, at)) != text.npos;
         at += instead.size())
        text.replace(at, secret.size(), instead);
    return text;
}

}  // namespace

HttpExchange::HttpExchange(HttpClient& client, HttpRequest request, HttpStore& store,
                           const SourceContext& context, size_t ahead, const HttpPlace& moved_to)
    : client_(client),
      wanted_(std::move(request)),
      store_(store),
      context_(context),
      ahead_(ahead) {
    prepare();
    if (!moved_to.url.empty()) {
        remembered_ = true;
        sent_.url = moved_to.url;
        sent_.public_only = moved_to.public_only;
        if (!moved_to.same_origin) leave_origin();
        secure_ = moved_to.url.starts_with("https:");
        moved_to_ = moved_to;
    }
    send();
}

void HttpExchange::prepare() {
    sent_ = wanted_;
    store_.prepare(sent_, context_);
    secure_ = sent_.url.starts_with("https:");
    redirects_ = 0;
    moved_to_ = {};
}

void HttpExchange::send() {
    transfer_.reset();
    transfer_ = std::make_unique<HttpTransfer>(client_, sent_, context_, ahead_);
}

// What is for the host of the URL alone stays there (H6).
void HttpExchange::leave_origin() {
    sent_.headers.clear();
    sent_.user.clear();
    sent_.password.clear();
    sent_.certificate = false;
}

void HttpExchange::redirect(const HttpAnswer& answer) {
    const std::string place(answer.header("location"));
    if (place.empty())
        throw Error(SHF_E_NET_PERMANENT,
                    "the server answers " + std::to_string(answer.status) +
                        " and does not say where the object is",
                    "look at the spelling of the URL");
    if (++redirects_ > most_redirects)
        throw Error(SHF_E_NET_PERMANENT, "more than 10 redirects", "give the last URL itself");
    const std::string next = resolve_url(sent_.url, place);
    const bool https = next.starts_with("https:");
    if (!https && (secure_ || !next.starts_with("http:")))
        throw Error(SHF_E_NET_PERMANENT,
                    "the server redirects to what is not safe: from " +
                        sent_.url.substr(0, sent_.url.find(':')) + " to " +
                        escape(next.substr(0, next.find(':'))),
                    "give the last URL itself, if you trust it");
    secure_ = https;
    // What is public must not lead to what only this machine can reach (H7).
    if (!context_.options.allow_private && transfer_->to_public().value_or(false))
        sent_.public_only = true;
    moved_to_.same_origin = moved_to_.same_origin && same_origin(sent_.url, next);
    if (!moved_to_.same_origin) leave_origin();
    sent_.url = moved_to_.url = next;
    moved_to_.public_only = sent_.public_only;
}

const HttpAnswer& HttpExchange::answer() {
    try {
        return last_answer();
    } catch (const Error& error) {
        Fault fault = error.fault();
        for (const std::string& secret : sent_.secrets) {
            fault.cause = without(std::move(fault.cause), secret);
            fault.cause = without(std::move(fault.cause), escape(secret));
        }
        throw Error(std::move(fault));
    }
}

const HttpAnswer& HttpExchange::last_answer() {
    for (;;) {
        pause_.reset();
        refusal_.reset();
        const HttpAnswer& answer = transfer_->answer();
        if ((answer.status >= 200 && answer.status < 300) || answer.status == 416) return answer;
        if (is_redirect(answer.status) && store_.follows_redirects()) {
            redirect(answer);
        } else {
            pause_ = answer.pause();
            refusal_ = answer;
            if (remembered_ && answer.status >= 400 && answer.status < 500 &&
                answer.status != 412 && answer.status != 429) {
                // A signed address that has expired.
                remembered_ = false;
            } else {
                const std::string reason = reason_of(*transfer_);
                if (repairs_ >= most_repairs || !store_.repair(sent_, answer, reason, context_))
                    throw store_.error(answer, reason);
                ++repairs_;
            }
            prepare();
        }
        send();
    }
}

}  // namespace shf
