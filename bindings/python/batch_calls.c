#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "batch_calls.h"

#include <stdlib.h>
#include <string.h>

/* The structs of dlpack.h and of the Arrow C data interface, as far as releasing them goes. */
typedef struct unversioned {
    void *data;
    int32_t device[2], ndim;
    uint8_t dtype[4];
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void *context;
    void (*deleter)(struct unversioned *);
} unversioned;
typedef struct versioned {
    uint32_t version[2];
    void *context;
    void (*deleter)(struct versioned *);
} versioned;
typedef struct arrow_array {
    int64_t length, null_count, offset, buffer_count, child_count;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *);
    void *context;
} arrow_array;
typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, child_count;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *);
    void *context;
} arrow_schema;

/* NULL when a consumer took it: that changes the name of the capsule. */
static void *content(void *capsule, const char *name) {
    return PyCapsule_IsValid(capsule, name) ? PyCapsule_GetPointer(capsule, name) : NULL;
}

void python_drop_dlpack(void *capsule) {
    unversioned *tensor = content(capsule, "dltensor");
    if (tensor) tensor->deleter(tensor);
}

void python_drop_dlpack_versioned(void *capsule) {
    versioned *tensor = content(capsule, "dltensor_versioned");
    if (tensor) tensor->deleter(tensor);
}

/* A consumer of an Arrow capsule takes the content of the struct and clears its release. */
void python_drop_arrow_array(void *capsule) {
    arrow_array *array = content(capsule, "arrow_array");
    if (array && array->release) array->release(array);
    free(array);
}

void python_drop_arrow_schema(void *capsule) {
    arrow_schema *schema = content(capsule, "arrow_schema");
    if (schema && schema->release) schema->release(schema);
    free(schema);
}

int32_t python_arrow(shf_batch **holder, void **array, void **schema, shf_error *error) {
    int32_t code = SHF_E_NOMEM;
    *array = calloc(1, sizeof(arrow_array));
    *schema = calloc(1, sizeof(arrow_schema));
    if (*array && *schema) {
        code = shf_batch_arrow(*holder, *array, *schema, error);
    } else {
        memset(error, 0, sizeof *error);
        error->code = SHF_E_NOMEM;
        error->offset = UINT64_MAX;
        strcpy(error->message, "no memory for an Arrow array");
    }
    if (code != SHF_OK) {
        free(*array);
        free(*schema);
        *array = *schema = NULL;
    }
    return code;
}
