// The option table and its parser, value by value; the calls over it are tested in tests/api.
#include "core/options.h"
#include "core/error.h"
#include "core/option_names.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using shf::Options;

uint64_t bytes(std::string_view text) {
    Options options;
    options.set("max_member", text);
    return options.max_member;
}

uint64_t nanoseconds(std::string_view text) {
    Options options;
    options.set("timeout", text);
    return options.timeout;
}

bool accepts(std::string_view name, std::string_view value) {
    Options options;
    try {
        options.set(name, value);
        return true;
    } catch (const shf::Error& error) {
        EXPECT_EQ(error.code(), SHF_E_USAGE);
        return false;
    }
}

TEST(Options, sizes) {
    EXPECT_EQ(bytes("0"), 0U);
    EXPECT_EQ(bytes("1000"), 1000U);
    EXPECT_EQ(bytes("12B"), 12U);
    EXPECT_EQ(bytes("3KiB"), 3072U);
    EXPECT_EQ(bytes("1.5MiB"), 1572864U);
    EXPECT_EQ(bytes("0.5 GiB"), uint64_t{1} << 29);
    EXPECT_EQ(bytes("2TiB"), uint64_t{1} << 41);
    EXPECT_EQ(bytes("1PiB"), uint64_t{1} << 50);
    EXPECT_EQ(bytes("1EiB"), uint64_t{1} << 60);
    EXPECT_EQ(bytes("5kB"), 5000U);
    EXPECT_EQ(bytes("5KB"), 5000U);
    EXPECT_EQ(bytes("5k"), 5000U);
    EXPECT_EQ(bytes("7MB"), 7000000U);
    EXPECT_EQ(bytes("7GB"), 7000000000U);
    EXPECT_EQ(bytes("1TB"), 1000000000000U);
}

TEST(Options, durations) {
    EXPECT_EQ(nanoseconds("0"), 0U);
    EXPECT_EQ(nanoseconds("2"), 2000000000U);
    EXPECT_EQ(nanoseconds("1.5s"), 1500000000U);
    EXPECT_EQ(nanoseconds("200ms"), 200000000U);
    EXPECT_EQ(nanoseconds("3us"), 3000U);
    EXPECT_EQ(nanoseconds("4ns"), 4U);
    EXPECT_EQ(nanoseconds("2min"), 120000000000U);
    EXPECT_EQ(nanoseconds("0.25h"), 900000000000U);
    EXPECT_EQ(nanoseconds("1000000s"), 1000000000000000U);
}

TEST(Options, what_is_no_number) {
    for (const char* text : {"",         " ",
                             "B",        "MiB",
                             "1 MiB ",   "1  MiB",
                             " 1MiB",    "1.MiB",
                             ".5MiB",    "1,5MiB",
                             "1.5.5MiB", "+1",
                             "-1",       "0x10",
                             "1e6",      "1mib",
                             "1Mib",     "1MiBs",
                             "1 2",      "18446744073709551616",
                             "16EiB",    "99999999999999999999999"})
        EXPECT_FALSE(accepts("max_member", text)) << text;
    for (const char* text : {"1.5", "1k", "1 000", "1_000", "1.0"})
        EXPECT_FALSE(accepts("shuffle", text)) << text;
    EXPECT_FALSE(accepts("shuffle", std::string_view("1\0", 2)));
}

TEST(Options, both_ends_of_a_range) {
    EXPECT_TRUE(accepts("world_size", "1"));
    EXPECT_FALSE(accepts("world_size", "0"));
    EXPECT_TRUE(accepts("world_size", "16777216"));
    EXPECT_FALSE(accepts("world_size", "16777217"));
    EXPECT_TRUE(accepts("memory", "1048576"));
    EXPECT_FALSE(accepts("memory", "1048575"));
    EXPECT_TRUE(accepts("memory", "16TiB"));
    EXPECT_FALSE(accepts("memory", "17592186044417"));
    EXPECT_TRUE(accepts("timeout", "1000000"));
    EXPECT_FALSE(accepts("timeout", "1000000.000000001"));
}

