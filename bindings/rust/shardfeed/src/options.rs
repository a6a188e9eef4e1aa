//! Made by tests/options.rs from the library's table of options. Do not edit.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use crate::builder::{
    ArchiveBuilder, DatasetBuilder, MixBuilder, Size, StreamBuilder, Value, WriterBuilder,
};

/// The option `even`: the same number of samples for every consumer in each epoch: drop the surplus
/// of some, or repeat samples on the others, marked; needs the index of every shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Even {
    /// `none`
    None,
    /// `drop`
    Drop,
    /// `pad`
    Pad,
}

impl Value for Even {
    fn text(self) -> OsString {
        match self {
            Even::None => "none",
            Even::Drop => "drop",
            Even::Pad => "pad",
        }
        .into()
    }
}

/// The option `on_error`: what a damaged sample or shard does; skips are counted and logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnError {
    /// `raise`
    Raise,
    /// `skip_sample`
    SkipSample,
    /// `skip_shard`
    SkipShard,
}

impl Value for OnError {
    fn text(self) -> OsString {
        match self {
            OnError::Raise => "raise",
            OnError::SkipSample => "skip_sample",
            OnError::SkipShard => "skip_shard",
        }
        .into()
    }
}

/// The option `end_marker`: optional: a tar may end after a whole member, without its two zero
/// blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndMarker {
    /// `required`
    Required,
    /// `optional`
    Optional,
}

impl Value for EndMarker {
    fn text(self) -> OsString {
        match self {
            EndMarker::Required => "required",
            EndMarker::Optional => "optional",
        }
        .into()
    }
}

/// The option `trailing`: ignore: accept junk after the end marker, the compressed data or a ZIP
/// end record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trailing {
    /// `refuse`
    Refuse,
    /// `ignore`
    Ignore,
}

impl Value for Trailing {
    fn text(self) -> OsString {
        match self {
            Trailing::Refuse => "refuse",
            Trailing::Ignore => "ignore",
        }
        .into()
    }
}

/// The option `zip_prefix`: allow: data may stand before a ZIP file, as in self-extracting files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZipPrefix {
    /// `refuse`
    Refuse,
    /// `allow`
    Allow,
}

impl Value for ZipPrefix {
    fn text(self) -> OsString {
        match self {
            ZipPrefix::Refuse => "refuse",
            ZipPrefix::Allow => "allow",
        }
        .into()
    }
}

/// The option `zip_overlap`: allow: read entries of a ZIP file that share bytes with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZipOverlap {
    /// `refuse`
    Refuse,
    /// `allow`
    Allow,
}

impl Value for ZipOverlap {
    fn text(self) -> OsString {
        match self {
            ZipOverlap::Refuse => "refuse",
            ZipOverlap::Allow => "allow",
        }
        .into()
    }
}

/// The option `duplicate_keys`: a key that comes again later in its shard; looked for in the first
/// 1048576 samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DuplicateKeys {
    /// `error`
    Error,
    /// `accept`
    Accept,
}

impl Value for DuplicateKeys {
    fn text(self) -> OsString {
        match self {
            DuplicateKeys::Error => "error",
            DuplicateKeys::Accept => "accept",
        }
        .into()
    }
}

/// The option `checksums`: which checksums that servers give are compared with the bytes of shards
/// that are read from start to end: all; fast: CRCs alone, which cost next to nothing, no SHA or
/// MD5; none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Checksums {
    /// `all`
    All,
    /// `fast`
    Fast,
    /// `none`
    None,
}

impl Value for Checksums {
    fn text(self) -> OsString {
        match self {
            Checksums::All => "all",
            Checksums::Fast => "fast",
            Checksums::None => "none",
        }
        .into()
    }
}

/// The option `s3_addressing`: where the bucket stands: in the path, or in front of the host; auto:
/// in front of the host at AWS, else in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum S3Addressing {
    /// `auto`
    Auto,
    /// `path`
    Path,
    /// `virtual`
    Virtual,
}

impl Value for S3Addressing {
    fn text(self) -> OsString {
        match self {
            S3Addressing::Auto => "auto",
            S3Addressing::Path => "path",
            S3Addressing::Virtual => "virtual",
        }
        .into()
    }
}

/// The option `feed_compression`: of what servers of a feed send to this stream: lz4 or zstd where
/// the network is slower than they compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FeedCompression {
    /// `none`
    None,
    /// `lz4`
    Lz4,
    /// `zstd`
    Zstd,
}

impl Value for FeedCompression {
    fn text(self) -> OsString {
        match self {
            FeedCompression::None => "none",
            FeedCompression::Lz4 => "lz4",
            FeedCompression::Zstd => "zstd",
        }
        .into()
    }
}

/// The option `last`: the last batch, when it has fewer samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Last {
    /// `keep`
    Keep,
    /// `drop`
    Drop,
}

impl Value for Last {
    fn text(self) -> OsString {
        match self {
            Last::Keep => "keep",
            Last::Drop => "drop",
        }
        .into()
    }
}

/// The option `ragged`: arrays of unequal shape in one column: an error of the sample, one after
/// another with offsets, or filled up with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ragged {
    /// `error`
    Error,
    /// `offsets`
    Offsets,
    /// `pad`
    Pad,
}

impl Value for Ragged {
    fn text(self) -> OsString {
        match self {
            Ragged::Error => "error",
            Ragged::Offsets => "offsets",
            Ragged::Pad => "pad",
        }
        .into()
    }
}

/// The option `missing`: a sample without a field of decode: an error, skipped, or a row of zeros
/// or no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// `error`
    Error,
    /// `skip`
    Skip,
    /// `empty`
    Empty,
}

impl Value for Missing {
    fn text(self) -> OsString {
        match self {
            Missing::Error => "error",
            Missing::Skip => "skip",
            Missing::Empty => "empty",
        }
        .into()
    }
}

/// The option `until`: when a mix ends: with its first part that ends; with its last one; never:
/// its parts restart, as with epochs=0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Until {
    /// `first`
    First,
    /// `all`
    All,
    /// `forever`
    Forever,
}

impl Value for Until {
    fn text(self) -> OsString {
        match self {
            Until::First => "first",
            Until::All => "all",
            Until::Forever => "forever",
        }
        .into()
    }
}

/// The option `index`: index files: use or create them; require them; rebuild them; keep indexes in
/// memory only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Index {
    /// `auto`
    Auto,
    /// `require`
    Require,
    /// `rebuild`
    Rebuild,
    /// `memory`
    Memory,
}

impl Value for Index {
    fn text(self) -> OsString {
        match self {
            Index::Auto => "auto",
            Index::Require => "require",
            Index::Rebuild => "rebuild",
            Index::Memory => "memory",
        }
        .into()
    }
}

/// The option `format`: auto: a ZIP file where the pattern ends in .zip, else a tar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `auto`
    Auto,
    /// `tar`
    Tar,
    /// `zip`
    Zip,
}

impl Value for Format {
    fn text(self) -> OsString {
        match self {
            Format::Auto => "auto",
            Format::Tar => "tar",
            Format::Zip => "zip",
        }
        .into()
    }
}

/// The option `compression`: of the whole tar; auto: by the suffix, as .tar.gz, .tgz or .tar.zst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// `auto`
    Auto,
    /// `none`
    None,
    /// `gzip`
    Gzip,
    /// `bzip2`
    Bzip2,
    /// `xz`
    Xz,
    /// `zstd`
    Zstd,
    /// `lz4`
    Lz4,
}

impl Value for Compression {
    fn text(self) -> OsString {
        match self {
            Compression::Auto => "auto",
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
            Compression::Lz4 => "lz4",
        }
        .into()
    }
}

/// The option `zip_method`: members of a ZIP file; auto: deflate, but for suffixes of what is
/// compressed already, as jpg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZipMethod {
    /// `auto`
    Auto,
    /// `store`
    Store,
    /// `deflate`
    Deflate,
}

impl Value for ZipMethod {
    fn text(self) -> OsString {
        match self {
            ZipMethod::Auto => "auto",
            ZipMethod::Store => "store",
            ZipMethod::Deflate => "deflate",
        }
        .into()
    }
}

/// The option `tar_headers`: owner, mode and time of the members of a tar; same: equal for all, so
/// that the same samples make the same bytes; tarp: those that tarp writes, with the time of
/// writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TarHeaders {
    /// `same`
    Same,
    /// `tarp`
    Tarp,
}

impl Value for TarHeaders {
    fn text(self) -> OsString {
        match self {
            TarHeaders::Same => "same",
            TarHeaders::Tarp => "tarp",
        }
        .into()
    }
}

/// The option `unsafe_names`: allow: write names that are absolute, have the component .., or that
/// readers take for another key or for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnsafeNames {
    /// `refuse`
    Refuse,
    /// `allow`
    Allow,
}

impl Value for UnsafeNames {
    fn text(self) -> OsString {
        match self {
            UnsafeNames::Refuse => "refuse",
            UnsafeNames::Allow => "allow",
        }
        .into()
    }
}

