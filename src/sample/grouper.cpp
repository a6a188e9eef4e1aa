#include "sample/grouper.h"

#include "core/options.h"
#include "core/stats.h"
#include "sample/name.h"

#include <utility>

namespace shf {

namespace {

// From this many fields on a sample's names are looked up by hash.
constexpr size_t many = 32;
// What a field takes besides its payload and its name, roughly.
constexpr uint64_t field_cost = 256;
// Smaller ones are copied faster than they are read for themselves: the slab is in the caches.
constexpr uint64_t worth_deferring = 96 * 1024;
// Kinds of samples in one shard that are recognized without making their list of names again.
constexpr size_t most_schemas = 8;

}  // namespace

bool Grouper::run() {
    Member member;
    while (counted_ < stop_ && feed_.next(member)) {
        switch (member.kind) {
            case MemberKind::file:
            case MemberKind::sparse:
            case MemberKind::multi_volume: take_member(member); continue;
            case MemberKind::directory: stats_.add(SHF_STAT_DIRECTORIES); break;
            case MemberKind::hard_link:
            case MemberKind::symbolic_link: stats_.add(SHF_STAT_LINKS); break;
            case MemberKind::special: stats_.add(SHF_STAT_SPECIALS); break;
            case MemberKind::unknown: stats_.add(SHF_STAT_UNKNOWN_TYPES); break;
        }
        feed_.skip(member);
    }
    if (counted_ >= stop_) return false;
    complete_sample();
    return true;
}

void Grouper::take_member(const Member& member) {
    const MemberName name = split_name(member.name);
    if (!name.has_key) stats_.add(SHF_STAT_IGNORED_MEMBERS);
    if (member.kind == MemberKind::sparse) stats_.add(SHF_STAT_SPARSE);
    const bool joined = name.has_key && join_sample(member, name.key);
    if (counted_ >= stop_) return;  // the sample before it was the last one
    if (!joined) return feed_.skip(member);
    if (filter_ && !(wanted_ && filter_->wants_field(name.field))) return feed_.leave_out(member);
    any_field_ = true;
    if (passed_over_) return feed_.skip(member);

    const auto limit = [&](const char* option, uint64_t bound, uint64_t seen, const char* what) {
        spoil(member.name, member.header_offset, SHF_E_LIMIT,
              std::string(what) + " of " + plural(seen, "byte") + " is larger than " + option +
                  "=" + std::to_string(bound),
              std::string("raise ") + option);
    };
    uint64_t total = 0;
    const bool overflow = __builtin_add_overflow(sample_bytes_, member.size, &total);
    // Empty fields take memory too.
    const uint64_t rows = headers_.size() * field_cost + names_.names.size();
    if (member.kind == MemberKind::sparse)
        spoil(member.name, member.header_offset, SHF_E_UNSUPPORTED, "a sparse member",
              "write the shard without --sparse");
    else if (member.kind == MemberKind::multi_volume)
        spoil(member.name, member.header_offset, SHF_E_UNSUPPORTED,
              "a piece of a multi-volume member", "write the shard as one volume");
    else if (member.size > options_.max_member)
        limit("max_member", options_.max_member, member.size, "a member");
    else if (member.size > options_.memory)
        limit("memory", options_.memory, member.size, "a member");
    else if (overflow || total > options_.max_sample)
        limit("max_sample", options_.max_sample, total, "a sample");
    else if (total + rows > options_.memory)
        limit("memory", options_.memory, total + rows, "a sample");
    else
        return add_field(member, name.field);
    feed_.skip(member);
}

// Makes the sample with `key` the current one. False when it is spoiled: its members are passed
// over.
bool Grouper::join_sample(const Member& member, std::string_view key) {
    const int order = key.compare(key_);  // with the key of the sample before, no key at first
    if (in_sample_ && order == 0) return !spoiled_;
    complete_sample();
    in_sample_ = true;
    passed_over_ = resume_ && !resume_->wants(counted_);
    key_.assign(key);
    first_header_ = member.header_offset;
    if (filter_) wanted_ = filter_->wants_sample(samples_, key_);
    if (options_.duplicate_keys == DuplicateKeys::error)
        key_hash_ = keys_seen_.prepare(key, order > 0);
    return true;
}

size_t Grouper::find_field(std::string_view name) const {
    for (size_t i = 0; i < names_.ends.size(); ++i)
        if (names_.name(i) == name) return i;
    return names_.ends.size();
}

// As a rule a sample has the fields of the one before it, in the same order.
void Grouper::add_field(const Member& member, std::string_view suffix) {
    if (matched_ == headers_.size() && schema_ && matched_ < schema_->ends.size() &&
        schema_->name(matched_) == suffix) {
        ++matched_;
        return store_field(member, suffix);
    }
    if (matched_ == headers_.size()) {
        for (size_t i = 0; i < matched_; ++i) add_name(schema_->name(i));
        matched_ = SIZE_MAX;
    }
    if (add_name(suffix)) return store_field(member, suffix);
    const std::string_view name =
        std::string_view(names_.names).substr(names_.ends.empty() ? 0 : names_.ends.back() + 1);
    const uint64_t first = headers_[find_field(name)];
    spoil(member.name, member.header_offset, SHF_E_AMBIGUOUS,
          "the sample has the field \"" + escape(name) + "\" twice, " + place(first) + " and " +
              place(member.header_offset),
          "write the shard again with one of them");
    feed_.skip(member);
}

// Where a member is, for messages.
std::string Grouper::place(uint64_t header_offset) const {
    return (feed_.counts_members() ? "as member " : "at byte ") + std::to_string(header_offset);
}

// Adds a name to names_, lower-cased. When it is there already, it is added without its end, and
// the result is false.
bool Grouper::add_name(std::string_view suffix) {
    const size_t before = names_.names.size();
    append_lowered(names_.names, suffix);
    const std::string_view name = std::string_view(names_.names).substr(before);
    const size_t count = names_.ends.size();
    if (count < many) {
        if (find_field(name) < count) return false;
    } else {
        if (many_names_.empty())
            for (size_t i = 0; i < count; ++i) many_names_.emplace(names_.name(i));
        if (!many_names_.emplace(name).second) return false;
    }
    names_.ends.push_back(static_cast<uint32_t>(names_.names.size()));
    names_.names += '/';
    return true;
}

void Grouper::store_field(const Member& member, std::string_view suffix) {
    const bool deferred = deferred_ && member.size >= worth_deferring && (*deferred_)(suffix);
    if (std::optional<Fault> fault = deferred ? feed_.take_start(member) : feed_.take(member))
        return spoil(member.name, member.header_offset, std::move(*fault));
    headers_.push_back(member.header_offset);
    sample_bytes_ += member.size;
}

void Grouper::spoil(std::string_view name, uint64_t at, int32_t code, std::string cause,
                    std::string help) {
    spoil(name, at,
          Fault{.code = code,
                .shard = {},
                .member = {},
                .cause = std::move(cause),
                .help = std::move(help)});
}

// The current sample is bad: reports it once, and lets its fields go.
void Grouper::spoil(std::string_view name, uint64_t at, Fault fault) {
    spoiled_ = true;
    headers_.clear();
    feed_.release();
    if (!feed_.counts_members()) fault.offset = at;
    fault.member = escape(name);
    fault.key = key_;
    client_.bad_sample(std::move(fault), any_field_);
}

void Grouper::complete_sample() {
    if (!in_sample_) return;
    if (options_.duplicate_keys == DuplicateKeys::error && !keys_seen_.insert(key_hash_) &&
        !spoiled_ && !passed_over_)
        spoil(
            key_, first_header_, SHF_E_AMBIGUOUS,
            "this key comes again, with other samples in between",
            "sort the members by name when writing (tar --sort=name); duplicate_keys=accept makes "
            "several samples of them");
    if (!spoiled_ && !any_field_) {
        stats_.add(SHF_STAT_FILTERED_SAMPLES);
    } else if (!spoiled_ && !passed_over_) {
        if (matched_ == headers_.size() && matched_ < schema_->ends.size())
            for (size_t i = 0; i < matched_; ++i) add_name(schema_->name(i));
        // Upper-case names never match above, and are the same sample for sample all the same.
        if (!names_.ends.empty() && (!schema_ || schema_->names != names_.names))
            schema_ = schema_of_names();
        client_.sample({key_, first_header_, schema_, feed_.kept()});
        feed_.release();
    }
    ++samples_;
    counted_ += any_field_ ? 1 : 0;
    in_sample_ = spoiled_ = any_field_ = false;
    sample_bytes_ = 0;
    headers_.clear();
    matched_ = 0;
    names_.names.clear();
    names_.ends.clear();
    many_names_.clear();
}

// The schema of names_, one of the last few where it is the same.
std::shared_ptr<const Schema> Grouper::schema_of_names() {
    for (const auto& schema : schemas_)
        if (schema->names == names_.names) return schema;
    if (schemas_.size() == most_schemas) schemas_.erase(schemas_.begin());
    schemas_.push_back(std::make_shared<const Schema>(names_));
    return schemas_.back();
}

}  // namespace shf
