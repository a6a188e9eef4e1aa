/* Checks for the C tests of the public header. A failed check prints file and line, and the
 * program goes on; finish() is its exit status. A watchdog ends a test that hangs. Include first:
 * the feature macro must come before any system header. */
#ifndef SHARDFEED_TESTS_HARNESS_H
#define SHARDFEED_TESTS_HARNESS_H

#define _XOPEN_SOURCE 700

#include "../sanitizers.h"

#include <shardfeed.h>

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int failed_checks = 0;

#define CHECK(condition) ((condition) ? (void)0 : fail_check(__FILE__, __LINE__, #condition, NULL))
/* A call that should give `code`; the error's message is printed when it does not. */
#define CHECK_CODE(call, code, error) check_code(__FILE__, __LINE__, #call, (call), (code), (error))
#define CHECK_OK(call, error) CHECK_CODE(call, SHF_OK, error)
#define CHECK_TEXT(text, part) check_text(__FILE__, __LINE__, (text), (part))
#define RUN(test) run_test(#test, test)

static inline void fail_check(const char* file, int line, const char* what, const char* detail) {
    ++failed_checks;
    fprintf(stderr, "%s:%d: failed: %s%s%s\n", file, line, what, detail ? ": " : "",
            detail ? detail : "");
}

static inline void check_code(const char* file, int line, const char* what, int32_t got,
                              int32_t wanted, const shf_error* error) {
    char detail[1200];
    if (got == wanted && (got >= 0 || error == NULL || error->code == got)) return;
    snprintf(detail, sizeof detail, "%s, not %s (%s)", shf_error_name(got), shf_error_name(wanted),
             error != NULL && got < 0 ? error->message : "no message");
    fail_check(file, line, what, detail);
}

/* `text` contains `part`. */
static inline void check_text(const char* file, int line, const char* text, const char* part) {
    if (text == NULL || strstr(text, part) == NULL) fail_check(file, line, part, text);
}

static inline void run_test(const char* name, void (*test)(void)) {
    const int before = failed_checks;
    alarm(120); /* SIGALRM ends the program: no test may wait for ever */
    test();
    alarm(0);
    printf("%s %s\n", failed_checks == before ? "ok  " : "FAIL", name);
    fflush(stdout);
}

static inline int finish(void) {
    if (failed_checks > 0) fprintf(stderr, "%d checks failed\n", failed_checks);
    return failed_checks > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void sleep_ms(long ms) {
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* Sanitizers make everything slower: limits of time are multiplied by this. */
enum { SLOWNESS = SANITIZED ? 10 : 1 };

/* Entries of /proc/self/fd or /proc/self/task. */
static inline int count_entries(const char* path) {
    int count = 0;
    DIR* directory = opendir(path);
    if (directory == NULL) return -1;
    while (readdir(directory) != NULL) ++count;
    closedir(directory);
    return count;
}

static inline void* do_nothing(void* ctx) {
    return ctx;
}

/* The threads of this process while no stream is open. ThreadSanitizer keeps one of its own from
 * the first one on that the program starts. */
static inline int count_own_threads(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0) pthread_join(thread, NULL);
    sleep_ms(20);
    return count_entries("/proc/self/task");
}

/* The thread count after those that ended are really gone: a join returns a moment earlier. */
static inline int settled_threads(int expected) {
    int count = count_entries("/proc/self/task");
    for (int i = 0; i < 200 && count > expected; ++i) {
        sleep_ms(5);
        count = count_entries("/proc/self/task");
    }
    return count;
}

#endif
