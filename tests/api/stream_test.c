/* A stream as several threads see it, its waits, its callbacks, and what is left when it is closed.
 */
#include "harness.h"

#include "tar_shards.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

enum { SHARDS = 4, PER_SHARD = 300, ALL = SHARDS * PER_SHARD };

/* ---- What is left ---------------------------------------------------------------------------- */

static int threads_before, descriptors_before;

static void note_what_is_open(void) {
    threads_before = count_own_threads();
    descriptors_before = count_entries("/proc/self/fd");
}

static void check_nothing_is_left(void) {
    CHECK(settled_threads(threads_before) == threads_before);
    CHECK(count_entries("/proc/self/fd") == descriptors_before);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void test_close_leaves_nothing(void) {
    static const char* const urls[] = {"s{0..3}.tar", "pipe"};
    char pipe_url[800];
    snprintf(pipe_url, sizeof pipe_url, "pipe:cat %s; sleep 100", path_of("s0.tar"));
    note_what_is_open();
    for (int where = 0; where < 4; ++where)
        for (int u = 0; u < 2; ++u) {
            const char* url = u == 0 ? path_of(urls[0]) : pipe_url;
            shf_stream* stream;
            shf_sample* sample;
            shf_error error;
            shf_options* options =
                OPTIONS("threads", "3", "epochs", "0", "lanes", u == 0 ? "2" : "1");
            CHECK_OK(shf_stream_open(&stream, &url, 1, options, &error), &error);
            shf_options_free(options);
            /* Nothing starts before the first call. */
            CHECK(count_entries("/proc/self/task") == threads_before);
            CHECK(count_entries("/proc/self/fd") == descriptors_before);
            const int taken = where == 0 ? 0 : where == 1 ? 1 : 250;
            for (int i = 0; i < taken; ++i) {
                CHECK_OK(shf_stream_next(stream, &sample, &error), &error);
                CHECK(is_whole(sample));
                shf_sample_unref(sample);
            }
            if (taken > 0) CHECK(count_entries("/proc/self/task") > threads_before);
            if (where == 3) shf_stream_cancel(stream);
            const double start = seconds();
            shf_stream_close(stream);
            CHECK(seconds() - start < 1.0 * SLOWNESS); /* TERM was enough */
            check_nothing_is_left();
        }
}

static void test_end_leaves_nothing(void) {
    char url[800];
    note_what_is_open();
    for (int i = 0; i < 20; ++i) {
        snprintf(url, sizeof url, "pipe:cat %s", path_of("s0.tar"));
        const char* given = url;
        shf_stream* stream;
        shf_sample* sample;
        shf_error error;
        int32_t rc;
        CHECK_OK(shf_stream_open(&stream, &given, 1, NULL, &error), &error);
        while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) shf_sample_unref(sample);
        CHECK_CODE(rc, SHF_END, &error);
        CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* before close, too */
        shf_stream_close(stream);
        check_nothing_is_left();
    }
}

/* ---- Blocked calls --------------------------------------------------------------------------- */

/* A FIFO that has a writer, which is us: readers wait for bytes that never come. */
static int make_fifo(const char* name) {
    CHECK(mkfifo(path_of(name), 0600) == 0);
    const int fd = open(path_of(name), O_RDWR);
    CHECK(fd >= 0);
    return fd;
}

struct call {
    shf_stream* stream;
    bool block;
    int32_t rc;
    double began, ended;
    shf_error error;
};

static void* run_call(void* ctx) {
    struct call* call = ctx;
    shf_sample* sample = NULL;
    shf_block* block = NULL;
    call->began = seconds();
    call->rc = call->block ? shf_stream_next_block(call->stream, 0, &block, &call->error)
                           : shf_stream_next(call->stream, &sample, &call->error);
    call->ended = seconds();
    shf_sample_unref(sample);
    shf_block_unref(block);
    return NULL;
}

