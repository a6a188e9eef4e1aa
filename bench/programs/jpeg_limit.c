/* jpeg_limit THREADS FILE...
 *
 * The limit of decoding: libjpeg-turbo's own call over JPEG files that are in memory already, each
 * thread into one recycled buffer. FILE is a tar; of its members those count whose names end with
 * ".jpg". Bytes and checksum are those of the pixels. Threads are started before the clock, and
 * what has to be read is read before it. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <turbojpeg.h>

enum { BLOCK = 512, SIZE_FIELD = 124, NAME_FIELD = 100 };

struct jpeg {
    const uint8_t* data;
    size_t size;
};

static struct jpeg* jpegs;
static size_t jpeg_count, jpeg_room;
static atomic_size_t next_jpeg;
static pthread_barrier_t start_line;

static void die(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void list_jpegs(const uint8_t* tar, size_t size) {
    for (size_t at = 0; at + BLOCK <= size && tar[at] != 0;) {
        const size_t name = strnlen((const char*)tar + at, NAME_FIELD);
        const size_t bytes = (size_t)strtoull((const char*)tar + at + SIZE_FIELD, NULL, 8);
        const uint8_t* data = tar + at + BLOCK;
        at += BLOCK + (bytes + BLOCK - 1) / BLOCK * BLOCK;
        if (at > size) die("a member is cut off");
        if (name < 4 || memcmp(data - BLOCK + name - 4, ".jpg", 4) != 0) continue;
        if (jpeg_count == jpeg_room) {
            jpeg_room = jpeg_room == 0 ? 1024 : jpeg_room * 2;
            jpegs = realloc(jpegs, jpeg_room * sizeof *jpegs);
            if (jpegs == NULL) die("no memory");
        }
        jpegs[jpeg_count++] = (struct jpeg){data, bytes};
    }
}

static void load(const char* path) {
    FILE* file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) die(path);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t* tar = aligned_memory(size);
    if (fread(tar, 1, size, file) != size) die(path);
    fclose(file);
    list_jpegs(tar, size);
}

static void* decode(void* argument) {
    struct measure* m = argument;
    const tjhandle decoder = tjInitDecompress();
    uint8_t* pixels = NULL;
    size_t room = 0;
    pthread_barrier_wait(&start_line);
    for (size_t i; (i = atomic_fetch_add(&next_jpeg, 1)) < jpeg_count;) {
        const struct jpeg jpeg = jpegs[i];
        int width, height, subsampling, colours;
        if (tjDecompressHeader3(decoder, jpeg.data, (unsigned long)jpeg.size, &width, &height,
                                &subsampling, &colours) != 0)
            die(tjGetErrorStr2(decoder));
        const size_t row = (size_t)width * 3;
        const size_t size = row * (size_t)height;
        if (size > room) {
            free(pixels);
            pixels = aligned_memory(room = size);
        }
        if (tjDecompress2(decoder, jpeg.data, (unsigned long)jpeg.size, pixels, width, 0, height,
                          TJPF_RGB, 0) != 0)
            die(tjGetErrorStr2(decoder));
        m->checksum += touch(pixels, size);
        m->bytes += size;
        m->samples++;
    }
    free(pixels);
    tjDestroy(decoder);
    return NULL;
}

int main(int argc, char** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: jpeg_limit THREADS FILE...\n");
        return 2;
    }
    const size_t count = size_argument(argv[1]);
    for (int i = 2; i < argc; i++) load(argv[i]);
    struct measure* shares = calloc(count, sizeof *shares);
    pthread_t* threads = calloc(count, sizeof *threads);
    if (shares == NULL || threads == NULL) die("no memory");
    pthread_barrier_init(&start_line, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, decode, &shares[i]) != 0) die("no thread");
    struct measure m;
    measure_start(&m);
    pthread_barrier_wait(&start_line);
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        m.samples += shares[i].samples;
        m.bytes += shares[i].bytes;
        m.checksum += shares[i].checksum;
    }
    measure_stop(&m);
    measure_print(&m, "libjpeg-turbo");
    return 0;
}
