#include "video/clip_start.h"

#include "video/video_packets.h"
#include "video/video_plan.h"

namespace shf {

double clip_start(std::span<const uint8_t> file, const VideoOptions& options, uint64_t random) {
    const FfmpegLog log;
    VideoPackets packets(file, log);
    packets.read(log);
    const VideoTimes& times = packets.times();
    return times.begins_at() + times.seconds(choose_frames(times, options, random).front());
}

}  // namespace shf
