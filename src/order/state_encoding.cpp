#include "order/state_encoding.h"

#include "core/sealed_map.h"

#include <string_view>
#include <utility>

namespace shf {

namespace {

constexpr SealedKind kind = {
    .magic = "shardfeed-state", .version = 2, .what = "the saved state", .help = state_help};

// Numbers one after another, seven bits in a byte, the low ones first; the last byte of a number
// has its high bit clear (LEB128, DWARF 5 section 7.6).
class NumberWriter {
  public:
    void add(uint64_t number) {
        for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<uint8_t>(number | 0x80));
        bytes_.push_back(static_cast<uint8_t>(number));
    }
    void add(const std::vector<uint8_t>& bytes) {
        add(bytes.size());
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    [[nodiscard]] std::span<const uint8_t> bytes() const { return bytes_; }

  private:
    std::vector<uint8_t> bytes_;
};

class NumberReader {
  public:
    explicit NumberReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    uint64_t next() {
        uint64_t number = 0;
        for (unsigned shift = 0; shift < 63; shift += 7) {
            if (bytes_.empty()) break;
            const uint8_t byte = bytes_.front();
            bytes_ = bytes_.subspan(1);
            number |= uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80) {
                if (number > largest_in_state) break;
                return number;
            }
        }
        throw_damaged_state("has a number that is cut or too large");
    }
    // A count of things that take at least one byte each.
    size_t count() {
        const uint64_t count = next();
        if (count > bytes_.size()) throw_damaged_state("counts more than it has");
        return static_cast<size_t>(count);
    }
    std::span<const uint8_t> bytes() {
        const size_t size = count();
        const auto bytes = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return bytes;
    }

