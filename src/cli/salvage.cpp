#include "cli/salvage.h"

#include "cli/interrupts.h"
#include "cli/rows.h"
#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace cli {

namespace {

constexpr uint64_t not_said = std::numeric_limits<uint64_t>::max();
constexpr uint64_t tar_block = 512;
constexpr size_t read_size = size_t{256} * 1024;

bool is_damage(int32_t code) {
    switch (code) {
        case SHF_E_FORMAT:
        case SHF_E_TRUNCATED:
        case SHF_E_INTEGRITY:
        case SHF_E_LIMIT:
        case SHF_E_UNSUPPORTED:
        case SHF_E_AMBIGUOUS: return true;
        default: return false;
    }
}

// Readers pass over names that begin with __NAME__.
bool is_metadata(std::string_view name) {
    const std::string_view first = name.substr(0, name.find('/'));
    return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

// Whether the header of a tar alone may not hold this name.
bool may_be_long(std::string_view name) {
    return name.size() > 99 ||
           std::any_of(name.begin(), name.end(), [](char c) { return (c & 0x80) != 0; });
}

std::string in_lower_case(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

uint64_t member_info(const Members& members, int32_t what) {
    return shf_members_info(members.get(), what);
}

Options resyncing(const LibraryOptions& options) {
    Options made = options.copy();
    call(shf_options_set, made.get(), "resync", "true");
    return made;
}

}  // namespace

Salvage::Salvage(const std::string& url, const LibraryOptions& options, Wanted wanted,
                 SalvageClient& client)
    : url_(url),
      options_(resyncing(options)),
      memory_(std::stoull(options.get("memory"))),
      wanted_(wanted),
      client_(client),
      members_(open()) {}

Members Salvage::open() const {
    shf_members* opened = nullptr;
    call(shf_members_open, &opened, url_.c_str(), options_.get());
    return Members(opened);
}

// How much of a compressed tar is covered by checksums that hold: known when all of it was read.
uint64_t Salvage::verified_bytes() const {
    if (url_ == "-" || url_.starts_with("pipe:"))
        throw Failure(wrong_command_line,
                      "a compressed shard is read twice, first to see which checksums hold; help: "
                      "copy it to a file, or take all with --unverified");
    const Members members = open();
    const Cancellable cancellable(members.get());
    shf_error error = {};
    shf_error last = {};
    for (;;) {
        const int32_t code = shf_members_next(members.get(), nullptr, &error);
        if (code == SHF_END) return member_info(members, SHF_MEMBER_VERIFIED);
        if (code == SHF_OK) {
            last = {};
            continue;
        }
        if (!is_damage(code) || (last.code == code && last.offset == error.offset))
            fail(code, error);
        last = error;
    }
}

void Salvage::run() {
    const Cancellable cancellable(members_.get());
    shf_error error = {};
    shf_bytes name;
    for (;;) {
        const int32_t code = shf_members_next(members_.get(), &name, &error);
        if (code == SHF_END) break;
        if (code == SHF_OK)
            take_member(text(name));
        else if (is_damage(code))
            take_gap(error);
        else
            fail(code, error);
    }
    close_gap(std::nullopt);
    end_sample();
}

void Salvage::take_gap(const shf_error& error) {
    // What cannot be passed is said again.
    if (last_error_.code == error.code && last_error_.offset == error.offset)
        fail(error.code, error);
    last_error_ = error;
    spoil("it lies before lost bytes: a member of it may be among them, or its last one cut short");
    if (!gap_) gap_ = Gap{error.offset, error.message};
}

void Salvage::close_gap(std::optional<uint64_t> next_member) {
    if (!gap_) return;
    // The directory of a ZIP file, which may be what is lost, lies behind its members.
    const bool is_before = next_member && gap_->from < *next_member;
    client_.lost_bytes(gap_->from, is_before ? next_member : std::nullopt, gap_->message);
    behind_gap_ = name_uncertain_ = is_before;
    gap_.reset();
}

void Salvage::take_member(std::string_view name) {
    const uint64_t offset = member_info(members_, SHF_MEMBER_OFFSET);
    if (!verified_) {
        const bool is_compressed = member_info(members_, SHF_MEMBER_VERIFIED) != not_said;
        verified_ = is_compressed && !wanted_.unverified ? verified_bytes() : not_said;
    }
    last_error_ = {};
    close_gap(offset);
    if (*verified_ != not_said && (*verified_ < tar_block || offset > *verified_ - tar_block))
        spoil(
            "it lies behind the last checksum of the compressed shard that holds; --unverified "
            "takes it");
    const bool is_uncertain = std::exchange(name_uncertain_, false);
    switch (member_info(members_, SHF_MEMBER_KIND)) {
        case SHF_KIND_DIRECTORY:
        case SHF_KIND_HARD_LINK:
        case SHF_KIND_SYMBOLIC_LINK:
        case SHF_KIND_SPECIAL: return client_.left_out();
        default: break;
    }
    std::string key;
    std::string field;
    if (is_metadata(name) || !split_name(name, key, field)) {
        after_uncertain_ = is_uncertain;
        return client_.lost_member(name, offset,
                                   "its name has no key and field: readers pass over it");
    }
    if (!in_sample_ || key != sample_.key) begin_sample(key, name);
    if (std::exchange(behind_gap_, false))
        spoil("it lies behind lost bytes: a member of it may be among them");
    after_uncertain_ = is_uncertain;
    take_field(std::string(name), field, offset, is_uncertain);
}

void Salvage::take_field(const std::string& name, const std::string& field, uint64_t offset,
                         bool is_uncertain) {
    std::string data;
    if (!read_data(name, offset, data)) return spoil("its member " + printable(name) + " is lost");
    std::string why;
    if (is_uncertain)
        why = "it is the first one behind lost bytes: a longer name of it may be among them";
    else if (std::find(lowered_.begin(), lowered_.end(), in_lower_case(field)) != lowered_.end())
        why = "its sample has a field of that name already";
    if (!why.empty()) {
        client_.lost_member(name, offset, why);
        return spoil("its member " + printable(name) + " is not taken");
    }
    lowered_.push_back(in_lower_case(field));
    sample_.fields.emplace_back(field, std::move(data));
}

void Salvage::begin_sample(const std::string& key, std::string_view name) {
    end_sample();
    in_sample_ = true;
    sample_.key = key;
    if (after_uncertain_ && may_be_long(name))
        spoil("the member before it has an uncertain name, and may be its own");
}

// False when the data is not whole, which the client was told.
bool Salvage::read_data(std::string_view name, uint64_t offset, std::string& data) {
    shf_error error = {};
    // Memory is taken as bytes arrive: the size in a header is a claim.
    const uint64_t claimed = std::max<uint64_t>(member_info(members_, SHF_MEMBER_SIZE), 1);
    const auto step = static_cast<size_t>(std::min<uint64_t>(claimed, read_size));
    for (size_t size = step; size > 0;) {
        const size_t have = data.size();
        data.resize(have + step);
        const int32_t code =
            shf_members_read(members_.get(), data.data() + have, step, &size, &error);
        if (is_damage(code)) {
            client_.lost_member(name, offset, error.message);
            return false;
        }
        if (code != SHF_OK) fail(code, error);
        data.resize(have + size);
        bytes_ += size;
        if (bytes_ > memory_)
            throw Failure(failed, printable(url_) + ": sample " + printable(sample_.key) +
                                      " is larger than memory=" + std::to_string(memory_) +
                                      "; help: raise --memory");
    }
    return true;
}

void Salvage::end_sample() {
    if (!in_sample_) return;
    in_sample_ = false;
    if (why_not_whole_.empty()) {
        client_.sample(sample_);
    } else {
        const bool kept = wanted_.fields && !sample_.fields.empty();
        std::vector<std::string> whole;
        for (const auto& field : sample_.fields) whole.push_back(field.first);
        client_.lost_sample(sample_.key, whole, kept, why_not_whole_);
        if (kept) client_.sample(sample_);
    }
    sample_ = {};
    lowered_.clear();
    why_not_whole_.clear();
    bytes_ = 0;
}

void Salvage::spoil(const std::string& reason) {
    if (in_sample_ && why_not_whole_.empty()) why_not_whole_ = reason;
}

}  // namespace cli
