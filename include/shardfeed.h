/* shardfeed.h - feed machine-learning training from tar and ZIP files
 *
 * This file is the manual of libshardfeed. It compiles alone as C99, C11, C++17 and C++20, and
 * parses with cffi and bindgen once the lines that start with '#' and the two __cplusplus blocks
 * are dropped.
 *
 *     shf_options *options = shf_options_new();
 *     shf_options_set_all(options, "shuffle=1000,seed=1", &error);
 *
 *     const char *urls[] = {"train-{000000..000099}.tar"};
 *     shf_stream *stream;
 *     if (shf_stream_open(&stream, urls, 1, options, &error) != SHF_OK) {
 *         fprintf(stderr, "%s\n", error.message);
 *         return 1;
 *     }
 *     shf_sample *sample;
 *     int32_t rc;
 *     while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
 *         shf_bytes jpg;
 *         if (shf_sample_find(sample, "jpg", SHF_STRLEN, &jpg) == SHF_OK) use(jpg.data, jpg.size);
 *         shf_sample_unref(sample);
 *     }
 *     if (rc != SHF_END) fprintf(stderr, "%s\n", error.message);
 *     shf_stream_close(stream);
 *     shf_options_free(options);
 *
 * A SAMPLE is a key and named byte fields. The members of a tar file that follow one another and
 * share everything up to the first dot of the last path component are one sample: "a/0001.jpg"
 * and "a/0001.cls" make the sample with key "a/0001" and the fields "jpg" and "cls". Field names
 * are lower-cased (ASCII), keys are not. Keys and names are bytes, any byte but NUL.
 *
 * THE PROMISE. A stream delivers every sample of its shards that its options ask for, or it says
 * why not. The end of a shard is reported only when it is proven: end marker seen, compressed
 * trailer checked, child process ended with status 0. The same URLs and options give the same
 * samples in the same order, regardless of the number of threads.
 * In a compressed shard, a frame or block of at most 8 MiB (decompressed) that has a checksum is
 * verified before any sample of it is delivered. Samples of a larger one are delivered before its
 * checksum is reached. When that check fails, the error says how many they were; the counter
 * SHF_STAT_UNVERIFIED_SAMPLES has their number, also under on_error=skip_sample and skip_shard.
 *
 * RULES FOR ALL FUNCTIONS
 *
 * Results  int32_t: SHF_OK (0), SHF_END (1), or a negative SHF_E_* code. On failure every output
 *          is NULL or 0, and the caller's shf_error (last argument, NULL allowed) is written. It
 *          is written only on failure. After SHF_E_TIMEOUT the same call can be repeated and
 *          continues; every other error of a stream repeats. "A bad shard" in a list of errors
 *          is any of FORMAT, TRUNCATED, INTEGRITY, LIMIT, UNSUPPORTED, AMBIGUOUS, CHANGED, IO,
 *          CHILD, NET_TRANSIENT, NET_PERMANENT, THROTTLED, AUTH and TLS.
 * Owns     Outputs are either "owned, release with X" or "borrowed from X". shf_bytes live as
 *          long as the sample or block they were taken from. Handles may be released in any order:
 *          samples, blocks and batches outlive their stream. Releasing NULL is a no-op.
 * Threads  Library functions: any thread. An options object and a stream serve one thread at a
 *          time, which need not be the same each time; a second concurrent call on a stream gets
 *          SHF_E_USAGE.
 *          shf_stream_cancel and shf_stream_stat may be called from any thread at any time before
 *          shf_stream_close. Samples and blocks are read-only: any number of threads may read
 *          them. The owner of a batch may write to its numbers. No thread is started before the
 *          first shf_stream_next, shf_stream_next_block or shf_stream_next_batch.
 * Fork     A stream belongs to the process that opened it. In a forked child its calls return
 *          SHF_E_FORKED; shf_stream_close leaves the parent's stream as it is. Samples and blocks
 *          taken before the fork stay readable in parent and child, and each of the two releases
 *          its own.
 * Callbacks run only on a thread that is inside a call of this library, never on a worker thread;
 *          but see shf_source and shf_wake_fn. The log function is never called from
 *          shf_stream_close.
 * Manners  No function throws, exits, aborts, prints, installs a signal handler, or changes
 *          locale, umask, working directory or signal dispositions.
 * Input    Sizes in file headers are claims. Memory grows only with bytes that have arrived, and
 *          is bounded by the option "memory".
 * Since    Every function says in which version it appeared. Types and constants without a "Since"
 *          are in 0.1.
 */
#ifndef SHARDFEED_H
#define SHARDFEED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- Version --------------------------------------------------------------------------------- */

enum { SHF_VERSION_MAJOR = 0, SHF_VERSION_MINOR = 1, SHF_VERSION_PATCH = 0 };

/* The version of the library that runs: major * 65536 + minor * 256 + patch.
 * Since: 0.1 */
uint32_t shf_version(void);

/* The same as text, "0.1.0". Owns: static. Since: 0.1 */
const char *shf_version_string(void);

/* The library that implements a feature of this build: "zlib 1.2.13" for "gzip". NULL for a feature
 * that is missing or unknown. Names: gzip, bzip2, xz, zstd, lz4, lzip, compress, pipe, jpeg, png,
 * webp, gif, tiff, jxl, avif, audio, video, http, libarchive, feed, feed_http.
 * Owns: static. Since: 0.1 */
const char *shf_feature(const char *name);

/* ---- Errors ---------------------------------------------------------------------------------- */

enum {
    SHF_OK = 0,
    SHF_END = 1,               /* the sequence is complete                                        */
    SHF_E_FORMAT = -1,         /* the bytes break the rules of the container or codec             */
    SHF_E_TRUNCATED = -2,      /* input ended before its end was proven                           */
    SHF_E_INTEGRITY = -3,      /* a checksum over data is wrong (that of a tar header: FORMAT)    */
    SHF_E_LIMIT = -4,          /* a bound set by an option was reached; the message names it      */
    SHF_E_UNSUPPORTED = -5,    /* valid, but not implemented or switched off                      */
    SHF_E_AMBIGUOUS = -6,      /* conforming readers could see different contents                 */
    SHF_E_CHANGED = -7,        /* the file became another version during the read                 */
    SHF_E_NET_TRANSIENT = -8,  /* the retry budget was spent on a fault that may pass             */
    SHF_E_NET_PERMANENT = -9,  /* the server's answer will not change                             */
    SHF_E_THROTTLED = -10,     /* the server asks for a longer pause than allowed                 */
    SHF_E_AUTH = -11,          /* credentials missing, refused or expired                         */
    SHF_E_TLS = -12,           /* certificate or host name refused                                */
    SHF_E_IO = -13,            /* operating-system error; os_error carries errno                  */
    SHF_E_NOSPACE = -14,       /* disk full or quota reached                                      */
    SHF_E_NOMEM = -15,         /* an allocation failed                                            */
    SHF_E_CANCELLED = -16,     /* a cancel function was called, or the interrupt function said so */
    SHF_E_TIMEOUT = -17,       /* the time of the option "timeout" is over; call again            */
    SHF_E_CHILD = -18,         /* a child process failed                                          */
    SHF_E_USAGE = -19,         /* wrong call, refused URL, bad option                             */
    SHF_E_FORKED = -20,        /* the handle belongs to the parent process                        */
    SHF_E_NOT_FOUND = -21,     /* no field or member of that name                                 */
    SHF_E_INTERNAL = -22       /* a bug in this library; please report the message                */
};

/* What went wrong. The message names the shard first (its URL without secrets), then member, byte
 * offset and cause, and after "help: " what to do; it is cut to fit. Frozen: 1,024 bytes. */
typedef struct shf_error {
    int32_t code;       /* the value that the function returned                                  */
    int32_t os_error;   /* errno where the system gave one, else 0                               */
    uint64_t offset;    /* byte position in the (decompressed) shard, UINT64_MAX if there is none */
    char message[1008]; /* UTF-8 if the names in it are; no control bytes; NUL-terminated        */
} shf_error;

/* One sentence about a code: "input ended before its end was proven". Never NULL.
 * Owns: static. Since: 0.1 */
const char *shf_strerror(int32_t code);

/* The name of a code without its prefix: "TRUNCATED", "OK"; "UNKNOWN" for other values.
 * Owns: static. Since: 0.1 */
const char *shf_error_name(int32_t code);

/* Borrowed bytes. data may be NULL when size is 0. Frozen. */
typedef struct shf_bytes {
    const uint8_t *data;
    size_t size;
} shf_bytes;

/* SHF_STRLEN is the size of a name or key that ends with a NUL. */
#define SHF_STRLEN SIZE_MAX

/* ---- Options --------------------------------------------------------------------------------- */

/* Options are set by name with human values: "true", "1000", "256MiB", "30s". shf_option_describe
 * lists all of them; docs/options.md and shf_options(3) have the same table. Names never change
 * their meaning. An opener ignores the options that it does not take. */
typedef struct shf_options shf_options;

/* An options object with every option at its default, or NULL when there is no memory.
 * Owns: the result is owned, release with shf_options_free. Since: 0.1 */
shf_options *shf_options_new(void);

/* Frees an options object. Streams opened with it keep their own copy. Since: 0.1 */
void shf_options_free(shf_options *options);

/* Sets one option. The value is checked against the option's type and range.
 * Errors: USAGE for an unknown name (the message has the nearest one) or a bad value (the message
 * says what is accepted); the object is then unchanged. NOMEM. Since: 0.1 */
int32_t shf_options_set(shf_options *options, const char *name, const char *value,
                        shf_error *error);

/* Sets many options: "shuffle=1000,seed=1,decode='jpg:image/rgb8, cls:int'". Blanks around names
 * and values are ignored. A value needs quotes (' or ") when it contains a comma, starts or ends
 * with a blank, or starts with a quote; inside quotes a doubled quote is one.
 * Errors: USAGE for an unknown name, a bad value, or a text that is no such list; the object is
 * then unchanged. NOMEM. Since: 0.1 */
int32_t shf_options_set_all(shf_options *options, const char *text, shf_error *error);

/* The value of one option, as a text that shf_options_set takes and that is the same for equal
 * values: sizes in bytes ("268435456"), times in nanoseconds ("1500000000ns"), "true" or "false".
 * Owns: *out is borrowed from the object until the next call with it; it is also NUL-terminated.
 * Errors: USAGE for an unknown name (the message has the nearest one); NOMEM. Since: 0.1 */
int32_t shf_options_get(const shf_options *options, const char *name, shf_bytes *out,
                        shf_error *error);

enum {
    SHF_OPTION_NAME = 0,    /* "shuffle"                                                         */
    SHF_OPTION_TYPE = 1,    /* "bool", "count", "bytes", "duration", "choice", "text", or "secret":
                               a text that must not be shown                                     */
    SHF_OPTION_DEFAULT = 2, /* a value shf_options_set accepts                                   */
    SHF_OPTION_RANGE = 3,   /* "0..4294967295", or the choices: "raise|skip_sample|skip_shard"    */
    SHF_OPTION_OPENERS = 4, /* who takes it: some of "stream mix archive dataset writer"         */
    SHF_OPTION_HELP = 5,    /* one line                                                          */
    SHF_OPTION_GROUP = 6    /* "reading", "order", "consumer", "selection", "errors", "leniency",
                               "limits", "batches", "index", "network", "s3", "gs", "az",
                               "hf", "ais", "feed"                                            */
};

/* Describes option number `index` (0, 1, ...); `what` is one of SHF_OPTION_*. NULL when there is
 * no such option or property.
 * Owns: static. Since: 0.1 */
const char *shf_option_describe(size_t index, int32_t what);

enum { SHF_LOG_ERROR = 0, SHF_LOG_WARNING = 1, SHF_LOG_INFO = 2 };

/* Takes one message (NUL-terminated, borrowed for the call, without newline). Must not call back
 * into the stream that logs. */
typedef void (*shf_log_fn)(void *ctx, int32_t level, const char *message);

/* Sets who receives messages of `level` and more serious ones. This version sends SHF_LOG_WARNING
 * for each sample and shard that on_error skips, when the number of consumers does not divide
 * "lanes", for what a restored stream must read again, and for an index that is not used; and
 * SHF_LOG_INFO for an index that is made. Nothing is sent by default; NULL restores that. `ctx`
 * must live as long as the streams opened with these options.
 * Threads: called on the thread that is inside shf_stream_open, shf_stream_next,
 * shf_stream_next_block, shf_stream_next_batch or shf_dataset_open. Since: 0.1 */
void shf_options_set_log(shf_options *options, int32_t level, shf_log_fn log, void *ctx);

/* A sample or shard that was skipped. Borrowed for the call, with all that it points to. Later
 * versions may add members at its end. */
typedef struct shf_skip {
    const shf_error *error; /* class, byte offset and message                                    */
    shf_bytes url;          /* of the shard, without secrets; also NUL-terminated                */
    shf_bytes key;          /* of the sample; empty where no sample is known to be at fault      */
    int32_t whole_shard;    /* 1: the rest of the shard, 0: one sample                           */
} shf_skip;

/* Takes one skip. Must not call back into the stream that skips. */
typedef void (*shf_skip_fn)(void *ctx, const shf_skip *skip);

/* Sets who receives each sample and shard that is skipped under on_error=skip_sample and
 * skip_shard, in the order in which they are counted: for a list of what to repair. The one that
 * exceeds max_skips is the error of the stream. A part of a mix keeps the function of its own
 * options. NULL: nobody. `ctx` must live as long as the streams opened with these options.
 * Threads: called on the thread that is inside shf_stream_next, shf_stream_next_block or
 * shf_stream_next_batch. Since: 0.1 */
void shf_options_set_on_skip(shf_options *options, shf_skip_fn on_skip, void *ctx);

