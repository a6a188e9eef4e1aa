#include "core/options.h"

#include "core/error.h"
#include "core/option_names.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace shf {

namespace {

// A secret is a text that must not be shown.
enum class Type : uint8_t { boolean, count, bytes, duration, choice, text, secret };

// Where a parsed value goes. Choices are enums of one byte, numbered as in the row's range.
using OptionField =
    std::variant<bool Options::*, uint64_t Options::*, OnError Options::*, EndMarker Options::*,
                 Trailing Options::*, DuplicateKeys Options::*, Leniency Options::*,
                 IndexUse Options::*, LastBatch Options::*, Ragged Options::*, Missing Options::*,
                 Even Options::*, Until Options::*, Checksums Options::*, S3Addressing Options::*,
                 ShardKind Options::*, Compression Options::*, FeedCompression Options::*,
                 ZipMethod Options::*, TarHeaders Options::*, std::string Options::*>;

struct Row {
    const char* name;
    const char* group;
    Type type;
    const char* fallback;  // the default
    const char* range;     // "LOW..HIGH" in the type's units, "a|b|c", or what a text means
    const char* openers;
    OptionField member;
    const char* help;
    bool orders = false;  // which samples come when depends on it
};

using O = Options;

// Names are part of the ABI: never renamed, never given another meaning. The binding for Python,
// docs/options.md and shf_option_describe read this table; no other place repeats it.
constexpr Row rows[] = {
    {"threads", "reading", Type::count, "0", "0..4096", "stream archive dataset", &O::threads,
     "shards read and decompressed at once, each by a thread; at least one per lane; 0: min(4, "
     "cores)"},
    {"memory", "reading", Type::bytes, "256MiB", "1MiB..16TiB", "stream mix archive dataset writer",
     &O::memory,
     "payload memory held ahead of the consumer, and the size of the largest member; of a writer: "
     "parts on their way to an object store"},
    {"shuffle_shards", "order", Type::boolean, "false", "true|false", "stream", &O::shuffle_shards,
     "permute the shards, in every epoch in another way", true},
    {"shuffle", "order", Type::count, "0", "0..1000000000", "stream", &O::shuffle,
     "samples in the shuffle buffer of each lane; 0 and 1: no shuffle", true},
    {"seed", "order", Type::count, "0", "0..18446744073709551615", "stream mix dataset", &O::seed,
     "key of every random choice", true},
    {"epoch", "order", Type::count, "0", "0..4294967295", "stream dataset", &O::epoch,
     "number of the first epoch; of a dataset the one that random choices of decode are of", true},
    {"epochs", "order", Type::count, "1", "0..4294967295", "stream mix", &O::epochs,
     "epochs until the end; 0: no end"},
    {"epoch_samples", "order", Type::count, "0", "0..9223372036854775807", "stream mix",
     &O::epoch_samples,
     "samples in an epoch over all consumers; each starts where the last one stopped; 0: one pass",
     true},
    {"resample", "order", Type::boolean, "false", "true|false", "stream", &O::resample,
     "draw shards with replacement", true},
    {"even", "order", Type::choice, "none", "none|drop|pad", "stream", &O::even,
     "the same number of samples for every consumer in each epoch: drop the surplus of some, or "
     "repeat samples on the others, marked; needs the index of every shard",
     true},
    {"by_index", "order", Type::boolean, "false", "true|false", "stream", &O::by_index,
     "compute the order of an epoch from the indexes of its shards, and read samples at their "
     "places: batches are the same with any number of workers, even divides by samples, and a "
     "state is good for any number of consumers",
     true},
    {"lanes", "order", Type::count, "0", "0..65536", "stream", &O::lanes,
     "sequences that are interleaved; best a multiple of the consumers; 0: one per consumer, "
     "with by_index one per rank"},
    {"rank", "consumer", Type::count, "0", "0..16777215", "stream", &O::rank,
     "number of this process"},
    {"world_size", "consumer", Type::count, "1", "1..16777216", "stream", &O::world_size,
     "number of processes that share the shards; above 1 a stream needs rank"},
    {"worker", "consumer", Type::count, "0", "0..65535", "stream", &O::worker,
     "number of this worker in its process"},
    {"num_workers", "consumer", Type::count, "1", "1..65536", "stream", &O::num_workers,
     "workers of each process, which share its shards; above 1 a stream needs worker; threads are "
     "the option threads"},
    {"fields", "selection", Type::text, "", "FIELD,FIELD,...", "stream dataset", &O::fields,
     "keep these fields; members of others are not looked at, even where they are damaged or there "
     "twice; a stream skips samples that have none of them; empty: all",
     true},
    {"select_keys", "selection", Type::text, "", "PATTERN,PATTERN,...", "stream", &O::select_keys,
     "deliver samples whose key matches a shell pattern, in which a star matches slashes too; "
     "others are not read; empty: all",
     true},
    {"slice", "selection", Type::text, "", "START:STOP:STEP", "stream", &O::slice,
     "deliver these samples of each shard, as a slice of Python; numbers count from 0, good and "
     "bad ones, regardless of their keys; others are not read; empty: all",
     true},
    {"limit", "selection", Type::count, "0", "0..9223372036854775807", "stream", &O::limit,
     "the first samples of each epoch, over all consumers; each lane gives its part of them and "
     "leaves the rest of its shards unread; 0: all",
     true},
    {"on_error", "errors", Type::choice, "raise", "raise|skip_sample|skip_shard", "stream mix",
     &O::on_error, "what a damaged sample or shard does; skips are counted and logged"},
    {"max_skips", "errors", Type::count, "1000", "0..18446744073709551615", "stream mix",
     &O::max_skips, "skipped samples and shards until the stream ends with LIMIT"},
    {"end_marker", "leniency", Type::choice, "required", "required|optional",
     "stream archive dataset", &O::end_marker,
     "optional: a tar may end after a whole member, without its two zero blocks"},
    {"concat", "leniency", Type::boolean, "false", "true|false", "stream archive dataset",
     &O::concat, "continue with another tar after an end marker", true},
    {"trailing", "leniency", Type::choice, "refuse", "refuse|ignore", "stream archive dataset",
     &O::trailing,
     "ignore: accept junk after the end marker, the compressed data or a ZIP end record"},
    {"zip_prefix", "leniency", Type::choice, "refuse", "refuse|allow", "stream archive dataset",
     &O::zip_prefix, "allow: data may stand before a ZIP file, as in self-extracting files"},
    {"zip_overlap", "leniency", Type::choice, "refuse", "refuse|allow", "stream archive dataset",
     &O::zip_overlap, "allow: read entries of a ZIP file that share bytes with others"},
    {"allow_empty", "leniency", Type::boolean, "false", "true|false", "stream dataset",
     &O::allow_empty, "accept shards without samples"},
    {"duplicate_keys", "leniency", Type::choice, "error", "error|accept", "stream dataset writer",
     &O::duplicate_keys,
     "a key that comes again later in its shard; looked for in the first 1048576 samples", true},
    {"resync", "leniency", Type::boolean, "false", "true|false", "archive", &O::resync,
     "members in sequence: continue behind damage with the next member that can be found"},
    {"max_member", "limits", Type::bytes, "16GiB", "0..1EiB", "stream archive dataset",
     &O::max_member, "size of the largest member"},
    {"max_sample", "limits", Type::bytes, "16GiB", "0..1EiB", "stream dataset", &O::max_sample,
     "size of the largest sample, all fields together"},
    {"max_name", "limits", Type::bytes, "64KiB", "1..1GiB", "stream archive dataset", &O::max_name,
     "length of the longest member name"},
    {"max_meta", "limits", Type::bytes, "1MiB", "1..1GiB", "stream archive dataset", &O::max_meta,
     "pax and GNU long-name headers before one member"},
    {"max_ratio", "limits", Type::count, "1000", "1..18446744073709551615",
     "stream archive dataset", &O::max_ratio,
     "output per input byte of all codecs but gzip, and of 7z and RAR, after the first 64 MiB"},
    {"max_window", "limits", Type::bytes, "128MiB", "1KiB..2GiB", "stream archive dataset",
     &O::max_window,
     "history that a zstd frame may ask for; an xz decoder may use twice as much memory"},
    {"max_shards", "limits", Type::count, "100000000", "1..4294967295", "stream dataset",
     &O::max_shards, "shards after expansion"},
    {"timeout", "reading", Type::duration, "0", "0..1000000s", "stream mix archive dataset",
     &O::timeout,
     "longest wait of one call; longest time that opening an archive or a dataset takes; 0: no "
     "limit"},
    {"pipe_timeout", "reading", Type::duration, "600s", "0..1000000s",
     "stream archive dataset writer", &O::pipe_timeout,
     "longest silence of a child process, a FIFO or messages of ZeroMQ; 0: no limit"},
    {"senders", "reading", Type::count, "1", "0..1000000", "stream archive", &O::senders,
     "end marks after which messages of ZeroMQ (zpull://...) end, one of each sender; 0: nothing "
     "ends them"},
    {"map", "reading", Type::boolean, "false", "true|false", "stream archive dataset", &O::map,
     "local files are mapped, and fields are where they lie in memory; for files that nobody "
     "changes while they are read: one that is cut ends the program"},
    {"retries", "network", Type::count, "7", "0..1000", "stream archive dataset writer",
     &O::retries, "requests that are made again after a fault that may pass, one after another"},
    {"connections", "network", Type::count, "8", "1..256", "stream archive dataset writer",
     &O::connections,
     "ranges of a shard that are fetched at once, or parts that are uploaded, each over a "
     "connection"},
    {"range_size", "network", Type::bytes, "8MiB", "256KiB..1GiB", "stream archive dataset",
     &O::range_size,
     "bytes of such a range, less where connections * range_size is more than memory / 4 or 48 "
     "MiB"},
    {"http2", "network", Type::boolean, "false", "true|false", "stream archive dataset writer",
     &O::http2, "HTTP/2 over TLS where the server has it, with all ranges on one connection"},
    {"headers", "network", Type::secret, "", "Name: value, one on each line",
     "stream archive dataset writer", &O::headers,
     "sent with every request to the host of the URL, and to no other"},
    {"token", "network", Type::secret, "", "TEXT", "stream archive dataset", &O::token,
     "sent as Authorization: Bearer to the host of the URL, and to no other"},
    {"ca_file", "network", Type::text, "", "PATH", "stream archive dataset writer", &O::ca_file,
     "certificates, in PEM, that HTTPS servers are verified with; empty: those of the system"},
    {"client_cert", "network", Type::text, "", "PATH", "stream archive dataset writer",
     &O::client_cert, "PEM file with the certificate that proves to a server who you are"},
    {"client_key", "network", Type::text, "", "PATH", "stream archive dataset writer",
     &O::client_key, "PEM file with its private key; empty: in client_cert"},
    {"proxy", "network", Type::text, "", "URL|none", "stream archive dataset writer", &O::proxy,
     "empty: that of http_proxy, https_proxy and no_proxy in the environment"},
    {"allow_private", "network", Type::boolean, "false", "true|false",
     "stream archive dataset writer", &O::allow_private,
     "follow redirects from public addresses to those of this machine and of private networks"},
    {"checksums", "network", Type::choice, "all", "all|fast|none", "stream archive dataset",
     &O::checksums,
     "which checksums that servers give are compared with the bytes of shards that are read from "
     "start to end: all; fast: CRCs alone, which cost next to nothing, no SHA or MD5; none"},
    {"cache", "network", Type::text, "", "folder", "stream archive dataset", &O::cache,
     "where shards of the network are kept once they were read; any number of processes share it; "
     "empty: nowhere"},
    {"cache_size", "network", Type::bytes, "1TiB", "0..1EiB", "stream archive dataset",
     &O::cache_size,
     "bytes in the cache; what was not used for longest is removed; above the largest shard; 0: no "
     "bound"},
    {"stale_ok", "network", Type::boolean, "false", "true|false", "stream archive dataset",
     &O::stale_ok,
     "read the version of a shard that the cache has when its server cannot be reached"},
    {"s3_endpoint", "s3", Type::text, "", "URL", "stream archive dataset writer", &O::s3_endpoint,
     "empty: that of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile; else AWS"},
    {"s3_region", "s3", Type::text, "", "TEXT", "stream archive dataset writer", &O::s3_region,
     "empty: that of AWS_REGION, AWS_DEFAULT_REGION or the profile; a wrong one is corrected"},
    {"s3_profile", "s3", Type::text, "", "TEXT", "stream archive dataset writer", &O::s3_profile,
     "of the config and credentials files of aws; empty: AWS_PROFILE, else default"},
    {"s3_access_key", "s3", Type::secret, "", "TEXT", "stream archive dataset writer",
     &O::s3_access_key, "with s3_secret_key, in place of the credentials that are looked for"},
    {"s3_secret_key", "s3", Type::secret, "", "TEXT", "stream archive dataset writer",
     &O::s3_secret_key, "belongs to s3_access_key"},
    {"s3_session_token", "s3", Type::secret, "", "TEXT", "stream archive dataset writer",
     &O::s3_session_token, "belongs to s3_access_key, where the keys are temporary"},
    {"s3_anonymous", "s3", Type::boolean, "false", "true|false", "stream archive dataset writer",
     &O::s3_anonymous, "read public buckets without credentials"},
    {"s3_requester_pays", "s3", Type::boolean, "false", "true|false",
     "stream archive dataset writer", &O::s3_requester_pays,
     "agree to pay for requests to buckets whose owners do not"},
    {"s3_addressing", "s3", Type::choice, "auto", "auto|path|virtual",
     "stream archive dataset writer", &O::s3_addressing,
     "where the bucket stands: in the path, or in front of the host; auto: in front of the host at "
     "AWS, else in the path"},
    {"gs_endpoint", "gs", Type::text, "", "URL", "stream archive dataset writer", &O::gs_endpoint,
     "empty: that of STORAGE_EMULATOR_HOST, else that of Google"},
    {"gs_credentials", "gs", Type::text, "", "file", "stream archive dataset writer",
     &O::gs_credentials,
     "JSON of a service account, a user, or an external account; empty: "
     "GOOGLE_APPLICATION_CREDENTIALS, the login of gcloud, the machine"},
    {"gs_token", "gs", Type::secret, "", "TEXT", "stream archive dataset writer", &O::gs_token,
     "an access token, in place of the credentials that are looked for"},
    {"gs_access_key", "gs", Type::secret, "", "TEXT", "stream archive dataset writer",
     &O::gs_access_key,
     "of an HMAC key: with gs_secret_key, in place of the credentials that are looked for"},
    {"gs_secret_key", "gs", Type::secret, "", "TEXT", "stream archive dataset writer",
     &O::gs_secret_key, "belongs to gs_access_key"},
    {"gs_anonymous", "gs", Type::boolean, "false", "true|false", "stream archive dataset writer",
     &O::gs_anonymous, "read public buckets without credentials"},
    {"gs_user_project", "gs", Type::text, "", "TEXT", "stream archive dataset writer",
     &O::gs_user_project, "the project that pays for requests to buckets whose owners do not"},
    {"az_account", "az", Type::text, "", "TEXT", "stream archive dataset writer", &O::az_account,
     "the storage account; empty: that of the URL, of az_connection_string, of "
     "AZURE_STORAGE_ACCOUNT or of AZURE_STORAGE_CONNECTION_STRING"},
    {"az_endpoint", "az", Type::text, "", "URL", "stream archive dataset writer", &O::az_endpoint,
     "where the blobs of the account are; empty: as a connection string says, else Azure"},
    {"az_account_key", "az", Type::secret, "", "TEXT", "stream archive dataset writer",
     &O::az_account_key, "a key of the account, in place of the credentials that are looked for"},
    {"az_sas", "az", Type::secret, "", "TEXT", "stream archive dataset writer", &O::az_sas,
     "a shared access signature, likewise: sv=...&sig=..."},
    {"az_connection_string", "az", Type::secret, "", "TEXT", "stream archive dataset writer",
     &O::az_connection_string, "with a key or a signature, likewise"},
    {"az_anonymous", "az", Type::boolean, "false", "true|false", "stream archive dataset writer",
     &O::az_anonymous, "read public containers without credentials"},
    {"hf_endpoint", "hf", Type::text, "", "URL", "stream archive dataset", &O::hf_endpoint,
     "empty: that of HF_ENDPOINT; else the hub of huggingface.co"},
    {"hf_token", "hf", Type::secret, "", "TEXT", "stream archive dataset", &O::hf_token,
     "empty: that of HF_TOKEN, or what hf auth login wrote; else public repositories alone"},
    {"ais_endpoint", "ais", Type::text, "", "URL", "stream archive dataset", &O::ais_endpoint,
     "of a proxy; empty: that of AIS_ENDPOINT"},
    {"ais_token", "ais", Type::secret, "", "TEXT", "stream archive dataset", &O::ais_token,
     "empty: that of AIS_AUTHN_TOKEN, or what ais auth login wrote; else none"},
    {"ais_provider", "ais", Type::text, "ais", "TEXT", "stream archive dataset", &O::ais_provider,
     "where the buckets come from: ais, aws, gcp, azure or oci"},
    {"ais_etl", "ais", Type::text, "", "TEXT", "stream archive dataset", &O::ais_etl,
     "the job that transforms objects as they are read; empty: none"},
    {"feed_token", "feed", Type::secret, "", "TEXT", "stream", &O::feed_token,
     "the secret that a server of a feed and its consumers share; empty: none"},
    {"feed_server_key", "feed", Type::text, "", "KEY", "stream", &O::feed_server_key,
     "public key (CURVE) of the servers of a feed; empty: no encryption"},
    {"feed_secret_key", "feed", Type::secret, "", "KEY", "stream", &O::feed_secret_key,
     "secret key of a server of a feed; empty: no encryption"},
    {"feed_timeout", "feed", Type::duration, "5s", "100ms..1000000s", "stream", &O::feed_timeout,
     "silence of a server of a feed after which another one continues its lanes"},
    {"feed_wait", "feed", Type::duration, "60s", "0..1000000s", "stream", &O::feed_wait,
     "time without any server of a feed after which the stream fails"},
    {"feed_compression", "feed", Type::choice, "none", "none|lz4|zstd", "stream",
     &O::feed_compression,
     "of what servers of a feed send to this stream: lz4 or zstd where the network is slower than "
     "they compress"},
    {"expand", "reading", Type::boolean, "true", "true|false", "stream dataset", &O::expand,
     "expand braces, ::, ${NAME}, @FILE, ~/ and shell patterns in URLs"},
    {"secure", "reading", Type::boolean, "false", "true|false", "stream archive dataset writer",
     &O::secure,
     "refuse child processes and messages of ZeroMQ; SHARDFEED_SECURE=1 in the environment does "
     "the same"},
    {"write_index", "index", Type::boolean, "false", "true|false", "stream writer", &O::write_index,
     "save the index of each tar that is written, or read to its end; none with fields, "
     "select_keys or slice"},
    {"decode", "batches", Type::text, "auto", "FIELD:KIND/..., ...", "stream mix dataset",
     &O::decode, "columns of a batch: which field becomes what; auto: every field, by its suffix"},
    {"batch", "batches", Type::count, "0", "0..4294967295", "stream mix", &O::batch,
     "samples in a batch; 0: the stream delivers samples"},
    {"pack", "batches", Type::count, "0", "0..1073741824", "stream mix", &O::pack,
     "elements in each row of a batch: arrays of samples, as tokens of documents, are joined and "
     "cut into such rows; 0: a row is a sample"},
    {"pack_window", "batches", Type::count, "0", "0..65536", "stream mix", &O::pack_window,
     "samples among which rows of pack are filled best-fit, each cut only where it is longer than "
     "a row; 0: joined in their order"},
    {"batch_elements", "batches", Type::count, "0", "0..1099511627776", "stream mix",
     &O::batch_elements,
     "elements that an array of a batch has at most, with the zeros of ragged=pad: a batch ends "
     "before the sample that would be too much; 0: any number"},
    {"bucket", "batches", Type::text, "", "N,N,...", "stream mix", &O::bucket,
     "upper bounds of lengths, ascending: each batch is of samples of one bucket, padded to its "
     "bound; empty: batches in the order of the samples"},
    {"bucket_wait", "batches", Type::count, "16384", "1..1048576", "stream mix", &O::bucket_wait,
     "samples that are read before those that wait in a bucket become a batch, even if it is not "
     "full"},
    {"last", "batches", Type::choice, "keep", "keep|drop", "stream mix", &O::last,
     "the last batch, when it has fewer samples"},
    {"ragged", "batches", Type::choice, "error", "error|offsets|pad", "stream mix dataset",
     &O::ragged,
     "arrays of unequal shape in one column: an error of the sample, one after another with "
     "offsets, or filled up with zeros"},
    {"missing", "batches", Type::choice, "error", "error|skip|empty", "stream mix dataset",
     &O::missing,
     "a sample without a field of decode: an error, skipped, or a row of zeros or no bytes"},
    {"decode_threads", "batches", Type::count, "0", "0..4096", "stream mix dataset",
     &O::decode_threads, "threads that decode; 0: one for each core"},
    {"max_decoded", "limits", Type::bytes, "256MiB", "1..1EiB", "stream mix dataset",
     &O::max_decoded, "size of the largest decoded field"},
    {"until", "order", Type::choice, "all", "first|all|forever", "mix", &O::until,
     "when a mix ends: with its first part that ends; with its last one; never: its parts restart, "
     "as with epochs=0",
     true},
    {"index", "index", Type::choice, "auto", "auto|require|rebuild|memory", "dataset", &O::index,
     "index files: use or create them; require them; rebuild them; keep indexes in memory only"},
    {"index_dir", "index", Type::text, "", "folder", "stream dataset writer", &O::index_dir,
     "where index files are kept; empty: beside the shard, or in the cache folder of the user "
     "where that cannot be written"},
    {"max_samples", "writing", Type::count, "0", "0..9223372036854775807", "writer",
     &O::max_samples, "samples of a shard, after which the next one begins; 0: any number"},
    {"max_bytes", "writing", Type::bytes, "0", "0..1EiB", "writer", &O::max_bytes,
     "bytes of a shard, before compression and with all headers; a larger sample has a shard of "
     "its own; 0: any number"},
    {"first_shard", "writing", Type::count, "0", "0..9223372036854775807", "writer",
     &O::first_shard, "number of the first shard, for the pattern of its name"},
    {"format", "writing", Type::choice, "auto", "auto|tar|zip", "writer", &O::format,
     "auto: a ZIP file where the pattern ends in .zip, else a tar"},
    {"compression", "writing", Type::choice, "auto", "auto|none|gzip|bzip2|xz|zstd|lz4", "writer",
     &O::compression, "of the whole tar; auto: by the suffix, as .tar.gz, .tgz or .tar.zst"},
    {"level", "writing", Type::count, "0", "0..22", "writer", &O::level,
     "of the compression; 0: 6 of gzip and xz, 9 of bzip2, 3 of zstd, 1 of lz4"},
    {"compress_threads", "writing", Type::count, "0", "0..256", "writer", &O::compress_threads,
     "threads that compress; the bytes are the same for any number; 0: one for each core"},
    {"zip_method", "writing", Type::choice, "auto", "auto|store|deflate", "writer", &O::zip_method,
     "members of a ZIP file; auto: deflate, but for suffixes of what is compressed already, as "
     "jpg"},
    {"tar_headers", "writing", Type::choice, "same", "same|tarp", "writer", &O::tar_headers,
     "owner, mode and time of the members of a tar; same: equal for all, so that the same samples "
     "make the same bytes; tarp: those that tarp writes, with the time of writing"},
    {"unsafe_names", "writing", Type::choice, "refuse", "refuse|allow", "writer", &O::unsafe_names,
     "allow: write names that are absolute, have the component .., or that readers take for "
     "another key or for none"},
    {"index_for", "writing", Type::text, "", "dali,energon", "writer", &O::index_for,
     "tools whose index of each plain tar is made too, beside it: SHARD.idx for SHARD.tar of DALI, "
     "SHARD.tar.idx of Megatron-Energon"},
    {"wids_index", "writing", Type::text, "", "file", "writer", &O::wids_index,
     "the index of wids over all shards, on a local disk, made when the last one is published"},
    {"overwrite", "writing", Type::boolean, "false", "true|false", "writer", &O::overwrite,
     "replace shards that are there"},
    {"durable", "writing", Type::boolean, "true", "true|false", "writer", &O::durable,
     "a shard that is published survives a crash of the machine (fsync)"},
    {"keep_partial", "writing", Type::boolean, "false", "true|false", "writer", &O::keep_partial,
     "leave the file of a shard that was not published, under the name that it had meanwhile"},
    {"prepare", "writing", Type::boolean, "false", "true|false", "writer", &O::prepare,
     "shards do not appear: each has a token, with which any process publishes or discards it"},
};

struct Unit {
    std::string_view name;
    uint64_t factor;
};

constexpr Unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40},
    {"PiB", 1ULL << 50},
    {"EiB", 1ULL << 60},
    {"k", 1000},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000ULL},
};
constexpr Unit duration_units[] = {
    {"", 1000000000ULL},
    {"ns", 1},
    {"us", 1000},
    {"ms", 1000000},
    {"s", 1000000000ULL},
    {"min", 60000000000ULL},
    {"h", 3600000000000ULL},
};
constexpr Unit count_units[] = {{"", 1}};

