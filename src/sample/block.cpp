#include "sample/block.h"

#include "io/source.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace shf {

namespace {

// Hands out places in one piece of memory, in turn. Run once over no memory, it adds up the size.
class Places {
  public:
    explicit Places(std::byte* memory) : memory_(memory) {}

    template <typename T>
    std::span<T> take(size_t count) {
        used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
        T* place = memory_ ? reinterpret_cast<T*>(memory_ + used_) : nullptr;
        used_ += count * sizeof(T);
        return {place, place ? count : 0};
    }
    [[nodiscard]] size_t used() const { return used_; }

  private:
    std::byte* const memory_;
    size_t used_ = 0;
};

struct Layout {
    std::span<Block> block;
    std::span<StorageRef> storages;
    std::span<std::shared_ptr<const Schema>> schemas;
    std::span<std::shared_ptr<const Origin>> origins;
    std::span<std::span<const uint8_t>> buffers;
    std::span<Sample> samples;
    std::span<uint64_t> tables;
    std::span<Deferred> deferred;
    std::span<char> keys;

    Layout(Places& places, const BlockParts& parts)
        : block(places.take<Block>(1)),
          storages(places.take<StorageRef>(parts.storages.size())),
          schemas(places.take<std::shared_ptr<const Schema>>(parts.schemas.size())),
          origins(places.take<std::shared_ptr<const Origin>>(parts.origins.size())),
          buffers(places.take<std::span<const uint8_t>>(parts.buffers.size())),
          samples(places.take<Sample>(parts.offset.size())),
          tables(places.take<uint64_t>(5 * parts.offset.size() + 2 + 3 * parts.start.size())),
          deferred(places.take<Deferred>(parts.deferred.size())),
          keys(places.take<char>(parts.keys.size())) {}
};

}  // namespace

Block* Block::make(const BlockParts& parts) {
    Places sum(nullptr);
    const Layout none(sum, parts);
    Places places(static_cast<std::byte*>(::operator new(sum.used())));
    const Layout at(places, parts);

    auto* block = new (at.block.data()) Block;
    block->count = static_cast<uint32_t>(parts.offset.size());
    block->field_count = static_cast<uint32_t>(parts.start.size());
    uint64_t* out = at.tables.data();
    const auto place = [&](std::span<const uint64_t> table) {
        return std::exchange(out, std::copy(table.begin(), table.end(), out));
    };
    block->first_field = place(parts.first_field);
    block->schema = place(parts.schema);
    block->key = place(parts.key);
    block->origin = place(parts.origin);
    block->buffer = place(parts.buffer);
    block->start = place(parts.start);
    block->stop = place(parts.stop);
    block->offset = place(parts.offset);
    std::copy(parts.keys.begin(), parts.keys.end(), at.keys.data());
    block->keys = {at.keys.data(), at.keys.size()};
    block->samples = at.samples;
    for (uint32_t i = 0; i < block->count; ++i) new (&at.samples[i]) Sample{block, i};
    std::uninitialized_move(parts.storages.begin(), parts.storages.end(), at.storages.data());
    block->storages = at.storages;
    std::uninitialized_move(parts.schemas.begin(), parts.schemas.end(), at.schemas.data());
    block->schemas = at.schemas;
    std::uninitialized_move(parts.origins.begin(), parts.origins.end(), at.origins.data());
    block->origins = at.origins;
    std::uninitialized_copy(parts.buffers.begin(), parts.buffers.end(), at.buffers.data());
    block->buffers = at.buffers;
    std::uninitialized_copy(parts.deferred.begin(), parts.deferred.end(), at.deferred.data());
    block->deferred = at.deferred;
    block->source = parts.source;
    block->payload_bytes = parts.payload_bytes;
    block->own_bytes = sum.used();
    return block;
}

void Block::destroy() noexcept {
    std::destroy(storages.begin(), storages.end());
    std::destroy(schemas.begin(), schemas.end());
    std::destroy(origins.begin(), origins.end());
    this->~Block();
    ::operator delete(static_cast<void*>(this));
}

}  // namespace shf
