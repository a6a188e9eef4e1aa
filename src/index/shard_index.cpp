#include "index/shard_index.h"

#include "core/error.h"
#include "io/source.h"

#include <msgpack.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace shf {

namespace {

// The file is an array of four: magic, version, XXH3-64 of the body, body; the body is a map.
constexpr std::string_view magic = "shardfeed-index";
constexpr uint64_t version = 1;
constexpr size_t identity_part = 64 * 1024;
constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
constexpr uint64_t block_size = 512;  // of a tar

Error damaged(const std::string& what) {
    return Error(SHF_E_FORMAT, "the index file " + what, "delete it; it is made again");
}

// ---- Reading ------------------------------------------------------------------------------------

// One msgpack value and what belongs to it.
class Value {
  public:
    explicit Value(std::span<const uint8_t> bytes) {
        msgpack_unpacked_init(&unpacked_);
        size_t used = 0;
        const auto result = msgpack_unpack_next(
            &unpacked_, reinterpret_cast<const char*>(bytes.data()), bytes.size(), &used);
        if (result == MSGPACK_UNPACK_NOMEM_ERROR || result == MSGPACK_UNPACK_PARSE_ERROR ||
            result == MSGPACK_UNPACK_CONTINUE || used != bytes.size()) {
            msgpack_unpacked_destroy(&unpacked_);
            throw damaged("is not one msgpack value");
        }
    }
    ~Value() { msgpack_unpacked_destroy(&unpacked_); }
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;
    [[nodiscard]] const msgpack_object& get() const { return unpacked_.data; }

  private:
    msgpack_unpacked unpacked_;
};

uint64_t number(const msgpack_object& value) {
    if (value.type != MSGPACK_OBJECT_POSITIVE_INTEGER) throw damaged("lacks a number");
    return value.via.u64;
}

std::span<const uint8_t> bytes(const msgpack_object& value) {
    if (value.type != MSGPACK_OBJECT_BIN) throw damaged("lacks a column");
    return {reinterpret_cast<const uint8_t*>(value.via.bin.ptr), value.via.bin.size};
}

std::string_view text(std::span<const uint8_t> from) {
    return {reinterpret_cast<const char*>(from.data()), from.size()};
}

bool is_text(const msgpack_object& value, std::string_view expected) {
    return value.type == MSGPACK_OBJECT_STR &&
           std::string_view(value.via.str.ptr, value.via.str.size) == expected;
}

// The entries of a map, by name.
class Map {
  public:
    explicit Map(const msgpack_object& value) : map_(value.via.map) {
        if (value.type != MSGPACK_OBJECT_MAP) throw damaged("lacks its body");
        for (uint32_t i = 0; i < map_.size; ++i)
            for (uint32_t k = 0; k < i; ++k)
                if (msgpack_object_equal(map_.ptr[i].key, map_.ptr[k].key))
                    throw damaged("has two values of one name");
    }
    const msgpack_object& operator[](std::string_view name) const {
        for (uint32_t i = 0; i < map_.size; ++i)
            if (is_text(map_.ptr[i].key, name)) return map_.ptr[i].val;
        throw damaged("lacks \"" + std::string(name) + "\"");
    }

  private:
    const msgpack_object_map& map_;
};

template <typename Number>
Column<Number> column(const msgpack_object& value) {
    const auto from = bytes(value);
    if (from.size() % sizeof(Number) != 0) throw damaged("has a column with a part of a number");
    return Column<Number>(from);
}

std::array<uint8_t, 16> hash_of(const msgpack_object& value) {
    std::array<uint8_t, 16> hash{};
    const auto from = bytes(value);
    if (from.size() != hash.size()) throw damaged("has a hash of another length");
    std::copy(from.begin(), from.end(), hash.begin());
    return hash;
}

// Whether `from` is `count` values one after another, each a number, a text or bytes (msgpack
// specification, "Formats"). msgpack-c takes memory for as many elements as the header of an array
// or a map claims, so it is given nothing that has such a header inside.
bool is_flat(std::span<const uint8_t> from, size_t count) {
    for (; count > 0 && !from.empty(); --count) {
        const uint8_t type = from[0];
        size_t head = 1;
        uint64_t body = 0;
        const auto length_of = [&](size_t width) {
            for (; head <= width && head < from.size(); ++head) body = body << 8 | from[head];
        };
        if (type >= 0xa0 && type <= 0xbf) {
            body = type & 0x1f;  // short text
        } else if (type >= 0xc4 && type <= 0xc6) {
            length_of(size_t{1} << (type - 0xc4));  // bytes
        } else if (type >= 0xd9 && type <= 0xdb) {
            length_of(size_t{1} << (type - 0xd9));  // text
        } else if (type >= 0xcc && type <= 0xd3) {
            body = uint64_t{1} << (type & 3);  // number
        } else if (type >= 0x80) {
            return false;
        }
        if (body > from.size() - head) return false;
        from = from.subspan(head + static_cast<size_t>(body));
    }
    return count == 0 && from.empty();
}

bool starts_like_a_file(std::span<const uint8_t> file) {
    constexpr uint8_t array_of_four = 0x94, short_text = 0xa0;
    return file.size() > 2 + magic.size() && file[0] == array_of_four &&
           file[1] == (short_text | magic.size()) && text(file.subspan(2, magic.size())) == magic;
}

bool is_flat_map(std::span<const uint8_t> body) {
    return !body.empty() && (body[0] & 0xf0) == 0x80 &&  // of at most 15 entries
           is_flat(body.subspan(1), 2 * (body[0] & size_t{0x0f}));
}

// ---- Writing ------------------------------------------------------------------------------------

std::array<uint8_t, 16> hash(std::span<const uint8_t> from) {
    const XXH128_hash_t value = XXH3_128bits(from.data(), from.size());
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, value);
    return std::bit_cast<std::array<uint8_t, 16>>(canonical);
}

