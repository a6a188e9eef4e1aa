// shf_feed_*.
#include "api/handles.h"
#ifdef SHF_HAVE_FEED
#ifdef SHF_HAVE_FEED_HTTP
#include "feed/feed_http.h"
#endif
#include "feed/feed_server.h"
#include "feed/feed_socket.h"
#endif

#include <cstring>
#include <memory>
#include <string>

using shf::Error;
using shf::guard;

#ifdef SHF_HAVE_FEED

struct shf_feed : shf::Exclusive {
    std::unique_ptr<shf::FeedServer> server;
#ifdef SHF_HAVE_FEED_HTTP
    std::unique_ptr<shf::FeedHttp> http;  // asks the server
#endif
};

extern "C" {

int32_t shf_feed_open(shf_feed** out, const char* const* urls, size_t url_count,
                      const char* address, const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out || !address) throw Error(SHF_E_USAGE, "shf_feed_open: out or address is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::stream);
        auto feed = std::make_unique<shf_feed>();
        feed->server =
            std::make_unique<shf::FeedServer>(shf::checked_urls(urls, url_count), values, address);
        *out = feed.release();
        return SHF_OK;
    });
}

int32_t shf_feed_make_keys(char* public_key, char* secret_key, shf_error* error) {
    return guard(error, [&] {
        if (!public_key || !secret_key)
            throw Error(SHF_E_USAGE, "shf_feed_make_keys: public_key or secret_key is NULL");
        const shf::CurveKeys keys = shf::CurveKeys::make();
        std::strcpy(public_key, keys.public_key.c_str());
        std::strcpy(secret_key, keys.secret_key.c_str());
        return SHF_OK;
    });
}

#ifdef SHF_HAVE_FEED_HTTP

int32_t shf_feed_http(shf_feed* feed, const char* address, shf_error* error) {
    return guard(error, [&] {
        if (!address) throw Error(SHF_E_USAGE, "shf_feed_http: address is NULL");
        const shf::ExclusiveCall exclusive(feed, "feed");
        if (feed->http) throw Error(SHF_E_USAGE, "the feed answers HTTP already");
        const shf::FeedServer& server = *feed->server;
        feed->http = std::make_unique<shf::FeedHttp>(
            address, shf::FeedHttp::Answers{[&server] { return shf::metrics_of(server.counts()); },
                                            [&server] { return server.serves(); }});
        return SHF_OK;
    });
}

const char* shf_feed_http_address(const shf_feed* feed) {
    return feed && !feed->forked() && feed->http ? feed->http->address().c_str() : nullptr;
}

#endif

int32_t shf_feed_run(shf_feed* feed, shf_error* error) {
    return guard(error, [&] {
        const shf::ExclusiveCall exclusive(feed, "feed");
        feed->server->run();
        return SHF_OK;
    });
}

const char* shf_feed_address(const shf_feed* feed) {
    return feed && !feed->forked() ? feed->server->address().c_str() : nullptr;
}

void shf_feed_drain(shf_feed* feed) {
    if (feed && !feed->forked()) feed->server->drain();
}

void shf_feed_stop(shf_feed* feed) {
    if (feed && !feed->forked()) feed->server->stop();
}

uint64_t shf_feed_count(const shf_feed* feed, int32_t what) {
    if (!feed || feed->forked()) return UINT64_MAX;
    const shf::FeedCounts& counts = feed->server->counts();
    switch (what) {
        case SHF_FEED_CONSUMERS: return counts.consumers;
        case SHF_FEED_LANES: return counts.lanes;
        case SHF_FEED_SAMPLES: return counts.samples;
        case SHF_FEED_BYTES: return counts.bytes;
        case SHF_FEED_CREDIT: return counts.credit;
        case SHF_FEED_REFUSED: return counts.refused;
        case SHF_FEED_CREDIT_WAIT_NS: return counts.credit_wait_ns();
        default: return UINT64_MAX;
    }
}

void shf_feed_close(shf_feed* feed) {
    if (!feed) return;
    // As shf_stream_close.
    if (feed->forked()) {
        (void)feed->server.release();
#ifdef SHF_HAVE_FEED_HTTP
        (void)feed->http.release();
#endif
    }
    delete feed;
}
}

#else

extern "C" {

int32_t shf_feed_open(shf_feed** out, const char* const*, size_t, const char*, const shf_options*,
                      shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, []() -> int32_t {
        throw Error(SHF_E_UNSUPPORTED, "this build has no feed", "build it with libzmq");
    });
}

int32_t shf_feed_make_keys(char*, char*, shf_error* error) {
    return guard(error, []() -> int32_t {
        throw Error(SHF_E_UNSUPPORTED, "this build has no feed", "build it with libzmq");
    });
}

int32_t shf_feed_run(shf_feed*, shf_error* error) {
    return guard(error, []() -> int32_t { throw Error(SHF_E_USAGE, "the feed is NULL"); });
}

const char* shf_feed_address(const shf_feed*) {
    return nullptr;
}

void shf_feed_drain(shf_feed*) {}

void shf_feed_stop(shf_feed*) {}

uint64_t shf_feed_count(const shf_feed*, int32_t) {
    return UINT64_MAX;
}

void shf_feed_close(shf_feed*) {}
}

#endif

#ifndef SHF_HAVE_FEED_HTTP

extern "C" {

int32_t shf_feed_http(shf_feed*, const char*, shf_error* error) {
    return guard(error, []() -> int32_t {
        throw Error(SHF_E_UNSUPPORTED, "this build has no HTTP for feeds",
                    "build it with libzmq and libmicrohttpd");
    });
}

const char* shf_feed_http_address(const shf_feed*) {
    return nullptr;
}
}

#endif
