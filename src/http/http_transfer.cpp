#include "http/http_transfer.h"

#include "http/http_connection.h"

#include <array>
#include <string>
#include <utility>

namespace shf {

std::string server_of(const std::string& url) {
    const size_t host = url.find("://");
    const size_t path = host == url.npos ? url.npos : url.find_first_of("/?#", host + 3);
    return url.substr(0, path);
}

HttpTransfer::HttpTransfer(const HttpRequest& request, const Options& options, const Cancel& cancel)
    : cancel_(cancel), connection_(HttpConnection::take(server_of(request.url))) {
    connection_->start(request, options);
    while (!connection_->has_headers() && !connection_->over()) connection_->move_on(cancel_);
    if (!connection_->has_headers()) connection_->check();
}

HttpTransfer::~HttpTransfer() {
    HttpConnection::give_back(std::move(connection_));
}

const HttpAnswer& HttpTransfer::answer() const {
    return connection_->answer();
}

bool HttpTransfer::is_ours() const {
    return connection_->is_ours();
}

bool HttpTransfer::ended() const {
    return connection_->over() && !connection_->has_held();
}

void HttpTransfer::finish() {
    std::array<uint8_t, 1> more;
    size_t count = 0;
    try {
        count = read(more);
    } catch (const Error& error) {
        if (error.code() != SHF_E_NET_TRANSIENT) throw;
    }
    if (count > 0)
        throw Error(SHF_E_NET_PERMANENT, "the server sends more bytes than it announced",
                    "copy the shard to a local disk");
}

size_t HttpTransfer::read(std::span<uint8_t> out) {
    if (out.empty()) return 0;
    for (;;) {
        if (const size_t count = connection_->take_body(out)) return count;
        if (ended()) {
            connection_->check();
            return 0;
        }
        connection_->move_on(cancel_);
    }
}

}  // namespace shf
