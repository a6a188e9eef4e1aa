#include "core/error.h"
#include "io/source.h"

#include <algorithm>
#include <cstring>

namespace shf {

namespace {

class MemoryReader : public Sequential {
  public:
    MemoryReader(std::span<const uint8_t> rest, size_t chunk) : rest_(rest), chunk_(chunk) {}

    size_t read(std::span<uint8_t> out) override {
        size_t size = std::min(out.size(), rest_.size());
        if (chunk_ != 0) size = std::min(size, chunk_);
        if (size != 0) std::memcpy(out.data(), rest_.data(), size);
        rest_ = rest_.subspan(size);
        return size;
    }

  private:
    std::span<const uint8_t> rest_;
    size_t chunk_;
};

class MemorySource : public Source {
  public:
    MemorySource(std::span<const uint8_t> bytes, size_t chunk, bool size_known)
        : bytes_(bytes), chunk_(chunk), size_known_(size_known) {}

    [[nodiscard]] std::optional<uint64_t> size() const override {
        return size_known_ ? std::optional<uint64_t>(bytes_.size()) : std::nullopt;
    }
    [[nodiscard]] bool seekable() const override { return true; }
    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        return MemoryReader(from(offset), 0).read(out);
    }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        return std::make_unique<MemoryReader>(from(offset), chunk_);
    }

  private:
    [[nodiscard]] std::span<const uint8_t> from(uint64_t offset) const {
        return bytes_.subspan(static_cast<size_t>(std::min<uint64_t>(offset, bytes_.size())));
    }

    std::span<const uint8_t> bytes_;
    size_t chunk_;
    bool size_known_;
};

}  // namespace

std::unique_ptr<Source> memory_source(std::span<const uint8_t> bytes, size_t chunk,
                                      bool size_known) {
    return std::make_unique<MemorySource>(bytes, chunk, size_known);
}

}  // namespace shf
