// Made from the header by generate.sh and rust-bindgen 0.60.1. Do not edit.

pub const SHF_STRLEN: usize = usize::MAX;
pub const SHF_VERSION_MAJOR: i32 = 0;
pub const SHF_VERSION_MINOR: i32 = 1;
pub const SHF_VERSION_PATCH: i32 = 0;
extern "C" {
    /// The version of the library that runs: major * 65536 + minor * 256 + patch.
    /// Since: 0.1
    pub fn shf_version() -> u32;
    /// The same as text, "0.1.0". Owns: static. Since: 0.1
    pub fn shf_version_string() -> *const core::ffi::c_char;
    /// The library that implements a feature of this build: "zlib 1.2.13" for "gzip". NULL for a feature
    /// that is missing or unknown. Names: gzip, bzip2, xz, zstd, lz4, lzip, compress, pipe, jpeg, png,
    /// webp, gif, tiff, jxl, avif, audio, video, http, libarchive, feed, feed_http.
    /// Owns: static. Since: 0.1
    pub fn shf_feature(name: *const core::ffi::c_char) -> *const core::ffi::c_char;
}
pub const SHF_OK: i32 = 0;
/// the sequence is complete
pub const SHF_END: i32 = 1;
/// the bytes break the rules of the container or codec
pub const SHF_E_FORMAT: i32 = -1;
/// input ended before its end was proven
pub const SHF_E_TRUNCATED: i32 = -2;
/// a checksum over data is wrong (that of a tar header: FORMAT)
pub const SHF_E_INTEGRITY: i32 = -3;
/// a bound set by an option was reached; the message names it
pub const SHF_E_LIMIT: i32 = -4;
/// valid, but not implemented or switched off
pub const SHF_E_UNSUPPORTED: i32 = -5;
/// conforming readers could see different contents
pub const SHF_E_AMBIGUOUS: i32 = -6;
/// the file became another version during the read
pub const SHF_E_CHANGED: i32 = -7;
/// the retry budget was spent on a fault that may pass
pub const SHF_E_NET_TRANSIENT: i32 = -8;
/// the server's answer will not change
pub const SHF_E_NET_PERMANENT: i32 = -9;
/// the server asks for a longer pause than allowed
pub const SHF_E_THROTTLED: i32 = -10;
/// credentials missing, refused or expired
pub const SHF_E_AUTH: i32 = -11;
/// certificate or host name refused
pub const SHF_E_TLS: i32 = -12;
/// operating-system error; os_error carries errno
pub const SHF_E_IO: i32 = -13;
/// disk full or quota reached
pub const SHF_E_NOSPACE: i32 = -14;
/// an allocation failed
pub const SHF_E_NOMEM: i32 = -15;
/// a cancel function was called, or the interrupt function said so
pub const SHF_E_CANCELLED: i32 = -16;
/// the time of the option "timeout" is over; call again
pub const SHF_E_TIMEOUT: i32 = -17;
/// a child process failed
pub const SHF_E_CHILD: i32 = -18;
/// wrong call, refused URL, bad option
pub const SHF_E_USAGE: i32 = -19;
/// the handle belongs to the parent process
pub const SHF_E_FORKED: i32 = -20;
/// no field or member of that name
pub const SHF_E_NOT_FOUND: i32 = -21;
/// a bug in this library; please report the message
pub const SHF_E_INTERNAL: i32 = -22;
/// What went wrong. The message names the shard first (its URL without secrets), then member, byte
/// offset and cause, and after "help: " what to do; it is cut to fit. Frozen: 1,024 bytes.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_error {
    /// the value that the function returned
    pub code: i32,
    /// errno where the system gave one, else 0
    pub os_error: i32,
    /// byte position in the (decompressed) shard, UINT64_MAX if there is none
    pub offset: u64,
    /// UTF-8 if the names in it are; no control bytes; NUL-terminated
    pub message: [core::ffi::c_char; 1008usize],
}
extern "C" {
    /// One sentence about a code: "input ended before its end was proven". Never NULL.
    /// Owns: static. Since: 0.1
    pub fn shf_strerror(code: i32) -> *const core::ffi::c_char;
    /// The name of a code without its prefix: "TRUNCATED", "OK"; "UNKNOWN" for other values.
    /// Owns: static. Since: 0.1
    pub fn shf_error_name(code: i32) -> *const core::ffi::c_char;
}
/// Borrowed bytes. data may be NULL when size is 0. Frozen.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_bytes {
    pub data: *const u8,
    pub size: usize,
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_options {
    _unused: [u8; 0],
}
extern "C" {
    /// An options object with every option at its default, or NULL when there is no memory.
    /// Owns: the result is owned, release with shf_options_free. Since: 0.1
    pub fn shf_options_new() -> *mut shf_options;
    /// Frees an options object. Streams opened with it keep their own copy. Since: 0.1
    pub fn shf_options_free(options: *mut shf_options);
    /// Sets one option. The value is checked against the option's type and range.
    /// Errors: USAGE for an unknown name (the message has the nearest one) or a bad value (the message
    /// says what is accepted); the object is then unchanged. NOMEM. Since: 0.1
    pub fn shf_options_set(
        options: *mut shf_options,
        name: *const core::ffi::c_char,
        value: *const core::ffi::c_char,
        error: *mut shf_error,
    ) -> i32;
    /// Sets many options: "shuffle=1000,seed=1,decode='jpg:image/rgb8, cls:int'". Blanks around names
    /// and values are ignored. A value needs quotes (' or ") when it contains a comma, starts or ends
    /// with a blank, or starts with a quote; inside quotes a doubled quote is one.
    /// Errors: USAGE for an unknown name, a bad value, or a text that is no such list; the object is
    /// then unchanged. NOMEM. Since: 0.1
    pub fn shf_options_set_all(
        options: *mut shf_options,
        text: *const core::ffi::c_char,
        error: *mut shf_error,
    ) -> i32;
    /// The value of one option, as a text that shf_options_set takes and that is the same for equal
    /// values: sizes in bytes ("268435456"), times in nanoseconds ("1500000000ns"), "true" or "false".
    /// Owns: *out is borrowed from the object until the next call with it; it is also NUL-terminated.
    /// Errors: USAGE for an unknown name (the message has the nearest one); NOMEM. Since: 0.1
    pub fn shf_options_get(
        options: *const shf_options,
        name: *const core::ffi::c_char,
        out: *mut shf_bytes,
        error: *mut shf_error,
    ) -> i32;
}
/// "shuffle"
pub const SHF_OPTION_NAME: i32 = 0;
/// "bool", "count", "bytes", "duration", "choice", "text", or "secret":
///a text that must not be shown
pub const SHF_OPTION_TYPE: i32 = 1;
/// a value shf_options_set accepts
pub const SHF_OPTION_DEFAULT: i32 = 2;
/// "0..4294967295", or the choices: "raise|skip_sample|skip_shard"
pub const SHF_OPTION_RANGE: i32 = 3;
/// who takes it: some of "stream mix archive dataset writer"
pub const SHF_OPTION_OPENERS: i32 = 4;
/// one line
pub const SHF_OPTION_HELP: i32 = 5;
/// "reading", "order", "consumer", "selection", "errors", "leniency",
///"limits", "batches", "index", "network", "s3", "gs", "az",
///"hf", "ais", "feed"
pub const SHF_OPTION_GROUP: i32 = 6;
extern "C" {
    /// Describes option number `index` (0, 1, ...); `what` is one of SHF_OPTION_*. NULL when there is
    /// no such option or property.
    /// Owns: static. Since: 0.1
    pub fn shf_option_describe(index: usize, what: i32) -> *const core::ffi::c_char;
}
pub const SHF_LOG_ERROR: i32 = 0;
pub const SHF_LOG_WARNING: i32 = 1;
pub const SHF_LOG_INFO: i32 = 2;
/// Takes one message (NUL-terminated, borrowed for the call, without newline). Must not call back
/// into the stream that logs.
pub type shf_log_fn = ::core::option::Option<
    unsafe extern "C" fn(
        ctx: *mut ::core::ffi::c_void,
        level: i32,
        message: *const core::ffi::c_char,
    ),
>;
extern "C" {
    /// Sets who receives messages of `level` and more serious ones. This version sends SHF_LOG_WARNING
    /// for each sample and shard that on_error skips, when the number of consumers does not divide
    /// "lanes", for what a restored stream must read again, and for an index that is not used; and
    /// SHF_LOG_INFO for an index that is made. Nothing is sent by default; NULL restores that. `ctx`
    /// must live as long as the streams opened with these options.
    /// Threads: called on the thread that is inside shf_stream_open, shf_stream_next,
    /// shf_stream_next_block, shf_stream_next_batch or shf_dataset_open. Since: 0.1
    pub fn shf_options_set_log(
        options: *mut shf_options,
        level: i32,
        log: shf_log_fn,
        ctx: *mut ::core::ffi::c_void,
    );
}
/// A sample or shard that was skipped. Borrowed for the call, with all that it points to. Later
/// versions may add members at its end.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_skip {
    /// class, byte offset and message
    pub error: *const shf_error,
    /// of the shard, without secrets; also NUL-terminated
    pub url: shf_bytes,
    /// of the sample; empty where no sample is known to be at fault
    pub key: shf_bytes,
    /// 1: the rest of the shard, 0: one sample
    pub whole_shard: i32,
}
/// Takes one skip. Must not call back into the stream that skips.
pub type shf_skip_fn = ::core::option::Option<
    unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, skip: *const shf_skip),
>;
extern "C" {
    /// Sets who receives each sample and shard that is skipped under on_error=skip_sample and
    /// skip_shard, in the order in which they are counted: for a list of what to repair. The one that
    /// exceeds max_skips is the error of the stream. A part of a mix keeps the function of its own
    /// options. NULL: nobody. `ctx` must live as long as the streams opened with these options.
    /// Threads: called on the thread that is inside shf_stream_next, shf_stream_next_block or
    /// shf_stream_next_batch. Since: 0.1
    pub fn shf_options_set_on_skip(
        options: *mut shf_options,
        on_skip: shf_skip_fn,
        ctx: *mut ::core::ffi::c_void,
    );
}
/// Returns 0 to continue the call, any other value to cancel it.
pub type shf_interrupt_fn =
    ::core::option::Option<unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void) -> i32>;
extern "C" {
    /// Sets a function that is called about every 50 ms during a call that opens something. Such a call
    /// has no handle yet by which it could be cancelled. When the function returns anything but 0,
    /// shf_expand_urls, shf_stream_open, shf_plan_make, shf_archive_open, shf_archive_open_memory,
    /// shf_members_open, shf_dataset_open, shf_index_*, shf_cache_list, shf_cache_verify and
    /// shf_cache_clear return CANCELLED within 100 ms. A shell command that they have started is ended
    /// first, as by shf_stream_close. Most programs return a flag that their signal handler sets.
    /// shf_members_next, shf_members_read and calls on a writer that wait call the function too.
    ///
    /// The option "timeout" ends these calls too, with TIMEOUT: nothing is open then. When an interrupt
    /// function is set, "timeout" does not bound shf_stream_open and shf_members_open. A program that
    /// waits in short steps can then still open its stream. NULL: none. `ctx` must live as long as calls
    /// are made with these options, and until members in sequence and writers that were opened with them
    /// are closed.
    /// Threads: called on the thread that is inside the call. It may call this library. Since: 0.1
    pub fn shf_options_set_interrupt(
        options: *mut shf_options,
        interrupt: shf_interrupt_fn,
        ctx: *mut ::core::ffi::c_void,
    );
}
/// Gives the name of a shard, what a pattern would make of `number`: *out is borrowed until the
/// function is called again, or the writer is closed. Returns 0, or any other value to end the call
/// with CANCELLED: its sample is not written, and the next one asks again.
pub type shf_name_fn = ::core::option::Option<
    unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, number: u64, out: *mut shf_bytes) -> i32,
