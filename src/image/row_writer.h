// Writes the rows of an image to the result: flipped, normalised and as the numbers of its mode, in
// one step.
#pragma once

#include "image/image_geometry.h"
#include "image/image_mode.h"
#include "image/image_options.h"
#include "image/image_pixels.h"
#include "image/resample.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shf {

// What number each sample of 8 bits becomes, and those of 16 bits: 8 bits become 16 as value * 257,
// and floating point as value / 255 or value / 65535, normalised.
class SampleNumbers {
  public:
    explicit SampleNumbers(const ImageOptions& options);

    // 256 of them.
    template <typename To>
    [[nodiscard]] const To* table(size_t channel) const {
        return reinterpret_cast<const To*>(tables_.data()) + channel * 256;
    }
    [[nodiscard]] float of(uint16_t sample, size_t channel) const {
        return normal(static_cast<float>(sample) / 65535.0F, channel);
    }

  private:
    // In the steps of torchvision, each rounded.
    [[nodiscard]] float normal(float number, size_t channel) const {
        return (number - mean_[channel]) / deviation_[channel];
    }

    float mean_[4] = {}, deviation_[4] = {1, 1, 1, 1};
    std::vector<uint32_t> tables_;  // of the mode's numbers
};

class RowWriter final : public RowSink {
  public:
    // `shape` says the width, channels and depth of the rows that come; of the pixels that are
    // there already when they go straight into the result. `line` is memory that is used again.
    RowWriter(const ImageOptions& options, const SampleNumbers& numbers, const ImageGeometry& plan,
              const Pixels& shape, std::vector<uint8_t>& line, std::span<uint8_t> out);

    // Writes what is padded. Before the rows.
    void pad();
    uint8_t* row(uint32_t y) override;
    void done(uint32_t y) override;

  private:
    [[nodiscard]] uint8_t* straight(uint32_t y) const;
    void convert(uint32_t y, const uint8_t* in);

    const ImageOptions& options_;
    const SampleNumbers& numbers_;
    const ImageGeometry& plan_;
    const ModeTraits mode_;
    const Pixels shape_;
    const size_t left_;       // of the rows in the result, which is flipped
    const bool is_straight_;  // the rows are those of the result
    std::vector<uint8_t>& line_;
    const std::span<uint8_t> out_;
};

}  // namespace shf
