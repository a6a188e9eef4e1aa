"""Writes the C source of shardfeed._native: build_native.py HEADER... OUTPUT.

The header is the only description of the library. cffi reads it after the lines that start with '#'
and the two __cplusplus blocks are dropped; the C compiler reads it as it is and checks every
declaration (cffi's out-of-line API mode, cffi 1.15.1 or later). archive_calls.h, batch_calls.h,
command_calls.h, dataset_calls.h, members_calls.h and opener_calls.h are read likewise.
"""

from __future__ import annotations

import re
import sys

import cffi

# What the library calls; _receivers.py, _shard_names.py, _urls.py, _opener.py and _tokenizer.py
# define these with ffi.def_extern(). Those of the last two are called by opener_calls.c.
CALLBACKS = """
extern "Python" void python_log(void *ctx, int32_t level, const char *message);
extern "Python" void python_skip(void *ctx, const shf_skip *skip);
extern "Python" int32_t python_shard_name(void *ctx, uint64_t number, shf_bytes *out);
extern "Python" int32_t python_url(void *ctx, const char *url, size_t size);
extern "Python+C" int32_t python_opener_open(void *ctx, const char *url, void **out,
                                             shf_error *error);
extern "Python+C" void python_opener_facts(void *handle, uint32_t *flags, uint64_t *size,
                                           char *version);
extern "Python+C" int64_t python_opener_read(void *handle, uint64_t offset, uint8_t *out,
                                             size_t size, shf_error *error);
extern "Python+C" void python_opener_close(void *handle);
extern "Python+C" void python_opener_release(void *ctx);
extern "Python+C" int32_t python_tokenize(void *ctx, const shf_text *texts, size_t count,
                                          shf_tokens *tokens, shf_error *error);
extern "Python+C" void python_tokenizer_release(void *ctx);
"""

# Destructors in C. One in Python could be interrupted by a signal handler, whose exception Python
# throws away when a destructor raises it: Ctrl-C would be lost.
DESTRUCTORS = """
void python_close_stream(shf_stream **holder);
void python_unref_block(shf_block **holder);
void python_close_archive(shf_archive **holder);
void python_close_members(shf_members **holder);
void python_close_dataset(shf_dataset **holder);
void python_close_writer(shf_writer **holder);
void python_unref_sample(shf_sample **holder);
void python_unref_batch(shf_batch **holder);
"""

# The same holds for handles that the library takes over: their holders forget them before Python
# can run anything.
TAKERS = """
int32_t python_mix_streams(shf_stream **out, shf_stream ***holders, shf_stream **parts,
                           const double *weights, size_t count, const shf_options *options,
                           shf_error *error);
"""

# The interrupt function of calls that open something. It is C as well, because PyErr_CheckSignals()
# runs the handlers of signals at a known place: a function in Python could be interrupted before
# its first line.
SIGNALS = """
typedef struct {
    void *raised;     /* a list, to which what a signal handler raises is appended */
    double deadline;  /* of the monotonic clock, in seconds; 0: none */
    int32_t late;     /* set when it was over */
} python_signals;
int32_t python_check_signals(void *signals);
"""
SOURCE = """
#include <time.h>
#include "archive_calls.h"
#include "batch_calls.h"
#include "command_calls.h"
#include "dataset_calls.h"
#include "members_calls.h"
#include "opener_calls.h"
static void python_close_stream(shf_stream **holder) { shf_stream_close(*holder); }
static void python_unref_block(shf_block **holder) { shf_block_unref(*holder); }
static void python_close_archive(shf_archive **holder) { shf_archive_close(*holder); }
static void python_close_members(shf_members **holder) { shf_members_close(*holder); }
static void python_close_dataset(shf_dataset **holder) { shf_dataset_close(*holder); }
static void python_close_writer(shf_writer **holder) { shf_writer_close(*holder); }
static void python_unref_sample(shf_sample **holder) { shf_sample_unref(*holder); }
static void python_unref_batch(shf_batch **holder) { shf_batch_unref(*holder); }
static int32_t python_mix_streams(shf_stream **out, shf_stream ***holders, shf_stream **parts,
                                  const double *weights, size_t count, const shf_options *options,
                                  shf_error *error) {
    for (size_t i = 0; i < count; ++i) parts[i] = *holders[i];
    int32_t code = shf_stream_mix(out, parts, weights, count, options, error);
    for (size_t i = 0; code == SHF_OK && i < count; ++i) *holders[i] = NULL;
    return code;
}
typedef struct {
    void *raised;
    double deadline;
    int32_t late;
} python_signals;
static int32_t python_check_signals(void *ctx) {
    python_signals *signals = ctx;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    const double now = (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
    if (signals->deadline > 0 && now >= signals->deadline) return signals->late = 1;
    PyGILState_STATE state = PyGILState_Ensure();
    const int32_t raised = PyErr_CheckSignals() != 0;
    if (raised) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        if (value && traceback) PyException_SetTraceback(value, traceback);
        if (value && PyList_Append(signals->raised, value)) PyErr_Clear();
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    PyGILState_Release(state);
    return raised;
}
"""


def declarations(header: str) -> str:
    """The declarations of the header, without preprocessor lines and C++ blocks."""
    plain = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", header, flags=re.DOTALL)
    return re.sub(r"^#.*\n", "", plain, flags=re.MULTILINE)


def main() -> None:
    *header_paths, output_path = sys.argv[1:]
    ffi = cffi.FFI()
    for path in header_paths:
        with open(path, encoding="utf-8") as file:
            ffi.cdef(declarations(file.read()))
    ffi.cdef(CALLBACKS)
    ffi.cdef(DESTRUCTORS)
    ffi.cdef(TAKERS)
    ffi.cdef(SIGNALS)
    ffi.set_source("shardfeed._native", SOURCE)
    ffi.emit_c_code(output_path)


if __name__ == "__main__":
    main()
