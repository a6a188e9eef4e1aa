/* Batches through the public header: columns, lifetimes, DLPack and Arrow structs, samples and
 * datasets as batches, wrong calls. */
#include "harness.h"

#include "tar_shards.h"

enum { SAMPLES = 90, BATCH = 32 };

/* The structs of dlpack.h 1.0 and of the Arrow C data interface, as their documents have them. */
typedef struct {
    void* data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor tensor;
    void* context;
    void (*deleter)(struct dl_managed*);
} dl_managed;
typedef struct dl_versioned {
    uint32_t major, minor;
    void* context;
    void (*deleter)(struct dl_versioned*);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;
typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema*);
    void* private_data;
} arrow_schema;
typedef struct arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array*);
    void* private_data;
} arrow_array;

/* An .npy with `rows` times 2 numbers, all of them `value`. */
static size_t make_npy(char* out, int rows, float value) {
    memcpy(out, "\x93NUMPY\1\0\166\0", 10);
    memset(out + 10, ' ', 118);
    char literal[80];
    snprintf(literal, sizeof literal, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2)}",
             rows);
    memcpy(out + 10, literal, strlen(literal));
    out[127] = '\n';
    for (int i = 0; i < 2 * rows; ++i) memcpy(out + 128 + 4 * i, &value, 4);
    return 128 + 8 * (size_t)rows;
}

/* Sample i: its number in "cls", i % 3 bytes in "bin", (i % 4 + 1) x 2 numbers in "npy". */
static void write_samples(const char* name) {
    FILE* file = fopen(path_of(name), "wb");
    char member[64], npy[512];
    for (int i = 0; i < SAMPLES; ++i) {
        snprintf(member, sizeof member, "k%02d.cls", i);
        char number[16];
        snprintf(number, sizeof number, "%d\n", i);
        put_member(file, member, number, strlen(number));
        snprintf(member, sizeof member, "k%02d.bin", i);
        put_member(file, member, "xyz", (size_t)i % 3);
        snprintf(member, sizeof member, "k%02d.npy", i);
        put_member(file, member, npy, make_npy(npy, i % 4 + 1, (float)i));
    }
    static const char zeros[1024];
    fwrite(zeros, 1, sizeof zeros, file);
    fclose(file);
}

static shf_array column(const shf_batch* batch, const char* name) {
    shf_array array = {0};
    shf_bytes found;
    size_t index = 99;
    CHECK(shf_batch_find(batch, name, strlen(name), &index) == SHF_OK);
    CHECK(shf_batch_column(batch, index, &found, &array) == SHF_OK);
    CHECK(found.size == strlen(name) && memcmp(found.data, name, found.size) == 0);
    return array;
}

static size_t number_of(const shf_batch* batch, const char* name) {
    size_t index = 99;
    CHECK(shf_batch_find(batch, name, SHF_STRLEN, &index) == SHF_OK);
    return index;
}

/* Row r of the batch is sample numbers[r], or first + r. */
static void check_rows(const shf_batch* batch, size_t rows, const uint64_t* numbers, size_t first) {
    CHECK(shf_batch_row_count(batch) == rows);
    CHECK(shf_batch_column_count(batch) == 5);
    const shf_array cls = column(batch, "cls"), bin = column(batch, "bin"),
                    npy = column(batch, "npy"), key = column(batch, "__key__"),
                    url = column(batch, "__url__");
    CHECK(cls.kind == SHF_COLUMN_ARRAY && cls.dtype == SHF_DTYPE_INT64 && cls.ndim == 1);
    CHECK(cls.shape[0] == (int64_t)rows && cls.size == 8 * rows && cls.offsets == NULL);
    CHECK(bin.kind == SHF_COLUMN_BYTES && bin.dtype == SHF_DTYPE_UINT8 && bin.offsets != NULL);
    CHECK(npy.row_ndim == 2 && npy.ndim == 1 && npy.offsets != NULL && npy.shapes != NULL);
    CHECK(key.kind == SHF_COLUMN_TEXT && url.kind == SHF_COLUMN_TEXT);
    for (size_t r = 0; r < rows; ++r) {
        const int64_t i = numbers ? (int64_t)numbers[r] : (int64_t)(first + r);
        char text[16];
        snprintf(text, sizeof text, "k%02d", (int)i);
        shf_bytes bytes;
        CHECK(shf_batch_key(batch, r, &bytes) == SHF_OK);
        CHECK(bytes.size == 3 && memcmp(bytes.data, text, 3) == 0);
        CHECK(((const int64_t*)cls.data)[r] == i);
        CHECK(bin.offsets[r + 1] - bin.offsets[r] == i % 3);
        CHECK(memcmp((const char*)bin.data + bin.offsets[r], "xyz", (size_t)(i % 3)) == 0);
        CHECK(npy.offsets[r + 1] - npy.offsets[r] == 2 * (i % 4 + 1));
        CHECK(npy.shapes[2 * r] == i % 4 + 1 && npy.shapes[2 * r + 1] == 2);
        for (int64_t e = npy.offsets[r]; e < npy.offsets[r + 1]; ++e)
            CHECK(((const float*)npy.data)[e] == (float)i);
    }
}

