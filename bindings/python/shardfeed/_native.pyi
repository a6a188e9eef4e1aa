# Types of the extension module that cffi builds from include/shardfeed.h, as far as this package
# uses it. cffi knows the C types and checks them at run time; here every C value is a _CData.

from collections.abc import Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Literal, TypedDict, TypeVar, type_check_only

from typing_extensions import Buffer

_F = TypeVar("_F", bound=Callable[..., Any])

@type_check_only
class _CData:
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    def __getitem__(self, index: int) -> Any: ...
    def __setitem__(self, index: int, value: object) -> None: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...

@type_check_only
class _FFI:
    NULL: _CData
    def new(self, cdecl: str, init: object = ...) -> _CData: ...
    def gc(self, cdata: _CData, destructor: Callable[[_CData], object]) -> _CData: ...
    def release(self, cdata: _CData) -> None: ...
    def new_allocator(
        self,
        alloc: Callable[[int], _CData] = ...,
        free: Callable[[_CData], object] = ...,
        should_clear_after_alloc: bool = ...,
    ) -> Callable[[str, object], _CData]: ...
    def addressof(self, cdata: _CData | _Lib, *fields: str | int) -> _CData: ...
    def cast(self, cdecl: str, source: object) -> _CData: ...
    def from_buffer(self, cdecl: str, buffer: Buffer, require_writable: bool = ...) -> Any: ...
    def buffer(self, cdata: _CData, size: int = ...) -> Any: ...
    def memmove(self, to: _CData, data: bytes, size: int) -> None: ...
    def string(self, cdata: _CData) -> bytes: ...
    def unpack(self, cdata: _CData, length: int) -> Any: ...
    def new_handle(self, value: object) -> _CData: ...
    def from_handle(self, handle: _CData) -> Any: ...
    def def_extern(
        self,
        name: str = ...,
        error: object = ...,
        onerror: Callable[[type[BaseException], BaseException, TracebackType], object] = ...,
    ) -> Callable[[_F], _F]: ...

