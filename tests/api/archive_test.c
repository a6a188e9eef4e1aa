/* Archives: members of a tar and a ZIP file by position and name, from a file and from memory, by
 * many threads and by forked children at once. */
#include "harness.h"

#include "tar_shards.h"
#include "zip_file.h"

#include <errno.h>
#include <sys/wait.h>

enum { MEMBERS = 200, THREADS = 32, CHILDREN = 8 };

static const char* const names[] = {"a.tar", "a.zip"};

/* Member i of both files. */
static size_t member_name(char* name, int i) {
    return (size_t)snprintf(name, 64, "dir/member_%03d", i);
}
static size_t member_size(int i) {
    return i % 10 == 3 ? 0 : (size_t)(i * 997) % 30000;
}
static unsigned char member_byte(int i, size_t k) {
    return (unsigned char)((size_t)i * 31 + k * 7);
}
static bool is_member(int i, const unsigned char* data) {
    for (size_t k = 0; k < member_size(i); ++k)
        if (data[k] != member_byte(i, k)) return false;
    return true;
}

static void write_files(void) {
    static unsigned char data[30000];
    char name[64];
    FILE* tar = fopen(path_of("a.tar"), "wb");
    zip_file zip;
    zip_start(&zip, path_of("a.zip"));
    for (int i = 0; i < MEMBERS; ++i) {
        member_name(name, i);
        for (size_t k = 0; k < member_size(i); ++k) data[k] = member_byte(i, k);
        put_member(tar, name, data, member_size(i));
        zip_add(&zip, name, data, member_size(i));
    }
    put_end(tar);
    fclose(tar);
    zip_end(&zip);
}

/* A whole file; its size goes to *size. The caller frees it. */
static unsigned char* load(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char* data = malloc(*size);
    CHECK(fread(data, 1, *size, file) == *size);
    fclose(file);
    return data;
}

static shf_archive* open_archive(const char* path, const shf_options* options) {
    shf_archive* archive = NULL;
    shf_error error;
    CHECK_OK(shf_archive_open(&archive, path, options, &error), &error);
    return archive;
}

/* The number of the first thing that is wrong with the archive of write_files(), or 0. */
static int wrong_with(const shf_archive* archive, int first) {
    unsigned char buffer[30000];
    char name[64];
    if (shf_archive_member_count(archive) != MEMBERS) return 1;
    for (int k = 0; k < MEMBERS; ++k) {
        const int i = (first + k) % MEMBERS;
        const size_t name_size = member_name(name, i);
        uint64_t position = 1;
        shf_bytes found;
        if (shf_archive_find(archive, name, name_size, &position, NULL) != SHF_OK) return 2;
        if (position != (uint64_t)i) return 3;
        if (shf_archive_name(archive, position, &found) != SHF_OK) return 4;
        if (found.size != name_size || memcmp(found.data, name, name_size) != 0) return 5;
        if (shf_archive_info(archive, position, SHF_MEMBER_SIZE) != member_size(i)) return 6;
        if (shf_archive_read(archive, position, buffer, member_size(i), NULL) != SHF_OK) return 7;
        if (!is_member(i, buffer)) return 8;
    }
    return 0;
}