impl ArchiveBuilder {
    /// Shards read and decompressed at once, each by a thread; at least one per lane; 0: min(4,
    /// cores).
    ///
    /// Range: `0..4096`. Default: `0`.
    pub fn threads(self, value: u64) -> Self {
        self.with("threads", value)
    }

    /// Payload memory held ahead of the consumer, and the size of the largest member; of a writer:
    /// parts on their way to an object store.
    ///
    /// Range: `1MiB..16TiB`. Default: `256MiB`.
    pub fn memory(self, value: impl Into<Size>) -> Self {
        self.with("memory", value.into())
    }

    /// Optional: a tar may end after a whole member, without its two zero blocks.
    ///
    /// Range: `required|optional`. Default: `required`.
    pub fn end_marker(self, value: EndMarker) -> Self {
        self.with("end_marker", value)
    }

    /// Continue with another tar after an end marker.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn concat(self, value: bool) -> Self {
        self.with("concat", value)
    }

    /// Ignore: accept junk after the end marker, the compressed data or a ZIP end record.
    ///
    /// Range: `refuse|ignore`. Default: `refuse`.
    pub fn trailing(self, value: Trailing) -> Self {
        self.with("trailing", value)
    }

    /// Allow: data may stand before a ZIP file, as in self-extracting files.
    ///
    /// Range: `refuse|allow`. Default: `refuse`.
    pub fn zip_prefix(self, value: ZipPrefix) -> Self {
        self.with("zip_prefix", value)
    }

    /// Allow: read entries of a ZIP file that share bytes with others.
    ///
    /// Range: `refuse|allow`. Default: `refuse`.
    pub fn zip_overlap(self, value: ZipOverlap) -> Self {
        self.with("zip_overlap", value)
    }

    /// Members in sequence: continue behind damage with the next member that can be found.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn resync(self, value: bool) -> Self {
        self.with("resync", value)
    }

    /// Size of the largest member.
    ///
    /// Range: `0..1EiB`. Default: `16GiB`.
    pub fn max_member(self, value: impl Into<Size>) -> Self {
        self.with("max_member", value.into())
    }

    /// Length of the longest member name.
    ///
    /// Range: `1..1GiB`. Default: `64KiB`.
    pub fn max_name(self, value: impl Into<Size>) -> Self {
        self.with("max_name", value.into())
    }

    /// Pax and GNU long-name headers before one member.
    ///
    /// Range: `1..1GiB`. Default: `1MiB`.
    pub fn max_meta(self, value: impl Into<Size>) -> Self {
        self.with("max_meta", value.into())
    }

    /// Output per input byte of all codecs but gzip, and of 7z and RAR, after the first 64 MiB.
    ///
    /// Range: `1..18446744073709551615`. Default: `1000`.
    pub fn max_ratio(self, value: u64) -> Self {
        self.with("max_ratio", value)
    }

    /// History that a zstd frame may ask for; an xz decoder may use twice as much memory.
    ///
    /// Range: `1KiB..2GiB`. Default: `128MiB`.
    pub fn max_window(self, value: impl Into<Size>) -> Self {
        self.with("max_window", value.into())
    }

    /// Longest wait of one call; longest time that opening an archive or a dataset takes; 0: no
    /// limit.
    ///
    /// Range: `0..1000000s`. Default: `0`.
    pub fn timeout(self, value: Duration) -> Self {
        self.with("timeout", value)
    }

    /// Longest silence of a child process, a FIFO or messages of ZeroMQ; 0: no limit.
    ///
    /// Range: `0..1000000s`. Default: `600s`.
    pub fn pipe_timeout(self, value: Duration) -> Self {
        self.with("pipe_timeout", value)
    }

    /// End marks after which messages of ZeroMQ (zpull://...) end, one of each sender; 0: nothing
    /// ends them.
    ///
    /// Range: `0..1000000`. Default: `1`.
    pub fn senders(self, value: u64) -> Self {
        self.with("senders", value)
    }

    /// Local files are mapped, and fields are where they lie in memory; for files that nobody
    /// changes while they are read: one that is cut ends the program.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn map(self, value: bool) -> Self {
        self.with("map", value)
    }

    /// Requests that are made again after a fault that may pass, one after another.
    ///
    /// Range: `0..1000`. Default: `7`.
    pub fn retries(self, value: u64) -> Self {
        self.with("retries", value)
    }

    /// Ranges of a shard that are fetched at once, or parts that are uploaded, each over a
    /// connection.
    ///
    /// Range: `1..256`. Default: `8`.
    pub fn connections(self, value: u64) -> Self {
        self.with("connections", value)
    }

    /// Bytes of such a range, less where connections * range_size is more than memory / 4 or 48
    /// MiB.
    ///
    /// Range: `256KiB..1GiB`. Default: `8MiB`.
    pub fn range_size(self, value: impl Into<Size>) -> Self {
        self.with("range_size", value.into())
    }

    /// HTTP/2 over TLS where the server has it, with all ranges on one connection.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn http2(self, value: bool) -> Self {
        self.with("http2", value)
    }

    /// Sent with every request to the host of the URL, and to no other.
    ///
    /// Range: `Name: value, one on each line`. Default: empty.
    pub fn headers(self, value: impl AsRef<OsStr>) -> Self {
        self.with("headers", value.as_ref())
    }

    /// Sent as Authorization: Bearer to the host of the URL, and to no other.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("token", value.as_ref())
    }

    /// Certificates, in PEM, that HTTPS servers are verified with; empty: those of the system.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn ca_file(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ca_file", value.as_ref())
    }

    /// PEM file with the certificate that proves to a server who you are.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_cert(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_cert", value.as_ref())
    }

    /// PEM file with its private key; empty: in client_cert.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_key", value.as_ref())
    }

    /// Empty: that of http_proxy, https_proxy and no_proxy in the environment.
    ///
    /// Range: `URL|none`. Default: empty.
    pub fn proxy(self, value: impl AsRef<OsStr>) -> Self {
        self.with("proxy", value.as_ref())
    }

    /// Follow redirects from public addresses to those of this machine and of private networks.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn allow_private(self, value: bool) -> Self {
        self.with("allow_private", value)
    }

    /// Which checksums that servers give are compared with the bytes of shards that are read from
    /// start to end: all; fast: CRCs alone, which cost next to nothing, no SHA or MD5; none.
    ///
    /// Range: `all|fast|none`. Default: `all`.
    pub fn checksums(self, value: Checksums) -> Self {
        self.with("checksums", value)
    }

    /// Where shards of the network are kept once they were read; any number of processes share it;
    /// empty: nowhere.
    ///
    /// Range: `folder`. Default: empty.
    pub fn cache(self, value: impl AsRef<OsStr>) -> Self {
        self.with("cache", value.as_ref())
    }

    /// Bytes in the cache; what was not used for longest is removed; above the largest shard; 0: no
    /// bound.
    ///
    /// Range: `0..1EiB`. Default: `1TiB`.
    pub fn cache_size(self, value: impl Into<Size>) -> Self {
        self.with("cache_size", value.into())
    }

    /// Read the version of a shard that the cache has when its server cannot be reached.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn stale_ok(self, value: bool) -> Self {
        self.with("stale_ok", value)
    }

    /// Empty: that of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile; else AWS.
    ///
    /// Range: `URL`. Default: empty.
    pub fn s3_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_endpoint", value.as_ref())
    }

    /// Empty: that of AWS_REGION, AWS_DEFAULT_REGION or the profile; a wrong one is corrected.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_region(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_region", value.as_ref())
    }

    /// Of the config and credentials files of aws; empty: AWS_PROFILE, else default.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_profile(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_profile", value.as_ref())
    }

    /// With s3_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_access_key", value.as_ref())
    }

    /// Belongs to s3_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_secret_key", value.as_ref())
    }

    /// Belongs to s3_access_key, where the keys are temporary.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_session_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_session_token", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_anonymous(self, value: bool) -> Self {
        self.with("s3_anonymous", value)
    }

    /// Agree to pay for requests to buckets whose owners do not.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_requester_pays(self, value: bool) -> Self {
        self.with("s3_requester_pays", value)
    }

    /// Where the bucket stands: in the path, or in front of the host; auto: in front of the host at
    /// AWS, else in the path.
    ///
    /// Range: `auto|path|virtual`. Default: `auto`.
    pub fn s3_addressing(self, value: S3Addressing) -> Self {
        self.with("s3_addressing", value)
    }

    /// Empty: that of STORAGE_EMULATOR_HOST, else that of Google.
    ///
    /// Range: `URL`. Default: empty.
    pub fn gs_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_endpoint", value.as_ref())
    }

    /// JSON of a service account, a user, or an external account; empty:
    /// GOOGLE_APPLICATION_CREDENTIALS, the login of gcloud, the machine.
    ///
    /// Range: `file`. Default: empty.
    pub fn gs_credentials(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_credentials", value.as_ref())
    }

    /// An access token, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_token", value.as_ref())
    }

    /// Of an HMAC key: with gs_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_access_key", value.as_ref())
    }

    /// Belongs to gs_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_secret_key", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn gs_anonymous(self, value: bool) -> Self {
        self.with("gs_anonymous", value)
    }

    /// The project that pays for requests to buckets whose owners do not.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_user_project(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_user_project", value.as_ref())
    }

    /// The storage account; empty: that of the URL, of az_connection_string, of
    /// AZURE_STORAGE_ACCOUNT or of AZURE_STORAGE_CONNECTION_STRING.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account", value.as_ref())
    }

    /// Where the blobs of the account are; empty: as a connection string says, else Azure.
    ///
    /// Range: `URL`. Default: empty.
    pub fn az_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_endpoint", value.as_ref())
    }

    /// A key of the account, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account_key", value.as_ref())
    }

    /// A shared access signature, likewise: sv=...&sig=....
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_sas(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_sas", value.as_ref())
    }

    /// With a key or a signature, likewise.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_connection_string(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_connection_string", value.as_ref())
    }

    /// Read public containers without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn az_anonymous(self, value: bool) -> Self {
        self.with("az_anonymous", value)
    }

    /// Empty: that of HF_ENDPOINT; else the hub of huggingface.co.
    ///
    /// Range: `URL`. Default: empty.
    pub fn hf_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("hf_endpoint", value.as_ref())
    }

    /// Empty: that of HF_TOKEN, or what hf auth login wrote; else public repositories alone.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn hf_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("hf_token", value.as_ref())
    }

    /// Of a proxy; empty: that of AIS_ENDPOINT.
    ///
    /// Range: `URL`. Default: empty.
    pub fn ais_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_endpoint", value.as_ref())
    }

    /// Empty: that of AIS_AUTHN_TOKEN, or what ais auth login wrote; else none.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn ais_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_token", value.as_ref())
    }

    /// Where the buckets come from: ais, aws, gcp, azure or oci.
    ///
    /// Range: `TEXT`. Default: `ais`.
    pub fn ais_provider(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_provider", value.as_ref())
    }

    /// The job that transforms objects as they are read; empty: none.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn ais_etl(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_etl", value.as_ref())
    }

    /// Refuse child processes and messages of ZeroMQ; SHARDFEED_SECURE=1 in the environment does
    /// the same.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn secure(self, value: bool) -> Self {
        self.with("secure", value)
    }
}