@type_check_only
class _Lib:
    SHF_OK: int
    SHF_END: int
    SHF_E_FORMAT: int
    SHF_E_TRUNCATED: int
    SHF_E_INTEGRITY: int
    SHF_E_LIMIT: int
    SHF_E_UNSUPPORTED: int
    SHF_E_AMBIGUOUS: int
    SHF_E_CHANGED: int
    SHF_E_NET_TRANSIENT: int
    SHF_E_NET_PERMANENT: int
    SHF_E_THROTTLED: int
    SHF_E_AUTH: int
    SHF_E_TLS: int
    SHF_E_IO: int
    SHF_E_NOSPACE: int
    SHF_E_NOMEM: int
    SHF_E_CANCELLED: int
    SHF_E_TIMEOUT: int
    SHF_E_CHILD: int
    SHF_E_USAGE: int
    SHF_E_FORKED: int
    SHF_E_NOT_FOUND: int
    SHF_E_INTERNAL: int
    SHF_OPTION_NAME: int
    SHF_OPTION_TYPE: int
    SHF_OPTION_DEFAULT: int
    SHF_OPTION_RANGE: int
    SHF_OPTION_OPENERS: int
    SHF_OPTION_HELP: int
    SHF_OPTION_GROUP: int
    SHF_COUNTER_NAME: int
    SHF_SOURCE_SEQUENTIAL: int
    SHF_LOG_ERROR: int
    SHF_LOG_WARNING: int
    SHF_LOG_INFO: int
    SHF_STAT_EPOCH_SAMPLES: int
    SHF_STAT_IGNORED_MEMBERS: int
    SHF_BLOCK_FIRST_FIELD: int
    SHF_BLOCK_SCHEMA: int
    SHF_BLOCK_KEY: int
    SHF_BLOCK_URL: int
    SHF_BLOCK_BUFFER: int
    SHF_BLOCK_START: int
    SHF_BLOCK_STOP: int
    SHF_BLOCK_COLUMNS: int
    SHF_MEMBER_SIZE: int
    SHF_MEMBER_STORED: int
    SHF_MEMBER_METHOD: int
    SHF_MEMBER_CRC32: int
    SHF_MEMBER_OFFSET: int
    SHF_MEMBER_KIND: int
    SHF_MEMBER_MODE: int
    SHF_MEMBER_UID: int
    SHF_MEMBER_GID: int
    SHF_MEMBER_MTIME: int
    SHF_MEMBER_VERIFIED: int
    SHF_MEMBER_LINK: int
    SHF_MEMBER_USER: int
    SHF_MEMBER_GROUP: int
    SHF_CACHE_URL: int
    SHF_CACHE_VERSION: int
    SHF_CACHE_SIZE: int
    SHF_CACHE_DATA: int
    SHF_CACHE_DISK: int
    SHF_CACHE_AGE: int
    SHF_CACHE_FAULTS: int
    SHF_PLAN_RANK: int
    SHF_PLAN_WORKER: int
    SHF_PLAN_LANES: int
    SHF_PLAN_SHARDS: int
    SHF_PLAN_SAMPLES: int
    SHF_PLAN_BYTES: int
    SHF_PLAN_SHARD_SAMPLES: int
    SHF_PLAN_SHARD_BYTES: int
    SHF_KIND_FILE: int
    SHF_KIND_DIRECTORY: int
    SHF_KIND_HARD_LINK: int
    SHF_KIND_SYMBOLIC_LINK: int
    SHF_KIND_SPECIAL: int
    SHF_KIND_SPARSE: int
    SHF_KIND_MULTI_VOLUME: int
    SHF_COLUMN_ARRAY: int
    SHF_COLUMN_BYTES: int
    SHF_COLUMN_TEXT: int
    SHF_COLUMN_JSON: int
    SHF_COLUMN_MSGPACK: int
    SHF_DTYPE_BOOL: int
    SHF_DTYPE_INT8: int
    SHF_DTYPE_INT16: int
    SHF_DTYPE_INT32: int
    SHF_DTYPE_INT64: int
    SHF_DTYPE_UINT8: int
    SHF_DTYPE_UINT16: int
    SHF_DTYPE_UINT32: int
    SHF_DTYPE_UINT64: int
    SHF_DTYPE_FLOAT16: int
    SHF_DTYPE_FLOAT32: int
    SHF_DTYPE_FLOAT64: int
    SHF_DTYPE_COMPLEX64: int
    SHF_DTYPE_COMPLEX128: int
    SHF_DTYPE_BFLOAT16: int
    python_log: _CData
    python_skip: _CData
    python_shard_name: _CData
    python_url: _CData
    python_check_signals: _CData
    def python_set_opener(self, options: _CData, ctx: _CData, error: _CData) -> int: ...
    def python_set_tokenizer(self, options: _CData, ctx: _CData, error: _CData) -> int: ...
    def shf_tokens_add(
        self, tokens: _CData, ids: _CData, counts: _CData, text_count: int, error: _CData
    ) -> int: ...
    def python_end_openers(self) -> None: ...
    def python_inside_openers(self) -> int: ...
    def python_close_stream(self, holder: _CData) -> None: ...
    def python_unref_block(self, holder: _CData) -> None: ...
    def python_command(self, count: int, words: _CData) -> int: ...
    def python_close_archive(self, holder: _CData) -> None: ...
    def python_close_members(self, holder: _CData) -> None: ...
    def python_next_member(self, holder: _CData, member: _CData, error: _CData) -> int: ...
    def python_read_member(
        self, holder: _CData, member: _CData, start: int, room: int, error: _CData
    ) -> int: ...
    def python_free_member(self, member: _CData) -> None: ...
    def python_read(self, holder: _CData, position: int, slot: _CData) -> int: ...
    def python_read_into(
        self, holder: _CData, position: int, buffer: _CData, capacity: int, error: _CData
    ) -> int: ...
    def python_find(self, holder: _CData, name: bytes, name_size: int, error: _CData) -> int: ...
    def python_plan(self, holder: _CData, positions: _CData, count: int, plan: _CData) -> int: ...
    def python_read_many(
        self,
        holder: _CData,
        positions: _CData,
        count: int,
        plan: _CData,
        buffers: _CData,
        error: _CData,
    ) -> int: ...
    def python_close_dataset(self, holder: _CData) -> None: ...
    def python_unref_sample(self, holder: _CData) -> None: ...
    def python_get_many(
        self, holder: _CData, numbers: _CData, count: int, holders: _CData, error: _CData
    ) -> int: ...
    def python_new_samples(self, count: int) -> _CData: ...
    def python_free_samples(self, held: _CData) -> None: ...
    def python_read_samples(
        self,
        holder: _CData,
        numbers: _CData,
        places: _CData,
        count: int,
        budget: int,
        held: _CData,
        done: _CData,
        error: _CData,
    ) -> int: ...
    def python_drop_samples(self, held: _CData, place: int) -> None: ...
    def python_take_sample(self, held: _CData, place: int, holder: _CData) -> None: ...
    def python_write_samples(
        self, holder: _CData, held: _CData, place: _CData, stop: int, error: _CData
    ) -> int: ...
    def python_describe(self, holder: _CData, fields: int, bytes: int, out: _CData) -> int: ...
    def python_unref_batch(self, holder: _CData) -> None: ...
    def python_arrow(self, holder: _CData, array: _CData, schema: _CData, error: _CData) -> int: ...
    def python_allocate(self, size: int) -> _CData: ...
    def python_free(self, memory: _CData) -> None: ...
    def shf_version(self) -> int: ...
    def shf_version_string(self) -> _CData: ...
    def shf_feature(self, name: bytes) -> _CData: ...
    def shf_strerror(self, code: int) -> _CData: ...
    def shf_error_name(self, code: int) -> _CData: ...
    def shf_options_new(self) -> _CData: ...
    def shf_options_free(self, options: _CData) -> None: ...
    def shf_options_set(self, options: _CData, name: bytes, value: bytes, error: _CData) -> int: ...
    def shf_option_describe(self, index: int, what: int) -> _CData: ...
    def shf_options_set_log(
        self, options: _CData, level: int, log: _CData, ctx: _CData
    ) -> None: ...
    def shf_options_set_on_skip(self, options: _CData, on_skip: _CData, ctx: _CData) -> None: ...
    def shf_options_get(self, options: _CData, name: bytes, out: _CData, error: _CData) -> int: ...
    def shf_options_set_shard_name(self, options: _CData, name: _CData, ctx: _CData) -> None: ...
    def shf_options_set_interrupt(
        self, options: _CData, interrupt: _CData, ctx: _CData
    ) -> None: ...
    def shf_expand_urls(
        self,
        urls: _CData,
        url_count: int,
        options: _CData,
        each: _CData,
        ctx: _CData,
        error: _CData,
    ) -> int: ...
    def shf_cache_list(
        self,
        out: _CData,
        urls: _CData,
        url_count: int,
        older_than: int,
        options: _CData,
        error: _CData,
    ) -> int: ...
    def shf_cache_verify(
        self,
        out: _CData,
        urls: _CData,
        url_count: int,
        older_than: int,
        options: _CData,
        error: _CData,
    ) -> int: ...
    def shf_cache_clear(
        self,
        out: _CData,
        urls: _CData,
        url_count: int,
        older_than: int,
        options: _CData,
        error: _CData,
    ) -> int: ...
    def shf_cache_report_free(self, report: _CData) -> None: ...
    def shf_cache_count(self, report: _CData) -> int: ...
    def shf_cache_text(self, report: _CData, number: int, what: int, out: _CData) -> int: ...
    def shf_cache_number(self, report: _CData, number: int, what: int) -> int: ...
    def shf_plan_make(
        self, out: _CData, urls: _CData, url_count: int, options: _CData, error: _CData
    ) -> int: ...
    def shf_plan_text(self, plan: _CData, out: _CData) -> None: ...
    def shf_plan_warning(self, plan: _CData, index: int, out: _CData) -> int: ...
    def shf_plan_shard_count(self, plan: _CData) -> int: ...
    def shf_plan_shard_info(self, plan: _CData, shard: int, what: int) -> int: ...
    def shf_plan_consumer_count(self, plan: _CData) -> int: ...
    def shf_plan_info(self, plan: _CData, consumer: int, what: int) -> int: ...
    def shf_plan_simulate(
        self,
        out: _CData,
        samples: _CData,
        bytes: _CData,
        shard_count: int,
        options: _CData,
        error: _CData,
    ) -> int: ...
    def shf_plan_reads(
        self, plan: _CData, consumer: int, reads: _CData, room: int, count: _CData, error: _CData
    ) -> int: ...
    def shf_plan_free(self, plan: _CData) -> None: ...
    def shf_stream_open(
        self, out: _CData, urls: _CData, url_count: int, options: _CData, error: _CData
    ) -> int: ...
    def python_mix_streams(
        self,
        out: _CData,
        holders: _CData,
        parts: _CData,
        weights: _CData,
        count: int,
        options: _CData,
        error: _CData,
    ) -> int: ...
    def shf_stream_next_block(
        self, stream: _CData, max_samples: int, out: _CData, error: _CData
    ) -> int: ...
    def shf_stream_next_batch(self, stream: _CData, out: _CData, error: _CData) -> int: ...
    def shf_stream_save(self, stream: _CData, unread: int, out: _CData, error: _CData) -> int: ...
    def shf_stream_restore(self, stream: _CData, data: bytes, size: int, error: _CData) -> int: ...
    def shf_state_merge(self, states: _CData, count: int, out: _CData, error: _CData) -> int: ...
    def shf_state_bytes(self, state: _CData, out: _CData) -> None: ...
    def shf_state_free(self, state: _CData) -> None: ...
    def shf_stream_stat(self, stream: _CData, stat: int) -> int: ...
    def shf_stat_describe(self, stat: int, what: int) -> _CData: ...
    def shf_stream_cancel(self, stream: _CData) -> None: ...
    def shf_stream_close(self, stream: _CData) -> None: ...
    def shf_block_sample_count(self, block: _CData) -> int: ...
    def shf_block_unref(self, block: _CData) -> None: ...
    def shf_block_columns(
        self, block: _CData, column_count: int, columns: _CData, counts: _CData
    ) -> None: ...
    def shf_block_sample(self, block: _CData, index: int) -> _CData: ...
    def shf_block_keys(self, block: _CData, out: _CData) -> None: ...
    def shf_block_buffer(self, block: _CData, index: int, out: _CData) -> int: ...
    def shf_block_schema(self, block: _CData, index: int, out: _CData) -> int: ...
    def shf_block_url(self, block: _CData, index: int, out: _CData) -> int: ...
    def shf_batch_make(
        self, out: _CData, samples: _CData, count: int, options: _CData, error: _CData
    ) -> int: ...
    def shf_batch_row_count(self, batch: _CData) -> int: ...
    def shf_batch_column(self, batch: _CData, index: int, name: _CData, array: _CData) -> int: ...
    def shf_batch_dlpack(
        self, batch: _CData, index: int, versioned: bool, out: _CData, error: _CData
    ) -> int: ...
    def shf_archive_open(self, out: _CData, url: bytes, options: _CData, error: _CData) -> int: ...
    def shf_archive_open_memory(
        self, out: _CData, data: _CData, size: int, options: _CData, error: _CData
    ) -> int: ...
    def shf_archive_member_count(self, archive: _CData) -> int: ...
    def shf_archive_name(self, archive: _CData, position: int, out: _CData) -> int: ...
    def shf_archive_info(self, archive: _CData, position: int, what: int) -> int: ...
    def shf_archive_read_many(
        self, archive: _CData, positions: _CData, count: int, buffers: _CData, error: _CData
    ) -> int: ...
    def shf_members_open(self, out: _CData, url: bytes, options: _CData, error: _CData) -> int: ...
    def shf_members_next(self, members: _CData, name: _CData, error: _CData) -> int: ...
    def shf_members_info(self, members: _CData, what: int) -> int: ...
    def shf_members_text(self, members: _CData, what: int, out: _CData) -> int: ...
    def shf_members_read(
        self, members: _CData, buffer: _CData, capacity: int, size: _CData, error: _CData
    ) -> int: ...
    def shf_members_cancel(self, members: _CData) -> None: ...
    SHF_SHARD_SAMPLES: int
    SHF_SHARD_BYTES: int
    SHF_SHARD_PAYLOAD: int
    SHF_SHARD_URL: int
    SHF_SHARD_DIGEST: int
    SHF_SHARD_INDEX: int
    SHF_SHARD_TOKEN: int
    def python_close_writer(self, holder: _CData) -> None: ...
    def shf_writer_open(
        self, out: _CData, pattern: _CData, options: _CData, error: _CData
    ) -> int: ...
    def shf_writer_begin(self, writer: _CData, key: bytes, size: int, error: _CData) -> int: ...
    def shf_writer_field(
        self,
        writer: _CData,
        name: bytes,
        name_size: int,
        data: _CData,
        size: int,
        error: _CData,
    ) -> int: ...
    def shf_writer_field_borrowed(
        self,
        writer: _CData,
        name: bytes,
        name_size: int,
        data: _CData,
        size: int,
        error: _CData,
    ) -> int: ...
    def shf_writer_field_file(
        self, writer: _CData, name: bytes, name_size: int, path: bytes, error: _CData
    ) -> int: ...
    def shf_writer_field_url(
        self, writer: _CData, name: bytes, name_size: int, url: bytes, error: _CData
    ) -> int: ...
    def shf_writer_end(self, writer: _CData, error: _CData) -> int: ...
    def shf_writer_write(self, writer: _CData, sample: _CData, error: _CData) -> int: ...
    def shf_writer_next_shard(self, writer: _CData, error: _CData) -> int: ...
    def shf_writer_flush(self, writer: _CData, durable: int, error: _CData) -> int: ...
    def shf_writer_finish(self, writer: _CData, error: _CData) -> int: ...
    def shf_writer_shards(self, writer: _CData) -> int: ...
    def shf_writer_shard_info(self, writer: _CData, index: int, what: int) -> int: ...
    def shf_writer_shard_text(self, writer: _CData, index: int, what: int, out: _CData) -> int: ...
    def shf_publish_prepared(self, token: bytes, options: _CData, error: _CData) -> int: ...
    def shf_discard_prepared(self, token: bytes, options: _CData, error: _CData) -> int: ...
    def shf_discard_left(self, pattern: bytes, options: _CData, error: _CData) -> int: ...
    def shf_writer_cancel(self, writer: _CData) -> None: ...
    def shf_sample_key(self, sample: _CData, out: _CData) -> None: ...
    def shf_sample_url(self, sample: _CData, out: _CData) -> None: ...
    def shf_sample_field(self, sample: _CData, index: int, name: _CData, data: _CData) -> int: ...
    def shf_dataset_open(
        self, out: _CData, urls: _CData, count: int, options: _CData, error: _CData
    ) -> int: ...
    def shf_dataset_sample_count(self, dataset: _CData) -> int: ...
    def shf_dataset_get(self, dataset: _CData, number: int, out: _CData, error: _CData) -> int: ...
    def shf_dataset_get_batch(
        self,
        dataset: _CData,
        numbers: _CData,
        count: int,
        options: _CData,
        out: _CData,
        error: _CData,
    ) -> int: ...
    def shf_dataset_find(
        self, dataset: _CData, key: bytes, size: int, number: _CData, error: _CData
    ) -> int: ...
    def shf_dataset_shard(
        self, dataset: _CData, number: int, shard: _CData, first: _CData
    ) -> int: ...

