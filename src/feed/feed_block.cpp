#include "feed/feed_block.h"

#define XXH_INLINE_ALL
#include "core/little_endian.h"
#include "sample/block_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace shf {

namespace {

template <typename Number>
void append_number(std::vector<uint8_t>& out, Number number) {
    for (size_t i = 0; i < sizeof number; ++i)
        out.push_back(static_cast<uint8_t>(static_cast<uint64_t>(number) >> (8 * i)));
}

// Lists of names that differ from message to message are no lists of names.
constexpr size_t most_schemas = 4096;

constexpr size_t origin_numbers = 8 + 8 + 4 + 4 + 1;

std::shared_ptr<const Origin> read_origin(std::string_view text, uint32_t part) {
    if (text.size() < origin_numbers) throw_damaged_frame("has a shard that is cut");
    const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
    Origin origin{.url = std::string(text.substr(origin_numbers)),
                  .shard = le64(bytes),
                  .epoch = le64(bytes + 8),
                  .lane = le32(bytes + 16)};
    origin.version = le32(bytes + 20);
    origin.padding = bytes[24] != 0;
    origin.part = part;
    return std::make_shared<const Origin>(std::move(origin));
}

}  // namespace

uint64_t sum_of_payload(std::span<const uint8_t> payload) {
    return XXH3_64bits(payload.data(), payload.size());
}

// ---- Into a message -----------------------------------------------------------------------------

void FeedBlockWriter::begin_sample(const Block& block, uint32_t sample) {
    const std::shared_ptr<const Origin>& origin = block.origins[block.origin[sample]];
    if (origin != origin_ || origins_ == 0) {
        std::vector<uint8_t> text;
        append_number(text, origin->shard);
        append_number(text, origin->epoch);
        append_number(text, origin->lane);
        append_number(text, origin->version);
        append_number(text, static_cast<uint8_t>(origin->padding));
        text.insert(text.end(), origin->url.begin(), origin->url.end());
        append_text(frame_.origins, {reinterpret_cast<const char*>(text.data()), text.size()});
        origin_ = origin;
        ++origins_;
    }
    frame_.origin.push_back(origins_ - 1);
    const std::string_view key = block.key_of(sample);
    frame_.keys.insert(frame_.keys.end(), key.begin(), key.end());
    frame_.key_size.push_back(static_cast<uint32_t>(key.size()));
    frame_.offset.push_back(block.offset[sample]);
    names_.clear();
    fields_before_ = frame_.field_size.size();
    used_before_ = used_;
}

void FeedBlockWriter::reserve(size_t more) {
    const size_t capacity = payload_ ? payload_->capacity : 0;
    if (payload_ && more <= capacity - used_) return;
    StorageRef larger =
        payloads_->acquire(std::max({used_ + more, payload_ ? capacity * 2 : usual_, size_t{1}}));
    if (used_ > 0) std::memcpy(larger->data, payload_->data, used_);
    payload_ = std::move(larger);
}

std::span<uint8_t> FeedBlockWriter::add_field(std::string_view name, size_t size) {
    reserve(size);
    names_ += name;
    names_ += '/';
    frame_.field_size.push_back(size);
    uint8_t* const field = payload_->data + used_;
    used_ += size;
    return {field, size};
}

void FeedBlockWriter::add_field(std::string_view name, std::span<const uint8_t> bytes) {
    const std::span<uint8_t> field = add_field(name, bytes.size());
    std::copy(bytes.begin(), bytes.end(), field.begin());
}

void FeedBlockWriter::forget_fields() noexcept {
    frame_.field_size.resize(fields_before_);
    used_ = used_before_;
    names_.clear();
}

void FeedBlockWriter::end_sample() {
    auto place = std::find(schemas_.begin(), schemas_.end(), names_);
    if (place == schemas_.end()) {
        append_text(frame_.schemas, names_);
        place = schemas_.insert(schemas_.end(), names_);
    }
    frame_.schema.push_back(static_cast<uint32_t>(place - schemas_.begin()));
    ++frame_.samples;
}

