#include "core/sealed_map.h"

#include "core/error.h"
#include "core/plain_values.h"

#include <msgpack.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <limits>
#include <new>
#include <optional>
#include <utility>

namespace shf {

namespace {

std::string_view text(std::span<const uint8_t> from) {
    return {reinterpret_cast<const char*>(from.data()), from.size()};
}

// One msgpack value and what belongs to it.
class Value {
  public:
    Value(std::span<const uint8_t> bytes, const SealedKind& kind) {
        msgpack_unpacked_init(&unpacked_);
        size_t used = 0;
        const auto result = msgpack_unpack_next(
            &unpacked_, reinterpret_cast<const char*>(bytes.data()), bytes.size(), &used);
        if (result == MSGPACK_UNPACK_NOMEM_ERROR || result == MSGPACK_UNPACK_PARSE_ERROR ||
            result == MSGPACK_UNPACK_CONTINUE || used != bytes.size()) {
            msgpack_unpacked_destroy(&unpacked_);
            if (result == MSGPACK_UNPACK_NOMEM_ERROR) throw std::bad_alloc();
            throw_damaged(kind, "is not one msgpack value");
        }
    }
    ~Value() { msgpack_unpacked_destroy(&unpacked_); }
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;
    [[nodiscard]] const msgpack_object& get() const { return unpacked_.data; }

  private:
    msgpack_unpacked unpacked_;
};

uint64_t number_of(const msgpack_object& value, const SealedKind& kind) {
    if (value.type != MSGPACK_OBJECT_POSITIVE_INTEGER) throw_damaged(kind, "lacks a number");
    return value.via.u64;
}

std::span<const uint8_t> bytes_of(const msgpack_object& value, const SealedKind& kind) {
    if (value.type != MSGPACK_OBJECT_BIN) throw_damaged(kind, "lacks a column");
    return {reinterpret_cast<const uint8_t*>(value.via.bin.ptr), value.via.bin.size};
}

// Whether `from` is `count` plain values one after another. msgpack-c takes memory for as many
// elements as the header of an array or a map claims, so it is given nothing that has such a header
// inside.
bool is_flat(std::span<const uint8_t> from, size_t count) {
    for (; count > 0; --count) {
        const auto head = plain_head_of(from);
        if (!head || head->body > from.size() - head->size) return false;
        from = from.subspan(head->size + static_cast<size_t>(head->body));
    }
    return from.empty();
}

bool starts_with_magic(std::span<const uint8_t> file, std::string_view magic) {
    constexpr uint8_t array_of_four = 0x94, short_text = 0xa0;
    return file.size() > 2 + magic.size() && file[0] == array_of_four &&
           file[1] == (short_text | magic.size()) && text(file.subspan(2, magic.size())) == magic;
}

// Of our own maps: they have few entries.
std::optional<PlainMapHead> map_head_of(std::span<const uint8_t> from) {
    constexpr size_t most = 255;
    const auto head = plain_map_head_of(from);
    return head && head->entries <= most ? head : std::nullopt;
}

bool is_flat_map(std::span<const uint8_t> body) {
    const auto head = map_head_of(body);
    return head && is_flat(body.subspan(head->size), 2 * head->entries);
}

}  // namespace

void throw_damaged(const SealedKind& kind, const std::string& what) {
    throw Error(SHF_E_FORMAT, std::string(kind.what) + " " + what, kind.help);
}

// ---- Reading ------------------------------------------------------------------------------------

namespace {

struct Body {
    uint64_t version;
    std::span<const uint8_t> bytes;
};

Body checked_body(std::span<const uint8_t> file, const SealedKind& kind) {
    if (!starts_with_magic(file, kind.magic)) throw_damaged(kind, "does not start like one");
    if (!is_flat(file.subspan(1), 4)) throw_damaged(kind, "is not an array of four plain values");
    const Value whole(file, kind);
    const msgpack_object_array& parts = whole.get().via.array;  // of four, as seen above
    const uint64_t version = number_of(parts.ptr[1], kind);
    if (version < kind.version || version > kind.newest)
        throw Error(SHF_E_UNSUPPORTED,
                    std::string(kind.what) + " has version " + std::to_string(version), kind.help);
    const auto body = bytes_of(parts.ptr[3], kind);
    if (XXH3_64bits(body.data(), body.size()) != number_of(parts.ptr[2], kind))
        throw Error(SHF_E_INTEGRITY,
                    "the checksum of " + std::string(kind.what) + " does not match", kind.help);
    if (!is_flat_map(body)) throw_damaged(kind, "has a body that is no map of plain values");
    return {version, body};  // which lies in `file`
}

}  // namespace

struct SealedMap::Entries {
    Entries(const Body& body, const SealedKind& its_kind)
        : kind(its_kind), version(body.version), value(body.bytes, kind), map(value.get().via.map) {
        for (uint32_t i = 0; i < map.size; ++i)
            for (uint32_t k = 0; k < i; ++k)
                if (msgpack_object_equal(map.ptr[i].key, map.ptr[k].key))
                    throw_damaged(kind, "has two values of one name");
    }
    [[nodiscard]] const msgpack_object& at(std::string_view name) const {
        if (const msgpack_object* const found = find(name)) return *found;
        throw_damaged(kind, "lacks \"" + std::string(name) + "\"");
    }
    [[nodiscard]] const msgpack_object* find(std::string_view name) const {
        for (uint32_t i = 0; i < map.size; ++i) {
            const msgpack_object& key = map.ptr[i].key;
            if (key.type == MSGPACK_OBJECT_STR &&
                std::string_view(key.via.str.ptr, key.via.str.size) == name)
                return &map.ptr[i].val;
        }
        return nullptr;
    }

