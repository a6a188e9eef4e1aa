#include "core/options.h"
#include "dataset/dataset_shard.h"
#include "dataset/wanted_fields.h"
#include "index/shard_index.h"
#include "sample/name.h"
#include "tar/header_block.h"
#include "tar/tar_listing.h"
#include "url/redact.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>
#include <utility>
#include <vector>

namespace shf {

namespace {

constexpr uint64_t header_size = 512;
// From this size on a read goes to the same place in a page as the bytes have in the file: the
// kernel then copies whole pages.
constexpr size_t paged_from = 16 * 1024, page = 4096, alignment = 64;
// What may lie between the fields of a sample, besides six times their size. The recycler adds up
// to a quarter.
constexpr uint64_t largest_overhead = 48 * 1024;

class TarShard final : public DatasetShard {
  public:
    TarShard(const std::string& url, uint64_t shard, std::unique_ptr<Source> source,
             std::shared_ptr<const ShardIndex> index, const DatasetContext& context)
        : context_(context),
          origin_(std::make_shared<Origin>(Origin{
              .url = redact(url), .shard = shard, .epoch = 0, .lane = 0, .by_number = true})),
          index_(std::move(index)),
          wanted_(context.fields, index_->schemas()),
          gap_(index_->points() ? ReadCost().gap : source->read_cost().gap),
          unpacked_{index_->points(), shard, context.options, context.stretches, context.memory},
          file_(url, std::move(source), context.sources, context.budget,
                index_->points() ? &unpacked_ : nullptr) {}

    [[nodiscard]] size_t samples() const override { return index_->samples(); }
    [[nodiscard]] std::string_view key(size_t sample) const override { return index_->key(sample); }
    [[nodiscard]] uint64_t names_size() const override { return index_->keys_size(); }
    [[nodiscard]] const Schema& schema(size_t sample) const override {
        return *index_->schema(sample);
    }
    [[nodiscard]] uint64_t offset(size_t sample) const override { return index_->header(sample); }
    [[nodiscard]] uint64_t stretch(size_t sample) const override {
        return index_->points() ? index_->points()->stretch_at(index_->header(sample)) : sample;
    }
    [[nodiscard]] uint64_t bytes(size_t sample) const override {
        uint64_t sum = 0;  // of members that lie one after another in the shard: no overflow
        const size_t first = index_->first_member(sample);
        for (const uint32_t number : choice(sample).numbers) sum += index_->size(first + number);
        return sum;
    }

  private:
    // Some members in one read, with the header before each.
    struct Piece {
        uint64_t offset, size;
        size_t at;  // in the storage
    };
    using Pieces = std::pmr::vector<Piece>;
    using Fields = std::pmr::vector<PlacedField>;

    [[nodiscard]] const ShardFile& file() const override { return file_; }
    void prefetch(size_t sample) const override { index_->prefetch(sample); }
    [[nodiscard]] uint64_t room(size_t sample) const override;
    [[nodiscard]] bool has_checksums() const override { return false; }
    [[nodiscard]] BlockRef read_block(std::span<const size_t> samples,
                                      Source& source) const override;

    [[nodiscard]] const WantedFields::Choice& choice(size_t sample) const {
        return wanted_[index_->schema_number(sample)];
    }
    void check_limits(size_t sample, uint64_t size) const;
    Pieces pieces_of(std::span<const size_t> samples, uint64_t& total,
                     std::pmr::memory_resource& memory) const;
    StorageRef read_pieces(std::span<const size_t> samples, std::span<const Piece> pieces,
                           size_t total, Source& source, Fields& fields) const;
    StorageRef read_fields(size_t sample, Source& source, Fields& fields) const;
    StorageRef show_fields(size_t sample, const std::shared_ptr<const Mapping>& mapping,
                           Source& source, Fields& fields) const;
    void read_part(size_t sample, uint64_t offset, std::span<uint8_t> out, Source& source) const;
    [[nodiscard]] bool plain(size_t member, size_t sample, const uint8_t* header) const;
    void walk(size_t sample, Source& source) const;
    [[nodiscard]] Error lie(size_t sample) const;