static void test_members(void) {
    static const char* const threads[] = {"0", "1", "4"};
    for (int f = 0; f < 2; ++f) {
        shf_archive* archive = open_archive(path_of(names[f]), NULL);
        CHECK(wrong_with(archive, 0) == 0);
        CHECK(shf_archive_info(archive, 0, SHF_MEMBER_OFFSET) == 0);
        CHECK(shf_archive_info(archive, 1, SHF_MEMBER_STORED) == member_size(1));
        CHECK(shf_archive_info(archive, 1, SHF_MEMBER_METHOD) == 0);
        CHECK(shf_archive_info(archive, 1, SHF_MEMBER_KIND) == SHF_KIND_FILE);
        unsigned char first[1000];
        for (size_t k = 0; k < member_size(1); ++k) first[k] = member_byte(1, k);
        CHECK(shf_archive_info(archive, 1, SHF_MEMBER_CRC32) ==
              (f == 0 ? UINT64_MAX : zip_crc(first, member_size(1))));
        CHECK(shf_archive_info(archive, 1, -1) == UINT64_MAX);
        CHECK(shf_archive_info(archive, 1, 6) == UINT64_MAX);
        CHECK(shf_archive_info(archive, MEMBERS, SHF_MEMBER_SIZE) == UINT64_MAX);
        shf_archive_close(archive);
        for (int t = 0; t < 3; ++t) { /* backwards, with some twice */
            shf_options* options = OPTIONS("threads", threads[t]);
            archive = open_archive(path_of(names[f]), options);
            shf_options_free(options);
            uint64_t positions[MEMBERS + 5];
            void* buffers[MEMBERS + 5];
            shf_error error;
            for (int i = 0; i < MEMBERS + 5; ++i) {
                positions[i] = (uint64_t)(2 * MEMBERS - 1 - i) % MEMBERS;
                buffers[i] =
                    positions[i] % 10 == 3 ? NULL : malloc(member_size((int)positions[i]) + 1);
            }
            CHECK_OK(shf_archive_read_many(archive, positions, MEMBERS + 5, buffers, &error),
                     &error);
            for (int i = 0; i < MEMBERS + 5; ++i) {
                CHECK(is_member((int)positions[i], buffers[i]));
                free(buffers[i]);
            }
            CHECK_OK(shf_archive_read_many(archive, NULL, 0, NULL, &error), &error);
            shf_archive_close(archive);
        }
    }
}

static void test_memory_and_views(void) {
    for (int f = 0; f < 2; ++f) {
        size_t size;
        unsigned char* data = load(path_of(names[f]), &size);
        shf_archive* archive;
        shf_error error;
        shf_bytes bytes;
        CHECK_OK(shf_archive_open_memory(&archive, data, size, NULL, &error), &error);
        CHECK(wrong_with(archive, 7) == 0);
        for (int i = 0; i < MEMBERS; ++i) {
            CHECK_OK(shf_archive_view(archive, (uint64_t)i, &bytes, &error), &error);
            CHECK(bytes.size == member_size(i) && is_member(i, bytes.data));
            CHECK(bytes.size == 0 || (bytes.data > data && bytes.data < data + size));
        }
        CHECK_CODE(shf_archive_view(archive, MEMBERS, &bytes, &error), SHF_E_USAGE, &error);
        CHECK(bytes.data == NULL && bytes.size == 0);
        shf_archive_close(archive);
        /* Cut anywhere, no byte past the end is touched: memory checkers see that. */
        unsigned char* part = malloc(size - 1);
        memcpy(part, data, size - 1);
        CHECK(shf_archive_open_memory(&archive, part, size - 1, NULL, &error) < 0);
        CHECK(archive == NULL && strstr(error.message, "memory") != NULL);
        free(part);
        free(data);

        archive = open_archive(path_of(names[f]), NULL);
        bytes.size = 1;
        CHECK_CODE(shf_archive_view(archive, 0, &bytes, &error), SHF_E_UNSUPPORTED, &error);
        CHECK(bytes.data == NULL && bytes.size == 0);
        CHECK_TEXT(error.message, names[f]);
        shf_archive_close(archive);

        /* What comes through a pipe is in memory, too. */
        char url[700];
        snprintf(url, sizeof url, "pipe:cat %s", path_of(names[f]));
        archive = open_archive(url, NULL);
        CHECK(wrong_with(archive, 0) == 0);
        CHECK_OK(shf_archive_view(archive, 1, &bytes, &error), &error);
        CHECK(is_member(1, bytes.data));
        shf_archive_close(archive);
        shf_options* little = OPTIONS("memory", "1MiB");
        CHECK_CODE(shf_archive_open(&archive, url, little, &error), SHF_E_LIMIT, &error);
        CHECK(archive == NULL);
        CHECK_TEXT(error.message, "memory=1048576");
        shf_options_free(little);
    }
}