std::string_view type_name(Type type) {
    switch (type) {
        case Type::boolean: return "bool";
        case Type::count: return "count";
        case Type::bytes: return "bytes";
        case Type::duration: return "duration";
        case Type::choice: return "choice";
        case Type::text: return "text";
        case Type::secret: return "secret";
    }
    return {};
}

// Parses "1000", "1.5GiB", "30s". Nothing when the text is not a number of these units or does not
// fit 64 bits.
bool parse_number(std::string_view text, std::span<const Unit> units, uint64_t& out) {
    uint64_t whole = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (error != std::errc()) return false;
    std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
    uint64_t part = 0, scale = 1;  // the decimals: part / scale
    if (units.size() > 1 && rest.size() > 1 && rest[0] == '.') {
        rest.remove_prefix(1);
        while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9' && scale < 1000000000) {
            part = part * 10 + static_cast<uint64_t>(rest[0] - '0');
            scale *= 10;
            rest.remove_prefix(1);
        }
        if (scale == 1) return false;
    }
    if (units.size() > 1 && rest.size() > 1 && rest[0] == ' ') rest.remove_prefix(1);
    const auto unit =
        std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == rest; });
    if (unit == units.end()) return false;
    uint64_t value = 0;
    if (__builtin_mul_overflow(whole, unit->factor, &value)) return false;
    const auto decimals =
        static_cast<uint64_t>(static_cast<unsigned __int128>(part) * unit->factor / scale);
    return !__builtin_add_overflow(value, decimals, &out);
}

