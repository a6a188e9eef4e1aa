#include "store/azure_upload.h"

#include "http/libcrypto.h"
#include "store/http_upload.h"
#include "store/sigv4.h"

#include <utility>

namespace shf {

namespace {

class AzureUpload final : public HttpUpload {
  public:
    // Names of metadata are those of C#: without "-".
    AzureUpload(std::shared_ptr<HttpStore> store, std::string target, const SourceContext& context)
        : HttpUpload(std::move(store), std::move(target), "x-ms-meta-shardfeed_upload", context) {}

    void put(std::span<const uint8_t> bytes, const SourceContext& context) override {
        HttpRequest request = asking("PUT");
        request.headers = {octets, id_line(), "x-ms-blob-type: BlockBlob"};
        send(request, bytes);
        condition(request);
        make(context, bytes.size(), [&] { (void)http_fetch(request, *store_, context); });
    }

    void begin(const SourceContext& /*context*/) override {}

    std::string put_part(const UploadPart& part, const SourceContext& context) override {
        // Of one length, and of nobody else: other writers may send blocks for the same name.
        std::string number = std::to_string(part.number);
        number.insert(0, 8 - number.size(), '0');
        std::string block = base64_encode(id_ + number);
        HttpRequest request =
            asking("PUT", canonical_query({{"blockid", block}, {"comp", "block"}}));
        request.headers.emplace_back(octets);
        send(request, part.bytes);
        (void)http_fetch(request, *store_, context);
        return block;
    }

    void complete(std::span<const std::string> parts, const SourceContext& context) override {
        HttpRequest request = asking("PUT", "comp=blocklist");
        request.headers = {"Content-Type: application/xml", id_line(),
                           "x-ms-blob-content-type: application/octet-stream"};
        condition(request);
        request.body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
        for (const std::string& part : parts) {
            if (part.find_first_of("<>&") != part.npos) throw not_prepared();
            request.body += "<Latest>" + part + "</Latest>";
        }
        request.body += "</BlockList>";
        make(context, std::nullopt, [&] { (void)http_fetch(request, *store_, context); });
    }

    void abort(const SourceContext& /*context*/) override {}

  private:
    void condition(HttpRequest& request) const {
        if (!overwrite_) request.headers.emplace_back("If-None-Match: *");
    }
    static void send(HttpRequest& request, std::span<const uint8_t> bytes) {
        request.upload = bytes;
        if (const auto hash = md5(bytes))
            request.headers.push_back("Content-MD5: " + base64_encode(*hash));
    }
};

}  // namespace

std::unique_ptr<Upload> azure_upload(std::shared_ptr<HttpStore> store, const std::string& target,
                                     const SourceContext& context) {
    auto upload = std::make_unique<AzureUpload>(std::move(store), target, context);
    upload->require_none(context);
    return upload;
}

std::unique_ptr<Upload> azure_prepared(std::shared_ptr<HttpStore> store, const std::string& target,
                                       const SourceContext& context) {
    return std::make_unique<AzureUpload>(std::move(store), target, context);
}

}  // namespace shf