static void test_wrong_calls(void) {
    for (int f = 0; f < 2; ++f) {
        shf_archive* archive = (shf_archive*)names;
        shf_error error;
        shf_bytes bytes = {(const uint8_t*)"x", 1};
        uint64_t position = 1, positions[3] = {1, 2, 1};
        char buffer[30000];
        void* buffers[3] = {buffer, buffer, buffer};
        const char* path = path_of(names[f]);

        CHECK_CODE(shf_archive_open(NULL, path, NULL, &error), SHF_E_USAGE, &error);
        CHECK_CODE(shf_archive_open(&archive, NULL, NULL, &error), SHF_E_USAGE, &error);
        CHECK(archive == NULL);
        archive = (shf_archive*)names;
        CHECK_CODE(shf_archive_open(&archive, path_of("none.zip"), NULL, &error), SHF_E_IO, &error);
        CHECK(archive == NULL && error.os_error == ENOENT);
        CHECK_TEXT(error.message, "none.zip");
        CHECK_CODE(shf_archive_open(&archive, path_of("none.zip"), NULL, NULL), SHF_E_IO, NULL);
        archive = (shf_archive*)names;
        CHECK_CODE(shf_archive_open_memory(&archive, NULL, 5, NULL, &error), SHF_E_USAGE, &error);
        CHECK(archive == NULL);
        CHECK_CODE(shf_archive_open_memory(NULL, path, 5, NULL, &error), SHF_E_USAGE, &error);
        CHECK_CODE(shf_archive_open_memory(&archive, path, 0, NULL, &error), SHF_E_TRUNCATED,
                   &error);

        shf_archive_close(NULL);
        CHECK(shf_archive_member_count(NULL) == 0);
        CHECK_CODE(shf_archive_find(NULL, "x", 1, &position, &error), SHF_E_USAGE, &error);
        CHECK(position == 0);
        CHECK(shf_archive_name(NULL, 0, &bytes) == SHF_E_USAGE && bytes.data == NULL);
        CHECK(shf_archive_info(NULL, 0, SHF_MEMBER_SIZE) == UINT64_MAX);
        CHECK_CODE(shf_archive_read(NULL, 0, buffer, 1, &error), SHF_E_USAGE, &error);
        CHECK_CODE(shf_archive_read_many(NULL, positions, 1, buffers, &error), SHF_E_USAGE, &error);
        CHECK_CODE(shf_archive_read_many(NULL, NULL, 0, NULL, &error), SHF_E_USAGE, &error);
        bytes.size = 1;
        CHECK_CODE(shf_archive_view(NULL, 0, &bytes, &error), SHF_E_USAGE, &error);
        CHECK(bytes.size == 0);

        archive = open_archive(path, NULL);
        position = 7;
        CHECK_CODE(shf_archive_find(archive, "none", 4, &position, &error), SHF_E_NOT_FOUND,
                   &error);
        CHECK(position == 0);
        CHECK_TEXT(error.message, "none");
        CHECK_CODE(shf_archive_find(archive, "dir/member_0010", 15, &position, &error),
                   SHF_E_NOT_FOUND, &error);
        CHECK_OK(shf_archive_find(archive, "dir/member_001", SHF_STRLEN, &position, &error),
                 &error);
        CHECK_CODE(shf_archive_find(archive, NULL, SHF_STRLEN, &position, &error), SHF_E_USAGE,
                   &error);
        CHECK_CODE(shf_archive_find(archive, "dir/member_00", 13, &position, &error),
                   SHF_E_NOT_FOUND, &error);
        CHECK_CODE(shf_archive_find(archive, "", 0, &position, &error), SHF_E_NOT_FOUND, &error);
        CHECK_CODE(shf_archive_find(archive, NULL, 0, &position, &error), SHF_E_NOT_FOUND, &error);
        CHECK_CODE(shf_archive_find(archive, NULL, 1, &position, &error), SHF_E_USAGE, &error);
        CHECK_CODE(shf_archive_find(archive, "x", 1, NULL, &error), SHF_E_USAGE, &error);
        bytes.size = 1;
        CHECK(shf_archive_name(archive, MEMBERS, &bytes) == SHF_E_NOT_FOUND && bytes.size == 0);
        CHECK(shf_archive_name(archive, UINT64_MAX, &bytes) == SHF_E_NOT_FOUND);
        CHECK(shf_archive_name(archive, 0, NULL) == SHF_E_USAGE);
        CHECK_CODE(shf_archive_view(archive, 0, NULL, &error), SHF_E_USAGE, &error);

        CHECK_CODE(shf_archive_read(archive, 1, buffer, member_size(1) - 1, &error), SHF_E_USAGE,
                   &error);
        CHECK_TEXT(error.message, "996 bytes");
        CHECK_CODE(shf_archive_read(archive, 1, NULL, member_size(1), &error), SHF_E_USAGE, &error);
        CHECK_OK(shf_archive_read(archive, 3, NULL, 0, &error), &error); /* is empty */
        CHECK_CODE(shf_archive_read(archive, MEMBERS, buffer, sizeof buffer, &error), SHF_E_USAGE,
                   &error);
        CHECK_TEXT(error.message, "200");
        CHECK_CODE(shf_archive_read(archive, UINT64_MAX, buffer, sizeof buffer, NULL), SHF_E_USAGE,
                   NULL);
        CHECK_OK(shf_archive_read(archive, 1, buffer, sizeof buffer, &error), &error);
        CHECK(is_member(1, (unsigned char*)buffer));
        positions[1] = MEMBERS;
        CHECK_CODE(shf_archive_read_many(archive, positions, 3, buffers, &error), SHF_E_USAGE,
                   &error);
        positions[1] = 2;
        buffers[2] = NULL;
        CHECK_CODE(shf_archive_read_many(archive, positions, 3, buffers, &error), SHF_E_USAGE,
                   &error);
        CHECK_CODE(shf_archive_read_many(archive, NULL, 1, buffers, &error), SHF_E_USAGE, &error);
        CHECK_CODE(shf_archive_read_many(archive, positions, 1, NULL, &error), SHF_E_USAGE, &error);
        CHECK(wrong_with(archive, 0) == 0); /* wrong calls harm nothing */
        shf_archive_close(archive);
    }
}