    const DatasetContext& context_;
    const std::shared_ptr<const Origin> origin_;
    const std::shared_ptr<const ShardIndex> index_;
    const WantedFields wanted_;
    // Bytes between fields that are read along rather than left out by a second read. Between
    // samples that share memory, where they must not take much of it, a quarter.
    const uint64_t gap_;
    const UnpackedShard unpacked_;
    const ShardFile file_;
};

// Its wanted fields, their headers, and what is read along between them; the tables.
uint64_t TarShard::room(size_t sample) const {
    uint64_t sum = index_->key(sample).size() + gap_ / 4;
    uint64_t end = 0;
    const size_t first = index_->first_member(sample);
    for (const uint32_t number : choice(sample).numbers) {
        const size_t i = first + number;
        const uint64_t start = index_->offset(i) - header_size;
        // A piece of its own starts at a multiple of `alignment`.
        if (end > 0) sum += start - end <= gap_ ? start - end : alignment;
        end = index_->offset(i) + index_->size(i);
        sum += end - start;
    }
    return sum;
}

BlockRef TarShard::read_block(std::span<const size_t> samples, Source& source) const {
    size_t members = 0;
    uint64_t payload = 0;
    for (const size_t sample : samples) {
        const uint64_t size = bytes(sample);
        check_limits(sample, size);
        members += choice(sample).numbers.size();
        payload += size;
        index_->prefetch_key(sample);  // for the time after the read
    }
    std::array<std::byte, 4096> stack;  // enough for most samples, and faster than the heap
    std::pmr::monotonic_buffer_resource memory(stack.data(), stack.size());
    uint64_t total = 0;
    const Pieces pieces = pieces_of(samples, total, memory);
    Fields fields(&memory);
    fields.reserve(members);
    // A kept sample holds little more than its bytes, so not what lies between many small fields.
    const bool close = total <= largest_overhead + 6 * payload;
    const auto mapping =
        samples.size() == 1 && close && payload >= shown_from ? source.mapping() : nullptr;
    StorageRef storage =
        mapping ? show_fields(samples[0], mapping, source, fields)
        : samples.size() > 1 || close
            ? read_pieces(samples, pieces, static_cast<size_t>(total), source, fields)
            : read_fields(samples[0], source, fields);
    std::pmr::vector<PlacedSample> placed(&memory);
    placed.reserve(samples.size());
    for (const size_t sample : samples)
        placed.push_back({index_->key(sample), index_->header(sample), choice(sample).schema});
    return make_block(placed, fields, origin_, std::move(storage));
}

// What to read for the samples, and how much memory it takes.
TarShard::Pieces TarShard::pieces_of(std::span<const size_t> samples, uint64_t& total,
                                     std::pmr::memory_resource& memory) const {
    Pieces pieces(&memory);
    for (const size_t sample : samples) {
        uint64_t gap = gap_ / 4;
        for (const uint32_t number : choice(sample).numbers) {
            const size_t i = index_->first_member(sample) + number;
            const uint64_t start = index_->offset(i) - header_size;
            const uint64_t end = index_->offset(i) + index_->size(i);
            if (!pieces.empty() && start - (pieces.back().offset + pieces.back().size) <= gap) {
                pieces.back().size = end - pieces.back().offset;
            } else {
                pieces.push_back({start, end - start, 0});
            }
            gap = gap_;
        }
    }
    for (Piece& piece : pieces) {
        const uint64_t unit = samples.size() == 1 && piece.size >= paged_from ? page : alignment;
        total += (piece.offset % unit + unit - total % unit) % unit;
        piece.at = static_cast<size_t>(total);
        total += piece.size;
    }
    return pieces;
}

// Few reads, with the headers in the same memory as the fields.
StorageRef TarShard::read_pieces(std::span<const size_t> samples, std::span<const Piece> pieces,
                                 size_t total, Source& source, Fields& fields) const {
    StorageRef storage = context_.memory.acquire(total);
    for (const Piece& piece : pieces)
        read_part(samples[0], piece.offset,
                  {storage->data + piece.at, static_cast<size_t>(piece.size)}, source);
    auto piece = pieces.begin();
    for (const size_t sample : samples) {
        bool all_plain = true;
        for (const uint32_t number : choice(sample).numbers) {
            const size_t i = index_->first_member(sample) + number;
            if (index_->offset(i) > piece->offset + piece->size) ++piece;
            const auto at = static_cast<size_t>(piece->at + (index_->offset(i) - piece->offset));
            all_plain = all_plain && plain(i, sample, storage->data + at - header_size);
            fields.push_back({at, static_cast<size_t>(index_->size(i))});
        }
        if (!all_plain) walk(sample, source);
    }
    return storage;
}

// Field after field, and nothing else in memory.
StorageRef TarShard::read_fields(size_t sample, Source& source, Fields& fields) const {
    StorageRef storage = context_.memory.acquire(static_cast<size_t>(bytes(sample)));
    std::array<uint8_t, header_size> header;
    size_t at = 0;
    bool all_plain = true;
    for (const uint32_t number : choice(sample).numbers) {
        const size_t i = index_->first_member(sample) + number;
        const auto size = static_cast<size_t>(index_->size(i));
        read_part(sample, index_->offset(i) - header_size, header, source);
        read_part(sample, index_->offset(i), {storage->data + at, size}, source);
        all_plain = all_plain && plain(i, sample, header.data());
        fields.push_back({at, size});
        at += size;
    }
    if (!all_plain) walk(sample, source);
    return storage;
}

// From the first header to the end of the last field, where they are.
StorageRef TarShard::show_fields(size_t sample, const std::shared_ptr<const Mapping>& mapping,
                                 Source& source, Fields& fields) const {
    const size_t first = index_->first_member(sample);
    const auto& numbers = choice(sample).numbers;
    const uint64_t from = index_->offset(first + numbers.front()) - header_size;
    const uint64_t to =
        index_->offset(first + numbers.back()) + index_->size(first + numbers.back());
    if (to > mapping->bytes().size()) throw lie(sample);
    mapping->expect({.offset = from, .size = to - from}, false);
    const auto bytes =
        mapping->bytes().subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
    bool all_plain = true;
    for (const uint32_t number : numbers) {
        const size_t i = first + number;
        const auto at = static_cast<size_t>(index_->offset(i) - from);
        all_plain = all_plain && plain(i, sample, bytes.data() + at - header_size);
        fields.push_back({at, static_cast<size_t>(index_->size(i))});
    }
    if (!all_plain) walk(sample, source);
    return borrowed(mapping->memory(), bytes);
}

// Fills `out`. That the file is still the one that was opened is asked when all is read.
void TarShard::read_part(size_t sample, uint64_t offset, std::span<uint8_t> out,
                         Source& source) const {
    if (source.read_scattered(offset, {&out, 1}) < out.size()) throw lie(sample);
}

void TarShard::check_limits(size_t sample, uint64_t size) const {
    const Options& options = context_.options;
    const auto limit = [&](const char* option, uint64_t bound, uint64_t size, const char* what) {
        if (size > bound)
            throw Error(SHF_E_LIMIT,
                        std::string(what) + " of " + plural(size, "byte") + " is larger than " +
                            option + "=" + std::to_string(bound),
                        std::string("raise ") + option, index_->header(sample));
    };
    limit("max_sample", options.max_sample, size, "a sample");
    limit("memory", options.memory, size, "a sample");
    if (size > options.max_member)
        for (const uint32_t number : choice(sample).numbers)
            limit("max_member", options.max_member,
                  index_->size(index_->first_member(sample) + number), "a member");
}

// An index says where bytes lie, never what they are: the header before them does.
bool TarShard::plain(size_t member, size_t sample, const uint8_t* block) const {
    const auto header = parse_plain_header(block);
    if (!header || header->size != index_->size(member)) return false;
    const MemberName name = split_name(header->name());
    return name.has_key && name.key == index_->key(sample) &&
           same_lowered(name.field,
                        index_->schema(sample)->name(member - index_->first_member(sample)));
}

// The same for members whose names or sizes stand in headers of their own: the walker reads them.
void TarShard::walk(size_t sample, Source& source) const {
    Options options = context_.options;
    options.end_marker = EndMarker::optional;
    Stats stats;
    const uint64_t base = index_->header(sample);
    TarListing listing(source, options, context_.cancel, stats, base);
    Member member;
    const auto& numbers = choice(sample).numbers;
    // The walk begins where no file does, so that what is wrong is said of the sample.
    const auto next_member = [&] {
        try {
            return listing.next(member);
        } catch (const Error& error) {
            if (error.code() != SHF_E_FORMAT) throw;
            Fault fault = lie(sample).fault();
            const uint64_t offset = error.fault().offset;
            if (offset != no_offset) fault.offset = base + offset;
            fault.cause = "no header of the sample is at its place: " +
                          (offset == 0 ? "its bytes are damaged, or it is not where the index says"
                                       : error.fault().cause);
            fault.help = "copy the shard again; if it is right, delete its index";
            throw Error(std::move(fault));
        }
    };
    for (auto next = numbers.begin(); next != numbers.end();) {
        const size_t i = index_->first_member(sample) + *next;
        if (!next_member() || base + member.data_offset > index_->offset(i)) throw lie(sample);
        if (base + member.data_offset == index_->offset(i)) {
            const MemberName name = split_name(member.name);
            if (member.kind != MemberKind::file || member.size != index_->size(i) ||
                !name.has_key || name.key != index_->key(sample) ||
                !same_lowered(name.field, index_->schema(sample)->name(*next)))
                throw lie(sample);
            ++next;
        }
        listing.skip(member);
    }
}

Error TarShard::lie(size_t sample) const {
    return Error(Fault{.code = SHF_E_FORMAT,
                       .offset = index_->header(sample),
                       .shard = {},
                       .member = escape(index_->key(sample)),
                       .cause = "the sample is not where the index says",
                       .help = "delete the index, or set index=rebuild"});
}

}  // namespace

std::unique_ptr<DatasetShard> tar_dataset_shard(const std::string& url, uint64_t shard,
                                                std::unique_ptr<Source> source,
                                                std::shared_ptr<const ShardIndex> index,
                                                const DatasetContext& context) {
    return std::make_unique<TarShard>(url, shard, std::move(source), std::move(index), context);
}

}  // namespace shf
