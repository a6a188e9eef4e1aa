/* Tokens that functions of the program make of texts, in rows of one length. */
#define _POSIX_C_SOURCE 200809L
#include "harness.h"
#include "tar_shards.h"

#include <pthread.h>

enum { SAMPLES = 50, LONGEST = 30, WIDTH = 7 };

/* What the functions were asked. */
typedef struct {
    pthread_mutex_t lock;
    int texts, released, failed;
    const char* bad; /* the text that it fails with */
    int adds_less, adds_more;
} tokenizer_log;

/* A token for each byte: its value. */
static int32_t tokenize(void* ctx, const shf_text* texts, size_t count, shf_tokens* tokens,
                        shf_error* error) {
    tokenizer_log* log = ctx;
    for (size_t i = 0; i < count; ++i) {
        if (log->bad && texts[i].text.size == strlen(log->bad) &&
            memcmp(texts[i].text.data, log->bad, texts[i].text.size) == 0) {
            snprintf(error->message, sizeof error->message, "no such text; help: write another");
            error->os_error = 1234;
            log->failed = 1;
            return SHF_E_TIMEOUT; /* which is FORMAT */
        }
        int32_t ids[LONGEST];
        for (size_t j = 0; j < texts[i].text.size; ++j) ids[j] = texts[i].text.data[j];
        const uint64_t size = texts[i].text.size;
        if (log->adds_less && i + 1 == count) break;
        const int32_t code = shf_tokens_add(tokens, ids, &size, 1, error);
        if (code != SHF_OK) return code;
        if (texts[i].key.size != 3 || texts[i].url.size == 0) return SHF_E_INTERNAL;
    }
    pthread_mutex_lock(&log->lock);
    log->texts += (int)count;
    pthread_mutex_unlock(&log->lock);
    const uint64_t none = 0;
    if (log->adds_more) shf_tokens_add(tokens, NULL, &none, 1, NULL); /* its failure is seen */
    return SHF_OK;
}

static void release(void* ctx) {
    ++((tokenizer_log*)ctx)->released;
}

/* Sample i: i % LONGEST bytes of text. */
static void write_texts(const char* name) {
    FILE* file = fopen(path_of(name), "wb");
    char member[64], text[LONGEST];
    for (int i = 0; i < SAMPLES; ++i) {
        snprintf(member, sizeof member, "k%02d.txt", i);
        for (int j = 0; j < i % LONGEST; ++j) text[j] = (char)(1 + (i * 31 + j) % 126);
        put_member(file, member, text, (size_t)(i % LONGEST));
    }
    static const char zeros[1024];
    fwrite(zeros, 1, sizeof zeros, file);
    fclose(file);
}

static shf_stream* open_texts(tokenizer_log* log, shf_options* options) {
    const shf_tokenizer tokenizer = {
        .struct_size = sizeof tokenizer, .tokenize = tokenize, .release = release};
    shf_error error;
    CHECK_OK(shf_options_set_tokenizer(options, &tokenizer, log, &error), &error);
    return open_stream("t.tar", options);
}

static void test_tokens_are_packed(void) {
    tokenizer_log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    shf_stream* stream =
        open_texts(&log, OPTIONS("batch", "2", "pack", "7", "decode", "txt", "seed", "1"));
    shf_error error;
    shf_batch* batch;
    int32_t rc;
    int sample = 0, place = 0;
    while ((rc = shf_stream_next_batch(stream, &batch, &error)) == SHF_OK) {
        shf_array tokens, positions;
        shf_bytes name;
        CHECK_OK(shf_batch_column(batch, 0, &name, &tokens), &error);
        CHECK(name.size == 3 && memcmp(name.data, "txt", 3) == 0);
        CHECK(tokens.dtype == SHF_DTYPE_INT32 && tokens.kind == SHF_COLUMN_ARRAY);
        CHECK(tokens.ndim == 2 && tokens.shape[1] == WIDTH && tokens.offsets == NULL);
        CHECK_OK(shf_batch_column(batch, 2, NULL, &positions), &error);
        for (int64_t i = 0; i < tokens.shape[0] * WIDTH; ++i) {
            const int64_t position = ((const int64_t*)positions.data)[i];
            if (position < 0) continue;
            while (place == sample % LONGEST) ++sample, place = 0;
            CHECK(position == place);
            CHECK(((const int32_t*)tokens.data)[i] == 1 + (sample * 31 + place) % 126);
            ++place;
        }
        shf_batch_unref(batch);
    }
    CHECK(rc == SHF_END);
    CHECK(sample == SAMPLES - 1 && place == sample % LONGEST);
    CHECK(log.texts == SAMPLES);
    CHECK(log.released == 0);
    shf_stream_close(stream);
    CHECK(log.released == 1);
}