/* Names are bytes; a tar may have one twice. */
static void test_names(void) {
    FILE* tar = fopen(path_of("names.tar"), "wb");
    put_member(tar, "../../etc/passwd", "1", 1);
    put_member(tar, "twice", "2", 1);
    put_member(tar, "\xff\x01 caf\xc3\xa9", "3", 1);
    put_member(tar, "twice", "4", 1);
    put_member(tar, "Twice", "5", 1);
    put_end(tar);
    fclose(tar);
    shf_archive* archive = open_archive(path_of("names.tar"), NULL);
    shf_error error;
    uint64_t position;
    char byte;
    CHECK_OK(shf_archive_find(archive, "../../etc/passwd", 16, &position, &error), &error);
    CHECK(position == 0);
    CHECK_OK(shf_archive_find(archive, "\xff\x01 caf\xc3\xa9", 8, &position, &error), &error);
    CHECK(position == 2);
    CHECK_OK(shf_archive_find(archive, "Twice", 5, &position, &error), &error);
    CHECK(position == 4);
    CHECK_CODE(shf_archive_find(archive, "twice", 5, &position, &error), SHF_E_AMBIGUOUS, &error);
    CHECK(position == 0);
    CHECK_TEXT(error.message, "positions 1 and 3");
    CHECK_OK(shf_archive_read(archive, 3, &byte, 1, &error), &error);
    CHECK(byte == '4');
    shf_archive_close(archive);
}

