/* What the Python package does with a dataset. The functions take holders, which have a destructor
 * before anything is put into them: an exception between two steps loses nothing.
 * build_native.py reads this file like shardfeed.h. */
#ifndef DATASET_CALLS_H
#define DATASET_CALLS_H

#include <shardfeed.h>

/* Reads samples; *holders[i] becomes number numbers[i]. OK or an error, USAGE when the holder of
 * the dataset is empty. */
int32_t python_get_many(shf_dataset **holder, const uint64_t *numbers, size_t count,
                        shf_sample ***holders, shf_error *error);

/* All that Python needs to know of a sample. Its fields lie in one piece of memory: `span` bytes
 * from `base`, field i from start[i] up to stop[i] in it. `names` are the fields' names, each
 * followed by '/'. */
typedef struct {
    const uint8_t *base;
    uint64_t span;
    size_t count, names_size;
    uint64_t *start, *stop; /* room for `fields` each */
    char *names;            /* room for `bytes` */
} python_sample;

/* Fills all but the tables and names when `fields` or `bytes` is too small: `count` and
 * `names_size` are what is needed. True when there was room. */
int32_t python_describe(shf_sample **holder, size_t fields, size_t bytes, python_sample *out);

#endif
