#include "codec/unpacked_source.h"

#include "codec/stretch_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace shf {

namespace {

class UnpackedReading final : public Sequential {
  public:
    UnpackedReading(UnpackedSource& source, uint64_t offset) : source_(source), offset_(offset) {}
    size_t read(std::span<uint8_t> out) override {
        const size_t count = source_.read(offset_, out);
        offset_ += count;
        return count;
    }
    bool skip(uint64_t size) override {
        if (offset_ > *source_.size() || size > *source_.size() - offset_) return false;
        offset_ += size;
        return true;
    }
    void finish() override { source_.verify(); }

  private:
    UnpackedSource& source_;
    uint64_t offset_;
};

}  // namespace

StorageRef UnpackedSource::stretch(size_t number) {
    const DecodePoints& points = *shard_.points;
    if (StorageRef held = shard_.cache.find(shard_.number, number)) return held;
    const auto size = static_cast<size_t>(points.end(number) - points.starts[number]);
    StorageRef bytes = shard_.memory.acquire(size);
    std::unique_ptr<StretchReader> reader;
    if (!points.is_point(number))
        reader = shard_.cache.take_reader(shard_.number, points.point_before(number), number);
    if (reader)
        reader->set_source(compressed_);
    else
        reader = std::make_unique<StretchReader>(compressed_, points, shard_.options);
    reader->read(number, {bytes->data, size});
    shard_.cache.put(shard_.number, number, bytes);
    // Where a next stretch starts at no point, to continue is worth the memory of a decoder.
    if (number + 1 < points.size() && !points.is_point(number + 1))
        shard_.cache.put_reader(shard_.number, std::move(reader));
    return bytes;
}

size_t UnpackedSource::read(uint64_t offset, std::span<uint8_t> out) {
    const DecodePoints& points = *shard_.points;
    if (offset >= points.length) return 0;
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(out.size(), points.length - offset));
    size_t number = points.stretch_at(offset);
    for (size_t done = 0; done < wanted; ++number) {
        const StorageRef bytes = stretch(number);
        const auto from = static_cast<size_t>(offset + done - points.starts[number]);
        const auto count = std::min(
            wanted - done, static_cast<size_t>(points.end(number) - points.starts[number]) - from);
        std::memcpy(out.data() + done, bytes->data + from, count);
        done += count;
    }
    return wanted;
}

// Of the compressed shard, what the stretches need that are not there.
void UnpackedSource::prefetch(std::span<const ByteRange> ranges) {
    const DecodePoints& points = *shard_.points;
    const uint64_t file_size = compressed_.size().value_or(0);
    std::vector<ByteRange> needed;
    for (const ByteRange& range : ranges) {
        if (range.size == 0 || range.offset >= points.length) continue;
        const uint64_t end = range.offset + std::min(range.size, points.length - range.offset);
        for (size_t i = points.stretch_at(range.offset);
             i < points.size() && points.starts[i] < end; ++i) {
            if (shard_.cache.has(shard_.number, i)) continue;
            const uint64_t from = points.places[points.point_before(i)] / 8;
            const uint64_t to = points.input_end(i, file_size);
            if (needed.empty() || from > needed.back().offset + needed.back().size)
                needed.push_back({from, to - from});
            else if (to > needed.back().offset + needed.back().size)
                needed.back().size = to - needed.back().offset;
        }
    }
    if (!needed.empty()) compressed_.prefetch(needed);
}

void UnpackedSource::take_over(std::shared_ptr<SeenBytes> seen) {
    compressed_.take_over(std::move(seen));
}

std::unique_ptr<Sequential> UnpackedSource::open_sequential(uint64_t offset) {
    return std::make_unique<UnpackedReading>(*this, offset);
}

}  // namespace shf