TEST(Options, truth) {
    Options options;
    for (const char* text : {"true", "1", "yes", "on"}) {
        options.resample = false;
        options.set("resample", text);
        EXPECT_TRUE(options.resample) << text;
    }
    for (const char* text : {"false", "0", "no", "off"}) {
        options.resample = true;
        options.set("resample", text);
        EXPECT_FALSE(options.resample) << text;
    }
    for (const char* text : {"", "2", "True", "YES", "true|false", "t"})
        EXPECT_FALSE(accepts("resample", text)) << text;
}

TEST(Options, choices) {
    Options options;
    EXPECT_EQ(options.on_error, shf::OnError::raise);
    options.set("on_error", "skip_shard");
    EXPECT_EQ(options.on_error, shf::OnError::skip_shard);
    options.set("on_error", "skip_sample");
    EXPECT_EQ(options.on_error, shf::OnError::skip_sample);
    options.set("end_marker", "optional");
    EXPECT_EQ(options.end_marker, shf::EndMarker::optional);
    options.set("trailing", "ignore");
    EXPECT_EQ(options.trailing, shf::Trailing::ignore);
    options.set("duplicate_keys", "accept");
    EXPECT_EQ(options.duplicate_keys, shf::DuplicateKeys::accept);
    for (const char* text : {"", "skip", "raise|skip_sample", "Raise", "0"})
        EXPECT_FALSE(accepts("on_error", text)) << text;
}

// Names of other loaders lead to options that there are, and hide none.
TEST(Options, names_of_other_loaders) {
    Options options;
    const auto help = [&](std::string_view name) -> std::string {
        try {
            options.set(name, "1");
        } catch (const shf::Error& error) {
            return error.fault().help;
        }
        return {};
    };
    for (const auto& [name, meant] : shf::names_elsewhere()) {
        EXPECT_EQ(help(name), "did you mean \"" + std::string(meant) + "\"?");
        EXPECT_EQ(help(meant).find("did you mean"), std::string::npos) << meant;
    }
    EXPECT_EQ(shf::option_called("no such name"), "");
    EXPECT_EQ(help("shufle"), "did you mean \"shuffle\"?");
}

// What the rows say is what the struct holds; later changes of a default are seen here.
TEST(Options, defaults) {
    const Options options;
    EXPECT_EQ(options.threads, 0U);
    EXPECT_EQ(options.memory, uint64_t{256} << 20);
    EXPECT_EQ(options.shuffle, 0U);
    EXPECT_FALSE(options.shuffle_shards);
    EXPECT_EQ(options.epochs, 1U);
    EXPECT_EQ(options.world_size, 1U);
    EXPECT_EQ(options.num_workers, 1U);
    EXPECT_EQ(options.max_skips, 1000U);
    EXPECT_EQ(options.end_marker, shf::EndMarker::required);
    EXPECT_EQ(options.trailing, shf::Trailing::refuse);
    EXPECT_EQ(options.timeout, 0U);
    EXPECT_EQ(options.pipe_timeout, 600000000000U);
    EXPECT_EQ(options.senders, 1U);
    EXPECT_EQ(options.retries, 7U);
    EXPECT_EQ(options.ca_file, "");
    EXPECT_EQ(options.cache, "");
    EXPECT_EQ(options.cache_size, uint64_t{1} << 40);
    EXPECT_FALSE(options.stale_ok);
    EXPECT_TRUE(options.expand);
    EXPECT_FALSE(options.secure);
}