/* A bad member is bad alone; of several the first in the list is told. */
static void test_damaged_member(void) {
    size_t size;
    unsigned char* data = load(path_of("a.zip"), &size);
    shf_archive* archive;
    shf_error error;
    const uint64_t positions[] = {50, 90, 40, 60};
    unsigned char* buffers[4];
    for (int i = 0; i < 4; ++i) buffers[i] = malloc(member_size((int)positions[i]));
    CHECK_OK(shf_archive_open_memory(&archive, data, size, NULL, &error), &error);
    for (int i = 1; i < 3; ++i) { /* the last byte of members 90 and 40 */
        const uint64_t next = shf_archive_info(archive, positions[i] + 1, SHF_MEMBER_OFFSET);
        data[next - 1] ^= 1;
    }
    CHECK_CODE(shf_archive_read(archive, 40, buffers[2], member_size(40), &error), SHF_E_INTEGRITY,
               &error);
    CHECK_TEXT(error.message, "dir/member_040");
    CHECK_CODE(shf_archive_read_many(archive, positions, 4, (void* const*)buffers, &error),
               SHF_E_INTEGRITY, &error);
    CHECK_TEXT(error.message, "dir/member_090");
    CHECK(is_member(50, buffers[0]) && is_member(60, buffers[3])); /* all were tried */
    shf_bytes bytes;
    CHECK_CODE(shf_archive_view(archive, 90, &bytes, &error), SHF_E_INTEGRITY, &error);
    CHECK(bytes.data == NULL);
    shf_archive_close(archive);
    for (int i = 0; i < 4; ++i) free(buffers[i]);
    free(data);
}

typedef struct job {
    const shf_archive* archive;
    int number, wrong;
} job;

static void* use_archive(void* ctx) {
    job* mine = ctx;
    for (int round = 0; round < 3 && mine->wrong == 0; ++round) {
        mine->wrong = wrong_with(mine->archive, mine->number * 13);
        unsigned char buffer[2][30000];
        void* const buffers[2] = {buffer[0], buffer[1]};
        const uint64_t positions[2] = {(uint64_t)mine->number, 150};
        if (shf_archive_read_many(mine->archive, positions, 2, buffers, NULL) != SHF_OK ||
            !is_member(mine->number, buffer[0]) || !is_member(150, buffer[1]))
            mine->wrong = 100;
    }
    return NULL;
}

static void test_threads(void) {
    for (int f = 0; f < 2; ++f) {
        shf_archive* archive = open_archive(path_of(names[f]), NULL);
        pthread_t threads[THREADS];
        job jobs[THREADS];
        for (int t = 0; t < THREADS; ++t) {
            jobs[t] = (job){archive, t, 0};
            CHECK(pthread_create(&threads[t], NULL, use_archive, &jobs[t]) == 0);
        }
        for (int t = 0; t < THREADS; ++t) {
            pthread_join(threads[t], NULL);
            CHECK(jobs[t].wrong == 0);
        }
        shf_archive_close(archive);
    }
}

static void test_forked_children(void) {
    for (int f = 0; f < 2; ++f) {
        shf_archive* archive = open_archive(path_of(names[f]), NULL);
        CHECK(wrong_with(archive, 0) == 0);
        pid_t children[CHILDREN];
        fflush(NULL);
        for (int c = 0; c < CHILDREN; ++c) {
            children[c] = fork();
            if (children[c] != 0) continue;
            alarm(100);
            int wrong = 0;
            for (int round = 0; round < 5 && wrong == 0; ++round)
                wrong = wrong_with(archive, c * 20);
            shf_archive_close(archive);
            _exit(wrong);
        }
        CHECK(wrong_with(archive, 5) == 0);
        for (int c = 0; c < CHILDREN; ++c) {
            int status = 0;
            CHECK(waitpid(children[c], &status, 0) == children[c]);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        CHECK(wrong_with(archive, 0) == 0);
        shf_archive_close(archive);
    }
}

int main(void) {
    make_shard_directory();
    write_files();
    const int descriptors = count_entries("/proc/self/fd");
    RUN(test_members);
    RUN(test_memory_and_views);
    RUN(test_wrong_calls);
    RUN(test_names);
    RUN(test_damaged_member);
    RUN(test_threads);
    RUN(test_forked_children);
    CHECK(count_entries("/proc/self/fd") == descriptors);
    remove_shard_directory();
    return finish();
}
