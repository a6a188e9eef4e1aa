// A codec whose library is always called with output spans of one size.
//
// libbz2 loses count of what it wrote when a fault shows while it puts a block out, and liblzma
// notices that a chunk overruns its compressed size only at the end of a call. How far a damaged
// frame is delivered would then depend on the caller's spans. Both are slow enough not to feel a
// copy.
#pragma once

#include "format/codec.h"

#include <algorithm>
#include <vector>

namespace shf {

class FixedSpanCodec : public Codec {
  public:
    Step begin(Bytes /*head*/) final {
        held_ = {};
        result_ = Step::more;
        return reset();
    }

    Step decode(Bytes in, std::span<uint8_t> out) final {
        Step step;
        if (held_.empty() && result_ == Step::more) {
            step = call(in, buffer_);
            held_ = std::span(buffer_).first(step.produced);
            result_ = step.state;
        }
        step.produced = std::min(held_.size(), out.size());
        std::copy_n(held_.begin(), step.produced, out.begin());
        held_ = held_.subspan(step.produced);
        step.state = held_.empty() ? result_ : Step::more;
        return step;
    }

  private:
    virtual Step reset() = 0;
    virtual Step call(Bytes in, std::span<uint8_t> out) = 0;

    std::vector<uint8_t> buffer_ = std::vector<uint8_t>(size_t{64} << 10);
    std::span<const uint8_t> held_;    // of buffer_, not delivered yet
    Step::State result_ = Step::more;  // due when held_ is empty
};

}  // namespace shf