  private:
    std::span<const uint8_t> bytes_;
};

// Numbers that are absent are written as 0, the others as number + 1.
uint64_t shifted(uint64_t number, uint64_t absent) {
    return number == absent ? 0 : number + 1;
}
uint64_t unshifted(uint64_t number, uint64_t absent) {
    return number == 0 ? absent : number - 1;
}

// Numbers that ascend are written as differences.
void write_shard(NumberWriter& out, const ShardState& shard, const ShardState* before) {
    out.add(shard.nth - (before ? before->nth : 0));
    const ShardPosition& position = shard.position;
    out.add(position.version);
    out.add(position.from.offset);
    out.add(position.from.number);
    out.add(shard.ordinal - (before ? before->ordinal : 0));
    out.add(shifted(position.next, ShardState::over));
    if (!shard.is_over()) {
        out.add(shard.near.offset - position.from.offset);
        out.add(shard.near.number - position.from.number);
    }
    out.add(shard.bad.size());
    uint64_t last = 0;
    for (const uint64_t number : shard.bad) out.add(number - std::exchange(last, number));
}

ShardState read_shard(NumberReader& in, const ShardState* before) {
    ShardState shard;
    shard.nth = in.next() + (before ? before->nth : 0);
    const uint64_t version = in.next();
    if (version > UINT32_MAX) throw_damaged_state("has a version of a shard that is too large");
    ShardPosition& position = shard.position;
    position.version = static_cast<uint32_t>(version);
    position.from.offset = in.next();
    position.from.number = in.next();
    shard.ordinal = in.next() + (before ? before->ordinal : 0);
    position.next = unshifted(in.next(), ShardState::over);
    if (!shard.is_over()) {
        shard.near.offset = position.from.offset + in.next();
        shard.near.number = position.from.number + in.next();
    }
    uint64_t last = 0;
    for (size_t left = in.count(); left > 0; --left) shard.bad.push_back(last += in.next());
    if (before && shard.nth <= before->nth) throw_damaged_state("has a shard twice");
    if (last > largest_in_state || shard.nth > largest_in_state || shard.ordinal > largest_in_state)
        throw_damaged_state("has a number that is too large");
    if (!shard.is_over() &&
        (position.next < shard.near.number || shard.near.offset > largest_in_state))
        throw_damaged_state("resumes before the position where it starts to read");
    return shard;
}

constexpr uint64_t flag_closed = 1, flag_base = 2, flag_begun = 4, flag_given = 8, flag_later = 16,
                   all_flags = flag_closed | flag_base | flag_begun | flag_given | flag_later;

// In pairs: so many that wait, so many that were given.
std::vector<uint64_t> read_given(NumberReader& in) {
    std::vector<uint64_t> runs;
    uint64_t samples = 0;
    for (size_t left = in.count(); left > 0; --left) {
        runs.push_back(in.next());
        if (runs.back() == 0 && runs.size() > 1)
            throw_damaged_state("has an impossible number of samples that were given");
        samples += runs.back();
        if (samples > largest_in_state) throw_damaged_state("has a number that is too large");
    }
    if (runs.empty() || runs.size() % 2 != 0)
        throw_damaged_state("does not say which samples were given");
    return runs;
}

std::vector<BegunLater> read_begun_later(NumberReader& in) {
    std::vector<BegunLater> all;
    uint64_t behind = 0;
    for (size_t left = in.count(); left > 0; --left) {
        const uint64_t more = in.next(), elements = in.next();
        behind += more;
        if (more == 0 || elements == 0 || behind > largest_in_state)
            throw_damaged_state("has a sample that was begun in an impossible place");
        all.push_back({behind, elements});
    }
    return all;
}

void write_lane(NumberWriter& out, const LaneState& lane) {
    out.add(lane.lane);
    out.add((lane.closed ? flag_closed : 0) | (lane.base > 0 ? flag_base : 0) |
            (lane.begun_elements > 0 ? flag_begun : 0) |
            (lane.waiting_and_given.empty() ? 0 : flag_given) |
            (lane.begun_later.empty() ? 0 : flag_later));
    out.add(lane.epoch);
    out.add(lane.taken);
    out.add(lane.drawn);
    out.add(lane.put);
    if (lane.base > 0) out.add(lane.base);
    out.add(lane.begun);
    out.add(lane.skip);
    if (lane.begun_elements > 0) out.add(lane.begun_elements);
    if (!lane.waiting_and_given.empty()) {
        out.add(lane.waiting_and_given.size());
        for (const uint64_t run : lane.waiting_and_given) out.add(run);
    }
    if (!lane.begun_later.empty()) {
        out.add(lane.begun_later.size());
        uint64_t last = 0;
        for (const BegunLater& later : lane.begun_later) {
            out.add(later.behind - std::exchange(last, later.behind));
            out.add(later.elements);
        }
    }
    out.add(lane.shards.size());
    const ShardState* before = nullptr;
    for (const ShardState& shard : lane.shards) {
        write_shard(out, shard, before);
        before = &shard;
    }
}

LaneState read_lane(NumberReader& in) {
    LaneState lane;
    const uint64_t number = in.next(), flags = in.next();
    if (number > UINT32_MAX || flags > all_flags)
        throw_damaged_state("has a lane of an impossible number");
    lane.lane = static_cast<uint32_t>(number);
    lane.closed = (flags & flag_closed) != 0;
    lane.epoch = in.next();
    lane.taken = in.next();
    lane.drawn = in.next();
    lane.put = in.next();
    if (flags & flag_base) lane.base = in.next();
    lane.begun = in.next();
    lane.skip = in.next();
    if (flags & flag_begun) lane.begun_elements = in.next();
    if (flags & flag_given) lane.waiting_and_given = read_given(in);
    if (flags & flag_later) lane.begun_later = read_begun_later(in);
    const size_t shards = in.count();
    for (size_t i = 0; i < shards; ++i) {
        if (i > 0 && !lane.shards.back().is_over())
            throw_damaged_state("resumes in two shards of a lane");
        lane.shards.push_back(read_shard(in, i == 0 ? nullptr : &lane.shards.back()));
    }
    return lane;
}

std::string join(const std::vector<std::pair<std::string, std::string>>& options) {
    std::string text;
    for (const auto& [name, value] : options) text += name + '=' + value + '\n';
    return text;
}

std::vector<std::pair<std::string, std::string>> split(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> options;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        const size_t equals = text.find('=');
        if (end == text.npos || equals >= end) throw_damaged_state("has options that are none");
        options.emplace_back(text.substr(0, equals), text.substr(equals + 1, end - equals - 1));
        text.remove_prefix(end + 1);
    }
    return options;
}

