#include "codec/stretch_cache.h"

#include "codec/stretch_reader.h"

#include <utility>

namespace shf {

StretchCache::StretchCache(uint64_t most) : most_(most) {}

StretchCache::~StretchCache() {
    for (Place& place : places_) delete place.entry.load(std::memory_order_relaxed);
    for (auto& reader : readers_) delete reader.load(std::memory_order_relaxed);
}

void StretchCache::drop(Entry* entry) {
    if (!entry) return;
    held_.fetch_sub(entry->bytes->capacity, std::memory_order_relaxed);
    delete entry;
}

bool StretchCache::has(uint64_t shard, uint64_t stretch) const {
    for (const Place& place : places_)
        if (place.tag.load(std::memory_order_relaxed) == tag_of(shard, stretch)) return true;
    return false;
}

// Takes the entry out, for a few instructions, and puts it back: nobody can let it go meanwhile.
StorageRef StretchCache::find(uint64_t shard, uint64_t stretch) {
    // Another thread has it out at the moment. Not for long, unless it is in the parent of a fork.
    constexpr int patience = 1000;
    for (Place& place : places_) {
        if (place.tag.load(std::memory_order_relaxed) != tag_of(shard, stretch)) continue;
        Entry* entry = nullptr;
        for (int i = 0; i < patience && !entry; ++i)
            entry = place.entry.exchange(nullptr, std::memory_order_acq_rel);
        if (!entry) continue;
        StorageRef bytes;
        if (entry->shard == shard && entry->stretch == stretch) bytes = entry->bytes;
        Entry* nothing = nullptr;
        if (!place.entry.compare_exchange_strong(nothing, entry, std::memory_order_acq_rel))
            drop(entry);  // another one has the place now
        if (bytes) return bytes;
    }
    return {};
}

void StretchCache::put(uint64_t shard, uint64_t stretch, const StorageRef& bytes) {
    auto fresh = std::make_unique<Entry>(Entry{shard, stretch, bytes});
    uint64_t held = held_.fetch_add(bytes->capacity, std::memory_order_relaxed) + bytes->capacity;
    const auto next = [this]() -> Place& {
        return places_[next_.fetch_add(1, std::memory_order_relaxed) % places_.size()];
    };
    for (size_t i = 1; i < places_.size() && held > most_; ++i) {
        Place& place = next();
        place.tag.store(0, std::memory_order_relaxed);
        drop(place.entry.exchange(nullptr, std::memory_order_acq_rel));
        held = held_.load(std::memory_order_relaxed);
    }
    Place& place = next();
    drop(place.entry.exchange(fresh.release(), std::memory_order_acq_rel));
    place.tag.store(tag_of(shard, stretch), std::memory_order_relaxed);
}

std::unique_ptr<StretchReader> StretchCache::take_reader(uint64_t shard, uint64_t first,
                                                         uint64_t last) {
    for (auto& place : readers_) {
        std::unique_ptr<Reader> reader(place.exchange(nullptr, std::memory_order_acq_rel));
        if (!reader) continue;
        const uint64_t next = reader->reader->next();
        if (reader->shard == shard && next > first && next <= last)
            return std::move(reader->reader);
        Reader* nothing = nullptr;
        if (place.compare_exchange_strong(nothing, reader.get(), std::memory_order_acq_rel))
            static_cast<void>(reader.release());
    }
    return nullptr;
}

void StretchCache::put_reader(uint64_t shard, std::unique_ptr<StretchReader> reader) {
    auto fresh = std::make_unique<Reader>(Reader{shard, std::move(reader)});
    const size_t number = next_reader_.fetch_add(1, std::memory_order_relaxed) % readers_.size();
    delete readers_[number].exchange(fresh.release(), std::memory_order_acq_rel);
}

}  // namespace shf
