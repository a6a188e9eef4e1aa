#include "store/s3_upload.h"

#include "http/http_retry.h"
#include "store/http_upload.h"
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
        const HttpAnswer answer = http_fetch(request, *store_, context).answer;
        return s3_part_xml(name, answer.etag, crc);
    }

    void complete(std::span<const std::string> parts, const SourceContext& context) override {
        HttpRequest request = asking("POST", of_upload());
        request.headers.emplace_back("Content-Type: application/xml");
        condition(request);
        request.body =
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
        for (const std::string& part : parts) request.body += part;
        request.body += "</CompleteMultipartUpload>";
        make(context, std::nullopt, [&] { join(request, context); });
    }

    void abort(const SourceContext& context) override {
        (void)http_fetch(asking("DELETE", of_upload()), *store_, context);
    }

  private:
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

}  // namespace shf
