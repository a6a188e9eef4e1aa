// Resampling with the filters of Pillow: with antialiasing, the width of the filter grows with the
// reduction; rows first, then columns, rounded to the image's bits in between.
#pragma once

#include "image/image_options.h"
#include "image/image_pixels.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shf {

// What becomes of the rows or the columns of an image.
struct FilterAxis {
    double start = 0, size = 0;     // what is resized, in samples of the image
    uint32_t limit = 0;             // the samples that there are: no filter reaches further
    uint32_t resized = 0;           // how many it becomes
    uint32_t first = 0, count = 0;  // which of these are wanted

    [[nodiscard]] bool is_copy() const { return start == 0 && size == resized; }
};

// For each of a range of places in the result, which samples of one row or column of the image it
// is made of, and their weights.
struct FilterTable {
    struct Taps {
        uint32_t first, count;
    };
    std::vector<Taps> taps;
    // `most` for each place, an even number of them; what is not used is 0.
    std::vector<int32_t> weights;  // for 8 bit: in fixed point
    std::vector<int32_t> pairs;    // the same, two by two as the fast kernels take them
    std::vector<float> precise;    // for 16 bit
    size_t most = 0;
    bool is_copy = false;  // each place is one sample, the first one is taps[0].first

    // The samples that are needed: the first one, and one past the last.
    [[nodiscard]] uint32_t begin() const { return taps.front().first; }
    [[nodiscard]] uint32_t end() const { return taps.back().first + taps.back().count; }
    // Makes the pairs of the weights, which the columns of a picture need.
    void fill_pairs();
    // Counts samples from another one: `by` is added to their numbers.
    void move(int64_t by);
};

// What one thread keeps between images.
struct ResampleScratch {
    FilterTable columns, rows;
    std::vector<uint8_t> lines;  // rows of the image after the first pass, in turn
};

// The bytes that resampling takes beside the two images; LIMIT is decided by them.
uint64_t resample_memory(const FilterAxis& columns, const FilterAxis& rows,
                         ImageOptions::Filter filter, size_t pixel_size);

// Fills the tables, for samples of 8 or 16 bit.
void plan_resample(const FilterAxis& columns, const FilterAxis& rows, ImageOptions::Filter filter,
                   uint32_t depth, ResampleScratch& scratch);

// Where rows go as they are made, from the first one to the last.
class RowSink {
  public:
    virtual ~RowSink() = default;
    // Place for a row.
    virtual uint8_t* row(uint32_t y) = 0;
    // It is there.
    virtual void done(uint32_t y) = 0;
};

// Rows that become those of another image.
class PixelRows final : public RowSink {
  public:
    explicit PixelRows(const Pixels& to) : to_(to) {}
    uint8_t* row(uint32_t y) override { return to_.row(y); }
    void done(uint32_t /*y*/) override {}

  private:
    const Pixels to_;
};

// Makes the rows that the tables say of `from`, which has all samples that are needed. 16 bytes
// after the last row of `from` must be readable.
void resample(const Pixels& from, ResampleScratch& scratch, RowSink& sink);

}  // namespace shf