ffi: _FFI
lib: _Lib

# What users of fsspec and pandas write; options by their own names are the same.
@type_check_only
class StorageOptions(TypedDict, total=False):
    storage_options: Mapping[str, Any] | None

# The keyword arguments of Stream, mix(), Archive, Dataset and Writer, for type checkers and
# editors. At run time the library's own table decides; tests/python/test_options.py compares.
@type_check_only
class StreamOptions(StorageOptions, total=False):
    threads: int | str
    memory: int | str
    shuffle_shards: bool | str
    shuffle: int | str
    seed: int | str
    epoch: int | str
    epochs: int | str
    epoch_samples: int | str
    resample: bool | str
    even: Literal["none", "drop", "pad"]
    by_index: bool | str
    lanes: int | str
    rank: int | str
    world_size: int | str
    worker: int | str
    num_workers: int | str
    fields: str
    select_keys: str
    slice: str
    limit: int | str
    on_error: Literal["raise", "skip_sample", "skip_shard"]
    max_skips: int | str
    end_marker: Literal["required", "optional"]
    concat: bool | str
    trailing: Literal["refuse", "ignore"]
    zip_prefix: Literal["refuse", "allow"]
    zip_overlap: Literal["refuse", "allow"]
    allow_empty: bool | str
    duplicate_keys: Literal["error", "accept"]
    max_member: int | str
    max_sample: int | str
    max_name: int | str
    max_meta: int | str
    max_ratio: int | str
    max_window: int | str
    max_shards: int | str
    pipe_timeout: float | str
    senders: int | str
    map: bool | str
    retries: int | str
    connections: int | str
    range_size: int | str
    http2: bool | str
    headers: str | Mapping[str, str]
    token: str
    ca_file: str | PathLike[str]
    client_cert: str | PathLike[str]
    client_key: str | PathLike[str]
    proxy: str
    allow_private: bool | str
    checksums: Literal["all", "fast", "none"]
    cache: str | PathLike[str]
    cache_size: int | str
    stale_ok: bool | str
    s3_endpoint: str
    s3_region: str
    s3_profile: str
    s3_access_key: str
    s3_secret_key: str
    s3_session_token: str
    s3_anonymous: bool | str
    s3_requester_pays: bool | str
    s3_addressing: Literal["auto", "path", "virtual"]
    gs_endpoint: str
    gs_credentials: str | PathLike[str]
    gs_token: str
    gs_access_key: str
    gs_secret_key: str
    gs_anonymous: bool | str
    gs_user_project: str
    az_account: str
    az_endpoint: str
    az_account_key: str
    az_sas: str
    az_connection_string: str
    az_anonymous: bool | str
    hf_endpoint: str
    hf_token: str
    ais_endpoint: str
    ais_token: str
    ais_provider: str
    ais_etl: str
    feed_token: str
    feed_server_key: str
    feed_secret_key: str
    feed_timeout: float | str
    feed_wait: float | str
    feed_compression: Literal["none", "lz4", "zstd"]
    expand: bool | str
    secure: bool | str
    write_index: bool | str
    decode: str
    batch: int | str
    pack: int | str
    pack_window: int | str
    batch_elements: int | str
    bucket: str
    bucket_wait: int | str
    last: Literal["keep", "drop"]
    ragged: Literal["error", "offsets", "pad"]
    missing: Literal["error", "skip", "empty"]
    decode_threads: int | str
    max_decoded: int | str
    index_dir: str

