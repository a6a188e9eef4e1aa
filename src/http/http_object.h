// One version of one object on a server, as its first answer described it.
#pragma once

#include "http/http_exchange.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shf {

// Requests less than this apart are joined; so much is worth asking for at once.
inline constexpr uint64_t network_gap = 256 * 1024, network_at_once = 4 * 1024 * 1024;

// The newest place that requests for one object were redirected to. Any thread; without locks:
// forked children go on with it.
class HttpPlaces {
  public:
    HttpPlaces() = default;
    ~HttpPlaces();
    HttpPlaces(const HttpPlaces&) = delete;
    HttpPlaces& operator=(const HttpPlaces&) = delete;

    // A URL that is empty: nowhere.
    [[nodiscard]] HttpPlace newest() const;
    void set(HttpPlace place);

  private:
    // Signed places expire, after minutes: the old ones are few, and others may be reading them.
    struct Known {
        HttpPlace place;
        const Known* before;
    };
    std::atomic<const Known*> newest_{nullptr};
};

// What all requests for one object share. But for `places` it does not change after the object was
// opened: any thread.
struct HttpObject {
    HttpObject(std::shared_ptr<HttpStore> its_store, std::string its_target,
               const SourceContext& its_context)
        : store(std::move(its_store)), target(std::move(its_target)), context(its_context) {}

    const std::shared_ptr<HttpStore> store;
    const std::string target;
    const SourceContext context;
    mutable HttpPlaces places;
    HttpAnswer first;  // as the first answer said
    std::optional<uint64_t> size;
    std::vector<uint8_t> head;  // the first bytes; of an object without ranges none
    bool ranges = false;        // parts of it can be asked for and joined

    [[nodiscard]] std::string server() const;
    // Fills `out` from `offset` on as far as the head goes. Returns the count.
    size_t copy_head(uint64_t offset, std::span<uint8_t> out) const;
    // Asks for the bytes [first, end) of this version. The request is sent; see HttpExchange. With
    // `again`, after a fault, it does not begin where earlier ones were redirected to.
    [[nodiscard]] std::unique_ptr<HttpExchange> ask(HttpClient& client, uint64_t first,
                                                    uint64_t end, size_t ahead, bool again) const;
    // The answer to a request for a range from `first` on is that, of this version. Throws Error.
    void check(const HttpAnswer& answer, uint64_t first) const;
};

// Several ranges in one answer are never asked for (H10). Throws Error.
void refuse_several(const HttpAnswer& answer);

}  // namespace shf
