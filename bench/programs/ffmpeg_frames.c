/* Decodes videos with the libraries of FFmpeg alone:
 *
 *     ffmpeg_frames THREADS COUNT FILE...
 *
 * Each thread takes the next file, and decodes it with one thread of the codec. COUNT frames in the
 * middles of equal parts become red, green and blue; of -COUNT, the first ones, after which the
 * next file follows, read no further. All frames of a file have the same memory, one after another.
 * Printed are the frames that did. It ends at the first error. */
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static char **files;
static int file_count, wanted;
static atomic_int next_file;
static atomic_long converted;

static void need(int fine, const char *what)
{
    if (fine) return;
    fprintf(stderr, "ffmpeg_frames: %s\n", what);
    exit(1);
}

struct reader {
    AVCodecContext *codec;
    AVFrame *frame;
    struct SwsContext *colours;
    uint8_t *pixels;
    int64_t number, chosen, total;
};

static int is_wanted(struct reader *reader)
{
    if (wanted < 0) return reader->chosen < -wanted;
    if (reader->chosen == wanted) return 0;
    return reader->number == (2 * reader->chosen + 1) * reader->total / (2 * wanted);
}

static void take_frames(struct reader *reader)
{
    AVFrame *frame = reader->frame;
    while (avcodec_receive_frame(reader->codec, frame) == 0) {
        if (is_wanted(reader)) {
            uint8_t *planes[4] = {reader->pixels, NULL, NULL, NULL};
            int strides[4] = {3 * frame->width, 0, 0, 0};
            if (!reader->colours) {
                reader->pixels = malloc((size_t)3 * frame->width * frame->height + 64);
                planes[0] = reader->pixels;
                reader->colours = sws_getContext(
                    frame->width, frame->height, frame->format, frame->width, frame->height,
                    AV_PIX_FMT_RGB24, SWS_BILINEAR, NULL, NULL, NULL);
                need(reader->colours != NULL && reader->pixels != NULL, "no colours");
            }
            sws_scale(reader->colours, (const uint8_t *const *)frame->data, frame->linesize, 0,
                      frame->height, planes, strides);
            ++reader->chosen;
        }
        ++reader->number;
        av_frame_unref(frame);
    }
}

static void decode(const char *file)
{
    AVFormatContext *format = NULL;
    const AVCodec *decoder = NULL;
    AVPacket *packet = av_packet_alloc();
    struct reader reader = {.frame = av_frame_alloc()};
    need(avformat_open_input(&format, file, NULL, NULL) == 0, "no video");
    const int stream = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0);
    need(stream >= 0, "no video stream");
    reader.total = format->streams[stream]->nb_frames;
    reader.codec = avcodec_alloc_context3(decoder);
    avcodec_parameters_to_context(reader.codec, format->streams[stream]->codecpar);
    reader.codec->thread_count = 1;
    need(avcodec_open2(reader.codec, decoder, NULL) == 0, "no decoder");
    while (reader.chosen != abs(wanted) && av_read_frame(format, packet) == 0) {
        if (packet->stream_index == stream)
            need(avcodec_send_packet(reader.codec, packet) == 0, "a damaged frame");
        av_packet_unref(packet);
        take_frames(&reader);
    }
    avcodec_send_packet(reader.codec, NULL);
    take_frames(&reader);
    converted += reader.chosen;
    sws_freeContext(reader.colours);
    free(reader.pixels);
    avcodec_free_context(&reader.codec);
    av_frame_free(&reader.frame);
    av_packet_free(&packet);
    avformat_close_input(&format);
}

static void *decode_some(void *unused)
{
    (void)unused;
    for (int file; (file = next_file++) < file_count;) decode(files[file]);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[64];
    need(count > 3, "ffmpeg_frames THREADS COUNT FILE...");
    const int wished = atoi(arguments[1]);
    need(wished >= 1 && wished <= 64, "1 to 64 threads");
    wanted = atoi(arguments[2]);
    files = arguments + 3;
    file_count = count - 3;
    for (int i = 0; i < wished; ++i)
        need(pthread_create(&threads[i], NULL, decode_some, NULL) == 0, "no thread");
    for (int i = 0; i < wished; ++i) pthread_join(threads[i], NULL);
    printf("%ld\n", (long)converted);
    return 0;
}
