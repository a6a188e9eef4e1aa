/* Plans as a C program sees them: over real shards, with and without index files. */
#include "tar_shards.h"

#include <utime.h>

static shf_plan* plan_of(const char* url, const shf_options* options) {
    shf_plan* plan = NULL;
    shf_error error;
    CHECK_OK(shf_plan_make(&plan, &url, 1, options, &error), &error);
    return plan;
}

static const char* text_of(const shf_plan* plan) {
    shf_bytes text;
    shf_plan_text(plan, &text);
    CHECK(text.data != NULL && text.data[text.size] == '\0');
    return (const char*)text.data;
}

static void build_index(const char* name, const shf_options* options) {
    shf_error error;
    CHECK_OK(shf_index_build(path_of(name), options, &error), &error);
}

/* No shard is opened: these do not even exist. */
static void test_plan_without_shards(void) {
    shf_options* options = OPTIONS("world_size", "2", "num_workers", "2", "lanes", "8");
    shf_plan* plan = plan_of("/nonexistent/{0..5}.tar", options);
    shf_options_free(options); /* the plan has its own copy */
    CHECK(shf_plan_consumer_count(plan) == 4);
    for (uint64_t c = 0; c < 4; ++c) {
        CHECK(shf_plan_info(plan, c, SHF_PLAN_RANK) == c / 2);
        CHECK(shf_plan_info(plan, c, SHF_PLAN_WORKER) == c % 2);
        CHECK(shf_plan_info(plan, c, SHF_PLAN_LANES) == 2);
        CHECK(shf_plan_info(plan, c, SHF_PLAN_SHARDS) == (c < 2 ? 2 : 1));
        CHECK(shf_plan_info(plan, c, SHF_PLAN_SAMPLES) == UINT64_MAX);
        CHECK(shf_plan_info(plan, c, SHF_PLAN_BYTES) == UINT64_MAX);
    }
    CHECK(shf_plan_info(plan, 4, SHF_PLAN_RANK) == UINT64_MAX);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_BYTES + 1) == UINT64_MAX);
    CHECK(shf_plan_info(plan, 0, -1) == UINT64_MAX);
    CHECK_TEXT(text_of(plan), "6 shards, 4 consumers (2 ranks x 2 workers), 8 lanes\n");
    CHECK_TEXT(text_of(plan), "samples are not known: /nonexistent/0.tar: ");
    CHECK_TEXT(text_of(plan), "rank 1 worker 1: 2 lanes, 1 shard\nwarning: ");

    shf_bytes warning;
    CHECK(shf_plan_warning(plan, 0, &warning) == SHF_OK);
    CHECK_TEXT((const char*)warning.data, "1 to 2 shards each");
    CHECK_TEXT((const char*)warning.data, "; help: ");
    CHECK(strlen((const char*)warning.data) == warning.size);
    CHECK(shf_plan_warning(plan, 1, &warning) == SHF_E_NOT_FOUND);
    CHECK(warning.data == NULL && warning.size == 0);
    shf_plan_free(plan);
}

/* What shf_stream_open refuses comes as a warning with the same words, but contradictions stay
 * errors. */
static void test_fewer_shards_than_consumers(void) {
    const char* url = "{0..2}.tar";
    shf_options* options = OPTIONS("num_workers", "4", "worker", "0");
    shf_stream* stream = NULL;
    shf_error error;
    CHECK_CODE(shf_stream_open(&stream, &url, 1, options, &error), SHF_E_USAGE, &error);
    shf_plan* plan = plan_of(url, options);
    shf_bytes warning;
    CHECK(shf_plan_warning(plan, 0, &warning) == SHF_OK);
    CHECK(strcmp((const char*)warning.data, error.message) == 0);
    CHECK(shf_plan_info(plan, 2, SHF_PLAN_SHARDS) == 1);
    CHECK(shf_plan_info(plan, 3, SHF_PLAN_SHARDS) == 0);
    shf_plan_free(plan);

    CHECK_OK(shf_options_set(options, "lanes", "6", &error), &error);
    CHECK_OK(shf_options_set(options, "even", "drop", &error), &error);
    CHECK_CODE(shf_plan_make(&plan, &url, 1, options, &error), SHF_E_USAGE, &error);
    CHECK(plan == NULL);
    CHECK_TEXT(error.message, "lanes=6");
    shf_options_free(options);
}

