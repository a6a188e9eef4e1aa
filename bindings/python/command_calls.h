/* The command in the extension module. build_native.py reads this file like shardfeed.h. */
#ifndef COMMAND_CALLS_H
#define COMMAND_CALLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the command shardfeed with these words, which come after the program's name. Returns its exit
 * status, or ends the process by the signal that interrupted it. */
int32_t python_command(size_t count, char **words);

#ifdef __cplusplus
}
#endif

#endif