static void check_cancel(const char* url, bool block, const char* lanes) {
    shf_stream* stream;
    shf_error error;
    shf_sample* sample;
    shf_options* options = OPTIONS("lanes", lanes);
    CHECK_OK(shf_stream_open(&stream, &url, 1, options, &error), &error);
    shf_options_free(options);
    struct call call = {.stream = stream, .block = block};
    pthread_t thread;
    pthread_create(&thread, NULL, run_call, &call);
    sleep_ms(50); /* it waits by now, as a rule; when not, the cancel comes first, which is fine */
    const double start = seconds();
    shf_stream_cancel(stream);
    pthread_join(thread, NULL);
    CHECK_CODE(call.rc, SHF_E_CANCELLED, &call.error);
    CHECK(call.ended - start < 0.1 * SLOWNESS);
    /* It repeats, for both calls and without a wait. */
    shf_block* none;
    CHECK_CODE(shf_stream_next(stream, &sample, &error), SHF_E_CANCELLED, &error);
    CHECK_CODE(shf_stream_next_block(stream, 0, &none, &error), SHF_E_CANCELLED, &error);
    CHECK(sample == NULL && none == NULL);
    shf_stream_cancel(stream);
    const double closing = seconds();
    shf_stream_close(stream);
    CHECK(seconds() - closing < 1.0 * SLOWNESS);
}

static void test_cancel_while_blocked(void) {
    note_what_is_open();
    const int fd = make_fifo("silent.fifo");
    for (int block = 0; block < 2; ++block) {
        check_cancel(path_of("silent.fifo"), block, "1");
        check_cancel("pipe:sleep 100", block, "1");
        /* A child that ignores everything but KILL must not make the caller wait either. */
        check_cancel("pipe:printf x; sleep 100 | cat", block, "1");
    }
    close(fd);
    unlink(path_of("silent.fifo"));
    /* A FIFO without any writer. */
    CHECK(mkfifo(path_of("nobody.fifo"), 0600) == 0);
    check_cancel(path_of("nobody.fifo"), false, "1");
    unlink(path_of("nobody.fifo"));
    check_nothing_is_left();
}

static void test_cancel_before_the_first_call(void) {
    shf_stream* stream = open_stream("s0.tar", NULL);
    shf_sample* sample;
    shf_error error;
    shf_stream_cancel(stream);
    CHECK_CODE(shf_stream_next(stream, &sample, &error), SHF_E_CANCELLED, &error);
    CHECK(sample == NULL);
    shf_stream_close(stream);
}

static void write_all(int fd, const char* name, size_t from, size_t to) {
    char* bytes = malloc(to - from);
    FILE* file = fopen(path_of(name), "rb");
    fseek(file, (long)from, SEEK_SET);
    const size_t got = fread(bytes, 1, to - from, file);
    fclose(file);
    CHECK(got == to - from);
    for (size_t done = 0; done < got;) {
        const ssize_t count = write(fd, bytes + done, got - done);
        if (count <= 0) break;
        done += (size_t)count;
    }
    free(bytes);
}

static size_t size_of(const char* name) {
    struct stat state;
    CHECK(stat(path_of(name), &state) == 0);
    return (size_t)state.st_size;
}

/* The option timeout ends a wait, and the same call goes on later as if nothing had been. */
static void test_timeout(void) {
    for (int block = 0; block < 2; ++block) {
        const int fd = make_fifo("slow.fifo");
        shf_stream* stream = open_stream("slow.fifo", OPTIONS("timeout", "100ms"));
        shf_error error;
        for (int i = 0; i < 2; ++i) {
            struct call call = {.stream = stream, .block = block};
            run_call(&call);
            CHECK_CODE(call.rc, SHF_E_TIMEOUT, &call.error);
            CHECK_TEXT(call.error.message, "timeout");
            CHECK(call.ended - call.began > 0.09);
            CHECK(call.ended - call.began < 0.2 * SLOWNESS);
        }
        /* The first two samples and half of the third: two come at once, without more bytes. */
        const size_t size = size_of("tiny.tar");
        write_all(fd, "tiny.tar", 0, 2 * 2048 + 700);
        shf_sample* sample;
        size_t count = 0;
        int timeouts = 0;
        for (; count < 2 && timeouts < 20 * SLOWNESS;) {
            const int32_t rc = shf_stream_next(stream, &sample, &error);
            if (rc == SHF_OK)
                ++count;
            else
                CHECK_CODE(rc, SHF_E_TIMEOUT, &error);
            timeouts += rc == SHF_E_TIMEOUT;
            shf_sample_unref(sample);
        }
        CHECK(count == 2 && timeouts == 0);
        CHECK_CODE(shf_stream_next(stream, &sample, &error), SHF_E_TIMEOUT, &error);
        write_all(fd, "tiny.tar", 2 * 2048 + 700, size);
        close(fd);
        int32_t rc;
        while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK ||
               (rc == SHF_E_TIMEOUT && ++timeouts < 1000)) {
            count += rc == SHF_OK;
            shf_sample_unref(sample);
        }
        CHECK_CODE(rc, SHF_END, &error);
        CHECK(count == 5);
        shf_stream_close(stream);
        unlink(path_of("slow.fifo"));
    }
}