FeedMessage FeedBlockWriter::finish(const LaneFrame& about, PayloadPacker& packer) {
    static_cast<LaneFrame&>(frame_) = about;
    reserve(0);
    const std::span<const uint8_t> payload(payload_->data, used_);
    frame_.payload_sum = sum_of_payload(payload);
    const std::span<const uint8_t> packed = packer.pack(payload);
    if (!packed.empty()) {
        frame_.packing = packer.compression();
        frame_.unpacked_size = used_;
    }
    FeedMessage message;
    message.emplace_back(encode(frame_));
    if (packed.empty())
        message.emplace_back(std::move(payload_), used_);
    else
        message.emplace_back(packed);
    *this = FeedBlockWriter(frame_.rows, used_ + used_ / 8, *payloads_);
    return message;
}

// ---- Out of a message ---------------------------------------------------------------------------

std::shared_ptr<const Schema> FeedBlockReader::schema_of(const std::string& names, bool rows) {
    auto& known = schemas_[names];
    if (known) return known;
    Schema schema{.names = names, .ends = {}, .of_rows = rows};
    for (size_t i = 0; i < names.size(); ++i)
        if (names[i] == '/') schema.ends.push_back(static_cast<uint32_t>(i));
    if (!names.empty() && names.back() != '/')
        throw_damaged_frame("has a list of names that is cut");
    return known = std::make_shared<const Schema>(std::move(schema));
}

// The payload of `size` bytes, as it was before it was compressed.
StorageRef FeedBlockReader::storage_of(const BlockFrame& frame, FeedPart payload, size_t size) {
    StorageRef storage;
    if (frame.packing != FeedCompression::none) {
        if (size > largest_packed_payload)
            throw_damaged_frame("has a payload that is larger than any that is compressed");
        storage = pool_.acquire(std::max<size_t>(size, 1), cancel_);
        unpacker_.unpack(frame.packing, payload.bytes(), {storage->data, size});
    } else {
        const auto part = std::make_shared<const FeedPart>(std::move(payload));
        storage = pool_.borrow(part, part->bytes());
    }
    if (sum_of_payload({storage->data, size}) != frame.payload_sum)
        throw Error(SHF_E_INTEGRITY, "a message of the feed was damaged on its way",
                    "use encryption (feed_server_key) or another network");
    return storage;
}

std::vector<BlockRef> FeedBlockReader::read(const BlockFrame& frame, FeedPart payload,
                                            uint32_t part) {
    std::vector<std::shared_ptr<const Origin>> origins;
    for (const std::string& text : texts_of(frame.origins))
        origins.push_back(read_origin(text, part));
    if (schemas_.size() > most_schemas) schemas_.clear();
    std::vector<std::shared_ptr<const Schema>> schemas;
    for (const std::string& names : texts_of(frame.schemas))
        schemas.push_back(schema_of(names, frame.rows));

    const bool packed = frame.packing != FeedCompression::none;
    const auto size = packed ? static_cast<size_t>(frame.unpacked_size) : payload.bytes().size();
    const StorageRef storage = storage_of(frame, std::move(payload), size);

    std::vector<BlockRef> blocks;
    BlockBuilder builder(pool_, cancel_, false,
                         [&](BlockRef block) { blocks.push_back(std::move(block)); });
    std::vector<LooseField> fields;
    size_t field = 0, at = 0, key = 0;
    for (uint32_t i = 0; i < frame.samples; ++i) {
        if (frame.schema[i] >= schemas.size() || frame.origin[i] >= origins.size() ||
            frame.key_size[i] > frame.keys.size() - key)
            throw_damaged_frame("has a sample of nowhere");
        const std::shared_ptr<const Schema>& schema = schemas[frame.schema[i]];
        fields.clear();
        for (size_t f = 0; f < schema->ends.size(); ++f, ++field) {
            if (field >= frame.field_size.size() || frame.field_size[field] > size - at)
                throw_damaged_frame("has fields that it has no bytes of");
            fields.push_back(
                {.data = storage->data + at, .size = frame.field_size[field], .storage = &storage});
            at += static_cast<size_t>(frame.field_size[field]);
        }
        const auto* keys = reinterpret_cast<const char*>(frame.keys.data());
        builder.add({.key = std::string_view(keys + key, frame.key_size[i]),
                     .offset = frame.offset[i],
                     .origin = origins[frame.origin[i]],
                     .schema = schema,
                     .fields = fields});
        key += frame.key_size[i];
    }
    builder.flush();
    return blocks;
}

}  // namespace shf
