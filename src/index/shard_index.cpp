#include "index/shard_index.h"

#include "codec/filter.h"
#include "core/error.h"
#include "core/sealed_map.h"
#include "io/source.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace shf {

namespace {

constexpr SealedKind kind = {.magic = "shardfeed-index",
                             .version = 1,
                             .what = "the index file",
                             .help = "delete it; it is made again",
                             .newest = 2};
constexpr uint64_t compressed_version = 2;
constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
constexpr uint64_t block_size = 512;  // of a tar

[[noreturn]] void damaged(const std::string& what) {
    throw_damaged(kind, what);
}

// ---- Reading ------------------------------------------------------------------------------------

std::string_view text(std::span<const uint8_t> from) {
    return {reinterpret_cast<const char*>(from.data()), from.size()};
}

template <typename Number>
Column<Number> column(std::span<const uint8_t> from) {
    if (from.size() % sizeof(Number) != 0) damaged("has a column with a part of a number");
    return Column<Number>(from);
}

template <typename Number>
std::vector<Number> numbers_of(std::span<const uint8_t> from) {
    const auto numbers = column<Number>(from);
    std::vector<Number> all(numbers.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = numbers[i];
    return all;
}

DecodePoints points_of(const SealedMap& map, uint64_t file_size) {
    DecodePoints points;
    points.codec = text(map.bytes("codec"));
    points.length = map.number("length");
    points.starts = numbers_of<uint64_t>(map.bytes("starts"));
    points.sums = numbers_of<uint64_t>(map.bytes("sums"));
    points.places = numbers_of<uint64_t>(map.bytes("places"));
    points.window_ends = numbers_of<uint32_t>(map.bytes("window_ends"));
    const auto windows = map.bytes("windows");
    points.windows.assign(windows.begin(), windows.end());
    if (codec_version(points.codec) == nullptr) damaged("names no compression");
    if (const char* fault = points.fault(file_size)) damaged(fault);
    return points;
}

std::array<uint8_t, 16> hash_of(std::span<const uint8_t> from) {
    std::array<uint8_t, 16> hash{};
    if (from.size() != hash.size()) damaged("has a hash of another length");
    std::copy(from.begin(), from.end(), hash.begin());
    return hash;
}

// ---- Writing ------------------------------------------------------------------------------------

std::array<uint8_t, 16> hash(std::span<const uint8_t> from) {
    const XXH128_hash_t value = XXH3_128bits(from.data(), from.size());
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, value);
    return std::bit_cast<std::array<uint8_t, 16>>(canonical);
}

}  // namespace

ShardIdentity identify(Source& source) {
    ShardIdentity identity;
    identity.size = source.size().value_or(0);
    identity.modified = source.identity().modified;
    std::vector<uint8_t> part(
        static_cast<size_t>(std::min<uint64_t>(identity.size, identity_part)));
    const auto read = [&](uint64_t offset) {
        if (source.read(offset, part) < part.size())
            throw Error(SHF_E_TRUNCATED, "the file became shorter while it was read", shrunk_help);
        return hash(part);
    };
    identity.head = read(0);
    identity.tail = read(identity.size - part.size());
    return identity;
}

ShardIdentity identity_of(uint64_t size, std::span<const uint8_t> head,
                          std::span<const uint8_t> tail) {
    return {.size = size, .modified = 0, .head = hash(head), .tail = hash(tail)};
}

IndexSummary summary_of(uint64_t file_size, const SealedOutline::Read& read) {
    const SealedOutline outline(file_size, read, kind);
    const uint64_t ends = outline.length("key_ends"), samples = ends / sizeof(uint32_t);
    if (ends % sizeof(uint32_t) != 0 || outline.length("headers") != samples * sizeof(uint64_t))
        damaged("has columns of different lengths");
    return {.samples = samples,
            .size = outline.number("size"),
            .modified = static_cast<int64_t>(outline.number("modified")),
            .leniency = outline.number("leniency"),
            .compressed = outline.version() == compressed_version};
}

ShardIndex::ShardIndex(StorageRef file, size_t size) : file_(std::move(file)), file_size_(size) {
    read_body();
    check();
}

void ShardIndex::read_body() {
    const SealedMap map(file(), kind);
    identity_.size = map.number("size");
    identity_.modified = static_cast<int64_t>(map.number("modified"));
    identity_.head = hash_of(map.bytes("head"));
    identity_.tail = hash_of(map.bytes("tail"));
    if (map.version() == compressed_version)
        points_ = std::make_shared<const DecodePoints>(points_of(map, identity_.size));
    end_ = map.number("end");
    leniency_ = map.number("leniency");
    read_schemas(text(map.bytes("schemas")));
    keys_ = text(map.bytes("keys"));
    key_ends_ = column<uint32_t>(map.bytes("key_ends"));
    schema_ = column<uint32_t>(map.bytes("schema"));
    headers_ = column<uint64_t>(map.bytes("headers"));
    offsets_ = column<uint64_t>(map.bytes("offsets"));
    sizes_ = column<uint64_t>(map.bytes("sizes"));
    const size_t samples = key_ends_.size();
    if (schema_.size() != samples || headers_.size() != samples ||
        sizes_.size() != offsets_.size() || samples > most || offsets_.size() > most)
        damaged("has columns of different lengths");
    first_members_.resize(samples + 1);
    uint64_t members = 0;
    for (size_t i = 0; i < samples; ++i) {
        if (schema_[i] >= schemas_.size()) damaged("names a list of fields that is not there");
        members += schemas_[schema_[i]]->ends.size();
        if (members > offsets_.size()) break;
        first_members_[i + 1] = static_cast<uint32_t>(members);
    }
    if (members != offsets_.size()) damaged("has another number of members than of fields");
}

