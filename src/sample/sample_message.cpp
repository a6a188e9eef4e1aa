#include "sample/sample_message.h"

#include "core/error.h"
#include "core/plain_values.h"
#include "sample/name.h"

#include <msgpack.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace shf {

namespace {

constexpr std::string_view key_name = "__key__", end_name = "__EOF__";
constexpr size_t longest_map_head = 5;
// Each takes three hundred bytes and more, and only two of its message.
constexpr size_t most_fields = 65'536;
constexpr const char* what_sends =
    "samples are sent by a writer of zpush:// or zpub://, by tarp or by tarproc";

[[noreturn]] void refuse(const std::string& cause) {
    throw Error(SHF_E_FORMAT, cause, what_sends);
}

// Goes over the values of a map.
class Values {
  public:
    explicit Values(std::span<const uint8_t> bytes) : left_(bytes) {}

    struct Value {
        PlainHead::Kind kind;
        std::span<const uint8_t> bytes;
        [[nodiscard]] std::string_view text() const {
            return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        }
    };
    // `what` is for messages.
    Value next(const std::string& what) {
        const auto head = plain_head_of(left_);
        if (!head) refuse(what + " is no text and no bytes, or the message ends there");
        if (head->body > left_.size() - head->size) refuse("the message ends within " + what);
        const auto body = static_cast<size_t>(head->body);
        const Value value{head->kind, left_.subspan(head->size, body)};
        left_ = left_.subspan(head->size + body);
        return value;
    }
    [[nodiscard]] size_t left() const { return left_.size(); }

  private:
    std::span<const uint8_t> left_;
};

// A reader of the members "KEY.NAME" must find the same key and name.
void check_name(std::string_view key, std::string_view name, std::string& member) {
    member.assign(key);
    member += '.';
    member += name;
    const MemberName found = split_name(member);
    if (member.find('\0') != member.npos || !found.has_key || found.key != key)
        throw Error(SHF_E_FORMAT,
                    "a message has the key " + escape(key) + " and a field " + escape(name) +
                        ", which are no key and no field of a shard",
                    "keys have no dot in their last component, and fields no slash");
}

int append(void* to, const char* data, size_t size) {
    auto& bytes = *static_cast<std::vector<uint8_t>*>(to);
    bytes.insert(bytes.end(), data, data + size);
    return 0;
}

void pack_text(std::vector<uint8_t>& bytes, std::string_view text) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, &bytes, append);
    msgpack_pack_str(&packer, text.size());
    msgpack_pack_str_body(&packer, text.data(), text.size());
}

void pack_bytes_head(std::vector<uint8_t>& bytes, size_t size) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, &bytes, append);
    msgpack_pack_bin(&packer, size);
}

}  // namespace

SampleMessage read_sample_message(std::span<const uint8_t> message) {
    const auto head = plain_map_head_of(message);
    if (!head) refuse("a message of " + plural(message.size(), "byte") + " is no map of fields");
    if (head->entries > most_fields)
        refuse("a message of " + plural(head->entries, "field") + ", above " +
               std::to_string(most_fields));
    Values values(message.subspan(head->size));
    SampleMessage sample;
    bool has_key = false;
    for (size_t i = 0; i < head->entries; ++i) {
        const auto name = values.next("a name");
        if (name.kind == PlainHead::Kind::number) refuse("a field has a number for its name");
        if (name.text() == end_name) return {.key = {}, .fields = {}, .is_end = true};
        const auto value = values.next("field " + escape(name.text()));
        if (value.kind == PlainHead::Kind::number)
            refuse("field " + escape(name.text()) + " is a number, and no bytes");
        if (name.text() == key_name) {
            if (has_key) refuse("a message has two keys");
            has_key = true;
            sample.key = value.text();
            continue;
        }
        sample.fields.push_back({name.text(), value.bytes});
    }
    if (values.left() != 0)
        refuse("a message continues after its map, for " + plural(values.left(), "byte"));
    if (!has_key) refuse("a message has no __key__");
    if (sample.key.empty())
        throw Error(SHF_E_FORMAT, "a message has an empty key",
                    "give every sample a key, in tarp with -R '#'");
    std::string member;
    for (const auto& field : sample.fields) check_name(sample.key, field.name, member);
    return sample;
}

void SampleMessageWriter::clear() {
    bytes_.assign(longest_map_head, 0);
    entries_ = 0;
}

void SampleMessageWriter::begin(std::string_view key) {
    clear();
    pack_text(bytes_, key_name);
    pack_text(bytes_, key);
    entries_ = 1;
}

std::span<uint8_t> SampleMessageWriter::add(std::string_view name, uint64_t size) {
    if (size > std::numeric_limits<uint32_t>::max())
        throw Error(SHF_E_LIMIT,
                    "field " + escape(name) + " has " + std::to_string(size) +
                        " bytes, and one of a message at most 4294967295",
                    "write files instead of messages");
    pack_text(bytes_, name);
    pack_bytes_head(bytes_, static_cast<size_t>(size));
    ++entries_;
    const size_t start = bytes_.size();
    bytes_.resize(start + static_cast<size_t>(size));
    return std::span(bytes_).subspan(start);
}

std::span<const uint8_t> SampleMessageWriter::finish() {
    std::vector<uint8_t> head;
    msgpack_packer packer;
    msgpack_packer_init(&packer, &head, append);
    msgpack_pack_map(&packer, entries_);
    const size_t start = longest_map_head - head.size();
    std::copy(head.begin(), head.end(), bytes_.begin() + static_cast<ptrdiff_t>(start));
    return std::span(bytes_).subspan(start);
}

std::span<const uint8_t> SampleMessageWriter::end_mark() {
    clear();
    constexpr std::string_view value = "true";
    const std::span<uint8_t> room = add(end_name, value.size());
    std::copy(value.begin(), value.end(), room.begin());
    return finish();
}

}  // namespace shf
