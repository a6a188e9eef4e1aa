#include "store/gs_upload.h"

#include "core/options.h"
#include "http/http_retry.h"
#include "store/gs_json.h"
#include "store/http_upload.h"
#include "store/libcrypto.h"
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
          object_(object) {}

    void put(std::span<const uint8_t> bytes, const SourceContext& context) override {
        const std::string between = "shardfeed-" + id_;
        HttpRequest request = creating("multipart");
        request.headers = {"Content-Type: multipart/related; boundary=" + between};
        const std::string head = "--" + between + "\r\n" + json + "\r\n\r\n" +
                                 gs_object_json(object_.key, id_, md5(bytes)) + "\r\n--" + between +
                                 "\r\n" + octets + "\r\n\r\n";
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
        request.body = gs_object_json(object_.key, id_, std::nullopt);
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

    void complete(std::span<const std::string> /*parts*/,
                  const SourceContext& /*context*/) override {}

    void abort(const SourceContext& context) override {
        (void)http_fetch(of_session("DELETE"), *store_, context, most_answer, {cancelled});
    }

    [[nodiscard]] uint64_t most_at_once() const override { return 1; }

  private:
    static constexpr size_t most_answer = size_t{1} << 20;

    static Error lost(const char* why) {
        return Error(SHF_E_NET_PERMANENT, std::string("the upload is lost: ") + why,
                     "write the shard again");
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
            HttpRequest request = asking("DELETE", "generation=" + made.generation);
            (void)http_fetch(request, *store_, context);
        }
        throw not_as_written("it has another MD5; it was removed");
    }

    const GsUrl object_;
    std::string session_;  // path and query
    Md5 hash_;
};

}  // namespace

std::unique_ptr<Upload> gs_upload(const GsUrl& object, const SourceContext& context) {
    if (!context.options.gs_access_key.empty())
        throw Error(SHF_E_USAGE, "HMAC keys cannot write: what they sign knows no conditions",
                    "give gs_credentials or gs_token");
    if (!is_utf8(object.key))
        throw Error(SHF_E_USAGE, "the key \"" + escape(object.key) + "\" is no UTF-8",
                    "Google Cloud Storage takes no other names");
    auto upload = std::make_unique<GsUpload>(object, context);
    upload->require_none(context);
    return upload;
}

}  // namespace shf