# Those of mix().
@type_check_only
class MixOptions(TypedDict, total=False):
    memory: int | str
    seed: int | str
    epochs: int | str
    epoch_samples: int | str
    on_error: Literal["raise", "skip_sample", "skip_shard"]
    max_skips: int | str
    decode: str
    batch: int | str
    pack: int | str
    pack_window: int | str
    batch_elements: int | str
    bucket: str
    bucket_wait: int | str
    last: Literal["keep", "drop"]
    ragged: Literal["error", "offsets", "pad"]
    missing: Literal["error", "skip", "empty"]
    decode_threads: int | str
    max_decoded: int | str
    until: Literal["first", "all", "forever"]

# What Stream.batches() takes of them.
@type_check_only
class BatchOptions(TypedDict, total=False):
    decode: str
    pack: int | str
    pack_window: int | str
    batch_elements: int | str
    bucket: str
    bucket_wait: int | str
    last: Literal["keep", "drop"]
    ragged: Literal["error", "offsets", "pad"]
    missing: Literal["error", "skip", "empty"]
    decode_threads: int | str
    max_decoded: int | str

# And what Sample.decode() takes.
@type_check_only
class DecodeOptions(TypedDict, total=False):
    missing: Literal["error", "empty"]
    max_decoded: int | str
    seed: int | str

