#include "archive_calls.h"

#include <stdlib.h>

enum { shared_size = 65536, kept_buffers = 64, in_front = 64 };

/* Above it a size is not believed before the entry is looked at, which takes a microsecond. */
static const int64_t believed = 1 << 20;

static int64_t member_size(const shf_archive *archive, uint64_t position) {
    const uint64_t size = shf_archive_info(archive, position, SHF_MEMBER_SIZE);
    if (size == UINT64_MAX && position >= shf_archive_member_count(archive))
        return archive ? SHF_E_NOT_FOUND : SHF_E_USAGE;
    return size > INT64_MAX ? INT64_MAX : (int64_t)size;
}

int64_t python_read(shf_archive **holder, uint64_t position, python_slot *slot) {
    const int64_t size = member_size(*holder, position);
    if (size < 0) return size;
    if (size > (int64_t)sizeof slot->bytes) {
        if (size <= believed) return size;
        const int32_t why = shf_archive_read(*holder, position, NULL, 0, &slot->error);
        return why == SHF_E_USAGE ? size : why;
    }
    const int32_t failed =
        shf_archive_read(*holder, position, slot->bytes, sizeof slot->bytes, &slot->error);
    return failed ? failed : size;
}

int64_t python_read_into(shf_archive **holder, uint64_t position, void *buffer,
                                size_t capacity, shf_error *error) {
    const int32_t failed = shf_archive_read(*holder, position, buffer, capacity, error);
    return failed ? failed : member_size(*holder, position);
}

int64_t python_find(shf_archive **holder, const char *name, size_t name_size,
                           shf_error *error) {
    uint64_t position = 0;
    const int32_t failed = shf_archive_find(*holder, name, name_size, &position, error);
    return failed ? failed : (int64_t)position;
}

int64_t python_plan(shf_archive **holder, const uint64_t *positions, size_t count,
                           uint64_t *plan) {
    uint64_t *buffer = plan, *start = buffer + count, *stop = start + count, *sizes = stop + count;
    int64_t buffers = 0, shared = -1;
    for (size_t i = 0; i < count; ++i) {
        int64_t size = member_size(*holder, positions[i]);
        if (size < 0) return size;
        /* One that is refused gets no memory; reading it says why. */
        if (size > believed &&
            shf_archive_read(*holder, positions[i], NULL, 0, NULL) != SHF_E_USAGE)
            size = 0;
        int64_t mine = shared;
        if (size > shared_size) {
            mine = buffers++;
            sizes[mine] = 0;
        } else if (shared < 0 || sizes[shared] + (uint64_t)size > shared_size) {
            mine = shared = buffers++;
            sizes[mine] = 0;
        }
        buffer[i] = (uint64_t)mine;
        start[i] = sizes[mine];
        stop[i] = sizes[mine] += (uint64_t)size;
    }
    return buffers;
}

int32_t python_read_many(shf_archive **holder, const uint64_t *positions, size_t count,
                                const uint64_t *plan, void **buffers, shf_error *error) {
    const uint64_t *buffer = plan, *start = plan + count;
    void **outputs = malloc((count ? count : 1) * sizeof *outputs);
    if (!outputs) return SHF_E_NOMEM;
    for (size_t i = 0; i < count; ++i) outputs[i] = (char *)buffers[buffer[i]] + start[i];
    const int32_t failed = shf_archive_read_many(*holder, positions, count, outputs, error);
    free(outputs);
    return failed;
}

/* Idle buffers. No lock, so that a child process that is forked meanwhile can continue. */
static void *idle[kept_buffers];

/* The size is in front of what is given out, which is aligned to 64 bytes. */
void *python_allocate(size_t size) {
    char *memory = NULL;
    if (size <= shared_size) {
        size = shared_size;
        for (int i = 0; i < kept_buffers && !memory; ++i)
            if (__atomic_load_n(&idle[i], __ATOMIC_RELAXED))
                memory = __atomic_exchange_n(&idle[i], NULL, __ATOMIC_ACQUIRE);
    }
    if (!memory && size <= SIZE_MAX / 2)
        memory = aligned_alloc(in_front, (size + 2 * in_front - 1) / in_front * in_front);
    if (!memory) return NULL;
    *(size_t *)(void *)memory = size;
    return memory + in_front;
}

void python_free(void *given) {
    if (!given) return;
    char *memory = (char *)given - in_front;
    if (*(size_t *)(void *)memory == shared_size)
        for (int i = 0; i < kept_buffers; ++i) {
            void *none = NULL;
            if (__atomic_compare_exchange_n(&idle[i], &none, memory, 0, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
                return;
        }
    free(memory);
}
