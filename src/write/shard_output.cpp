#include "write/shard_output.h"

#include "core/error.h"
#include "core/process_count.h"
#include "write/piece_encoders.h"

#define XXH_STATIC_LINKING_ONLY
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

namespace shf {

namespace {

constexpr size_t buffer_size = size_t{256} << 10;
// From this size on, bytes are written from where they lie: a copy costs more than a call.
constexpr size_t direct_size = size_t{64} << 10;

// Buffers start at a page: a write from there is copied faster.
struct alignas(4096) Buffer {
    std::array<uint8_t, buffer_size> bytes;
};

}  // namespace

struct ShardOutput::State {
    std::unique_ptr<Sink> sink;
    std::unique_ptr<Buffer> buffer;  // of a shard that is not compressed
    size_t used = 0;
    const char* codec = nullptr;
    std::optional<PointRecorder> recorder;
    std::optional<PieceEncoders> encoders;
    uint64_t position = 0, size = 0;
    XXH3_state_t hash;

    struct Mark {
        uint64_t position, size;
        XXH3_state_t hash;
    };
    std::unique_ptr<Mark> mark;

    // The ends of a file whose bytes cannot be read again.
    bool keeps_ends = false;
    std::vector<uint8_t> head, tail;

    void keep(std::span<const uint8_t> bytes) {
        const std::span<const uint8_t> first =
            bytes.first(std::min(bytes.size(), identity_part - head.size()));
        head.insert(head.end(), first.begin(), first.end());
        const std::span<const uint8_t> last = bytes.last(std::min(bytes.size(), identity_part));
        const size_t all = tail.size() + last.size();
        if (all > identity_part)
            tail.erase(tail.begin(), tail.begin() + static_cast<ptrdiff_t>(all - identity_part));
        tail.insert(tail.end(), last.begin(), last.end());
    }

    void put(std::span<const uint8_t> bytes) {
        if (bytes.empty()) return;
        if (keeps_ends) keep(bytes);
        XXH3_128bits_update(&hash, bytes.data(), bytes.size());
        sink->write(bytes);
        size += bytes.size();
    }
    void empty_buffer() {
        put(std::span(buffer->bytes).first(used));
        used = 0;
    }
    [[nodiscard]] PieceEncoders::Put putting() {
        return [this](std::span<const uint8_t> piece) { put(piece); };
    }
};

ShardOutput::ShardOutput(std::unique_ptr<Sink> sink, Compression compression, uint64_t level,
                         uint64_t threads, const Cancel& cancel, bool with_points)
    : state_(std::make_unique<State>()) {
    state_->sink = std::move(sink);
    XXH3_128bits_reset(&state_->hash);
    if (compression == Compression::none) {
        state_->buffer = std::make_unique_for_overwrite<Buffer>();
        return;
    }
    state_->codec = compression_name(compression);
    if (with_points) state_->recorder.emplace();
    state_->encoders.emplace(compression, level, threads, cancel,
                             with_points ? &*state_->recorder : nullptr);
}

ShardOutput::~ShardOutput() = default;

void ShardOutput::write(std::span<const uint8_t> bytes) {
    State& s = *state_;
    s.position += bytes.size();
    if (s.encoders) return s.encoders->write(bytes, s.putting());
    if (bytes.size() >= direct_size) {
        s.empty_buffer();
        return s.put(bytes);
    }
    while (!bytes.empty()) {
        const size_t count = std::min(bytes.size(), buffer_size - s.used);
        std::memcpy(s.buffer->bytes.data() + s.used, bytes.data(), count);
        s.used += count;
        bytes = bytes.subspan(count);
        if (s.used == buffer_size) s.empty_buffer();
    }
}

void ShardOutput::fill(size_t zeros) {
    static constexpr std::array<uint8_t, 512> none = {};
    for (; zeros > 0; zeros -= std::min(zeros, none.size()))
        write(std::span(none).first(std::min(zeros, none.size())));
}

uint64_t ShardOutput::position() const {
    return state_->position;
}

bool ShardOutput::mark() {
    State& s = *state_;
    if (s.encoders || !s.sink->can_cut()) return false;
    s.empty_buffer();
    s.mark = std::make_unique<State::Mark>(State::Mark{s.position, s.size, s.hash});
    return true;
}

void ShardOutput::cut() {
    State& s = *state_;
    s.sink->cut(s.mark->size);
    s.used = 0;
    s.position = s.mark->position;
    s.size = s.mark->size;
    s.hash = s.mark->hash;
}

void ShardOutput::flush() {
    State& s = *state_;
    if (s.encoders)
        s.encoders->flush(s.putting());
    else
        s.empty_buffer();
}

std::unique_ptr<Sink> ShardOutput::finish() {
    State& s = *state_;
    if (s.encoders)
        s.encoders->finish(s.putting());
    else
        s.empty_buffer();
    return std::move(s.sink);
}

Sink& ShardOutput::sink() {
    return *state_->sink;
}

std::optional<DecodePoints> ShardOutput::take_points() {
    if (!state_->recorder) return std::nullopt;
    return state_->recorder->finish(state_->codec);
}

void ShardOutput::keep_ends() {
    state_->keeps_ends = true;
}

ShardIdentity ShardOutput::identity() const {
    return identity_of(state_->size, state_->head, state_->tail);
}

uint64_t ShardOutput::size() const {
    return state_->size;
}

std::string ShardOutput::digest() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
    std::array<char, 33> text;
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return text.data();
}

}  // namespace shf
