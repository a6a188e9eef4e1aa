/* The source of shards that an opener in Python is, and the tokenizer that a function in Python is:
 * C around Python, so that no thread of the library asks for an interpreter that ends. Read by cffi
 * and by the C compiler. */
#ifndef SHARDFEED_OPENER_CALLS_H
#define SHARDFEED_OPENER_CALLS_H

#include <shardfeed.h>

/* Makes the opener whose handle is `ctx` serve all schemes: shf_options_set_source. */
int32_t python_set_opener(shf_options *options, void *ctx, shf_error *error);

/* Makes the tokenizer whose handle is `ctx` make tokens of texts: shf_options_set_tokenizer. */
int32_t python_set_tokenizer(shf_options *options, void *ctx, shf_error *error);

/* From now on no function in Python is called: opening and reading fail. */
void python_end_openers(void);

/* How many threads are inside of functions in Python. */
int32_t python_inside_openers(void);

#endif
