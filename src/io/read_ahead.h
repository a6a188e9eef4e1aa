// Reads ahead of small reads that follow one another, so that not each of them is a call to the
// system.
#pragma once

#include "io/source.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shf {

// A source for one thread, over another one that can seek and must outlive it. What it has in
// memory is as it was when it was read, so callers need a checksum of their own, and look at the
// end with verify() whether the file is still the one that was opened.
class ReadAhead final : public Source {
  public:
    explicit ReadAhead(Source& source) : source_(source), cost_(source.read_cost()) {}

    [[nodiscard]] std::optional<uint64_t> size() const override { return source_.size(); }
    [[nodiscard]] Identity identity() const override { return source_.identity(); }
    [[nodiscard]] ReadCost read_cost() const override { return cost_; }
    void prefetch(std::span<const ByteRange> ranges) override { source_.prefetch(ranges); }
    [[nodiscard]] bool ends_in_hole() const override { return source_.ends_in_hole(); }
    [[nodiscard]] bool seekable() const override { return true; }
    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        return source_.read(offset, out);
    }
    // Only this one reads ahead.
    size_t read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts) override;
    void verify() override { source_.verify(); }
    [[nodiscard]] bool touched() const override { return source_.touched(); }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        return source_.open_sequential(offset);
    }

  private:
    // So many have to, before anything is read that nobody asked for.
    static constexpr unsigned enough = 3;

    void read_on(uint64_t offset, size_t size);

    Source& source_;
    const ReadCost cost_;
    std::unique_ptr<uint8_t[]> memory_;
    uint64_t start_ = 0;                // of what is in memory
    size_t have_ = 0;                   // bytes of it
    uint64_t last_start_ = UINT64_MAX;  // of the last read
    uint64_t last_end_ = 0;
    unsigned in_turn_ = 0;  // reads that followed one another
    uint64_t step_ = 0;     // bytes that were read at once
};

}  // namespace shf
