#include "http/http_object.h"

#include <algorithm>

namespace shf {

namespace {

constexpr const char* copy_to_disk = "copy the shard to a local disk";

}  // namespace

void refuse_several(const HttpAnswer& answer) {
    if (answer.content_type.starts_with("multipart/"))
        throw Error(SHF_E_NET_PERMANENT, "the server answers with several ranges", copy_to_disk);
}

HttpPlaces::~HttpPlaces() {
    for (const Known* known = newest_.load(); known;) {
        const std::unique_ptr<const Known> old(known);
        known = old->before;
    }
}

HttpPlace HttpPlaces::newest() const {
    const Known* const known = newest_.load(std::memory_order_acquire);
    return known ? known->place : HttpPlace();
}

void HttpPlaces::set(HttpPlace place) {
    const Known* before = newest_.load(std::memory_order_acquire);
    if ((before ? before->place.url : std::string()) == place.url) return;
    auto known = std::make_unique<Known>(Known{std::move(place), before});
    while (!newest_.compare_exchange_weak(known->before, known.get(), std::memory_order_acq_rel)) {
    }
    (void)known.release();
}

std::string HttpObject::server() const {
    HttpRequest request;
    request.target = target;
    return store->server(request);
}

size_t HttpObject::copy_head(uint64_t offset, std::span<uint8_t> out) const {
    if (offset >= head.size()) return 0;
    const auto from = std::span(head).subspan(static_cast<size_t>(offset));
    const size_t count = std::min(out.size(), from.size());
    std::copy_n(from.begin(), count, out.begin());
    return count;
}

std::unique_ptr<HttpExchange> HttpObject::ask(HttpClient& client, uint64_t from, uint64_t end,
                                              size_t ahead, bool again) const {
    HttpRequest request;
    request.target = target;
    request.whole = false;
    request.first = from;
    request.last = end - 1;
    store->pin(request, first);
    return std::make_unique<HttpExchange>(client, std::move(request), *store, context, ahead,
                                          again ? HttpPlace() : places.newest());
}

void HttpObject::check(const HttpAnswer& answer, uint64_t from) const {
    if (answer.status >= 300) throw store->error(answer, {});
    if (answer.status != 206 || !answer.range || answer.range->unsatisfied)
        throw Error(SHF_E_NET_PERMANENT,
                    "the server gave byte ranges before and now answers " +
                        std::to_string(answer.status) + " to the request for one",
                    copy_to_disk);
    refuse_several(answer);
    if (answer.range->first != from)
        throw Error(SHF_E_NET_PERMANENT,
                    "the server gives the bytes from " + std::to_string(answer.range->first) +
                        " on instead of those from " + std::to_string(from) + " on",
                    copy_to_disk);
    if (store->version(answer) != store->version(first)) throw object_changed();
    if (answer.range->total && answer.range->total != size) throw object_changed();
}

}  // namespace shf