    const SealedKind kind;
    const uint64_t version;
    const Value value;
    const msgpack_object_map& map;
};

SealedMap::SealedMap(std::span<const uint8_t> file, const SealedKind& kind)
    : entries_(std::make_unique<Entries>(checked_body(file, kind), kind)) {}

SealedMap::~SealedMap() = default;

uint64_t SealedMap::version() const {
    return entries_->version;
}

uint64_t SealedMap::number(std::string_view name) const {
    return number_of(entries_->at(name), entries_->kind);
}

uint64_t SealedMap::number_or_0(std::string_view name) const {
    const msgpack_object* const value = entries_->find(name);
    return value == nullptr ? 0 : number_of(*value, entries_->kind);
}

std::span<const uint8_t> SealedMap::bytes(std::string_view name) const {
    return bytes_of(entries_->at(name), entries_->kind);
}

// ---- Outlines -----------------------------------------------------------------------------------

namespace {

// Goes over plain values in a file and reads their heads.
class HeadReader {
  public:
    HeadReader(uint64_t size, const SealedOutline::Read& read, const SealedKind& kind)
        : read_(read), kind_(kind), end_(size) {}

    // What the file has from here on, at least enough for a head and a short value.
    std::span<const uint8_t> look() {
        constexpr size_t enough = 64;
        if (at_ + enough > start_ + filled_) {
            start_ = at_;
            filled_ = read_(start_, bytes_);
        }
        return std::span<const uint8_t>(bytes_).first(filled_).subspan(at_ - start_);
    }
    // Goes past a head, and gives it with its value if it is a number.
    PlainHead head() {
        const auto from = look();
        auto head = plain_head_of(from);
        if (!head || head->body > end_ - at_ - head->size) throw_damaged(kind_, "is cut short");
        pass(head->size);
        if (head->kind == PlainHead::Kind::number && head->body > 0) {
            for (const uint8_t byte : from.subspan(head->size, head->body))
                head->value = head->value << 8 | byte;
            pass(head->body);
        }
        return *head;
    }
    void pass(uint64_t bytes) { at_ += bytes; }
    [[nodiscard]] uint64_t left() const { return end_ - at_; }