// Ascending numbers below `consumers`.
std::vector<uint32_t> read_consumers(std::span<const uint8_t> bytes, uint64_t consumers) {
    std::vector<uint32_t> of;
    NumberReader in(bytes);
    while (!in.empty()) {
        const uint64_t more = in.next(), last = of.empty() ? 0 : of.back();
        if ((more == 0 && !of.empty()) || more >= consumers - last)
            throw_damaged_state("is of an impossible consumer");
        of.push_back(static_cast<uint32_t>(last + more));
    }
    if (of.empty()) throw_damaged_state("is of no consumer");
    return of;
}

StreamState decode_nested(std::span<const uint8_t> blob, unsigned depth);

std::vector<StreamState> read_parts(std::span<const uint8_t> bytes, unsigned depth) {
    std::vector<StreamState> parts;
    NumberReader in(bytes);
    while (!in.empty()) {
        if (depth == deepest_mix) throw_damaged_state("is of mixes that are nested too deep");
        parts.push_back(decode_nested(in.bytes(), depth + 1));
    }
    return parts;
}

}  // namespace

void throw_damaged_state(const std::string& what) {
    throw_damaged(kind, what);
}

std::vector<uint8_t> encode(const StreamState& state) {
    NumberWriter lanes;
    for (const LaneState& lane : state.position.lanes) write_lane(lanes, lane);
    SealedWriter writer;
    const std::string options = join(state.options);
    writer.put("options", std::string_view(options));
    writer.put("shards", state.shards);
    writer.put("shards_hash", state.shards_hash);
    writer.put("lanes_in_all", state.lanes_in_all);
    writer.put("consumers", state.consumers);
    NumberWriter of;
    uint64_t last = 0;
    for (const uint32_t consumer : state.of) of.add(consumer - std::exchange(last, consumer));
    writer.put("of", of.bytes());
    writer.put("remaining", shifted(state.position.remaining, UINT64_MAX));
    writer.put("lanes", lanes.bytes());
    writer.put("columns", std::string_view(state.columns));
    NumberWriter parts;
    for (const StreamState& part : state.parts) parts.add(encode(part));
    writer.put("mixed", state.position.mixed);
    writer.put("passed", state.position.passed);
    writer.put("skips_own", uint64_t{state.position.skips_own});
    writer.put("parts", parts.bytes());
    const auto blob = writer.finish(kind);
    return {blob.begin(), blob.end()};
}

namespace {

StreamState decode_nested(std::span<const uint8_t> blob, unsigned depth) {
    const SealedMap map(blob, kind);
    StreamState state;
    const auto options = map.bytes("options");
    state.options =
        split(std::string_view(reinterpret_cast<const char*>(options.data()), options.size()));
    const auto columns = map.bytes("columns");
    state.columns.assign(columns.begin(), columns.end());
    state.shards = map.number("shards");
    state.shards_hash = map.number("shards_hash");
    state.lanes_in_all = map.number("lanes_in_all");
    state.consumers = map.number("consumers");
    state.position.remaining = unshifted(map.number("remaining"), UINT64_MAX);
    if (state.shards > largest_in_state || state.lanes_in_all > UINT32_MAX ||
        state.consumers > UINT32_MAX || state.consumers == 0)
        throw_damaged_state("has a number that is too large");
    state.of = read_consumers(map.bytes("of"), state.consumers);
    NumberReader lanes(map.bytes("lanes"));
    const uint64_t numbers = state.by_index() ? state.consumers : state.lanes_in_all;
    while (!lanes.empty()) {
        state.position.lanes.push_back(read_lane(lanes));
        const size_t count = state.position.lanes.size();
        if (state.position.lanes.back().lane >= numbers ||
            (count > 1 && state.position.lanes[count - 2].lane >= state.position.lanes.back().lane))
            throw_damaged_state("has its lanes in another order");
    }
    state.position.mixed = map.number("mixed");
    state.position.passed = map.number("passed");
    state.position.skips_own = map.number("skips_own") != 0;
    if (state.position.mixed > largest_in_state || state.position.passed > largest_in_state)
        throw_damaged_state("has a number that is too large");
    state.parts = read_parts(map.bytes("parts"), depth);
    return state;
}

}  // namespace

StreamState decode_state(std::span<const uint8_t> blob) {
    return decode_nested(blob, 0);
}

}  // namespace shf
