// The compressed input of a filter, in full blocks.
#pragma once

#include "codec/codec.h"
#include "io/source.h"

#include <cstring>
#include <new>

namespace shf {

// Hands out what the source gives in full blocks, regardless of the cuts of its reads: the codecs
// see the same bytes in every call, and pipes do not make many small calls of one.
class InputBlock {
  public:
    // Two hundred microseconds of a decoder; small enough for the L2 cache.
    static constexpr size_t capacity = size_t{128} << 10;

    explicit InputBlock(std::unique_ptr<Sequential> source) : source_(std::move(source)) {}

    [[nodiscard]] Sequential& source() { return *source_; }
    [[nodiscard]] Bytes available() const { return {memory_.get() + begin_, end_ - begin_}; }
    // Bytes consumed so far.
    [[nodiscard]] uint64_t position() const { return position_; }

    void consume(size_t count) {
        begin_ += count;
        position_ += count;
    }

    // Puts bytes that were read already in front of those that fill() will read.
    void push_front(Bytes bytes) {
        allocate();
        std::memcpy(memory_.get(), bytes.data(), bytes.size());
        end_ = bytes.size();
    }

    // Moves what is left to the front and fills the rest. False when nothing came: the end.
    bool fill() {
        allocate();
        const size_t held = end_ - begin_;
        std::memmove(memory_.get(), memory_.get() + begin_, held);
        begin_ = 0;
        end_ = held;
        while (end_ < capacity && !ended_) {
            const size_t count = source_->read({memory_.get() + end_, capacity - end_});
            ended_ = count == 0;
            end_ += count;
        }
        return end_ > held;
    }

  private:
    // read(2) is twice as fast into whole pages.
    static constexpr std::align_val_t alignment{4096};

    struct Free {
        void operator()(uint8_t* memory) const { ::operator delete(memory, alignment); }
    };

    void allocate() {
        if (!memory_) memory_.reset(static_cast<uint8_t*>(::operator new(capacity, alignment)));
    }

    std::unique_ptr<Sequential> source_;
    std::unique_ptr<uint8_t, Free> memory_;
    size_t begin_ = 0, end_ = 0;
    uint64_t position_ = 0;
    bool ended_ = false;
};

}  // namespace shf
