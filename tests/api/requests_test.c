/* Sources by requests: the program answers what the library asks, on a thread of its own. */
#include "harness.h"

#include "tar_shards.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int woken = 0;

static void wake(void* ctx) {
    (void)ctx;
    pthread_mutex_lock(&mutex);
    ++woken;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_for_wake(void) {
    pthread_mutex_lock(&mutex);
    while (woken == 0) pthread_cond_wait(&changed, &mutex);
    woken = 0;
    pthread_mutex_unlock(&mutex);
}

/* What the program serves: one file in memory, at every URL but those with "missing" in them. */
static unsigned char* contents;
static size_t contents_size;
static int opened, closed, released, logged, skipped;
static int32_t result;

static void answer(shf_requests* requests, const shf_request* request) {
    shf_answer answer = {.struct_size = sizeof answer};
    if (request->kind == SHF_REQUEST_OPEN) {
        if (strstr(request->text, "missing") != NULL) {
            answer.code = SHF_E_IO;
            answer.os_error = 2;
            answer.text = "it is not there";
        } else {
            answer.object = (uint64_t)++opened;
            answer.size = contents_size;
            answer.text = "version 1";
        }
    } else {
        const size_t left = contents_size - (size_t)request->offset;
        CHECK(request->object >= 1 && request->object <= (uint64_t)opened);
        answer.data = contents + request->offset;
        answer.size = request->size < left ? request->size : left;
    }
    CHECK(shf_requests_answer(requests, request->id, &answer) == SHF_OK);
    CHECK(shf_requests_answer(requests, request->id, &answer) == SHF_E_NOT_FOUND);
}

/* Answers until a request of this kind comes. */
static void serve_until(shf_requests* requests, int32_t kind) {
    for (;;) {
        shf_request request = {.struct_size = sizeof request};
        while (shf_requests_take(requests, &request) == SHF_OK) {
            switch (request.kind) {
                case SHF_REQUEST_CLOSE: ++closed; break;
                case SHF_REQUEST_RELEASE: ++released; break;
                case SHF_REQUEST_LOG:
                    CHECK_TEXT(request.text, "missing");
                    ++logged;
                    break;
                case SHF_REQUEST_SKIP:
                    CHECK_TEXT(request.text, "mem://missing");
                    CHECK(request.key[0] == '\0' && request.error->code == SHF_E_IO);
                    CHECK(request.result == 1);
                    ++skipped;
                    break;
                case SHF_REQUEST_DONE: result = request.result; break;
                default: answer(requests, &request);
            }
            if (request.kind == kind) return;
        }
        wait_for_wake();
    }
}

#define WORD(value) (uint64_t)(uintptr_t)(value)

static void test_one_thread_opens_and_answers(void) {
    shf_error error;
    shf_requests* requests = shf_requests_new(wake, NULL);
    shf_options* options = shf_options_new();
    shf_archive* archive = NULL;
    CHECK_OK(shf_options_set_requests(options, "mem", requests, &error), &error);
    const uint64_t opening[] = {WORD(&archive), WORD("mem://a.tar"), WORD(options), WORD(&error)};
    CHECK_OK(shf_requests_call(requests, 7, (shf_any_fn)shf_archive_open, opening, 4, &error),
             &error);
    serve_until(requests, SHF_REQUEST_DONE);
    CHECK_CODE(result, SHF_OK, &error);
    CHECK(shf_archive_member_count(archive) == 4);
    unsigned char data[16];
    const uint64_t reading[] = {WORD(archive), 1, WORD(data), sizeof data, WORD(&error)};
    CHECK_OK(shf_requests_call(requests, 8, (shf_any_fn)shf_archive_read, reading, 5, &error),
             &error);
    serve_until(requests, SHF_REQUEST_DONE);
    CHECK_CODE(result, SHF_OK, &error);
    CHECK(memcmp(data, "one", 3) == 0);

    const uint64_t missing[] = {WORD(&archive), WORD("mem://missing"), WORD(options), WORD(&error)};
    shf_archive* const first = archive;
    CHECK_OK(shf_requests_call(requests, 9, (shf_any_fn)shf_archive_open, missing, 4, NULL), NULL);
    serve_until(requests, SHF_REQUEST_DONE);
    CHECK(result == SHF_E_IO && error.os_error == 2);
    CHECK_TEXT(error.message, "it is not there");

    shf_options_free(options);
    shf_archive_close(first);
    serve_until(requests, SHF_REQUEST_RELEASE);
    CHECK(opened > 0 && closed == opened && released == 1);
    shf_requests_free(requests);
}

static void test_a_stream_logs_and_skips(void) {
    shf_error error;
    shf_requests* requests = shf_requests_new(wake, NULL);
    shf_options* options = shf_options_new();
    CHECK_OK(shf_options_set_requests(options, "mem", requests, &error), &error);
    CHECK_OK(shf_options_set_all(options, "on_error=skip_shard,timeout=5ms", &error), &error);
    shf_options_set_log(options, SHF_LOG_WARNING, shf_requests_log, requests);
    shf_options_set_on_skip(options, shf_requests_skip, requests);
    const char* urls[] = {"mem://a.tar", "mem://missing", "mem://b.tar"};
    shf_stream* stream = NULL;
    const uint64_t opening[] = {WORD(&stream), WORD(urls), 3, WORD(options), WORD(&error)};
    shf_options_set_interrupt(options, shf_requests_cancelled, requests);
    CHECK_OK(shf_requests_call(requests, 1, (shf_any_fn)shf_stream_open, opening, 5, &error),
             &error);
    serve_until(requests, SHF_REQUEST_DONE);
    CHECK_CODE(result, SHF_OK, &error);
    shf_options_free(options);
    /* In steps, as a program with one thread does it. */
    int samples = 0;
    for (;;) {
        shf_sample* sample = NULL;
        const uint64_t next[] = {WORD(stream), WORD(&sample), WORD(&error)};
        CHECK_OK(shf_requests_call(requests, 2, (shf_any_fn)shf_stream_next, next, 3, NULL), NULL);
        serve_until(requests, SHF_REQUEST_DONE);
        if (result == SHF_OK)
            ++samples;
        else if (result != SHF_E_TIMEOUT)
            break;
        shf_sample_unref(sample);
    }
    CHECK_CODE(result, SHF_END, &error);
    CHECK(samples == 6 && logged == 1 && skipped == 1);
    shf_stream_close(stream);
    shf_requests_free(requests);
}

/* Texts, and what answers make of them: a token for each byte, its value. */
enum { TEXTS = 9, WIDTH = 4 };
static const char* const texts[TEXTS] = {"ab", "", "cdefg", "h", "bad", "ij", "klm", "n", "opq"};
enum answers { RIGHT, BAD_FAILS, FEWER_TOKENS, ODD_BYTES, NO_COUNTS };

static void answer_tokens(shf_requests* requests, const shf_request* request, enum answers how) {
    int32_t ids[64];
    uint64_t counts[TEXTS];
    shf_answer answer = {.struct_size = sizeof answer, .counts = counts};
    answer.data = (const uint8_t*)ids;
    CHECK(request->size >= 1 && request->size <= TEXTS);
    size_t all = 0;
    for (size_t i = 0; i < request->size; ++i) {
        const shf_text* one = &request->texts[i];
        CHECK(one->key.size == 1 && strstr((const char*)one->url.data, "texts.tar") != NULL);
        const char* text = texts[one->key.data[0] - '0'];
        CHECK(one->text.size == strlen(text) && memcmp(one->text.data, text, strlen(text)) == 0);
        if (how == BAD_FAILS && strcmp(text, "bad") == 0) {
            answer.code = SHF_E_FORMAT;
            answer.os_error = 1234;
            answer.text = "no such text; help: write another";
        }
        counts[i] = one->text.size;
        for (size_t j = 0; j < one->text.size; ++j) ids[all++] = one->text.data[j];
    }
    answer.size = all * sizeof *ids;
    if (how == FEWER_TOKENS) answer.size -= sizeof *ids;
    if (how == ODD_BYTES) answer.size += 1;
    if (how == NO_COUNTS) answer.counts = NULL;
    CHECK(shf_requests_answer(requests, request->id, &answer) == SHF_OK);
}

/* The result of the next batch, whose requests the caller's thread answers. */
static int32_t next_batch(shf_requests* requests, shf_stream* stream, shf_batch** batch,
                          shf_error* error, enum answers how) {
    const uint64_t next[] = {WORD(stream), WORD(batch), WORD(error)};
    CHECK_OK(shf_requests_call(requests, 1, (shf_any_fn)shf_stream_next_batch, next, 3, NULL),
             NULL);
    for (;; wait_for_wake()) {
        shf_request request = {.struct_size = sizeof request};
        while (shf_requests_take(requests, &request) == SHF_OK) {
            if (request.kind == SHF_REQUEST_DONE) return request.result;
            CHECK(request.kind == SHF_REQUEST_TOKENIZE);
            if (request.kind == SHF_REQUEST_TOKENIZE) answer_tokens(requests, &request, how);
        }
    }
}

static shf_stream* open_texts(shf_requests* requests, const char* more) {
    shf_error error;
    shf_stream* stream = NULL;
    shf_options* options = shf_options_new();
    CHECK_OK(shf_options_set_all(options, "batch=99,pack=4,decode=txt", &error), &error);
    CHECK_OK(shf_options_set_all(options, more, &error), &error);
    CHECK_OK(shf_options_set_tokenizer_requests(options, requests, &error), &error);
    const char* url = path_of("texts.tar");
    CHECK_OK(shf_stream_open(&stream, &url, 1, options, &error), &error);
    shf_options_free(options);
    return stream;
}

static void test_tokens_of_texts(void) {
    for (int skips = 0; skips < 2; ++skips) {
        shf_error error;
        shf_requests* requests = shf_requests_new(wake, NULL);
        shf_stream* stream = open_texts(requests, skips ? "on_error=skip_sample" : "");
        shf_batch* batch = NULL;
        CHECK_CODE(next_batch(requests, stream, &batch, &error, skips ? BAD_FAILS : RIGHT), SHF_OK,
                   &error);
        shf_array tokens;
        CHECK_OK(shf_batch_column(batch, 0, NULL, &tokens), &error);
        CHECK(tokens.dtype == SHF_DTYPE_INT32 && tokens.shape[1] == WIDTH);
        const char* wanted = skips ? "abcdefghijklmnopq" : "abcdefghbadijklmnopq";
        for (size_t i = 0; i < strlen(wanted); ++i)
            CHECK(((const int32_t*)tokens.data)[i] == wanted[i]);
        CHECK(shf_stream_stat(stream, SHF_STAT_SKIPPED_SAMPLES) == (uint64_t)skips);
        shf_batch_unref(batch);
        CHECK(next_batch(requests, stream, &batch, &error, RIGHT) == SHF_END);
        released = 0;
        shf_stream_close(stream);
        serve_until(requests, SHF_REQUEST_RELEASE);
        CHECK(released == 1);
        shf_requests_free(requests);
    }
}

static void test_wrong_answers_of_tokens(void) {
    for (int how = BAD_FAILS; how <= NO_COUNTS; ++how) {
        shf_error error;
        shf_requests* requests = shf_requests_new(wake, NULL);
        shf_stream* stream = open_texts(requests, "");
        shf_batch* batch = NULL;
        const int32_t wanted = how == BAD_FAILS ? SHF_E_FORMAT : SHF_E_USAGE;
        CHECK(next_batch(requests, stream, &batch, &error, (enum answers)how) == wanted);
        CHECK(error.code == wanted && strstr(error.message, "texts.tar") != NULL);
        if (how == BAD_FAILS) {
            CHECK(strstr(error.message, "member \"4.txt\": no such text") != NULL);
            CHECK(strstr(error.message, "write another") != NULL && error.os_error == 1234);
        } else {
            CHECK(strstr(error.message, "other tokens than its counts say") != NULL);
        }
        shf_stream_close(stream);
        shf_requests_free(requests);
    }
}

/* Nobody answers: a cancel ends the call. The request stays as it is until another one is taken,
 * whatever becomes of the batch. */
static void test_tokens_that_nobody_makes(void) {
    shf_error error;
    shf_requests* requests = shf_requests_new(wake, NULL);
    shf_stream* stream = open_texts(requests, "");
    shf_batch* batch = NULL;
    const uint64_t next[] = {WORD(stream), WORD(&batch), WORD(&error)};
    CHECK_OK(shf_requests_call(requests, 1, (shf_any_fn)shf_stream_next_batch, next, 3, NULL),
             NULL);
    shf_request request = {.struct_size = sizeof request};
    while (shf_requests_take(requests, &request) != SHF_OK) wait_for_wake();
    CHECK(request.kind == SHF_REQUEST_TOKENIZE && request.size == TEXTS);
    shf_requests_cancel(requests, 1);
    wait_for_wake(); /* DONE is there */
    CHECK(memcmp(request.texts[2].text.data, "cdefg", 5) == 0);
    const shf_answer late = {.struct_size = sizeof late};
    CHECK(shf_requests_answer(requests, request.id, &late) == SHF_E_NOT_FOUND);
    serve_until(requests, SHF_REQUEST_DONE);
    CHECK_CODE(result, SHF_E_CANCELLED, &error);
    shf_stream_close(stream);
    shf_requests_free(requests);
}

/* Nobody answers: a cancel ends the call, one that comes first does too, and so does the end. */
static void test_cancel(void) {
    shf_error error;
    for (int way = 0; way < 3; ++way) {
        shf_requests* requests = shf_requests_new(wake, NULL);
        shf_options* options = shf_options_new();
        shf_archive* archive = NULL;
        CHECK_OK(shf_options_set_requests(options, "*", requests, &error), &error);
        CHECK(!shf_requests_cancelled(requests));
        if (way == 1) shf_requests_cancel(requests, 1);
        const uint64_t opening[] = {WORD(&archive), WORD("x://a"), WORD(options), WORD(&error)};
        CHECK_OK(shf_requests_call(requests, 1, (shf_any_fn)shf_archive_open, opening, 4, NULL),
                 NULL);
        shf_request request = {.struct_size = sizeof request};
        if (way != 1) {
            while (shf_requests_take(requests, &request) != SHF_OK) wait_for_wake();
            CHECK(request.kind == SHF_REQUEST_OPEN && strcmp(request.text, "x://a") == 0);
            if (way == 2) { /* too many bytes, and codes that are none */
                const shf_answer wrong = {.struct_size = sizeof wrong, .code = 5};
                CHECK(shf_requests_answer(requests, request.id, &wrong) == SHF_OK);
            } else {
                shf_requests_cancel(requests, 1);
                const shf_answer late = {.struct_size = sizeof late};
                CHECK(shf_requests_answer(requests, request.id, &late) == SHF_E_NOT_FOUND);
            }
            if (way == 0) CHECK(shf_requests_cancelled(requests));
        }
        serve_until(requests, SHF_REQUEST_DONE);
        CHECK(result == (way == 2 ? SHF_E_USAGE : SHF_E_CANCELLED));
        shf_requests_free(requests);
        CHECK_CODE(shf_archive_open(&archive, "x://a", options, &error), SHF_E_CANCELLED, &error);
        shf_options_free(options);
    }
}

static void test_wrong_use(void) {
    shf_error error;
    shf_requests* requests = shf_requests_new(NULL, NULL);
    shf_options* options = shf_options_new();
    shf_request request = {.struct_size = sizeof request};
    shf_answer wrong = {.struct_size = 1};
    const uint64_t nine[9] = {0};
    CHECK(shf_requests_take(requests, &request) == SHF_END);
    CHECK(shf_requests_take(NULL, &request) == SHF_E_USAGE);
    CHECK(shf_requests_answer(requests, 1, &wrong) == SHF_E_USAGE);
    CHECK_CODE(shf_requests_call(requests, 1, (shf_any_fn)shf_archive_open, nine, 9, &error),
               SHF_E_USAGE, &error);
    CHECK_CODE(shf_requests_call(requests, 1, NULL, nine, 1, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set_requests(options, "File", requests, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set_requests(options, "x", NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set_tokenizer_requests(options, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set_tokenizer_requests(NULL, requests, &error), SHF_E_USAGE, &error);
    shf_requests_cancel(NULL, 1);
    shf_requests_free(NULL);
    shf_requests_free(requests);
    shf_options_free(options);
}

static void make_contents(void) {
    FILE* file = fopen(path_of("a.tar"), "w+b");
    put_member(file, "a.txt", "one", 3);
    put_member(file, "b.txt", "one", 3);
    put_member(file, "c/", "", 0);
    put_member(file, "c/c.bin", "", 0);
    put_end(file);
    contents_size = (size_t)ftell(file);
    contents = malloc(contents_size);
    rewind(file);
    CHECK(contents != NULL && fread(contents, 1, contents_size, file) == contents_size);
    fclose(file);
}

static void write_texts(void) {
    FILE* file = fopen(path_of("texts.tar"), "wb");
    char name[] = "0.txt";
    for (int i = 0; i < TEXTS; ++i) {
        name[0] = (char)('0' + i);
        put_member(file, name, texts[i], strlen(texts[i]));
    }
    put_end(file);
    fclose(file);
}

int main(void) {
    make_shard_directory();
    make_contents();
    RUN(test_one_thread_opens_and_answers);
    RUN(test_a_stream_logs_and_skips);
    write_texts();
    RUN(test_tokens_of_texts);
    RUN(test_wrong_answers_of_tokens);
    RUN(test_tokens_that_nobody_makes);
    RUN(test_cancel);
    RUN(test_wrong_use);
    remove_shard_directory();
    free(contents);
    return finish();
}