/* Whoever is second inside a call is told so, and the first one is not disturbed. */
static void test_two_threads(void) {
    const int fd = make_fifo("shared.fifo");
    shf_stream* stream = open_stream("shared.fifo", NULL);
    struct call call = {.stream = stream};
    pthread_t thread;
    shf_sample* sample;
    shf_block* block;
    shf_error error;
    pthread_create(&thread, NULL, run_call, &call);
    int32_t rc = SHF_OK;
    sleep_ms(100);
    for (int i = 0; i < 100; ++i) {
        rc = shf_stream_next(stream, &sample, &error);
        CHECK_CODE(rc, SHF_E_USAGE, &error);
        CHECK_TEXT(error.message, "another thread");
        CHECK_CODE(shf_stream_next_block(stream, 0, &block, &error), SHF_E_USAGE, &error);
        CHECK(sample == NULL && block == NULL);
        CHECK(shf_stream_stat(stream, SHF_STAT_SAMPLES) == 0);
    }
    write_all(fd, "tiny.tar", 0, size_of("tiny.tar"));
    close(fd);
    pthread_join(thread, NULL);
    CHECK_CODE(call.rc, SHF_OK, &call.error);
    /* The stream now serves this thread. */
    size_t count = 1;
    for (; (rc = shf_stream_next(stream, &sample, &error)) == SHF_OK; ++count)
        shf_sample_unref(sample);
    CHECK_CODE(rc, SHF_END, &error);
    CHECK(count == 5);
    shf_stream_close(stream);
    unlink(path_of("shared.fifo"));
}

struct crowd {
    shf_stream* stream;
    size_t taken, refused, broken;
};

static void* take_in_crowd(void* ctx) {
    struct crowd* crowd = ctx;
    shf_sample* sample;
    int32_t rc;
    while ((rc = shf_stream_next(crowd->stream, &sample, NULL)) != SHF_END) {
        if (rc == SHF_OK) {
            crowd->taken += 1;
            crowd->broken += !is_whole(sample);
            shf_sample_unref(sample);
        } else if (rc == SHF_E_USAGE) {
            crowd->refused += 1;
        } else {
            crowd->broken += 1;
            break;
        }
    }
    return NULL;
}

static void test_crowd(void) {
    shf_stream* stream = open_stream("s{0..3}.tar", OPTIONS("lanes", "2", "threads", "2"));
    struct crowd crowds[4] = {
        {stream, 0, 0, 0}, {stream, 0, 0, 0}, {stream, 0, 0, 0}, {stream, 0, 0, 0}};
    pthread_t threads[4];
    size_t taken = 0;
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, take_in_crowd, &crowds[i]);
    for (int i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
        taken += crowds[i].taken;
        CHECK(crowds[i].broken == 0);
    }
    CHECK(taken == ALL);
    shf_stream_close(stream);
}

/* Samples are read and released by many threads while the stream goes on. */
struct handed {
    shf_sample* samples[ALL];
    size_t count, broken;
};

static void* read_handed(void* ctx) {
    struct handed* handed = ctx;
    for (size_t i = 0; i < handed->count; ++i) {
        handed->broken += !is_whole(handed->samples[i]);
        shf_sample_unref(handed->samples[i]);
    }
    return NULL;
}