// Lists of names, each name followed by '/', each list by NUL: neither is ever in a name.
void ShardIndex::read_schemas(std::string_view lists) {
    while (!lists.empty()) {
        const size_t end = lists.find('\0');
        if (end == lists.npos) damaged("has a list of fields without its end");
        auto schema = std::make_shared<Schema>();
        schema->names = lists.substr(0, end);
        for (size_t i = 0; i < schema->names.size(); ++i)
            if (schema->names[i] == '/') schema->ends.push_back(static_cast<uint32_t>(i));
        if (schema->ends.empty() || schema->names.back() != '/')
            damaged("has an empty list of fields");
        schemas_.push_back(std::move(schema));
        lists.remove_prefix(end + 1);
    }
}

// Everything must lie in the shard, in its order, and where a tar has it, with room for a header
// before each member, so that no reader has to look again.
void ShardIndex::check() const {
    uint32_t key_end = 0;
    for (size_t i = 0; i < samples(); ++i) {
        if (key_ends_[i] < key_end || key_ends_[i] > keys_.size())
            damaged("has a key outside of the keys");
        key_end = key_ends_[i];
    }
    if (key_end != keys_.size()) damaged("has keys of no sample");
    if (end_ > (points_ ? points_->length : identity_.size))
        damaged("has an end outside of the shard");
    uint64_t reached = 0;
    for (size_t i = 0; i < samples(); ++i) {
        if (headers_[i] < reached || headers_[i] % block_size != 0)
            damaged("has samples in another order than the shard");
        reached = headers_[i];
        for (size_t k = first_member(i); k < first_member(i + 1); ++k) {
            uint64_t end = 0;
            if (offsets_[k] < reached || offsets_[k] - reached < block_size ||
                offsets_[k] % block_size != 0 ||
                __builtin_add_overflow(offsets_[k], sizes_[k], &end) || end > end_)
                damaged("has a member outside of the shard");
            reached = end;
        }
    }
}

namespace {

std::shared_ptr<const ShardIndex> written(SealedWriter& writer, const SealedKind& its_kind) {
    const auto file = writer.finish(its_kind);
    const StorageRef storage = unpooled(file.size());
    std::memcpy(storage->data, file.data(), file.size());
    return std::make_shared<const ShardIndex>(storage, file.size());
}

}  // namespace

std::shared_ptr<const ShardIndex> ShardIndex::with_time(int64_t modified) const {
    const SealedMap map(file(), kind);
    SealedWriter writer;
    const auto put_number = [&](const char* name) { writer.put(name, map.number(name)); };
    const auto put_bytes = [&](const char* name) { writer.put(name, map.bytes(name)); };
    put_number("size");
    writer.put("modified", static_cast<uint64_t>(modified));
    put_bytes("head");
    put_bytes("tail");
    put_number("end");
    put_number("leniency");
    for (const char* name :
         {"schemas", "keys", "key_ends", "schema", "headers", "offsets", "sizes"})
        put_bytes(name);
    SealedKind its_kind = kind;
    if (map.version() == compressed_version) {
        its_kind.version = compressed_version;
        put_bytes("codec");
        put_number("length");
        for (const char* name : {"starts", "sums", "places", "window_ends", "windows"})
            put_bytes(name);
    }
    return written(writer, its_kind);
}

void IndexRows::add(const GroupedSample& sample) {
    if (keys_.size() + sample.key.size() > most || offsets_.size() + sample.fields.size() > most)
        throw Error(SHF_E_LIMIT, "the index of this shard would be larger than 4 GiB",
                    "split the shard");
    keys_ += sample.key;
    key_ends_.push_back(static_cast<uint32_t>(keys_.size()));
    schema_.push_back(schemas_.number(sample.schema));
    headers_.push_back(sample.first_header);
    for (const LooseField& field : sample.fields) {
        offsets_.push_back(field.offset);
        sizes_.push_back(field.size + field.rest);
    }
}

std::shared_ptr<const ShardIndex> IndexRows::finish(const ShardIdentity& identity, uint64_t end,
                                                    uint64_t leniency,
                                                    const DecodePoints* points) const {
    std::string schemas;
    for (const auto& schema : schemas_.list()) schemas += schema->names + '\0';
    SealedWriter writer;
    writer.put("size", identity.size);
    writer.put("modified", static_cast<uint64_t>(identity.modified));
    writer.put("head", std::span<const uint8_t>(identity.head));
    writer.put("tail", std::span<const uint8_t>(identity.tail));
    writer.put("end", end);
    writer.put("leniency", leniency);
    writer.put("schemas", std::string_view(schemas));
    writer.put("keys", std::string_view(keys_));
    writer.put("key_ends", key_ends_);
    writer.put("schema", schema_);
    writer.put("headers", headers_);
    writer.put("offsets", offsets_);
    writer.put("sizes", sizes_);
    SealedKind its_kind = kind;
    if (points) {
        its_kind.version = compressed_version;
        writer.put("codec", std::span(reinterpret_cast<const uint8_t*>(points->codec.data()),
                                      points->codec.size()));
        writer.put("length", points->length);
        writer.put("starts", points->starts);
        writer.put("sums", points->sums);
        writer.put("places", points->places);
        writer.put("window_ends", points->window_ends);
        writer.put("windows", std::span<const uint8_t>(points->windows));
    }
    return written(writer, its_kind);
}

}  // namespace shf
