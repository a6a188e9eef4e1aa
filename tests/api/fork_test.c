/* Streams and child processes: forks and spawns in the middle of an epoch, and what the child of a
 * fork may still do. */
#include "harness.h"

#include "tar_shards.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

enum { SHARDS = 4, PER_SHARD = 300 };

extern char** environ;

/* The child's exit status; a child that hangs is ended by its own alarm. */
static int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Ends a child. Not _exit(), behind which ThreadSanitizer looks through the books that it copied
 * with the fork and says that the child leaks the parent's threads, when one had run out by then.
 */
static void leave(int status) {
    _Exit(status);
}

/* What a child does with what it inherited; its exit status is the number of the first thing that
 * was wrong. */
static int use_in_child(shf_stream* stream, shf_sample* sample, shf_block* block) {
    shf_sample* next = (shf_sample*)stream;
    shf_block* next_block = (shf_block*)stream;
    shf_error error;
    alarm(60);
    if (shf_stream_next(stream, &next, &error) != SHF_E_FORKED) return 1;
    if (next != NULL || error.code != SHF_E_FORKED || strstr(error.message, "parent") == NULL)
        return 2;
    if (shf_stream_next_block(stream, 0, &next_block, &error) != SHF_E_FORKED || next_block)
        return 3;
    if (shf_stream_stat(stream, SHF_STAT_SAMPLES) != UINT64_MAX) return 4;
    shf_stream_cancel(stream); /* of a stream that is not ours: nothing */
    if (!is_whole(sample)) return 5;
    if (block != NULL && !is_whole(shf_block_sample(block, 0))) return 6;
    shf_sample_ref(sample);
    shf_sample_unref(sample);
    shf_stream_close(stream);
    if (!is_whole(sample)) return 7;
    shf_sample_unref(sample);
    shf_block_unref(block);
    return 0;
}

static void test_child_of_a_fork(void) {
    static const char* const shuffles[] = {"0", "50"};
    for (int s = 0; s < 2; ++s)
        for (int started = 0; started < 2; ++started) {
            shf_stream* other = open_stream("s0.tar", NULL);
            shf_stream* stream =
                open_stream("s{0..3}.tar", OPTIONS("threads", "3", "shuffle", shuffles[s]));
            shf_sample* sample;
            shf_block* block;
            shf_error error;
            shf_stream* used = started ? stream : other;
            CHECK_OK(shf_stream_next(stream, &sample, &error), &error);
            CHECK_OK(shf_stream_next_block(stream, 0, &block, &error), &error);
            size_t count = 1 + shf_block_sample_count(block);
            fflush(NULL);
            const pid_t child = fork();
            if (child == 0) leave(use_in_child(used, sample, block));
            CHECK(wait_for(child) == 0);
            /* The parent's own are untouched. */
            CHECK(is_whole(sample) && is_whole(shf_block_sample(block, 0)));
            shf_sample_unref(sample);
            shf_block_unref(block);
            int32_t rc;
            while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
                CHECK(is_whole(sample));
                shf_sample_unref(sample);
                ++count;
            }
            CHECK_CODE(rc, SHF_END, &error);
            CHECK(count == SHARDS * PER_SHARD);
            CHECK_OK(shf_stream_next(other, &sample, &error), &error);
            shf_sample_unref(sample);
            shf_stream_close(stream);
            shf_stream_close(other);
        }
}

/* ThreadSanitizer allows no threads after a fork, and the allocator of AddressSanitizer hangs when
 * another thread held its lock at the fork. */
