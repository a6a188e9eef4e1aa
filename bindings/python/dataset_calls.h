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

/* Samples of datasets that go to a writer without being objects of Python. One thread at a time. */
typedef struct {
    size_t count;
    uint64_t bytes;       /* of what is held, with all that the library keeps in memory for it */
    size_t at_once;       /* how many the next call of the library reads */
    shf_sample **samples; /* NULL where there is none */
    uint64_t *sizes;      /* what each of them adds to `bytes` */
} python_samples;

/* Room for so many; NULL without memory. Release it with python_free_samples, which takes NULL. */
python_samples *python_new_samples(size_t count);
void python_free_samples(python_samples *held);

/* Reads samples: number numbers[i] into places[i], which is below count and is released first. It
 * reads a few at a time, and no more when `budget` bytes are held. *done: how many it has read. OK
 * or an error, USAGE when the holder of the dataset is empty. */
int32_t python_read_samples(shf_dataset **holder, const uint64_t *numbers, const uint64_t *places,
                            size_t count, uint64_t budget, python_samples *held, size_t *done,
                            shf_error *error);

/* Releases those from this place on. */
void python_drop_samples(python_samples *held, size_t place);

/* Gives the sample at a place, which must have one, to an empty holder. */
void python_take_sample(python_samples *held, size_t place, shf_sample **holder);

/* Writes those from *place up to stop, and releases them. *place: the first one that is not
 * written, and so the one that an error is about. */
int32_t python_write_samples(shf_writer **holder, python_samples *held, size_t *place, size_t stop,
                             shf_error *error);

#endif