std::span<const Unit> units_of(Type type) {
    if (type == Type::bytes) return byte_units;
    if (type == Type::duration) return duration_units;
    return count_units;
}

bool in_range(const Row& row, uint64_t value) {
    const std::string_view range = row.range;
    const size_t dots = range.find("..");
    uint64_t low = 0, high = 0;
    parse_number(range.substr(0, dots), units_of(row.type), low);
    parse_number(range.substr(dots + 2), units_of(row.type), high);
    return low <= value && value <= high;
}

// The number of `value` among "a|b|c", or -1.
int choice_number(std::string_view choices, std::string_view value) {
    for (int number = 0; !choices.empty(); ++number) {
        const size_t bar = choices.find('|');
        if (choices.substr(0, bar) == value) return number;
        choices.remove_prefix(bar == choices.npos ? choices.size() : bar + 1);
    }
    return -1;
}

const Row& find_row(std::string_view name) {
    for (const Row& row : rows)
        if (name == row.name) return row;
    std::string nearest(option_called(name));
    if (nearest.empty()) {
        const auto distance = [&](const Row& row) {
            return name_distance(name.substr(0, 64), row.name);
        };
        nearest =
            std::min_element(std::begin(rows), std::end(rows), [&](const Row& a, const Row& b) {
                return distance(a) < distance(b);
            })->name;
    }
    throw Error(SHF_E_USAGE, "unknown option \"" + escape(name) + "\"",
                "did you mean \"" + nearest + "\"?");
}