# And what Dataset.batch() takes.
@type_check_only
class NumberedBatchOptions(TypedDict, total=False):
    memory: int | str
    seed: int | str
    epoch: int | str
    decode: str
    ragged: Literal["error", "offsets", "pad"]
    missing: Literal["error", "skip", "empty"]
    decode_threads: int | str
    max_decoded: int | str

@type_check_only
class ArchiveOptions(StorageOptions, total=False):
    threads: int | str
    memory: int | str
    end_marker: Literal["required", "optional"]
    concat: bool | str
    trailing: Literal["refuse", "ignore"]
    zip_prefix: Literal["refuse", "allow"]
    zip_overlap: Literal["refuse", "allow"]
    resync: bool | str
    max_member: int | str
    max_name: int | str
    max_meta: int | str
    max_ratio: int | str
    max_window: int | str
    timeout: float | str
    pipe_timeout: float | str
    senders: int | str
    map: bool | str
    retries: int | str
    connections: int | str
    range_size: int | str
    http2: bool | str
    headers: str | Mapping[str, str]
    token: str
    ca_file: str | PathLike[str]
    client_cert: str | PathLike[str]
    client_key: str | PathLike[str]
    proxy: str
    allow_private: bool | str
    checksums: Literal["all", "fast", "none"]
    cache: str | PathLike[str]
    cache_size: int | str
    stale_ok: bool | str
    s3_endpoint: str
    s3_region: str
    s3_profile: str
    s3_access_key: str
    s3_secret_key: str
    s3_session_token: str
    s3_anonymous: bool | str
    s3_requester_pays: bool | str
    s3_addressing: Literal["auto", "path", "virtual"]
    gs_endpoint: str
    gs_credentials: str | PathLike[str]
    gs_token: str
    gs_access_key: str
    gs_secret_key: str
    gs_anonymous: bool | str
    gs_user_project: str
    az_account: str
    az_endpoint: str
    az_account_key: str
    az_sas: str
    az_connection_string: str
    az_anonymous: bool | str
    hf_endpoint: str
    hf_token: str
    ais_endpoint: str
    ais_token: str
    ais_provider: str
    ais_etl: str
    secure: bool | str