/* Returns 0 to continue the call, any other value to cancel it. */
typedef int32_t (*shf_interrupt_fn)(void *ctx);

/* Sets a function that is called about every 50 ms during a call that opens something. Such a call
 * has no handle yet by which it could be cancelled. When the function returns anything but 0,
 * shf_expand_urls, shf_stream_open, shf_plan_make, shf_archive_open, shf_archive_open_memory,
 * shf_members_open, shf_dataset_open, shf_index_*, shf_cache_list, shf_cache_verify and
 * shf_cache_clear return CANCELLED within 100 ms. A shell command that they have started is ended
 * first, as by shf_stream_close. Most programs return a flag that their signal handler sets.
 * shf_members_next, shf_members_read and calls on a writer that wait call the function too.
 *
 * The option "timeout" ends these calls too, with TIMEOUT: nothing is open then. When an interrupt
 * function is set, "timeout" does not bound shf_stream_open and shf_members_open. A program that
 * waits in short steps can then still open its stream. NULL: none. `ctx` must live as long as calls
 * are made with these options, and until members in sequence and writers that were opened with them
 * are closed.
 * Threads: called on the thread that is inside the call. It may call this library. Since: 0.1 */
void shf_options_set_interrupt(shf_options *options, shf_interrupt_fn interrupt, void *ctx);

/* Gives the name of a shard, what a pattern would make of `number`: *out is borrowed until the
 * function is called again, or the writer is closed. Returns 0, or any other value to end the call
 * with CANCELLED: its sample is not written, and the next one asks again. */
typedef int32_t (*shf_name_fn)(void *ctx, uint64_t number, shf_bytes *out);

/* Sets a function that names the shards of a writer, whose pattern is then NULL. It is called once
 * for each shard, with numbers that count from the option "first_shard": for the first one by
 * shf_writer_open, for later ones when their first sample is written. All names say the same format
 * and kind of target; a name that comes again is USAGE, regardless of "overwrite". NULL: none.
 * `ctx` must live until the writers that were opened with these options are closed.
 * Threads: called on the thread that is inside the call. It must not use the writer. Since: 0.1 */
void shf_options_set_shard_name(shf_options *options, shf_name_fn name, void *ctx);

/* Allocates `size` bytes aligned to `alignment` (a power of two, at most 4096), or returns NULL. */
typedef void *(*shf_alloc_fn)(void *ctx, size_t size, size_t alignment);

/* Frees what the matching shf_alloc_fn gave. */
typedef void (*shf_free_fn)(void *ctx, void *pointer, size_t size);

/* Sets where payload bytes live, pinned memory for example. Both functions or none (NULL, NULL).
 * `ctx` and the functions must live until the stream is closed and its last sample or batch is
 * released.
 * Threads: `alloc` is called inside shf_stream_next, shf_stream_next_block and
 * shf_stream_next_batch, `release` inside those, the release of a sample, block or batch, and
 * shf_stream_close; each stream calls them one at a time until it is closed. Neither may call back
 * into this library.
 * Errors: a NULL from `alloc` becomes NOMEM. Since: 0.1 */
void shf_options_set_allocator(shf_options *options, shf_alloc_fn alloc, shf_free_fn release,
                               void *ctx);

enum {
    SHF_SOURCE_SEQUENTIAL = 1, /* the object is read once, from front to back                     */
    SHF_SOURCE_ONE_THREAD = 2  /* read_at of the object is called by one thread at a time         */
};

/* The functions with which a program serves the URLs of a scheme. An object is what `open` gives
 * for one URL: a file, a connection, a range of memory. A URL may be opened more than once, and two
 * objects of it are independent.
 *
 * Results  0 (read_at: a count), or a negative SHF_E_* code, as the class of the error; TIMEOUT
 *          becomes IO. `error` is never NULL, and zeroed: error->message is the cause, up to its
 *          NUL; the library puts the URL before it, and takes secrets of URLs out of it.
 *          error->os_error is errno or another number of the program, and reaches the caller as it
 *          is; the other members are ignored. No function throws.
 * Threads  All functions are called by any thread: by reader threads of a stream, by threads that
 *          read members and fields, and by the thread that is inside a call of this library. `open`
 *          runs on several threads at once, and so does read_at, also on one object unless it has
 *          SHF_SOURCE_ONE_THREAD. An object is in no other call during its `size`, `version` and
 *          `close`. `release` is the last call. None may use the handle that it is called for.
 * Waiting  The library cannot interrupt a function. shf_stream_next returns TIMEOUT, or CANCELLED,
 *          in time while a reader waits in one; shf_stream_close, and calls that open and read on
 *          the caller's thread, return when it does. So it should have a time limit of its own.
 * Fork     Each process closes what it has opened. In a forked child nothing is called on an object
 *          of the parent: an archive or dataset that the child reads opens its URLs again, and
 *          fails with CHANGED if size or version are others. `release` is called by each process
 *          that frees its copy of the options and handles. */
typedef struct shf_source {
    size_t struct_size; /* sizeof(shf_source); later versions may add members at the end */
    /* Opens a URL, as given after expansion. *object is NULL and *flags 0 before: SHF_SOURCE_*. */
    int32_t (*open)(void *ctx, const char *url, void **object, uint32_t *flags, shf_error *error);
    /* Bytes of the object. *size is UINT64_MAX before: not known. Such an object is read as with
     * SHF_SOURCE_SEQUENTIAL. NULL: of no object is it known. Called once, after open. */
    int32_t (*size)(void *object, uint64_t *size, shf_error *error);
    /* Writes a text that differs for other contents at the URL, such as an ETag or a time: with its
     * NUL at most `room` (256) bytes. It guards saved states and shards that are opened again. text
     * is "" before: nothing is known. NULL: of no object. Called once, after size. */
    int32_t (*version)(void *object, char *text, size_t room, shf_error *error);
    /* Reads at most `size` bytes (at least 1) at `offset`. Returns how many, at least 1; 0 only at
     * the end. With SHF_SOURCE_SEQUENTIAL `offset` is where the last call ended. */
    int64_t (*read_at)(void *object, uint64_t offset, uint8_t *out, size_t size, shf_error *error);
    /* Frees an object that `open` gave. NULL: nothing is to be freed. */
    void (*close)(void *object);
    /* Says that `ctx` is used no more. NULL: nobody wants to know. */
    void (*release)(void *ctx);
} shf_source;

/* Serves the URLs of `scheme` by functions of the program: "db" for "db://...". Every call with
 * these options that opens shards uses them. `scheme` is in lower case (RFC 3986, 3.1). "*" is any
 * scheme without functions of its own. Functions come before what the library itself serves, as
 * http, but for paths, file:, pipe: and "-". source is copied; NULL removes the functions.
 * Owns: `ctx` belongs to the library when the call succeeds: `release` is called when the functions
 * are replaced or the options are freed, and all that was opened with them is closed. The last of
 * these calls it, on its thread.
 * Errors: USAGE (no scheme, or one that cannot be served; struct_size; open or read_at is NULL);
 * NOMEM. `release` is not called then. Since: 0.1 */
int32_t shf_options_set_source(shf_options *options, const char *scheme, const shf_source *source,
                               void *ctx, shf_error *error);

/* A text, with the key of its sample and the URL of its shard, without secrets. Frozen. */
typedef struct shf_text {
    shf_bytes text; /* UTF-8 */
    shf_bytes key;
    shf_bytes url;
} shf_text;

/* What a tokenizer puts tokens into, during one call. */
typedef struct shf_tokens shf_tokens;

/* The functions that make tokens of texts.
 *
 * Threads  `tokenize` is called by decode threads of a stream, several at once, ahead of the
 *          consumer. `release` is the last call. Neither may use the stream. No function throws.
 * Waiting  The library cannot interrupt a call; shf_stream_close returns when it does. */
typedef struct shf_tokenizer {
    size_t struct_size; /* sizeof(shf_tokenizer); later versions may add members at the end */
    /* Makes tokens of `count` (at least 1) texts, and calls shf_tokens_add for all of them in
     * their order. The tokens of a text must not depend on the other texts, whose number depends on
     * sizes of batches. What is pointed to is borrowed for the call. Returns 0, or a negative
     * SHF_E_* code (TIMEOUT becomes FORMAT) with the cause in error->message, which is zeroed
     * before, and after "; help: " what to do; error->os_error reaches the caller as it is. Where
     * a call for several texts fails with a class that on_error skips, halves of them are tried,
     * down to single texts. */
    int32_t (*tokenize)(void *ctx, const shf_text *texts, size_t count, shf_tokens *tokens,
                        shf_error *error);
    /* Says that `ctx` is used no more. NULL: nobody wants to know. */
    void (*release)(void *ctx);
} shf_tokenizer;

/* Sets what makes tokens of texts: a stream with the option "pack" then takes columns of text in
 * "decode", and packs the tokens of each as it packs an array of int32. A text that it fails with
 * is a bad sample. What it gives must be the same for a saved stream. tokenizer is copied; NULL
 * removes it. Other calls do not use it.
 * Owns: `ctx` belongs to the library when the call succeeds: `release` is called when the tokenizer
 * is replaced or the options are freed, and all that was opened with them is closed. The last of
 * these calls it, on its thread.
 * Errors: USAGE (options is NULL; struct_size; tokenize is NULL); NOMEM. `release` is not called
 * then. Since: 0.1 */
int32_t shf_options_set_tokenizer(shf_options *options, const shf_tokenizer *tokenizer, void *ctx,
                                  shf_error *error);

/* Adds the tokens of the next `text_count` texts: `ids` has all of them, one text after another,
 * and `counts` how many each has. They are copied. For the tokenizer that was given `tokens`,
 * during its call and on its thread.
 * Errors: USAGE (a NULL argument); FORMAT (more texts than were given); LIMIT (the option memory);
 * CANCELLED; NOMEM. The call fails then, whatever the tokenizer returns. Since: 0.1 */
int32_t shf_tokens_add(shf_tokens *tokens, const int32_t *ids, const uint64_t *counts,
                       size_t text_count, shf_error *error);

/* ---- Sources by requests --------------------------------------------------------------------- */

/* A queue of what the library asks the program for, which answers when and on the thread that it
 * likes: for languages whose code cannot run on the library's threads, and for event loops. */
typedef struct shf_requests shf_requests;

enum {
    SHF_REQUEST_OPEN = 1,    /* open the URL `text`                                            */
    SHF_REQUEST_READ = 2,    /* read up to `size` bytes of `object` at `offset`                */
    SHF_REQUEST_CLOSE = 3,   /* free `object`; wants no answer                                 */
    SHF_REQUEST_RELEASE = 4, /* options, and all opened with them, are gone; wants no answer   */
    SHF_REQUEST_DONE = 5,    /* a call of shf_requests_call has returned; wants no answer      */
    SHF_REQUEST_LOG = 6,     /* shf_requests_log was called; wants no answer                   */
    SHF_REQUEST_SKIP = 7,    /* shf_requests_skip was called; wants no answer                  */
    SHF_REQUEST_TOKENIZE = 8 /* make tokens of the `size` texts at `texts`                     */
};

typedef struct shf_request {
    size_t struct_size; /* sizeof(shf_request), by the caller */
    uint64_t id;        /* for shf_requests_answer; DONE: that of shf_requests_call */
    uint64_t object;
    uint64_t offset;
    uint64_t size;
    const char *text; /* OPEN, SKIP: the URL; LOG: the message. Until the next shf_requests_take, */
    const char *key;  /* SKIP, as these */
    const shf_error *error; /* SKIP */
    int32_t kind;           /* SHF_REQUEST_* */
    int32_t result;         /* DONE: of the function; LOG: the level; SKIP: whole_shard */
    const shf_text *texts;  /* TOKENIZE, as these */
} shf_request;

/* As the functions of shf_source and shf_tokenizer answer, which have the rules for objects, tokens
 * and errors. */
typedef struct shf_answer {
    size_t struct_size;  /* sizeof(shf_answer) */
    const char *text;    /* of an error the cause, of OPEN the version; NULL: none */
    const uint8_t *data; /* READ: the bytes, none only at the end; TOKENIZE: int32 tokens */
    uint64_t size;       /* of `data` in bytes; OPEN: of the object, UINT64_MAX: not known */
    uint64_t object;     /* OPEN: a number of the program, which READ and CLOSE have */
    int32_t code;        /* SHF_OK, or the class of the error */
    int32_t os_error;
    uint32_t flags; /* OPEN: SHF_SOURCE_* */
    const uint64_t *counts; /* TOKENIZE: how many tokens each of the texts has, in their order */
} shf_answer;

/* Says that shf_requests_take has something, perhaps once for several things. Must not call this
 * library, nor wait. Threads: called by any thread, one at a time. */
typedef void (*shf_wake_fn)(void *ctx);

/* Any function, cast. */
typedef void (*shf_any_fn)(void);

/* Makes a queue. NULL when there is no memory.
 * Owns: owned, release with shf_requests_free. Since: 0.1 */
shf_requests *shf_requests_new(shf_wake_fn wake, void *ctx);

/* Ends a queue: what is asked fails with CANCELLED, now and later, and `wake` is not called any
 * more once this has returned. What was opened with it may be closed later, and gives no requests.
 * NULL is a no-op. Since: 0.1 */
void shf_requests_free(shf_requests *requests);

/* Serves the URLs of `scheme` as shf_options_set_source does, by requests. A queue may serve
 * several options and schemes; each gives a RELEASE at its end. Calls that open or read on the
 * caller's thread wait for answers: they must come from another thread, or see shf_requests_call.
 * Errors: USAGE (a NULL argument; a scheme that cannot be served); NOMEM. Since: 0.1 */
int32_t shf_options_set_requests(shf_options *options, const char *scheme, shf_requests *requests,
                                 shf_error *error);

