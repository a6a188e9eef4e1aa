#include "member/member_sequence.h"

#include "core/opening.h"
#include "io/sources.h"
#include "url/in_shard.h"
#include "url/scheme.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace shf {

namespace {

// An input whose first bytes were read already.
class Rewound final : public Sequential {
  public:
    Rewound(std::vector<uint8_t> head, std::unique_ptr<Sequential> input)
        : head_(std::move(head)), input_(std::move(input)) {}

    size_t read(std::span<uint8_t> out) override {
        if (used_ == head_.size()) return input_->read(out);
        const size_t count = std::min(out.size(), head_.size() - used_);
        std::copy_n(head_.begin() + static_cast<ptrdiff_t>(used_), count, out.begin());
        used_ += count;
        return count;
    }
    bool skip(uint64_t size) override { return used_ == head_.size() && input_->skip(size); }
    bool ready() override { return used_ < head_.size() || input_->ready(); }
    void finish() override { input_->finish(); }

  private:
    const std::vector<uint8_t> head_;
    size_t used_ = 0;
    const std::unique_ptr<Sequential> input_;
};

bool is_in_place(ShardFormat format) {
    return format == ShardFormat::zip || format == ShardFormat::other;
}

// Members are never held whole, so that the limit for that is none here.
Options without_limit(Options options) {
    options.max_member = std::numeric_limits<uint64_t>::max();
    return options;
}

}  // namespace

MemberSequence::MemberSequence(const std::string& url, const Options& options)
    : options_(without_limit(options)), url_(from_home(url)) {
    in_shard(url_, [&] { source_ = Sources(options_, cancel_, source_use_).open(url_); });
}

template <typename Do>
auto MemberSequence::guarded(Do action) {
    if (failure_) throw Error(*failure_);
    const Opening waiting(options_, Opens::nothing);
    try {
        return in_shard(url_, action);
    } catch (...) {
        Fault fault = describe_exception();
        if (cancel_.requested())
            fault = {.code = SHF_E_CANCELLED,
                     .shard = {},
                     .member = {},
                     .cause = "the reading of members was cancelled",
                     .help = {}};
        const bool passes = walk_ && !has_member_ && walk_->passes(fault.code);
        if (cancel_.requested() || (!ends_call(fault.code) && !member_failure_ && !passes))
            failure_ = fault;
        throw Error(std::move(fault));
    }
}

bool MemberSequence::next() {
    has_member_ = false;
    member_failure_.reset();
    return guarded([&] {
        cancel_.check();
        if (ended_) return false;
        if (!walk_) open_walk();
        has_member_ = walk_->next();
        ended_ = !has_member_;
        return has_member_;
    });
}

void MemberSequence::open_walk() {
    if (source_->seekable() && source_->size()) {
        const ShardFormat format = shard_format(*source_, url_, options_);
        const Source* plain = format == ShardFormat::tar ? source_.get() : nullptr;
        walk_ = is_in_place(format)
                    ? walk_in_place(format, *source_)
                    : tar_walk(source_->open_sequential(0), plain, options_, cancel_);
        return;
    }
    if (!input_) input_ = source_->open_sequential(0);
    for (std::array<uint8_t, shard_head> bytes; head_.size() < shard_head;) {
        const size_t count = input_->read(std::span(bytes).first(shard_head - head_.size()));
        if (count == 0) break;
        head_.insert(head_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
    }
    // The words of a command tell nothing about its output.
    const bool named = !url_.starts_with("pipe:");
    const ShardFormat format = shard_format(head_, named ? url_ : std::string_view(), options_);
    if (!is_in_place(format)) {
        walk_ = tar_walk(std::make_unique<Rewound>(std::move(head_), std::move(input_)), nullptr,
                         options_, cancel_);
        return;
    }
    if (whole_.bytes().empty()) whole_.put(head_);
    whole_.take(*input_, options_.memory, "raise memory, or copy it to a file");
    input_->finish();
    auto memory = memory_source(whole_.bytes());
    walk_ = walk_in_place(format, *memory);
    input_.reset();
    source_ = std::move(memory);
}

// The walk over a file that can be read at any offset.
std::unique_ptr<MemberWalk> MemberSequence::walk_in_place(ShardFormat format,
                                                          Source& source) const {
    return format == ShardFormat::zip ? zip_walk(source, options_, cancel_)
                                      : libarchive_walk(source, options_, cancel_);
}

size_t MemberSequence::read(std::span<uint8_t> out) {
    if (member_failure_ && !cancel_.requested()) throw Error(*member_failure_);
    if (!failure_ && !has_member_ && !cancel_.requested())
        throw Error(SHF_E_USAGE, "there is no member to read", "move to the next member before it");
    return guarded([&] {
        cancel_.check();
        return read_member(out);
    });
}

size_t MemberSequence::read_member(std::span<uint8_t> out) {
    const Member& member = walk_->member();
    try {
        if (auto fault = refusal(member.kind)) {
            fault->offset = member.header_offset;
            throw Error(std::move(*fault));
        }
        return walk_->read(out);
    } catch (const Error& error) {
        Fault fault = error.fault();
        if (fault.member.empty() && !ends_call(fault.code)) fault.member = escape(member.name);
        if (refusal(member.kind) || walk_->survives(fault.code)) {
            fault.shard = redact(url_);
            member_failure_ = fault;
        }
        throw Error(std::move(fault));
    }
}

std::string_view MemberSequence::name() const {
    return has_member_ ? walk_->member().name : std::string_view();
}

std::optional<uint64_t> MemberSequence::number(int32_t what) const {
    if (what == SHF_MEMBER_VERIFIED) return walk_ ? walk_->verified() : std::nullopt;
    if (!has_member_) return std::nullopt;
    const Member& member = walk_->member();
    switch (what) {
        case SHF_MEMBER_SIZE: return member.size;
        case SHF_MEMBER_OFFSET: return member.header_offset;
        case SHF_MEMBER_KIND: return static_cast<uint64_t>(member.kind);
        default: return walk_->number(what);
    }
}

std::string_view MemberSequence::text(int32_t what) const {
    return has_member_ ? walk_->text(what) : std::string_view();
}

}  // namespace shf