static void test_samples_of_many_threads(void) {
    static struct handed handed[3];
    shf_stream* stream = open_stream("s{0..3}.tar", OPTIONS("epochs", "2"));
    shf_sample* sample;
    pthread_t threads[3];
    for (size_t i = 0; i < ALL; ++i) {
        CHECK_OK(shf_stream_next(stream, &sample, NULL), NULL);
        for (int k = 0; k < 3; ++k)
            handed[k].samples[handed[k].count++] = k == 0 ? sample : shf_sample_ref(sample);
    }
    for (int k = 0; k < 3; ++k) pthread_create(&threads[k], NULL, read_handed, &handed[k]);
    for (size_t i = 0; i < ALL; ++i) {
        CHECK_OK(shf_stream_next(stream, &sample, NULL), NULL);
        shf_sample_unref(sample);
    }
    shf_stream_close(stream);
    for (int k = 0; k < 3; ++k) {
        pthread_join(threads[k], NULL);
        CHECK(handed[k].broken == 0);
    }
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

struct log {
    pthread_t caller;
    size_t count, strangers;
    int32_t worst;
    char last[2048];
};

static void take_message(void* ctx, int32_t level, const char* message) {
    struct log* log = ctx;
    ++log->count;
    log->strangers += !pthread_equal(pthread_self(), log->caller);
    if (level < log->worst) log->worst = level;
    snprintf(log->last, sizeof log->last, "%s", message);
    CHECK(strchr(message, '\n') == NULL);
}

static void test_log(void) {
    static const int32_t levels[] = {SHF_LOG_ERROR, SHF_LOG_WARNING, SHF_LOG_INFO};
    for (int i = 0; i < 4; ++i) {
        struct log log = {.caller = pthread_self(), .worst = 99};
        shf_options* options = OPTIONS("on_error", "skip_sample", "threads", "3");
        shf_options_set_log(options, i < 3 ? levels[i] : SHF_LOG_INFO, take_message, &log);
        if (i == 3) shf_options_set_log(options, SHF_LOG_INFO, NULL, &log);
        shf_stream* stream = open_stream("{s0,cut,s1}.tar", options);
        shf_sample* sample;
        shf_error error;
        int32_t rc;
        size_t count = 0;
        while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
            shf_sample_unref(sample);
            ++count;
        }
        CHECK_CODE(rc, SHF_END, &error);
        const size_t expected = i == 1 || i == 2 ? 1 : 0; /* a skipped shard is a warning */
        CHECK(log.count == expected && log.strangers == 0);
        if (expected) {
            CHECK(log.worst == SHF_LOG_WARNING);
            CHECK_TEXT(log.last, "cut.tar");
            CHECK_TEXT(log.last, "TRUNCATED");
            CHECK_TEXT(log.last, "skipped");
        }
        CHECK(shf_stream_stat(stream, SHF_STAT_SKIPPED_SHARDS) == 1);
        CHECK(shf_stream_stat(stream, SHF_STAT_SKIPS_BY_CLASS - SHF_E_TRUNCATED) == 1);
        CHECK(count >= 2 * PER_SHARD);
        const size_t before = log.count;
        shf_stream_close(stream);
        CHECK(log.count == before);
    }
}

struct skips {
    pthread_t caller;
    size_t count, strangers;
    shf_error last;
    char url[256], key[64];
    int32_t whole_shard;
};

static void take_skip(void* ctx, const shf_skip* skip) {
    struct skips* skips = ctx;
    ++skips->count;
    skips->strangers += !pthread_equal(pthread_self(), skips->caller);
    skips->last = *skip->error;
    snprintf(skips->url, sizeof skips->url, "%s", (const char*)skip->url.data);
    snprintf(skips->key, sizeof skips->key, "%.*s", (int)skip->key.size,
             (const char*)skip->key.data);
    skips->whole_shard = skip->whole_shard;
}

