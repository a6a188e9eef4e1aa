/* Calls that open something end when they are told to: by the interrupt function, by the option
 * timeout, by a signal. Argument: how often each of them is cancelled. Times are printed; a limit
 * of 5 seconds tells a hang from a slow machine. */
#include "tar_shards.h"
#include "zip_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { HANG = 5 };

static int rounds = 3;

/* ---- What keeps an opening waiting --------------------------------------------------------- */

typedef int32_t (*open_fn)(const char* url, const shf_options* options, shf_error* error);

static int32_t open_archive(const char* url, const shf_options* options, shf_error* error) {
    shf_archive* archive;
    const int32_t code = shf_archive_open(&archive, url, options, error);
    CHECK((archive != NULL) == (code == SHF_OK));
    shf_archive_close(archive);
    return code;
}

static int32_t open_dataset(const char* url, const shf_options* options, shf_error* error) {
    shf_dataset* dataset;
    const int32_t code = shf_dataset_open(&dataset, &url, 1, options, error);
    CHECK((dataset != NULL) == (code == SHF_OK));
    shf_dataset_close(dataset);
    return code;
}

static int32_t open_stream_of(const char* url, const shf_options* options, shf_error* error) {
    shf_stream* stream;
    const int32_t code = shf_stream_open(&stream, &url, 1, options, error);
    CHECK((stream != NULL) == (code == SHF_OK));
    shf_stream_close(stream);
    return code;
}

static int32_t make_plan(const char* url, const shf_options* options, shf_error* error) {
    shf_plan* plan;
    const int32_t code = shf_plan_make(&plan, &url, 1, options, error);
    shf_plan_free(plan);
    return code;
}

static int32_t take_url(void* ctx, const char* url, size_t size) {
    CHECK(strlen(url) == size);
    ++*(int*)ctx;
    return 0;
}

static int32_t expand(const char* url, const shf_options* options, shf_error* error) {
    int count = 0;
    return shf_expand_urls(&url, 1, options, take_url, &count, error);
}

static int32_t build_index(const char* url, const shf_options* options, shf_error* error) {
    return shf_index_build(url, options, error);
}

static int32_t export_index(const char* url, const shf_options* options, shf_error* error) {
    return shf_index_export(&url, 1, SHF_INDEX_WIDS, path_of("exported.json"), options, error);
}

static int32_t import_index(const char* path, const shf_options* options, shf_error* error) {
    return shf_index_import(NULL, SHF_INDEX_WIDS, path, options, error);
}

static char fifo[600], list[600], silent[600], sparse[600], walk[600];

static const struct waiting {
    const char* name;
    open_fn open;
    const char* url;
    bool of_stream; /* the option timeout leaves it alone when there is an interrupt function */
    bool is_fifo;
} all_waiting[] = {
    {"an archive in a FIFO without writer", open_archive, fifo, false, true},
    {"an archive in a FIFO that is silent", open_archive, silent, false, true},
    {"an archive from a command", open_archive, "pipe:sleep 1000", false, false},
    {"an archive from a pipeline", open_archive, "pipe:sleep 1000 | cat", false, false},
    {"a list of a dataset", open_dataset, list, false, true},
    {"a list of a stream", open_stream_of, list, true, true},
    {"a list of a plan", make_plan, list, false, true},
    {"a list that is expanded", expand, list, false, true},
    {"a list of an exported index", export_index, list, false, true},
    {"an imported index", import_index, fifo, false, true},
};
enum { WAITING = sizeof all_waiting / sizeof *all_waiting };

static int silent_writer;

