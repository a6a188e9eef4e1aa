// A request until it is answered: prepared by its store, sent, redirected (H5 to H7) and repaired.
#pragma once

#include "http/http_store.h"
#include "http/http_transfer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shf {

// Where a request was redirected to.
struct HttpPlace {
    std::string url{};         // empty: nowhere
    bool public_only = false;  // see HttpRequest
    bool same_origin = true;   // every step was to the same scheme, host and port
};

// By the thread of its client.
class HttpExchange {
  public:
    // Sends the request, and does not wait. `ahead`: see HttpTransfer. Throws Error. The references
    // must outlive the exchange. `moved_to`: of an earlier request for the same target, to which
    // this one is sent at once; nowhere: not known.
    HttpExchange(HttpClient& client, HttpRequest request, HttpStore& store,
                 const SourceContext& context, size_t ahead = 0, const HttpPlace& moved_to = {});
    HttpExchange(const HttpExchange&) = delete;
    HttpExchange& operator=(const HttpExchange&) = delete;

    // Waits for the last answer: a success, or 416. Throws Error for every other one, without the
    // secrets of the request.
    const HttpAnswer& answer();
    // After answer(): see HttpTransfer.
    size_t read(std::span<uint8_t> out) { return transfer_->read(out); }
    void finish() { transfer_->finish(); }
    // True when something has come: read() waits only when it is a redirect or a refusal that can
    // be repaired.
    [[nodiscard]] bool ready() const { return transfer_ && transfer_->ready(); }
    // How long the server asks to wait, in nanoseconds; of the answer that answer() threw for.
    [[nodiscard]] std::optional<uint64_t> pause() const { return pause_; }
    // That answer.
    [[nodiscard]] const std::optional<HttpAnswer>& refusal() const { return refusal_; }
    // For later requests for the same target.
    [[nodiscard]] HttpPlace moved_to() const {
        return store_.redirects_last() ? moved_to_ : HttpPlace();
    }

  private:
    const HttpAnswer& last_answer();
    void prepare();
    void send();
    void redirect(const HttpAnswer& answer);
    void leave_origin();

    HttpClient& client_;
    const HttpRequest wanted_;  // before prepare()
    HttpStore& store_;
    const SourceContext context_;
    const size_t ahead_;
    HttpRequest sent_;
    unsigned redirects_ = 0, repairs_ = 0;
    bool remembered_ = false;  // sent to where an earlier request was redirected to
    bool secure_ = true;       // no step was http:
    std::optional<uint64_t> pause_;
    std::optional<HttpAnswer> refusal_;
    HttpPlace moved_to_;
    std::unique_ptr<HttpTransfer> transfer_;
};

}  // namespace shf
