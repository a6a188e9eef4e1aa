// Cuts a zstd or lz4 frame into its parts: header, block header, block, block check, trailer.
//
// libzstd and liblz4 lose count of what they wrote when a call meets a fault: given two blocks of
// which the second is bad, they report a fault and no output. Which good bytes reach the reader
// would then depend on how large a span he gave. One part per call makes the fault exact.
#pragma once

#include "codec/codec.h"

#include <algorithm>

namespace shf {

class FrameWalk {
  public:
    struct Block {
        size_t body;
        size_t check;
        bool last;
    };
    struct Layout {
        size_t header = 0;
        size_t block_header = 0;  // 3 or 4 bytes, little endian
        size_t block_check = 0;
        size_t trailer = 0;
    };

    // Reads a block header. It may answer nonsense for a bad one, which the library will refuse.
    using ReadBlock = Block (*)(uint32_t header, const Layout& layout);

    void start(const Layout& layout, ReadBlock read_block) {
        layout_ = layout;
        read_block_ = read_block;
        enter(Part::header, layout.header);
    }

    // The bytes of `in` that belong to the current part.
    [[nodiscard]] Bytes part(Bytes in) const { return in.first(std::min(in.size(), left_)); }

    // Whether the next part is the header of a block.
    [[nodiscard]] bool between_blocks() const { return part_ == Part::block_header && have_ == 0; }

    // Takes note that `used`, of the current part, are behind us.
    void advance(Bytes used) {
        left_ -= used.size();
        if (part_ == Part::block_header)
            for (const uint8_t byte : used) value_ |= uint32_t{byte} << (8 * have_++);
        while (left_ == 0 && part_ != Part::done) next();
    }

  private:
    enum class Part : uint8_t { header, block_header, body, check, trailer, done };

    void enter(Part part, size_t size) {
        part_ = part;
        left_ = size;
        have_ = 0;
        if (part == Part::block_header) value_ = 0;
    }

    void next() {
        switch (part_) {
            case Part::header: enter(Part::block_header, layout_.block_header); break;
            case Part::block_header:
                block_ = read_block_(value_, layout_);
                enter(Part::body, block_.body);
                break;
            case Part::body: enter(Part::check, block_.check); break;
            case Part::check:
                if (block_.last)
                    enter(Part::trailer, layout_.trailer);
                else
                    enter(Part::block_header, layout_.block_header);
                break;
            case Part::trailer: enter(Part::done, 0); break;
            case Part::done: break;
        }
    }

    Layout layout_;
    ReadBlock read_block_ = nullptr;
    Part part_ = Part::done;
    size_t left_ = 0;
    uint32_t value_ = 0;
    uint32_t have_ = 0;
    Block block_{};
};

}  // namespace shf