/* Has tokens made of texts as shf_options_set_tokenizer does, by requests. A RELEASE says that they
 * are made no more. Calls of a stream that wait for batches wait for answers.
 * Errors: USAGE (a NULL argument); NOMEM. Since: 0.1 */
int32_t shf_options_set_tokenizer_requests(shf_options *options, shf_requests *requests,
                                           shf_error *error);

/* Takes the next request; never waits. Returns END when there is none now. Any thread may take, and
 * another one answer. Errors: USAGE (NULL; struct_size). Since: 0.1 */
int32_t shf_requests_take(shf_requests *requests, shf_request *out);

/* Answers a request; what `answer` points to is copied.
 * Errors: NOT_FOUND (nobody waits for it any more: an object that was opened for it is the
 * program's to free); USAGE (NULL; struct_size). Since: 0.1 */
int32_t shf_requests_answer(shf_requests *requests, uint64_t id, const shf_answer *answer);

/* Makes what is asked fail with CANCELLED: once, and as long as `on` is not 0. Since: 0.1 */
void shf_requests_cancel(shf_requests *requests, int32_t on);

/* Whether shf_requests_cancel is on; for shf_options_set_interrupt with the queue as ctx, so that a
 * cancel ends an opening too. Since: 0.1 */
int32_t shf_requests_cancelled(void *requests);

/* Adds a LOG; for shf_options_set_log with the queue as ctx. Since: 0.1 */
void shf_requests_log(void *requests, int32_t level, const char *message);

/* Adds a SKIP; for shf_options_set_on_skip with the queue as ctx. Since: 0.1 */
void shf_requests_skip(void *requests, const shf_skip *skip);

/* Calls a function of this library on a thread of its own, so that the caller's can answer: one
 * that returns int32_t, with at most eight integers and pointers, each as a uint64_t. A DONE with
 * `id` follows; what the arguments point to must stay until then.
 * Errors: USAGE (NULL; more arguments); LIMIT, NOMEM (no thread). Since: 0.1 */
int32_t shf_requests_call(shf_requests *requests, uint64_t id, shf_any_fn function,
                          const uint64_t *arguments, size_t count, shf_error *error);

/* ---- URLs ------------------------------------------------------------------------------------ */

/* How shards are named, here and in shf_stream_open:
 *   path, file:///path   a local file; a FIFO is read like a pipe
 *   -                    standard input, once
 *   pipe:COMMAND         the output of a shell command; refused with secure=true, when the
 *                        environment has SHARDFEED_SECURE=1, and inside lists. The command is
 *                        ended when this process ends, even by a kill: a child process, /bin/sh,
 *                        watches for that
 *   zpull://HOST:PORT    samples that come as messages of ZeroMQ, as tarp sends them: one map of
 *                        MessagePack each, with __key__ and the bytes of its fields. zpull and
 *                        zrsub bind (0.0.0.0: every address of this machine), zrpull and zsub
 *                        connect; zpull+ipc:///PATH is a socket of this machine, which each one
 *                        that binds has for itself. They end with as many end marks as the option
 *                        "senders" says. A sample is known to be whole when the next message is
 *                        there. Keys that come twice are errors as in a file, also of several
 *                        senders. Each message is read once, so that a state of their middle
 *                        cannot be restored: USAGE. LIMIT for a message above "memory"; up to 16
 *                        more of each sender are held ahead. IO after "pipe_timeout" without a
 *                        message. Refused where pipe: is
 *   http://, https://    an object on a web server. Each is asked for in byte ranges under the
 *                        version (strong ETag) that was opened: another version is CHANGED. An
 *                        answer that breaks off is continued at the byte reached, as the option
 *                        "retries" says. Where a server gives no ranges, a tar is read from front
 *                        to back; after a fault it is read from its start, and what was delivered
 *                        is compared. Proxies are those of the environment. UNSUPPORTED where
 *                        shf_feature("http") is NULL
 *   SCHEME://...         what the program serves (shf_options_set_source)
 *   @FILE                a text file with one URL a line; empty lines and # comments are skipped
 * Every URL is split at "::", ${NAME} is replaced by the environment variable WDS_NAME, and braces
 * are expanded: {000..119} with zero padding and optional step, {a,b}, nested, rightmost fastest;
 * a backslash takes the next character literally. A path that begins with ~/ is in the folder HOME.
 * In a path, *, ? and [...] match anything but a slash: the path is replaced by the files that
 * match now, sorted by their bytes. A leading dot is matched only by a dot. If a file has the
 * pattern as its name, the path means that file. Option expand=false takes URLs as they are. */

/* Receives one URL (NUL-terminated, `size` bytes without the NUL, borrowed for the call). Anything
 * but 0 stops the expansion. */
typedef int32_t (*shf_url_fn)(void *ctx, const char *url, size_t size);

/* Expands URLs and passes each result to `each`, in list order, without building the list.
 * options may be NULL.
 * Errors: USAGE (braces, environment, refused pipe), IO (list file, no file matches a pattern),
 * LIMIT (too many shards), NOMEM, CANCELLED when `each` stopped it; TIMEOUT, CANCELLED as
 * shf_options_set_interrupt says, like all calls that open something. Since: 0.1 */
int32_t shf_expand_urls(const char *const *urls, size_t url_count, const shf_options *options,
                        shf_url_fn each, void *ctx, shf_error *error);

/* ---- Streams --------------------------------------------------------------------------------- */

typedef struct shf_stream shf_stream;
typedef struct shf_sample shf_sample;
typedef struct shf_block shf_block;

/* Opens a stream over the shards that the URLs name. Plans, but starts no thread, and opens no
 * shard unless the option "even" or "by_index" is set: then it compares each with its index.
 * `options` may be NULL; they are copied.
 * Owns: *out is owned, release with shf_stream_close.
 * Errors: USAGE (option, URL, fewer shards than consumers, world_size or num_workers above 1 and no
 * rank or worker), IO (list file, no match), LIMIT, TIMEOUT, CANCELLED, NOMEM; with "even" and
 * "by_index" also a bad shard or index, and NOT_FOUND when a shard has no index. Since: 0.1 */
int32_t shf_stream_open(shf_stream **out, const char *const *urls, size_t url_count,
                        const shf_options *options, shf_error *error);

/* Opens a stream that takes its samples from `count` other streams (at most 1024), its parts, at
 * random by weight. The part that a sample comes from depends only on the option "seed", the number
 * of the sample, and which parts have ended. In the long run each part that has not ended gives
 * exactly its share by weight. Each part delivers the samples that it would deliver by itself, in
 * that order. `weights` are above 0, in any unit; NULL: all are equal. The option "until" says when
 * the mix ends. Parts may be mixes, eight deep, and may have been restored. Nothing may have been
 * taken from them, and they have no option "batch". They keep their own options for reading
 * (threads, memory, shuffle, on_error, log, rank, ...). The mix takes the options for what it makes
 * of the samples: seed, until, timeout, memory, batch, decode and what belongs to it.
 * "epoch_samples" with until=forever ends the mix after that many samples, counted over all
 * consumers, times "epochs"; all parts must then have the same rank, world_size, worker and
 * num_workers. `options` may be NULL.
 *
 * The result is a stream like any other. shf_stream_stat gives the sums over the parts.
 * shf_stream_save saves the positions of the parts, and shf_stream_restore restores them in a mix
 * that was opened in the same way. shf_state_merge merges states of mixes part by part: on another
 * number of ranks each part continues its own sequence, and every rank mixes its share of them.
 * Owns: *out is owned, release with shf_stream_close. When the call succeeds it has taken the
 * parts over: their handles are gone. When it fails they are as before.
 * Threads: must not run at the same time as another call on a part, shf_stream_cancel and
 * shf_stream_stat included.
 * Errors: USAGE (weights, a part twice, used or with batches; until=forever and standard input),
 * FORKED, NOMEM. Since: 0.1 */
int32_t shf_stream_mix(shf_stream **out, shf_stream *const *parts, const double *weights,
                       size_t count, const shf_options *options, shf_error *error);

/* Delivers the next sample, waiting for it at most as long as the option "timeout".
 * Owns: *out is owned, release with shf_sample_unref.
 * Errors: SHF_END after the last sample; a bad shard; TIMEOUT (call again); CANCELLED; FORKED;
 * NOMEM; USAGE for a second concurrent call. All but TIMEOUT and a concurrent USAGE repeat.
 * Since: 0.1 */
int32_t shf_stream_next(shf_stream *stream, shf_sample **out, shf_error *error);

/* Delivers the next samples, at least one and at most `max_samples` (0: as many as are convenient),
 * in the order in which shf_stream_next would deliver them; the two calls may be mixed. How many
 * come at once is not promised. Made for bindings and for loops over tiny samples: the price of a
 * call is paid once per block. A block that is kept, or of which a sample is kept, holds at most
 * 64 KiB more memory than 8 times the smallest sample in it.
 * Owns: *out is owned, release with shf_block_unref.
 * Errors: SHF_END after the last sample; a bad shard, when the samples before it were delivered;
 * TIMEOUT (call again); CANCELLED; FORKED; NOMEM; USAGE for a second concurrent call.
 * Since: 0.1 */
int32_t shf_stream_next_block(shf_stream *stream, size_t max_samples, shf_block **out,
                              shf_error *error);

enum {
    SHF_STAT_SAMPLES = 0,            /* samples delivered                                         */
    SHF_STAT_BYTES = 1,              /* payload bytes delivered                                   */
    SHF_STAT_SHARDS = 2,             /* shards read to their proven end                           */
    SHF_STAT_SKIPPED_SAMPLES = 3,    /* dropped under on_error=skip_sample                        */
    SHF_STAT_SKIPPED_SHARDS = 4,     /* cut short under on_error=skip_sample or skip_shard        */
    SHF_STAT_IGNORED_MEMBERS = 5,    /* members without key, and names between __ and __          */
    SHF_STAT_DIRECTORIES = 6,        /* directory members                                         */
    SHF_STAT_LINKS = 7,              /* hard and symbolic links, skipped                          */
    SHF_STAT_SPECIALS = 8,           /* devices, FIFOs, labels, skipped                           */
    SHF_STAT_SPARSE = 9,             /* sparse members, unsupported                               */
    SHF_STAT_UNKNOWN_TYPES = 10,     /* members of unknown type, skipped                          */
    SHF_STAT_SIZE_DISAGREEMENTS = 11, /* pax size other than header size; pax was taken           */
    SHF_STAT_MISSING_END_MARKERS = 12, /* accepted under end_marker=optional                      */
    SHF_STAT_TRAILING = 13,          /* shards with junk after their end, accepted                */
    SHF_STAT_SUFFIX_MISMATCHES = 14, /* shards whose suffix and compression disagree              */
    SHF_STAT_EMPTY_SHARDS = 15,      /* accepted under allow_empty                                */
    SHF_STAT_MEMORY = 16,            /* payload memory held and not handed out, bytes, now        */
    SHF_STAT_MEMORY_PEAK = 17,       /* its highest value                                         */
    SHF_STAT_CONSUMER_WAIT_NS = 18,  /* time the consumer spent waiting for bytes                 */
    SHF_STAT_READER_WAIT_NS = 19,    /* time readers spent waiting for the consumer or memory     */
    SHF_STAT_EPOCH_SAMPLES = 20,     /* samples in an epoch of this consumer under epoch_samples,
                                        in the first epoch under even; known at the start; else 0 */
    SHF_STAT_PASSED_OVER = 21,       /* skipped under missing=skip: without a field, or more   */
    SHF_STAT_FILTERED_SAMPLES = 22,  /* skipped by fields, select_keys or slice                   */
    SHF_STAT_UNVERIFIED_SAMPLES = 23, /* delivered before their checksum, which then failed      */
    SHF_STAT_REQUESTS = 24,          /* to servers, with those that failed                        */
    SHF_STAT_RETRIES = 25,           /* requests that were made again after a fault               */
    SHF_STAT_NETWORK_BYTES = 26,     /* of the bodies of their answers                            */
    SHF_STAT_DNS_NS = 27,            /* time in which requests looked up names                    */
    SHF_STAT_CONNECT_NS = 28,        /* in which they connected, with TLS                         */
    SHF_STAT_FIRST_BYTE_NS = 29,     /* between requests and the first bytes of their answers     */
    SHF_STAT_CACHE_BYTES = 30,       /* read from the cache                                       */
    SHF_STAT_CACHE_FAULTS = 31,      /* damaged blocks of the cache, dropped and fetched again    */
    SHF_STAT_STALE_SHARDS = 32,      /* opened from the cache alone, under stale_ok               */
    SHF_STAT_VERIFIED_SHARDS = 33,   /* whose bytes have the checksum that their server gives     */
    SHF_STAT_SKIPS_BY_CLASS = 64     /* 64 + k counts the skips with error code -k                */
};

/* Counter `stat` (SHF_STAT_*) of a stream; UINT64_MAX for any other number, and in a forked child.
 * All are 64 bit. All but SHF_STAT_EPOCH_SAMPLES start at 0. What readers find in shards (ignored
 * members, directories, links, ...) is counted when they find it, which may be before the consumer
 * reaches it; at the end of the stream all counts are exact.
 * Threads: any. Since: 0.1 */
uint64_t shf_stream_stat(const shf_stream *stream, int32_t stat);

enum {
    SHF_COUNTER_NAME = 0, /* "skipped_samples", "skips_truncated"                                 */
    SHF_COUNTER_KIND = 1, /* "counter": only grows; "gauge": a value of now                       */
    SHF_COUNTER_UNIT = 2, /* "samples", "bytes", "shards", "members", "skips", "requests",
                             "blocks", "ns"                                                       */
    SHF_COUNTER_HELP = 3  /* one line                                                             */
};