@type_check_only
class WriterOptions(TypedDict, total=False):
    memory: int | str
    duplicate_keys: Literal["error", "accept"]
    pipe_timeout: float | str
    retries: int | str
    connections: int | str
    http2: bool | str
    headers: str | Mapping[str, str]
    ca_file: str | PathLike[str]
    client_cert: str | PathLike[str]
    client_key: str | PathLike[str]
    proxy: str
    allow_private: bool | str
    s3_endpoint: str
    s3_region: str
    s3_profile: str
    s3_access_key: str
    s3_secret_key: str
    s3_session_token: str
    s3_anonymous: bool | str
    s3_requester_pays: bool | str
    s3_addressing: Literal["auto", "path", "virtual"]
    gs_endpoint: str
    gs_credentials: str | PathLike[str]
    gs_token: str
    gs_access_key: str
    gs_secret_key: str
    gs_anonymous: bool | str
    gs_user_project: str
    az_account: str
    az_endpoint: str
    az_account_key: str
    az_sas: str
    az_connection_string: str
    az_anonymous: bool | str
    secure: bool | str
    write_index: bool | str
    index_dir: str
    max_samples: int | str
    max_bytes: int | str
    first_shard: int | str
    format: Literal["auto", "tar", "zip"]
    compression: Literal["auto", "none", "gzip", "bzip2", "xz", "zstd", "lz4"]
    level: int | str
    compress_threads: int | str
    zip_method: Literal["auto", "store", "deflate"]
    tar_headers: Literal["same", "tarp"]
    unsafe_names: Literal["refuse", "allow"]
    index_for: str
    wids_index: str | PathLike[str]
    overwrite: bool | str
    durable: bool | str
    keep_partial: bool | str
    prepare: bool | str