static void test_samples_of_indexes(void) {
    char url[700];
    snprintf(url, sizeof url, "%s", path_of("s{0..3}.tar"));
    for (int shard = 0; shard < 4; ++shard) write_shard(shard, 10 * (shard + 1));
    shf_options* options = OPTIONS("num_workers", "2");
    for (int shard = 0; shard < 4; ++shard) {
        /* Only when all of them have one. */
        shf_plan* plan = plan_of(url, options);
        CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == UINT64_MAX);
        CHECK_TEXT(text_of(plan), "the shard has no index");
        CHECK(shf_plan_shard_count(plan) == 4);
        CHECK(shf_plan_shard_info(plan, 0, SHF_PLAN_SHARD_SAMPLES) == UINT64_MAX);
        shf_plan_free(plan);
        char name[16];
        snprintf(name, sizeof name, "s%d.tar", shard);
        build_index(name, NULL);
    }
    shf_plan* plan = plan_of(url, options);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == 10 + 30);
    CHECK(shf_plan_info(plan, 1, SHF_PLAN_SAMPLES) == 20 + 40);
    struct stat s0, s2;
    stat(path_of("s0.tar"), &s0);
    stat(path_of("s2.tar"), &s2);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_BYTES) == (uint64_t)(s0.st_size + s2.st_size));
    CHECK(shf_plan_shard_count(plan) == 4);
    for (uint64_t shard = 0; shard < 4; ++shard)
        CHECK(shf_plan_shard_info(plan, shard, SHF_PLAN_SHARD_SAMPLES) == 10 * (shard + 1));
    CHECK(shf_plan_shard_info(plan, 2, SHF_PLAN_SHARD_BYTES) == (uint64_t)s2.st_size);
    CHECK(shf_plan_shard_info(plan, 4, SHF_PLAN_SHARD_BYTES) == UINT64_MAX);
    CHECK(shf_plan_shard_info(plan, 0, SHF_PLAN_SHARD_BYTES + 1) == UINT64_MAX);
    CHECK_TEXT(text_of(plan), "100 samples, ");
    CHECK_TEXT(text_of(plan), "each consumer: 2 shards, 40 to 60 samples\n");
    shf_plan_free(plan);

    /* As a stream delivers them. */
    shf_error error;
    for (uint64_t worker = 0; worker < 2; ++worker) {
        const char* given = url;
        shf_stream* stream = NULL;
        shf_sample* sample;
        uint64_t samples = 0;
        shf_options_set(options, "worker", worker == 0 ? "0" : "1", NULL);
        plan = plan_of(url, options);
        CHECK_OK(shf_stream_open(&stream, &given, 1, options, &error), &error);
        while (shf_stream_next(stream, &sample, &error) == SHF_OK) {
            ++samples;
            shf_sample_unref(sample);
        }
        CHECK(shf_plan_info(plan, worker, SHF_PLAN_SAMPLES) == samples);
        shf_stream_close(stream);
        shf_plan_free(plan);
    }
    CHECK_OK(shf_options_set(options, "index", "memory", &error), &error);
    plan = plan_of(url, options);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == UINT64_MAX);
    shf_plan_free(plan);
    shf_options_free(options);
}

/* With the option even, what the plan says is what the stream has, or that it would not open. */
static void test_even(void) {
    char url[700];
    snprintf(url, sizeof url, "%s", path_of("s{20..22}.tar"));
    const char* given = url;
    shf_options* options = OPTIONS("num_workers", "2", "worker", "0", "even", "drop");
    shf_stream* stream = NULL;
    shf_error error;
    shf_bytes warning;
    for (int shard = 20; shard < 23; ++shard) {
        write_shard(shard, shard);
        CHECK(shf_stream_open(&stream, &given, 1, options, &error) < 0);
        char name[16];
        snprintf(name, sizeof name, "s%d.tar", shard);
        if (shard < 22) build_index(name, NULL);
    }
    shf_plan* plan = plan_of(url, options);
    CHECK(shf_plan_warning(plan, 0, &warning) == SHF_OK);
    CHECK_TEXT((const char*)warning.data, "would not open: ");
    CHECK_TEXT((const char*)warning.data, "s22.tar: the shard has no index");
    shf_plan_free(plan);

    build_index("s22.tar", NULL);
    plan = plan_of(url, options);
    CHECK_OK(shf_stream_open(&stream, &given, 1, options, &error), &error);
    const uint64_t samples = shf_stream_stat(stream, SHF_STAT_EPOCH_SAMPLES);
    CHECK(samples == 21);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == samples);
    CHECK(shf_plan_info(plan, 1, SHF_PLAN_SAMPLES) == samples);
    CHECK_TEXT(text_of(plan), "even=drop leaves out 21\n");
    CHECK(shf_plan_warning(plan, 0, &warning) == SHF_E_NOT_FOUND);
    shf_plan_free(plan);
    shf_stream_close(stream);
    shf_options_free(options);
}

