#include "store/s3_upload.h"

#include "core/options.h"
#include "http/http_retry.h"
#include "store/http_upload.h"
#include "store/s3_store.h"
#include "store/s3_xml.h"
#include "store/sigv4.h"

#include <utility>

namespace shf {

namespace {

class S3Upload final : public HttpUpload {
  public:
    S3Upload(std::shared_ptr<HttpStore> store, std::string target, const SourceContext& context)
        : HttpUpload(std::move(store), std::move(target), "x-amz-meta-shardfeed-upload", context) {}

    void put(std::span<const uint8_t> bytes, const SourceContext& context) override {
        HttpRequest request = asking("PUT");
        request.upload = bytes;
        request.headers = {octets, id_line(), "x-amz-checksum-crc32: " + crc32_base64(bytes)};
        condition(request);
        make(context, bytes.size(), [&] { (void)http_fetch(request, *store_, context); });
    }

    void begin(const SourceContext& context) override {
        HttpRequest request = asking("POST", canonical_query({{"uploads", ""}}));
        request.headers = {octets, id_line(), "x-amz-checksum-algorithm: CRC32"};
        number_ = parse_s3_upload_id(http_fetch(request, *store_, context).body);
    }

    std::string put_part(const UploadPart& part, const SourceContext& context) override {
        const std::string name = std::to_string(part.number + 1), crc = crc32_base64(part.bytes);
        HttpRequest request =
            asking("PUT", canonical_query({{"partNumber", name}, {"uploadId", number_}}));
        request.headers = {octets, "x-amz-checksum-crc32: " + crc};
        request.upload = part.bytes;
        return http_fetch(request, *store_, context).answer.etag + " " + crc;
    }

    void complete(std::span<const std::string> parts, const SourceContext& context) override {
        HttpRequest request = asking("POST", of_upload());
        request.headers.emplace_back("Content-Type: application/xml");
        condition(request);
        request.body =
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
        for (size_t i = 0; i < parts.size(); ++i) {
            const size_t space = parts[i].rfind(' ');
            if (space == parts[i].npos) throw not_prepared();
            request.body += s3_part_xml(std::to_string(i + 1), parts[i].substr(0, space),
                                        parts[i].substr(space + 1));
        }
        request.body += "</CompleteMultipartUpload>";
        make(context, std::nullopt, [&] { join(request, context); });
    }

    void abort(const SourceContext& context) override {
        constexpr int gone = 404;  // it is completed, or was aborted before
        (void)http_fetch(asking("DELETE", of_upload()), *store_, context, most_abort, {gone});
    }

    void describe(PreparedFile& file) const override {
        HttpUpload::describe(file);
        file.place = number_;
    }
    void resume(const PreparedFile& file) override {
        HttpUpload::resume(file);
        if (file.place.empty() || file.parts.empty()) throw not_prepared();
        number_ = file.place;
    }

  private:
    static constexpr size_t most_abort = size_t{1} << 20;  // bytes of an answer

    [[nodiscard]] std::string of_upload() const { return canonical_query({{"uploadId", number_}}); }
    void condition(HttpRequest& request) const {
        if (!overwrite_) request.headers.emplace_back("If-None-Match: *");
    }

    // A refusal may come behind the status of a success (S7).
    void join(const HttpRequest& request, const SourceContext& context) const {
        HttpRetry retry(store_->server(request), context);
        for (;;) {
            const S3Fault fault = parse_s3_fault(http_fetch(request, *store_, context).body);
            if (fault.code.empty()) return;
            std::string cause = "the server could not join the parts: " + escape(fault.code);
            if (!fault.message.empty()) cause += ": " + escape(fault.message);
            if (!fault.request_id.empty())
                cause.append(" (request ").append(escape(fault.request_id)).append(")");
            retry.after(Error(SHF_E_NET_TRANSIENT, cause, "try again later"), std::nullopt);
        }
    }

    std::string number_;  // of the upload in parts
};

}  // namespace

std::unique_ptr<Upload> s3_upload(std::shared_ptr<HttpStore> store, const std::string& target,
                                  const SourceContext& context) {
    auto upload = std::make_unique<S3Upload>(std::move(store), target, context);
    upload->require_none(context);
    return upload;
}

std::unique_ptr<Upload> s3_prepared(std::shared_ptr<HttpStore> store, const std::string& target,
                                    const SourceContext& context) {
    return std::make_unique<S3Upload>(std::move(store), target, context);
}

void discard_s3_uploads(HttpStore& store, const std::string& pattern,
                        const SourceContext& context) {
    const std::string start = start_of_pattern(pattern);
    std::vector<S3PendingUpload> found;
    S3UploadPage page;
    do {
        HttpRequest request;
        request.target = s3_uploads_target(start, page);
        const S3PendingUpload before = page.next;
        page = parse_s3_uploads(http_fetch(request, store, context).body);
        if (page.more && page.next == before)
            throw Error(SHF_E_NET_PERMANENT, "the list of uploads has no end",
                        "look at what serves this endpoint");
        for (S3PendingUpload& upload : page.uploads)
            if (is_of_pattern(upload.key, pattern)) found.push_back(std::move(upload));
        if (found.size() > context.options.max_shards)
            throw Error(SHF_E_LIMIT, "more uploads than max_shards", "give a narrower pattern");
    } while (page.more);
    for (const S3PendingUpload& upload : found) {
        HttpRequest request;
        request.method = "DELETE";
        request.target =
            s3_target(upload.key) + "?" + canonical_query({{"uploadId", upload.number}});
        (void)http_fetch(request, store, context, size_t{1} << 20, {404});
    }
}

}  // namespace shf