/* Describes counter `stat` (SHF_STAT_*); `what` is one of SHF_COUNTER_*. NULL when there is no such
 * counter or property. Owns: static. Since: 0.1 */
const char *shf_stat_describe(int32_t stat, int32_t what);

/* Makes the stream's waiting and future calls return CANCELLED, within 100 ms. Does not free.
 * Threads: any. Since: 0.1 */
void shf_stream_cancel(shf_stream *stream);

/* Ends the stream: stops its threads, ends its child processes (TERM, then KILL after 5 s), frees
 * its memory. Must not run at the same time as another call on this stream. Since: 0.1 */
void shf_stream_close(shf_stream *stream);

/* ---- Plans ----------------------------------------------------------------------------------- */

/* What each rank and worker of a run would read, before it starts, and what is wrong with that. A
 * plan does not change: any number of threads may use it. */
typedef struct shf_plan shf_plan;

/* Plans a run of all ranks and workers (options world_size and num_workers; rank and worker only
 * have to be possible). Opens no shard. Samples and bytes are known when there are at most 10,000
 * shards, no filter leaves samples out, and every shard has an index file that was made for its
 * present size and modification time; see the options "index" and "index_dir". Damage to shards and
 * index files is not seen. `options` may be NULL; they are copied.
 * Owns: *out is owned, release with shf_plan_free.
 * Errors: USAGE (option, URL; fewer shards than consumers are a warning), IO (list file, no match),
 * LIMIT, TIMEOUT, CANCELLED, NOMEM. Since: 0.1 */
int32_t shf_plan_make(shf_plan **out, const char *const *urls, size_t url_count,
                      const shf_options *options, shf_error *error);

/* The plan for people to read: a summary, one line for each consumer (of many: the first eight and
 * the last one), and the warnings, each after "warning: ". Every line ends with a newline.
 * Owns: *out is borrowed from the plan; it is also NUL-terminated. Since: 0.1 */
void shf_plan_text(const shf_plan *plan, shf_bytes *out);

/* Warning number `index`, one line without newline: what, and after "help: " what to do. There are
 * warnings of fewer shards than consumers, unequal parts, no shuffle in several epochs, a shuffle
 * smaller than a shard, lanes that are not set with several ranks, and a memory too small for the
 * shuffle buffers.
 * Owns: *out is borrowed from the plan; it is also NUL-terminated.
 * Errors: NOT_FOUND past the last one. Since: 0.1 */
int32_t shf_plan_warning(const shf_plan *plan, size_t index, shf_bytes *out);

/* The number of consumers: world_size x num_workers. Since: 0.1 */
uint64_t shf_plan_consumer_count(const shf_plan *plan);

enum {
    SHF_PLAN_RANK = 0,    /* number of the process, as the option rank                           */
    SHF_PLAN_WORKER = 1,  /* number of the worker in it                                          */
    SHF_PLAN_LANES = 2,   /* lanes that it reads, with or without shards                         */
    SHF_PLAN_SHARDS = 3,  /* shards in the first epoch; with epoch_samples in one pass           */
    SHF_PLAN_SAMPLES = 4, /* samples in the first epoch; UINT64_MAX: not known                   */
    SHF_PLAN_BYTES = 5    /* bytes of its shards; UINT64_MAX: not known, or epoch_samples is set */
};

/* Property `what` (SHF_PLAN_*) of a consumer; UINT64_MAX for any other value and past the last
 * consumer. Since: 0.1 */
uint64_t shf_plan_info(const shf_plan *plan, uint64_t consumer, int32_t what);

/* The number of shards; they are numbered in the order in which shf_expand_urls gives them.
 * Since: 0.1 */
uint64_t shf_plan_shard_count(const shf_plan *plan);

enum {
    SHF_PLAN_SHARD_SAMPLES = 0, /* UINT64_MAX: not known                                         */
    SHF_PLAN_SHARD_BYTES = 1    /* UINT64_MAX: not known                                         */
};

/* Property `what` (SHF_PLAN_SHARD_*) of a shard; UINT64_MAX for any other value and past the last
 * shard. Since: 0.1 */
uint64_t shf_plan_shard_info(const shf_plan *plan, uint64_t shard, int32_t what);

/* Plans a run over shards that need not be there: `samples` and `bytes` have the numbers of each of
 * `shard_count` shards, which are numbered in this order. `bytes` may be NULL: not known. Else as
 * shf_plan_make, for any number of shards. The arrays are copied.
 * Owns: *out is owned, release with shf_plan_free.
 * Errors: USAGE (option, no shard, 2^32 shards, a shard of 2^32 samples), LIMIT, NOMEM.
 * Since: 0.1 */
int32_t shf_plan_simulate(shf_plan **out, const uint64_t *samples, const uint64_t *bytes,
                          size_t shard_count, const shf_options *options, shf_error *error);

/* When a consumer reads which shard in the first epoch. `reads` gets four numbers for each reading
 * of a shard, in the order in which they begin: the shard; the samples that are read of it; and the
 * numbers, from 0, of the first and last sample that the consumer takes while it is read. A sample
 * is read when its lane has to put it into the shuffle buffer in order to give the next one:
 * threads that read ahead are left out. `room` readings fit into it (`reads` may be NULL with 0),
 * and *count is how many there are.
 * Errors: USAGE (NULL, no such consumer, epoch_samples is set, samples are not known), NOMEM.
 * Since: 0.1 */
int32_t shf_plan_reads(const shf_plan *plan, uint64_t consumer, uint64_t *reads, size_t room,
                       size_t *count, shf_error *error);

/* Frees a plan. Since: 0.1 */
void shf_plan_free(shf_plan *plan);

/* ---- Saving and restoring -------------------------------------------------------------------- */

/* The position of a stream: a few hundred bytes for each lane, without samples, URLs or secrets. It
 * may be stored, and restored by another process on another machine. */
typedef struct shf_state shf_state;

/* Saves the position of a stream: after all that was delivered, except the last `unread` samples of
 * the block that shf_stream_next_block delivered last. In a stream of batches `unread` is 0, or 1
 * for all but the last batch. A stream that is restored from the state resumes with exactly the
 * next sample or batch, shuffle buffers included. Reads nothing; the stream can be used afterwards.
 * Owns: *out is owned, release with shf_state_free.
 * Errors: USAGE for more `unread` samples or batches than that, and for a concurrent call; FORKED;
 * NOMEM. A stream that has failed can still be saved: after a restore the same fault is reported
 * again. Since: 0.1 */
int32_t shf_stream_save(shf_stream *stream, size_t unread, shf_state **out, shf_error *error);

/* Resumes at a saved position. The stream must have just been opened, with the same shards and the
 * same options except those for threads, memory, time, checks and decoding. With a state of
 * shf_state_merge and the same "lanes", the options rank, world_size, worker and num_workers may
 * differ too. Opens no shard: a shard that has changed meanwhile is an error (CHANGED) when it is
 * read. Shards are read from the saved offset; compressed ones are decompressed up to it, pipes and
 * standard input are read and dropped up to it, which is logged.
 * Errors: USAGE when something was already taken, when shards or options have changed (the message
 * says which), when the state lacks lanes of this stream, and for a concurrent call; FORMAT,
 * INTEGRITY, UNSUPPORTED for bytes that are no state of this version; FORKED; NOMEM. The stream is
 * then unchanged. Since: 0.1 */
int32_t shf_stream_restore(shf_stream *stream, const uint8_t *data, size_t size, shf_error *error);

/* Makes one state of those of all consumers of a run (each rank and worker once). Every one of them
 * can restore it, and so can every consumer of a run with another number of ranks and workers. The
 * order of all samples together does not change. When the number of consumers divides "lanes", each
 * shard is read once. With any other number several consumers read each lane and keep their own
 * samples of it; their states can be merged when all were saved after the same number of samples,
 * between two batches. With the option "by_index" that is what it takes to restore the state with
 * another number of ranks or workers: shf_stream_restore checks it.
 * Owns: *out is owned, release with shf_state_free.
 * Errors: USAGE for states of different runs, for a consumer twice, and for consumers that share
 * lanes and are not all there or did not stop at the same step; FORMAT, INTEGRITY, UNSUPPORTED for
 * bytes that are no state of this version; NOMEM. Since: 0.1 */
int32_t shf_state_merge(const shf_bytes *states, size_t count, shf_state **out, shf_error *error);

/* The bytes to store. Owns: *out is borrowed from the state. Since: 0.1 */
void shf_state_bytes(const shf_state *state, shf_bytes *out);

/* Frees a state. Since: 0.1 */
void shf_state_free(shf_state *state);

/* ---- Samples --------------------------------------------------------------------------------- */

/* Adds a reference and returns its argument. Owns: the reference is owned, release with
 * shf_sample_unref. Threads: any. Since: 0.1 */
shf_sample *shf_sample_ref(shf_sample *sample);

/* Drops a reference; the last one frees the sample. Threads: any. Since: 0.1 */
void shf_sample_unref(shf_sample *sample);

/* The key. Owns: *out is borrowed from the sample. Since: 0.1 */
void shf_sample_key(const shf_sample *sample, shf_bytes *out);

/* The URL of the shard, without secrets. Owns: *out is borrowed from the sample; it is also
 * NUL-terminated. Since: 0.1 */
void shf_sample_url(const shf_sample *sample, shf_bytes *out);

/* The number of fields. Since: 0.1 */
size_t shf_sample_field_count(const shf_sample *sample);

/* Field number `index` in the order of the shard: its name and its bytes. name or data may be NULL.
 * Owns: both outputs are borrowed from the sample.
 * Errors: NOT_FOUND past the last field. Since: 0.1 */
int32_t shf_sample_field(const shf_sample *sample, size_t index, shf_bytes *name, shf_bytes *data);

/* The bytes of the field called `name` (`name_size` bytes or SHF_STRLEN, lower case).
 * Owns: *out is borrowed from the sample. Errors: NOT_FOUND. Since: 0.1 */
int32_t shf_sample_find(const shf_sample *sample, const char *name, size_t name_size,
                        shf_bytes *out);

enum {
    SHF_SAMPLE_EPOCH = 0,  /* pass over the shards, numbered from the option "epoch" upward    */
    SHF_SAMPLE_LANE = 1,   /* lane that the sample came through                                */
    SHF_SAMPLE_SHARD = 2,  /* number of the shard in the expanded list                         */
    SHF_SAMPLE_OFFSET = 3, /* of the sample's first header in the (decompressed) shard, bytes  */
    SHF_SAMPLE_PART = 4    /* number of the stream in a mix, over all nested mixes; else 0     */
};

/* Where the sample came from; `what` is one of SHF_SAMPLE_*, UINT64_MAX for any other value.
 * Since: 0.1 */
uint64_t shf_sample_info(const shf_sample *sample, int32_t what);

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Adds a reference and returns its argument. Threads: any. Since: 0.1 */
shf_block *shf_block_ref(shf_block *block);

/* Drops a reference; the last one frees the block. Threads: any. Since: 0.1 */
void shf_block_unref(shf_block *block);

/* The number of samples, at least 1. Since: 0.1 */
size_t shf_block_sample_count(const shf_block *block);

/* Sample number `index`, NULL past the last one.
 * Owns: borrowed from the block; shf_sample_ref makes it outlive the block. Since: 0.1 */
shf_sample *shf_block_sample(const shf_block *block, size_t index);

/* The flat tables of a block, for bindings that build their own sample objects. With n samples and
 * m fields in all:
 *   FIRST_FIELD  n + 1  sample i has the fields FIRST_FIELD[i] up to FIRST_FIELD[i + 1]
 *   SCHEMA       n      which list of field names sample i has, see shf_block_schema
 *   KEY          n + 1  the key of sample i is bytes KEY[i] up to KEY[i + 1] of shf_block_keys
 *   URL          n      which of the block's URLs, see shf_block_url
 *   BUFFER       m      which of the block's buffers holds the field, see shf_block_buffer
 *   START        m      where in that buffer it starts
 *   STOP         m      where it stops */
enum {
    SHF_BLOCK_FIRST_FIELD = 0,
    SHF_BLOCK_SCHEMA = 1,
    SHF_BLOCK_KEY = 2,
    SHF_BLOCK_URL = 3,
    SHF_BLOCK_BUFFER = 4,
    SHF_BLOCK_START = 5,
    SHF_BLOCK_STOP = 6,
    SHF_BLOCK_COLUMNS = 7
};

/* Fills columns[k] with the table number k and counts[k] with its length, for k below
 * column_count and SHF_BLOCK_COLUMNS. counts may be NULL.
 * Owns: the tables are borrowed from the block. Since: 0.1 */
void shf_block_columns(const shf_block *block, size_t column_count, const uint64_t **columns,
                       size_t *counts);

/* The keys of all samples, one after another. Owns: borrowed from the block. Since: 0.1 */
void shf_block_keys(const shf_block *block, shf_bytes *out);

/* Buffer number `index`, a stretch of payload memory with the fields somewhere in it. The bytes
 * between the fields mean nothing.
 * Owns: borrowed from the block. Errors: NOT_FOUND past the last one. Since: 0.1 */
int32_t shf_block_buffer(const shf_block *block, size_t index, shf_bytes *out);

/* Field-name list number `index`: the names in order, each followed by '/', which no name has.
 * Owns: borrowed from the block. Errors: NOT_FOUND past the last one. Since: 0.1 */
int32_t shf_block_schema(const shf_block *block, size_t index, shf_bytes *out);

/* URL number `index`, without secrets; it is also NUL-terminated.
 * Owns: borrowed from the block. Errors: NOT_FOUND past the last one. Since: 0.1 */
int32_t shf_block_url(const shf_block *block, size_t index, shf_bytes *out);

/* ---- Batches --------------------------------------------------------------------------------- */