static void make_files(void) {
    snprintf(fifo, sizeof fifo, "%s", path_of("fifo"));
    snprintf(silent, sizeof silent, "%s", path_of("silent"));
    snprintf(list, sizeof list, "@%s", path_of("fifo"));
    snprintf(sparse, sizeof sparse, "%s", path_of("sparse.tar"));
    snprintf(walk, sizeof walk, "%s", path_of("walk.tar"));
    CHECK(mkfifo(fifo, 0600) == 0 && mkfifo(silent, 0600) == 0);
    silent_writer = open(silent, O_RDWR | O_CLOEXEC);
    CHECK(silent_writer >= 0);
    FILE* file = fopen(sparse, "wb");
    put_sample(file, 0, 1);
    fclose(file);
    CHECK(truncate(sparse, (off_t)1 << 42) == 0);
    file = fopen(walk, "wb");
    char name[32];
    for (int i = 0; i < 100000; ++i) {
        snprintf(name, sizeof name, "%06d.x", i);
        put_member(file, name, "", 0);
    }
    put_end(file);
    fclose(file);
}

static bool has_children(void) {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static int stop; /* set by threads and signal handlers */
static pthread_t opener;
static double stopped_at;
static int questions;

static int32_t is_stopped(void* ctx) {
    CHECK(ctx == &questions && pthread_equal(pthread_self(), opener));
    ++questions;
    return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void stop_by_signal(int number) {
    (void)number;
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void* stop_later(void* ctx) {
    sleep_ms(*(const long*)ctx);
    stopped_at = seconds();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void* signal_later(void* ctx) {
    sleep_ms(*(const long*)ctx);
    stopped_at = seconds();
    pthread_kill(opener, SIGUSR1);
    return NULL;
}

static shf_options* interruptible(shf_options* options) {
    opener = pthread_self();
    __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
    questions = 0;
    shf_options_set_interrupt(options, is_stopped, &questions);
    return options;
}

/* Opens, is stopped after `ms`, and returns by how many seconds it was late. */
static double cancelled(const struct waiting* what, long ms, void* (*stopper)(void*)) {
    shf_options* options = interruptible(OPTIONS("memory", "16MiB"));
    shf_error error = {0};
    pthread_t thread;
    pthread_create(&thread, NULL, stopper, &ms);
    CHECK_CODE(what->open(what->url, options, &error), SHF_E_CANCELLED, &error);
    const double now = seconds();
    pthread_join(thread, NULL);
    CHECK(questions > 0);
    CHECK_TEXT(error.message, "interrupt function");
    shf_options_free(options);
    return now - stopped_at;
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static void an_interrupt_ends_every_opening(void) {
    double* late = malloc(sizeof *late * (size_t)rounds * WAITING);
    size_t count = 0;
    (void)cancelled(&all_waiting[0], 1, stop_later);
    const int before = count_entries("/proc/self/fd");
    for (int round = 0; round < rounds; ++round)
        for (size_t i = 0; i < WAITING; ++i) {
            late[count] = cancelled(&all_waiting[i], 10 + (round * 37 + (long)i * 11) % 90,
                                    round % 2 ? signal_later : stop_later);
            if (late[count] > HANG) fail_check(__FILE__, __LINE__, all_waiting[i].name, "hangs");
            ++count;
        }
    CHECK(count_entries("/proc/self/fd") == before);
    CHECK(!has_children());
    qsort(late, count, sizeof *late, ascending);
    printf("     %zu openings cancelled: median %.0f ms, p99 %.0f ms, most %.0f ms\n", count,
           late[count / 2] * 1e3, late[count - 1 - count / 100] * 1e3, late[count - 1] * 1e3);
    free(late);
}

static void an_interrupt_of_another_thread_asks_that_thread_alone(void) {
    /* is_stopped() compares the threads; here the readers of a stream wait as well. */
    write_shard(0, 100);
    shf_options* options = interruptible(OPTIONS("threads", "4"));
    shf_error error = {0};
    const char* urls[] = {path_of("s0.tar"), path_of("s0.tar")};
    shf_stream* stream;
    shf_sample* sample;
    CHECK_OK(shf_stream_open(&stream, urls, 2, options, &error), &error);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED); /* nobody asks any more */
    int count = 0;
    for (; shf_stream_next(stream, &sample, &error) == SHF_OK; ++count) shf_sample_unref(sample);
    CHECK(count == 200);
    CHECK(questions == 0);
    shf_stream_close(stream);
    shf_options_free(options);
}

/* An interrupt function that opens something itself. */
static int32_t opens_too(void* ctx) {
    shf_error error;
    const char* url = ctx;
    CHECK_OK(open_archive(url, NULL, &error), &error);
    return 1;
}

static void an_interrupt_may_call_the_library(void) {
    write_shard(0, 3);
    shf_options* options = shf_options_new();
    char url[600];
    snprintf(url, sizeof url, "%s", path_of("s0.tar"));
    shf_options_set_interrupt(options, opens_too, url);
    shf_error error = {0};
    CHECK_CODE(open_archive(fifo, options, &error), SHF_E_CANCELLED, &error);
    shf_options_set_interrupt(options, NULL, NULL);
    CHECK_OK(open_archive(url, options, &error), &error);
    shf_options_set_interrupt(NULL, opens_too, NULL);
    shf_options_free(options);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void a_timeout_ends_every_opening(void) {
    for (size_t i = 0; i < WAITING; ++i) {
        shf_options* options = OPTIONS("timeout", "150ms");
        shf_error error = {0};
        const double start = seconds();
        CHECK_CODE(all_waiting[i].open(all_waiting[i].url, options, &error), SHF_E_TIMEOUT, &error);
        const double took = seconds() - start;
        CHECK(took >= 0.15 && took < HANG);
        CHECK_TEXT(error.message, "timeout=150ms");
        shf_options_free(options);
    }
    CHECK(!has_children());
}

static void an_interrupt_function_stands_for_the_timeout_of_a_stream(void) {
    for (size_t i = 0; i < WAITING; ++i) {
        shf_options* options = interruptible(OPTIONS("timeout", "50ms"));
        shf_error error = {0};
        pthread_t thread;
        long ms = 300;
        pthread_create(&thread, NULL, stop_later, &ms);
        CHECK_CODE(all_waiting[i].open(all_waiting[i].url, options, &error),
                   all_waiting[i].of_stream ? SHF_E_CANCELLED : SHF_E_TIMEOUT, &error);
        pthread_join(thread, NULL);
        shf_options_free(options);
    }
}

static void pipe_timeout_bounds_a_fifo(void) {
    for (size_t i = 0; i < WAITING; ++i) {
        if (!all_waiting[i].is_fifo) continue;
        shf_options* options = OPTIONS("pipe_timeout", "150ms");
        shf_error error = {0};
        const double start = seconds();
        CHECK_CODE(all_waiting[i].open(all_waiting[i].url, options, &error), SHF_E_IO, &error);
        CHECK(seconds() - start < HANG);
        CHECK(error.os_error == ETIMEDOUT);
        CHECK_TEXT(error.message, "nothing was written into it for 150 ms");
        CHECK_TEXT(error.message, "pipe_timeout");
        shf_options_free(options);
    }
    /* A stream that reads a FIFO, too. */
    const char* url = fifo;
    shf_options* options = OPTIONS("pipe_timeout", "150ms");
    shf_error error = {0};
    shf_stream* stream;
    shf_sample* sample;
    CHECK_OK(shf_stream_open(&stream, &url, 1, options, &error), &error);
    CHECK_CODE(shf_stream_next(stream, &sample, &error), SHF_E_IO, &error);
    CHECK(error.os_error == ETIMEDOUT);
    shf_stream_close(stream);
    shf_options_free(options);
}

static void a_walk_obeys_the_timeout(void) {
    static const open_fn walks[] = {open_archive, open_dataset, build_index, export_index};
    for (size_t i = 0; i < sizeof walks / sizeof *walks; ++i) {
        shf_options* options = OPTIONS("timeout", "2ms", "index", "memory");
        shf_error error = {0};
        CHECK_CODE(walks[i](walk, options, &error), SHF_E_TIMEOUT, &error);
        CHECK_TEXT(error.message, "walk.tar");
        shf_options_free(options);
    }
}

/* A directory in memory: nothing is read, so the parsing itself must look at the clock. */
static void a_walk_in_memory_obeys_the_timeout(void) {
    zip_file zip;
    zip_start(&zip, path_of("walk.zip"));
    char name[32];
    for (int i = 0; i < 65000; ++i) {
        snprintf(name, sizeof name, "%06d.x", i);
        zip_add(&zip, name, "", 0);
    }
    zip_end(&zip);
    FILE* file = fopen(path_of("walk.zip"), "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    const size_t size = (size_t)ftell(file);
    char* bytes = malloc(size);
    rewind(file);
    CHECK(bytes != NULL && fread(bytes, 1, size, file) == size);
    fclose(file);
    shf_options* options = OPTIONS("timeout", "100us");
    shf_error error = {0};
    shf_archive* archive;
    CHECK_CODE(shf_archive_open_memory(&archive, bytes, size, options, &error), SHF_E_TIMEOUT,
               &error);
    shf_options_free(options);
    free(bytes);
}

/* Four tebibytes of nothing behind one sample are refused or walked through; either way it ends. */
static void a_sparse_file_keeps_nobody(void) {
    static const open_fn walks[] = {open_archive, open_dataset, build_index};
    for (int round = 0; round < rounds; ++round)
        for (size_t i = 0; i < sizeof walks / sizeof *walks; ++i) {
            shf_options* options = interruptible(OPTIONS("index", "memory"));
            shf_error error = {0};
            pthread_t thread;
            long ms = 60;
            pthread_create(&thread, NULL, stop_later, &ms);
            const int32_t code = walks[i](sparse, options, &error);
            pthread_join(thread, NULL);
            CHECK(seconds() - stopped_at < HANG);
            CHECK(code < 0);
            shf_options_free(options);
        }
}

/* ---- What comes late comes all the same ------------------------------------------------------ */

static void* write_later(void* ctx) {
    const char* bytes = ctx;
    sleep_ms(200);
    const int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
    sleep_ms(100);
    CHECK(write(fd, "\n", 1) == 1);
    close(fd);
    return NULL;
}

static void a_list_in_a_fifo_is_read_to_its_end(void) {
    shf_error error = {0};
    int count = 0;
    pthread_t thread;
    const char* url = list;
    static char lines[] = "a.tar\nb-{0..3}.tar\n# c.tar";
    shf_options* options = OPTIONS("timeout", "20s");
    pthread_create(&thread, NULL, write_later, lines);
    CHECK_OK(shf_expand_urls(&url, 1, options, take_url, &count, &error), &error);
    pthread_join(thread, NULL);
    CHECK(count == 5);
    shf_options_free(options);
}

static void an_archive_in_a_fifo_comes_late(void) {
    write_shard(1, 10);
    char command[1400];
    snprintf(command, sizeof command, "(sleep 0.3; cat '%s' > '%s') &", path_of("s1.tar"), fifo);
    CHECK(system(command) == 0);
    shf_options* options = interruptible(OPTIONS("timeout", "20s"));
    shf_error error = {0};
    CHECK_OK(open_archive(fifo, options, &error), &error);
    CHECK(questions > 0);
    shf_options_free(options);
}

int main(int count, char** arguments) {
    if (count > 1) rounds = atoi(arguments[1]);
    struct sigaction action = {.sa_handler = stop_by_signal};
    sigaction(SIGUSR1, &action, NULL);
    make_shard_directory();
    make_files();
    RUN(an_interrupt_ends_every_opening);
    RUN(an_interrupt_of_another_thread_asks_that_thread_alone);
    RUN(an_interrupt_may_call_the_library);
    RUN(a_timeout_ends_every_opening);
    RUN(an_interrupt_function_stands_for_the_timeout_of_a_stream);
    RUN(pipe_timeout_bounds_a_fifo);
    RUN(a_walk_obeys_the_timeout);
    RUN(a_walk_in_memory_obeys_the_timeout);
    RUN(a_sparse_file_keeps_nobody);
    RUN(a_list_in_a_fifo_is_read_to_its_end);
    RUN(an_archive_in_a_fifo_comes_late);
    close(silent_writer);
    remove_shard_directory();
    return finish();
}
