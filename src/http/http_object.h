// One version of one object on a server, as its first answer described it.
#pragma once

#include "http/http_exchange.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

// Requests less than this apart are joined; so much is worth asking for at once.
inline constexpr uint64_t network_gap = 256 * 1024, network_at_once = 4 * 1024 * 1024;

// What all requests for one object share. Does not change after it was made: any thread.
struct HttpObject {
    std::shared_ptr<HttpStore> store;
    std::string target;
    SourceContext context;
    HttpAnswer first;    // as the first answer said
    HttpPlace moved_to;  // where the first request was redirected to; empty: nowhere
    std::optional<uint64_t> size;
    std::vector<uint8_t> head;  // the first bytes; of an object without ranges none
    bool ranges = false;        // parts of it can be asked for and joined

    [[nodiscard]] std::string server() const;
    // Fills `out` from `offset` on as far as the head goes. Returns the count.
    size_t copy_head(uint64_t offset, std::span<uint8_t> out) const;
    // Asks for the bytes [first, end) of this version. The request is sent; see HttpExchange.
    [[nodiscard]] std::unique_ptr<HttpExchange> ask(HttpClient& client, uint64_t first,
                                                    uint64_t end, size_t ahead,
                                                    const HttpPlace& moved) const;
    // The answer to a request for a range from `first` on is that, of this version. Throws Error.
    void check(const HttpAnswer& answer, uint64_t first) const;
};

// Several ranges in one answer are never asked for (H10). Throws Error.
void refuse_several(const HttpAnswer& answer);

Error answer_cut_off();

}  // namespace shf