/* A batch is the decoded fields of some samples, one column for each field: made by threads of the
 * stream, each row written straight into its column. The option "decode" says what each field
 * becomes, in one text:
 *
 *     jpg;png:image/rgb8/chw/resize=256x256, cls:int, json:bytes
 *
 * Columns are separated by commas. A column has the name of its field; names separated by
 * semicolons are alternatives. The word after the colon says what the field becomes:
 *   bytes, json, msgpack   its bytes (a binding makes objects of the last two)
 *   text                   its bytes, checked to be UTF-8
 *   int, float             a decimal number as text: int64, float64
 *   npy, npz/NAME          the array of an .npy file; of the member NAME of an .npz
 *   ten, ten/part=N        the only array of a field in TenBin; number N from 0 on, in a column
 *                          called FIELD.N
 *   safetensors, safetensors/tensor=NAME
 *                          the only tensor of a field; the one called NAME, up to the next comma,
 *                          in a column called FIELD.NAME
 *   list, list/NAME        a list of whole numbers in JSON: int64; the member NAME of an object, in
 *                          a column called FIELD.NAME
 *   image                  JPEG, PNG, WebP, GIF (the first frame), TIFF (the first page), JPEG XL
 *                          or AVIF. After slashes: the pixels (rgb8, l8, rgba8; rgb16, l16; rgb
 *                          and l are float32 in 0..1, or float16 or bfloat16 by that word),
 *                          normalize=imagenet (or clip, half, or means and deviations:
 *                          M:M:M:D:D:D), the layout (hwc or chw), exif (turn as the EXIF
 *                          orientation says), then the steps, each at most once and done in their
 *                          order: resize=N (the shorter side), resize=WxH, resize=fit:WxH,
 *                          crop=WxH (centre), crop=random:WxH, rrc=WxH (a part of random size and
 *                          shape, scale=A..B and ratio=A..B, resized), pad=N, pad=NxM, pad=to:WxH
 *                          (with fill=LEVEL), flip=random, flip=always. filter=bilinear, or
 *                          nearest, box, hamming, bicubic, lanczos; exact: no JPEG is reduced while
 *                          it is decoded; mask: the levels are labels, which steps and operations
 *                          move to the nearest pixel and do not change. brightness=A..B, contrast=,
 *                          saturation=, hue= (the chance jitter=P), grayscale=P, blur=P
 *                          (sigma=A..B, kernel=N) and solarize=P change colours at random, and
 *                          randaugment=N:M or trivialaugment does operations of these sets; views=N
 *                          makes N columns, "jpg.0" and on.
 *                          mixup=ALPHA and cutmix=ALPHA, of one column of a batch, add the columns
 *                          below that say which rows are mixed; pixels stay as they are.
 *                          Random choices are keyed by seed, epoch, shard, key and view: the same
 *                          for all images of a sample, and in every run.
 *   boxes                  boxes of the image in column NAME (of=NAME, listed before), in a
 *                          JSON field: a list of them at the end of path=A.B, or one in each
 *                          element of a list on the path. After slashes the format: xyxy, xywh or
 *                          cxcywh, and relative for numbers in 0..1. They get the geometry of the
 *                          image and are clipped to it; those with a side below a pixel are left
 *                          out. Two columns, ragged unless ragged=pad: FIELD.boxes, float32
 *                          (N, 4), left, top, right, bottom, and FIELD.kept, int64 (N), the number
 *                          of each in the field.
 *   audio                  WAV, FLAC, MP3, Opus or Vorbis in Ogg, and the first sound track of
 *                          MP4 (M4A), Matroska, WebM and AVI: frames x channels. After slashes:
 *                          float32 (as a rule in -1..1) or int16, the layout (fc or cf: frames or
 *                          channels first), mono (the mean of the channels; one dimension),
 *                          rate=N (frames a second), crop=5s (the middle), crop=start:5s,
 *                          crop=random:5s, crop=clip:5s (from the first frame that is taken of
 *                          the same field's video, a column before it), pad (zeros up to the
 *                          length of the crop). A length is
 *                          in s, ms or frames that come out. Behind a column video of the same
 *                          field its name is FIELD.audio.
 *   video                  MP4, Matroska, WebM or AVI: frames x height x width x colours. After
 *                          slashes which frames: all without a word, frames=N (in the middles of N
 *                          equal parts: number floor((2 i + 1) M / (2 N)) of M), clip=N (one after
 *                          another, of the middle), clip=start:N, clip=random:N, with stride=K
 *                          every K-th; rate=F (of F frames a second: for each moment the last
 *                          frame at or before it); repeat (frames again, where there are too few:
 *                          an error else). And the words of image for each frame, with the same
 *                          choices for all, but for exif, exact, mask, mixup and cutmix.
 * The column __augment__ is of no field: for each row a JSON object that says what was chosen for
 * the images, sounds and videos of the row, by column.
 * With mixup and cutmix, behind the columns of fields: "__mix_index__" (int64: the row of this
 * batch that the row is mixed with; all rows are one circle), "__mix_weight__" (float32: the share
 * of its own image and label, of Beta(ALPHA, ALPHA), with a box the part outside) and, with cutmix,
 * "__mix_box__" (int64: top, left, bottom, right of what comes from the other row; the whole image
 * where mixup mixes). With both words each row has one of them. Images of another size than the
 * first one are errors of their samples.
 * Without colon, and with "auto" for all fields of the first sample, the suffix says it: jpg, jpeg,
 * png, webp, gif, tif, tiff, jxl, avif: image/rgb8; flac, wav, mp3, opus: audio; npy; cls, cls2,
 * index, inx, id: int; txt, text, transcript: text; json, jsn; mp, msg, msgpack; all others:
 * bytes.
 * A field whose name ends in .gz or .zst is unpacked first, whatever it becomes, and the suffix is
 * the one before that: json.gz is json. What comes out is within max_decoded and memory.
 * bytes/compressed is such a field as it is stored.
 * The last two columns are the keys, "__key__", and the URLs of the shards, "__url__". With the
 * option even=pad "__valid__" (bool) is before them: false in rows that only fill up an epoch.
 * With the option pack=N rows have N elements each: the arrays of samples, which have one dimension
 * and, in all columns, one length, are joined in the order of the samples and cut where a row is
 * full; zeros fill the last row. A column of json is then one of list. Before the last two columns
 * are then "__document__" (int64: which sample of its row an element is of, from 0 on) and
 * "__position__" (int64: its place in that sample), both -1 where zeros fill the row. Key and URL
 * are those of the sample that begins the row. With the option pack_window=N rows are filled
 * best-fit from N samples at a time, each cut only where it is longer than a row; zeros fill every
 * row. With shf_options_set_tokenizer a column may be text, and is one of int32. A saved stream
 * resumes in the middle of a sample. The options even, epoch_samples and
 * missing=empty, and lanes that several consumers read, do not go with it.
 * With the option batch_elements=N a batch ends before the sample with which one of its arrays (or
 * sounds, not images and videos) would have more than N elements: with ragged=pad, which
 * ragged=error then is too, all that are in memory, else those of the rows. A larger sample is a
 * LIMIT error of that sample. With the option bucket=N,N,... a batch is of samples whose longest
 * array is within one of these bounds, and not within the one before; these arrays are padded to it
 * in their first dimension, and their others are of one size, as are images and videos. A sample
 * that is longer than the last
 * bound is a LIMIT error of that sample. What is in a bucket comes when it is a batch, when
 * bucket_wait samples came after its first one, or at the end. A saved stream gives the same
 * batches again. Neither goes with pack, even and epoch_samples; bucket not with missing=empty and
 * ragged=offsets, nor with lanes that several consumers read. Since: 0.1 */
typedef struct shf_batch shf_batch;

enum {
    SHF_COLUMN_ARRAY = 0, /* numbers                                                              */
    SHF_COLUMN_BYTES = 1, /* bytes of any length, as are the next three                           */
    SHF_COLUMN_TEXT = 2,
    SHF_COLUMN_JSON = 3,
    SHF_COLUMN_MSGPACK = 4
};

enum {
    SHF_DTYPE_BOOL = 0, /* one byte, 0 or 1                                                      */
    SHF_DTYPE_INT8 = 1,
    SHF_DTYPE_INT16 = 2,
    SHF_DTYPE_INT32 = 3,
    SHF_DTYPE_INT64 = 4,
    SHF_DTYPE_UINT8 = 5,
    SHF_DTYPE_UINT16 = 6,
    SHF_DTYPE_UINT32 = 7,
    SHF_DTYPE_UINT64 = 8,
    SHF_DTYPE_FLOAT16 = 9,
    SHF_DTYPE_FLOAT32 = 10,
    SHF_DTYPE_FLOAT64 = 11,
    SHF_DTYPE_COMPLEX64 = 12, /* two float32: real, imaginary                                     */
    SHF_DTYPE_COMPLEX128 = 13,
    SHF_DTYPE_BFLOAT16 = 14 /* the upper half of a float32                                        */
};

/* One column: numbers in C order without gaps. Three layouts:
 *   even    offsets is NULL; shape[0] is the number of rows, the rest the shape of each
 *   ragged  offsets has rows + 1 numbers: row i is elements offsets[i] up to offsets[i + 1], and
 *           ndim is 1; shapes has row_ndim numbers for each row (NULL for bytes and numbers)
 *   padded  even, and shapes has the shape that each row had before zeros were added
 * Frozen: 112 bytes on 64-bit systems. */
typedef struct shf_array {
    void *data;             /* 64-byte aligned; yours to write to                                 */
    size_t size;            /* bytes                                                              */
    const int64_t *offsets; /* in elements; NULL when even                                        */
    const int64_t *shapes;  /* NULL when all rows have the same                                   */
    int64_t shape[8];
    int32_t ndim;
    int32_t row_ndim;
    int32_t dtype; /* SHF_DTYPE_*                                                                 */
    int32_t kind;  /* SHF_COLUMN_*                                                                */
} shf_array;

/* Delivers the next batch of a stream with the option "batch"; such a stream delivers nothing else.
 * A batch has that many samples, in the order in which shf_stream_next would deliver them; the last
 * one may have fewer (option "last"). A sample that cannot be decoded, or whose array is not of the
 * shape of the first one of the stream (option "ragged"), is an error; unless on_error=raise it is
 * skipped, and the next sample takes its place. The first error ends the stream; the batch in which
 * it occurs is not delivered.
 * Owns: *out is owned, release with shf_batch_unref.
 * Errors: SHF_END after the last batch; a bad shard; FORMAT (a field cannot be decoded, rows of
 * unequal shape, a missing field), UNSUPPORTED (dtype, kind of image), TRUNCATED or INTEGRITY (a
 * compressed field), LIMIT (max_decoded, or one batch above memory); TIMEOUT (call again);
 * CANCELLED; FORKED; NOMEM; USAGE (bad option "decode", no option "batch", a second concurrent
 * call). Since: 0.1 */
int32_t shf_stream_next_batch(shf_stream *stream, shf_batch **out, shf_error *error);

/* Makes a batch of `count` samples, at least one, as the options "decode", "ragged" and "missing"
 * say; with missing=skip it may have fewer rows. Random choices are keyed by the option "seed" and,
 * for samples of a dataset, "epoch". `options` may be NULL.
 * Owns: *out is owned, release with shf_batch_unref.
 * Errors: FORMAT (a field cannot be decoded, rows of unequal shape, a missing field), UNSUPPORTED
 * (dtype, kind of image), TRUNCATED or INTEGRITY (a compressed field) or LIMIT (max_decoded) of the
 * first bad sample; NOMEM; USAGE (no sample, bad option "decode"). Since: 0.1 */
int32_t shf_batch_make(shf_batch **out, shf_sample *const *samples, size_t count,
                       const shf_options *options, shf_error *error);

/* Adds a reference and returns its argument. Threads: any. Since: 0.1 */
shf_batch *shf_batch_ref(shf_batch *batch);

/* Drops a reference; the last one gives the memory of the columns back, to be used again. Threads:
 * any. Since: 0.1 */
void shf_batch_unref(shf_batch *batch);

/* The number of rows. Since: 0.1 */
size_t shf_batch_row_count(const shf_batch *batch);

/* The number of columns, "__key__" and "__url__" included. Since: 0.1 */
size_t shf_batch_column_count(const shf_batch *batch);

/* Column number `index`: its name and its numbers. name or array may be NULL.
 * Owns: all that the outputs point to is borrowed from the batch.
 * Errors: NOT_FOUND past the last column. Since: 0.1 */
int32_t shf_batch_column(const shf_batch *batch, size_t index, shf_bytes *name, shf_array *array);

/* The number of the column called `name` (`name_size` bytes or SHF_STRLEN). Errors: NOT_FOUND.
 * Since: 0.1 */
int32_t shf_batch_find(const shf_batch *batch, const char *name, size_t name_size, size_t *index);

/* The key of a row. Owns: borrowed from the batch. Errors: NOT_FOUND. Since: 0.1 */
int32_t shf_batch_key(const shf_batch *batch, size_t row, shf_bytes *out);

/* A column as DLPack (ABI 1.0): *out is a DLManagedTensor, or, when `versioned` is not 0, a
 * DLManagedTensorVersioned. For a ragged column it has the elements of all rows. A DLManagedTensor
 * has bools as uint8. The batch lives until the deleter is called.
 * Owns: *out is owned, release with its deleter. Errors: NOT_FOUND, NOMEM. Since: 0.1 */
int32_t shf_batch_dlpack(shf_batch *batch, size_t index, int32_t versioned, void **out,
                         shf_error *error);

/* The batch as a record batch of the Arrow C data interface: fills the caller's struct ArrowArray
 * and struct ArrowSchema. Even columns are numbers or fixed-size lists (with the extension type
 * arrow.fixed_shape_tensor), ragged ones large lists; bytes are large_binary, text is large_utf8, a
 * bool is uint8, a complex number two floats. Shapes of rows are a column "NAME.shape".
 * Owns: both are owned, release with their release callbacks. Errors: NOMEM. Since: 0.1 */
