/* What the Python package does with a batch beside shardfeed.h: capsules, in which other packages
 * take DLPack tensors and Arrow arrays. build_native.py reads this file like shardfeed.h. */
#ifndef BATCH_CALLS_H
#define BATCH_CALLS_H

#include <shardfeed.h>

/* Destructors of capsules (PyObject *): each releases what nobody took out of its capsule. */
void python_drop_dlpack(void *capsule);
void python_drop_dlpack_versioned(void *capsule);
void python_drop_arrow_array(void *capsule);
void python_drop_arrow_schema(void *capsule);

/* The batch in the holder as a struct ArrowArray and a struct ArrowSchema, for capsules with the
 * destructors above. OK or an error; then both are NULL. */
int32_t python_arrow(shf_batch **holder, void **array, void **schema, shf_error *error);

#endif