/* Reads the shard with these options to its end: what was skipped. */
static struct skips skips_of(const char* name, shf_options* options) {
    struct skips skips = {.caller = pthread_self()};
    shf_options_set_on_skip(options, take_skip, &skips);
    shf_stream* stream = open_stream(name, options);
    shf_sample* sample;
    shf_error error;
    int32_t rc;
    while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) shf_sample_unref(sample);
    CHECK_CODE(rc, SHF_END, &error);
    shf_stream_close(stream);
    CHECK(skips.strangers == 0);
    return skips;
}

static void test_skips(void) {
    struct skips skips = skips_of("{s0,cut,s1}.tar", OPTIONS("on_error", "skip_sample"));
    CHECK(skips.count == 1 && skips.whole_shard == 1 && skips.last.code == SHF_E_TRUNCATED);
    CHECK_TEXT(skips.url, "cut.tar");
    CHECK_TEXT(skips.last.message, skips.url);
    CHECK(skips.last.offset > 0 && skips.last.offset != UINT64_MAX);
    /* Of one sample the key is known, and each is there. */
    skips = skips_of("s0.tar", OPTIONS("on_error", "skip_sample", "max_member", "0"));
    CHECK(skips.count == PER_SHARD && skips.whole_shard == 0 && skips.last.code == SHF_E_LIMIT);
    CHECK_TEXT(skips.last.message, skips.key);
    CHECK(strlen(skips.key) > 0);
    /* Nobody asks. */
    shf_options* options = OPTIONS("on_error", "skip_sample");
    shf_options_set_on_skip(options, take_skip, NULL);
    shf_options_set_on_skip(options, NULL, NULL);
    shf_stream* stream = open_stream("cut.tar", options);
    shf_sample* sample;
    while (shf_stream_next(stream, &sample, NULL) == SHF_OK) shf_sample_unref(sample);
    CHECK(shf_stream_stat(stream, SHF_STAT_SKIPPED_SHARDS) == 1);
    shf_stream_close(stream);
    shf_options_set_on_skip(NULL, take_skip, NULL);
}

struct heap {
    pthread_mutex_t mutex;
    pthread_t caller;
    bool watch_callers;
    size_t strangers, wrong, live, live_bytes, calls, fail_after;
    struct {
        unsigned char* data;
        size_t size;
    } pieces[4096];
};

static void* heap_alloc(void* ctx, size_t size, size_t alignment) {
    struct heap* heap = ctx;
    void* data = NULL;
    pthread_mutex_lock(&heap->mutex);
    heap->strangers += heap->watch_callers && !pthread_equal(pthread_self(), heap->caller);
    heap->wrong += alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096;
    if (heap->calls++ < heap->fail_after && heap->live < 4096 &&
        posix_memalign(&data, alignment < 64 ? 64 : alignment, size) == 0) {
        heap->pieces[heap->live].data = data;
        heap->pieces[heap->live++].size = size;
        heap->live_bytes += size;
    }
    pthread_mutex_unlock(&heap->mutex);
    return data;
}

static void heap_free(void* ctx, void* pointer, size_t size) {
    struct heap* heap = ctx;
    pthread_mutex_lock(&heap->mutex);
    heap->strangers += heap->watch_callers && !pthread_equal(pthread_self(), heap->caller);
    size_t i = 0;
    while (i < heap->live && heap->pieces[i].data != pointer) ++i;
    if (i == heap->live || heap->pieces[i].size != size) {
        heap->wrong += 1;
    } else {
        heap->live_bytes -= size;
        heap->pieces[i] = heap->pieces[--heap->live];
        memset(pointer, 0xdd, size); /* whoever still reads it will see */
        free(pointer);
    }
    pthread_mutex_unlock(&heap->mutex);
}

static bool heap_has(struct heap* heap, shf_bytes bytes) {
    if (bytes.size == 0) return true;
    bool found = false;
    pthread_mutex_lock(&heap->mutex);
    for (size_t i = 0; i < heap->live && !found; ++i)
        found = bytes.data >= heap->pieces[i].data &&
                bytes.data + bytes.size <= heap->pieces[i].data + heap->pieces[i].size;
    pthread_mutex_unlock(&heap->mutex);
    return found;
}

static bool all_in_heap(struct heap* heap, const shf_sample* sample) {
    for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
        shf_bytes data;
        shf_sample_field(sample, i, NULL, &data);
        if (!heap_has(heap, data)) return false;
    }
    return true;
}