impl DatasetBuilder {
    /// Shards read and decompressed at once, each by a thread; at least one per lane; 0: min(4,
    /// cores).
    ///
    /// Range: `0..4096`. Default: `0`.
    pub fn threads(self, value: u64) -> Self {
        self.with("threads", value)
    }

    /// Payload memory held ahead of the consumer, and the size of the largest member; of a writer:
    /// parts on their way to an object store.
    ///
    /// Range: `1MiB..16TiB`. Default: `256MiB`.
    pub fn memory(self, value: impl Into<Size>) -> Self {
        self.with("memory", value.into())
    }

    /// Key of every random choice.
    ///
    /// Range: `0..18446744073709551615`. Default: `0`.
    pub fn seed(self, value: u64) -> Self {
        self.with("seed", value)
    }

    /// Number of the first epoch; of a dataset the one that random choices of decode are of.
    ///
    /// Range: `0..4294967295`. Default: `0`.
    pub fn epoch(self, value: u64) -> Self {
        self.with("epoch", value)
    }

    /// Keep these fields; members of others are not looked at, even where they are damaged or there
    /// twice; a stream skips samples that have none of them; empty: all.
    ///
    /// Range: `FIELD,FIELD,...`. Default: empty.
    pub fn fields(self, value: impl AsRef<OsStr>) -> Self {
        self.with("fields", value.as_ref())
    }

    /// Optional: a tar may end after a whole member, without its two zero blocks.
    ///
    /// Range: `required|optional`. Default: `required`.
    pub fn end_marker(self, value: EndMarker) -> Self {
        self.with("end_marker", value)
    }

