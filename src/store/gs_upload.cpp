#include "store/gs_upload.h"

#include "core/options.h"
#include "http/http_retry.h"
#include "http/libcrypto.h"
#include "store/gs_json.h"
#include "store/http_upload.h"
#include "store/sigv4.h"

#include <charconv>
#include <utility>

namespace shf {

namespace {

constexpr int incomplete = 308;
constexpr int cancelled = 499;
constexpr const char* json = "Content-Type: application/json; charset=UTF-8";

// The bytes that a session has, from the first one on: "bytes=0-42" are 43.
uint64_t received(const HttpAnswer& answer) {
    const std::string_view text = answer.header("range");
    if (text.empty()) return 0;
    const size_t dash = text.find('-');
    uint64_t last = 0;
    const char* const end = text.data() + text.size();
    if (text.starts_with("bytes=0-") &&
        std::from_chars(text.data() + dash + 1, end, last).ptr == end && last < INT64_MAX)
        return last + 1;
    throw Error(SHF_E_NET_PERMANENT, "the server does not say which bytes it has",
                "look at what serves this endpoint");
}

// A request that is not made again: what the session has must be asked first.
class Once {
  public:
    explicit Once(const SourceContext& context) : options_(context.options) {
        options_.retries = 0;
    }
    [[nodiscard]] SourceContext in(const SourceContext& context) const {
        return {options_, context.cancel, context.use};
    }

  private:
    Options options_;
};

class GsUpload final : public HttpUpload {
  public:
    GsUpload(const GsUrl& object, const SourceContext& context)
        : HttpUpload(gs_store(context, GsRights::write), gs_target(object),
                     "x-goog-meta-shardfeed-upload", context),
          object_(object),
          waits_(context.options.prepare) {}

    void put(std::span<const uint8_t> bytes, const SourceContext& context) override {
        const std::string between = "shardfeed-" + id_;
        HttpRequest request = creating("multipart");
        request.headers = {"Content-Type: multipart/related; boundary=" + between};
        const std::string head = "--" + between + "\r\n" + json + "\r\n\r\n" +
                                 gs_object_json(written().key, id_, md5(bytes)) + "\r\n--" +
                                 between + "\r\n" + octets + "\r\n\r\n";
        const std::string tail = "\r\n--" + between + "--\r\n";
        request.body.reserve(head.size() + bytes.size() + tail.size());
        request.body = head;
        request.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        request.body += tail;
        make(context, bytes.size(), [&] { (void)http_fetch(request, *store_, context); });
    }

    void begin(const SourceContext& context) override {
        HttpRequest request = creating("resumable");
        request.headers = {json, "X-Upload-Content-Type: application/octet-stream"};
        request.body = gs_object_json(written().key, id_, std::nullopt);
        const HttpAnswer answer = http_fetch(request, *store_, context).answer;
        const std::string place(answer.header("location"));
        // Credentials are for the endpoint alone, wherever it says that the session is.
        if (server_of(place).size() < place.size())
            session_ = place.substr(server_of(place).size());
        if (session_.empty() || session_[0] != '/')
            throw Error(SHF_E_NET_PERMANENT, "the server does not begin an upload in parts",
                        "look at what serves this endpoint");
    }

    std::string put_part(const UploadPart& part, const SourceContext& context) override {
        hash_.add(part.bytes);
        const uint64_t end = part.offset + part.bytes.size();
        const Once once(context);
        const SourceContext single = once.in(context);
        HttpRetry retry(store_->server(of_session("PUT")), context);
        uint64_t from = part.offset;
        bool ask = false;
        for (;;) {
            try {
                const HttpReply reply = ask ? state(single) : send(part, from, single);
                ask = false;
                if (reply.answer.status != incomplete) {
                    if (!part.last) throw lost("it ended before its last part");
                    compare(reply.body, context);
                    return {};
                }
                const uint64_t has = received(reply.answer);
                if (has < part.offset || has > end) throw lost("it has other bytes than were sent");
                if (has == end && !part.last) return {};
                if (has > from) retry.progressed();
                from = has;
            } catch (const Error& error) {
                retry.after(error, std::nullopt);
                ask = true;
            }
        }
    }

    // What was prepared is an object of another name, which cannot become one of two by itself: the
    // copy takes no time in the same bucket, and is whole or not there.
    void complete(std::span<const std::string> /*parts*/, const SourceContext& context) override {
        if (!waits_) return;
        make(context, std::nullopt, [&] { copy(context); });
        remove(context);
    }

    void abort(const SourceContext& context) override {
        if (session_.empty()) return remove(context);
        (void)http_fetch(of_session("DELETE"), *store_, context, most_answer, {cancelled});
    }

    void resume(const PreparedFile& file) override {
        HttpUpload::resume(file);
        waits_ = true;
    }

    [[nodiscard]] uint64_t most_at_once() const override { return 1; }

  private:
    static constexpr size_t most_answer = size_t{1} << 20;

    static Error lost(const char* why) {
        return Error(SHF_E_NET_PERMANENT, std::string("the upload is lost: ") + why,
                     "write the shard again");
    }

    // Where the bytes go first. Readers that take all of *.tar do not take it.
    [[nodiscard]] GsUrl written() const {
        if (!waits_) return object_;
        const size_t name = object_.key.rfind('/') + 1;  // npos + 1 is 0
        return {.bucket = object_.bucket,
                .key = object_.key.substr(0, name) + "." + object_.key.substr(name) + "." + id_ +
                       ".partial"};
    }