  private:
    const SealedOutline::Read& read_;
    const SealedKind& kind_;
    const uint64_t end_;
    uint64_t at_ = 0;
    std::array<uint8_t, 512> bytes_{};  // of the file from start_ on
    uint64_t start_ = 0;
    size_t filled_ = 0;
};

}  // namespace

SealedOutline::SealedOutline(uint64_t size, const Read& read, const SealedKind& kind)
    : kind_(kind) {
    HeadReader reader(size, read, kind);
    if (!starts_with_magic(reader.look(), kind.magic))
        throw_damaged(kind, "does not start like one");
    reader.pass(2 + kind.magic.size());
    version_ = reader.head().value;
    if (version_ < kind.version || version_ > kind.newest)
        throw Error(SHF_E_UNSUPPORTED,
                    std::string(kind.what) + " has version " + std::to_string(version_), kind.help);
    reader.head();  // the checksum, for which all of the body would have to be read
    const PlainHead body = reader.head();
    const auto map = map_head_of(reader.look());
    if (body.kind != PlainHead::Kind::bytes || body.body != reader.left() || !map)
        throw_damaged(kind, "does not end with a map");
    reader.pass(map->size);
    for (size_t count = map->entries; count > 0; --count) {
        const PlainHead name = reader.head();
        if (name.kind != PlainHead::Kind::text || name.body > 31)
            throw_damaged(kind, "has a value without a name");
        std::string its_name(text(reader.look().first(static_cast<size_t>(name.body))));
        reader.pass(name.body);
        const PlainHead value = reader.head();
        const bool is_number = value.kind == PlainHead::Kind::number;
        if (!is_number) reader.pass(value.body);
        entries_.push_back({std::move(its_name), is_number, is_number ? value.value : value.body});
    }
    if (reader.left() != 0) throw_damaged(kind, "continues after its map");
}

uint64_t SealedOutline::at(std::string_view name, bool is_number) const {
    for (const Entry& entry : entries_)
        if (entry.name == name && entry.is_number == is_number) return entry.value;
    throw_damaged(kind_, "lacks \"" + std::string(name) + "\"");
}

// ---- Writing ------------------------------------------------------------------------------------

struct SealedWriter::Packer {
    Packer() {
        msgpack_sbuffer_init(&buffer);
        msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    }
    ~Packer() { msgpack_sbuffer_destroy(&buffer); }
    Packer(const Packer&) = delete;
    Packer& operator=(const Packer&) = delete;

    static void check(int result) {
        if (result != 0) throw std::bad_alloc();
    }
    void add(uint64_t value) { check(msgpack_pack_uint64(&packer, value)); }
    void add(std::string_view value) {
        check(msgpack_pack_str(&packer, value.size()));
        check(msgpack_pack_str_body(&packer, value.data(), value.size()));
    }
    void add(std::span<const uint8_t> value) {
        if (value.size() > std::numeric_limits<uint32_t>::max())
            throw Error(SHF_E_LIMIT, "the index of this shard would be larger than 4 GiB",
                        "split the shard");
        check(msgpack_pack_bin(&packer, value.size()));
        check(msgpack_pack_bin_body(&packer, value.data(), value.size()));
    }
    [[nodiscard]] std::span<const uint8_t> bytes() const {
        return {reinterpret_cast<const uint8_t*>(buffer.data), buffer.size};
    }

    msgpack_sbuffer buffer;
    msgpack_packer packer;
};

SealedWriter::SealedWriter()
    : entries_(std::make_unique<Packer>()), whole_(std::make_unique<Packer>()) {}

SealedWriter::~SealedWriter() = default;

void SealedWriter::put(std::string_view name, uint64_t value) {
    entries_->add(name);
    entries_->add(value);
    ++count_;
}

void SealedWriter::put(std::string_view name, std::span<const uint8_t> value) {
    entries_->add(name);
    entries_->add(value);
    ++count_;
}

std::span<const uint8_t> SealedWriter::finish(const SealedKind& kind) {
    Packer body;
    Packer::check(msgpack_pack_map(&body.packer, count_));
    Packer::check(
        msgpack_sbuffer_write(&body.buffer, entries_->buffer.data, entries_->buffer.size));
    Packer::check(msgpack_pack_array(&whole_->packer, 4));
    whole_->add(kind.magic);
    whole_->add(kind.version);
    whole_->add(uint64_t{XXH3_64bits(body.bytes().data(), body.bytes().size())});
    whole_->add(body.bytes());
    return whole_->bytes();
}

}  // namespace shf