    /// Continue with another tar after an end marker.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn concat(self, value: bool) -> Self {
        self.with("concat", value)
    }

    /// Ignore: accept junk after the end marker, the compressed data or a ZIP end record.
    ///
    /// Range: `refuse|ignore`. Default: `refuse`.
    pub fn trailing(self, value: Trailing) -> Self {
        self.with("trailing", value)
    }

    /// Allow: data may stand before a ZIP file, as in self-extracting files.
    ///
    /// Range: `refuse|allow`. Default: `refuse`.
    pub fn zip_prefix(self, value: ZipPrefix) -> Self {
        self.with("zip_prefix", value)
    }

    /// Allow: read entries of a ZIP file that share bytes with others.
    ///
    /// Range: `refuse|allow`. Default: `refuse`.
    pub fn zip_overlap(self, value: ZipOverlap) -> Self {
        self.with("zip_overlap", value)
    }

    /// Accept shards without samples.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn allow_empty(self, value: bool) -> Self {
        self.with("allow_empty", value)
    }

    /// A key that comes again later in its shard; looked for in the first 1048576 samples.
    ///
    /// Range: `error|accept`. Default: `error`.
    pub fn duplicate_keys(self, value: DuplicateKeys) -> Self {
        self.with("duplicate_keys", value)
    }

    /// Size of the largest member.
    ///
    /// Range: `0..1EiB`. Default: `16GiB`.
    pub fn max_member(self, value: impl Into<Size>) -> Self {
        self.with("max_member", value.into())
    }

    /// Size of the largest sample, all fields together.
    ///
    /// Range: `0..1EiB`. Default: `16GiB`.
    pub fn max_sample(self, value: impl Into<Size>) -> Self {
        self.with("max_sample", value.into())
    }

    /// Length of the longest member name.
    ///
    /// Range: `1..1GiB`. Default: `64KiB`.
    pub fn max_name(self, value: impl Into<Size>) -> Self {
        self.with("max_name", value.into())
    }

    /// Pax and GNU long-name headers before one member.
    ///
    /// Range: `1..1GiB`. Default: `1MiB`.
    pub fn max_meta(self, value: impl Into<Size>) -> Self {
        self.with("max_meta", value.into())
    }

    /// Output per input byte of all codecs but gzip, and of 7z and RAR, after the first 64 MiB.
    ///
    /// Range: `1..18446744073709551615`. Default: `1000`.
    pub fn max_ratio(self, value: u64) -> Self {
        self.with("max_ratio", value)
    }

    /// History that a zstd frame may ask for; an xz decoder may use twice as much memory.
    ///
    /// Range: `1KiB..2GiB`. Default: `128MiB`.
    pub fn max_window(self, value: impl Into<Size>) -> Self {
        self.with("max_window", value.into())
    }

    /// Shards after expansion.
    ///
    /// Range: `1..4294967295`. Default: `100000000`.
    pub fn max_shards(self, value: u64) -> Self {
        self.with("max_shards", value)
    }

    /// Longest wait of one call; longest time that opening an archive or a dataset takes; 0: no
    /// limit.
    ///
    /// Range: `0..1000000s`. Default: `0`.
    pub fn timeout(self, value: Duration) -> Self {
        self.with("timeout", value)
    }

    /// Longest silence of a child process, a FIFO or messages of ZeroMQ; 0: no limit.
    ///
    /// Range: `0..1000000s`. Default: `600s`.
    pub fn pipe_timeout(self, value: Duration) -> Self {
        self.with("pipe_timeout", value)
    }

    /// Local files are mapped, and fields are where they lie in memory; for files that nobody
    /// changes while they are read: one that is cut ends the program.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn map(self, value: bool) -> Self {
        self.with("map", value)
    }

    /// Requests that are made again after a fault that may pass, one after another.
    ///
    /// Range: `0..1000`. Default: `7`.
    pub fn retries(self, value: u64) -> Self {
        self.with("retries", value)
    }

    /// Ranges of a shard that are fetched at once, or parts that are uploaded, each over a
    /// connection.
    ///
    /// Range: `1..256`. Default: `8`.
    pub fn connections(self, value: u64) -> Self {
        self.with("connections", value)
    }

    /// Bytes of such a range, less where connections * range_size is more than memory / 4 or 48
    /// MiB.
    ///
    /// Range: `256KiB..1GiB`. Default: `8MiB`.
    pub fn range_size(self, value: impl Into<Size>) -> Self {
        self.with("range_size", value.into())
    }

    /// HTTP/2 over TLS where the server has it, with all ranges on one connection.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn http2(self, value: bool) -> Self {
        self.with("http2", value)
    }

    /// Sent with every request to the host of the URL, and to no other.
    ///
    /// Range: `Name: value, one on each line`. Default: empty.
    pub fn headers(self, value: impl AsRef<OsStr>) -> Self {
        self.with("headers", value.as_ref())
    }

    /// Sent as Authorization: Bearer to the host of the URL, and to no other.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("token", value.as_ref())
    }

    /// Certificates, in PEM, that HTTPS servers are verified with; empty: those of the system.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn ca_file(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ca_file", value.as_ref())
    }

    /// PEM file with the certificate that proves to a server who you are.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_cert(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_cert", value.as_ref())
    }

    /// PEM file with its private key; empty: in client_cert.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_key", value.as_ref())
    }

    /// Empty: that of http_proxy, https_proxy and no_proxy in the environment.
    ///
    /// Range: `URL|none`. Default: empty.
    pub fn proxy(self, value: impl AsRef<OsStr>) -> Self {
        self.with("proxy", value.as_ref())
    }

    /// Follow redirects from public addresses to those of this machine and of private networks.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn allow_private(self, value: bool) -> Self {
        self.with("allow_private", value)
    }

    /// Which checksums that servers give are compared with the bytes of shards that are read from
    /// start to end: all; fast: CRCs alone, which cost next to nothing, no SHA or MD5; none.
    ///
    /// Range: `all|fast|none`. Default: `all`.
    pub fn checksums(self, value: Checksums) -> Self {
        self.with("checksums", value)
    }

    /// Where shards of the network are kept once they were read; any number of processes share it;
    /// empty: nowhere.
    ///
    /// Range: `folder`. Default: empty.
    pub fn cache(self, value: impl AsRef<OsStr>) -> Self {
        self.with("cache", value.as_ref())
    }

    /// Bytes in the cache; what was not used for longest is removed; above the largest shard; 0: no
    /// bound.
    ///
    /// Range: `0..1EiB`. Default: `1TiB`.
    pub fn cache_size(self, value: impl Into<Size>) -> Self {
        self.with("cache_size", value.into())
    }

    /// Read the version of a shard that the cache has when its server cannot be reached.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn stale_ok(self, value: bool) -> Self {
        self.with("stale_ok", value)
    }

    /// Empty: that of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile; else AWS.
    ///
    /// Range: `URL`. Default: empty.
    pub fn s3_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_endpoint", value.as_ref())
    }

    /// Empty: that of AWS_REGION, AWS_DEFAULT_REGION or the profile; a wrong one is corrected.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_region(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_region", value.as_ref())
    }

    /// Of the config and credentials files of aws; empty: AWS_PROFILE, else default.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_profile(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_profile", value.as_ref())
    }

    /// With s3_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_access_key", value.as_ref())
    }

    /// Belongs to s3_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_secret_key", value.as_ref())
    }

    /// Belongs to s3_access_key, where the keys are temporary.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_session_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_session_token", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_anonymous(self, value: bool) -> Self {
        self.with("s3_anonymous", value)
    }

    /// Agree to pay for requests to buckets whose owners do not.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_requester_pays(self, value: bool) -> Self {
        self.with("s3_requester_pays", value)
    }

    /// Where the bucket stands: in the path, or in front of the host; auto: in front of the host at
    /// AWS, else in the path.
    ///
    /// Range: `auto|path|virtual`. Default: `auto`.
    pub fn s3_addressing(self, value: S3Addressing) -> Self {
        self.with("s3_addressing", value)
    }

    /// Empty: that of STORAGE_EMULATOR_HOST, else that of Google.
    ///
    /// Range: `URL`. Default: empty.
    pub fn gs_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_endpoint", value.as_ref())
    }

    /// JSON of a service account, a user, or an external account; empty:
    /// GOOGLE_APPLICATION_CREDENTIALS, the login of gcloud, the machine.
    ///
    /// Range: `file`. Default: empty.
    pub fn gs_credentials(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_credentials", value.as_ref())
    }

    /// An access token, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_token", value.as_ref())
    }

    /// Of an HMAC key: with gs_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_access_key", value.as_ref())
    }

    /// Belongs to gs_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_secret_key", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn gs_anonymous(self, value: bool) -> Self {
        self.with("gs_anonymous", value)
    }

    /// The project that pays for requests to buckets whose owners do not.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_user_project(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_user_project", value.as_ref())
    }

    /// The storage account; empty: that of the URL, of az_connection_string, of
    /// AZURE_STORAGE_ACCOUNT or of AZURE_STORAGE_CONNECTION_STRING.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account", value.as_ref())
    }

    /// Where the blobs of the account are; empty: as a connection string says, else Azure.
    ///
    /// Range: `URL`. Default: empty.
    pub fn az_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_endpoint", value.as_ref())
    }

    /// A key of the account, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account_key", value.as_ref())
    }

    /// A shared access signature, likewise: sv=...&sig=....
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_sas(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_sas", value.as_ref())
    }

    /// With a key or a signature, likewise.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_connection_string(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_connection_string", value.as_ref())
    }

    /// Read public containers without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn az_anonymous(self, value: bool) -> Self {
        self.with("az_anonymous", value)
    }

    /// Empty: that of HF_ENDPOINT; else the hub of huggingface.co.
    ///
    /// Range: `URL`. Default: empty.
    pub fn hf_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("hf_endpoint", value.as_ref())
    }

    /// Empty: that of HF_TOKEN, or what hf auth login wrote; else public repositories alone.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn hf_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("hf_token", value.as_ref())
    }

    /// Of a proxy; empty: that of AIS_ENDPOINT.
    ///
    /// Range: `URL`. Default: empty.
    pub fn ais_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_endpoint", value.as_ref())
    }

    /// Empty: that of AIS_AUTHN_TOKEN, or what ais auth login wrote; else none.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn ais_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_token", value.as_ref())
    }

    /// Where the buckets come from: ais, aws, gcp, azure or oci.
    ///
    /// Range: `TEXT`. Default: `ais`.
    pub fn ais_provider(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_provider", value.as_ref())
    }

    /// The job that transforms objects as they are read; empty: none.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn ais_etl(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_etl", value.as_ref())
    }

    /// Expand braces, `::`, `${NAME}`, @FILE, ~/ and shell patterns in URLs.
    ///
    /// Range: `true|false`. Default: `true`.
    pub fn expand(self, value: bool) -> Self {
        self.with("expand", value)
    }

    /// Refuse child processes and messages of ZeroMQ; SHARDFEED_SECURE=1 in the environment does
    /// the same.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn secure(self, value: bool) -> Self {
        self.with("secure", value)
    }

    /// Columns of a batch: which field becomes what; auto: every field, by its suffix.
    ///
    /// Range: `FIELD:KIND/..., ...`. Default: `auto`.
    pub fn decode(self, value: impl AsRef<OsStr>) -> Self {
        self.with("decode", value.as_ref())
    }

    /// Arrays of unequal shape in one column: an error of the sample, one after another with
    /// offsets, or filled up with zeros.
    ///
    /// Range: `error|offsets|pad`. Default: `error`.
    pub fn ragged(self, value: Ragged) -> Self {
        self.with("ragged", value)
    }

    /// A sample without a field of decode: an error, skipped, or a row of zeros or no bytes.
    ///
    /// Range: `error|skip|empty`. Default: `error`.
    pub fn missing(self, value: Missing) -> Self {
        self.with("missing", value)
    }

    /// Threads that decode; 0: one for each core.
    ///
    /// Range: `0..4096`. Default: `0`.
    pub fn decode_threads(self, value: u64) -> Self {
        self.with("decode_threads", value)
    }

    /// Size of the largest decoded field.
    ///
    /// Range: `1..1EiB`. Default: `256MiB`.
    pub fn max_decoded(self, value: impl Into<Size>) -> Self {
        self.with("max_decoded", value.into())
    }

    /// Index files: use or create them; require them; rebuild them; keep indexes in memory only.
    ///
    /// Range: `auto|require|rebuild|memory`. Default: `auto`.
    pub fn index(self, value: Index) -> Self {
        self.with("index", value)
    }

    /// Where index files are kept; empty: beside the shard, or in the cache folder of the user
    /// where that cannot be written.
    ///
    /// Range: `folder`. Default: empty.
    pub fn index_dir(self, value: impl AsRef<OsStr>) -> Self {
        self.with("index_dir", value.as_ref())
    }
}

impl MixBuilder {
    /// Payload memory held ahead of the consumer, and the size of the largest member; of a writer:
    /// parts on their way to an object store.
    ///
    /// Range: `1MiB..16TiB`. Default: `256MiB`.
    pub fn memory(self, value: impl Into<Size>) -> Self {
        self.with("memory", value.into())
    }

    /// Key of every random choice.
    ///
    /// Range: `0..18446744073709551615`. Default: `0`.
    pub fn seed(self, value: u64) -> Self {
        self.with("seed", value)
    }

    /// Epochs until the end; 0: no end.
    ///
    /// Range: `0..4294967295`. Default: `1`.
    pub fn epochs(self, value: u64) -> Self {
        self.with("epochs", value)
    }

    /// Samples in an epoch over all consumers; each starts where the last one stopped; 0: one pass.
    ///
    /// Range: `0..9223372036854775807`. Default: `0`.
    pub fn epoch_samples(self, value: u64) -> Self {
        self.with("epoch_samples", value)
    }

    /// What a damaged sample or shard does; skips are counted and logged.
    ///
    /// Range: `raise|skip_sample|skip_shard`. Default: `raise`.
    pub fn on_error(self, value: OnError) -> Self {
        self.with("on_error", value)
    }

    /// Skipped samples and shards until the stream ends with LIMIT.
    ///
    /// Range: `0..18446744073709551615`. Default: `1000`.
    pub fn max_skips(self, value: u64) -> Self {
        self.with("max_skips", value)
    }