static struct heap* new_heap(void) {
    struct heap* heap = calloc(1, sizeof *heap);
    pthread_mutex_init(&heap->mutex, NULL);
    heap->caller = pthread_self();
    heap->watch_callers = true;
    heap->fail_after = SIZE_MAX;
    return heap;
}

static void check_allocator(const char* url, shf_options* options, bool blocks) {
    struct heap* heap = new_heap();
    shf_sample* kept[64];
    size_t count = 0, kept_count = 0;
    shf_sample* sample;
    shf_block* block;
    shf_error error;
    int32_t rc = SHF_OK;
    shf_options_set_allocator(options, heap_alloc, heap_free, heap);
    shf_stream* stream = open_stream(url, options);
    CHECK(heap->calls == 0);
    while (rc == SHF_OK) {
        size_t n = 1;
        if (blocks) {
            rc = shf_stream_next_block(stream, 0, &block, &error);
            if (rc != SHF_OK) break;
            n = shf_block_sample_count(block);
        } else {
            rc = shf_stream_next(stream, &sample, &error);
            if (rc != SHF_OK) break;
        }
        for (size_t i = 0; i < n; ++i, ++count) {
            if (blocks) sample = shf_block_sample(block, i);
            CHECK(is_whole(sample));
            CHECK(all_in_heap(heap, sample));
            if (count % 40 == 0 && kept_count < 64) kept[kept_count++] = shf_sample_ref(sample);
            if (!blocks) shf_sample_unref(sample);
        }
        if (blocks) shf_block_unref(block);
    }
    CHECK_CODE(rc, SHF_END, &error);
    CHECK(count == ALL);
    CHECK(heap->calls > 0);
    shf_stream_close(stream);
    for (size_t i = 0; i < kept_count; ++i) {
        CHECK(is_whole(kept[i]) && all_in_heap(heap, kept[i]));
        shf_sample_unref(kept[i]);
    }
    CHECK(heap->live == 0 && heap->live_bytes == 0);
    CHECK(heap->wrong == 0);
    CHECK(heap->strangers == 0);
    free(heap);
}

static void test_allocator(void) {
    static const char* const threads[] = {"1", "3"};
    static const char* const memories[] = {"1MiB", "256MiB"};
    for (int t = 0; t < 2; ++t)
        for (int m = 0; m < 2; ++m)
            for (int blocks = 0; blocks < 2; ++blocks) {
                check_allocator("s{0..3}.tar",
                                OPTIONS("threads", threads[t], "memory", memories[m]), blocks);
                check_allocator("s{0..3}.tar",
                                OPTIONS("threads", threads[t], "memory", memories[m], "lanes", "4"),
                                blocks);
                check_allocator("s{0..3}.tar",
                                OPTIONS("threads", threads[t], "memory", memories[m], "lanes", "2",
                                        "shuffle", "30"),
                                blocks);
            }
}

/* Pieces must also come back from the readers' side only inside our calls: many sizes, a small
 * budget and pauses of the consumer let readers give back memory while nobody is inside a call. */
static void test_allocator_and_pauses(void) {
    struct heap* heap = new_heap();
    shf_options* options = OPTIONS("threads", "4", "memory", "1MiB", "epochs", "2");
    shf_options_set_allocator(options, heap_alloc, heap_free, heap);
    shf_stream* stream = open_stream("{big,s0,s1}.tar", options);
    shf_sample* sample;
    shf_error error;
    int32_t rc;
    size_t count = 0;
    for (; (rc = shf_stream_next(stream, &sample, &error)) == SHF_OK; ++count) {
        shf_sample_unref(sample);
        if (count % 50 == 0) sleep_ms(2);
    }
    CHECK_CODE(rc, SHF_END, &error);
    CHECK(count == 2 * (2 * PER_SHARD + 40));
    shf_stream_close(stream);
    CHECK(heap->live == 0 && heap->wrong == 0);
    CHECK(heap->strangers == 0);
    free(heap);
}

