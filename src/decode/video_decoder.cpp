#include "decode/video_decoder.h"

#include "core/error.h"
#include "decode/image_record.h"
#include "decode/image_steps.h"
#include "video/video_file.h"
#include "video/video_plan.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace shf {

namespace {

// What a decoder holds of frames beside the one that comes out: 16 that others are made of, the
// most that any codec has, each of three bytes for two pixels.
constexpr uint64_t frames_held = 16;
uint64_t memory_of_decoder(uint64_t pixels) {
    return bytes_of_all(pixels, frames_held, 3) / 2;
}

// The pixels of a frame, which go through memory with room for the rows that libswscale writes.
class FramePixels final : public PixelSource {
  public:
    FramePixels(const VideoFrame& frame, const ImageHeader& header, PixelBuffer& wide)
        : frame_(frame), header_(header), wide_(wide) {}

    CropBox part(uint32_t /*reduction*/, const CropBox& /*wanted*/, Pixels& pixels,
                 ImageScratch& scratch) const override {
        pixels.width = header_.width;
        pixels.height = header_.height;
        scratch.stored.hold(pixels);
        whole(pixels);
        return {0, 0, header_.width, header_.height};
    }
    void whole(const Pixels& to) const override {
        if (to.width % VideoFrame::whole_pixels == 0)
            return frame_.write(to.data, to.stride(), to.channels);
        Pixels wide = to;
        wide.width += VideoFrame::whole_pixels - to.width % VideoFrame::whole_pixels;
        wide_.hold(wide);
        frame_.write(wide.data, wide.stride(), wide.channels);
        for (uint32_t y = 0; y < to.height; ++y) std::memcpy(to.row(y), wide.row(y), to.stride());
    }

  private:
    const VideoFrame& frame_;
    const ImageHeader& header_;
    PixelBuffer& wide_;
};

class VideoDecoder final : public Decoder {
  public:
    VideoDecoder(const VideoOptions& options, const ImageOptions& image, uint64_t max_decoded)
        : options_(options), steps_(image, max_decoded), max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field, uint64_t random) const override {
        VideoFile file(field, most_pixels());
        const ImageGeometry plan = checked_plan(image_header(file), steps_.choices(random));
        return {.type = checked_type(file, plan)};
    }

    [[nodiscard]] std::string record(std::span<const uint8_t> field,
                                     uint64_t random) const override {
        VideoFile file(field, most_pixels());
        const uint64_t choices = steps_.choices(random);
        const ImageGeometry plan = checked_plan(image_header(file), choices);
        (void)checked_type(file, plan);
        nlohmann::ordered_json record =
            nlohmann::ordered_json::parse(image_record(steps_.options(), plan, choices));
        nlohmann::ordered_json frames = nlohmann::ordered_json::array(), seconds = frames;
        for (const uint64_t number : choose_frames(file.times(), options_, choices)) {
            constexpr double decimals = 1e6;
            frames.push_back(number);
            seconds.push_back(std::round(file.times().seconds(number) * decimals) / decimals);
        }
        record["frames"] = std::move(frames);
        record["seconds"] = std::move(seconds);
        return record.dump();
    }

    void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& scratch) const override {
        VideoFile file(field, most_pixels());
        const uint64_t choices = steps_.choices(random);
        const ImageHeader header = image_header(file);
        const ImageGeometry plan = checked_plan(header, choices);
        if (checked_type(file, plan) != type || out.size() != type.bytes())
            throw Error(SHF_E_INTERNAL, "a video is decoded into what was measured of another");
        const std::vector<uint64_t> chosen = choose_frames(file.times(), options_, choices);
        std::vector<uint64_t> wanted = chosen;  // each once
        wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
        if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
        const ImageScratch::Trim trim{*scratch.image};
        const size_t size = out.size() / chosen.size();
        size_t row = 0;
        file.decode(wanted, [&](uint64_t number, const VideoFrame& frame) {
            const std::span<uint8_t> first = out.subspan(row * size, size);
            steps_.run(FramePixels(frame, header, scratch.image->turned), header, plan, choices,
                       first, *scratch.image);
            while (++row < chosen.size() && chosen[row] == number)
                std::memcpy(out.data() + row * size, first.data(), size);
        });
    }

  private:
    [[nodiscard]] uint64_t most_pixels() const { return max_decoded_ / frames_held * 2 / 3; }

    [[nodiscard]] static ImageHeader image_header(const VideoFile& file) {
        const VideoHeader& video = file.header();
        ImageHeader header;
        header.width = video.width;
        header.height = video.height;
        header.channels = 3;
        header.orientation = video.orientation;
        header.kept = memory_of_decoder(uint64_t{video.width} * video.height);
        return header;
    }

    [[nodiscard]] ImageGeometry checked_plan(const ImageHeader& header, uint64_t choices) const {
        const ImageGeometry plan = steps_.plan(header, choices);
        steps_.check_limits(header, plan, "a video");
        return plan;
    }

    // The type of the result, whose frames have `plan`.
    [[nodiscard]] ArrayType checked_type(VideoFile& file, const ImageGeometry& plan) const {
        const std::optional<uint64_t> fixed = fixed_frames(options_);
        const uint64_t frames = fixed ? *fixed : count_frames(file.times(), options_);
        const ArrayType one = steps_.type_of(plan);
        if (bytes_of_all(frames, 1, one.bytes() + sizeof(uint64_t)) > max_decoded_)
            throw Error(SHF_E_LIMIT,
                        plural(frames, "frame") + " of a video take more than max_decoded=" +
                            std::to_string(max_decoded_) + " bytes",
                        "ask for fewer or smaller frames (frames=, clip=, rate=, resize=), or "
                        "raise max_decoded if you trust the source");
        ArrayType type{one.dtype, one.ndim + 1, {static_cast<int64_t>(frames)}};
        std::copy(one.dimensions().begin(), one.dimensions().end(), type.shape.begin() + 1);
        return type;
    }

    const VideoOptions options_;
    const ImageSteps steps_;
    const uint64_t max_decoded_;
};

}  // namespace

std::unique_ptr<Decoder> video_decoder(const VideoOptions& options, const ImageOptions& image,
                                       uint64_t max_decoded) {
    if (options.pick != VideoOptions::Pick::all && (options.count == 0 || options.stride == 0))
        throw Error(SHF_E_USAGE, "no frame of a video is wanted", "for example frames=16");
    return std::make_unique<VideoDecoder>(options, image, max_decoded);
}

}  // namespace shf