    /// Longest wait of one call; longest time that opening an archive or a dataset takes; 0: no
    /// limit.
    ///
    /// Range: `0..1000000s`. Default: `0`.
    pub fn timeout(self, value: Duration) -> Self {
        self.with("timeout", value)
    }

    /// Columns of a batch: which field becomes what; auto: every field, by its suffix.
    ///
    /// Range: `FIELD:KIND/..., ...`. Default: `auto`.
    pub fn decode(self, value: impl AsRef<OsStr>) -> Self {
        self.with("decode", value.as_ref())
    }

    /// Samples in a batch; 0: the stream delivers samples.
    ///
    /// Range: `0..4294967295`. Default: `0`.
    pub fn batch(self, value: u64) -> Self {
        self.with("batch", value)
    }

    /// Elements in each row of a batch: arrays of samples, as tokens of documents, are joined and
    /// cut into such rows; 0: a row is a sample.
    ///
    /// Range: `0..1073741824`. Default: `0`.
    pub fn pack(self, value: u64) -> Self {
        self.with("pack", value)
    }

    /// Samples among which rows of pack are filled best-fit, each cut only where it is longer than
    /// a row; 0: joined in their order.
    ///
    /// Range: `0..65536`. Default: `0`.
    pub fn pack_window(self, value: u64) -> Self {
        self.with("pack_window", value)
    }

    /// Elements that an array of a batch has at most, with the zeros of ragged=pad: a batch ends
    /// before the sample that would be too much; 0: any number.
    ///
    /// Range: `0..1099511627776`. Default: `0`.
    pub fn batch_elements(self, value: u64) -> Self {
        self.with("batch_elements", value)
    }

    /// Upper bounds of lengths, ascending: each batch is of samples of one bucket, padded to its
    /// bound; empty: batches in the order of the samples.
    ///
    /// Range: `N,N,...`. Default: empty.
    pub fn bucket(self, value: impl AsRef<OsStr>) -> Self {
        self.with("bucket", value.as_ref())
    }

    /// Samples that are read before those that wait in a bucket become a batch, even if it is not
    /// full.
    ///
    /// Range: `1..1048576`. Default: `16384`.
    pub fn bucket_wait(self, value: u64) -> Self {
        self.with("bucket_wait", value)
    }

    /// The last batch, when it has fewer samples.
    ///
    /// Range: `keep|drop`. Default: `keep`.
    pub fn last(self, value: Last) -> Self {
        self.with("last", value)
    }

    /// Arrays of unequal shape in one column: an error of the sample, one after another with
    /// offsets, or filled up with zeros.
    ///
    /// Range: `error|offsets|pad`. Default: `error`.
    pub fn ragged(self, value: Ragged) -> Self {
        self.with("ragged", value)
    }

    /// A sample without a field of decode: an error, skipped, or a row of zeros or no bytes.
    ///
    /// Range: `error|skip|empty`. Default: `error`.
    pub fn missing(self, value: Missing) -> Self {
        self.with("missing", value)
    }

    /// Threads that decode; 0: one for each core.
    ///
    /// Range: `0..4096`. Default: `0`.
    pub fn decode_threads(self, value: u64) -> Self {
        self.with("decode_threads", value)
    }

    /// Size of the largest decoded field.
    ///
    /// Range: `1..1EiB`. Default: `256MiB`.
    pub fn max_decoded(self, value: impl Into<Size>) -> Self {
        self.with("max_decoded", value.into())
    }

    /// When a mix ends: with its first part that ends; with its last one; never: its parts restart,
    /// as with epochs=0.
    ///
    /// Range: `first|all|forever`. Default: `all`.
    pub fn until(self, value: Until) -> Self {
        self.with("until", value)
    }
}

impl StreamBuilder {
    /// Shards read and decompressed at once, each by a thread; at least one per lane; 0: min(4,
    /// cores).
    ///
    /// Range: `0..4096`. Default: `0`.
    pub fn threads(self, value: u64) -> Self {
        self.with("threads", value)
    }

    /// Payload memory held ahead of the consumer, and the size of the largest member; of a writer:
    /// parts on their way to an object store.
    ///
    /// Range: `1MiB..16TiB`. Default: `256MiB`.
    pub fn memory(self, value: impl Into<Size>) -> Self {
        self.with("memory", value.into())
    }

