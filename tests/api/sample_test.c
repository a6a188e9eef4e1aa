/* Samples, blocks, their flat tables and lifetimes; NULL everywhere. */
#include "harness.h"

#include "tar_shards.h"

enum { SHARDS = 4, PER_SHARD = 150, ALL = SHARDS * PER_SHARD };

static void test_next(void) {
    shf_stream* stream = open_stream("s{0..3}.tar", NULL);
    shf_sample* sample = NULL;
    shf_error error;
    int32_t rc;
    uint64_t bytes = 0, count = 0;
    while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
        shf_bytes key, url, name, data;
        CHECK(is_whole(sample));
        shf_sample_key(sample, &key);
        shf_sample_url(sample, &url);
        CHECK(url.data[url.size] == '\0');
        CHECK(strlen((const char*)url.data) == url.size);
        char expected[700];
        const int shard = (int)(count / PER_SHARD), number = (int)(count % PER_SHARD);
        snprintf(expected, sizeof expected, "s%d/%06d", shard, number);
        CHECK(key.size == strlen(expected) && memcmp(key.data, expected, key.size) == 0);
        snprintf(expected, sizeof expected, "%s/s%d.tar", shard_directory, shard);
        CHECK(strcmp((const char*)url.data, expected) == 0);
        CHECK(shf_sample_info(sample, SHF_SAMPLE_EPOCH) == 0);
        CHECK(shf_sample_info(sample, SHF_SAMPLE_LANE) == 0);
        CHECK(shf_sample_info(sample, SHF_SAMPLE_SHARD) == (uint64_t)shard);
        CHECK(shf_sample_info(sample, SHF_SAMPLE_OFFSET) % 512 == 0);
        CHECK((shf_sample_info(sample, SHF_SAMPLE_OFFSET) == 0) == (number == 0));
        CHECK(shf_sample_info(sample, SHF_SAMPLE_PART) == 0);
        CHECK(shf_sample_info(sample, 5) == UINT64_MAX);
        CHECK(shf_sample_info(sample, -1) == UINT64_MAX);
        CHECK(shf_sample_field(sample, 0, &name, &data) == SHF_OK);
        CHECK(name.size == 3 && memcmp(name.data, "txt", 3) == 0);
        bytes += data.size;
        CHECK(shf_sample_field(sample, 1, &name, NULL) == SHF_OK);
        CHECK(name.size == 3 && memcmp(name.data, "bin", 3) == 0);
        CHECK(shf_sample_field(sample, 1, NULL, &data) == SHF_OK);
        bytes += data.size;
        CHECK(shf_sample_field(sample, 2, &name, &data) == SHF_E_NOT_FOUND);
        CHECK(name.data == NULL && name.size == 0 && data.data == NULL && data.size == 0);
        CHECK(shf_sample_field(sample, SIZE_MAX, NULL, NULL) == SHF_E_NOT_FOUND);
        CHECK(shf_sample_find(sample, "txt", 2, &data) == SHF_E_NOT_FOUND);
        CHECK(data.data == NULL && data.size == 0);
        CHECK(shf_sample_find(sample, "TXT", 3, &data) == SHF_E_NOT_FOUND);
        CHECK(shf_sample_find(sample, "txt", SHF_STRLEN, &data) == SHF_OK);
        CHECK(shf_sample_find(sample, "tx", SHF_STRLEN, &data) == SHF_E_NOT_FOUND);
        CHECK(shf_sample_find(sample, NULL, SHF_STRLEN, &data) == SHF_E_NOT_FOUND);
        CHECK(shf_sample_find(sample, "", 0, &data) == SHF_E_NOT_FOUND);
        CHECK(shf_sample_find(sample, "txt", 3, NULL) == SHF_OK);
        shf_sample_unref(sample);
        ++count;
    }
    CHECK_CODE(rc, SHF_END, &error);
    CHECK(sample == NULL);
    CHECK(count == ALL);
    CHECK(shf_stream_stat(stream, SHF_STAT_SAMPLES) == ALL);
    CHECK(shf_stream_stat(stream, SHF_STAT_BYTES) == bytes);
    CHECK(shf_stream_stat(stream, SHF_STAT_SHARDS) == SHARDS);
    CHECK(shf_stream_stat(stream, SHF_STAT_MEMORY) == 0);
    CHECK(shf_stream_stat(stream, SHF_STAT_MEMORY_PEAK) > 0);
    for (int i = 0; i < 3; ++i) /* the end repeats */
        CHECK_CODE(shf_stream_next(stream, &sample, &error), SHF_END, &error);
    shf_block* block = NULL;
    CHECK_CODE(shf_stream_next_block(stream, 0, &block, &error), SHF_END, &error);
    shf_stream_close(stream);
}