static void test_allocator_fails(void) {
    for (size_t good = 0; good < 12; ++good) {
        struct heap* heap = new_heap();
        shf_sample *kept[ALL], *sample;
        size_t count = 0;
        shf_error error;
        int32_t rc;
        heap->fail_after = good;
        shf_options* options = OPTIONS("threads", "2", "lanes", "2");
        shf_options_set_allocator(options, heap_alloc, heap_free, heap);
        shf_stream* stream = open_stream("s{0..3}.tar", options);
        while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) kept[count++] = sample;
        CHECK_CODE(rc, SHF_E_NOMEM, &error);
        CHECK_CODE(shf_stream_next(stream, &sample, &error), SHF_E_NOMEM, &error);
        CHECK(sample == NULL);
        shf_stream_close(stream);
        for (size_t i = 0; i < count; ++i) {
            CHECK(is_whole(kept[i]));
            shf_sample_unref(kept[i]);
        }
        CHECK(heap->live == 0 && heap->wrong == 0 && heap->strangers == 0);
        free(heap);
    }
}

static void test_half_an_allocator(void) {
    struct heap* heap = new_heap();
    shf_options* options = OPTIONS("threads", "2");
    shf_options_set_allocator(options, heap_alloc, NULL, heap);
    shf_stream* stream = open_stream("s0.tar", options);
    shf_sample* sample;
    CHECK_OK(shf_stream_next(stream, &sample, NULL), NULL);
    CHECK(is_whole(sample));
    shf_sample_unref(sample);
    shf_stream_close(stream);
    CHECK(heap->calls == 0);
    free(heap);
}

/* A stream that waits for memory from the allocator can be cancelled and closed. */
static void test_close_while_readers_want_memory(void) {
    for (int i = 0; i < 50; ++i) {
        struct heap* heap = new_heap();
        shf_options* options = OPTIONS("threads", "4", "lanes", "4");
        shf_options_set_allocator(options, heap_alloc, heap_free, heap);
        shf_stream* stream = open_stream("s{0..3}.tar", options);
        shf_sample* sample;
        CHECK_OK(shf_stream_next(stream, &sample, NULL), NULL);
        if (i % 2 == 0) sleep_ms(1);
        shf_stream_close(stream);
        CHECK(is_whole(sample));
        shf_sample_unref(sample);
        CHECK(heap->live == 0 && heap->wrong == 0 && heap->strangers == 0);
        free(heap);
    }
}

static void write_more_shards(void) {
    FILE* file = fopen(path_of("tiny.tar"), "wb");
    for (int i = 0; i < 5; ++i) {
        char name[32];
        snprintf(name, sizeof name, "t%d.a", i);
        put_member(file, name, "a", 1);
        snprintf(name, sizeof name, "t%d.b", i);
        put_member(file, name, "b", 1);
    }
    put_end(file);
    fclose(file);

    file = fopen(path_of("cut.tar"), "wb");
    for (int i = 0; i < 10; ++i) put_sample(file, 9, i);
    fclose(file); /* without an end marker */

    file = fopen(path_of("big.tar"), "wb");
    unsigned char* data = calloc(1, 400000);
    for (int i = 0; i < 40; ++i) {
        char name[32];
        snprintf(name, sizeof name, "b%02d.bin", i);
        put_member(file, name, data, 10000 + (size_t)i * 9001);
    }
    free(data);
    put_end(file);
    fclose(file);
}

int main(void) {
    make_shard_directory();
    for (int shard = 0; shard < SHARDS; ++shard) write_shard(shard, PER_SHARD);
    write_more_shards();
    RUN(test_close_leaves_nothing);
    RUN(test_end_leaves_nothing);
    RUN(test_cancel_while_blocked);
    RUN(test_cancel_before_the_first_call);
    RUN(test_timeout);
    RUN(test_two_threads);
    RUN(test_crowd);
    RUN(test_samples_of_many_threads);
    RUN(test_log);
    RUN(test_skips);
    RUN(test_allocator_fails);
    RUN(test_half_an_allocator);
    RUN(test_close_while_readers_want_memory);
    RUN(test_allocator_and_pauses);
    RUN(test_allocator);
    remove_shard_directory();
    return finish();
}