    /// Permute the shards, in every epoch in another way.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn shuffle_shards(self, value: bool) -> Self {
        self.with("shuffle_shards", value)
    }

    /// Samples in the shuffle buffer of each lane; 0 and 1: no shuffle.
    ///
    /// Range: `0..1000000000`. Default: `0`.
    pub fn shuffle(self, value: u64) -> Self {
        self.with("shuffle", value)
    }

    /// Key of every random choice.
    ///
    /// Range: `0..18446744073709551615`. Default: `0`.
    pub fn seed(self, value: u64) -> Self {
        self.with("seed", value)
    }

    /// Number of the first epoch; of a dataset the one that random choices of decode are of.
    ///
    /// Range: `0..4294967295`. Default: `0`.
    pub fn epoch(self, value: u64) -> Self {
        self.with("epoch", value)
    }

    /// Epochs until the end; 0: no end.
    ///
    /// Range: `0..4294967295`. Default: `1`.
    pub fn epochs(self, value: u64) -> Self {
        self.with("epochs", value)
    }

    /// Samples in an epoch over all consumers; each starts where the last one stopped; 0: one pass.
    ///
    /// Range: `0..9223372036854775807`. Default: `0`.
    pub fn epoch_samples(self, value: u64) -> Self {
        self.with("epoch_samples", value)
    }

    /// Draw shards with replacement.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn resample(self, value: bool) -> Self {
        self.with("resample", value)
    }

    /// The same number of samples for every consumer in each epoch: drop the surplus of some, or
    /// repeat samples on the others, marked; needs the index of every shard.
    ///
    /// Range: `none|drop|pad`. Default: `none`.
    pub fn even(self, value: Even) -> Self {
        self.with("even", value)
    }

    /// Compute the order of an epoch from the indexes of its shards, and read samples at their
    /// places: batches are the same with any number of workers, even divides by samples, and a
    /// state is good for any number of consumers.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn by_index(self, value: bool) -> Self {
        self.with("by_index", value)
    }

    /// Sequences that are interleaved; best a multiple of the consumers; 0: one per consumer, with
    /// by_index one per rank.
    ///
    /// Range: `0..65536`. Default: `0`.
    pub fn lanes(self, value: u64) -> Self {
        self.with("lanes", value)
    }

    /// Number of this process.
    ///
    /// Range: `0..16777215`. Default: `0`.
    pub fn rank(self, value: u64) -> Self {
        self.with("rank", value)
    }

    /// Number of processes that share the shards; above 1 a stream needs rank.
    ///
    /// Range: `1..16777216`. Default: `1`.
    pub fn world_size(self, value: u64) -> Self {
        self.with("world_size", value)
    }

    /// Number of this worker in its process.
    ///
    /// Range: `0..65535`. Default: `0`.
    pub fn worker(self, value: u64) -> Self {
        self.with("worker", value)
    }

    /// Workers of each process, which share its shards; above 1 a stream needs worker; threads are
    /// the option threads.
    ///
    /// Range: `1..65536`. Default: `1`.
    pub fn num_workers(self, value: u64) -> Self {
        self.with("num_workers", value)
    }

    /// Keep these fields; members of others are not looked at, even where they are damaged or there
    /// twice; a stream skips samples that have none of them; empty: all.
    ///
    /// Range: `FIELD,FIELD,...`. Default: empty.
    pub fn fields(self, value: impl AsRef<OsStr>) -> Self {
        self.with("fields", value.as_ref())
    }

    /// Deliver samples whose key matches a shell pattern, in which a star matches slashes too;
    /// others are not read; empty: all.
    ///
    /// Range: `PATTERN,PATTERN,...`. Default: empty.
    pub fn select_keys(self, value: impl AsRef<OsStr>) -> Self {
        self.with("select_keys", value.as_ref())
    }

    /// Deliver these samples of each shard, as a slice of Python; numbers count from 0, good and
    /// bad ones, regardless of their keys; others are not read; empty: all.
    ///
    /// Range: `START:STOP:STEP`. Default: empty.
    pub fn slice(self, value: impl AsRef<OsStr>) -> Self {
        self.with("slice", value.as_ref())
    }

    /// The first samples of each epoch, over all consumers; each lane gives its part of them and
    /// leaves the rest of its shards unread; 0: all.
    ///
    /// Range: `0..9223372036854775807`. Default: `0`.
    pub fn limit(self, value: u64) -> Self {
        self.with("limit", value)
    }

    /// What a damaged sample or shard does; skips are counted and logged.
    ///
    /// Range: `raise|skip_sample|skip_shard`. Default: `raise`.
    pub fn on_error(self, value: OnError) -> Self {
        self.with("on_error", value)
    }

    /// Skipped samples and shards until the stream ends with LIMIT.
    ///
    /// Range: `0..18446744073709551615`. Default: `1000`.
    pub fn max_skips(self, value: u64) -> Self {
        self.with("max_skips", value)
    }

    /// Optional: a tar may end after a whole member, without its two zero blocks.
    ///
    /// Range: `required|optional`. Default: `required`.
    pub fn end_marker(self, value: EndMarker) -> Self {
        self.with("end_marker", value)
    }

    /// Continue with another tar after an end marker.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn concat(self, value: bool) -> Self {
        self.with("concat", value)
    }

    /// Ignore: accept junk after the end marker, the compressed data or a ZIP end record.
    ///
    /// Range: `refuse|ignore`. Default: `refuse`.
    pub fn trailing(self, value: Trailing) -> Self {
        self.with("trailing", value)
    }

    /// Allow: data may stand before a ZIP file, as in self-extracting files.
    ///
    /// Range: `refuse|allow`. Default: `refuse`.
    pub fn zip_prefix(self, value: ZipPrefix) -> Self {
        self.with("zip_prefix", value)
    }

    /// Allow: read entries of a ZIP file that share bytes with others.
    ///
    /// Range: `refuse|allow`. Default: `refuse`.
    pub fn zip_overlap(self, value: ZipOverlap) -> Self {
        self.with("zip_overlap", value)
    }

    /// Accept shards without samples.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn allow_empty(self, value: bool) -> Self {
        self.with("allow_empty", value)
    }

    /// A key that comes again later in its shard; looked for in the first 1048576 samples.
    ///
    /// Range: `error|accept`. Default: `error`.
    pub fn duplicate_keys(self, value: DuplicateKeys) -> Self {
        self.with("duplicate_keys", value)
    }

    /// Size of the largest member.
    ///
    /// Range: `0..1EiB`. Default: `16GiB`.
    pub fn max_member(self, value: impl Into<Size>) -> Self {
        self.with("max_member", value.into())
    }

    /// Size of the largest sample, all fields together.
    ///
    /// Range: `0..1EiB`. Default: `16GiB`.
    pub fn max_sample(self, value: impl Into<Size>) -> Self {
        self.with("max_sample", value.into())
    }

    /// Length of the longest member name.
    ///
    /// Range: `1..1GiB`. Default: `64KiB`.
    pub fn max_name(self, value: impl Into<Size>) -> Self {
        self.with("max_name", value.into())
    }

    /// Pax and GNU long-name headers before one member.
    ///
    /// Range: `1..1GiB`. Default: `1MiB`.
    pub fn max_meta(self, value: impl Into<Size>) -> Self {
        self.with("max_meta", value.into())
    }

    /// Output per input byte of all codecs but gzip, and of 7z and RAR, after the first 64 MiB.
    ///
    /// Range: `1..18446744073709551615`. Default: `1000`.
    pub fn max_ratio(self, value: u64) -> Self {
        self.with("max_ratio", value)
    }

    /// History that a zstd frame may ask for; an xz decoder may use twice as much memory.
    ///
    /// Range: `1KiB..2GiB`. Default: `128MiB`.
    pub fn max_window(self, value: impl Into<Size>) -> Self {
        self.with("max_window", value.into())
    }

    /// Shards after expansion.
    ///
    /// Range: `1..4294967295`. Default: `100000000`.
    pub fn max_shards(self, value: u64) -> Self {
        self.with("max_shards", value)
    }

    /// Longest wait of one call; longest time that opening an archive or a dataset takes; 0: no
    /// limit.
    ///
    /// Range: `0..1000000s`. Default: `0`.
    pub fn timeout(self, value: Duration) -> Self {
        self.with("timeout", value)
    }

    /// Longest silence of a child process, a FIFO or messages of ZeroMQ; 0: no limit.
    ///
    /// Range: `0..1000000s`. Default: `600s`.
    pub fn pipe_timeout(self, value: Duration) -> Self {
        self.with("pipe_timeout", value)
    }

    /// End marks after which messages of ZeroMQ (zpull://...) end, one of each sender; 0: nothing
    /// ends them.
    ///
    /// Range: `0..1000000`. Default: `1`.
    pub fn senders(self, value: u64) -> Self {
        self.with("senders", value)
    }

    /// Local files are mapped, and fields are where they lie in memory; for files that nobody
    /// changes while they are read: one that is cut ends the program.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn map(self, value: bool) -> Self {
        self.with("map", value)
    }

    /// Requests that are made again after a fault that may pass, one after another.
    ///
    /// Range: `0..1000`. Default: `7`.
    pub fn retries(self, value: u64) -> Self {
        self.with("retries", value)
    }

    /// Ranges of a shard that are fetched at once, or parts that are uploaded, each over a
    /// connection.
    ///
    /// Range: `1..256`. Default: `8`.
    pub fn connections(self, value: u64) -> Self {
        self.with("connections", value)
    }

    /// Bytes of such a range, less where connections * range_size is more than memory / 4 or 48
    /// MiB.
    ///
    /// Range: `256KiB..1GiB`. Default: `8MiB`.
    pub fn range_size(self, value: impl Into<Size>) -> Self {
        self.with("range_size", value.into())
    }

    /// HTTP/2 over TLS where the server has it, with all ranges on one connection.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn http2(self, value: bool) -> Self {
        self.with("http2", value)
    }

    /// Sent with every request to the host of the URL, and to no other.
    ///
    /// Range: `Name: value, one on each line`. Default: empty.
    pub fn headers(self, value: impl AsRef<OsStr>) -> Self {
        self.with("headers", value.as_ref())
    }

    /// Sent as Authorization: Bearer to the host of the URL, and to no other.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("token", value.as_ref())
    }

    /// Certificates, in PEM, that HTTPS servers are verified with; empty: those of the system.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn ca_file(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ca_file", value.as_ref())
    }

    /// PEM file with the certificate that proves to a server who you are.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_cert(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_cert", value.as_ref())
    }

    /// PEM file with its private key; empty: in client_cert.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_key", value.as_ref())
    }

    /// Empty: that of http_proxy, https_proxy and no_proxy in the environment.
    ///
    /// Range: `URL|none`. Default: empty.
    pub fn proxy(self, value: impl AsRef<OsStr>) -> Self {
        self.with("proxy", value.as_ref())
    }

    /// Follow redirects from public addresses to those of this machine and of private networks.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn allow_private(self, value: bool) -> Self {
        self.with("allow_private", value)
    }

    /// Which checksums that servers give are compared with the bytes of shards that are read from
    /// start to end: all; fast: CRCs alone, which cost next to nothing, no SHA or MD5; none.
    ///
    /// Range: `all|fast|none`. Default: `all`.
    pub fn checksums(self, value: Checksums) -> Self {
        self.with("checksums", value)
    }

    /// Where shards of the network are kept once they were read; any number of processes share it;
    /// empty: nowhere.
    ///
    /// Range: `folder`. Default: empty.
    pub fn cache(self, value: impl AsRef<OsStr>) -> Self {
        self.with("cache", value.as_ref())
    }

    /// Bytes in the cache; what was not used for longest is removed; above the largest shard; 0: no
    /// bound.
    ///
    /// Range: `0..1EiB`. Default: `1TiB`.
    pub fn cache_size(self, value: impl Into<Size>) -> Self {
        self.with("cache_size", value.into())
    }

    /// Read the version of a shard that the cache has when its server cannot be reached.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn stale_ok(self, value: bool) -> Self {
        self.with("stale_ok", value)
    }

    /// Empty: that of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile; else AWS.
    ///
    /// Range: `URL`. Default: empty.
    pub fn s3_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_endpoint", value.as_ref())
    }

    /// Empty: that of AWS_REGION, AWS_DEFAULT_REGION or the profile; a wrong one is corrected.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_region(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_region", value.as_ref())
    }

    /// Of the config and credentials files of aws; empty: AWS_PROFILE, else default.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_profile(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_profile", value.as_ref())
    }

    /// With s3_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_access_key", value.as_ref())
    }

    /// Belongs to s3_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_secret_key", value.as_ref())
    }

    /// Belongs to s3_access_key, where the keys are temporary.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_session_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_session_token", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_anonymous(self, value: bool) -> Self {
        self.with("s3_anonymous", value)
    }

    /// Agree to pay for requests to buckets whose owners do not.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_requester_pays(self, value: bool) -> Self {
        self.with("s3_requester_pays", value)
    }

    /// Where the bucket stands: in the path, or in front of the host; auto: in front of the host at
    /// AWS, else in the path.
    ///
    /// Range: `auto|path|virtual`. Default: `auto`.
    pub fn s3_addressing(self, value: S3Addressing) -> Self {
        self.with("s3_addressing", value)
    }

    /// Empty: that of STORAGE_EMULATOR_HOST, else that of Google.
    ///
    /// Range: `URL`. Default: empty.
    pub fn gs_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_endpoint", value.as_ref())
    }

    /// JSON of a service account, a user, or an external account; empty:
    /// GOOGLE_APPLICATION_CREDENTIALS, the login of gcloud, the machine.
    ///
    /// Range: `file`. Default: empty.
    pub fn gs_credentials(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_credentials", value.as_ref())
    }

    /// An access token, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_token", value.as_ref())
    }

    /// Of an HMAC key: with gs_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_access_key", value.as_ref())
    }

    /// Belongs to gs_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_secret_key", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn gs_anonymous(self, value: bool) -> Self {
        self.with("gs_anonymous", value)
    }

    /// The project that pays for requests to buckets whose owners do not.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_user_project(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_user_project", value.as_ref())
    }

    /// The storage account; empty: that of the URL, of az_connection_string, of
    /// AZURE_STORAGE_ACCOUNT or of AZURE_STORAGE_CONNECTION_STRING.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account", value.as_ref())
    }

    /// Where the blobs of the account are; empty: as a connection string says, else Azure.
    ///
    /// Range: `URL`. Default: empty.
    pub fn az_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_endpoint", value.as_ref())
    }

    /// A key of the account, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account_key", value.as_ref())
    }

    /// A shared access signature, likewise: sv=...&sig=....
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_sas(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_sas", value.as_ref())
    }

    /// With a key or a signature, likewise.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_connection_string(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_connection_string", value.as_ref())
    }

    /// Read public containers without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn az_anonymous(self, value: bool) -> Self {
        self.with("az_anonymous", value)
    }

    /// Empty: that of HF_ENDPOINT; else the hub of huggingface.co.
    ///
    /// Range: `URL`. Default: empty.
    pub fn hf_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("hf_endpoint", value.as_ref())
    }

    /// Empty: that of HF_TOKEN, or what hf auth login wrote; else public repositories alone.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn hf_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("hf_token", value.as_ref())
    }

    /// Of a proxy; empty: that of AIS_ENDPOINT.
    ///
    /// Range: `URL`. Default: empty.
    pub fn ais_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_endpoint", value.as_ref())
    }

    /// Empty: that of AIS_AUTHN_TOKEN, or what ais auth login wrote; else none.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn ais_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_token", value.as_ref())
    }

    /// Where the buckets come from: ais, aws, gcp, azure or oci.
    ///
    /// Range: `TEXT`. Default: `ais`.
    pub fn ais_provider(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_provider", value.as_ref())
    }

    /// The job that transforms objects as they are read; empty: none.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn ais_etl(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ais_etl", value.as_ref())
    }

    /// The secret that a server of a feed and its consumers share; empty: none.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn feed_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("feed_token", value.as_ref())
    }

    /// Public key (CURVE) of the servers of a feed; empty: no encryption.
    ///
    /// Range: `KEY`. Default: empty.
    pub fn feed_server_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("feed_server_key", value.as_ref())
    }

    /// Secret key of a server of a feed; empty: no encryption.
    ///
    /// Range: `KEY`. Default: empty.
    pub fn feed_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("feed_secret_key", value.as_ref())
    }

    /// Silence of a server of a feed after which another one continues its lanes.
    ///
    /// Range: `100ms..1000000s`. Default: `5s`.
    pub fn feed_timeout(self, value: Duration) -> Self {
        self.with("feed_timeout", value)
    }

    /// Time without any server of a feed after which the stream fails.
    ///
    /// Range: `0..1000000s`. Default: `60s`.
    pub fn feed_wait(self, value: Duration) -> Self {
        self.with("feed_wait", value)
    }

    /// Of what servers of a feed send to this stream: lz4 or zstd where the network is slower than
    /// they compress.
    ///
    /// Range: `none|lz4|zstd`. Default: `none`.
    pub fn feed_compression(self, value: FeedCompression) -> Self {
        self.with("feed_compression", value)
    }

    /// Expand braces, `::`, `${NAME}`, @FILE, ~/ and shell patterns in URLs.
    ///
    /// Range: `true|false`. Default: `true`.
    pub fn expand(self, value: bool) -> Self {
        self.with("expand", value)
    }

    /// Refuse child processes and messages of ZeroMQ; SHARDFEED_SECURE=1 in the environment does
    /// the same.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn secure(self, value: bool) -> Self {
        self.with("secure", value)
    }

    /// Save the index of each tar that is written, or read to its end; none with fields,
    /// select_keys or slice.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn write_index(self, value: bool) -> Self {
        self.with("write_index", value)
    }

    /// Columns of a batch: which field becomes what; auto: every field, by its suffix.
    ///
    /// Range: `FIELD:KIND/..., ...`. Default: `auto`.
    pub fn decode(self, value: impl AsRef<OsStr>) -> Self {
        self.with("decode", value.as_ref())
    }

    /// Samples in a batch; 0: the stream delivers samples.
    ///
    /// Range: `0..4294967295`. Default: `0`.
    pub fn batch(self, value: u64) -> Self {
        self.with("batch", value)
    }

    /// Elements in each row of a batch: arrays of samples, as tokens of documents, are joined and
    /// cut into such rows; 0: a row is a sample.
    ///
    /// Range: `0..1073741824`. Default: `0`.
    pub fn pack(self, value: u64) -> Self {
        self.with("pack", value)
    }

    /// Samples among which rows of pack are filled best-fit, each cut only where it is longer than
    /// a row; 0: joined in their order.
    ///
    /// Range: `0..65536`. Default: `0`.
    pub fn pack_window(self, value: u64) -> Self {
        self.with("pack_window", value)
    }

    /// Elements that an array of a batch has at most, with the zeros of ragged=pad: a batch ends
    /// before the sample that would be too much; 0: any number.
    ///
    /// Range: `0..1099511627776`. Default: `0`.
    pub fn batch_elements(self, value: u64) -> Self {
        self.with("batch_elements", value)
    }

    /// Upper bounds of lengths, ascending: each batch is of samples of one bucket, padded to its
    /// bound; empty: batches in the order of the samples.
    ///
    /// Range: `N,N,...`. Default: empty.
    pub fn bucket(self, value: impl AsRef<OsStr>) -> Self {
        self.with("bucket", value.as_ref())
    }

    /// Samples that are read before those that wait in a bucket become a batch, even if it is not
    /// full.
    ///
    /// Range: `1..1048576`. Default: `16384`.
    pub fn bucket_wait(self, value: u64) -> Self {
        self.with("bucket_wait", value)
    }

    /// The last batch, when it has fewer samples.
    ///
    /// Range: `keep|drop`. Default: `keep`.
    pub fn last(self, value: Last) -> Self {
        self.with("last", value)
    }

    /// Arrays of unequal shape in one column: an error of the sample, one after another with
    /// offsets, or filled up with zeros.
    ///
    /// Range: `error|offsets|pad`. Default: `error`.
    pub fn ragged(self, value: Ragged) -> Self {
        self.with("ragged", value)
    }

    /// A sample without a field of decode: an error, skipped, or a row of zeros or no bytes.
    ///
    /// Range: `error|skip|empty`. Default: `error`.
    pub fn missing(self, value: Missing) -> Self {
        self.with("missing", value)
    }

    /// Threads that decode; 0: one for each core.
    ///
    /// Range: `0..4096`. Default: `0`.
    pub fn decode_threads(self, value: u64) -> Self {
        self.with("decode_threads", value)
    }

    /// Size of the largest decoded field.
    ///
    /// Range: `1..1EiB`. Default: `256MiB`.
    pub fn max_decoded(self, value: impl Into<Size>) -> Self {
        self.with("max_decoded", value.into())
    }

    /// Where index files are kept; empty: beside the shard, or in the cache folder of the user
    /// where that cannot be written.
    ///
    /// Range: `folder`. Default: empty.
    pub fn index_dir(self, value: impl AsRef<OsStr>) -> Self {
        self.with("index_dir", value.as_ref())
    }
}