int32_t shf_batch_arrow(shf_batch *batch, void *array, void *schema, shf_error *error);

/* ---- Archives -------------------------------------------------------------------------------- */

/* The members of one archive, a tar, a ZIP file or another one, in any order. An archive does not
 * change once it is open and takes no locks: any number of threads may use it at once, and so may
 * child processes that were forked after it was opened, without opening it again.
 *
 *     shf_archive *archive;
 *     uint64_t position;
 *     if (shf_archive_open(&archive, "images.zip", NULL, &error) == SHF_OK &&
 *         shf_archive_find(archive, "img_000.png", SHF_STRLEN, &position, &error) == SHF_OK) {
 *         uint64_t size = shf_archive_info(archive, position, SHF_MEMBER_SIZE);
 *         void *png = malloc(size);
 *         shf_archive_read(archive, position, png, size, &error);
 *     }
 *
 * ZIP members may be stored, deflated, or compressed with bzip2, LZMA, zstd or xz; every read
 * checks the CRC, and the member's own header against the directory. A compressed tar is
 * decompressed into memory when it is opened, as far as the option "memory" allows. Member names
 * are bytes, and not paths: nothing here opens or writes a file of that name.
 *
 * Archives in 7z, cpio, RAR and ISO 9660 are read through libarchive (shf_feature "libarchive"),
 * which is loaded when the first of them is opened. They prove less than a ZIP file does, and a
 * read walks to its member from the start of the archive, or from a member that was read before it
 * (docs/other-archives.md). The SHF_MEMBER_OFFSET of a member is its number. */
typedef struct shf_archive shf_archive;

/* Opens the archive at `url` (a path, file:, "-", pipe:, http:; not expanded, but ~/ is the folder
 * HOME) and lists its members. What cannot be read at any offset, such as a pipe, is taken into
 * memory. `options` may be NULL.
 * Owns: *out is owned, release with shf_archive_close.
 * Errors: FORMAT, TRUNCATED, INTEGRITY, AMBIGUOUS, UNSUPPORTED (the URL, or the file as a whole;
 * what is wrong with one member is reported when it is read), CHANGED, LIMIT, IO, CHILD, USAGE,
 * NET_TRANSIENT, NET_PERMANENT, THROTTLED, AUTH, TLS, TIMEOUT, CANCELLED, NOMEM. Since: 0.1 */
int32_t shf_archive_open(shf_archive **out, const char *url, const shf_options *options,
                         shf_error *error);

/* Opens the archive in the `size` bytes at `data`, which must not change until it is closed.
 * `options` may be NULL.
 * Owns: *out is owned, release with shf_archive_close.
 * Errors: FORMAT, TRUNCATED, INTEGRITY, AMBIGUOUS, UNSUPPORTED, LIMIT (the archive as a whole);
 * USAGE, CANCELLED, TIMEOUT, NOMEM. Since: 0.1 */
int32_t shf_archive_open_memory(shf_archive **out, const void *data, size_t size,
                                const shf_options *options, shf_error *error);

/* Frees an archive. Must not run at the same time as another call on it. Since: 0.1 */
void shf_archive_close(shf_archive *archive);

/* The number of members; positions are below it. Since: 0.1 */
uint64_t shf_archive_member_count(const shf_archive *archive);

/* The position of the member called `name` (`name_size` bytes or SHF_STRLEN, compared byte for
 * byte).
 * Errors: NOT_FOUND; AMBIGUOUS when several members have the name (the message says where); NOMEM.
 * Since: 0.1 */
int32_t shf_archive_find(const shf_archive *archive, const char *name, size_t name_size,
                         uint64_t *position, shf_error *error);

/* The name of a member, exactly as the archive has it.
 * Owns: *out is borrowed from the archive. Errors: NOT_FOUND past the last one. Since: 0.1 */
int32_t shf_archive_name(const shf_archive *archive, uint64_t position, shf_bytes *out);

enum {
    SHF_MEMBER_SIZE = 0,   /* bytes                                                              */
    SHF_MEMBER_STORED = 1, /* bytes of its data in the (decompressed) archive                    */
    SHF_MEMBER_METHOD = 2, /* 0 stored, 8 deflate, 12 bzip2, 14 LZMA, 93 zstd, 95 xz             */
    SHF_MEMBER_CRC32 = 3,  /* as the archive has it; UINT64_MAX: it has none, as a tar           */
    SHF_MEMBER_OFFSET = 4, /* of its first header in the (decompressed) archive; or its number   */
    SHF_MEMBER_KIND = 5,   /* one of SHF_KIND_*                                                  */
    SHF_MEMBER_MODE = 6,   /* permission bits, 07777                                             */
    SHF_MEMBER_UID = 7,    /* number of the owner                                                */
    SHF_MEMBER_GID = 8,    /* number of the group                                                */
    SHF_MEMBER_MTIME = 9,  /* nanoseconds since 1970 (an int64_t); a DOS time is taken for UTC   */
    SHF_MEMBER_VERIFIED = 10, /* of members in sequence, see there                               */
    SHF_MEMBER_LINK = 32,  /* text: what a link in a tar points at; in a ZIP that is its data    */
    SHF_MEMBER_USER = 33,  /* text: name of the owner                                            */
    SHF_MEMBER_GROUP = 34  /* text: name of the group                                            */
};

enum {
    SHF_KIND_FILE = 0,
    SHF_KIND_DIRECTORY = 1,
    SHF_KIND_HARD_LINK = 2,
    SHF_KIND_SYMBOLIC_LINK = 3,
    SHF_KIND_SPECIAL = 4,      /* device, FIFO, volume label                                     */
    SHF_KIND_SPARSE = 5,       /* reading it is UNSUPPORTED, as are the next two                 */
    SHF_KIND_MULTI_VOLUME = 6, /* a piece of a member that began on another volume               */
    SHF_KIND_UNKNOWN = 7
};

/* Property `what` (SHF_MEMBER_SIZE to SHF_MEMBER_KIND) of a member; UINT64_MAX for any other value
 * and past the last member. Since: 0.1 */
uint64_t shf_archive_info(const shf_archive *archive, uint64_t position, int32_t what);

/* Reads a member, SHF_MEMBER_SIZE bytes, into `buffer`, which has room for `capacity` bytes. When
 * the call fails the contents of `buffer` are undefined. What the archive says of the member is
 * checked before `capacity`: with a capacity of 0 the error is USAGE when the member may be read,
 * and else the reason why not. So a program can ask before it allocates a size that an archive only
 * claims.
 * Errors: USAGE (no such position, buffer too small); FORMAT, INTEGRITY, AMBIGUOUS, UNSUPPORTED,
 * LIMIT (this member); TRUNCATED, CHANGED (the file is not the one that was opened); IO, NOMEM.
 * Since: 0.1 */
int32_t shf_archive_read(const shf_archive *archive, uint64_t position, void *buffer,
                         size_t capacity, shf_error *error);

/* Reads `count` members, in the order of the file and with several threads (option "threads")
 * where that pays. buffers[i] has room for SHF_MEMBER_SIZE of positions[i]. All are tried: on
 * failure the error is that of the first bad one in the list.
 * Errors: USAGE (no such position); FORMAT, INTEGRITY, AMBIGUOUS, UNSUPPORTED, LIMIT (a member);
 * TRUNCATED, CHANGED (the file is not the one that was opened); IO, NOMEM. Since: 0.1 */
int32_t shf_archive_read_many(const shf_archive *archive, const uint64_t *positions, size_t count,
                              void *const *buffers, shf_error *error);

/* The bytes of a member that are in memory already: of a stored member of an archive in memory or
 * of a local file with map=true, or of any member of a compressed tar. They are checked as by
 * shf_archive_read.
 * Owns: *out is borrowed from the archive.
 * Errors: UNSUPPORTED when they are not in memory, or this member cannot be read; USAGE (no such
 * position); FORMAT, INTEGRITY, AMBIGUOUS, LIMIT (this member); with map=true CHANGED, TRUNCATED
 * and IO; NOMEM. Since: 0.1 */
int32_t shf_archive_view(const shf_archive *archive, uint64_t position, shf_bytes *out,
                         shf_error *error);

/* ---- Members in sequence --------------------------------------------------------------------- */

/* The members of one archive from front to back, as they lie in it: all of them, with
 * duplicates, directories, links and devices, names exactly as they are. Nothing is grouped or left
 * out.
 *
 *     shf_members *members;
 *     shf_bytes name;
 *     size_t size;
 *     int32_t rc = shf_members_open(&members, "pipe:zcat old.tar.gz", NULL, &error);
 *     while (rc == SHF_OK && (rc = shf_members_next(members, &name, &error)) == SHF_OK)
 *         do {
 *             rc = shf_members_read(members, buffer, sizeof buffer, &size, &error);
 *             use(name.data, name.size, buffer, size);
 *         } while (rc == SHF_OK && size > 0);
 *     if (rc != SHF_END) fprintf(stderr, "%s\n", error.message);
 *     shf_members_close(members);
 *
 * A member may be of any size: its bytes go to the caller's buffer, and the memory that is held
 * does not grow with it. What is no tar and cannot be read at any offset, such as a ZIP file from a
 * pipe, is taken into memory, as far as the option "memory" allows.
 *
 * The options are those of an archive, without "threads" and "max_member". "timeout" and the
 * interrupt function end every call that waits: shf_members_next and shf_members_read then return
 * TIMEOUT or CANCELLED, and when they are called again they continue; no byte is lost. Every other
 * error repeats. What is wrong with the data of one member of what is no tar (FORMAT, INTEGRITY,
 * AMBIGUOUS, UNSUPPORTED, LIMIT) repeats until shf_members_next moves to the next one.
 * With the option "resync" damage (FORMAT, TRUNCATED, INTEGRITY, AMBIGUOUS, UNSUPPORTED, LIMIT) is
 * reported once by shf_members_next, whose next call continues: in a tar at the next block of 512
 * bytes that is a header, in a ZIP file with the next entry. The bytes from the offset of the error
 * to SHF_MEMBER_OFFSET of the next member are lost; without a next member, those up to the end. The
 * name of the first member behind them may be a shortened one, whose long name was lost. A ZIP file
 * without a sound directory is read by its local headers from its start on, as far as each one
 * follows the data of the one before it. Damaged compressed data ends the members. No bytes wait
 * for their checksum: SHF_MEMBER_VERIFIED says which ones are covered by those that have held.
 * Threads: one at a time, except for shf_members_cancel; a second concurrent call gets USAGE.
 * Fork: a sequence belongs to the process that opened it; in a forked child its calls return
 * FORKED, and shf_members_close leaves the parent's sequence as it is. */
typedef struct shf_members shf_members;

/* Opens the file at `url` (a path, file:, "-", pipe:, http:; not expanded, but ~/ is the folder
 * HOME). Faults in its bytes are reported by shf_members_next. `options` may be NULL; they are
 * copied.
 * Owns: *out is owned, release with shf_members_close.
 * Errors: IO, USAGE (URL, refused pipe, standard input is in use), UNSUPPORTED (scheme of the
 * URL), NET_TRANSIENT, NET_PERMANENT, THROTTLED, AUTH, TLS, CHANGED, TIMEOUT, CANCELLED, NOMEM.
 * Since: 0.1 */
int32_t shf_members_open(shf_members **out, const char *url, const shf_options *options,
                         shf_error *error);

/* Moves to the next member, past what was not read of the one before. `name` may be NULL.
 * Owns: *name is borrowed until the next call of this function.
 * Errors: SHF_END after the last member, when the end of the file is proven; FORMAT, TRUNCATED,
 * INTEGRITY, AMBIGUOUS, UNSUPPORTED (the file, or headers of members), CHANGED, LIMIT, IO, CHILD;
 * TIMEOUT (call again), CANCELLED, FORKED, USAGE, NOMEM. Since: 0.1 */
int32_t shf_members_next(shf_members *members, shf_bytes *name, shf_error *error);

/* Property `what` of the current member: SHF_MEMBER_SIZE to SHF_MEMBER_MTIME. UINT64_MAX when the
 * archive does not say, for any other value, and when there is no current member.
 * SHF_MEMBER_VERIFIED needs none: of a compressed tar, how many bytes from the start of the
 * decompressed one are covered by checks that have held so far, or have no check; UINT64_MAX for
 * what is not compressed as a whole. Since: 0.1 */
uint64_t shf_members_info(const shf_members *members, int32_t what);

/* A text about the current member, SHF_MEMBER_LINK, SHF_MEMBER_USER or SHF_MEMBER_GROUP, bytes as
 * the archive has them.
 * Owns: *out is borrowed until the next call of shf_members_next.
 * Errors: NOT_FOUND when it has none, and when there is no current member. Since: 0.1 */
int32_t shf_members_text(const shf_members *members, int32_t what, shf_bytes *out);

/* Moves the next bytes of the current member to `buffer`, which has room for `capacity` of them, at
 * least one. *size is how many they are, which may be fewer than fit. It is 0 at the end of the
 * member, when all checks that the archive has for it have held: before that, bytes may be wrong.
 * The last bytes of a ZIP entry are delivered after its checks have held. A compressed entry of at
 * most 1 MiB is verified before its first byte is delivered.
 * Errors: FORMAT, TRUNCATED, INTEGRITY, AMBIGUOUS, UNSUPPORTED (also the data of SHF_KIND_SPARSE
 * and the two kinds after it, which shf_members_next passes over), CHANGED, LIMIT, IO, CHILD;
 * TIMEOUT (call again), CANCELLED, FORKED, NOMEM; USAGE (no current member, no room). Since: 0.1 */
