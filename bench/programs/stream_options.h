/* The command line of the programs that open a stream: WORD... [NAME=VALUE...] -- URL... */
#ifndef SHARDFEED_BENCH_STREAM_OPTIONS_H
#define SHARDFEED_BENCH_STREAM_OPTIONS_H

#include <shardfeed.h>
#include <stdio.h>
#include <string.h>

/* The code's name is the last word of the line, so that a caller may expect one. */
static inline int fail(int32_t code, const shf_error* error) {
    fprintf(stderr, "%s: %s\n", error->message, shf_error_name(code));
    return 1;
}

/* The index of the first URL, when `first` is that of the first option; 0 if there is none. */
static inline int first_url(int argc, char** argv, int first) {
    int urls = first;
    while (urls < argc && strcmp(argv[urls], "--") != 0 && strchr(argv[urls], '=') != NULL) urls++;
    return urls + 1 < argc && strcmp(argv[urls], "--") == 0 ? urls + 1 : 0;
}

/* Opens the stream with the options between; the arguments are cut in two. */
static inline int32_t open_stream(shf_stream** out, int argc, char** argv, int first, int urls,
                                  shf_error* error) {
    shf_options* options = shf_options_new();
    int32_t rc = SHF_OK;
    for (int i = first; i < urls - 1 && rc == SHF_OK; i++) {
        char* equals = strchr(argv[i], '=');
        *equals = '\0';
        rc = shf_options_set(options, argv[i], equals + 1, error);
    }
    if (rc == SHF_OK)
        rc = shf_stream_open(out, (const char* const*)(argv + urls), (size_t)(argc - urls), options,
                             error);
    shf_options_free(options);
    return rc;
}

#endif
