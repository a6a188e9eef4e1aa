/* Datasets: samples of tars and a ZIP file by number and key, by many threads and by forked
 * children at once. */
#include "harness.h"

#include "tar_shards.h"
#include "zip_file.h"

#include <errno.h>
#include <sys/wait.h>

enum { SHARDS = 3, PER_SHARD = 120, ALL = SHARDS * PER_SHARD, THREADS = 32, CHILDREN = 8 };

static const char* const urls_of_all[] = {"s{0,1}.tar", "s2.zip"};

static void write_zip_shard(int shard, int samples) {
    char name[100];
    unsigned char bin[MOST_BIN];
    zip_file zip;
    snprintf(name, sizeof name, "s%d.zip", shard);
    zip_start(&zip, path_of(name));
    for (int i = 0; i < samples; ++i) {
        for (size_t k = 0; k < bin_size(shard, i); ++k) bin[k] = bin_byte(shard, i, k);
        snprintf(name, sizeof name, "s%d/%06d.txt", shard, i);
        zip_add(&zip, name, name, strlen(name) - 4);
        snprintf(name, sizeof name, "s%d/%06d.bin", shard, i);
        zip_add(&zip, name, bin, bin_size(shard, i));
    }
    zip_end(&zip);
}

static size_t key_of(char* key, int number) {
    return (size_t)snprintf(key, 64, "s%d/%06d", number / PER_SHARD, number % PER_SHARD);
}

/* Sample number `number` of all, and no other. */
static bool is_sample(const shf_sample* sample, int number) {
    char key[64];
    const size_t size = key_of(key, number);
    shf_bytes found;
    shf_sample_key(sample, &found);
    return found.size == size && memcmp(found.data, key, size) == 0 && is_whole(sample) &&
           shf_sample_info(sample, SHF_SAMPLE_SHARD) == (uint64_t)(number / PER_SHARD) &&
           shf_sample_info(sample, SHF_SAMPLE_EPOCH) == 0 &&
           shf_sample_info(sample, SHF_SAMPLE_LANE) == 0;
}

static shf_dataset* open_all(shf_options* options) {
    char first[600], second[600];
    snprintf(first, sizeof first, "%s", path_of(urls_of_all[0]));
    snprintf(second, sizeof second, "%s", path_of(urls_of_all[1]));
    const char* const urls[] = {first, second};
    shf_dataset* dataset = NULL;
    shf_error error;
    CHECK_OK(shf_dataset_open(&dataset, urls, 2, options, &error), &error);
    shf_options_free(options);
    return dataset;
}

/* The number of the first thing that is wrong with the dataset of all, or 0. */
static int wrong_with(const shf_dataset* dataset, int first) {
    if (shf_dataset_sample_count(dataset) != ALL) return 1;
    for (int k = 0; k < ALL; ++k) {
        const int i = (first + k * 7) % ALL;
        char key[64];
        const size_t key_size = key_of(key, i);
        shf_sample* sample;
        uint64_t number, shard, start;
        if (shf_dataset_get(dataset, (uint64_t)i, &sample, NULL) != SHF_OK) return 2;
        const bool right = is_sample(sample, i);
        shf_sample_unref(sample);
        if (!right) return 3;
        if (shf_dataset_find(dataset, key, key_size, &number, NULL) != SHF_OK) return 4;
        if (number != (uint64_t)i) return 5;
        if (shf_dataset_shard(dataset, number, &shard, &start) != SHF_OK) return 6;
        if (shard != (uint64_t)(i / PER_SHARD) || start != shard * PER_SHARD) return 7;
    }
    uint64_t numbers[30];
    shf_sample* samples[30];
    for (int i = 0; i < 30; ++i) numbers[i] = (uint64_t)((first + i * 101) % ALL);
    if (shf_dataset_get_many(dataset, numbers, 30, samples, NULL) != SHF_OK) return 8;
    int wrong = 0;
    for (int i = 0; i < 30; ++i) {
        if (!is_sample(samples[i], (int)numbers[i])) wrong = 9;
        shf_sample_unref(samples[i]);
    }
    return wrong;
}