[[noreturn]] void refuse(const Row& row, std::string_view value) {
    std::string help = "give ";
    switch (row.type) {
        case Type::boolean:
        case Type::choice: help += std::string("one of ") + row.range; break;
        case Type::count: help += std::string("a whole number in ") + row.range; break;
        case Type::bytes: help += std::string("a size such as 64MiB in ") + row.range; break;
        case Type::duration:
            help += std::string("a time such as 1.5s or 200ms in ") + row.range;
            break;
        case Type::text:
        case Type::secret: break;  // any is good
    }
    throw Error(SHF_E_USAGE,
                std::string("option ") + row.name + ": bad value \"" + escape(value) + "\"", help);
}

void store(Options& options, const Row& row, std::string_view value) {
    if (row.type == Type::boolean) {
        static constexpr std::string_view words = "false|true|0|1|no|yes|off|on";
        const int number = choice_number(words, value);
        if (number < 0) refuse(row, value);
        options.*std::get<bool Options::*>(row.member) = number % 2 == 1;
    } else if (row.type == Type::choice) {
        const int number = choice_number(row.range, value);
        if (number < 0) refuse(row, value);
        std::visit(
            [&](auto member) {
                using Value = std::remove_reference_t<decltype(options.*member)>;
                if constexpr (std::is_enum_v<Value>) options.*member = static_cast<Value>(number);
            },
            row.member);
    } else if (row.type == Type::text || row.type == Type::secret) {
        options.*std::get<std::string Options::*>(row.member) = value;
    } else {
        uint64_t number = 0;
        if (!parse_number(value, units_of(row.type), number) || !in_range(row, number))
            refuse(row, value);
        options.*std::get<uint64_t Options::*>(row.member) = number;
    }
}