>;
extern "C" {
    /// Sets a function that names the shards of a writer, whose pattern is then NULL. It is called once
    /// for each shard, with numbers that count from the option "first_shard": for the first one by
    /// shf_writer_open, for later ones when their first sample is written. All names say the same format
    /// and kind of target; a name that comes again is USAGE, regardless of "overwrite". NULL: none.
    /// `ctx` must live until the writers that were opened with these options are closed.
    /// Threads: called on the thread that is inside the call. It must not use the writer. Since: 0.1
    pub fn shf_options_set_shard_name(
        options: *mut shf_options,
        name: shf_name_fn,
        ctx: *mut ::core::ffi::c_void,
    );
}
/// Allocates `size` bytes aligned to `alignment` (a power of two, at most 4096), or returns NULL.
pub type shf_alloc_fn = ::core::option::Option<
    unsafe extern "C" fn(
        ctx: *mut ::core::ffi::c_void,
        size: usize,
        alignment: usize,
    ) -> *mut ::core::ffi::c_void,
>;
/// Frees what the matching shf_alloc_fn gave.
pub type shf_free_fn = ::core::option::Option<
    unsafe extern "C" fn(
        ctx: *mut ::core::ffi::c_void,
        pointer: *mut ::core::ffi::c_void,
        size: usize,
    ),
>;
extern "C" {
    /// Sets where payload bytes live, pinned memory for example. Both functions or none (NULL, NULL).
    /// `ctx` and the functions must live until the stream is closed and its last sample or batch is
    /// released.
    /// Threads: `alloc` is called inside shf_stream_next, shf_stream_next_block and
    /// shf_stream_next_batch, `release` inside those, the release of a sample, block or batch, and
    /// shf_stream_close; each stream calls them one at a time until it is closed. Neither may call back
    /// into this library.
    /// Errors: a NULL from `alloc` becomes NOMEM. Since: 0.1
    pub fn shf_options_set_allocator(
        options: *mut shf_options,
        alloc: shf_alloc_fn,
        release: shf_free_fn,
        ctx: *mut ::core::ffi::c_void,
    );
}
/// the object is read once, from front to back
pub const SHF_SOURCE_SEQUENTIAL: i32 = 1;
/// read_at of the object is called by one thread at a time
pub const SHF_SOURCE_ONE_THREAD: i32 = 2;
/// The functions with which a program serves the URLs of a scheme. An object is what `open` gives
/// for one URL: a file, a connection, a range of memory. A URL may be opened more than once, and two
/// objects of it are independent.
///
/// Results  0 (read_at: a count), or a negative SHF_E_* code, as the class of the error; TIMEOUT
///          becomes IO. `error` is never NULL, and zeroed: error->message is the cause, up to its
///          NUL; the library puts the URL before it, and takes secrets of URLs out of it.
///          error->os_error is errno or another number of the program, and reaches the caller as it
///          is; the other members are ignored. No function throws.
/// Threads  All functions are called by any thread: by reader threads of a stream, by threads that
///          read members and fields, and by the thread that is inside a call of this library. `open`
///          runs on several threads at once, and so does read_at, also on one object unless it has
///          SHF_SOURCE_ONE_THREAD. An object is in no other call during its `size`, `version` and
///          `close`. `release` is the last call. None may use the handle that it is called for.
/// Waiting  The library cannot interrupt a function. shf_stream_next returns TIMEOUT, or CANCELLED,
///          in time while a reader waits in one; shf_stream_close, and calls that open and read on
///          the caller's thread, return when it does. So it should have a time limit of its own.
/// Fork     Each process closes what it has opened. In a forked child nothing is called on an object
///          of the parent: an archive or dataset that the child reads opens its URLs again, and
///          fails with CHANGED if size or version are others. `release` is called by each process
///          that frees its copy of the options and handles.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_source {
    /// sizeof(shf_source); later versions may add members at the end
    pub struct_size: usize,
    /// Opens a URL, as given after expansion. *object is NULL and *flags 0 before: SHF_SOURCE_*.
    pub open: ::core::option::Option<
        unsafe extern "C" fn(
            ctx: *mut ::core::ffi::c_void,
            url: *const core::ffi::c_char,
            object: *mut *mut ::core::ffi::c_void,
            flags: *mut u32,
            error: *mut shf_error,
        ) -> i32,
    >,
    /// Bytes of the object. *size is UINT64_MAX before: not known. Such an object is read as with
    /// SHF_SOURCE_SEQUENTIAL. NULL: of no object is it known. Called once, after open.
    pub size: ::core::option::Option<
        unsafe extern "C" fn(
            object: *mut ::core::ffi::c_void,
            size: *mut u64,
            error: *mut shf_error,
        ) -> i32,
    >,
    /// Writes a text that differs for other contents at the URL, such as an ETag or a time: with its
    /// NUL at most `room` (256) bytes. It guards saved states and shards that are opened again. text
    /// is "" before: nothing is known. NULL: of no object. Called once, after size.
    pub version: ::core::option::Option<
        unsafe extern "C" fn(
            object: *mut ::core::ffi::c_void,
            text: *mut core::ffi::c_char,
            room: usize,
            error: *mut shf_error,
        ) -> i32,
    >,
    /// Reads at most `size` bytes (at least 1) at `offset`. Returns how many, at least 1; 0 only at
    /// the end. With SHF_SOURCE_SEQUENTIAL `offset` is where the last call ended.
    pub read_at: ::core::option::Option<
        unsafe extern "C" fn(
            object: *mut ::core::ffi::c_void,
            offset: u64,
            out: *mut u8,
            size: usize,
            error: *mut shf_error,
        ) -> i64,
    >,
    /// Frees an object that `open` gave. NULL: nothing is to be freed.
    pub close: ::core::option::Option<unsafe extern "C" fn(object: *mut ::core::ffi::c_void)>,
    /// Says that `ctx` is used no more. NULL: nobody wants to know.
    pub release: ::core::option::Option<unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void)>,
}
extern "C" {
    /// Serves the URLs of `scheme` by functions of the program: "db" for "db://...". Every call with
    /// these options that opens shards uses them. `scheme` is in lower case (RFC 3986, 3.1). "*" is any
    /// scheme without functions of its own. Functions come before what the library itself serves, as
    /// http, but for paths, file:, pipe: and "-". source is copied; NULL removes the functions.
    /// Owns: `ctx` belongs to the library when the call succeeds: `release` is called when the functions
    /// are replaced or the options are freed, and all that was opened with them is closed. The last of
    /// these calls it, on its thread.
    /// Errors: USAGE (no scheme, or one that cannot be served; struct_size; open or read_at is NULL);
    /// NOMEM. `release` is not called then. Since: 0.1
    pub fn shf_options_set_source(
        options: *mut shf_options,
        scheme: *const core::ffi::c_char,
        source: *const shf_source,
        ctx: *mut ::core::ffi::c_void,
        error: *mut shf_error,
    ) -> i32;
}
/// A text, with the key of its sample and the URL of its shard, without secrets. Frozen.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_text {
    /// UTF-8
    pub text: shf_bytes,
    pub key: shf_bytes,
    pub url: shf_bytes,
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_tokens {
    _unused: [u8; 0],
}
/// The functions that make tokens of texts.
///
/// Threads  `tokenize` is called by decode threads of a stream, several at once, ahead of the
///          consumer. `release` is the last call. Neither may use the stream. No function throws.
/// Waiting  The library cannot interrupt a call; shf_stream_close returns when it does.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_tokenizer {
    /// sizeof(shf_tokenizer); later versions may add members at the end
    pub struct_size: usize,
    /// Makes tokens of `count` (at least 1) texts, and calls shf_tokens_add for all of them in
    /// their order. The tokens of a text must not depend on the other texts, whose number depends on
    /// sizes of batches. What is pointed to is borrowed for the call. Returns 0, or a negative
    /// SHF_E_* code (TIMEOUT becomes FORMAT) with the cause in error->message, which is zeroed
    /// before, and after "; help: " what to do; error->os_error reaches the caller as it is. Where
    /// a call for several texts fails with a class that on_error skips, halves of them are tried,
    /// down to single texts.
    pub tokenize: ::core::option::Option<
        unsafe extern "C" fn(
            ctx: *mut ::core::ffi::c_void,
            texts: *const shf_text,
            count: usize,
            tokens: *mut shf_tokens,
            error: *mut shf_error,
        ) -> i32,
    >,
    /// Says that `ctx` is used no more. NULL: nobody wants to know.
    pub release: ::core::option::Option<unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void)>,
}
extern "C" {
    /// Sets what makes tokens of texts: a stream with the option "pack" then takes columns of text in
    /// "decode", and packs the tokens of each as it packs an array of int32. A text that it fails with
    /// is a bad sample. What it gives must be the same for a saved stream. tokenizer is copied; NULL
    /// removes it. Other calls do not use it.
    /// Owns: `ctx` belongs to the library when the call succeeds: `release` is called when the tokenizer
    /// is replaced or the options are freed, and all that was opened with them is closed. The last of
    /// these calls it, on its thread.
    /// Errors: USAGE (options is NULL; struct_size; tokenize is NULL); NOMEM. `release` is not called
    /// then. Since: 0.1
    pub fn shf_options_set_tokenizer(
        options: *mut shf_options,
        tokenizer: *const shf_tokenizer,
        ctx: *mut ::core::ffi::c_void,
        error: *mut shf_error,
    ) -> i32;
    /// Adds the tokens of the next `text_count` texts: `ids` has all of them, one text after another,
    /// and `counts` how many each has. They are copied. For the tokenizer that was given `tokens`,
    /// during its call and on its thread.
    /// Errors: USAGE (a NULL argument); FORMAT (more texts than were given); LIMIT (the option memory);
    /// CANCELLED; NOMEM. The call fails then, whatever the tokenizer returns. Since: 0.1
    pub fn shf_tokens_add(
        tokens: *mut shf_tokens,
        ids: *const i32,
        counts: *const u64,
        text_count: usize,
        error: *mut shf_error,
    ) -> i32;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_requests {
    _unused: [u8; 0],
}
/// open the URL `text`
pub const SHF_REQUEST_OPEN: i32 = 1;
/// read up to `size` bytes of `object` at `offset`
pub const SHF_REQUEST_READ: i32 = 2;
/// free `object`; wants no answer
pub const SHF_REQUEST_CLOSE: i32 = 3;
/// options, and all opened with them, are gone; wants no answer
pub const SHF_REQUEST_RELEASE: i32 = 4;
/// a call of shf_requests_call has returned; wants no answer
pub const SHF_REQUEST_DONE: i32 = 5;
/// shf_requests_log was called; wants no answer
pub const SHF_REQUEST_LOG: i32 = 6;
/// shf_requests_skip was called; wants no answer
pub const SHF_REQUEST_SKIP: i32 = 7;
/// make tokens of the `size` texts at `texts`
pub const SHF_REQUEST_TOKENIZE: i32 = 8;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_request {
    /// sizeof(shf_request), by the caller
    pub struct_size: usize,
    /// for shf_requests_answer; DONE: that of shf_requests_call
    pub id: u64,
    pub object: u64,
    pub offset: u64,
    pub size: u64,
    /// OPEN, SKIP: the URL; LOG: the message. Until the next shf_requests_take,
    pub text: *const core::ffi::c_char,
    /// SKIP, as these
    pub key: *const core::ffi::c_char,
    /// SKIP
    pub error: *const shf_error,
    /// SHF_REQUEST_*
    pub kind: i32,
    /// DONE: of the function; LOG: the level; SKIP: whole_shard
    pub result: i32,
    /// TOKENIZE, as these
    pub texts: *const shf_text,
}
/// As the functions of shf_source and shf_tokenizer answer, which have the rules for objects, tokens
/// and errors.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_answer {
    /// sizeof(shf_answer)
    pub struct_size: usize,
    /// of an error the cause, of OPEN the version; NULL: none
    pub text: *const core::ffi::c_char,
    /// READ: the bytes, none only at the end; TOKENIZE: int32 tokens
    pub data: *const u8,
    /// of `data` in bytes; OPEN: of the object, UINT64_MAX: not known
    pub size: u64,
    /// OPEN: a number of the program, which READ and CLOSE have
    pub object: u64,
    /// SHF_OK, or the class of the error
    pub code: i32,
    pub os_error: i32,
    /// OPEN: SHF_SOURCE_*
    pub flags: u32,
    /// TOKENIZE: how many tokens each of the texts has, in their order
    pub counts: *const u64,
}
/// Says that shf_requests_take has something, perhaps once for several things. Must not call this
/// library, nor wait. Threads: called by any thread, one at a time.
pub type shf_wake_fn = ::core::option::Option<unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void)>;
/// Any function, cast.
pub type shf_any_fn = ::core::option::Option<unsafe extern "C" fn()>;
extern "C" {
    /// Makes a queue. NULL when there is no memory.
    /// Owns: owned, release with shf_requests_free. Since: 0.1
    pub fn shf_requests_new(wake: shf_wake_fn, ctx: *mut ::core::ffi::c_void) -> *mut shf_requests;
    /// Ends a queue: what is asked fails with CANCELLED, now and later, and `wake` is not called any
    /// more once this has returned. What was opened with it may be closed later, and gives no requests.
    /// NULL is a no-op. Since: 0.1
    pub fn shf_requests_free(requests: *mut shf_requests);
    /// Serves the URLs of `scheme` as shf_options_set_source does, by requests. A queue may serve
    /// several options and schemes; each gives a RELEASE at its end. Calls that open or read on the
    /// caller's thread wait for answers: they must come from another thread, or see shf_requests_call.
    /// Errors: USAGE (a NULL argument; a scheme that cannot be served); NOMEM. Since: 0.1
    pub fn shf_options_set_requests(
        options: *mut shf_options,
        scheme: *const core::ffi::c_char,
        requests: *mut shf_requests,
        error: *mut shf_error,
    ) -> i32;
    /// Has tokens made of texts as shf_options_set_tokenizer does, by requests. A RELEASE says that they
    /// are made no more. Calls of a stream that wait for batches wait for answers.
    /// Errors: USAGE (a NULL argument); NOMEM. Since: 0.1
    pub fn shf_options_set_tokenizer_requests(
        options: *mut shf_options,
        requests: *mut shf_requests,
        error: *mut shf_error,
    ) -> i32;
    /// Takes the next request; never waits. Returns END when there is none now. Any thread may take, and
    /// another one answer. Errors: USAGE (NULL; struct_size). Since: 0.1
    pub fn shf_requests_take(requests: *mut shf_requests, out: *mut shf_request) -> i32;
    /// Answers a request; what `answer` points to is copied.
    /// Errors: NOT_FOUND (nobody waits for it any more: an object that was opened for it is the
    /// program's to free); USAGE (NULL; struct_size). Since: 0.1
    pub fn shf_requests_answer(
        requests: *mut shf_requests,
        id: u64,
        answer: *const shf_answer,
    ) -> i32;
    /// Makes what is asked fail with CANCELLED: once, and as long as `on` is not 0. Since: 0.1
    pub fn shf_requests_cancel(requests: *mut shf_requests, on: i32);
    /// Whether shf_requests_cancel is on; for shf_options_set_interrupt with the queue as ctx, so that a
    /// cancel ends an opening too. Since: 0.1
    pub fn shf_requests_cancelled(requests: *mut ::core::ffi::c_void) -> i32;
    /// Adds a LOG; for shf_options_set_log with the queue as ctx. Since: 0.1
    pub fn shf_requests_log(
        requests: *mut ::core::ffi::c_void,
        level: i32,
        message: *const core::ffi::c_char,
    );
    /// Adds a SKIP; for shf_options_set_on_skip with the queue as ctx. Since: 0.1
    pub fn shf_requests_skip(requests: *mut ::core::ffi::c_void, skip: *const shf_skip);
    /// Calls a function of this library on a thread of its own, so that the caller's can answer: one
    /// that returns int32_t, with at most eight integers and pointers, each as a uint64_t. A DONE with
    /// `id` follows; what the arguments point to must stay until then.
    /// Errors: USAGE (NULL; more arguments); LIMIT, NOMEM (no thread). Since: 0.1
    pub fn shf_requests_call(
        requests: *mut shf_requests,
        id: u64,
        function: shf_any_fn,
        arguments: *const u64,
        count: usize,
        error: *mut shf_error,
    ) -> i32;
}
/// Receives one URL (NUL-terminated, `size` bytes without the NUL, borrowed for the call). Anything
/// but 0 stops the expansion.
pub type shf_url_fn = ::core::option::Option<
    unsafe extern "C" fn(
        ctx: *mut ::core::ffi::c_void,
        url: *const core::ffi::c_char,
        size: usize,
    ) -> i32,