#if !SANITIZED
/* A child may open streams of its own, and its child again. */
static int read_all(int depth) {
    alarm(60);
    shf_stream* stream = open_stream("s{0..3}.tar", OPTIONS("threads", "2"));
    shf_sample* sample;
    size_t count = 0;
    if (stream == NULL) return 1;
    if (shf_stream_next(stream, &sample, NULL) != SHF_OK) return 2;
    shf_sample_unref(sample);
    if (depth > 0) {
        const pid_t child = fork();
        if (child == 0) {
            if (shf_stream_next(stream, &sample, NULL) != SHF_E_FORKED) leave(10);
            shf_stream_close(stream);
            leave(read_all(depth - 1));
        }
        const int status = wait_for(child);
        if (status != 0) return status;
    }
    for (count = 1; shf_stream_next(stream, &sample, NULL) == SHF_OK; ++count) {
        if (!is_whole(sample)) return 3;
        shf_sample_unref(sample);
    }
    shf_stream_close(stream);
    return count == SHARDS * PER_SHARD ? 0 : 4;
}

static void test_child_opens_its_own(void) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) leave(read_all(2));
    CHECK(wait_for(child) == 0);
}
#endif

/* The end of a child does not end the parent's pipe command. */
static void test_pipe_survives_a_child(void) {
    char url[800];
    snprintf(url, sizeof url, "pipe:cat %s; sleep 0.3; cat %s", path_of("s0.tar"),
             path_of("s1.tar"));
    const char* given = url;
    shf_options* options = OPTIONS("concat", "true");
    shf_stream* stream;
    shf_sample* sample;
    shf_error error;
    int32_t rc;
    size_t count = 1;
    CHECK_OK(shf_stream_open(&stream, &given, 1, options, &error), &error);
    shf_options_free(options);
    CHECK_OK(shf_stream_next(stream, &sample, &error), &error);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) leave(use_in_child(stream, sample, NULL));
    CHECK(wait_for(child) == 0);
    shf_sample_unref(sample);
    for (; (rc = shf_stream_next(stream, &sample, &error)) == SHF_OK; ++count)
        shf_sample_unref(sample);
    CHECK_CODE(rc, SHF_END, &error);
    CHECK(count == 2 * PER_SHARD);
    shf_stream_close(stream);
}

static void test_many_forks_and_spawns(void) {
    enum { RUNS = 500 };
    static char program[] = "/bin/true";
    char* const words[] = {program, NULL};
    shf_stream* stream = open_stream(
        "s{0..3}.tar", OPTIONS("threads", "4", "epochs", "0", "lanes", "2", "memory", "2MiB"));
    shf_sample* sample = NULL;
    shf_block* block;
    shf_error error;
    size_t count = 0;
    fflush(NULL);
    for (int run = 0; run < RUNS; ++run) {
        /* Readers are busy: memory was just handed out. */
        CHECK_OK(shf_stream_next_block(stream, 0, &block, &error), &error);
        for (size_t i = 0; i < shf_block_sample_count(block); ++i, ++count)
            CHECK(is_whole(shf_block_sample(block, i)));
        shf_block_unref(block);
        CHECK_OK(shf_stream_next(stream, &sample, &error), &error);
        ++count;
        pid_t child = -1;
        if (run % 2 == 0) {
            child = fork();
            if (child == 0) leave(use_in_child(stream, sample, NULL));
        } else {
            CHECK(posix_spawn(&child, program, NULL, NULL, words, environ) == 0);
        }
        const int status = wait_for(child);
        CHECK(status == 0);
        CHECK(is_whole(sample));
        shf_sample_unref(sample);
        if (status != 0) break;
    }
    CHECK(shf_stream_stat(stream, SHF_STAT_SAMPLES) == count);
    shf_stream_close(stream);
}

int main(void) {
    make_shard_directory();
    for (int shard = 0; shard < SHARDS; ++shard) write_shard(shard, PER_SHARD);
    const int threads = count_own_threads();
    const int descriptors = count_entries("/proc/self/fd");
    RUN(test_child_of_a_fork);
#if !SANITIZED
    RUN(test_child_opens_its_own);
#endif
    RUN(test_pipe_survives_a_child);
    RUN(test_many_forks_and_spawns);
    CHECK(settled_threads(threads) == threads);
    CHECK(count_entries("/proc/self/fd") == descriptors);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    remove_shard_directory();
    return finish();
}