impl WriterBuilder {
    /// Payload memory held ahead of the consumer, and the size of the largest member; of a writer:
    /// parts on their way to an object store.
    ///
    /// Range: `1MiB..16TiB`. Default: `256MiB`.
    pub fn memory(self, value: impl Into<Size>) -> Self {
        self.with("memory", value.into())
    }

    /// A key that comes again later in its shard; looked for in the first 1048576 samples.
    ///
    /// Range: `error|accept`. Default: `error`.
    pub fn duplicate_keys(self, value: DuplicateKeys) -> Self {
        self.with("duplicate_keys", value)
    }

    /// Longest silence of a child process, a FIFO or messages of ZeroMQ; 0: no limit.
    ///
    /// Range: `0..1000000s`. Default: `600s`.
    pub fn pipe_timeout(self, value: Duration) -> Self {
        self.with("pipe_timeout", value)
    }

    /// Requests that are made again after a fault that may pass, one after another.
    ///
    /// Range: `0..1000`. Default: `7`.
    pub fn retries(self, value: u64) -> Self {
        self.with("retries", value)
    }

    /// Ranges of a shard that are fetched at once, or parts that are uploaded, each over a
    /// connection.
    ///
    /// Range: `1..256`. Default: `8`.
    pub fn connections(self, value: u64) -> Self {
        self.with("connections", value)
    }

