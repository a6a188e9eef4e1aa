#include "store/s3_scheme.h"

#include "http/http_source.h"
#include "io/sources.h"
#include "store/s3_store.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

std::unique_ptr<Source> open(const std::string& url, const SourceContext& context) {
    const S3Url object = parse_s3_url(url);
    if (object.key.empty())
        throw Error(SHF_E_USAGE, "this URL names a bucket and no object",
                    "write s3://BUCKET/KEY, or s3://BUCKET/ for all shards in it");
    return http_source(s3_store(object.bucket, context), s3_target(object.key), context);
}

Identity identity_of(const std::string& url, const SourceContext& context) {
    return open(url, context)->identity();
}

std::vector<std::string> list(const std::string& prefix, const SourceContext& context) {
    const S3Url wanted = parse_s3_url(prefix);
    std::vector<std::string> urls = list_s3(wanted.bucket, wanted.key, context);
    for (std::string& url : urls) url = "s3://" + wanted.bucket + "/" + url;
    return urls;
}

constexpr Scheme scheme = {"s3", open, identity_of, list};

}  // namespace

void add_s3_scheme() {
    static const bool added = [] {
        Sources::add(scheme);
        return true;
    }();
    (void)added;
}

}  // namespace shf