int32_t shf_members_read(shf_members *members, void *buffer, size_t capacity, size_t *size,
                         shf_error *error);

/* Makes waiting and future calls return CANCELLED, within 100 ms. Does not free.
 * Threads: any. Since: 0.1 */
void shf_members_cancel(shf_members *members);

/* Ends the sequence and its child processes, and frees its memory. Must not run at the same time as
 * another call on it. Since: 0.1 */
void shf_members_close(shf_members *members);

/* ---- Datasets -------------------------------------------------------------------------------- */

/* The samples of many shards, by number: tars that are not compressed, and what is no tar. Sample
 * numbers follow the list of shards and the order in each file. A dataset does not change once it
 * is open and takes no locks: any number of threads may use it at once, and so may child processes
 * that were forked after it was opened.
 *
 * An index file beside each tar (SHARD.sfidx) says where its samples are, so that a shard is walked
 * once; docs/index-format.md describes the file. It is used only if it matches this shard (size,
 * modification time, first and last 64 KiB), and every read verifies the header before each field.
 * See the options "index" and "index_dir".
 *
 * The index of a compressed tar also says where its decompression can start. A read decompresses
 * from the last such place before the sample, and compares the checksum of the stretch of at most
 * 8 MiB that the sample is in; the last stretches stay in memory, up to a quarter of the option
 * "memory". Data that was compressed in one frame of zstd, xz, lz4 or bzip2 has one place to start,
 * its first byte.
 *
 * A ZIP file has its directory. The first read of a sample also compares the local headers of what
 * lies between it and its neighbours, so that no field is missed that the directory has under a
 * wrong name. When the directory has another order than the file, shf_dataset_open compares all. */
typedef struct shf_dataset shf_dataset;

/* Opens a dataset over the shards that the URLs name, all of which must be files, or objects that a
 * server gives in ranges. Indexes that are missing or of another version of their shard are made,
 * as the option "index" says; those of remote shards are in "index_dir" or in the folder of caches.
 * The log function gets SHF_LOG_INFO for each shard that is walked and SHF_LOG_WARNING for each
 * index that is not used. `options` may be NULL.
 * Owns: *out is owned, release with shf_dataset_close.
 * Errors: USAGE (option, URL), IO (list file, no match); a bad shard; with index=require NOT_FOUND,
 * CHANGED, FORMAT and INTEGRITY of an index, and USAGE when it was made under options that accept
 * more than these do; CANCELLED, TIMEOUT, NOMEM.
 * Since: 0.1 */
int32_t shf_dataset_open(shf_dataset **out, const char *const *urls, size_t url_count,
                         const shf_options *options, shf_error *error);

/* Frees a dataset. Must not run at the same time as another call on it. Samples stay. Since: 0.1 */
void shf_dataset_close(shf_dataset *dataset);

/* The number of samples. Since: 0.1 */
uint64_t shf_dataset_sample_count(const shf_dataset *dataset);

/* Reads sample `number`. Its epoch and lane (shf_sample_info) are 0.
 * With the option "fields" the sample has only the fields that the option names, perhaps none.
 * Owns: *out is owned, release with shf_sample_unref.
 * Errors: USAGE (no such number); a bad shard, with CHANGED and TRUNCATED when the file is not the
 * one that was opened; NOMEM. Since: 0.1 */
int32_t shf_dataset_get(const shf_dataset *dataset, uint64_t number, shf_sample **out,
                        shf_error *error);

/* Reads `count` samples, in the order of the files and with several threads (option "threads")
 * where that pays. out[i] becomes sample numbers[i].
 * Owns: each out[i] is owned, release with shf_sample_unref. On failure all are NULL, and the error
 * is that of the first bad one in the list.
 * Errors: USAGE (no such number); a bad shard; NOMEM. Since: 0.1 */
int32_t shf_dataset_get_many(const shf_dataset *dataset, const uint64_t *numbers, size_t count,
                             shf_sample **out, shf_error *error);

/* Reads `count` samples, at least one, and decodes them into a batch, as shf_batch_make does with
 * `options`; NULL: with those of the dataset. Samples by number have no epoch: random choices are
 * keyed by the option "epoch", so that another number of it gives other choices.
 * Owns: *out is owned, release with shf_batch_unref.
 * Errors: USAGE (no such number, no number, bad option "decode"); a bad shard; FORMAT, UNSUPPORTED,
 * LIMIT of a field that cannot be decoded; NOMEM. Since: 0.1 */
int32_t shf_dataset_get_batch(const shf_dataset *dataset, const uint64_t *numbers, size_t count,
                              const shf_options *options, shf_batch **out, shf_error *error);

/* The number of the sample with this key (`key_size` bytes or SHF_STRLEN). The first call makes a
 * table of all keys: 8 to 22 bytes for each.
 * Errors: NOT_FOUND; AMBIGUOUS when several samples have the key (the message says where); LIMIT
 * when the table takes more than the option "memory"; NOMEM. Since: 0.1 */
int32_t shf_dataset_find(const shf_dataset *dataset, const char *key, size_t key_size,
                         uint64_t *number, shf_error *error);

/* Which shard of the expanded list sample `number` is in, and the number of that shard's first
 * sample. Either output may be NULL. Errors: NOT_FOUND past the last sample. Since: 0.1 */
int32_t shf_dataset_shard(const shf_dataset *dataset, uint64_t number, uint64_t *shard,
                          uint64_t *first);

/* Makes the index of the tar at `url` (not expanded, but ~/ is the folder HOME, as in the paths
 * below and the option "index_dir") and saves it where a dataset looks for it.
 * Errors: USAGE (option, URL); a bad shard; UNSUPPORTED for what is no tar; IO,
 * NOSPACE when the index cannot be saved; CANCELLED, TIMEOUT, NOMEM. Since: 0.1 */
int32_t shf_index_build(const char *url, const shf_options *options, shf_error *error);

/* Index files of other tools. */
enum {
    SHF_INDEX_DALI_1_0 = 0, /* size before offset; DALI reads the two below. Read: also rocAL's   */
    SHF_INDEX_DALI_1_1 = 1, /* without names of members                                           */
    SHF_INDEX_DALI_1_2 = 2, /* what wds2idx writes                                                */
    SHF_INDEX_ENERGON = 3,  /* SHARD.tar.idx of Megatron-Energon                                  */
    SHF_INDEX_WIDS = 4      /* JSON list of shards of wids                                        */
};

/* Writes the index that another tool needs into the file `path`, which appears whole or not at
 * all. The URLs are expanded; DALI and Energon have one index for each shard, wids one for all. A
 * shard is a plain tar; for wids also a ZIP file. The index is the one that the tool's own indexer
 * would write, but is right for GNU long names too. In shards with hidden files, files without a
 * dot, or names between __ and __ it has the samples that the tool sees, not those of a dataset. An
 * index of wids names shards in its own folder by relative paths, and has no md5sum.
 * Errors: USAGE (option, URL, another number of shards than one, no file); a bad shard; UNSUPPORTED
 * for names that the format cannot hold (DALI: blanks, nothing after the dot; wids: not UTF-8, one
 * of ?#;), for a compressed tar, and for a ZIP file; IO, NOSPACE when the file cannot be written;
 * CANCELLED, TIMEOUT, NOMEM. Since: 0.1 */
int32_t shf_index_export(const char *const *urls, size_t url_count, int32_t format,
                         const char *path, const shf_options *options, shf_error *error);

/* Takes over the index of another tool in the file `path`: makes the index of the tar at `url`
 * (expanded; one shard) as shf_index_build does, and saves it when the other index says the same of
 * every sample. The imported file is only compared, never trusted. It may have the samples as a
 * dataset has them, or as its own tool sees them. The version of a DALI file is read from the file,
 * regardless of which of the three `format` names. An index of wids names its shards: `url` is
 * NULL, and the shards are local files, relative to the folder of the index. When one of them is
 * refused, the indexes of those before it are already saved.
 * Errors: USAGE (option, URL, a pipe in the index); a bad shard; FORMAT when the index is
 * malformed, or says something else of a sample than the shard does; CHANGED when it is of another
 * number of samples or another size; UNSUPPORTED (version, a compressed tar, shards on the
 * network); LIMIT (a file above 1 GiB); IO, NOSPACE when the index cannot be saved; CANCELLED,
 * TIMEOUT, NOMEM. Since: 0.1 */
int32_t shf_index_import(const char *url, int32_t format, const char *path,
                         const shf_options *options, shf_error *error);

/* ---- Writing shards -------------------------------------------------------------------------- */

/* Samples in, shards out. A writer makes tar or ZIP files whose names come from a pattern
 * or from a function, and begins the next one where the options "max_samples" and "max_bytes" say:
 *
 *     shf_options_set_all(options, "max_samples=10000,write_index=true", &error);
 *     shf_writer_open(&writer, "train-%06d.tar", options, &error);
 *     shf_writer_begin(writer, "0001", SHF_STRLEN, &error);
 *     shf_writer_field(writer, "jpg", SHF_STRLEN, data, size, &error);
 *     shf_writer_field(writer, "cls", SHF_STRLEN, "7", 1, &error);
 *     shf_writer_end(writer, &error);
 *     ...
 *     rc = shf_writer_finish(writer, &error);
 *     shf_writer_close(writer);
 *
 * A shard appears under its name when it is whole, then its index, and not before: until then its
 * file is in the same folder, with a name that begins with '.' and ends in ".partial". Nothing is
 * overwritten (option "overwrite"), and a shard that is there survives a crash of the machine
 * (option "durable"). shf_writer_finish alone publishes the last shard: a writer that is closed
 * without it discards what is not published. Without samples there is no shard.
 *
 * In an object store (s3://, gs://, az://, abfss://) a shard appears whole too: parts of large ones
 * are uploaded while it is written ("connections", "memory"), its size and checksums are compared,
 * and a writer that is closed aborts the upload. The index is put beside the shard. pipe:COMMAND
 * starts a shell command for each shard, which reads it from its standard input and must end with
 * status 0. What a command has done cannot be taken back: one whose writer is closed is ended.
 * zpush://HOST:PORT and zrpub:// connect, zrpush:// and zpub:// bind: each sample is sent as a
 * message at once, and the end of the shard as an end mark, to one receiver or all subscribers. A
 * call waits while receivers have no room or more than "memory" waits for them, a publisher for its
 * first subscriber, and shf_writer_finish until the systems of receivers have all; over ipc, until
 * they have read it. IO when none of them takes anything for "pipe_timeout", and when a receiver of
 * zpush or zrpush goes away before the end. A writer that is closed drops what is not sent.
 *
 * The same samples make the same bytes, on every machine and by any number of threads, where the
 * compression library has the same version: headers have no times, owners and modes but those
 * that are the same for all (0, 0, 0644). Compressed shards
 * consist of pieces that are decompressed alone (gzip members of 1 MiB, zstd frames of 4 MiB with a
 * seek table, xz streams of 8 MiB, lz4 frames of 4 MiB, bzip2 streams of 900 kB).
 *
 * A writer belongs to the process that opened it and serves one thread at a time. It starts threads
 * of its own when the first shard is compressed or published.
 *
 * Errors of a sample, USAGE and those of a file that was to become a field, drop that sample; the
 * writer continues with the next one. But what shf_writer_end finds wrong with a file ends a writer
 * of compressed shards, or to what is no file, which cannot take back what was written. After any
 * other error all calls return it again. The option "timeout" is not for writers. */
typedef struct shf_writer shf_writer;

/* Opens a writer. `pattern` is a path, a file:// URL, "-" for standard output, pipe:COMMAND, or the
 * URL of an object in a store, with at most one number of the shard, %d or %0Nd, and %% for a
 * percent sign; it is needed where "max_samples" or "max_bytes" is set. It never reaches printf.
 * A path that begins with ~/ is in the folder HOME.
 * NULL: shf_options_set_shard_name has set what names the shards. Creates nothing.
 * Owns: *out, release with shf_writer_close. Errors: USAGE. Since: 0.1 */
int32_t shf_writer_open(shf_writer **out, const char *pattern, const shf_options *options,
                        shf_error *error);

/* Begins a sample with this key of `size` bytes (SHF_STRLEN: up to its NUL). A sample that was not
 * ended is dropped. Names that readers would take for something else are refused: an empty key, a
 * dot in its last component, NUL, "..", a leading slash (see the option "unsafe_names").
 * Errors: USAGE. Since: 0.1 */
int32_t shf_writer_begin(shf_writer *writer, const char *key, size_t size, shf_error *error);

/* Adds a field of `size` bytes, which are copied. `name` has `name_size` bytes (or SHF_STRLEN);
 * `data` may be NULL when size is 0. Fields lie in the shard in the order in which they were added.
 * Errors: USAGE, NOMEM. Since: 0.1 */
int32_t shf_writer_field(shf_writer *writer, const char *name, size_t name_size, const void *data,
                         size_t size, shf_error *error);

/* The same without a copy: the bytes are borrowed from the caller until shf_writer_end returns or
 * the sample is dropped, and must stay as they are. Large ones are written from where they lie.
 * Errors: USAGE, NOMEM. Since: 0.1 */
int32_t shf_writer_field_borrowed(shf_writer *writer, const char *name, size_t name_size,
                                  const void *data, size_t size, shf_error *error);

/* Adds the bytes of the regular file at `path` as a field. A file of more than 1 MiB (64 MiB for
 * a ZIP file, where it is then stored) is read by shf_writer_end. CHANGED: it was written to
 * meanwhile. Errors: USAGE, IO, CHANGED, NOMEM. Since: 0.1 */
int32_t shf_writer_field_file(shf_writer *writer, const char *name, size_t name_size,
                              const char *path, shf_error *error);