    /// HTTP/2 over TLS where the server has it, with all ranges on one connection.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn http2(self, value: bool) -> Self {
        self.with("http2", value)
    }

    /// Sent with every request to the host of the URL, and to no other.
    ///
    /// Range: `Name: value, one on each line`. Default: empty.
    pub fn headers(self, value: impl AsRef<OsStr>) -> Self {
        self.with("headers", value.as_ref())
    }

    /// Certificates, in PEM, that HTTPS servers are verified with; empty: those of the system.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn ca_file(self, value: impl AsRef<OsStr>) -> Self {
        self.with("ca_file", value.as_ref())
    }

    /// PEM file with the certificate that proves to a server who you are.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_cert(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_cert", value.as_ref())
    }

    /// PEM file with its private key; empty: in client_cert.
    ///
    /// Range: `PATH`. Default: empty.
    pub fn client_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("client_key", value.as_ref())
    }

    /// Empty: that of http_proxy, https_proxy and no_proxy in the environment.
    ///
    /// Range: `URL|none`. Default: empty.
    pub fn proxy(self, value: impl AsRef<OsStr>) -> Self {
        self.with("proxy", value.as_ref())
    }

    /// Follow redirects from public addresses to those of this machine and of private networks.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn allow_private(self, value: bool) -> Self {
        self.with("allow_private", value)
    }

    /// Empty: that of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile; else AWS.
    ///
    /// Range: `URL`. Default: empty.
    pub fn s3_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_endpoint", value.as_ref())
    }

    /// Empty: that of AWS_REGION, AWS_DEFAULT_REGION or the profile; a wrong one is corrected.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_region(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_region", value.as_ref())
    }

    /// Of the config and credentials files of aws; empty: AWS_PROFILE, else default.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_profile(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_profile", value.as_ref())
    }

    /// With s3_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_access_key", value.as_ref())
    }

    /// Belongs to s3_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_secret_key", value.as_ref())
    }

    /// Belongs to s3_access_key, where the keys are temporary.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn s3_session_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("s3_session_token", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_anonymous(self, value: bool) -> Self {
        self.with("s3_anonymous", value)
    }

    /// Agree to pay for requests to buckets whose owners do not.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn s3_requester_pays(self, value: bool) -> Self {
        self.with("s3_requester_pays", value)
    }

    /// Where the bucket stands: in the path, or in front of the host; auto: in front of the host at
    /// AWS, else in the path.
    ///
    /// Range: `auto|path|virtual`. Default: `auto`.
    pub fn s3_addressing(self, value: S3Addressing) -> Self {
        self.with("s3_addressing", value)
    }

    /// Empty: that of STORAGE_EMULATOR_HOST, else that of Google.
    ///
    /// Range: `URL`. Default: empty.
    pub fn gs_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_endpoint", value.as_ref())
    }

    /// JSON of a service account, a user, or an external account; empty:
    /// GOOGLE_APPLICATION_CREDENTIALS, the login of gcloud, the machine.
    ///
    /// Range: `file`. Default: empty.
    pub fn gs_credentials(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_credentials", value.as_ref())
    }

    /// An access token, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_token(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_token", value.as_ref())
    }

    /// Of an HMAC key: with gs_secret_key, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_access_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_access_key", value.as_ref())
    }

    /// Belongs to gs_access_key.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_secret_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_secret_key", value.as_ref())
    }

    /// Read public buckets without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn gs_anonymous(self, value: bool) -> Self {
        self.with("gs_anonymous", value)
    }

    /// The project that pays for requests to buckets whose owners do not.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn gs_user_project(self, value: impl AsRef<OsStr>) -> Self {
        self.with("gs_user_project", value.as_ref())
    }

    /// The storage account; empty: that of the URL, of az_connection_string, of
    /// AZURE_STORAGE_ACCOUNT or of AZURE_STORAGE_CONNECTION_STRING.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account", value.as_ref())
    }

    /// Where the blobs of the account are; empty: as a connection string says, else Azure.
    ///
    /// Range: `URL`. Default: empty.
    pub fn az_endpoint(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_endpoint", value.as_ref())
    }

    /// A key of the account, in place of the credentials that are looked for.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_account_key(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_account_key", value.as_ref())
    }

    /// A shared access signature, likewise: sv=...&sig=....
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_sas(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_sas", value.as_ref())
    }

    /// With a key or a signature, likewise.
    ///
    /// Range: `TEXT`. Default: empty.
    pub fn az_connection_string(self, value: impl AsRef<OsStr>) -> Self {
        self.with("az_connection_string", value.as_ref())
    }

    /// Read public containers without credentials.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn az_anonymous(self, value: bool) -> Self {
        self.with("az_anonymous", value)
    }

    /// Refuse child processes and messages of ZeroMQ; SHARDFEED_SECURE=1 in the environment does
    /// the same.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn secure(self, value: bool) -> Self {
        self.with("secure", value)
    }

    /// Save the index of each tar that is written, or read to its end; none with fields,
    /// select_keys or slice.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn write_index(self, value: bool) -> Self {
        self.with("write_index", value)
    }

    /// Where index files are kept; empty: beside the shard, or in the cache folder of the user
    /// where that cannot be written.
    ///
    /// Range: `folder`. Default: empty.
    pub fn index_dir(self, value: impl AsRef<OsStr>) -> Self {
        self.with("index_dir", value.as_ref())
    }

    /// Samples of a shard, after which the next one begins; 0: any number.
    ///
    /// Range: `0..9223372036854775807`. Default: `0`.
    pub fn max_samples(self, value: u64) -> Self {
        self.with("max_samples", value)
    }

    /// Bytes of a shard, before compression and with all headers; a larger sample has a shard of
    /// its own; 0: any number.
    ///
    /// Range: `0..1EiB`. Default: `0`.
    pub fn max_bytes(self, value: impl Into<Size>) -> Self {
        self.with("max_bytes", value.into())
    }

    /// Number of the first shard, for the pattern of its name.
    ///
    /// Range: `0..9223372036854775807`. Default: `0`.
    pub fn first_shard(self, value: u64) -> Self {
        self.with("first_shard", value)
    }

    /// Auto: a ZIP file where the pattern ends in .zip, else a tar.
    ///
    /// Range: `auto|tar|zip`. Default: `auto`.
    pub fn format(self, value: Format) -> Self {
        self.with("format", value)
    }

    /// Of the whole tar; auto: by the suffix, as .tar.gz, .tgz or .tar.zst.
    ///
    /// Range: `auto|none|gzip|bzip2|xz|zstd|lz4`. Default: `auto`.
    pub fn compression(self, value: Compression) -> Self {
        self.with("compression", value)
    }

    /// Of the compression; 0: 6 of gzip and xz, 9 of bzip2, 3 of zstd, 1 of lz4.
    ///
    /// Range: `0..22`. Default: `0`.
    pub fn level(self, value: u64) -> Self {
        self.with("level", value)
    }

    /// Threads that compress; the bytes are the same for any number; 0: one for each core.
    ///
    /// Range: `0..256`. Default: `0`.
    pub fn compress_threads(self, value: u64) -> Self {
        self.with("compress_threads", value)
    }

    /// Members of a ZIP file; auto: deflate, but for suffixes of what is compressed already, as
    /// jpg.
    ///
    /// Range: `auto|store|deflate`. Default: `auto`.
    pub fn zip_method(self, value: ZipMethod) -> Self {
        self.with("zip_method", value)
    }

    /// Owner, mode and time of the members of a tar; same: equal for all, so that the same samples
    /// make the same bytes; tarp: those that tarp writes, with the time of writing.
    ///
    /// Range: `same|tarp`. Default: `same`.
    pub fn tar_headers(self, value: TarHeaders) -> Self {
        self.with("tar_headers", value)
    }

    /// Allow: write names that are absolute, have the component .., or that readers take for
    /// another key or for none.
    ///
    /// Range: `refuse|allow`. Default: `refuse`.
    pub fn unsafe_names(self, value: UnsafeNames) -> Self {
        self.with("unsafe_names", value)
    }

    /// Tools whose index of each plain tar is made too, beside it: SHARD.idx for SHARD.tar of DALI,
    /// SHARD.tar.idx of Megatron-Energon.
    ///
    /// Range: `dali,energon`. Default: empty.
    pub fn index_for(self, value: impl AsRef<OsStr>) -> Self {
        self.with("index_for", value.as_ref())
    }

    /// The index of wids over all shards, on a local disk, made when the last one is published.
    ///
    /// Range: `file`. Default: empty.
    pub fn wids_index(self, value: impl AsRef<OsStr>) -> Self {
        self.with("wids_index", value.as_ref())
    }

    /// Replace shards that are there.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn overwrite(self, value: bool) -> Self {
        self.with("overwrite", value)
    }

    /// A shard that is published survives a crash of the machine (fsync).
    ///
    /// Range: `true|false`. Default: `true`.
    pub fn durable(self, value: bool) -> Self {
        self.with("durable", value)
    }

    /// Leave the file of a shard that was not published, under the name that it had meanwhile.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn keep_partial(self, value: bool) -> Self {
        self.with("keep_partial", value)
    }

    /// Shards do not appear: each has a token, with which any process publishes or discards it.
    ///
    /// Range: `true|false`. Default: `false`.
    pub fn prepare(self, value: bool) -> Self {
        self.with("prepare", value)
    }
}
