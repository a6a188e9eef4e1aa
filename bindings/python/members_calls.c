#include "members_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory above it is not kept when all of its bytes were given out. */
static const size_t most_kept = 1 << 20;

int32_t python_next_member(shf_members **holder, python_member *member, shf_error *error) {
    const int32_t code = shf_members_next(*holder, &member->name, error);
    if (code == SHF_OK) {
        ++member->number;
        member->start = member->size = 0;
    }
    return code;
}

void python_free_member(python_member *member) {
    free(member->data);
    member->data = NULL;
    member->size = member->capacity = 0;
}

static void drop_until(python_member *member, uint64_t from) {
    const size_t given = (size_t)(from - member->start);
    member->start = from;
    member->size -= given;
    if (given > 0 && member->size > 0) memmove(member->data, member->data + given, member->size);
    if (member->size == 0 && member->capacity > most_kept) python_free_member(member);
}

static int make_room(python_member *member, size_t room) {
    if (member->capacity - member->size >= room) return 1;
    if (member->size > SIZE_MAX / 2 - room) return 0;
    size_t capacity = member->size + room;
    if (member->size > 0 && capacity < 2 * member->capacity) capacity = 2 * member->capacity;
    uint8_t *data = realloc(member->data, capacity);
    if (!data) return 0;
    member->data = data;
    member->capacity = capacity;
    return 1;
}

int32_t python_read_member(shf_members **holder, python_member *member, uint64_t from, size_t room,
                           shf_error *error) {
    drop_until(member, from);
    if (!make_room(member, room)) {
        memset(error, 0, sizeof *error);
        error->code = SHF_E_NOMEM;
        error->offset = UINT64_MAX;
        snprintf(error->message, sizeof error->message,
                 "no memory for %zu bytes of a member; help: read it in pieces with chunks()",
                 member->size + room);
        return SHF_E_NOMEM;
    }
    size_t size = 0;
    const int32_t code =
        shf_members_read(*holder, member->data + member->size, room, &size, error);
    member->size += size;
    return code;
}