/* Adds all bytes of what is at `url` as a field, at most as many as the option "memory" says. A URL
 * is what a shard may be at (see "URLs"), not expanded: http:, s3:, pipe:, "-", or what the program
 * serves. Errors: USAGE, LIMIT, IO, CHILD, CHANGED, NET_TRANSIENT, NET_PERMANENT, THROTTLED, AUTH,
 * TLS, NOMEM, CANCELLED. Since: 0.1 */
int32_t shf_writer_field_url(shf_writer *writer, const char *name, size_t name_size,
                             const char *url, shf_error *error);

/* Writes the sample that was begun. Ends the shard before it, when the sample does not fit into it.
 * Errors: USAGE (no field, a key that the shard has), CHANGED, IO, NOSPACE, NOMEM, CANCELLED; CHILD
 * of a command; of a store AUTH, TLS, NET_TRANSIENT, NET_PERMANENT, THROTTLED, LIMIT. Since: 0.1 */
int32_t shf_writer_end(shf_writer *writer, shf_error *error);

/* Writes a sample of a stream, block or data set, with all of its fields, as it is.
 * Errors: as shf_writer_begin, shf_writer_field and shf_writer_end. Since: 0.1 */
int32_t shf_writer_write(shf_writer *writer, const shf_sample *sample, shf_error *error);

/* Ends the shard that is being written, if there is one, so that the next sample begins another.
 * It is published by a thread of the writer: shf_writer_shards says when.
 * Errors: as shf_writer_finish, of a shard before it. Since: 0.1 */
int32_t shf_writer_next_shard(shf_writer *writer, shf_error *error);

/* Hands what was written so far to the system, and with `durable` 1 to the disk: after a crash the
 * samples are in the ".partial" file, whole, and all shards that were ended are published. A
 * compressed shard gets a piece that ends here. Stores and commands keep nothing of a shard that is
 * not ended: there it holds for those that were ended alone (shf_writer_next_shard before it).
 * Errors: as shf_writer_finish. Since: 0.1 */
int32_t shf_writer_flush(shf_writer *writer, int32_t durable, shf_error *error);

/* Ends the last shard, and returns when all shards are published. A sample that was not ended is
 * dropped. The writer can then only be asked for its shards, and closed. After an error of the
 * writer it publishes the shards that were ended before, and returns that error.
 * Errors: IO (os_error EEXIST: a shard of that name appeared meanwhile), NOSPACE, NOMEM, CANCELLED;
 * CHILD of a command; of a store AUTH, TLS, NET_TRANSIENT, NET_PERMANENT, THROTTLED, INTEGRITY (it
 * has another object than was written). Since: 0.1 */
int32_t shf_writer_finish(shf_writer *writer, shf_error *error);

/* The shards that are published so far. A program that does something with each of them asks after
 * its calls on the writer; those of shf_writer_finish are the last ones. Since: 0.1 */
uint64_t shf_writer_shards(shf_writer *writer);

enum {
    SHF_SHARD_SAMPLES = 0, /* in it                                                              */
    SHF_SHARD_BYTES = 1,   /* of its file                                                        */
    SHF_SHARD_PAYLOAD = 2, /* of all of its fields, before compression, bytes                    */
    SHF_SHARD_URL = 0,     /* its name, by the pattern                                           */
    SHF_SHARD_DIGEST = 1,  /* XXH3-128 of its file, in 32 hexadecimal digits, as xxh128sum       */
    SHF_SHARD_INDEX = 2,   /* path, or URL, of its index                                         */
    SHF_SHARD_TOKEN = 3    /* for shf_publish_prepared, with the option "prepare"                */
};

/* Number `what` (SHF_SHARD_SAMPLES, _BYTES, _PAYLOAD) of published shard `index`, which counts from
 * 0. UINT64_MAX for an unknown one. Since: 0.1 */
uint64_t shf_writer_shard_info(shf_writer *writer, uint64_t index, int32_t what);

/* Text `what` (SHF_SHARD_URL, _DIGEST, _INDEX, _TOKEN) of published shard `index`.
 * Owns: *out is borrowed from the writer until its next call. Errors: NOT_FOUND (no such shard, or
 * it has no index), USAGE. Since: 0.1 */
int32_t shf_writer_shard_text(shf_writer *writer, uint64_t index, int32_t what, shf_bytes *out);

/* Shards of many processes appear together when their writers have the option "prepare". Such a
 * writer brings each shard, and its index, to the place where it is to be, and publishes nothing:
 * an upload that is not completed, or a file whose name begins with '.' and ends in ".partial".
 * What it says of published shards, it says of these. Each has a token, a text of at most 4 MiB
 * without credentials, which outlives the writer and is for any process on any machine that reaches
 * the same place. Who has all tokens publishes all shards, or discards them. */

/* Publishes the shard of a token, then its index; that of `options` is what its writer had: how to
 * reach the place, "overwrite" and "durable". A shard that was published before is left as it is,
 * so that this can be called again after an error. Any thread; several at once are faster.
 * Errors: USAGE (no token), IO (os_error EEXIST: another shard has the name; the file was
 * discarded), NOSPACE, NOMEM, TIMEOUT, CANCELLED; of a store AUTH, TLS, NET_TRANSIENT,
 * NET_PERMANENT (also: the upload was discarded), THROTTLED, INTEGRITY. Since: 0.1 */
int32_t shf_publish_prepared(const char *token, const shf_options *options, shf_error *error);

/* Discards the shard of a token. One that was published, or discarded, is left as it is.
 * Errors: as shf_publish_prepared, without those of a name that is taken. Since: 0.1 */
int32_t shf_discard_prepared(const char *token, const shf_options *options, shf_error *error);

/* Discards what writers have left in a store that died: all uploads and prepared shards that have
 * not appeared, also those of writers that are at work, with names of `pattern`, a URL in which %d
 * and %0Nd stand for digits, and their indexes. Blocks of az:// URLs stay: they can only be left
 * for Azure to remove, after a week. Paths are left as they are.
 * Errors: as shf_discard_prepared; LIMIT: more than "max_shards". Since: 0.1 */
int32_t shf_discard_left(const char *pattern, const shf_options *options, shf_error *error);

/* Ends what the writer waits for: that call, and all later ones, return CANCELLED. Any thread,
 * before shf_writer_close. Since: 0.1 */
void shf_writer_cancel(shf_writer *writer);

/* Closes the writer and discards what is not published: of a shard that is on its way to its name,
 * either it is published or nothing is. In a forked child it leaves the parent's files as they are.
 * Since: 0.1 */
void shf_writer_close(shf_writer *writer);

/* ---- Cache: shards of the network on a local disk -------------------------------------------- */

/* Shards at URLs of the network are kept in the folder of the option "cache" as they are read, in
 * blocks. These functions look after that folder: the one of the option or, when it is empty, of
 * SHARDFEED_CACHE in the environment. Readers and other processes may use it meanwhile. They
 * concern the shards at `urls` (not expanded; one that ends in "/" means all below it; none: all)
 * that were not used for `older_than` seconds. One report has a row for each version of a shard,
 * in the order of URLs. */
typedef struct shf_cache_report shf_cache_report;

/* What a row says. */
enum {
    SHF_CACHE_URL = 0,     /* text: without secrets; empty where nothing in the folder says it   */
    SHF_CACHE_VERSION = 1, /* text: what the server calls this version, such as an ETag          */
    SHF_CACHE_SIZE = 2,    /* number: bytes of the shard                                         */
    SHF_CACHE_DATA = 3,    /* number: bytes of it that are in the cache                          */
    SHF_CACHE_DISK = 4,    /* number: bytes of its files                                         */
    SHF_CACHE_AGE = 5,     /* number: nanoseconds since it was used                              */
    SHF_CACHE_FAULTS = 6   /* number: files that shf_cache_verify found damaged, and removed     */
};

/* Says what is there. Owns: *out, release with shf_cache_report_free.
 * Errors: USAGE (option, no folder, a folder that is not this user's alone); NOT_FOUND (no cache
 * there); IO; CANCELLED, TIMEOUT, NOMEM. Since: 0.1 */
int32_t shf_cache_list(shf_cache_report **out, const char *const *urls, size_t url_count,
                       uint64_t older_than, const shf_options *options, shf_error *error);

/* Reads all of it, compares checksums, and removes blocks that are damaged. They are fetched again
 * when they are wanted. Owns and Errors: as shf_cache_list. Since: 0.1 */
int32_t shf_cache_verify(shf_cache_report **out, const char *const *urls, size_t url_count,
                         uint64_t older_than, const shf_options *options, shf_error *error);

/* Removes it, and says what was removed; without URLs index files of the same age too. Readers that
 * have it open continue. Owns and Errors: as shf_cache_list. Since: 0.1 */
int32_t shf_cache_clear(shf_cache_report **out, const char *const *urls, size_t url_count,
                        uint64_t older_than, const shf_options *options, shf_error *error);

/* Since: 0.1 */
void shf_cache_report_free(shf_cache_report *report);

/* The number of rows. Since: 0.1 */
size_t shf_cache_count(const shf_cache_report *report);

/* A text of row `number`. Owns: borrowed from the report. Errors: NOT_FOUND. Since: 0.1 */
int32_t shf_cache_text(const shf_cache_report *report, size_t number, int32_t what, shf_bytes *out);

/* A number of row `number`; UINT64_MAX when there is no such row or number. Since: 0.1 */
uint64_t shf_cache_number(const shf_cache_report *report, size_t number, int32_t what);

/* ---- Feeds ----------------------------------------------------------------------------------- */

/* A server that reads, shuffles and decodes shards for streams on other machines: those that are
 * opened with "feed://HOST:PORT", one URL for each server. A stream of a feed gives the same
 * samples in the same order as one that reads the shards itself, however many servers there are and
 * whichever of them end, and its saved states are the same. */
typedef struct shf_feed shf_feed;

/* Feeds the samples of the shards that the URLs name or, with the option "batch" (any number but
 * 0), rows that are decoded as the option "decode" says. Which samples come when is for the
 * consumers to say: the server obeys their options of the groups "order", "consumer", "selection",
 * "errors" and "leniency", and its own of the others. `address` is "tcp://HOST:PORT"; HOST may be
 * *, and PORT 0 for any. Opens no shard. `options` may be NULL; they are copied.
 * Owns: *out is owned, release with shf_feed_close.
 * Errors: USAGE (option, URL, address), IO (address in use, list file), UNSUPPORTED (this build or
 * machine has no ZeroMQ), LIMIT, TIMEOUT, CANCELLED, NOMEM. Since: 0.1 */
int32_t shf_feed_open(shf_feed **out, const char *const *urls, size_t url_count,
                      const char *address, const shf_options *options, shf_error *error);

/* Makes a pair of keys (CURVE of ZeroMQ, in Z85), with which a feed is encrypted: the secret one is
 * the option "feed_secret_key" of its servers, the public one "feed_server_key" of the streams.
 * `public_key` and `secret_key` get 41 bytes each, with the NUL.
 * Errors: USAGE (NULL), UNSUPPORTED (no ZeroMQ, or one without encryption). Since: 0.1 */
int32_t shf_feed_make_keys(char *public_key, char *secret_key, shf_error *error);

/* Serves, until shf_feed_drain or shf_feed_stop is called. Once.
 * Errors: USAGE, IO, NOMEM. Since: 0.1 */
int32_t shf_feed_run(shf_feed *feed, shf_error *error);

/* Answers GET over HTTP at `address`, "HOST:PORT", from now on until the feed is closed: /metrics
 * has its numbers, and the counters of its lanes (SHF_STAT_*) added up, in the text format 0.0.4 of
 * Prometheus; /healthz is 200 while shf_feed_run serves, and 503 before that and when it drains.
 * HOST is an IP address or a name of this machine, * for all addresses, and left out (":9100")
 * loopback; PORT 0 is any. Anybody who can connect may read it. Once, before shf_feed_run.
 * Errors: USAGE (address, second call), IO (address in use), UNSUPPORTED (this build or machine has
 * no libmicrohttpd), LIMIT, NOMEM. Since: 0.1 */
int32_t shf_feed_http(shf_feed *feed, const char *address, shf_error *error);

/* Where that is, "http://HOST:PORT", with the port that was chosen; NULL without shf_feed_http.
 * Owns: borrowed from the feed. Since: 0.1 */
const char *shf_feed_http_address(const shf_feed *feed);

/* Where consumers find it on this machine, "feed://HOST:PORT", with the port that was chosen.
 * Owns: borrowed from the feed. NULL for NULL. Since: 0.1 */
const char *shf_feed_address(const shf_feed *feed);

/* Ends shf_feed_run once the consumers have taken their lanes to other servers, after 10 seconds at
 * most. Any thread, and signal handlers. Since: 0.1 */
void shf_feed_drain(shf_feed *feed);

/* Ends shf_feed_run at once. Any thread, and signal handlers. Since: 0.1 */
void shf_feed_stop(shf_feed *feed);

enum {
    SHF_FEED_CONSUMERS = 0, /* that are connected now                                             */
    SHF_FEED_LANES = 1,     /* that are read for them now                                         */
    SHF_FEED_SAMPLES = 2,   /* that were sent so far                                              */
    SHF_FEED_BYTES = 3,     /* of the messages with them, as they were sent: with feed_compression
                             * those that are left                                                */
    SHF_FEED_CREDIT = 4,    /* messages that may be sent now, because consumers asked for them    */
    SHF_FEED_REFUSED = 5,   /* messages of strangers and of consumers that were refused           */
    SHF_FEED_CREDIT_WAIT_NS = 6 /* time that lanes waited for their consumers to ask for more     */
};

/* A number of the feed; UINT64_MAX when there is no such number. Any thread. Since: 0.1 */
uint64_t shf_feed_count(const shf_feed *feed, int32_t what);

/* Releases the feed; shf_feed_run must have ended. NULL does nothing. Since: 0.1 */
void shf_feed_close(shf_feed *feed);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
