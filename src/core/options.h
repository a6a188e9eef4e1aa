// The one table of options. A row gives name, type, default, range, who takes it, and a line of
// help; from it come the parser, shf_option_describe, the Python keywords and docs/options.md.
#pragma once

#include <shardfeed.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf {

class SourceFunctions;
class TokenizerFunctions;

enum class OnError : uint8_t { raise, skip_sample, skip_shard };
enum class EndMarker : uint8_t { required, optional };
enum class Trailing : uint8_t { refuse, ignore };
enum class DuplicateKeys : uint8_t { error, accept };
enum class Leniency : uint8_t { refuse, allow };
enum class LastBatch : uint8_t { keep, drop };
enum class Ragged : uint8_t { error, offsets, pad };
enum class Missing : uint8_t { error, skip, empty };
enum class Even : uint8_t { none, drop, pad };
enum class Until : uint8_t { first, all, forever };
enum class Checksums : uint8_t { all, fast, none };
enum class S3Addressing : uint8_t { automatic, path, virtual_host };
enum class ShardKind : uint8_t { automatic, tar, zip };
enum class Compression : uint8_t { automatic, none, gzip, bzip2, xz, zstd, lz4 };
enum class ZipMethod : uint8_t { automatic, store, deflate };
enum class TarHeaders : uint8_t { same, tarp };
enum class FeedCompression : uint8_t { none, lz4, zstd };
enum class IndexUse : uint8_t { automatic, require, rebuild, memory };

// The value of every option, in the units of the comments. Plain data: copy it to keep it.
struct Options {
    uint64_t threads;  // shards read at once, 0: chosen from the machine
    uint64_t memory;   // bytes
    bool shuffle_shards;
    uint64_t shuffle;  // samples a lane's shuffle buffer holds
    uint64_t seed;
    uint64_t epoch;          // number of the first epoch
    uint64_t epochs;         // 0: no end
    uint64_t epoch_samples;  // 0: an epoch is one pass over the shards
    uint64_t limit;          // 0: none
    bool resample;
    Even even;
    bool by_index;
    uint64_t lanes;  // 0: one per consumer, with by_index one per rank
    uint64_t rank;
    uint64_t world_size;
    uint64_t worker;
    uint64_t num_workers;
    std::string fields;  // the three filters: see SampleFilter
    std::string select_keys;
    std::string slice;
    OnError on_error;
    uint64_t max_skips;
    EndMarker end_marker;
    bool concat;
    Trailing trailing;
    Leniency zip_prefix;
    Leniency zip_overlap;
    bool allow_empty;
    bool resync;
    DuplicateKeys duplicate_keys;
    uint64_t max_member;    // bytes
    uint64_t max_sample;    // bytes
    uint64_t max_name;      // bytes
    uint64_t max_meta;      // bytes of pax and GNU long-name headers before one member
    uint64_t max_ratio;     // output : input of what is no gzip, after 64 MiB
    uint64_t max_window;    // bytes of history a zstd or xz decoder may ask for
    uint64_t max_shards;    // after expansion
    uint64_t timeout;       // nanoseconds, 0: none
    uint64_t pipe_timeout;  // nanoseconds without data from a child, 0: none
    uint64_t senders;       // end marks that end messages of ZeroMQ; 0: none does
    bool map;               // local files are read where they lie in memory
    uint64_t retries;       // of one request
    uint64_t connections;   // ranges of a shard that are fetched at once
    uint64_t range_size;    // bytes
    bool http2;
    std::string headers;  // "Name: value" on each line
    std::string token;
    std::string ca_file;  // empty: of the system
    std::string client_cert;
    std::string client_key;  // empty: in client_cert
    std::string proxy;       // empty: of the environment
    bool allow_private;
    Checksums checksums;
    std::string cache;    // folder, empty: none
    uint64_t cache_size;  // bytes, 0: no bound
    bool stale_ok;
    std::string s3_endpoint;  // empty: as the environment and the files of aws say
    std::string s3_region;    // likewise
    std::string s3_profile;
    std::string s3_access_key;
    std::string s3_secret_key;
    std::string s3_session_token;
    bool s3_anonymous;
    bool s3_requester_pays;
    S3Addressing s3_addressing;
    std::string gs_endpoint;     // empty: STORAGE_EMULATOR_HOST, else Google
    std::string gs_credentials;  // path; empty: as the environment says
    std::string gs_token;
    std::string gs_access_key;
    std::string gs_secret_key;
    bool gs_anonymous;
    std::string gs_user_project;
    std::string az_account;   // empty: as the environment or a connection string says
    std::string az_endpoint;  // likewise
    std::string az_account_key;
    std::string az_sas;
    std::string az_connection_string;
    bool az_anonymous;
    std::string hf_endpoint;  // empty: as the environment says
    std::string hf_token;     // likewise, and the token's file
    std::string ais_endpoint;
    std::string ais_token;
    std::string ais_provider;
    std::string ais_etl;
    std::string feed_token;       // empty: none
    std::string feed_server_key;  // of CURVE, empty: no encryption
    std::string feed_secret_key;  // likewise, of a server
    uint64_t feed_timeout;        // nanoseconds of silence
    uint64_t feed_wait;           // nanoseconds without a server
    FeedCompression feed_compression;
    bool expand;
    bool secure;
    bool write_index;
    std::string decode;
    uint64_t batch;        // rows, 0: no batches
    uint64_t pack;         // elements of a row that samples are joined into, 0: a row is a sample
    uint64_t pack_window;  // documents among which rows are filled best-fit, 0: none
    uint64_t batch_elements;  // of a column of a batch, 0: any number
    std::string bucket;       // upper bounds of lengths, separated by commas; empty: no buckets
    uint64_t bucket_wait;     // samples
    LastBatch last;
    Ragged ragged;
    Missing missing;
    uint64_t decode_threads;  // 0: chosen from the machine
    uint64_t max_decoded;     // bytes of one field
    Until until;
    IndexUse index;
    std::string index_dir;  // empty: beside the shard
    uint64_t max_samples;   // of a shard, 0: any number
    uint64_t max_bytes;     // of a shard before compression, 0: any number
    uint64_t first_shard;   // its number
    ShardKind format;
    Compression compression;
    uint64_t level;             // 0: the usual one of the codec
    uint64_t compress_threads;  // 0: one for each core
    ZipMethod zip_method;
    TarHeaders tar_headers;
    Leniency unsafe_names;
    std::string index_for;   // names of tools
    std::string wids_index;  // path; empty: none
    bool overwrite;
    bool durable;
    bool keep_partial;
    bool prepare;

