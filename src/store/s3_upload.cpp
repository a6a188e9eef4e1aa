#include "store/s3_upload.h"

#include "core/error.h"
#include "core/options.h"
#include "http/http_fetch.h"
#include "http/http_retry.h"
#include "store/s3_xml.h"
#include "store/sigv4.h"

#include <utility>

namespace shf {

namespace {

constexpr const char* content_type = "Content-Type: application/octet-stream";
constexpr const char* id_header = "x-amz-meta-shardfeed-upload";

class S3Upload : public Upload {
  public:
    S3Upload(std::shared_ptr<HttpStore> store, std::string target, const SourceContext& context)
        : store_(std::move(store)),
          target_(std::move(target)),
          overwrite_(context.options.overwrite) {}

    void put(std::span<const uint8_t> bytes, const SourceContext& context) override {
        HttpRequest request = whole("PUT");
        request.upload = bytes;
        request.headers.push_back("x-amz-checksum-crc32: " + crc32_base64(bytes));
        make(context, bytes.size(), [&] { (void)http_fetch(request, *store_, context); });
    }

    void begin(const SourceContext& context) override {
        HttpRequest request = asking("POST", {{"uploads", ""}});
        request.headers.emplace_back(content_type);
        request.headers.push_back(std::string(id_header) + ": " + id_);
        request.headers.emplace_back("x-amz-checksum-algorithm: CRC32");
        number_ = parse_s3_upload_id(http_fetch(request, *store_, context).body);
    }

    std::string put_part(uint64_t number, std::span<const uint8_t> bytes,
                         const SourceContext& context) override {
        const std::string name = std::to_string(number + 1), crc = crc32_base64(bytes);
        HttpRequest request = asking("PUT", {{"partNumber", name}, {"uploadId", number_}});
        request.headers.emplace_back(content_type);
        request.headers.push_back("x-amz-checksum-crc32: " + crc);
        request.upload = bytes;
        const HttpAnswer answer = http_fetch(request, *store_, context).answer;
        return s3_part_xml(name, answer.etag, crc);
    }

    void complete(std::span<const std::string> parts, const SourceContext& context) override {
        HttpRequest request = asking("POST", {{"uploadId", number_}});
        request.headers.emplace_back("Content-Type: application/xml");
        condition(request);
        request.body =
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
        for (const std::string& part : parts) request.body += part;
        request.body += "</CompleteMultipartUpload>";
        make(context, std::nullopt, [&] {
            HttpRetry retry(store_->server(request), context);
            for (;;) {
                const HttpReply reply = http_fetch(request, *store_, context);
                // A refusal may come after the status of a success (S7).
                const S3Fault fault = parse_s3_fault(reply.body);
                if (fault.code.empty()) return;
                const Error error(
                    SHF_E_NET_TRANSIENT,
                    "the server could not join the parts: " + escape(fault.code) + ": " +
                        escape(fault.message) +
                        (fault.request_id.empty() ? ""
                                                  : " (request " + escape(fault.request_id) + ")"),
                    "try again later");
                retry.after(error, std::nullopt);
            }
        });
    }

    void abort(const SourceContext& context) override {
        (void)http_fetch(asking("DELETE", {{"uploadId", number_}}), *store_, context);
    }

    void check(uint64_t size, const SourceContext& context) override {
        const std::optional<HttpAnswer> answer = look(context);
        if (!answer) throw not_as_written("it is not there");
        if (answer->length && answer->length != size)
            throw not_as_written("it has " + plural(*answer->length, "byte") + ", and " +
                                 plural(size, "byte") + " were written");
        // Few servers leave it out.
        if (const auto id = answer->header(id_header); !id.empty() && id != id_)
            throw not_as_written("somebody else has written it");
    }

    // What is there now; nothing: nothing.
    std::optional<HttpAnswer> look(const SourceContext& context) {
        HttpRequest request;
        request.target = target_;
        return http_look(std::move(request), *store_, context);
    }

  private:
    HttpRequest asking(const char* method, const Fields& query) const {
        HttpRequest request;
        request.method = method;
        request.target = target_ + (query.empty() ? "" : "?" + canonical_query(query));
        return request;
    }
    // Of the object itself.
    HttpRequest whole(const char* method) const {
        HttpRequest request = asking(method, {});
        request.headers.emplace_back(content_type);
        request.headers.push_back(std::string(id_header) + ": " + id_);
        condition(request);
        return request;
    }
    void condition(HttpRequest& request) const {
        if (!overwrite_) request.headers.emplace_back("If-None-Match: *");
    }

    // Makes the object. When its answer was lost, the next attempt finds an object that is there:
    // it may be ours.
    template <typename Make>
    void make(const SourceContext& context, std::optional<uint64_t> size, Make body) {
        try {
            body();
        } catch (const Error& error) {
            if (error.code() == SHF_E_CANCELLED || !is_ours(size, context)) throw;
        }
    }
    bool is_ours(std::optional<uint64_t> size, const SourceContext& context) {
        try {
            const std::optional<HttpAnswer> answer = look(context);
            return answer && answer->header(id_header) == id_ && (!size || answer->length == size);
        } catch (const Error& error) {
            if (error.code() == SHF_E_CANCELLED) throw;
            return false;
        }
    }

    const std::shared_ptr<HttpStore> store_;
    const std::string target_;
    const bool overwrite_;
    const std::string id_ = upload_id();
    std::string number_;  // of the upload in parts
};

}  // namespace

std::unique_ptr<Upload> s3_upload(std::shared_ptr<HttpStore> store, const std::string& target,
                                  const SourceContext& context) {
    auto upload = std::make_unique<S3Upload>(std::move(store), target, context);
    if (context.options.overwrite) return upload;
    // Asked here too, so that nobody writes a shard in vain. Who may write may not be allowed to
    // look: the request that writes tells why.
    try {
        if (upload->look(context)) throw target_exists();
    } catch (const Error& error) {
        if (error.code() != SHF_E_AUTH && error.code() != SHF_E_NET_PERMANENT) throw;
    }
    return upload;
}

}  // namespace shf