@type_check_only
class DatasetOptions(StorageOptions, total=False):
    threads: int | str
    memory: int | str
    seed: int | str
    epoch: int | str
    fields: str
    end_marker: Literal["required", "optional"]
    concat: bool | str
    trailing: Literal["refuse", "ignore"]
    zip_prefix: Literal["refuse", "allow"]
    zip_overlap: Literal["refuse", "allow"]
    allow_empty: bool | str
    duplicate_keys: Literal["error", "accept"]
    max_member: int | str
    max_sample: int | str
    max_name: int | str
    max_meta: int | str
    max_ratio: int | str
    max_window: int | str
    max_shards: int | str
    timeout: float | str
    pipe_timeout: float | str
    map: bool | str
    retries: int | str
    connections: int | str
    range_size: int | str
    http2: bool | str
    headers: str | Mapping[str, str]
    token: str
    ca_file: str | PathLike[str]
    client_cert: str | PathLike[str]
    client_key: str | PathLike[str]
    proxy: str
    allow_private: bool | str
    checksums: Literal["all", "fast", "none"]
    cache: str | PathLike[str]
    cache_size: int | str
    stale_ok: bool | str
    s3_endpoint: str
    s3_region: str
    s3_profile: str
    s3_access_key: str
    s3_secret_key: str
    s3_session_token: str
    s3_anonymous: bool | str
    s3_requester_pays: bool | str
    s3_addressing: Literal["auto", "path", "virtual"]
    gs_endpoint: str
    gs_credentials: str | PathLike[str]
    gs_token: str
    gs_access_key: str
    gs_secret_key: str
    gs_anonymous: bool | str
    gs_user_project: str
    az_account: str
    az_endpoint: str
    az_account_key: str
    az_sas: str
    az_connection_string: str
    az_anonymous: bool | str
    hf_endpoint: str
    hf_token: str
    ais_endpoint: str
    ais_token: str
    ais_provider: str
    ais_etl: str
    expand: bool | str
    secure: bool | str
    decode: str
    ragged: Literal["error", "offsets", "pad"]
    missing: Literal["error", "skip", "empty"]
    decode_threads: int | str
    max_decoded: int | str
    index: Literal["auto", "require", "rebuild", "memory"]
    index_dir: str