>;
extern "C" {
    /// Expands URLs and passes each result to `each`, in list order, without building the list.
    /// options may be NULL.
    /// Errors: USAGE (braces, environment, refused pipe), IO (list file, no file matches a pattern),
    /// LIMIT (too many shards), NOMEM, CANCELLED when `each` stopped it; TIMEOUT, CANCELLED as
    /// shf_options_set_interrupt says, like all calls that open something. Since: 0.1
    pub fn shf_expand_urls(
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        options: *const shf_options,
        each: shf_url_fn,
        ctx: *mut ::core::ffi::c_void,
        error: *mut shf_error,
    ) -> i32;
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_stream {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_sample {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_block {
    _unused: [u8; 0],
}
extern "C" {
    /// Opens a stream over the shards that the URLs name. Plans, but starts no thread, and opens no
    /// shard unless the option "even" or "by_index" is set: then it compares each with its index.
    /// `options` may be NULL; they are copied.
    /// Owns: *out is owned, release with shf_stream_close.
    /// Errors: USAGE (option, URL, fewer shards than consumers, world_size or num_workers above 1 and no
    /// rank or worker), IO (list file, no match), LIMIT, TIMEOUT, CANCELLED, NOMEM; with "even" and
    /// "by_index" also a bad shard or index, and NOT_FOUND when a shard has no index. Since: 0.1
    pub fn shf_stream_open(
        out: *mut *mut shf_stream,
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Opens a stream that takes its samples from `count` other streams (at most 1024), its parts, at
    /// random by weight. The part that a sample comes from depends only on the option "seed", the number
    /// of the sample, and which parts have ended. In the long run each part that has not ended gives
    /// exactly its share by weight. Each part delivers the samples that it would deliver by itself, in
    /// that order. `weights` are above 0, in any unit; NULL: all are equal. The option "until" says when
    /// the mix ends. Parts may be mixes, eight deep, and may have been restored. Nothing may have been
    /// taken from them, and they have no option "batch". They keep their own options for reading
    /// (threads, memory, shuffle, on_error, log, rank, ...). The mix takes the options for what it makes
    /// of the samples: seed, until, timeout, memory, batch, decode and what belongs to it.
    /// "epoch_samples" with until=forever ends the mix after that many samples, counted over all
    /// consumers, times "epochs"; all parts must then have the same rank, world_size, worker and
    /// num_workers. `options` may be NULL.
    ///
    /// The result is a stream like any other. shf_stream_stat gives the sums over the parts.
    /// shf_stream_save saves the positions of the parts, and shf_stream_restore restores them in a mix
    /// that was opened in the same way. shf_state_merge merges states of mixes part by part: on another
    /// number of ranks each part continues its own sequence, and every rank mixes its share of them.
    /// Owns: *out is owned, release with shf_stream_close. When the call succeeds it has taken the
    /// parts over: their handles are gone. When it fails they are as before.
    /// Threads: must not run at the same time as another call on a part, shf_stream_cancel and
    /// shf_stream_stat included.
    /// Errors: USAGE (weights, a part twice, used or with batches; until=forever and standard input),
    /// FORKED, NOMEM. Since: 0.1
    pub fn shf_stream_mix(
        out: *mut *mut shf_stream,
        parts: *const *mut shf_stream,
        weights: *const f64,
        count: usize,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Delivers the next sample, waiting for it at most as long as the option "timeout".
    /// Owns: *out is owned, release with shf_sample_unref.
    /// Errors: SHF_END after the last sample; a bad shard; TIMEOUT (call again); CANCELLED; FORKED;
    /// NOMEM; USAGE for a second concurrent call. All but TIMEOUT and a concurrent USAGE repeat.
    /// Since: 0.1
    pub fn shf_stream_next(
        stream: *mut shf_stream,
        out: *mut *mut shf_sample,
        error: *mut shf_error,
    ) -> i32;
    /// Delivers the next samples, at least one and at most `max_samples` (0: as many as are convenient),
    /// in the order in which shf_stream_next would deliver them; the two calls may be mixed. How many
    /// come at once is not promised. Made for bindings and for loops over tiny samples: the price of a
    /// call is paid once per block. A block that is kept, or of which a sample is kept, holds at most
    /// 64 KiB more memory than 8 times the smallest sample in it.
    /// Owns: *out is owned, release with shf_block_unref.
    /// Errors: SHF_END after the last sample; a bad shard, when the samples before it were delivered;
    /// TIMEOUT (call again); CANCELLED; FORKED; NOMEM; USAGE for a second concurrent call.
    /// Since: 0.1
    pub fn shf_stream_next_block(
        stream: *mut shf_stream,
        max_samples: usize,
        out: *mut *mut shf_block,
        error: *mut shf_error,
    ) -> i32;
}
/// samples delivered
pub const SHF_STAT_SAMPLES: i32 = 0;
/// payload bytes delivered
pub const SHF_STAT_BYTES: i32 = 1;
/// shards read to their proven end
pub const SHF_STAT_SHARDS: i32 = 2;
/// dropped under on_error=skip_sample
pub const SHF_STAT_SKIPPED_SAMPLES: i32 = 3;
/// cut short under on_error=skip_sample or skip_shard
pub const SHF_STAT_SKIPPED_SHARDS: i32 = 4;
/// members without key, and names between __ and __
pub const SHF_STAT_IGNORED_MEMBERS: i32 = 5;
/// directory members
pub const SHF_STAT_DIRECTORIES: i32 = 6;
/// hard and symbolic links, skipped
pub const SHF_STAT_LINKS: i32 = 7;
/// devices, FIFOs, labels, skipped
pub const SHF_STAT_SPECIALS: i32 = 8;
/// sparse members, unsupported
pub const SHF_STAT_SPARSE: i32 = 9;
/// members of unknown type, skipped
pub const SHF_STAT_UNKNOWN_TYPES: i32 = 10;
/// pax size other than header size; pax was taken
pub const SHF_STAT_SIZE_DISAGREEMENTS: i32 = 11;
/// accepted under end_marker=optional
pub const SHF_STAT_MISSING_END_MARKERS: i32 = 12;
/// shards with junk after their end, accepted
pub const SHF_STAT_TRAILING: i32 = 13;
/// shards whose suffix and compression disagree
pub const SHF_STAT_SUFFIX_MISMATCHES: i32 = 14;
/// accepted under allow_empty
pub const SHF_STAT_EMPTY_SHARDS: i32 = 15;
/// payload memory held and not handed out, bytes, now
pub const SHF_STAT_MEMORY: i32 = 16;
/// its highest value
pub const SHF_STAT_MEMORY_PEAK: i32 = 17;
/// time the consumer spent waiting for bytes
pub const SHF_STAT_CONSUMER_WAIT_NS: i32 = 18;
/// time readers spent waiting for the consumer or memory
pub const SHF_STAT_READER_WAIT_NS: i32 = 19;
/// samples in an epoch of this consumer under epoch_samples,
///in the first epoch under even; known at the start; else 0
pub const SHF_STAT_EPOCH_SAMPLES: i32 = 20;
/// skipped under missing=skip: without a field, or more
pub const SHF_STAT_PASSED_OVER: i32 = 21;
/// skipped by fields, select_keys or slice
pub const SHF_STAT_FILTERED_SAMPLES: i32 = 22;
/// delivered before their checksum, which then failed
pub const SHF_STAT_UNVERIFIED_SAMPLES: i32 = 23;
/// to servers, with those that failed
pub const SHF_STAT_REQUESTS: i32 = 24;
/// requests that were made again after a fault
pub const SHF_STAT_RETRIES: i32 = 25;
/// of the bodies of their answers
pub const SHF_STAT_NETWORK_BYTES: i32 = 26;
/// time in which requests looked up names
pub const SHF_STAT_DNS_NS: i32 = 27;
/// in which they connected, with TLS
pub const SHF_STAT_CONNECT_NS: i32 = 28;
/// between requests and the first bytes of their answers
pub const SHF_STAT_FIRST_BYTE_NS: i32 = 29;
/// read from the cache
pub const SHF_STAT_CACHE_BYTES: i32 = 30;
/// damaged blocks of the cache, dropped and fetched again
pub const SHF_STAT_CACHE_FAULTS: i32 = 31;
/// opened from the cache alone, under stale_ok
pub const SHF_STAT_STALE_SHARDS: i32 = 32;
/// whose bytes have the checksum that their server gives
pub const SHF_STAT_VERIFIED_SHARDS: i32 = 33;
/// 64 + k counts the skips with error code -k
pub const SHF_STAT_SKIPS_BY_CLASS: i32 = 64;
extern "C" {
    /// Counter `stat` (SHF_STAT_*) of a stream; UINT64_MAX for any other number, and in a forked child.
    /// All are 64 bit. All but SHF_STAT_EPOCH_SAMPLES start at 0. What readers find in shards (ignored
    /// members, directories, links, ...) is counted when they find it, which may be before the consumer
    /// reaches it; at the end of the stream all counts are exact.
    /// Threads: any. Since: 0.1
    pub fn shf_stream_stat(stream: *const shf_stream, stat: i32) -> u64;
}
/// "skipped_samples", "skips_truncated"
pub const SHF_COUNTER_NAME: i32 = 0;
/// "counter": only grows; "gauge": a value of now
pub const SHF_COUNTER_KIND: i32 = 1;
/// "samples", "bytes", "shards", "members", "skips", "requests",
///"blocks", "ns"
pub const SHF_COUNTER_UNIT: i32 = 2;
/// one line
pub const SHF_COUNTER_HELP: i32 = 3;
extern "C" {
    /// Describes counter `stat` (SHF_STAT_*); `what` is one of SHF_COUNTER_*. NULL when there is no such
    /// counter or property. Owns: static. Since: 0.1
    pub fn shf_stat_describe(stat: i32, what: i32) -> *const core::ffi::c_char;
    /// Makes the stream's waiting and future calls return CANCELLED, within 100 ms. Does not free.
    /// Threads: any. Since: 0.1
    pub fn shf_stream_cancel(stream: *mut shf_stream);
    /// Ends the stream: stops its threads, ends its child processes (TERM, then KILL after 5 s), frees
    /// its memory. Must not run at the same time as another call on this stream. Since: 0.1
    pub fn shf_stream_close(stream: *mut shf_stream);
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_plan {
    _unused: [u8; 0],
}
extern "C" {
    /// Plans a run of all ranks and workers (options world_size and num_workers; rank and worker only
    /// have to be possible). Opens no shard. Samples and bytes are known when there are at most 10,000
    /// shards, no filter leaves samples out, and every shard has an index file that was made for its
    /// present size and modification time; see the options "index" and "index_dir". Damage to shards and
    /// index files is not seen. `options` may be NULL; they are copied.
    /// Owns: *out is owned, release with shf_plan_free.
    /// Errors: USAGE (option, URL; fewer shards than consumers are a warning), IO (list file, no match),
    /// LIMIT, TIMEOUT, CANCELLED, NOMEM. Since: 0.1
    pub fn shf_plan_make(
        out: *mut *mut shf_plan,
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// The plan for people to read: a summary, one line for each consumer (of many: the first eight and
    /// the last one), and the warnings, each after "warning: ". Every line ends with a newline.
    /// Owns: *out is borrowed from the plan; it is also NUL-terminated. Since: 0.1
    pub fn shf_plan_text(plan: *const shf_plan, out: *mut shf_bytes);
    /// Warning number `index`, one line without newline: what, and after "help: " what to do. There are
    /// warnings of fewer shards than consumers, unequal parts, no shuffle in several epochs, a shuffle
    /// smaller than a shard, lanes that are not set with several ranks, and a memory too small for the
    /// shuffle buffers.
    /// Owns: *out is borrowed from the plan; it is also NUL-terminated.
    /// Errors: NOT_FOUND past the last one. Since: 0.1
    pub fn shf_plan_warning(plan: *const shf_plan, index: usize, out: *mut shf_bytes) -> i32;
    /// The number of consumers: world_size x num_workers. Since: 0.1
    pub fn shf_plan_consumer_count(plan: *const shf_plan) -> u64;
}
/// number of the process, as the option rank
pub const SHF_PLAN_RANK: i32 = 0;
/// number of the worker in it
pub const SHF_PLAN_WORKER: i32 = 1;
/// lanes that it reads, with or without shards
pub const SHF_PLAN_LANES: i32 = 2;
/// shards in the first epoch; with epoch_samples in one pass
pub const SHF_PLAN_SHARDS: i32 = 3;
/// samples in the first epoch; UINT64_MAX: not known
pub const SHF_PLAN_SAMPLES: i32 = 4;
/// bytes of its shards; UINT64_MAX: not known, or epoch_samples is set
pub const SHF_PLAN_BYTES: i32 = 5;
extern "C" {
    /// Property `what` (SHF_PLAN_*) of a consumer; UINT64_MAX for any other value and past the last
    /// consumer. Since: 0.1
    pub fn shf_plan_info(plan: *const shf_plan, consumer: u64, what: i32) -> u64;
    /// The number of shards; they are numbered in the order in which shf_expand_urls gives them.
    /// Since: 0.1
    pub fn shf_plan_shard_count(plan: *const shf_plan) -> u64;
}
/// UINT64_MAX: not known
pub const SHF_PLAN_SHARD_SAMPLES: i32 = 0;
/// UINT64_MAX: not known
pub const SHF_PLAN_SHARD_BYTES: i32 = 1;
extern "C" {
    /// Property `what` (SHF_PLAN_SHARD_*) of a shard; UINT64_MAX for any other value and past the last
    /// shard. Since: 0.1
    pub fn shf_plan_shard_info(plan: *const shf_plan, shard: u64, what: i32) -> u64;
    /// Plans a run over shards that need not be there: `samples` and `bytes` have the numbers of each of
    /// `shard_count` shards, which are numbered in this order. `bytes` may be NULL: not known. Else as
    /// shf_plan_make, for any number of shards. The arrays are copied.
    /// Owns: *out is owned, release with shf_plan_free.
    /// Errors: USAGE (option, no shard, 2^32 shards, a shard of 2^32 samples), LIMIT, NOMEM.
    /// Since: 0.1
    pub fn shf_plan_simulate(
        out: *mut *mut shf_plan,
        samples: *const u64,
        bytes: *const u64,
        shard_count: usize,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// When a consumer reads which shard in the first epoch. `reads` gets four numbers for each reading
    /// of a shard, in the order in which they begin: the shard; the samples that are read of it; and the
    /// numbers, from 0, of the first and last sample that the consumer takes while it is read. A sample
    /// is read when its lane has to put it into the shuffle buffer in order to give the next one:
    /// threads that read ahead are left out. `room` readings fit into it (`reads` may be NULL with 0),
    /// and *count is how many there are.
    /// Errors: USAGE (NULL, no such consumer, epoch_samples is set, samples are not known), NOMEM.
    /// Since: 0.1
    pub fn shf_plan_reads(
        plan: *const shf_plan,
        consumer: u64,
        reads: *mut u64,
        room: usize,
        count: *mut usize,
        error: *mut shf_error,
    ) -> i32;
    /// Frees a plan. Since: 0.1
    pub fn shf_plan_free(plan: *mut shf_plan);
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_state {
    _unused: [u8; 0],
}
extern "C" {
    /// Saves the position of a stream: after all that was delivered, except the last `unread` samples of
    /// the block that shf_stream_next_block delivered last. In a stream of batches `unread` is 0, or 1
    /// for all but the last batch. A stream that is restored from the state resumes with exactly the
    /// next sample or batch, shuffle buffers included. Reads nothing; the stream can be used afterwards.
    /// Owns: *out is owned, release with shf_state_free.
    /// Errors: USAGE for more `unread` samples or batches than that, and for a concurrent call; FORKED;
    /// NOMEM. A stream that has failed can still be saved: after a restore the same fault is reported
    /// again. Since: 0.1
    pub fn shf_stream_save(
        stream: *mut shf_stream,
        unread: usize,
        out: *mut *mut shf_state,
        error: *mut shf_error,
    ) -> i32;
    /// Resumes at a saved position. The stream must have just been opened, with the same shards and the
    /// same options except those for threads, memory, time, checks and decoding. With a state of
    /// shf_state_merge and the same "lanes", the options rank, world_size, worker and num_workers may
    /// differ too. Opens no shard: a shard that has changed meanwhile is an error (CHANGED) when it is
    /// read. Shards are read from the saved offset; compressed ones are decompressed up to it, pipes and
    /// standard input are read and dropped up to it, which is logged.
    /// Errors: USAGE when something was already taken, when shards or options have changed (the message
    /// says which), when the state lacks lanes of this stream, and for a concurrent call; FORMAT,
    /// INTEGRITY, UNSUPPORTED for bytes that are no state of this version; FORKED; NOMEM. The stream is
    /// then unchanged. Since: 0.1
    pub fn shf_stream_restore(
        stream: *mut shf_stream,
        data: *const u8,
        size: usize,
        error: *mut shf_error,
    ) -> i32;
    /// Makes one state of those of all consumers of a run (each rank and worker once). Every one of them
    /// can restore it, and so can every consumer of a run with another number of ranks and workers. The
    /// order of all samples together does not change. When the number of consumers divides "lanes", each
    /// shard is read once. With any other number several consumers read each lane and keep their own
    /// samples of it; their states can be merged when all were saved after the same number of samples,
    /// between two batches. With the option "by_index" that is what it takes to restore the state with
    /// another number of ranks or workers: shf_stream_restore checks it.
    /// Owns: *out is owned, release with shf_state_free.
    /// Errors: USAGE for states of different runs, for a consumer twice, and for consumers that share
    /// lanes and are not all there or did not stop at the same step; FORMAT, INTEGRITY, UNSUPPORTED for
    /// bytes that are no state of this version; NOMEM. Since: 0.1
    pub fn shf_state_merge(
        states: *const shf_bytes,
        count: usize,
        out: *mut *mut shf_state,
        error: *mut shf_error,
    ) -> i32;
    /// The bytes to store. Owns: *out is borrowed from the state. Since: 0.1
    pub fn shf_state_bytes(state: *const shf_state, out: *mut shf_bytes);
    /// Frees a state. Since: 0.1
    pub fn shf_state_free(state: *mut shf_state);
    /// Adds a reference and returns its argument. Owns: the reference is owned, release with
    /// shf_sample_unref. Threads: any. Since: 0.1
    pub fn shf_sample_ref(sample: *mut shf_sample) -> *mut shf_sample;
    /// Drops a reference; the last one frees the sample. Threads: any. Since: 0.1
    pub fn shf_sample_unref(sample: *mut shf_sample);
    /// The key. Owns: *out is borrowed from the sample. Since: 0.1
    pub fn shf_sample_key(sample: *const shf_sample, out: *mut shf_bytes);
    /// The URL of the shard, without secrets. Owns: *out is borrowed from the sample; it is also
    /// NUL-terminated. Since: 0.1
    pub fn shf_sample_url(sample: *const shf_sample, out: *mut shf_bytes);
    /// The number of fields. Since: 0.1
    pub fn shf_sample_field_count(sample: *const shf_sample) -> usize;
    /// Field number `index` in the order of the shard: its name and its bytes. name or data may be NULL.
    /// Owns: both outputs are borrowed from the sample.
    /// Errors: NOT_FOUND past the last field. Since: 0.1
    pub fn shf_sample_field(
        sample: *const shf_sample,
        index: usize,
        name: *mut shf_bytes,
        data: *mut shf_bytes,
    ) -> i32;
    /// The bytes of the field called `name` (`name_size` bytes or SHF_STRLEN, lower case).
    /// Owns: *out is borrowed from the sample. Errors: NOT_FOUND. Since: 0.1
    pub fn shf_sample_find(
        sample: *const shf_sample,
        name: *const core::ffi::c_char,
        name_size: usize,
        out: *mut shf_bytes,
    ) -> i32;
}
/// pass over the shards, numbered from the option "epoch" upward
pub const SHF_SAMPLE_EPOCH: i32 = 0;
/// lane that the sample came through
pub const SHF_SAMPLE_LANE: i32 = 1;
/// number of the shard in the expanded list
pub const SHF_SAMPLE_SHARD: i32 = 2;
/// of the sample's first header in the (decompressed) shard, bytes
pub const SHF_SAMPLE_OFFSET: i32 = 3;
/// number of the stream in a mix, over all nested mixes; else 0
pub const SHF_SAMPLE_PART: i32 = 4;
extern "C" {
    /// Where the sample came from; `what` is one of SHF_SAMPLE_*, UINT64_MAX for any other value.
    /// Since: 0.1
    pub fn shf_sample_info(sample: *const shf_sample, what: i32) -> u64;
    /// Adds a reference and returns its argument. Threads: any. Since: 0.1
    pub fn shf_block_ref(block: *mut shf_block) -> *mut shf_block;
    /// Drops a reference; the last one frees the block. Threads: any. Since: 0.1
    pub fn shf_block_unref(block: *mut shf_block);
    /// The number of samples, at least 1. Since: 0.1
    pub fn shf_block_sample_count(block: *const shf_block) -> usize;
    /// Sample number `index`, NULL past the last one.
    /// Owns: borrowed from the block; shf_sample_ref makes it outlive the block. Since: 0.1
    pub fn shf_block_sample(block: *const shf_block, index: usize) -> *mut shf_sample;
}
pub const SHF_BLOCK_FIRST_FIELD: i32 = 0;
pub const SHF_BLOCK_SCHEMA: i32 = 1;
pub const SHF_BLOCK_KEY: i32 = 2;
pub const SHF_BLOCK_URL: i32 = 3;
pub const SHF_BLOCK_BUFFER: i32 = 4;
pub const SHF_BLOCK_START: i32 = 5;
pub const SHF_BLOCK_STOP: i32 = 6;
pub const SHF_BLOCK_COLUMNS: i32 = 7;
// The flat tables of a block, for bindings that build their own sample objects. With n samples and
// m fields in all:
//   FIRST_FIELD  n + 1  sample i has the fields FIRST_FIELD[i] up to FIRST_FIELD[i + 1]
//   SCHEMA       n      which list of field names sample i has, see shf_block_schema
//   KEY          n + 1  the key of sample i is bytes KEY[i] up to KEY[i + 1] of shf_block_keys
//   URL          n      which of the block's URLs, see shf_block_url
//   BUFFER       m      which of the block's buffers holds the field, see shf_block_buffer
//   START        m      where in that buffer it starts
//   STOP         m      where it stops
extern "C" {
    /// Fills columns[k] with the table number k and counts[k] with its length, for k below
    /// column_count and SHF_BLOCK_COLUMNS. counts may be NULL.
    /// Owns: the tables are borrowed from the block. Since: 0.1
    pub fn shf_block_columns(
        block: *const shf_block,
        column_count: usize,
        columns: *mut *const u64,
        counts: *mut usize,
    );
    /// The keys of all samples, one after another. Owns: borrowed from the block. Since: 0.1
    pub fn shf_block_keys(block: *const shf_block, out: *mut shf_bytes);
    /// Buffer number `index`, a stretch of payload memory with the fields somewhere in it. The bytes
    /// between the fields mean nothing.
    /// Owns: borrowed from the block. Errors: NOT_FOUND past the last one. Since: 0.1
    pub fn shf_block_buffer(block: *const shf_block, index: usize, out: *mut shf_bytes) -> i32;
    /// Field-name list number `index`: the names in order, each followed by '/', which no name has.
    /// Owns: borrowed from the block. Errors: NOT_FOUND past the last one. Since: 0.1
    pub fn shf_block_schema(block: *const shf_block, index: usize, out: *mut shf_bytes) -> i32;
    /// URL number `index`, without secrets; it is also NUL-terminated.
    /// Owns: borrowed from the block. Errors: NOT_FOUND past the last one. Since: 0.1
    pub fn shf_block_url(block: *const shf_block, index: usize, out: *mut shf_bytes) -> i32;
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_batch {
    _unused: [u8; 0],
}
/// numbers
pub const SHF_COLUMN_ARRAY: i32 = 0;
/// bytes of any length, as are the next three
pub const SHF_COLUMN_BYTES: i32 = 1;
pub const SHF_COLUMN_TEXT: i32 = 2;
pub const SHF_COLUMN_JSON: i32 = 3;
pub const SHF_COLUMN_MSGPACK: i32 = 4;
/// one byte, 0 or 1
pub const SHF_DTYPE_BOOL: i32 = 0;
pub const SHF_DTYPE_INT8: i32 = 1;
pub const SHF_DTYPE_INT16: i32 = 2;
pub const SHF_DTYPE_INT32: i32 = 3;
pub const SHF_DTYPE_INT64: i32 = 4;
pub const SHF_DTYPE_UINT8: i32 = 5;
pub const SHF_DTYPE_UINT16: i32 = 6;
pub const SHF_DTYPE_UINT32: i32 = 7;
pub const SHF_DTYPE_UINT64: i32 = 8;
pub const SHF_DTYPE_FLOAT16: i32 = 9;
pub const SHF_DTYPE_FLOAT32: i32 = 10;
pub const SHF_DTYPE_FLOAT64: i32 = 11;
/// two float32: real, imaginary
pub const SHF_DTYPE_COMPLEX64: i32 = 12;
pub const SHF_DTYPE_COMPLEX128: i32 = 13;
/// the upper half of a float32
pub const SHF_DTYPE_BFLOAT16: i32 = 14;
/// One column: numbers in C order without gaps. Three layouts:
///   even    offsets is NULL; shape[0] is the number of rows, the rest the shape of each
///   ragged  offsets has rows + 1 numbers: row i is elements offsets[i] up to offsets[i + 1], and
///           ndim is 1; shapes has row_ndim numbers for each row (NULL for bytes and numbers)
///   padded  even, and shapes has the shape that each row had before zeros were added
/// Frozen: 112 bytes on 64-bit systems.
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_array {
    /// 64-byte aligned; yours to write to
    pub data: *mut ::core::ffi::c_void,
    /// bytes
    pub size: usize,
    /// in elements; NULL when even
    pub offsets: *const i64,
    /// NULL when all rows have the same
    pub shapes: *const i64,
    pub shape: [i64; 8usize],
    pub ndim: i32,
    pub row_ndim: i32,
    /// SHF_DTYPE_*
    pub dtype: i32,
    /// SHF_COLUMN_*
    pub kind: i32,
}
extern "C" {
    /// Delivers the next batch of a stream with the option "batch"; such a stream delivers nothing else.
    /// A batch has that many samples, in the order in which shf_stream_next would deliver them; the last
    /// one may have fewer (option "last"). A sample that cannot be decoded, or whose array is not of the
    /// shape of the first one of the stream (option "ragged"), is an error; unless on_error=raise it is
    /// skipped, and the next sample takes its place. The first error ends the stream; the batch in which
    /// it occurs is not delivered.
    /// Owns: *out is owned, release with shf_batch_unref.
    /// Errors: SHF_END after the last batch; a bad shard; FORMAT (a field cannot be decoded, rows of
    /// unequal shape, a missing field), UNSUPPORTED (dtype, kind of image), TRUNCATED or INTEGRITY (a
    /// compressed field), LIMIT (max_decoded, or one batch above memory); TIMEOUT (call again);
    /// CANCELLED; FORKED; NOMEM; USAGE (bad option "decode", no option "batch", a second concurrent
    /// call). Since: 0.1
    pub fn shf_stream_next_batch(
        stream: *mut shf_stream,
        out: *mut *mut shf_batch,
        error: *mut shf_error,
    ) -> i32;
    /// Makes a batch of `count` samples, at least one, as the options "decode", "ragged" and "missing"
    /// say; with missing=skip it may have fewer rows. Random choices are keyed by the option "seed" and,
    /// for samples of a dataset, "epoch". `options` may be NULL.
    /// Owns: *out is owned, release with shf_batch_unref.
    /// Errors: FORMAT (a field cannot be decoded, rows of unequal shape, a missing field), UNSUPPORTED
    /// (dtype, kind of image), TRUNCATED or INTEGRITY (a compressed field) or LIMIT (max_decoded) of the
    /// first bad sample; NOMEM; USAGE (no sample, bad option "decode"). Since: 0.1
    pub fn shf_batch_make(
        out: *mut *mut shf_batch,
        samples: *const *mut shf_sample,
        count: usize,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Adds a reference and returns its argument. Threads: any. Since: 0.1
    pub fn shf_batch_ref(batch: *mut shf_batch) -> *mut shf_batch;
    /// Drops a reference; the last one gives the memory of the columns back, to be used again. Threads:
    /// any. Since: 0.1
    pub fn shf_batch_unref(batch: *mut shf_batch);
    /// The number of rows. Since: 0.1
    pub fn shf_batch_row_count(batch: *const shf_batch) -> usize;
    /// The number of columns, "__key__" and "__url__" included. Since: 0.1
    pub fn shf_batch_column_count(batch: *const shf_batch) -> usize;
    /// Column number `index`: its name and its numbers. name or array may be NULL.
    /// Owns: all that the outputs point to is borrowed from the batch.
    /// Errors: NOT_FOUND past the last column. Since: 0.1
    pub fn shf_batch_column(
        batch: *const shf_batch,
        index: usize,
        name: *mut shf_bytes,
        array: *mut shf_array,
    ) -> i32;
    /// The number of the column called `name` (`name_size` bytes or SHF_STRLEN). Errors: NOT_FOUND.
    /// Since: 0.1
    pub fn shf_batch_find(
        batch: *const shf_batch,
        name: *const core::ffi::c_char,
        name_size: usize,
        index: *mut usize,
    ) -> i32;
    /// The key of a row. Owns: borrowed from the batch. Errors: NOT_FOUND. Since: 0.1
    pub fn shf_batch_key(batch: *const shf_batch, row: usize, out: *mut shf_bytes) -> i32;
    /// A column as DLPack (ABI 1.0): *out is a DLManagedTensor, or, when `versioned` is not 0, a
    /// DLManagedTensorVersioned. For a ragged column it has the elements of all rows. A DLManagedTensor
    /// has bools as uint8. The batch lives until the deleter is called.
    /// Owns: *out is owned, release with its deleter. Errors: NOT_FOUND, NOMEM. Since: 0.1
    pub fn shf_batch_dlpack(
        batch: *mut shf_batch,
        index: usize,
        versioned: i32,
        out: *mut *mut ::core::ffi::c_void,
        error: *mut shf_error,
    ) -> i32;
    /// The batch as a record batch of the Arrow C data interface: fills the caller's struct ArrowArray
    /// and struct ArrowSchema. Even columns are numbers or fixed-size lists (with the extension type
    /// arrow.fixed_shape_tensor), ragged ones large lists; bytes are large_binary, text is large_utf8, a
    /// bool is uint8, a complex number two floats. Shapes of rows are a column "NAME.shape".
    /// Owns: both are owned, release with their release callbacks. Errors: NOMEM. Since: 0.1
    pub fn shf_batch_arrow(
        batch: *mut shf_batch,
        array: *mut ::core::ffi::c_void,
        schema: *mut ::core::ffi::c_void,
        error: *mut shf_error,
    ) -> i32;
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_archive {
    _unused: [u8; 0],
}
extern "C" {
    /// Opens the archive at `url` (a path, file:, "-", pipe:, http:; not expanded, but ~/ is the folder
    /// HOME) and lists its members. What cannot be read at any offset, such as a pipe, is taken into
    /// memory. `options` may be NULL.
    /// Owns: *out is owned, release with shf_archive_close.
    /// Errors: FORMAT, TRUNCATED, INTEGRITY, AMBIGUOUS, UNSUPPORTED (the URL, or the file as a whole;
    /// what is wrong with one member is reported when it is read), CHANGED, LIMIT, IO, CHILD, USAGE,
    /// NET_TRANSIENT, NET_PERMANENT, THROTTLED, AUTH, TLS, TIMEOUT, CANCELLED, NOMEM. Since: 0.1
    pub fn shf_archive_open(
        out: *mut *mut shf_archive,
        url: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Opens the archive in the `size` bytes at `data`, which must not change until it is closed.
    /// `options` may be NULL.
    /// Owns: *out is owned, release with shf_archive_close.
    /// Errors: FORMAT, TRUNCATED, INTEGRITY, AMBIGUOUS, UNSUPPORTED, LIMIT (the archive as a whole);
    /// USAGE, CANCELLED, TIMEOUT, NOMEM. Since: 0.1
    pub fn shf_archive_open_memory(
        out: *mut *mut shf_archive,
        data: *const ::core::ffi::c_void,
        size: usize,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Frees an archive. Must not run at the same time as another call on it. Since: 0.1
    pub fn shf_archive_close(archive: *mut shf_archive);
    /// The number of members; positions are below it. Since: 0.1
    pub fn shf_archive_member_count(archive: *const shf_archive) -> u64;
    /// The position of the member called `name` (`name_size` bytes or SHF_STRLEN, compared byte for
    /// byte).
    /// Errors: NOT_FOUND; AMBIGUOUS when several members have the name (the message says where); NOMEM.
    /// Since: 0.1
    pub fn shf_archive_find(
        archive: *const shf_archive,
        name: *const core::ffi::c_char,
        name_size: usize,
        position: *mut u64,
        error: *mut shf_error,
    ) -> i32;
    /// The name of a member, exactly as the archive has it.
    /// Owns: *out is borrowed from the archive. Errors: NOT_FOUND past the last one. Since: 0.1
    pub fn shf_archive_name(archive: *const shf_archive, position: u64, out: *mut shf_bytes)
        -> i32;
}
/// bytes
pub const SHF_MEMBER_SIZE: i32 = 0;
/// bytes of its data in the (decompressed) archive
pub const SHF_MEMBER_STORED: i32 = 1;
/// 0 stored, 8 deflate, 12 bzip2, 14 LZMA, 93 zstd, 95 xz
pub const SHF_MEMBER_METHOD: i32 = 2;
/// as the archive has it; UINT64_MAX: it has none, as a tar
pub const SHF_MEMBER_CRC32: i32 = 3;
/// of its first header in the (decompressed) archive; or its number
pub const SHF_MEMBER_OFFSET: i32 = 4;
/// one of SHF_KIND_*
pub const SHF_MEMBER_KIND: i32 = 5;
/// permission bits, 07777
pub const SHF_MEMBER_MODE: i32 = 6;
/// number of the owner
pub const SHF_MEMBER_UID: i32 = 7;
/// number of the group
pub const SHF_MEMBER_GID: i32 = 8;
/// nanoseconds since 1970 (an int64_t); a DOS time is taken for UTC
pub const SHF_MEMBER_MTIME: i32 = 9;
/// of members in sequence, see there
pub const SHF_MEMBER_VERIFIED: i32 = 10;
/// text: what a link in a tar points at; in a ZIP that is its data
pub const SHF_MEMBER_LINK: i32 = 32;
/// text: name of the owner
pub const SHF_MEMBER_USER: i32 = 33;
/// text: name of the group
pub const SHF_MEMBER_GROUP: i32 = 34;
pub const SHF_KIND_FILE: i32 = 0;
pub const SHF_KIND_DIRECTORY: i32 = 1;
pub const SHF_KIND_HARD_LINK: i32 = 2;
pub const SHF_KIND_SYMBOLIC_LINK: i32 = 3;
/// device, FIFO, volume label
pub const SHF_KIND_SPECIAL: i32 = 4;
/// reading it is UNSUPPORTED, as are the next two
pub const SHF_KIND_SPARSE: i32 = 5;
/// a piece of a member that began on another volume
pub const SHF_KIND_MULTI_VOLUME: i32 = 6;
pub const SHF_KIND_UNKNOWN: i32 = 7;
extern "C" {
    /// Property `what` (SHF_MEMBER_SIZE to SHF_MEMBER_KIND) of a member; UINT64_MAX for any other value
    /// and past the last member. Since: 0.1
    pub fn shf_archive_info(archive: *const shf_archive, position: u64, what: i32) -> u64;
    /// Reads a member, SHF_MEMBER_SIZE bytes, into `buffer`, which has room for `capacity` bytes. When
    /// the call fails the contents of `buffer` are undefined. What the archive says of the member is
    /// checked before `capacity`: with a capacity of 0 the error is USAGE when the member may be read,
    /// and else the reason why not. So a program can ask before it allocates a size that an archive only
    /// claims.
    /// Errors: USAGE (no such position, buffer too small); FORMAT, INTEGRITY, AMBIGUOUS, UNSUPPORTED,
    /// LIMIT (this member); TRUNCATED, CHANGED (the file is not the one that was opened); IO, NOMEM.
    /// Since: 0.1
    pub fn shf_archive_read(
        archive: *const shf_archive,
        position: u64,
        buffer: *mut ::core::ffi::c_void,
        capacity: usize,
        error: *mut shf_error,
    ) -> i32;
    /// Reads `count` members, in the order of the file and with several threads (option "threads")
    /// where that pays. buffers[i] has room for SHF_MEMBER_SIZE of positions[i]. All are tried: on
    /// failure the error is that of the first bad one in the list.
    /// Errors: USAGE (no such position); FORMAT, INTEGRITY, AMBIGUOUS, UNSUPPORTED, LIMIT (a member);
    /// TRUNCATED, CHANGED (the file is not the one that was opened); IO, NOMEM. Since: 0.1
    pub fn shf_archive_read_many(
        archive: *const shf_archive,
        positions: *const u64,
        count: usize,
        buffers: *const *mut ::core::ffi::c_void,
        error: *mut shf_error,
    ) -> i32;
    /// The bytes of a member that are in memory already: of a stored member of an archive in memory or
    /// of a local file with map=true, or of any member of a compressed tar. They are checked as by
    /// shf_archive_read.
    /// Owns: *out is borrowed from the archive.
    /// Errors: UNSUPPORTED when they are not in memory, or this member cannot be read; USAGE (no such
    /// position); FORMAT, INTEGRITY, AMBIGUOUS, LIMIT (this member); with map=true CHANGED, TRUNCATED
    /// and IO; NOMEM. Since: 0.1
    pub fn shf_archive_view(
        archive: *const shf_archive,
        position: u64,
        out: *mut shf_bytes,
        error: *mut shf_error,
    ) -> i32;
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_members {
    _unused: [u8; 0],
}
extern "C" {
    /// Opens the file at `url` (a path, file:, "-", pipe:, http:; not expanded, but ~/ is the folder
    /// HOME). Faults in its bytes are reported by shf_members_next. `options` may be NULL; they are
    /// copied.
    /// Owns: *out is owned, release with shf_members_close.
    /// Errors: IO, USAGE (URL, refused pipe, standard input is in use), UNSUPPORTED (scheme of the
    /// URL), NET_TRANSIENT, NET_PERMANENT, THROTTLED, AUTH, TLS, CHANGED, TIMEOUT, CANCELLED, NOMEM.
    /// Since: 0.1
    pub fn shf_members_open(
        out: *mut *mut shf_members,
        url: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Moves to the next member, past what was not read of the one before. `name` may be NULL.
    /// Owns: *name is borrowed until the next call of this function.
    /// Errors: SHF_END after the last member, when the end of the file is proven; FORMAT, TRUNCATED,
    /// INTEGRITY, AMBIGUOUS, UNSUPPORTED (the file, or headers of members), CHANGED, LIMIT, IO, CHILD;
    /// TIMEOUT (call again), CANCELLED, FORKED, USAGE, NOMEM. Since: 0.1
    pub fn shf_members_next(
        members: *mut shf_members,
        name: *mut shf_bytes,
        error: *mut shf_error,
    ) -> i32;
    /// Property `what` of the current member: SHF_MEMBER_SIZE to SHF_MEMBER_MTIME. UINT64_MAX when the
    /// archive does not say, for any other value, and when there is no current member.
    /// SHF_MEMBER_VERIFIED needs none: of a compressed tar, how many bytes from the start of the
    /// decompressed one are covered by checks that have held so far, or have no check; UINT64_MAX for
    /// what is not compressed as a whole. Since: 0.1
    pub fn shf_members_info(members: *const shf_members, what: i32) -> u64;
    /// A text about the current member, SHF_MEMBER_LINK, SHF_MEMBER_USER or SHF_MEMBER_GROUP, bytes as
    /// the archive has them.
    /// Owns: *out is borrowed until the next call of shf_members_next.
    /// Errors: NOT_FOUND when it has none, and when there is no current member. Since: 0.1
    pub fn shf_members_text(members: *const shf_members, what: i32, out: *mut shf_bytes) -> i32;
    /// Moves the next bytes of the current member to `buffer`, which has room for `capacity` of them, at
    /// least one. *size is how many they are, which may be fewer than fit. It is 0 at the end of the
    /// member, when all checks that the archive has for it have held: before that, bytes may be wrong.
    /// The last bytes of a ZIP entry are delivered after its checks have held. A compressed entry of at
    /// most 1 MiB is verified before its first byte is delivered.
    /// Errors: FORMAT, TRUNCATED, INTEGRITY, AMBIGUOUS, UNSUPPORTED (also the data of SHF_KIND_SPARSE
    /// and the two kinds after it, which shf_members_next passes over), CHANGED, LIMIT, IO, CHILD;
    /// TIMEOUT (call again), CANCELLED, FORKED, NOMEM; USAGE (no current member, no room). Since: 0.1
    pub fn shf_members_read(
        members: *mut shf_members,
        buffer: *mut ::core::ffi::c_void,
        capacity: usize,
        size: *mut usize,
        error: *mut shf_error,
    ) -> i32;
    /// Makes waiting and future calls return CANCELLED, within 100 ms. Does not free.
    /// Threads: any. Since: 0.1
    pub fn shf_members_cancel(members: *mut shf_members);
    /// Ends the sequence and its child processes, and frees its memory. Must not run at the same time as
    /// another call on it. Since: 0.1
    pub fn shf_members_close(members: *mut shf_members);
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_dataset {
    _unused: [u8; 0],
}
extern "C" {
    /// Opens a dataset over the shards that the URLs name, all of which must be files, or objects that a
    /// server gives in ranges. Indexes that are missing or of another version of their shard are made,
    /// as the option "index" says; those of remote shards are in "index_dir" or in the folder of caches.
    /// The log function gets SHF_LOG_INFO for each shard that is walked and SHF_LOG_WARNING for each
    /// index that is not used. `options` may be NULL.
    /// Owns: *out is owned, release with shf_dataset_close.
    /// Errors: USAGE (option, URL), IO (list file, no match); a bad shard; with index=require NOT_FOUND,
    /// CHANGED, FORMAT and INTEGRITY of an index, and USAGE when it was made under options that accept
    /// more than these do; CANCELLED, TIMEOUT, NOMEM.
    /// Since: 0.1
    pub fn shf_dataset_open(
        out: *mut *mut shf_dataset,
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Frees a dataset. Must not run at the same time as another call on it. Samples stay. Since: 0.1
    pub fn shf_dataset_close(dataset: *mut shf_dataset);
    /// The number of samples. Since: 0.1
    pub fn shf_dataset_sample_count(dataset: *const shf_dataset) -> u64;
    /// Reads sample `number`. Its epoch and lane (shf_sample_info) are 0.
    /// With the option "fields" the sample has only the fields that the option names, perhaps none.
    /// Owns: *out is owned, release with shf_sample_unref.
    /// Errors: USAGE (no such number); a bad shard, with CHANGED and TRUNCATED when the file is not the
    /// one that was opened; NOMEM. Since: 0.1
    pub fn shf_dataset_get(
        dataset: *const shf_dataset,
        number: u64,
        out: *mut *mut shf_sample,
        error: *mut shf_error,
    ) -> i32;
    /// Reads `count` samples, in the order of the files and with several threads (option "threads")
    /// where that pays. out[i] becomes sample numbers[i].
    /// Owns: each out[i] is owned, release with shf_sample_unref. On failure all are NULL, and the error
    /// is that of the first bad one in the list.
    /// Errors: USAGE (no such number); a bad shard; NOMEM. Since: 0.1
    pub fn shf_dataset_get_many(
        dataset: *const shf_dataset,
        numbers: *const u64,
        count: usize,
        out: *mut *mut shf_sample,
        error: *mut shf_error,
    ) -> i32;
    /// Reads `count` samples, at least one, and decodes them into a batch, as shf_batch_make does with
    /// `options`; NULL: with those of the dataset. Samples by number have no epoch: random choices are
    /// keyed by the option "epoch", so that another number of it gives other choices.
    /// Owns: *out is owned, release with shf_batch_unref.
    /// Errors: USAGE (no such number, no number, bad option "decode"); a bad shard; FORMAT, UNSUPPORTED,
    /// LIMIT of a field that cannot be decoded; NOMEM. Since: 0.1
    pub fn shf_dataset_get_batch(
        dataset: *const shf_dataset,
        numbers: *const u64,
        count: usize,
        options: *const shf_options,
        out: *mut *mut shf_batch,
        error: *mut shf_error,
    ) -> i32;
    /// The number of the sample with this key (`key_size` bytes or SHF_STRLEN). The first call makes a
    /// table of all keys: 8 to 22 bytes for each.
    /// Errors: NOT_FOUND; AMBIGUOUS when several samples have the key (the message says where); LIMIT
    /// when the table takes more than the option "memory"; NOMEM. Since: 0.1
    pub fn shf_dataset_find(
        dataset: *const shf_dataset,
        key: *const core::ffi::c_char,
        key_size: usize,
        number: *mut u64,
        error: *mut shf_error,
    ) -> i32;
    /// Which shard of the expanded list sample `number` is in, and the number of that shard's first
    /// sample. Either output may be NULL. Errors: NOT_FOUND past the last sample. Since: 0.1
    pub fn shf_dataset_shard(
        dataset: *const shf_dataset,
        number: u64,
        shard: *mut u64,
        first: *mut u64,
    ) -> i32;
    /// Makes the index of the tar at `url` (not expanded, but ~/ is the folder HOME, as in the paths
    /// below and the option "index_dir") and saves it where a dataset looks for it.
    /// Errors: USAGE (option, URL); a bad shard; UNSUPPORTED for what is no tar; IO,
    /// NOSPACE when the index cannot be saved; CANCELLED, TIMEOUT, NOMEM. Since: 0.1
    pub fn shf_index_build(
        url: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
}
/// size before offset; DALI reads the two below. Read: also rocAL's
pub const SHF_INDEX_DALI_1_0: i32 = 0;
/// without names of members
pub const SHF_INDEX_DALI_1_1: i32 = 1;
/// what wds2idx writes
pub const SHF_INDEX_DALI_1_2: i32 = 2;
/// SHARD.tar.idx of Megatron-Energon
pub const SHF_INDEX_ENERGON: i32 = 3;
/// JSON list of shards of wids
pub const SHF_INDEX_WIDS: i32 = 4;
// Index files of other tools.
extern "C" {
    /// Writes the index that another tool needs into the file `path`, which appears whole or not at
    /// all. The URLs are expanded; DALI and Energon have one index for each shard, wids one for all. A
    /// shard is a plain tar; for wids also a ZIP file. The index is the one that the tool's own indexer
    /// would write, but is right for GNU long names too. In shards with hidden files, files without a
    /// dot, or names between __ and __ it has the samples that the tool sees, not those of a dataset. An
    /// index of wids names shards in its own folder by relative paths, and has no md5sum.
    /// Errors: USAGE (option, URL, another number of shards than one, no file); a bad shard; UNSUPPORTED
    /// for names that the format cannot hold (DALI: blanks, nothing after the dot; wids: not UTF-8, one
    /// of ?#;), for a compressed tar, and for a ZIP file; IO, NOSPACE when the file cannot be written;
    /// CANCELLED, TIMEOUT, NOMEM. Since: 0.1
    pub fn shf_index_export(
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        format: i32,
        path: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Takes over the index of another tool in the file `path`: makes the index of the tar at `url`
    /// (expanded; one shard) as shf_index_build does, and saves it when the other index says the same of
    /// every sample. The imported file is only compared, never trusted. It may have the samples as a
    /// dataset has them, or as its own tool sees them. The version of a DALI file is read from the file,
    /// regardless of which of the three `format` names. An index of wids names its shards: `url` is
    /// NULL, and the shards are local files, relative to the folder of the index. When one of them is
    /// refused, the indexes of those before it are already saved.
    /// Errors: USAGE (option, URL, a pipe in the index); a bad shard; FORMAT when the index is
    /// malformed, or says something else of a sample than the shard does; CHANGED when it is of another
    /// number of samples or another size; UNSUPPORTED (version, a compressed tar, shards on the
    /// network); LIMIT (a file above 1 GiB); IO, NOSPACE when the index cannot be saved; CANCELLED,
    /// TIMEOUT, NOMEM. Since: 0.1
    pub fn shf_index_import(
        url: *const core::ffi::c_char,
        format: i32,
        path: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_writer {
    _unused: [u8; 0],
}
extern "C" {
    /// Opens a writer. `pattern` is a path, a file:// URL, "-" for standard output, pipe:COMMAND, or the
    /// URL of an object in a store, with at most one number of the shard, %d or %0Nd, and %% for a
    /// percent sign; it is needed where "max_samples" or "max_bytes" is set. It never reaches printf.
    /// A path that begins with ~/ is in the folder HOME.
    /// NULL: shf_options_set_shard_name has set what names the shards. Creates nothing.
    /// Owns: *out, release with shf_writer_close. Errors: USAGE. Since: 0.1
    pub fn shf_writer_open(
        out: *mut *mut shf_writer,
        pattern: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Begins a sample with this key of `size` bytes (SHF_STRLEN: up to its NUL). A sample that was not
    /// ended is dropped. Names that readers would take for something else are refused: an empty key, a
    /// dot in its last component, NUL, "..", a leading slash (see the option "unsafe_names").
    /// Errors: USAGE. Since: 0.1
    pub fn shf_writer_begin(
        writer: *mut shf_writer,
        key: *const core::ffi::c_char,
        size: usize,
        error: *mut shf_error,
    ) -> i32;
    /// Adds a field of `size` bytes, which are copied. `name` has `name_size` bytes (or SHF_STRLEN);
    /// `data` may be NULL when size is 0. Fields lie in the shard in the order in which they were added.
    /// Errors: USAGE, NOMEM. Since: 0.1
    pub fn shf_writer_field(
        writer: *mut shf_writer,
        name: *const core::ffi::c_char,
        name_size: usize,
        data: *const ::core::ffi::c_void,
        size: usize,
        error: *mut shf_error,
    ) -> i32;
    /// The same without a copy: the bytes are borrowed from the caller until shf_writer_end returns or
    /// the sample is dropped, and must stay as they are. Large ones are written from where they lie.
    /// Errors: USAGE, NOMEM. Since: 0.1
    pub fn shf_writer_field_borrowed(
        writer: *mut shf_writer,
        name: *const core::ffi::c_char,
        name_size: usize,
        data: *const ::core::ffi::c_void,
        size: usize,
        error: *mut shf_error,
    ) -> i32;
    /// Adds the bytes of the regular file at `path` as a field. A file of more than 1 MiB (64 MiB for
    /// a ZIP file, where it is then stored) is read by shf_writer_end. CHANGED: it was written to
    /// meanwhile. Errors: USAGE, IO, CHANGED, NOMEM. Since: 0.1
    pub fn shf_writer_field_file(
        writer: *mut shf_writer,
        name: *const core::ffi::c_char,
        name_size: usize,
        path: *const core::ffi::c_char,
        error: *mut shf_error,
    ) -> i32;
    /// Adds all bytes of what is at `url` as a field, at most as many as the option "memory" says. A URL
    /// is what a shard may be at (see "URLs"), not expanded: http:, s3:, pipe:, "-", or what the program
    /// serves. Errors: USAGE, LIMIT, IO, CHILD, CHANGED, NET_TRANSIENT, NET_PERMANENT, THROTTLED, AUTH,
    /// TLS, NOMEM, CANCELLED. Since: 0.1
    pub fn shf_writer_field_url(
        writer: *mut shf_writer,
        name: *const core::ffi::c_char,
        name_size: usize,
        url: *const core::ffi::c_char,
        error: *mut shf_error,
    ) -> i32;
    /// Writes the sample that was begun. Ends the shard before it, when the sample does not fit into it.
    /// Errors: USAGE (no field, a key that the shard has), CHANGED, IO, NOSPACE, NOMEM, CANCELLED; CHILD
    /// of a command; of a store AUTH, TLS, NET_TRANSIENT, NET_PERMANENT, THROTTLED, LIMIT. Since: 0.1
    pub fn shf_writer_end(writer: *mut shf_writer, error: *mut shf_error) -> i32;
    /// Writes a sample of a stream, block or data set, with all of its fields, as it is.
    /// Errors: as shf_writer_begin, shf_writer_field and shf_writer_end. Since: 0.1
    pub fn shf_writer_write(
        writer: *mut shf_writer,
        sample: *const shf_sample,
        error: *mut shf_error,
    ) -> i32;
    /// Ends the shard that is being written, if there is one, so that the next sample begins another.
    /// It is published by a thread of the writer: shf_writer_shards says when.
    /// Errors: as shf_writer_finish, of a shard before it. Since: 0.1
    pub fn shf_writer_next_shard(writer: *mut shf_writer, error: *mut shf_error) -> i32;
    /// Hands what was written so far to the system, and with `durable` 1 to the disk: after a crash the
    /// samples are in the ".partial" file, whole, and all shards that were ended are published. A
    /// compressed shard gets a piece that ends here. Stores and commands keep nothing of a shard that is
    /// not ended: there it holds for those that were ended alone (shf_writer_next_shard before it).
    /// Errors: as shf_writer_finish. Since: 0.1
    pub fn shf_writer_flush(writer: *mut shf_writer, durable: i32, error: *mut shf_error) -> i32;
    /// Ends the last shard, and returns when all shards are published. A sample that was not ended is
    /// dropped. The writer can then only be asked for its shards, and closed. After an error of the
    /// writer it publishes the shards that were ended before, and returns that error.
    /// Errors: IO (os_error EEXIST: a shard of that name appeared meanwhile), NOSPACE, NOMEM, CANCELLED;
    /// CHILD of a command; of a store AUTH, TLS, NET_TRANSIENT, NET_PERMANENT, THROTTLED, INTEGRITY (it
    /// has another object than was written). Since: 0.1
    pub fn shf_writer_finish(writer: *mut shf_writer, error: *mut shf_error) -> i32;
    /// The shards that are published so far. A program that does something with each of them asks after
    /// its calls on the writer; those of shf_writer_finish are the last ones. Since: 0.1
    pub fn shf_writer_shards(writer: *mut shf_writer) -> u64;
}
/// in it
pub const SHF_SHARD_SAMPLES: i32 = 0;
/// of its file
pub const SHF_SHARD_BYTES: i32 = 1;
/// of all of its fields, before compression, bytes
pub const SHF_SHARD_PAYLOAD: i32 = 2;
/// its name, by the pattern
pub const SHF_SHARD_URL: i32 = 0;
/// XXH3-128 of its file, in 32 hexadecimal digits, as xxh128sum
pub const SHF_SHARD_DIGEST: i32 = 1;
/// path, or URL, of its index
pub const SHF_SHARD_INDEX: i32 = 2;
/// for shf_publish_prepared, with the option "prepare"
pub const SHF_SHARD_TOKEN: i32 = 3;
extern "C" {
    /// Number `what` (SHF_SHARD_SAMPLES, _BYTES, _PAYLOAD) of published shard `index`, which counts from
    /// 0. UINT64_MAX for an unknown one. Since: 0.1
    pub fn shf_writer_shard_info(writer: *mut shf_writer, index: u64, what: i32) -> u64;
    /// Text `what` (SHF_SHARD_URL, _DIGEST, _INDEX, _TOKEN) of published shard `index`.
    /// Owns: *out is borrowed from the writer until its next call. Errors: NOT_FOUND (no such shard, or
    /// it has no index), USAGE. Since: 0.1
    pub fn shf_writer_shard_text(
        writer: *mut shf_writer,
        index: u64,
        what: i32,
        out: *mut shf_bytes,
    ) -> i32;
    /// Publishes the shard of a token, then its index; that of `options` is what its writer had: how to
    /// reach the place, "overwrite" and "durable". A shard that was published before is left as it is,
    /// so that this can be called again after an error. Any thread; several at once are faster.
    /// Errors: USAGE (no token), IO (os_error EEXIST: another shard has the name; the file was
    /// discarded), NOSPACE, NOMEM, TIMEOUT, CANCELLED; of a store AUTH, TLS, NET_TRANSIENT,
    /// NET_PERMANENT (also: the upload was discarded), THROTTLED, INTEGRITY. Since: 0.1
    pub fn shf_publish_prepared(
        token: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Discards the shard of a token. One that was published, or discarded, is left as it is.
    /// Errors: as shf_publish_prepared, without those of a name that is taken. Since: 0.1
    pub fn shf_discard_prepared(
        token: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Discards what writers have left in a store that died: all uploads and prepared shards that have
    /// not appeared, also those of writers that are at work, with names of `pattern`, a URL in which %d
    /// and %0Nd stand for digits, and their indexes. Blocks of az:// URLs stay: they can only be left
    /// for Azure to remove, after a week. Paths are left as they are.
    /// Errors: as shf_discard_prepared; LIMIT: more than "max_shards". Since: 0.1
    pub fn shf_discard_left(
        pattern: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Ends what the writer waits for: that call, and all later ones, return CANCELLED. Any thread,
    /// before shf_writer_close. Since: 0.1
    pub fn shf_writer_cancel(writer: *mut shf_writer);
    /// Closes the writer and discards what is not published: of a shard that is on its way to its name,
    /// either it is published or nothing is. In a forked child it leaves the parent's files as they are.
    /// Since: 0.1
    pub fn shf_writer_close(writer: *mut shf_writer);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct shf_cache_report {
    _unused: [u8; 0],
}
/// text: without secrets; empty where nothing in the folder says it
pub const SHF_CACHE_URL: i32 = 0;
/// text: what the server calls this version, such as an ETag
pub const SHF_CACHE_VERSION: i32 = 1;
/// number: bytes of the shard
pub const SHF_CACHE_SIZE: i32 = 2;
/// number: bytes of it that are in the cache
pub const SHF_CACHE_DATA: i32 = 3;
/// number: bytes of its files
pub const SHF_CACHE_DISK: i32 = 4;
/// number: nanoseconds since it was used
pub const SHF_CACHE_AGE: i32 = 5;
/// number: files that shf_cache_verify found damaged, and removed
pub const SHF_CACHE_FAULTS: i32 = 6;
// What a row says.
extern "C" {
    /// Says what is there. Owns: *out, release with shf_cache_report_free.
    /// Errors: USAGE (option, no folder, a folder that is not this user's alone); NOT_FOUND (no cache
    /// there); IO; CANCELLED, TIMEOUT, NOMEM. Since: 0.1
    pub fn shf_cache_list(
        out: *mut *mut shf_cache_report,
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        older_than: u64,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Reads all of it, compares checksums, and removes blocks that are damaged. They are fetched again
    /// when they are wanted. Owns and Errors: as shf_cache_list. Since: 0.1
    pub fn shf_cache_verify(
        out: *mut *mut shf_cache_report,
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        older_than: u64,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Removes it, and says what was removed; without URLs index files of the same age too. Readers that
    /// have it open continue. Owns and Errors: as shf_cache_list. Since: 0.1
    pub fn shf_cache_clear(
        out: *mut *mut shf_cache_report,
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        older_than: u64,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Since: 0.1
    pub fn shf_cache_report_free(report: *mut shf_cache_report);
    /// The number of rows. Since: 0.1
    pub fn shf_cache_count(report: *const shf_cache_report) -> usize;
    /// A text of row `number`. Owns: borrowed from the report. Errors: NOT_FOUND. Since: 0.1
    pub fn shf_cache_text(
        report: *const shf_cache_report,
        number: usize,
        what: i32,
        out: *mut shf_bytes,
    ) -> i32;
    /// A number of row `number`; UINT64_MAX when there is no such row or number. Since: 0.1
    pub fn shf_cache_number(report: *const shf_cache_report, number: usize, what: i32) -> u64;
}
#[repr(C)]
#[derive(Debug)]
pub struct shf_feed {
    _unused: [u8; 0],
}
extern "C" {
    /// Feeds the samples of the shards that the URLs name or, with the option "batch" (any number but
    /// 0), rows that are decoded as the option "decode" says. Which samples come when is for the
    /// consumers to say: the server obeys their options of the groups "order", "consumer", "selection",
    /// "errors" and "leniency", and its own of the others. `address` is "tcp://HOST:PORT"; HOST may be
    /// *, and PORT 0 for any. Opens no shard. `options` may be NULL; they are copied.
    /// Owns: *out is owned, release with shf_feed_close.
    /// Errors: USAGE (option, URL, address), IO (address in use, list file), UNSUPPORTED (this build or
    /// machine has no ZeroMQ), LIMIT, TIMEOUT, CANCELLED, NOMEM. Since: 0.1
    pub fn shf_feed_open(
        out: *mut *mut shf_feed,
        urls: *const *const core::ffi::c_char,
        url_count: usize,
        address: *const core::ffi::c_char,
        options: *const shf_options,
        error: *mut shf_error,
    ) -> i32;
    /// Makes a pair of keys (CURVE of ZeroMQ, in Z85), with which a feed is encrypted: the secret one is
    /// the option "feed_secret_key" of its servers, the public one "feed_server_key" of the streams.
    /// `public_key` and `secret_key` get 41 bytes each, with the NUL.
    /// Errors: USAGE (NULL), UNSUPPORTED (no ZeroMQ, or one without encryption). Since: 0.1
    pub fn shf_feed_make_keys(
        public_key: *mut core::ffi::c_char,
        secret_key: *mut core::ffi::c_char,
        error: *mut shf_error,
    ) -> i32;
    /// Serves, until shf_feed_drain or shf_feed_stop is called. Once.
    /// Errors: USAGE, IO, NOMEM. Since: 0.1
    pub fn shf_feed_run(feed: *mut shf_feed, error: *mut shf_error) -> i32;
    /// Answers GET over HTTP at `address`, "HOST:PORT", from now on until the feed is closed: /metrics
    /// has its numbers, and the counters of its lanes (SHF_STAT_*) added up, in the text format 0.0.4 of
    /// Prometheus; /healthz is 200 while shf_feed_run serves, and 503 before that and when it drains.
    /// HOST is an IP address or a name of this machine, * for all addresses, and left out (":9100")
    /// loopback; PORT 0 is any. Anybody who can connect may read it. Once, before shf_feed_run.
    /// Errors: USAGE (address, second call), IO (address in use), UNSUPPORTED (this build or machine has
    /// no libmicrohttpd), LIMIT, NOMEM. Since: 0.1
    pub fn shf_feed_http(
        feed: *mut shf_feed,
        address: *const core::ffi::c_char,
        error: *mut shf_error,
    ) -> i32;
    /// Where that is, "http://HOST:PORT", with the port that was chosen; NULL without shf_feed_http.
    /// Owns: borrowed from the feed. Since: 0.1
    pub fn shf_feed_http_address(feed: *const shf_feed) -> *const core::ffi::c_char;
    /// Where consumers find it on this machine, "feed://HOST:PORT", with the port that was chosen.
    /// Owns: borrowed from the feed. NULL for NULL. Since: 0.1
    pub fn shf_feed_address(feed: *const shf_feed) -> *const core::ffi::c_char;
    /// Ends shf_feed_run once the consumers have taken their lanes to other servers, after 10 seconds at
    /// most. Any thread, and signal handlers. Since: 0.1
    pub fn shf_feed_drain(feed: *mut shf_feed);
    /// Ends shf_feed_run at once. Any thread, and signal handlers. Since: 0.1
    pub fn shf_feed_stop(feed: *mut shf_feed);
}
/// that are connected now
pub const SHF_FEED_CONSUMERS: i32 = 0;
/// that are read for them now
pub const SHF_FEED_LANES: i32 = 1;
/// that were sent so far
pub const SHF_FEED_SAMPLES: i32 = 2;
/// of the messages with them, as they were sent: with feed_compression
/// those that are left
pub const SHF_FEED_BYTES: i32 = 3;
/// messages that may be sent now, because consumers asked for them
pub const SHF_FEED_CREDIT: i32 = 4;
/// messages of strangers and of consumers that were refused
pub const SHF_FEED_REFUSED: i32 = 5;
/// time that lanes waited for their consumers to ask for more
pub const SHF_FEED_CREDIT_WAIT_NS: i32 = 6;
extern "C" {
    /// A number of the feed; UINT64_MAX when there is no such number. Any thread. Since: 0.1
    pub fn shf_feed_count(feed: *const shf_feed, what: i32) -> u64;
    /// Releases the feed; shf_feed_run must have ended. NULL does nothing. Since: 0.1
    pub fn shf_feed_close(feed: *mut shf_feed);
}