    void copy(const SourceContext& context) const {
        const std::string objects = "/storage/v1/b/" + object_.bucket + "/o/";
        std::string token;
        do {
            Fields query;
            if (!overwrite_) query.emplace_back("ifGenerationMatch", "0");
            if (!token.empty()) query.emplace_back("rewriteToken", token);
            HttpRequest request;
            request.method = "POST";
            request.target = objects + percent_encode(written().key) + "/rewriteTo/b/" +
                             object_.bucket + "/o/" + percent_encode(object_.key) + "?" +
                             canonical_query(query);
            const GsRewrite step = parse_gs_rewrite(http_fetch(request, *store_, context).body);
            if (!step.done && (step.token.empty() || step.token == token))
                throw Error(SHF_E_NET_PERMANENT, "the server does not say how to continue a copy",
                            "look at what serves this endpoint");
            token = step.token;
        } while (!token.empty());
    }

    // What waits.
    void remove(const SourceContext& context) const {
        HttpRequest request;
        request.method = "DELETE";
        request.target = gs_target(written());
        (void)http_fetch(request, *store_, context, most_answer, {404});
    }

    HttpRequest creating(const char* kind) const {
        Fields query = {{"uploadType", kind}};
        if (!overwrite_) query.emplace_back("ifGenerationMatch", "0");
        HttpRequest request;
        request.method = "POST";
        request.target = "/upload/storage/v1/b/" + object_.bucket + "/o?" + canonical_query(query);
        return request;
    }
    // Whoever knows its address may write there.
    HttpRequest of_session(const char* method) const {
        HttpRequest request;
        request.method = method;
        request.target = session_;
        request.secrets.push_back(session_);
        return request;
    }

    HttpReply send(const UploadPart& part, uint64_t from, const SourceContext& context) {
        const uint64_t end = part.offset + part.bytes.size();
        HttpRequest request = of_session("PUT");
        request.upload = part.bytes.subspan(static_cast<size_t>(from - part.offset));
        const std::string total = part.last ? std::to_string(end) : "*";
        if (request.upload.empty())
            request.headers.push_back("Content-Range: bytes */" + total);
        else
            request.headers.push_back("Content-Range: bytes " + std::to_string(from) + "-" +
                                      std::to_string(end - 1) + "/" + total);
        request.headers.emplace_back(octets);
        if (part.last)
            if (const auto hash = hash_.result())
                request.headers.push_back("X-Goog-Hash: md5=" + base64_encode(*hash));
        return http_fetch(request, *store_, context, most_answer, {incomplete});
    }

    // Of the session.
    HttpReply state(const SourceContext& context) const {
        HttpRequest request = of_session("PUT");
        request.headers = {"Content-Range: bytes */*", octets};
        return http_fetch(request, *store_, context, most_answer, {incomplete});
    }

    // What was made is what was sent.
    void compare(const std::string& body, const SourceContext& context) {
        const GsObject made = parse_gs_object(body);
        const auto hash = hash_.result();
        if (!hash || made.md5.empty() || made.md5 == base64_encode(*hash)) return;
        if (!made.generation.empty()) {
            HttpRequest request;
            request.method = "DELETE";
            request.target = gs_target(written()) + "?generation=" + made.generation;
            (void)http_fetch(request, *store_, context);
        }
        throw not_as_written("it has another MD5; it was removed");
    }

    const GsUrl object_;
    bool waits_;           // under another name
    std::string session_;  // path and query
    RunningHash hash_{HashKind::md5};
};

void require_token_of(const GsUrl& object, const Options& options) {
    if (!options.gs_access_key.empty())
        throw Error(SHF_E_USAGE, "HMAC keys cannot write: what they sign knows no conditions",
                    "give gs_credentials or gs_token");
    if (!is_utf8(object.key))
        throw Error(SHF_E_USAGE, "the key \"" + escape(object.key) + "\" is no UTF-8",
                    "Google Cloud Storage takes no other names");
}

}  // namespace

std::unique_ptr<Upload> gs_upload(const GsUrl& object, const SourceContext& context) {
    require_token_of(object, context.options);
    auto upload = std::make_unique<GsUpload>(object, context);
    upload->require_none(context);
    return upload;
}

std::unique_ptr<Upload> gs_prepared(const GsUrl& object, const SourceContext& context) {
    require_token_of(object, context.options);
    return std::make_unique<GsUpload>(object, context);
}

void discard_gs_prepared(const GsUrl& pattern, const SourceContext& context) {
    require_token_of(pattern, context.options);
    const size_t name = pattern.key.rfind('/') + 1;  // npos + 1 is 0
    const std::string wanted = pattern.key.substr(0, name) + "." + pattern.key.substr(name) + ".";
    constexpr std::string_view end = ".partial";
    const size_t tail = upload_id().size() + end.size();
    const auto store = gs_store(context, GsRights::write);
    for (const std::string& key :
         list_gs({.bucket = pattern.bucket, .key = start_of_pattern(wanted)}, context)) {
        if (key.size() <= tail || !key.ends_with(end) ||
            !is_of_pattern(std::string_view(key).substr(0, key.size() - tail), wanted))
            continue;
        HttpRequest request;
        request.method = "DELETE";
        request.target = gs_target({.bucket = pattern.bucket, .key = key});
        (void)http_fetch(request, *store, context, size_t{1} << 20, {404});
    }
}

}  // namespace shf
