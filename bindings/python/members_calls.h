/* What the Python package does with members in sequence. Python runs signal handlers between any two
 * steps, and what they raise ends the step. So what a call has delivered stays here, and here alone,
 * until Python has recorded how much of it was given out: nothing is lost, and nothing comes twice.
 *
 * A python_member is used by one thread at a time. build_native.py reads this file like
 * shardfeed.h. */
#ifndef MEMBERS_CALLS_H
#define MEMBERS_CALLS_H

#include <shardfeed.h>

/* The current member, and bytes that were read of it. */
typedef struct {
    shf_bytes name;
    uint64_t number; /* 1, 2, ...; 0 before the first one */
    uint8_t *data;   /* its bytes from `start` on, `size` of them */
    uint64_t start;
    size_t size;
    size_t capacity;
} python_member;

/* shf_members_next. When it succeeds, `member` is the new one and `number` is one more. */
int32_t python_next_member(shf_members **holder, python_member *member, shf_error *error);
/* shf_members_read of at most `room` bytes, added to member->data. Bytes before `from` are dropped
 * first. 0 bytes are added at the end of the member. */
int32_t python_read_member(shf_members **holder, python_member *member, uint64_t from, size_t room,
                           shf_error *error);
void python_free_member(python_member *member);

#endif
