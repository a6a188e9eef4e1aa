#include "opener_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* In Python; see _opener.py and _tokenizer.py. */
int32_t python_tokenize(void *ctx, const shf_text *texts, size_t count, shf_tokens *tokens,
                        shf_error *error);
void python_tokenizer_release(void *ctx);
int32_t python_opener_open(void *ctx, const char *url, void **object, shf_error *error);
void python_opener_facts(void *object, uint32_t *flags, uint64_t *size, char *version);
int64_t python_opener_read(void *object, uint64_t offset, uint8_t *out, size_t size,
                           shf_error *error);
void python_opener_close(void *object);
void python_opener_release(void *ctx);

/* A thread that asks for an interpreter that ends is ended by it, or waits for ever. */
static atomic_int inside, ended;

static int enter(void) {
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&ended)) return 1;
    atomic_fetch_sub(&inside, 1);
    return 0;
}
static void leave(void) { atomic_fetch_sub(&inside, 1); }

static int32_t refuse(shf_error *error) {
    snprintf(error->message, sizeof error->message, "Python ends, and is called no more");
    return SHF_E_CANCELLED;
}

static int32_t open_url(void *ctx, const char *url, void **object, uint32_t *flags,
                        shf_error *error) {
    if (!enter()) return refuse(error);
    const int32_t code = python_opener_open(ctx, url, object, error);
    if (code == SHF_OK) python_opener_facts(*object, flags, NULL, NULL);
    leave();
    return code;
}

static int32_t size_of(void *object, uint64_t *size, shf_error *error) {
    if (!enter()) return refuse(error);
    python_opener_facts(object, NULL, size, NULL);
    leave();
    return SHF_OK;
}

static int32_t version_of(void *object, char *text, size_t room, shf_error *error) {
    (void)room;
    if (!enter()) return refuse(error);
    python_opener_facts(object, NULL, NULL, text);
    leave();
    return SHF_OK;
}

static int64_t read_at(void *object, uint64_t offset, uint8_t *out, size_t size,
                       shf_error *error) {
    if (!enter()) return refuse(error);
    const int64_t count = python_opener_read(object, offset, out, size, error);
    leave();
    return count;
}

static void close_object(void *object) {
    if (!enter()) return;
    python_opener_close(object);
    leave();
}

static void release(void *ctx) {
    if (!enter()) return;
    python_opener_release(ctx);
    leave();
}

/* The threads that were inside are not in the child. */
static void forget_threads(void) { atomic_store(&inside, 0); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_threads); }

static void prepare_for_forks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

int32_t python_set_opener(shf_options *options, void *ctx, shf_error *error) {
    prepare_for_forks();
    const shf_source source = {
        .struct_size = sizeof source,
        .open = open_url,
        .size = size_of,
        .version = version_of,
        .read_at = read_at,
        .close = close_object,
        .release = release,
    };
    return shf_options_set_source(options, "*", &source, ctx, error);
}

static int32_t tokenize(void *ctx, const shf_text *texts, size_t count, shf_tokens *tokens,
                        shf_error *error) {
    if (!enter()) return refuse(error);
    const int32_t code = python_tokenize(ctx, texts, count, tokens, error);
    leave();
    return code;
}

static void release_tokenizer(void *ctx) {
    if (!enter()) return;
    python_tokenizer_release(ctx);
    leave();
}

int32_t python_set_tokenizer(shf_options *options, void *ctx, shf_error *error) {
    prepare_for_forks();
    const shf_tokenizer tokenizer = {
        .struct_size = sizeof tokenizer,
        .tokenize = tokenize,
        .release = release_tokenizer,
    };
    return shf_options_set_tokenizer(options, &tokenizer, ctx, error);
}

void python_end_openers(void) { atomic_store(&ended, 1); }
int32_t python_inside_openers(void) { return atomic_load(&inside); }