// Whether `word` is one of the words of a text.
bool is_word(std::string_view text, std::string_view word) {
    while (!text.empty()) {
        const size_t space = text.find(' ');
        if (text.substr(0, space) == word) return true;
        text.remove_prefix(space == text.npos ? text.size() : space + 1);
    }
    return false;
}

std::string text_of(const Options& options, const Row& row) {
    const auto choice = [&](size_t number) {
        std::string_view choices = row.range;
        for (; number > 0; --number) choices.remove_prefix(choices.find('|') + 1);
        return std::string(choices.substr(0, choices.find('|')));
    };
    return std::visit(
        [&](auto member) -> std::string {
            const auto& value = options.*member;
            using Value = std::remove_cvref_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, std::string>)
                return escape(value);
            else if constexpr (std::is_same_v<Value, bool>)
                return value ? "true" : "false";
            else if constexpr (std::is_enum_v<Value>)
                return choice(static_cast<size_t>(value));
            else
                return std::to_string(value);
        },
        row.member);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> order_options(const Options& options,
                                                               std::string_view opener) {
    std::vector<std::pair<std::string, std::string>> texts;
    for (const Row& row : rows)
        if (row.orders && is_word(row.openers, opener))
            texts.emplace_back(row.name, text_of(options, row));
    return texts;
}