static void test_samples(void) {
    static const char* const indexes[] = {"memory", "auto", "require", "rebuild"};
    static const char* const threads[] = {"0", "1", "4"};
    for (int i = 0; i < 4; ++i)
        for (int t = 0; t < 3; ++t) {
            shf_dataset* dataset = open_all(OPTIONS("index", indexes[i], "threads", threads[t]));
            CHECK(wrong_with(dataset, i) == 0);
            shf_dataset_close(dataset);
        }
    uint64_t shard = 7, start = 7;
    shf_dataset* dataset = open_all(NULL);
    CHECK(shf_dataset_shard(dataset, ALL - 1, NULL, NULL) == SHF_OK);
    CHECK(shf_dataset_shard(dataset, ALL - 1, &shard, NULL) == SHF_OK && shard == SHARDS - 1);
    CHECK(shf_dataset_shard(dataset, ALL - 1, NULL, &start) == SHF_OK && start == ALL - PER_SHARD);
    CHECK(shf_dataset_shard(dataset, ALL, &shard, &start) == SHF_E_NOT_FOUND);
    CHECK(shard == 0 && start == 0);
    shf_dataset_close(dataset);
}

/* Every sample at once, which takes threads; the samples outlive the dataset, in any order. */
static void test_many_and_lifetimes(void) {
    static shf_sample* samples[ALL];
    static uint64_t numbers[ALL];
    shf_error error;
    for (int i = 0; i < ALL; ++i) numbers[i] = (uint64_t)(i * 7 % ALL);
    for (int round = 0; round < 3; ++round) {
        shf_dataset* dataset = open_all(OPTIONS("threads", "3"));
        CHECK_OK(shf_dataset_get_many(dataset, numbers, ALL, samples, &error), &error);
        CHECK_OK(shf_dataset_get_many(dataset, NULL, 0, NULL, &error), &error);
        if (round > 0) shf_dataset_close(dataset);
        for (int i = 0; i < ALL; ++i) CHECK(is_sample(samples[i], (int)numbers[i]));
        for (int i = round == 1 ? ALL - 1 : 0; i >= 0 && i < ALL; i += round == 1 ? -1 : 1) {
            CHECK(shf_sample_ref(samples[i]) == samples[i]);
            shf_sample_unref(samples[i]);
            CHECK(is_sample(samples[i], (int)numbers[i]));
            shf_sample_unref(samples[i]);
        }
        if (round == 0) shf_dataset_close(dataset);
    }
}

