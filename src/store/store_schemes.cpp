#include "store/store_schemes.h"

#include "core/error.h"
#include "core/options.h"
#include "http/http_source.h"
#include "io/sources.h"
#include "store/ais_store.h"
#include "store/azure_store.h"
#include "store/azure_upload.h"
#include "store/gs_store.h"
#include "store/gs_upload.h"
#include "store/hf_store.h"
#include "store/s3_store.h"
#include "store/s3_upload.h"
#include "url/azure_host.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace shf {

namespace {

using Opened = std::unique_ptr<Source>;
using Urls = std::vector<std::string>;

template <Opened (*open)(const std::string&, const SourceContext&)>
Identity identity_of(const std::string& url, const SourceContext& context) {
    return open(url, context)->identity();
}

using Prepared = std::unique_ptr<Upload>;

template <Prepared (*prepared)(const std::string&, const SourceContext&)>
void publish_in(const PreparedFile& file, const SourceContext& context) {
    publish_upload(*prepared(file.url, context), file, context);
}
template <Prepared (*prepared)(const std::string&, const SourceContext&)>
void discard_in(const PreparedFile& file, const SourceContext& context) {
    discard_upload(*prepared(file.url, context), file, context);
}

// `names`, which begin with `start`, as URLs like `prefix`, whose end is `start`.
Urls as_urls(const std::string& prefix, const std::string& start, Urls names) {
    const std::string place = prefix.substr(0, prefix.size() - start.size());
    for (std::string& name : names) name.insert(0, place);
    return names;
}

Opened open_s3(const std::string& url, const SourceContext& context) {
    const S3Url object = parse_s3_url(url);
    if (object.key.empty())
        throw Error(SHF_E_USAGE, "this URL names a bucket and no object",
                    "write s3://BUCKET/KEY, or s3://BUCKET/ for all shards in it");
    return http_source(s3_store(object.bucket, context), s3_target(object.key), context);
}
std::unique_ptr<Sink> write_s3(const std::string& url, const SourceContext& context) {
    const S3Url object = parse_s3_url(url);
    if (object.key.empty())
        throw Error(SHF_E_USAGE, "this URL names a bucket and no object", "write s3://BUCKET/KEY");
    return upload_sink(s3_upload(s3_store(object.bucket, context), s3_target(object.key), context),
                       context);
}
std::unique_ptr<Upload> prepared_s3(const std::string& url, const SourceContext& context) {
    const S3Url object = parse_s3_url(url);
    return s3_prepared(s3_store(object.bucket, context), s3_target(object.key), context);
}
void discard_left_s3(const std::string& pattern, const SourceContext& context) {
    const S3Url wanted = parse_s3_url(pattern);
    discard_s3_uploads(*s3_store(wanted.bucket, context), wanted.key, context);
}
Urls list_s3_urls(const std::string& prefix, const SourceContext& context) {
    const S3Url wanted = parse_s3_url(prefix);
    return as_urls(prefix, wanted.key, list_s3(wanted.bucket, wanted.key, context));
}

Opened open_gs(const std::string& url, const SourceContext& context) {
    const GsUrl object = parse_gs_url(url);
    if (object.key.empty())
        throw Error(SHF_E_USAGE, "this URL names a bucket and no object",
                    "write gs://BUCKET/KEY, or gs://BUCKET/ for all shards in it");
    return http_source(gs_store(context), gs_target(object), context);
}
std::unique_ptr<Sink> write_gs(const std::string& url, const SourceContext& context) {
    const GsUrl object = parse_gs_url(url);
    if (object.key.empty())
        throw Error(SHF_E_USAGE, "this URL names a bucket and no object", "write gs://BUCKET/KEY");
    return upload_sink(gs_upload(object, context), context);
}
std::unique_ptr<Upload> prepared_gs(const std::string& url, const SourceContext& context) {
    return gs_prepared(parse_gs_url(url), context);
}
void discard_left_gs(const std::string& pattern, const SourceContext& context) {
    discard_gs_prepared(parse_gs_url(pattern), context);
}
Urls list_gs_urls(const std::string& prefix, const SourceContext& context) {
    const GsUrl wanted = parse_gs_url(prefix);
    return as_urls(prefix, wanted.key, list_gs(wanted, context));
}

Opened open_azure(const std::string& url, const SourceContext& context) {
    const AzureUrl place = parse_azure_url(url);
    if (place.blob.empty())
        throw Error(SHF_E_USAGE, "this URL names a container and no blob",
                    "put the name of a blob behind it, or a slash for all shards in the container");
    return http_source(azure_store(place, context), place.target, context);
}
std::unique_ptr<Sink> write_azure(const std::string& url, const SourceContext& context) {
    const AzureUrl place = parse_azure_url(url);
    if (place.blob.empty())
        throw Error(SHF_E_USAGE, "this URL names a container and no blob",
                    "put the name of a blob behind it");
    return upload_sink(azure_upload(azure_store(place, context), place.target, context), context);
}
std::unique_ptr<Upload> prepared_azure(const std::string& url, const SourceContext& context) {
    const AzureUrl place = parse_azure_url(url);
    return azure_prepared(azure_store(place, context), place.target, context);
}
// Azure removes blocks after a week: nothing can do it before.
void discard_left_azure(const std::string& /*pattern*/, const SourceContext& /*context*/) {}
Urls list_azure_urls(const std::string& prefix, const SourceContext& context) {
    const AzureUrl wanted = parse_azure_url(prefix);
    if (!wanted.start.ends_with('/'))
        throw Error(SHF_E_USAGE, "this URL has no slash after the name of the container",
                    "write " + wanted.start + "/ for all shards in it; its name is no pattern");
    Urls urls = list_azure(wanted, context);
    for (std::string& url : urls) url = azure_url_of(url, wanted, prefix);
    return urls;
}
// Of the web: what has a query may be signed, and what has a token is for somebody else.
bool is_azure(std::string_view url, const Options& options) {
    return options.token.empty() && is_azure_blob_url(url);
}

Opened open_hf(const std::string& url, const SourceContext& context) {
    const HfUrl file = parse_hf_url(url);
    if (file.path.empty())
        throw Error(SHF_E_USAGE, "this URL names a repository and no file",
                    "write hf://datasets/OWNER/NAME/PATH, or a / at the end for all shards in it");
    return http_source(hf_store(file, context), hf_target(file), context);
}
Urls list_hf_urls(const std::string& prefix, const SourceContext& context) {
    const HfUrl wanted = parse_hf_url(prefix);
    return as_urls(prefix, wanted.path, list_hf(wanted, context));
}

Opened open_ais(const std::string& url, const SourceContext& context) {
    const AisUrl object = parse_ais_url(url);
    if (object.name.empty())
        throw Error(SHF_E_USAGE, "this URL names a bucket and no object",
                    "write ais://BUCKET/NAME, or ais://BUCKET/ for all shards in it");
    return http_source(ais_store(context), ais_target(object, context), context);
}
Urls list_ais_urls(const std::string& prefix, const SourceContext& context) {
    const AisUrl wanted = parse_ais_url(prefix);
    return as_urls(prefix, wanted.name, list_ais(wanted, context));
}

constexpr std::array schemes = {
    Scheme{"s3", open_s3, identity_of<open_s3>, list_s3_urls, nullptr, write_s3,
           publish_in<prepared_s3>, discard_in<prepared_s3>, discard_left_s3},
    Scheme{"gs", open_gs, identity_of<open_gs>, list_gs_urls, nullptr, write_gs,
           publish_in<prepared_gs>, discard_in<prepared_gs>, discard_left_gs},
    Scheme{"az", open_azure, identity_of<open_azure>, list_azure_urls, nullptr, write_azure,
           publish_in<prepared_azure>, discard_in<prepared_azure>, discard_left_azure},
    Scheme{"abfs", open_azure, identity_of<open_azure>, list_azure_urls, nullptr, write_azure,
           publish_in<prepared_azure>, discard_in<prepared_azure>, discard_left_azure},
    Scheme{"abfss", open_azure, identity_of<open_azure>, list_azure_urls, nullptr, write_azure,
           publish_in<prepared_azure>, discard_in<prepared_azure>, discard_left_azure},
    Scheme{"https", open_azure, identity_of<open_azure>, list_azure_urls, is_azure, write_azure,
           publish_in<prepared_azure>, discard_in<prepared_azure>, discard_left_azure},
    Scheme{"hf", open_hf, identity_of<open_hf>, list_hf_urls},
    Scheme{"ais", open_ais, identity_of<open_ais>, list_ais_urls},
};

}  // namespace

void add_store_schemes() {
    static const bool added = [] {
        for (const Scheme& scheme : schemes) Sources::add(scheme);
        return true;
    }();
    (void)added;
}

}  // namespace shf
