/* What the Python package does with an archive for each member. A call from Python costs as much as
 * copying 1 kB: here is one where the library's own functions would take three.
 *
 * The functions take the holder of an archive, which keeps it open for as long as the call. When
 * there is none in it, they return USAGE. build_native.py reads this file like shardfeed.h. */
#ifndef ARCHIVE_CALLS_H
#define ARCHIVE_CALLS_H

#include <shardfeed.h>

typedef struct {
    shf_error error;
    char bytes[65536];
} python_slot;

/* Reads a member if slot->bytes has room for it. The size of the member in any case, or an error:
 * NOT_FOUND past the last member. */
int64_t python_read(shf_archive **holder, uint64_t position, python_slot *slot);
/* Reads a member into `buffer`. Its size, or an error. */
int64_t python_read_into(shf_archive **holder, uint64_t position, void *buffer, size_t capacity,
                         shf_error *error);
/* The position of the member, or an error. */
int64_t python_find(shf_archive **holder, const char *name, size_t name_size, shf_error *error);

/* Spreads members over buffers for python_read_many: small ones share one of at most 64 KiB.
 * `plan` has 4 * count numbers: of each member its buffer, where it starts and stops there; then of
 * each buffer its size. The number of buffers, or NOT_FOUND. */
int64_t python_plan(shf_archive **holder, const uint64_t *positions, size_t count, uint64_t *plan);
int32_t python_read_many(shf_archive **holder, const uint64_t *positions, size_t count,
                         const uint64_t *plan, void **buffers, shf_error *error);

/* Memory for results. Pieces of 64 KiB are used again: fresh memory costs more than reading into
 * it, because the system clears each page first. */
void *python_allocate(size_t size);
void python_free(void *memory);

#endif