static void test_wrong_calls(void) {
    shf_dataset* dataset = (shf_dataset*)urls_of_all;
    shf_sample *sample = (shf_sample*)urls_of_all, *samples[2] = {sample, sample};
    const char* url = path_of("s0.tar");
    const char* const hole[] = {url, NULL};
    const char* const missing[] = {url, path_of("none.tar")};
    uint64_t numbers[2] = {0, ALL}, number = 1;
    shf_error error;

    CHECK_CODE(shf_dataset_open(NULL, &url, 1, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_dataset_open(&dataset, NULL, 1, NULL, &error), SHF_E_USAGE, &error);
    CHECK(dataset == NULL);
    CHECK_CODE(shf_dataset_open(&dataset, NULL, 0, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_dataset_open(&dataset, hole, 2, NULL, NULL), SHF_E_USAGE, NULL);
    dataset = (shf_dataset*)urls_of_all;
    CHECK_CODE(shf_dataset_open(&dataset, missing, 2, NULL, &error), SHF_E_IO, &error);
    CHECK(dataset == NULL && error.os_error == ENOENT);
    CHECK_TEXT(error.message, "none.tar");
    CHECK_CODE(shf_index_build(NULL, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_index_build(missing[1], NULL, &error), SHF_E_IO, &error);
    CHECK_CODE(shf_index_build(path_of("s2.zip"), NULL, NULL), SHF_E_UNSUPPORTED, NULL);
    CHECK_OK(shf_index_build(url, NULL, &error), &error);

    shf_dataset_close(NULL);
    CHECK(shf_dataset_sample_count(NULL) == 0);
    CHECK_CODE(shf_dataset_get(NULL, 0, &sample, &error), SHF_E_USAGE, &error);
    CHECK(sample == NULL);
    CHECK_CODE(shf_dataset_get_many(NULL, numbers, 1, samples, &error), SHF_E_USAGE, &error);
    CHECK(samples[0] == NULL && samples[1] == (shf_sample*)urls_of_all);
    CHECK_CODE(shf_dataset_get_many(NULL, NULL, 0, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_dataset_find(NULL, "x", 1, &number, &error), SHF_E_USAGE, &error);
    CHECK(number == 0);
    CHECK(shf_dataset_shard(NULL, 0, &number, &number) == SHF_E_USAGE);

    dataset = open_all(NULL);
    sample = (shf_sample*)urls_of_all;
    CHECK_CODE(shf_dataset_get(dataset, ALL, &sample, &error), SHF_E_USAGE, &error);
    CHECK(sample == NULL);
    CHECK_TEXT(error.message, "360");
    CHECK_CODE(shf_dataset_get(dataset, UINT64_MAX, &sample, NULL), SHF_E_USAGE, NULL);
    CHECK_CODE(shf_dataset_get(dataset, 0, NULL, &error), SHF_E_USAGE, &error);
    samples[0] = samples[1] = (shf_sample*)urls_of_all;
    CHECK_CODE(shf_dataset_get_many(dataset, numbers, 2, samples, &error), SHF_E_USAGE, &error);
    CHECK(samples[0] == NULL && samples[1] == NULL);
    samples[0] = (shf_sample*)urls_of_all;
    CHECK_CODE(shf_dataset_get_many(dataset, NULL, 1, samples, &error), SHF_E_USAGE, &error);
    CHECK(samples[0] == NULL);
    CHECK_CODE(shf_dataset_get_many(dataset, numbers, 1, NULL, &error), SHF_E_USAGE, &error);
    number = 1;
    CHECK_OK(shf_dataset_find(dataset, "s0/000000", SHF_STRLEN, &number, &error), &error);
    CHECK_CODE(shf_dataset_find(dataset, "none", SHF_STRLEN, &number, &error), SHF_E_NOT_FOUND,
               &error);
    CHECK_CODE(shf_dataset_find(dataset, NULL, SHF_STRLEN, &number, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_dataset_find(dataset, "none", 4, &number, &error), SHF_E_NOT_FOUND, &error);
    CHECK(number == 0);
    CHECK_CODE(shf_dataset_find(dataset, "s0/0000000", 10, &number, &error), SHF_E_NOT_FOUND,
               &error);
    CHECK_CODE(shf_dataset_find(dataset, "s0/000000", 8, &number, &error), SHF_E_NOT_FOUND, &error);
    CHECK_CODE(shf_dataset_find(dataset, NULL, 0, &number, &error), SHF_E_NOT_FOUND, &error);
    CHECK_CODE(shf_dataset_find(dataset, NULL, 1, &number, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_dataset_find(dataset, "x", 1, NULL, &error), SHF_E_USAGE, &error);
    CHECK(wrong_with(dataset, 0) == 0); /* wrong calls harm nothing */
    shf_dataset_close(dataset);
}

static int logged[3];
static char last_warning[1200];

static void take_message(void* ctx, int32_t level, const char* message) {
    CHECK(ctx == logged && level >= SHF_LOG_ERROR && level <= SHF_LOG_INFO);
    CHECK(strchr(message, '\n') == NULL);
    ++logged[level];
    if (level == SHF_LOG_WARNING) snprintf(last_warning, sizeof last_warning, "%s", message);
}

static void test_log(void) {
    write_shard(9, 3);
    const char* url = path_of("s9.tar");
    shf_dataset* dataset;
    shf_error error;
    for (int level = SHF_LOG_ERROR; level <= SHF_LOG_INFO; ++level) {
        FILE* file = fopen(path_of("s9.tar.sfidx"), "wb");
        fputs("not an index", file);
        fclose(file);
        shf_options* options = shf_options_new();
        shf_options_set_log(options, level, take_message, logged);
        memset(logged, 0, sizeof logged);
        CHECK_OK(shf_dataset_open(&dataset, &url, 1, options, &error), &error);
        shf_options_free(options);
        CHECK(shf_dataset_sample_count(dataset) == 3);
        shf_dataset_close(dataset);
        CHECK(logged[SHF_LOG_ERROR] == 0);
        CHECK(logged[SHF_LOG_WARNING] == (level >= SHF_LOG_WARNING ? 1 : 0));
        CHECK(logged[SHF_LOG_INFO] == (level >= SHF_LOG_INFO ? 2 : 0));
    }
    CHECK_TEXT(last_warning, "s9.tar.sfidx is not used");
}

typedef struct job {
    const shf_dataset* dataset;
    int number, wrong;
} job;

static void* use_dataset(void* ctx) {
    job* mine = ctx;
    for (int round = 0; round < 3 && mine->wrong == 0; ++round)
        mine->wrong = wrong_with(mine->dataset, mine->number * 11);
    return NULL;
}

/* All begin at once, so that several make the table of keys. */
static void test_threads(void) {
    for (int run = 0; run < 3; ++run) {
        shf_dataset* dataset = open_all(run == 2 ? OPTIONS("threads", "1") : NULL);
        pthread_t threads[THREADS];
        job jobs[THREADS];
        for (int t = 0; t < THREADS; ++t) {
            jobs[t] = (job){dataset, t, 0};
            CHECK(pthread_create(&threads[t], NULL, use_dataset, &jobs[t]) == 0);
        }
        for (int t = 0; t < THREADS; ++t) {
            pthread_join(threads[t], NULL);
            CHECK(jobs[t].wrong == 0);
        }
        shf_dataset_close(dataset);
    }
}

/* What one thread took another releases, while the dataset closes. */
static void* release_samples(void* ctx) {
    shf_sample** samples = ctx;
    for (int i = 0; i < ALL; ++i) shf_sample_unref(samples[i]);
    return NULL;
}

static void test_samples_of_other_threads(void) {
    static shf_sample* samples[4][ALL];
    static uint64_t numbers[ALL];
    for (int i = 0; i < ALL; ++i) numbers[i] = (uint64_t)i;
    for (int run = 0; run < 10; ++run) {
        shf_dataset* dataset = open_all(NULL);
        shf_error error;
        pthread_t threads[4];
        for (int t = 0; t < 4; ++t) {
            CHECK_OK(shf_dataset_get_many(dataset, numbers, ALL, samples[t], &error), &error);
            CHECK(is_sample(samples[t][17], 17));
            CHECK(pthread_create(&threads[t], NULL, release_samples, samples[t]) == 0);
        }
        shf_dataset_close(dataset);
        for (int t = 0; t < 4; ++t) pthread_join(threads[t], NULL);
    }
}

/* Eight children at once with one dataset that they inherited, and samples from before the fork. */
static void use_in_children(const shf_dataset* dataset, shf_dataset* to_close) {
    shf_sample *tar_sample, *zip_sample;
    CHECK(shf_dataset_get(dataset, 5, &tar_sample, NULL) == SHF_OK);
    CHECK(shf_dataset_get(dataset, ALL - 5, &zip_sample, NULL) == SHF_OK);
    pid_t children[CHILDREN];
    fflush(NULL);
    for (int c = 0; c < CHILDREN; ++c) {
        children[c] = fork();
        if (children[c] != 0) continue;
        alarm(100);
        int wrong = is_sample(tar_sample, 5) && is_sample(zip_sample, ALL - 5) ? 0 : 20;
        for (int round = 0; round < 5 && wrong == 0; ++round) wrong = wrong_with(dataset, c * 40);
        shf_sample_unref(tar_sample);
        if (c % 2 == 0) shf_dataset_close(to_close);
        if (wrong == 0 && !is_sample(zip_sample, ALL - 5)) wrong = 21;
        shf_sample_unref(zip_sample);
        _exit(wrong);
    }
    CHECK(wrong_with(dataset, 3) == 0);
    for (int c = 0; c < CHILDREN; ++c) {
        int status = 0;
        CHECK(waitpid(children[c], &status, 0) == children[c]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(is_sample(tar_sample, 5) && is_sample(zip_sample, ALL - 5));
    shf_sample_unref(tar_sample);
    shf_sample_unref(zip_sample);
}

static void test_forked_children(void) {
    for (int asked_before = 0; asked_before < 2; ++asked_before) {
        shf_dataset* dataset = open_all(OPTIONS("threads", "1"));
        if (asked_before) CHECK(wrong_with(dataset, 0) == 0);
        use_in_children(dataset, dataset);
        CHECK(wrong_with(dataset, 0) == 0);
        shf_dataset_close(dataset);
    }
}

/* Other threads are in the middle of reading at the fork. Not under sanitizers: ThreadSanitizer
 * allows no child of such a fork to go on, and the allocator of AddressSanitizer hangs when another
 * thread held its lock at the fork. */
#if !SANITIZED
static void test_fork_while_threads_read(void) {
    for (int run = 0; run < 5; ++run) {
        shf_dataset* dataset = open_all(NULL);
        pthread_t threads[4];
        job jobs[4];
        for (int t = 0; t < 4; ++t) {
            jobs[t] = (job){dataset, t, 0};
            CHECK(pthread_create(&threads[t], NULL, use_dataset, &jobs[t]) == 0);
        }
        use_in_children(dataset, dataset);
        for (int t = 0; t < 4; ++t) {
            pthread_join(threads[t], NULL);
            CHECK(jobs[t].wrong == 0);
        }
        shf_dataset_close(dataset);
    }
}
#endif

int main(void) {
    make_shard_directory();
    for (int shard = 0; shard < 2; ++shard) write_shard(shard, PER_SHARD);
    write_zip_shard(2, PER_SHARD);
    const int threads = count_own_threads();
    const int descriptors = count_entries("/proc/self/fd");
    RUN(test_samples);
    RUN(test_many_and_lifetimes);
    RUN(test_wrong_calls);
    RUN(test_log);
    RUN(test_forked_children);
#if !SANITIZED
    RUN(test_fork_while_threads_read);
#endif
    RUN(test_threads);
    RUN(test_samples_of_other_threads);
    CHECK(settled_threads(threads) == threads);
    CHECK(count_entries("/proc/self/fd") == descriptors);
    remove_shard_directory();
    return finish();
}
