"""Writes the C source of shardfeed._native: build_native.py HEADER... OUTPUT.

The header is the only description of the library. cffi reads it after the lines that start with '#'
and the two __cplusplus blocks are dropped; the C compiler reads it as it is and checks every
declaration (cffi's out-of-line API mode, cffi 1.15.1 or later). archive_calls.h, batch_calls.h and
dataset_calls.h are read likewise.
"""

from __future__ import annotations

import re
import sys

import cffi

# What the library calls; _log.py and _urls.py define these with ffi.def_extern().
CALLBACKS = """
extern "Python" void python_log(void *ctx, int32_t level, const char *message);
extern "Python" int32_t python_url(void *ctx, const char *url, size_t size);
"""

# Destructors in C. One in Python could be interrupted by a signal handler, whose exception Python
# throws away when a destructor raises it: Ctrl-C would be lost.
DESTRUCTORS = """
void python_close_stream(shf_stream **holder);
void python_unref_block(shf_block **holder);
void python_close_archive(shf_archive **holder);
void python_close_dataset(shf_dataset **holder);
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
SOURCE = """
#include "archive_calls.h"
#include "batch_calls.h"
#include "dataset_calls.h"
static void python_close_stream(shf_stream **holder) { shf_stream_close(*holder); }
static void python_unref_block(shf_block **holder) { shf_block_unref(*holder); }
static void python_close_archive(shf_archive **holder) { shf_archive_close(*holder); }
static void python_close_dataset(shf_dataset **holder) { shf_dataset_close(*holder); }
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
    ffi.set_source("shardfeed._native", SOURCE)
    ffi.emit_c_code(output_path)


if __name__ == "__main__":
    main()