// Every row stores into a place of its own: a setting changes one value only.
TEST(Options, no_two_rows_share_a_value) {
    for (size_t i = 0; shf::describe_option(i, SHF_OPTION_NAME); ++i) {
        const std::string name = shf::describe_option(i, SHF_OPTION_NAME);
        const std::string range = shf::describe_option(i, SHF_OPTION_RANGE);
        const std::string fallback = shf::describe_option(i, SHF_OPTION_DEFAULT);
        // Some value other than the default.
        std::string value = range.substr(range.find("..") + 2);
        if (const size_t bar = range.find('|'); bar != range.npos)
            value = range.substr(0, bar) == fallback
                        ? range.substr(bar + 1, range.find('|', bar + 1) - bar - 1)
                        : range.substr(0, bar);
        Options changed;
        const Options untouched;
        changed.set(name, value);
        int differences = 0;
        const auto compare = [&](auto member) {
            differences += changed.*member != untouched.*member;
        };
        for (auto member :
             {&Options::threads,        &Options::memory,       &Options::shuffle,
              &Options::seed,           &Options::epoch,        &Options::epochs,
              &Options::epoch_samples,  &Options::limit,        &Options::lanes,
              &Options::rank,           &Options::world_size,   &Options::worker,
              &Options::num_workers,    &Options::max_skips,    &Options::max_member,
              &Options::max_sample,     &Options::max_name,     &Options::max_meta,
              &Options::max_ratio,      &Options::max_window,   &Options::max_shards,
              &Options::timeout,        &Options::pipe_timeout, &Options::retries,
              &Options::connections,    &Options::range_size,   &Options::batch,
              &Options::max_decoded,    &Options::cache_size,   &Options::decode_threads,
              &Options::max_samples,    &Options::max_bytes,    &Options::first_shard,
              &Options::pack,           &Options::level,        &Options::compress_threads,
              &Options::batch_elements, &Options::bucket_wait,  &Options::pack_window,
              &Options::feed_timeout,   &Options::feed_wait,    &Options::senders})
            compare(member);
        for (auto member : {&Options::shuffle_shards,
                            &Options::resample,
                            &Options::concat,
                            &Options::allow_empty,
                            &Options::resync,
                            &Options::expand,
                            &Options::secure,
                            &Options::write_index,
                            &Options::allow_private,
                            &Options::stale_ok,
                            &Options::http2,
                            &Options::s3_anonymous,
                            &Options::s3_requester_pays,
                            &Options::gs_anonymous,
                            &Options::az_anonymous,
                            &Options::overwrite,
                            &Options::durable,
                            &Options::keep_partial,
                            &Options::prepare,
                            &Options::map,
                            &Options::by_index})
            compare(member);
        for (auto member : {&Options::fields,
                            &Options::bucket,
                            &Options::select_keys,
                            &Options::slice,
                            &Options::decode,
                            &Options::index_dir,
                            &Options::ca_file,
                            &Options::cache,
                            &Options::headers,
                            &Options::token,
                            &Options::client_cert,
                            &Options::client_key,
                            &Options::proxy,
                            &Options::s3_endpoint,
                            &Options::s3_region,
                            &Options::s3_profile,
                            &Options::s3_access_key,
                            &Options::s3_secret_key,
                            &Options::s3_session_token,
                            &Options::hf_endpoint,
                            &Options::hf_token,
                            &Options::ais_endpoint,
                            &Options::ais_token,
                            &Options::ais_provider,
                            &Options::ais_etl,
                            &Options::feed_token,
                            &Options::feed_server_key,
                            &Options::feed_secret_key,
                            &Options::gs_endpoint,
                            &Options::gs_credentials,
                            &Options::gs_token,
                            &Options::gs_access_key,
                            &Options::gs_secret_key,
                            &Options::gs_user_project,
                            &Options::az_account,
                            &Options::az_endpoint,
                            &Options::az_account_key,
                            &Options::az_sas,
                            &Options::az_connection_string,
                            &Options::index_for,
                            &Options::wids_index})
            compare(member);
        compare(&Options::on_error);
        compare(&Options::last);
        compare(&Options::ragged);
        compare(&Options::missing);
        compare(&Options::even);
        compare(&Options::until);
        compare(&Options::end_marker);
        compare(&Options::trailing);
        compare(&Options::duplicate_keys);
        compare(&Options::zip_prefix);
        compare(&Options::zip_overlap);
        compare(&Options::index);
        compare(&Options::checksums);
        compare(&Options::s3_addressing);
        compare(&Options::format);
        compare(&Options::compression);
        compare(&Options::feed_compression);
        compare(&Options::zip_method);
        compare(&Options::tar_headers);
        compare(&Options::unsafe_names);
        EXPECT_EQ(differences, 1) << name << "=" << value;
    }
}

}  // namespace