/* The tables say the same as the sample functions. */
static void check_tables(const shf_block* block) {
    const uint64_t* column[SHF_BLOCK_COLUMNS + 1];
    size_t length[SHF_BLOCK_COLUMNS + 1];
    const size_t n = shf_block_sample_count(block);
    shf_bytes keys, bytes, name, data;
    column[SHF_BLOCK_COLUMNS] = NULL;
    length[SHF_BLOCK_COLUMNS] = 4711;
    shf_block_columns(block, SHF_BLOCK_COLUMNS + 1, column, length);
    CHECK(column[SHF_BLOCK_COLUMNS] == NULL && length[SHF_BLOCK_COLUMNS] == 4711);
    const uint64_t* first_field = column[SHF_BLOCK_FIRST_FIELD];
    const size_t m = (size_t)first_field[n];
    CHECK(n >= 1 && m == 2 * n && first_field[0] == 0);
    CHECK(length[SHF_BLOCK_FIRST_FIELD] == n + 1 && length[SHF_BLOCK_KEY] == n + 1);
    CHECK(length[SHF_BLOCK_SCHEMA] == n && length[SHF_BLOCK_URL] == n);
    CHECK(length[SHF_BLOCK_BUFFER] == m && length[SHF_BLOCK_START] == m &&
          length[SHF_BLOCK_STOP] == m);
    shf_block_keys(block, &keys);
    CHECK(column[SHF_BLOCK_KEY][0] == 0 && column[SHF_BLOCK_KEY][n] == keys.size);
    for (size_t i = 0; i < n; ++i) {
        const shf_sample* sample = shf_block_sample(block, i);
        CHECK(is_whole(sample));
        shf_sample_key(sample, &bytes);
        CHECK(bytes.data == keys.data + column[SHF_BLOCK_KEY][i]);
        CHECK(bytes.size == column[SHF_BLOCK_KEY][i + 1] - column[SHF_BLOCK_KEY][i]);
        shf_bytes url;
        shf_sample_url(sample, &url);
        CHECK(shf_block_url(block, (size_t)column[SHF_BLOCK_URL][i], &bytes) == SHF_OK);
        CHECK(bytes.data == url.data && bytes.size == url.size);
        shf_bytes schema;
        CHECK(shf_block_schema(block, (size_t)column[SHF_BLOCK_SCHEMA][i], &schema) == SHF_OK);
        CHECK(schema.size == 8 && memcmp(schema.data, "txt/bin/", 8) == 0);
        const size_t fields = shf_sample_field_count(sample);
        CHECK(first_field[i + 1] - first_field[i] == fields);
        for (size_t k = 0; k < fields; ++k) {
            const size_t row = (size_t)first_field[i] + k;
            CHECK(shf_sample_field(sample, k, &name, &data) == SHF_OK);
            CHECK(shf_block_buffer(block, (size_t)column[SHF_BLOCK_BUFFER][row], &bytes) == SHF_OK);
            CHECK(column[SHF_BLOCK_STOP][row] <= bytes.size);
            CHECK(data.data == bytes.data + column[SHF_BLOCK_START][row]);
            CHECK(data.size == column[SHF_BLOCK_STOP][row] - column[SHF_BLOCK_START][row]);
        }
    }
    CHECK(shf_block_sample(block, n) == NULL && shf_block_sample(block, SIZE_MAX) == NULL);
    CHECK(shf_block_buffer(block, SIZE_MAX, &bytes) == SHF_E_NOT_FOUND && bytes.data == NULL);
    CHECK(shf_block_schema(block, SIZE_MAX, &bytes) == SHF_E_NOT_FOUND && bytes.size == 0);
    CHECK(shf_block_url(block, SIZE_MAX, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_block_buffer(block, 0, NULL) == SHF_OK);
    const uint64_t* two[2] = {NULL, NULL};
    shf_block_columns(block, 2, two, NULL);
    CHECK(two[0] == column[0] && two[1] == column[1]);
}

static void test_blocks(void) {
    static const char* const shuffles[] = {"0", "20"};
    static const char* const lanes[] = {"1", "4"};
    for (int s = 0; s < 2; ++s)
        for (int l = 0; l < 2; ++l)
            for (size_t most = 0; most < 40; most += 13) {
                shf_options* options = OPTIONS("shuffle", shuffles[s], "lanes", lanes[l]);
                shf_stream* stream = open_stream("s{0..3}.tar", options);
                shf_block* block;
                shf_error error;
                size_t all = 0;
                int32_t rc;
                while ((rc = shf_stream_next_block(stream, most, &block, &error)) == SHF_OK) {
                    check_tables(block);
                    const size_t count = shf_block_sample_count(block);
                    CHECK(most == 0 || count <= most);
                    all += count;
                    shf_block_unref(block);
                }
                CHECK_CODE(rc, SHF_END, &error);
                CHECK(all == ALL);
                shf_stream_close(stream);
            }
}

/* Appends the sample's key to a list that is as long as all keys together. */
static void note(char* list, const shf_sample* sample) {
    shf_bytes key;
    shf_sample_key(sample, &key);
    const size_t used = strlen(list);
    memcpy(list + used, key.data, key.size);
    memcpy(list + used + key.size, " ", 2);
}

static void test_mixed_calls(void) {
    static const char* const shuffles[] = {"0", "20"};
    static const char* const lanes[] = {"1", "2", "4"};
    static char alone[ALL * 16], mixed[ALL * 16];
    for (int s = 0; s < 2; ++s)
        for (int l = 0; l < 3; ++l) {
            alone[0] = mixed[0] = '\0';
            shf_sample* sample;
            shf_block* block;
            shf_error error;
            shf_stream* stream = open_stream(
                "s{0..3}.tar", OPTIONS("shuffle", shuffles[s], "lanes", lanes[l], "seed", "5"));
            while (shf_stream_next(stream, &sample, &error) == SHF_OK) {
                note(alone, sample);
                shf_sample_unref(sample);
            }
            shf_stream_close(stream);
            stream = open_stream("s{0..3}.tar",
                                 OPTIONS("shuffle", shuffles[s], "lanes", lanes[l], "seed", "5"));
            int32_t rc = SHF_OK;
            for (unsigned turn = 0; rc == SHF_OK; ++turn) {
                if (turn % 3 != 0) {
                    rc = shf_stream_next(stream, &sample, &error);
                    if (rc == SHF_OK) note(mixed, sample);
                    shf_sample_unref(sample);
                } else {
                    rc = shf_stream_next_block(stream, turn % 7, &block, &error);
                    for (size_t i = 0; i < shf_block_sample_count(block); ++i)
                        note(mixed, shf_block_sample(block, i));
                    shf_block_unref(block);
                }
            }
            CHECK_CODE(rc, SHF_END, &error);
            CHECK(strlen(alone) == ALL * (strlen("s0/000000") + 1));
            CHECK(strcmp(alone, mixed) == 0);
            shf_stream_close(stream);
        }
}

static void test_lifetimes(void) {
    shf_sample* kept[ALL];
    shf_block *block, *held;
    shf_error error;
    size_t count = 0;
    shf_stream* stream = open_stream("s{0..3}.tar", NULL);
    CHECK_OK(shf_stream_next_block(stream, 0, &block, &error), &error);
    held = shf_block_ref(block);
    CHECK(held == block);
    kept[count++] = shf_sample_ref(shf_block_sample(block, 0));
    kept[count++] = shf_sample_ref(shf_block_sample(block, shf_block_sample_count(block) - 1));
    CHECK(kept[0] == shf_block_sample(block, 0));
    for (shf_sample* sample; shf_stream_next(stream, &sample, &error) == SHF_OK;) {
        if (count < 200)
            kept[count++] = sample;
        else
            shf_sample_unref(sample);
    }
    shf_stream_close(stream);
    check_tables(block);
    shf_block_unref(block);
    check_tables(held);
    shf_block_unref(held);
    for (size_t i = 0; i < count; ++i) CHECK(is_whole(kept[i]));
    for (size_t i = 0; i < count; ++i) { /* every other one first */
        const size_t k = (i * 2 + (i * 2 >= count && count % 2 == 0 ? 1 : 0)) % count;
        CHECK(shf_sample_ref(kept[k]) == kept[k]);
        shf_sample_unref(kept[k]);
        CHECK(is_whole(kept[k]));
        shf_sample_unref(kept[k]);
    }
}

static void test_null(void) {
    shf_error error;
    shf_bytes bytes = {(const uint8_t*)"x", 1};
    shf_sample* sample = (shf_sample*)&error;
    shf_block* block = (shf_block*)&error;
    shf_stream* stream = (shf_stream*)&error;
    const char* url = path_of("s0.tar");

    shf_options_free(NULL);
    shf_options_set_log(NULL, SHF_LOG_INFO, NULL, NULL);
    shf_options_set_allocator(NULL, NULL, NULL, NULL);
    shf_stream_cancel(NULL);
    shf_stream_close(NULL);
    shf_sample_unref(NULL);
    shf_block_unref(NULL);
    CHECK(shf_sample_ref(NULL) == NULL);
    CHECK(shf_block_ref(NULL) == NULL);
    shf_options* options = shf_options_new();
    CHECK_CODE(shf_options_set(NULL, "seed", "1", &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set(options, NULL, "1", &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set(options, "seed", NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set(NULL, NULL, NULL, NULL), SHF_E_USAGE, NULL);
    shf_options_free(options);

    CHECK_CODE(shf_stream_open(NULL, &url, 1, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_stream_open(&stream, NULL, 1, NULL, &error), SHF_E_USAGE, &error);
    CHECK(stream == NULL);
    stream = (shf_stream*)&error;
    CHECK_CODE(shf_stream_open(&stream, NULL, 0, NULL, &error), SHF_E_USAGE, &error);
    CHECK(stream == NULL);
    const char* const hole[] = {url, NULL};
    CHECK_CODE(shf_stream_open(&stream, hole, 2, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_stream_open(&stream, hole, 2, NULL, NULL), SHF_E_USAGE, NULL);

    CHECK_CODE(shf_stream_next(NULL, &sample, &error), SHF_E_USAGE, &error);
    CHECK(sample == NULL);
    CHECK_CODE(shf_stream_next_block(NULL, 0, &block, &error), SHF_E_USAGE, &error);
    CHECK(block == NULL);
    CHECK_CODE(shf_stream_next(NULL, NULL, NULL), SHF_E_USAGE, NULL);
    CHECK_OK(shf_stream_open(&stream, &url, 1, NULL, &error), &error);
    CHECK_CODE(shf_stream_next(stream, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_stream_next_block(stream, 0, NULL, &error), SHF_E_USAGE, &error);
    CHECK(shf_stream_stat(stream, -1) == UINT64_MAX);
    CHECK(shf_stream_stat(stream, 4711) == UINT64_MAX);
    CHECK(shf_stream_stat(NULL, SHF_STAT_SAMPLES) == UINT64_MAX);
    /* Wrong calls harm nothing. */
    CHECK_OK(shf_stream_next(stream, &sample, NULL), NULL);
    CHECK(is_whole(sample));
    CHECK(shf_sample_find(sample, NULL, 3, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_sample_find(sample, NULL, 0, &bytes) == SHF_E_NOT_FOUND);
    shf_sample_key(sample, NULL);
    shf_sample_url(sample, NULL);
    shf_sample_unref(sample);
    shf_stream_close(stream);

    bytes = (shf_bytes){(const uint8_t*)"x", 1};
    shf_sample_key(NULL, &bytes);
    CHECK(bytes.data == NULL && bytes.size == 0);
    shf_sample_url(NULL, &bytes);
    CHECK(shf_sample_field_count(NULL) == 0);
    CHECK(shf_sample_field(NULL, 0, &bytes, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_sample_find(NULL, "txt", 3, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_sample_info(NULL, SHF_SAMPLE_SHARD) == UINT64_MAX);
    CHECK(shf_block_sample_count(NULL) == 0);
    CHECK(shf_block_sample(NULL, 0) == NULL);
    shf_block_columns(NULL, 7, NULL, NULL);
    bytes = (shf_bytes){(const uint8_t*)"x", 1};
    shf_block_keys(NULL, &bytes);
    CHECK(bytes.data == NULL && bytes.size == 0);
    shf_block_keys(NULL, NULL);
    CHECK(shf_block_buffer(NULL, 0, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_block_schema(NULL, 0, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_block_url(NULL, 0, NULL) == SHF_E_NOT_FOUND);
}

/* What the failing block call promises for outputs of a call with no stream behind it also holds
 * for its tables: "on failure every output is NULL or 0". */
static void test_null_block_columns(void) {
    const uint64_t one = 1;
    const uint64_t* columns[2] = {&one, &one};
    size_t counts[2] = {1, 1};
    shf_block_columns(NULL, 2, columns, counts);
    CHECK(columns[0] == NULL && columns[1] == NULL);
    CHECK(counts[0] == 0 && counts[1] == 0);
}

static void test_field_names(void) {
    FILE* file = fopen(path_of("names.tar"), "wb");
    put_member(file, "Dir.v1/Key.JPG", "a", 1);
    put_member(file, "Dir.v1/Key.Seg.PNG", "bc", 2);
    put_member(file, "Dir.v1/Key.", "", 0);
    put_member(file, "next.cls", "7", 1);
    put_end(file);
    fclose(file);
    shf_stream* stream = open_stream("names.tar", NULL);
    shf_sample* sample;
    shf_bytes bytes;
    shf_error error;
    CHECK_OK(shf_stream_next(stream, &sample, &error), &error);
    shf_sample_key(sample, &bytes);
    CHECK(bytes.size == 10 && memcmp(bytes.data, "Dir.v1/Key", 10) == 0);
    CHECK(shf_sample_field_count(sample) == 3);
    CHECK(shf_sample_find(sample, "jpg", 3, &bytes) == SHF_OK && bytes.size == 1);
    CHECK(shf_sample_find(sample, "seg.png", 7, &bytes) == SHF_OK && bytes.size == 2);
    CHECK(shf_sample_find(sample, "png", 3, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_sample_find(sample, "", 0, &bytes) == SHF_OK && bytes.size == 0);
    CHECK(shf_sample_find(sample, NULL, 0, &bytes) == SHF_OK);
    shf_sample_unref(sample);
    CHECK_OK(shf_stream_next(stream, &sample, &error), &error);
    shf_sample_unref(sample);
    CHECK_CODE(shf_stream_next(stream, &sample, &error), SHF_END, &error);
    shf_stream_close(stream);
}

int main(void) {
    make_shard_directory();
    for (int shard = 0; shard < SHARDS; ++shard) write_shard(shard, PER_SHARD);
    RUN(test_next);
    RUN(test_blocks);
    RUN(test_mixed_calls);
    RUN(test_lifetimes);
    RUN(test_null);
    RUN(test_null_block_columns);
    RUN(test_field_names);
    remove_shard_directory();
    return finish();
}