static void test_a_bad_text(void) {
    static const char bad[] = {1 + 93, 1 + 94, 1 + 95, 0}; /* of sample 3 */
    tokenizer_log log = {.lock = PTHREAD_MUTEX_INITIALIZER, .bad = bad};
    shf_error error;
    shf_batch* batch;
    shf_stream* stream = open_texts(&log, OPTIONS("batch", "999", "pack", "7", "decode", "txt"));
    for (int i = 0; i < 2; ++i) {
        CHECK_CODE(shf_stream_next_batch(stream, &batch, &error), SHF_E_FORMAT, &error);
        CHECK(strstr(error.message, "t.tar: member \"k03.txt\": no such text") != NULL);
        CHECK(strstr(error.message, "write another") != NULL);
        CHECK(error.os_error == 1234);
    }
    shf_stream_close(stream);
    stream = open_texts(
        &log, OPTIONS("batch", "999", "pack", "7", "decode", "txt", "on_error", "skip_sample"));
    CHECK_OK(shf_stream_next_batch(stream, &batch, &error), &error);
    CHECK(shf_stream_stat(stream, SHF_STAT_SKIPPED_SAMPLES) == 1);
    shf_batch_unref(batch);
    shf_stream_close(stream);
    CHECK(log.failed == 1 && log.released == 2);
}

static void test_wrong_numbers_of_texts(void) {
    for (int more = 0; more < 2; ++more) {
        tokenizer_log log = {
            .lock = PTHREAD_MUTEX_INITIALIZER, .adds_less = !more, .adds_more = more};
        shf_error error;
        shf_batch* batch;
        shf_stream* stream = open_texts(&log, OPTIONS("batch", "9", "pack", "7", "decode", "txt"));
        CHECK_CODE(shf_stream_next_batch(stream, &batch, &error), SHF_E_FORMAT, &error);
        CHECK(strstr(error.message, more ? "tokens of more than the 1 text" : "of 0 of 1 text"));
        shf_stream_close(stream);
    }
}

static void test_wrong_use(void) {
    tokenizer_log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
    shf_error error;
    shf_options* options = OPTIONS("batch", "9", "decode", "txt");
    shf_tokenizer tokenizer = {
        .struct_size = sizeof tokenizer - 1, .tokenize = tokenize, .release = release};
    CHECK_CODE(shf_options_set_tokenizer(options, &tokenizer, &log, &error), SHF_E_USAGE, &error);
    tokenizer.struct_size = sizeof tokenizer;
    tokenizer.tokenize = NULL;
    CHECK_CODE(shf_options_set_tokenizer(options, &tokenizer, &log, &error), SHF_E_USAGE, &error);
    tokenizer.tokenize = tokenize;
    CHECK_CODE(shf_options_set_tokenizer(NULL, &tokenizer, &log, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_tokens_add(NULL, NULL, NULL, 0, &error), SHF_E_USAGE, &error);
    CHECK(log.released == 0);
    CHECK_OK(shf_options_set_tokenizer(options, &tokenizer, &log, &error), &error);
    const char* url = path_of("t.tar");
    shf_stream* stream = NULL;
    CHECK_CODE(shf_stream_open(&stream, &url, 1, options, &error), SHF_E_USAGE, &error);
    CHECK(strstr(error.message, "there is no pack") != NULL);
    CHECK(log.released == 0);
    CHECK_OK(shf_options_set_tokenizer(options, NULL, NULL, &error), &error);
    CHECK(log.released == 1);
    CHECK_OK(shf_stream_open(&stream, &url, 1, options, &error), &error);
    shf_stream_close(stream);
    shf_options_free(options);
}

int main(void) {
    make_shard_directory();
    write_texts("t.tar");
    RUN(test_tokens_are_packed);
    RUN(test_a_bad_text);
    RUN(test_wrong_numbers_of_texts);
    RUN(test_wrong_use);
    remove_shard_directory();
    return finish();
}