std::string default_of(std::string_view name) {
    const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                   [&](const Row& r) { return r.name == name; });
    return row == std::end(rows) ? std::string() : text_of(Options(), *row);
}

Options options_of(std::string_view opener, const Options& options) {
    const Options defaults;
    Options taken = options;
    for (const Row& row : rows)
        if (!is_word(row.openers, opener))
            std::visit([&](auto member) { taken.*member = defaults.*member; }, row.member);
    return taken;
}

Options::Options() {
    for (const Row& row : rows) store(*this, row, row.fallback);
}

void Options::set(std::string_view name, std::string_view value) {
    const Row& row = find_row(name);
    store(*this, row, value);
    if (const auto* number = std::get_if<uint64_t Options::*>(&row.member)) {
        rank_given = rank_given || *number == &Options::rank;
        worker_given = worker_given || *number == &Options::worker;
    }
}

std::string Options::get(std::string_view name) const {
    const Row& row = find_row(name);
    if (row.type == Type::text || row.type == Type::secret)
        return this->*std::get<std::string Options::*>(row.member);
    return text_of(*this, row) + (row.type == Type::duration ? "ns" : "");
}

void Options::require_consumer() const {
    if (num_workers > 1 && !worker_given) {
        constexpr uint64_t most_threads = 4096;
        throw Error(SHF_E_USAGE,
                    "num_workers=" + std::to_string(num_workers) +
                        ", but nothing says which worker this is",
                    "threads=" + std::to_string(std::min(num_workers, most_threads)) +
                        " reads all samples with threads; where workers share the shards, give "
                        "each its worker too");
    }
    if (world_size > 1 && !rank_given)
        throw Error(
            SHF_E_USAGE,
            "world_size=" + std::to_string(world_size) + ", but nothing says which rank this is",
            "give rank too; world_size=1 reads all samples");
}

void refuse_text(const char* option, std::string_view text, size_t at, const std::string& cause,
                 const std::string& help) {
    // The text with a mark before the character.
    const std::string shown = escape(text.substr(0, at)) + " >>> " + escape(text.substr(at));
    throw Error(SHF_E_USAGE,
                std::string("option ") + option + ": character " + std::to_string(at + 1) + ": " +
                    cause + " in \"" + shown + "\"",
                help.empty() ? "" : "give " + help);
}

const char* describe_option(size_t index, int32_t what) noexcept {
    if (index >= std::size(rows)) return nullptr;
    const Row& row = rows[index];
    switch (what) {
        case SHF_OPTION_NAME: return row.name;
        case SHF_OPTION_TYPE: return type_name(row.type).data();
        case SHF_OPTION_DEFAULT: return row.fallback;
        case SHF_OPTION_RANGE: return row.range;
        case SHF_OPTION_OPENERS: return row.openers;
        case SHF_OPTION_HELP: return row.help;
        case SHF_OPTION_GROUP: return row.group;
        default: return nullptr;
    }
}

}  // namespace shf