class Packer {
  public:
    Packer() {
        msgpack_sbuffer_init(&buffer_);
        msgpack_packer_init(&packer_, &buffer_, msgpack_sbuffer_write);
    }
    ~Packer() { msgpack_sbuffer_destroy(&buffer_); }
    Packer(const Packer&) = delete;
    Packer& operator=(const Packer&) = delete;

    void array(size_t size) { check(msgpack_pack_array(&packer_, size)); }
    void map(size_t size) { check(msgpack_pack_map(&packer_, size)); }
    void add(uint64_t value) { check(msgpack_pack_uint64(&packer_, value)); }
    void add(std::string_view value) {
        check(msgpack_pack_str(&packer_, value.size()));
        check(msgpack_pack_str_body(&packer_, value.data(), value.size()));
    }
    void add(std::span<const uint8_t> value) {
        if (value.size() > most)
            throw Error(SHF_E_LIMIT, "the index of this shard would be larger than 4 GiB",
                        "split the shard");
        check(msgpack_pack_bin(&packer_, value.size()));
        check(msgpack_pack_bin_body(&packer_, value.data(), value.size()));
    }
    template <typename Number>
    void add(const std::vector<Number>& column) {
        static_assert(std::endian::native == std::endian::little, "columns are little endian");
        add(std::span(reinterpret_cast<const uint8_t*>(column.data()),
                      column.size() * sizeof(Number)));
    }
    [[nodiscard]] std::span<const uint8_t> bytes() const {
        return {reinterpret_cast<const uint8_t*>(buffer_.data), buffer_.size};
    }

  private:
    static void check(int result) {
        if (result != 0) throw std::bad_alloc();
    }
    msgpack_sbuffer buffer_;
    msgpack_packer packer_;
};

}  // namespace

ShardIdentity identify(Source& source) {
    ShardIdentity identity;
    identity.size = source.size().value_or(0);
    identity.modified = source.modified();
    std::vector<uint8_t> part(
        static_cast<size_t>(std::min<uint64_t>(identity.size, identity_part)));
    const auto read = [&](uint64_t offset) {
        if (source.read(offset, part) < part.size())
            throw Error(SHF_E_TRUNCATED, "the file became shorter while it was read");
        return hash(part);
    };
    identity.head = read(0);
    identity.tail = read(identity.size - part.size());
    return identity;
}

ShardIndex::ShardIndex(StorageRef file, size_t size) : file_(std::move(file)), file_size_(size) {
    if (!starts_like_a_file(this->file())) throw damaged("does not start like one");
    if (!is_flat(this->file().subspan(1), 4)) throw damaged("is not an array of four plain values");
    const Value whole(this->file());
    const msgpack_object_array& parts = whole.get().via.array;  // of four, as seen above
    if (number(parts.ptr[1]) != version)
        throw Error(SHF_E_UNSUPPORTED,
                    "an index file of version " + std::to_string(number(parts.ptr[1])),
                    "delete it; it is made again");
    const auto body = bytes(parts.ptr[3]);
    if (XXH3_64bits(body.data(), body.size()) != number(parts.ptr[2]))
        throw Error(SHF_E_INTEGRITY, "the checksum of the index file does not match",
                    "delete it; it is made again");
    read_body(body);
    check();
}