    // Whether rank and worker were set, to any value.
    bool rank_given = false;
    bool worker_given = false;

    // Callbacks, which cannot be strings.
    int32_t log_level = 0;
    shf_log_fn log = nullptr;
    void* log_ctx = nullptr;
    shf_skip_fn on_skip = nullptr;
    void* on_skip_ctx = nullptr;
    shf_alloc_fn alloc = nullptr;
    shf_free_fn release = nullptr;
    void* alloc_ctx = nullptr;
    shf_interrupt_fn interrupt = nullptr;
    void* interrupt_ctx = nullptr;
    shf_name_fn name_shard = nullptr;
    void* name_shard_ctx = nullptr;
    std::vector<std::shared_ptr<const SourceFunctions>> sources{};  // at most one of a scheme
    std::shared_ptr<const TokenizerFunctions> tokenizer{};

    Options();  // every option at the default of its row
    // Parses and stores one value. Throws Error(USAGE).
    void set(std::string_view name, std::string_view value);
    // The value as text that set() takes, the same for equal values: bytes, nanoseconds ("500ns"),
    // "true". Throws Error(USAGE).
    [[nodiscard]] std::string get(std::string_view name) const;
    // Stores all of "name=value,name='a, b'", or none when it throws Error(USAGE).
    void set_all(std::string_view text);
    // Throws Error(USAGE) when there are several ranks or workers and nothing says which this is:
    // the first one would read its part, and nobody the others.
    void require_consumer() const;
};

// The options of `opener` ("stream", "mix") that say which samples come when, by name, as text.
std::vector<std::pair<std::string, std::string>> order_options(const Options& options,
                                                               std::string_view opener);

// The default of an option as order_options() writes it; empty when there is no such option.
std::string default_of(std::string_view name);

// These options, but the defaults of those that `opener` does not take.
Options options_of(std::string_view opener, const Options& options);

// Throws Error(USAGE) about the value `text` of an option, which points at its character number
// `at` from 0 on. `help` completes "give ...", and may be empty.
[[noreturn]] void refuse_text(const char* option, std::string_view text, size_t at,
                              const std::string& cause, const std::string& help);

// Property `what` (SHF_OPTION_*) of option number `index`, or NULL.
const char* describe_option(size_t index, int32_t what) noexcept;

}  // namespace shf