static void test_batches(void) {
    shf_stream* stream =
        open_stream("a.tar", OPTIONS("batch", "32", "ragged", "offsets", "decode", "auto"));
    shf_batch* batch;
    shf_error error;
    for (size_t first = 0; first < SAMPLES; first += BATCH) {
        CHECK_OK(shf_stream_next_batch(stream, &batch, &error), &error);
        check_rows(batch, first + BATCH <= SAMPLES ? BATCH : SAMPLES - first, NULL, first);
        CHECK(shf_batch_ref(batch) == batch);
        shf_batch_unref(batch);
        shf_batch_unref(batch);
    }
    CHECK_CODE(shf_stream_next_batch(stream, &batch, &error), SHF_END, &error);
    CHECK(batch == NULL);
    CHECK(shf_stream_stat(stream, SHF_STAT_SAMPLES) == SAMPLES);
    shf_stream_close(stream);
}

static void test_of_samples_and_of_a_dataset(void) {
    shf_options* options = shf_options_new();
    shf_error error;
    CHECK_OK(shf_options_set(options, "ragged", "offsets", &error), &error);
    CHECK_OK(shf_options_set(options, "index", "memory", &error), &error);
    const char* urls[] = {path_of("a.tar")};
    shf_dataset* dataset;
    CHECK_OK(shf_dataset_open(&dataset, urls, 1, options, &error), &error);
    const uint64_t numbers[] = {77, 3, 3, 0, 89};
    shf_batch* batch;
    CHECK_OK(shf_dataset_get_batch(dataset, numbers, 5, NULL, &batch, &error), &error);
    check_rows(batch, 5, numbers, 0);
    shf_batch_unref(batch);
    /* Options of its own: those of the dataset would take arrays of unequal shape. */
    CHECK_CODE(shf_dataset_get_batch(dataset, numbers, 5, NULL, NULL, &error), SHF_E_USAGE, &error);
    shf_options* own = shf_options_new();
    CHECK_OK(shf_options_set(own, "decode", "cls:text", &error), &error);
    CHECK_OK(shf_dataset_get_batch(dataset, numbers, 5, own, &batch, &error), &error);
    CHECK(shf_batch_column_count(batch) == 3);
    shf_batch_unref(batch);
    shf_options_free(own);
    const uint64_t bad[] = {0, SAMPLES};
    CHECK_CODE(shf_dataset_get_batch(dataset, bad, 2, NULL, &batch, &error), SHF_E_USAGE, &error);
    CHECK(batch == NULL);
    CHECK_CODE(shf_dataset_get_batch(dataset, bad, 0, NULL, &batch, &error), SHF_E_USAGE, &error);

    shf_sample* samples[5];
    CHECK_OK(shf_dataset_get_many(dataset, numbers, 5, samples, &error), &error);
    CHECK_OK(shf_batch_make(&batch, samples, 5, options, &error), &error);
    check_rows(batch, 5, numbers, 0);
    shf_batch_unref(batch);
    /* Arrays of unequal shape by default are an error that says which sample. */
    CHECK_CODE(shf_batch_make(&batch, samples, 5, NULL, &error), SHF_E_FORMAT, &error);
    CHECK(batch == NULL);
    check_text(__FILE__, __LINE__, error.message, "k03.npy");
    CHECK_CODE(shf_batch_make(&batch, samples, 0, options, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_batch_make(&batch, NULL, 5, options, &error), SHF_E_USAGE, &error);
    CHECK_OK(shf_options_set(options, "decode", "foo:int", &error), &error);
    CHECK_OK(shf_options_set(options, "missing", "skip", &error), &error);
    CHECK_CODE(shf_batch_make(&batch, samples, 5, options, &error), SHF_E_FORMAT, &error);
    for (int i = 0; i < 5; ++i) shf_sample_unref(samples[i]);
    shf_dataset_close(dataset);
    shf_options_free(options);
}

static void test_lifetimes(void) {
    shf_stream* stream = open_stream("a.tar", OPTIONS("batch", "30", "ragged", "offsets"));
    shf_batch* batches[3];
    shf_error error;
    for (int b = 0; b < 3; ++b)
        CHECK_OK(shf_stream_next_batch(stream, &batches[b], &error), &error);
    void* tensor;
    CHECK_OK(shf_batch_dlpack(batches[0], number_of(batches[0], "cls"), 0, &tensor, &error),
             &error);
    shf_stream_close(stream);
    check_rows(batches[0], 30, NULL, 0);
    shf_batch_unref(batches[0]);
    check_rows(batches[1], 30, NULL, 30);
    shf_batch_unref(batches[1]);
    dl_managed* managed = tensor;
    for (int64_t i = 0; i < 30; ++i) CHECK(((const int64_t*)managed->tensor.data)[i] == i);
    managed->deleter(managed);
    check_rows(batches[2], 30, NULL, 60);
    shf_batch_unref(batches[2]);
    shf_batch_unref(NULL);
}

static void test_dlpack(void) {
    shf_stream* stream =
        open_stream("a.tar", OPTIONS("batch", "4", "ragged", "pad", "decode", "npy, cls, bin"));
    shf_batch* batch;
    shf_error error;
    void* out;
    CHECK_OK(shf_stream_next_batch(stream, &batch, &error), &error);
    CHECK_OK(shf_batch_dlpack(batch, 0, 0, &out, &error), &error);
    dl_managed* managed = out;
    const dl_tensor* tensor = &managed->tensor;
    CHECK(tensor->device_type == 1 && tensor->device_id == 0 && tensor->byte_offset == 0);
    CHECK(tensor->code == 2 && tensor->bits == 32 && tensor->lanes == 1 && tensor->ndim == 3);
    CHECK(tensor->shape[0] == 4 && tensor->shape[1] == 4 && tensor->shape[2] == 2);
    CHECK(tensor->strides[0] == 8 && tensor->strides[1] == 2 && tensor->strides[2] == 1);
    CHECK(((const float*)tensor->data)[3 * 8] == 3.0F);
    managed->deleter(managed);
    CHECK_OK(shf_batch_dlpack(batch, number_of(batch, "cls"), 1, &out, &error), &error);
    dl_versioned* versioned = out;
    CHECK(versioned->major == 1 && versioned->flags == 0);
    CHECK(versioned->tensor.code == 0 && versioned->tensor.bits == 64);
    CHECK(versioned->tensor.ndim == 1 && versioned->tensor.shape[0] == 4);
    versioned->deleter(versioned);
    /* All bytes of a ragged column; keys are read-only. */
    CHECK_OK(shf_batch_dlpack(batch, number_of(batch, "__key__"), 1, &out, &error), &error);
    versioned = out;
    CHECK((versioned->flags & 1) == 1);
    CHECK(versioned->tensor.ndim == 1 && versioned->tensor.shape[0] == 12);
    versioned->deleter(versioned);
    CHECK_CODE(shf_batch_dlpack(batch, 5, 1, &out, &error), SHF_E_NOT_FOUND, &error);
    CHECK(out == NULL);
    shf_batch_unref(batch);
    shf_stream_close(stream);
}

static void test_arrow(void) {
    shf_stream* stream = open_stream("a.tar", OPTIONS("batch", "8", "ragged", "offsets"));
    shf_batch* batch;
    shf_error error;
    CHECK_OK(shf_stream_next_batch(stream, &batch, &error), &error);
    arrow_array array;
    arrow_schema schema;
    CHECK_OK(shf_batch_arrow(batch, &array, &schema, &error), &error);
    shf_batch_unref(batch);
    shf_stream_close(stream);
    CHECK(strcmp(schema.format, "+s") == 0 && array.length == 8 && array.n_children == 6);
    static const char* const names[] = {"cls", "bin", "npy", "npy.shape", "__key__", "__url__"};
    static const char* const formats[] = {"l", "Z", "+L", "+w:2", "U", "U"};
    for (int64_t c = 0; c < schema.n_children; ++c) {
        CHECK(strcmp(schema.children[c]->name, names[c]) == 0);
        CHECK(strcmp(schema.children[c]->format, formats[c]) == 0);
        CHECK(array.children[c]->length == 8 && array.children[c]->null_count == 0);
    }
    CHECK(((const int64_t*)array.children[0]->buffers[1])[7] == 7);
    CHECK(((const int64_t*)array.children[2]->buffers[1])[8] ==
          array.children[2]->children[0]->length);
    /* A child may be moved away and outlive the rest. */
    arrow_array moved = *array.children[1];
    array.children[1]->release = NULL;
    array.release(&array);
    CHECK(array.release == NULL);
    CHECK(memcmp(moved.buffers[2], "xxyxxyxxy", 7) == 0);
    moved.release(&moved);
    schema.release(&schema);
}

static void test_wrong_calls(void) {
    shf_error error;
    shf_batch* batch = (shf_batch*)&error;
    shf_bytes bytes;
    shf_array array;
    size_t index;
    void* out;
    CHECK_CODE(shf_stream_next_batch(NULL, &batch, &error), SHF_E_USAGE, &error);
    CHECK(batch == NULL);
    CHECK(shf_batch_row_count(NULL) == 0 && shf_batch_column_count(NULL) == 0);
    CHECK(shf_batch_column(NULL, 0, &bytes, &array) == SHF_E_NOT_FOUND && bytes.size == 0);
    CHECK(shf_batch_find(NULL, "x", 1, &index) == SHF_E_NOT_FOUND);
    CHECK(shf_batch_find(NULL, "x", SHF_STRLEN, &index) == SHF_E_NOT_FOUND);
    CHECK(shf_batch_key(NULL, 0, &bytes) == SHF_E_NOT_FOUND);
    CHECK_CODE(shf_batch_dlpack(NULL, 0, 0, &out, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_batch_arrow(NULL, &array, &array, &error), SHF_E_USAGE, &error);
    shf_stream* stream = open_stream("a.tar", OPTIONS("batch", "8", "ragged", "offsets"));
    CHECK_CODE(shf_stream_next_batch(stream, NULL, &error), SHF_E_USAGE, &error);
    CHECK_OK(shf_stream_next_batch(stream, &batch, &error), &error);
    CHECK(shf_batch_key(batch, 8, &bytes) == SHF_E_NOT_FOUND);
    CHECK(shf_batch_column(batch, 5, &bytes, &array) == SHF_E_NOT_FOUND);
    CHECK(shf_batch_column(batch, 0, NULL, NULL) == SHF_OK);
    shf_batch_unref(batch);
    shf_stream_close(stream);
}

int main(void) {
    make_shard_directory();
    write_samples("a.tar");
    const int threads = count_own_threads();
    RUN(test_batches);
    RUN(test_of_samples_and_of_a_dataset);
    RUN(test_lifetimes);
    RUN(test_dlpack);
    RUN(test_arrow);
    RUN(test_wrong_calls);
    CHECK(settled_threads(threads) == threads);
    remove_shard_directory();
    return finish();
}