/* An index that is not of the shard as it is now, or that is no index, says nothing. */
static void test_indexes_that_are_not_used(void) {
    write_shard(9, 5);
    build_index("s9.tar", NULL);
    const char* url = path_of("s9.tar");
    shf_plan* plan = plan_of(url, NULL);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == 5);
    shf_plan_free(plan);

    shf_options* filtered = OPTIONS("slice", "0:2");
    plan = plan_of(url, filtered);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == UINT64_MAX);
    CHECK_TEXT(text_of(plan), "slice");
    shf_plan_free(plan);
    shf_options_free(filtered);

    /* Another time, another size. */
    const struct utimbuf past = {1000000000, 1000000000};
    CHECK(utime(url, &past) == 0);
    plan = plan_of(url, NULL);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == UINT64_MAX);
    CHECK_TEXT(text_of(plan), "its index is of another version of the shard");
    shf_plan_free(plan);

    /* An index that was made under options that accept more. */
    shf_options* lenient = OPTIONS("trailing", "ignore", "index_dir", shard_directory);
    build_index("s9.tar", lenient);
    plan = plan_of(url, lenient);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == 5);
    shf_plan_free(plan);
    CHECK_OK(shf_options_set(lenient, "trailing", "refuse", NULL), NULL);
    plan = plan_of(url, lenient);
    CHECK_TEXT(text_of(plan), "options that accept more");
    shf_plan_free(plan);
    shf_options_free(lenient);

    /* Every shorter file, and every byte another one: an answer, and never a wrong one where the
     * form is broken. */
    build_index("s9.tar", NULL);
    const char* path = path_of("s9.tar.sfidx");
    static char bytes[4096];
    FILE* file = fopen(path, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(size > 100 && size < sizeof bytes);
    for (size_t cut = 0; cut < size; ++cut) {
        file = fopen(path, "wb");
        fwrite(bytes, 1, cut, file);
        fclose(file);
        plan = plan_of(url, NULL);
        CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == UINT64_MAX);
        shf_plan_free(plan);
    }
    for (size_t i = 0; i < size; ++i)
        for (int bit = 0; bit < 8; ++bit) {
            bytes[i] = (char)(bytes[i] ^ (1 << bit));
            file = fopen(path, "wb");
            fwrite(bytes, 1, size, file);
            fclose(file);
            bytes[i] = (char)(bytes[i] ^ (1 << bit));
            plan = plan_of(url, NULL);
            const uint64_t samples = shf_plan_info(plan, 0, SHF_PLAN_SAMPLES);
            CHECK(samples == 5 || samples == UINT64_MAX);
            shf_plan_free(plan);
        }
}

/* Many indexed shards: the index files are looked at, not read. */
static void test_many_indexes_take_little_time(void) {
    enum { SHARDS = 200 };
    for (int shard = 100; shard < 100 + SHARDS; ++shard) {
        char name[16];
        write_shard(shard, 3);
        snprintf(name, sizeof name, "s%d.tar", shard);
        build_index(name, NULL);
    }
    const double start = seconds();
    shf_plan* plan = plan_of(path_of("s{100..299}.tar"), NULL);
    printf("%d indexes: %.2f ms\n", SHARDS, (seconds() - start) * 1e3);
    CHECK(shf_plan_info(plan, 0, SHF_PLAN_SAMPLES) == 3 * SHARDS);
    shf_plan_free(plan);
}

static void test_many_shards_take_little_time(void) {
    shf_options* options = OPTIONS("world_size", "12500", "num_workers", "8");
    const double start = seconds();
    shf_plan* plan = plan_of("/nonexistent/{000000..999999}.tar", options);
    printf("a million shards, %.0f consumers: %.2f ms\n", (double)shf_plan_consumer_count(plan),
           (seconds() - start) * 1e3);
    CHECK(shf_plan_consumer_count(plan) == 100000);
    CHECK_TEXT(text_of(plan), "... 99,991 more like these\n");
    shf_plan_free(plan);
    shf_options_free(options);
}

static void test_wrong_calls(void) {
    const char* url = "a.tar";
    shf_plan* plan = NULL;
    shf_bytes bytes = {(const uint8_t*)"x", 1};
    shf_error error;
    CHECK_CODE(shf_plan_make(NULL, &url, 1, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_plan_make(&plan, NULL, 1, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_plan_make(&plan, &url, 0, NULL, &error), SHF_E_USAGE, &error);
    const char* absent = "@/nonexistent/list";
    CHECK_CODE(shf_plan_make(&plan, &absent, 1, NULL, &error), SHF_E_IO, &error);
    shf_options* options = OPTIONS("slice", "1:x");
    CHECK_CODE(shf_plan_make(&plan, &url, 1, options, NULL), SHF_E_USAGE, NULL);
    shf_options_free(options);
    CHECK(plan == NULL);
    CHECK(shf_plan_consumer_count(NULL) == 0);
    CHECK(shf_plan_info(NULL, 0, SHF_PLAN_RANK) == UINT64_MAX);
    CHECK(shf_plan_shard_count(NULL) == 0);
    CHECK(shf_plan_shard_info(NULL, 0, SHF_PLAN_SHARD_SAMPLES) == UINT64_MAX);
    CHECK(shf_plan_warning(NULL, 0, &bytes) == SHF_E_USAGE && bytes.data == NULL);
    bytes.size = 1;
    shf_plan_text(NULL, &bytes);
    CHECK(bytes.data == NULL && bytes.size == 0);
    shf_plan_free(NULL);
}

int main(void) {
    make_shard_directory();
    RUN(test_plan_without_shards);
    RUN(test_fewer_shards_than_consumers);
    RUN(test_samples_of_indexes);
    RUN(test_even);
    RUN(test_indexes_that_are_not_used);
    RUN(test_many_indexes_take_little_time);
    RUN(test_many_shards_take_little_time);
    RUN(test_wrong_calls);
    remove_shard_directory();
    return finish();
}