void ShardIndex::read_body(std::span<const uint8_t> body) {
    if (!is_flat_map(body)) throw damaged("has a body that is no map of plain values");
    const Value value(body);
    const Map map(value.get());
    identity_.size = number(map["size"]);
    identity_.modified = static_cast<int64_t>(number(map["modified"]));
    identity_.head = hash_of(map["head"]);
    identity_.tail = hash_of(map["tail"]);
    end_ = number(map["end"]);
    leniency_ = number(map["leniency"]);
    read_schemas(text(bytes(map["schemas"])));
    keys_ = text(bytes(map["keys"]));
    key_ends_ = column<uint32_t>(map["key_ends"]);
    schema_ = column<uint32_t>(map["schema"]);
    headers_ = column<uint64_t>(map["headers"]);
    offsets_ = column<uint64_t>(map["offsets"]);
    sizes_ = column<uint64_t>(map["sizes"]);
    const size_t samples = key_ends_.size();
    if (schema_.size() != samples || headers_.size() != samples ||
        sizes_.size() != offsets_.size() || samples > most || offsets_.size() > most)
        throw damaged("has columns of different lengths");
    first_members_.resize(samples + 1);
    uint64_t members = 0;
    for (size_t i = 0; i < samples; ++i) {
        if (schema_[i] >= schemas_.size())
            throw damaged("names a list of fields that is not there");
        members += schemas_[schema_[i]]->ends.size();
        if (members > offsets_.size()) break;
        first_members_[i + 1] = static_cast<uint32_t>(members);
    }
    if (members != offsets_.size()) throw damaged("has another number of members than of fields");
}

// Lists of names, each name followed by '/', each list by NUL: neither is ever in a name.
void ShardIndex::read_schemas(std::string_view lists) {
    while (!lists.empty()) {
        const size_t end = lists.find('\0');
        if (end == lists.npos) throw damaged("has a list of fields without its end");
        auto schema = std::make_shared<Schema>();
        schema->names = lists.substr(0, end);
        for (size_t i = 0; i < schema->names.size(); ++i)
            if (schema->names[i] == '/') schema->ends.push_back(static_cast<uint32_t>(i));
        if (schema->ends.empty() || schema->names.back() != '/')
            throw damaged("has an empty list of fields");
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
            throw damaged("has a key outside of the keys");
        key_end = key_ends_[i];
    }
    if (key_end != keys_.size()) throw damaged("has keys of no sample");
    if (end_ > identity_.size) throw damaged("has an end outside of the shard");
    uint64_t reached = 0;
    for (size_t i = 0; i < samples(); ++i) {
        if (headers_[i] < reached || headers_[i] % block_size != 0)
            throw damaged("has samples in another order than the shard");
        reached = headers_[i];
        for (size_t k = first_member(i); k < first_member(i + 1); ++k) {
            uint64_t end = 0;
            if (offsets_[k] < reached || offsets_[k] - reached < block_size ||
                offsets_[k] % block_size != 0 ||
                __builtin_add_overflow(offsets_[k], sizes_[k], &end) || end > end_)
                throw damaged("has a member outside of the shard");
            reached = end;
        }
    }
}

void IndexRows::add(const GroupedSample& sample, std::span<const MemberPlace> members) {
    if (keys_.size() + sample.key.size() > most || offsets_.size() + members.size() > most)
        throw Error(SHF_E_LIMIT, "the index of this shard would be larger than 4 GiB",
                    "split the shard");
    keys_ += sample.key;
    key_ends_.push_back(static_cast<uint32_t>(keys_.size()));
    schema_.push_back(schemas_.number(sample.schema));
    headers_.push_back(sample.first_header);
    for (const MemberPlace& place : members) {
        offsets_.push_back(place.offset);
        sizes_.push_back(place.size);
    }
}

std::shared_ptr<const ShardIndex> IndexRows::finish(const ShardIdentity& identity, uint64_t end,
                                                    uint64_t leniency) const {
    const auto as_bytes = [](std::string_view from) {
        return std::span(reinterpret_cast<const uint8_t*>(from.data()), from.size());
    };
    std::string schemas;
    for (const auto& schema : schemas_.list()) schemas += schema->names + '\0';
    Packer body;
    body.map(13);
    const auto put = [&body](std::string_view name, const auto& value) {
        body.add(name);
        body.add(value);
    };
    put("size", identity.size);
    put("modified", static_cast<uint64_t>(identity.modified));
    put("head", std::span<const uint8_t>(identity.head));
    put("tail", std::span<const uint8_t>(identity.tail));
    put("end", end);
    put("leniency", leniency);
    put("schemas", as_bytes(schemas));
    put("keys", as_bytes(keys_));
    put("key_ends", key_ends_);
    put("schema", schema_);
    put("headers", headers_);
    put("offsets", offsets_);
    put("sizes", sizes_);
    Packer file;
    file.array(4);
    file.add(magic);
    file.add(version);
    file.add(uint64_t{XXH3_64bits(body.bytes().data(), body.bytes().size())});
    file.add(body.bytes());
    const StorageRef storage = unpooled(file.bytes().size());
    std::memcpy(storage->data, file.bytes().data(), file.bytes().size());
    return std::make_shared<const ShardIndex>(storage, file.bytes().size());
}

}  // namespace shf
