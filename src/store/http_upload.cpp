#include "store/http_upload.h"

#include "core/cancel.h"
#include "core/options.h"

#include <chrono>
#include <thread>

namespace shf {

HttpUpload::HttpUpload(std::shared_ptr<HttpStore> store, std::string target, const char* id_header,
                       const SourceContext& context)
    : store_(std::move(store)),
      target_(std::move(target)),
      overwrite_(context.options.overwrite),
      id_header_(id_header) {}

HttpRequest HttpUpload::asking(const char* method, const std::string& query) const {
    HttpRequest request;
    request.method = method;
    request.target = target_ + (query.empty() ? "" : "?" + query);
    return request;
}

void HttpUpload::require_none(const SourceContext& context) const {
    if (overwrite_) return;
    const HttpReply reply = http_fetch(asking("HEAD"), *store_, context, 0, {400, 401, 403, 404});
    if (reply.answer.status < 300) throw target_exists();
}

void HttpUpload::check(uint64_t size, const SourceContext& context) {
    // A server over a file system may replace an object by removing it first, as when two processes
    // complete one upload.
    constexpr int looks = 10;
    constexpr std::chrono::milliseconds pause{50};
    std::optional<HttpAnswer> answer;
    for (int i = 0; i < looks && !answer; ++i) {
        if (i > 0) std::this_thread::sleep_for(pause);
        context.cancel.check();
        answer = http_look(asking("HEAD"), *store_, context);
    }
    if (!answer) throw not_as_written("it is not there");
    if (answer->length && answer->length != size)
        throw not_as_written("it has " + plural(*answer->length, "byte") + ", and " +
                             plural(size, "byte") + " were written");
    // Few servers leave it out.
    if (const auto id = answer->header(id_header_); !id.empty() && id != id_)
        throw not_as_written("somebody else has written it");
}

void HttpUpload::resume(const PreparedFile& file) {
    if (file.upload.size() != id_.size() ||
        file.upload.find_first_not_of("0123456789abcdef") != file.upload.npos)
        throw not_prepared();
    id_ = file.upload;
}

Error not_prepared() {
    return Error(SHF_E_USAGE, "this is no upload that a writer has prepared",
                 "give what the writer said");
}

bool HttpUpload::is_ours(std::optional<uint64_t> size, const SourceContext& context) const {
    try {
        const std::optional<HttpAnswer> answer = http_look(asking("HEAD"), *store_, context);
        return answer && answer->header(id_header_) == id_ && (!size || answer->length == size);
    } catch (const Error& error) {
        if (error.code() == SHF_E_CANCELLED) throw;
        return false;
    }
}

}  // namespace shf
