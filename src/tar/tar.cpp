#include "tar/tar.h"

#include "codec/magic.h"
#include "codec/other_archive.h"
#include "core/options.h"
#include "tar/header_block.h"
#include "tar/tar_metadata.h"

#include <algorithm>
#include <cstring>

namespace shf {

using namespace header_block;

namespace {

// Of zeros behind the end marker: writers fill a record, of 10,240 bytes as a rule.
constexpr uint64_t longest_tail = 64 * 1024;
constexpr const char* tail_help =
    "copy it again; trailing=ignore accepts it if the file it is a copy of ends like this";
constexpr uint64_t largest_size = uint64_t{1} << 60;  // leaves room for rounding without overflow

enum class Magic : uint8_t { v7, ustar, gnu };

std::string first_bytes(std::string_view bytes) {
    return "; the first bytes are \"" + escape(bytes.substr(0, 16)) + "\"";
}

// The offset is that of the member's header, so that it does not depend on how early a transport
// tells the length of the shard.
Error cut_short(const Member& member) {
    return Error(
        Fault{.code = SHF_E_TRUNCATED,
              .offset = member.header_offset,
              .shard = {},
              .member = escape(member.name),
              .cause = "the shard ends inside this member of " + plural(member.size, "byte"),
              .help = copy_again});
}

uint64_t padding(uint64_t size) {
    return (block_size - size % block_size) % block_size;
}

}  // namespace

uint64_t end_of(const Member& member) {
    return member.data_offset + member.size + padding(member.size);
}

// What the headers before a member said about it.
struct TarWalker::Pending {
    uint64_t first_header = no_offset;  // of the first of them
    uint64_t meta_bytes = 0;
    bool pax_seen = false, long_name_seen = false, long_link_seen = false;
    PaxRecords pax;
    std::string long_name;
    bool done = false;  // the member that they describe was returned

    [[nodiscard]] bool any() const { return pax_seen || long_name_seen || long_link_seen; }
};

TarWalker::TarWalker(Window& window, const Options& options, Stats& stats)
    : window_(window),
      options_(options),
      stats_(stats),
      pending_(std::make_unique<Pending>()),
      refused_(no_offset) {}

TarWalker::~TarWalker() = default;

bool TarWalker::next(Member& member) {
    Pending& pending = *pending_;
    if (pending.done) {
        if (pending.any()) pending = {};
        pending.first_header = no_offset;
        pending.meta_bytes = 0;
        pending.done = false;
        if (metadata_) metadata_->forget_member();
    }
    if (in_sparse_map_) return pass_sparse_map(member);
    if (marker_ && !skip_zeros()) return finish();
    for (;;) {
        const uint64_t at = window_.position();
        if (!window_.need(block_size)) {
            const auto seen = window_.seen();
            const std::string_view left(reinterpret_cast<const char*>(seen.data()), seen.size());
            if (at == 0 && left.empty())
                throw Error(SHF_E_TRUNCATED, "the shard has no bytes at all",
                            "check how it was written or copied", 0);
            // Shorter than a header: it is a tar if enough is there to show the magic (T24).
            if (at == 0 && !left.substr(std::min(magic_at, left.size())).starts_with("ustar"))
                not_a_tar(left, at);
            if (!left.empty())
                throw Error(SHF_E_TRUNCATED,
                            "the shard ends inside a tar header, " + std::to_string(left.size()) +
                                " of 512 bytes are there",
                            copy_again, at);
            if (pending.any())
                throw Error(SHF_E_FORMAT, "a long-name or pax header with no member after it",
                            write_again, pending.first_header);
            if (options_.end_marker == EndMarker::optional) {
                stats_.add(SHF_STAT_MISSING_END_MARKERS);
                return finish();
            }
            throw Error(
                SHF_E_TRUNCATED, "the shard ends without the two zero blocks of a complete tar",
                "copy it again; end_marker=optional accepts it if its writer left them out", at);
        }
        const uint8_t* block = window_.seen().data();
        if (block[0] == 0 && is_zero(block)) {
            if (pending.any())
                throw Error(SHF_E_FORMAT, "a long-name or pax header with no member after it",
                            write_again, pending.first_header);
            if (!read_end()) return finish();
            continue;
        }
        bool ready = false;
        refused_ = at;
        parse_header(block, pending, member, ready);
        if (in_sparse_map_) return pass_sparse_map(member);
        if (ready) {
            pending.done = true;
            return true;
        }
    }
}

uint64_t TarWalker::damaged_from() const {
    if (pending_->first_header != no_offset) return pending_->first_header;
    return marker_ ? *marker_ : window_.position();
}

bool TarWalker::resync() {
    *pending_ = {};
    if (metadata_) metadata_->forget_member();
    in_sparse_map_ = dropping_ = false;
    marker_.reset();
    // A header with the right checksum may have been refused for what it says.
    if (window_.position() == refused_ && window_.need(block_size)) window_.advance(block_size);
    for (; window_.need(block_size); window_.advance(block_size)) {
        const uint8_t* block = window_.seen().data();
        // The sum alone, of a header without magic, is too little to tell one from data.
        if (field(block, magic_at, 5) == "ustar" && checksum_holds(block)) return true;
    }
    return false;
}

// Old GNU sparse maps continue in blocks after the header.
bool TarWalker::pass_sparse_map(Member& member) {
    while (in_sparse_map_) {
        if (!window_.need(block_size))
            throw Error(SHF_E_TRUNCATED, "the shard ends inside a sparse map", copy_again,
                        member.data_offset - block_size);
        in_sparse_map_ = window_.seen()[gnu_extension_extended_at] != 0;
        window_.advance(block_size);
    }
    member.data_offset = window_.position();
    pending_->done = true;
    return true;
}

void TarWalker::not_a_tar(std::string_view seen, uint64_t at) const {
    const auto starts = [&](std::string_view magic) { return seen.starts_with(magic); };
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(seen.data()),
                                         seen.size());
    const size_t text = seen.find_first_not_of(" \t\r\n");
    if (has_zip_magic(bytes))
        throw Error(SHF_E_UNSUPPORTED, "a ZIP file in a stream that can only be read front to back",
                    "copy it to a disk, or write the shard as tar", at);
    if (const OtherArchive other = other_archive(bytes); other != OtherArchive::none)
        throw Error(SHF_E_UNSUPPORTED,
                    std::string(words_for(other)) +
                        " where only a tar can be read: in a stream "
                        "from front to back, or compressed",
                    "decompress it, copy it to a disk, or write the shard as tar", at);
    const char* what = nullptr;
    if (const char* codec = codec_of_magic(bytes)) {
        what = codec;
    } else if (starts("\x5d\x00\x00\x80")) {
        what = "an old .lzma stream; compress it again as .xz or .zst";
    } else if (text != seen.npos && seen[text] == '<') {
        what = "an HTML or XML page, perhaps a login or error page";
    } else if (text != seen.npos && (seen[text] == '{' || seen[text] == '[')) {
        what = "JSON, perhaps an error message";
    }
    throw Error(SHF_E_FORMAT,
                std::string("this is not a tar file") +
                    (what ? std::string("; it looks like ") + what : "") + first_bytes(seen),
                "check the URL", at);
}

void TarWalker::parse_header(const uint8_t* block, Pending& pending, Member& member, bool& ready) {
    const uint64_t at = window_.position();
    const auto bad = [&](std::string cause, std::string help = write_again) {
        return Error(SHF_E_FORMAT, std::move(cause), std::move(help), at);
    };
    if (!checksum_holds(block)) {
        if (at == 0) not_a_tar(field(block, 0, block_size), at);
        throw bad("the checksum of a tar header does not match",
                  "the shard is damaged here; copy it again, or use on_error=skip_shard");
    }
    const std::string_view magic_field = field(block, magic_at, 8);
    Magic magic = Magic::v7;
    if (magic_field == std::string_view("ustar  \0", 8)) {
        magic = Magic::gnu;
    } else if (magic_field == std::string_view("ustar\00000", 8)) {
        magic = Magic::ustar;
    } else if (magic_field.starts_with("ustar")) {
        throw Error(SHF_E_AMBIGUOUS,
                    "a header with magic \"" + escape(magic_field) +
                        "\", which readers take for different formats",
                    "write the shard again with ustar, GNU or pax headers", at);
    }
    const auto header_size = parse_number(field(block, size_at, size_size));
    if (!header_size || *header_size > largest_size)
        throw bad("the size field of a tar header is not a number up to 2^60");
    if (pending.first_header == no_offset) pending.first_header = at;

    const char type = static_cast<char>(block[type_at]);
    if (type == 'x' || type == 'g' || type == 'X' || type == 'L' || type == 'K') {
        const bool gnu_type = type == 'L' || type == 'K';
        if (magic != (gnu_type ? Magic::gnu : Magic::ustar))
            throw bad(std::string("a header of type '") + type + "' under " +
                      (gnu_type ? "other than GNU" : "other than ustar") + " magic");
        read_meta(type, *header_size, at, pending);
        return;
    }

    uint64_t size = *header_size;
    if (pending.pax.size) {
        // pax holds for the body, the advance and the reported size alike (CVE-2025-62518).
        if (*pending.pax.size > largest_size) throw bad("a pax size above 2^60");
        if (*pending.pax.size != size) stats_.add(SHF_STAT_SIZE_DISAGREEMENTS);
        size = *pending.pax.size;
    }

    std::string_view name = until_nul(field(block, name_at, name_size));
    if (pending.pax.path) {
        name_ = std::move(*pending.pax.path);
        name = name_;
    } else if (pending.long_name_seen) {
        name_ = std::move(pending.long_name);
        name = name_;
    } else if (magic == Magic::ustar && block[prefix_at] != 0) {
        name_ = until_nul(field(block, prefix_at, prefix_size));
        name_ += '/';
        name_ += name;
        name = name_;
    }
    if (name.size() > options_.max_name)
        throw Error(SHF_E_LIMIT,
                    "a member name of " + plural(name.size(), "byte") +
                        " is longer than max_name=" + std::to_string(options_.max_name),
                    "raise max_name", at);

    const auto without_data = [&](MemberKind kind, const char* what) {
        if (size != 0) throw bad(std::string(what) + " with a size of " + std::to_string(size));
        return kind;
    };
    MemberKind kind = MemberKind::unknown;
    switch (type) {
        case '\0':
            // Before ustar had type '5', a directory was a file whose name ends in a slash.
            kind = name.ends_with('/') ? without_data(MemberKind::directory, "a directory")
                                       : MemberKind::file;
            break;
        case '0':
            kind = name.ends_with('/') && magic == Magic::v7
                       ? without_data(MemberKind::directory, "a directory")
                       : MemberKind::file;
            break;
        case '7': kind = MemberKind::file; break;
        case '1': kind = without_data(MemberKind::hard_link, "a hard link"); break;
        case '2': kind = without_data(MemberKind::symbolic_link, "a symbolic link"); break;
        case '3':
        case '4':
        case '6': kind = without_data(MemberKind::special, "a device or FIFO"); break;
        case '5': kind = without_data(MemberKind::directory, "a directory"); break;
        case 'S':
            // Its map lies where ustar has the prefix.
            if (magic != Magic::gnu) throw bad("an old sparse member under other than GNU magic");
            kind = MemberKind::sparse;
            break;
        case 'M': kind = MemberKind::multi_volume; break;
        case 'V':
        case 'D':
        case 'A': kind = MemberKind::special; break;
        default: kind = MemberKind::unknown;
    }
    if (pending.pax.sparse && kind == MemberKind::file) kind = MemberKind::sparse;

    // The name may lie in this block, which the window may drop when it reads on. A copy of fixed
    // size is a few instructions.
    if (name.data() != name_.data()) {
        static_assert(sizeof short_name_ == name_size);
        std::memcpy(short_name_.data(), block + name_at, name_size);
        name = std::string_view(short_name_.data(), name.size());
    }
    in_sparse_map_ = type == 'S' && block[gnu_extended_at] != 0;
    if (metadata_) metadata_->take_header(std::span<const uint8_t, block_size>(block, block_size));
    window_.advance(block_size);
    member = {.kind = kind,
              .name = name,
              .header_offset = pending.first_header,
              .data_offset = window_.position(),
              .size = size};
    ready = true;
}

void TarWalker::read_meta(char type, uint64_t size, uint64_t at, Pending& pending) {
    const auto twice = [&](const char* what) {
        throw Error(SHF_E_AMBIGUOUS, std::string(what) + " before one member",
                    "write the shard again; readers take different ones", at);
    };
    const bool gnu_type = type == 'L' || type == 'K';
    if (gnu_type && pending.pax_seen) twice("a pax header and a GNU long name");
    if (!gnu_type && type != 'g' && (pending.long_name_seen || pending.long_link_seen))
        twice("a GNU long name and a pax header");
    if (type == 'L' && pending.long_name_seen) twice("two GNU long names");
    if (type == 'K' && pending.long_link_seen) twice("two GNU long link names");
    if ((type == 'x' || type == 'X') && pending.pax_seen) twice("two pax headers");
    if (size > options_.max_meta - std::min(pending.meta_bytes, options_.max_meta))
        throw Error(SHF_E_LIMIT,
                    "long-name and pax headers of more than max_meta=" +
                        plural(options_.max_meta, "byte") + " before one member",
                    "raise max_meta if the shard is sound", at);
    const auto bytes = static_cast<size_t>(size);
    // Header and body at once: a call that ends in between can be repeated.
    if (!need_declared(block_size + size + padding(size)))
        throw Error(SHF_E_TRUNCATED, "the shard ends inside a long-name or pax header", copy_again,
                    at);
    const std::string_view body = field(window_.seen().data(), block_size, bytes);
    PaxFields* const fields = !metadata_    ? nullptr
                              : type == 'g' ? &metadata_->global
                                            : &metadata_->pax;
    switch (type) {
        case 'L':
            pending.long_name_seen = true;
            pending.long_name = until_nul(body);
            if (pending.long_name.size() > options_.max_name)
                throw Error(SHF_E_LIMIT,
                            "a member name of " + plural(pending.long_name.size(), "byte") +
                                " is longer than max_name=" + std::to_string(options_.max_name),
                            "raise max_name", at);
            break;
        case 'K':
            pending.long_link_seen = true;
            if (metadata_) metadata_->long_link = until_nul(body);
            break;
        case 'g': {
            PaxRecords ignored;
            parse_pax(body, true, at, ignored, fields);
            break;
        }
        default: pending.pax_seen = true; parse_pax(body, false, at, pending.pax, fields);
    }
    pending.meta_bytes += size;
    window_.advance(block_size + bytes + static_cast<size_t>(padding(size)));
}

// At a zero block. True when another archive follows (concat=true), false at the end of the input.
bool TarWalker::read_end() {
    const uint64_t at = window_.position();
    if (!window_.need(2 * block_size)) {
        // One zero block, or one and a part: as if the marker were missing (T21), but a part of a
        // block is a cut inside a header block (T2).
        if (window_.seen().size() == block_size && options_.end_marker == EndMarker::optional) {
            window_.advance(block_size);
            stats_.add(SHF_STAT_MISSING_END_MARKERS);
            return false;
        }
        throw Error(SHF_E_TRUNCATED, "the shard ends inside the two zero blocks of a complete tar",
                    "copy it again; end_marker=optional accepts one whole block", at);
    }
    if (!is_zero(window_.seen().data() + block_size))
        throw Error(SHF_E_FORMAT, "one zero block alone, where a tar ends with two",
                    "the shard is damaged here; copy it again, or use on_error=skip_shard", at);
    window_.advance(2 * block_size);
    marker_ = at;
    return skip_zeros();
}

// Behind the end marker: tar pads its records with zeros. True when another archive follows.
bool TarWalker::skip_zeros() {
    const uint64_t marker = *marker_, start = marker + 2 * block_size;
    while (!dropping_) {
        const bool whole = window_.need(block_size);
        const auto seen = window_.seen();
        const size_t count = whole ? block_size : seen.size();
        if (count == 0) return false;
        const auto* junk =
            std::find_if(seen.data(), seen.data() + count, [](uint8_t b) { return b != 0; });
        if (window_.position() + static_cast<uint64_t>(junk - seen.data()) - start > longest_tail) {
            if (options_.trailing == Trailing::refuse)
                throw Error(SHF_E_TRUNCATED,
                            "more than " + std::to_string(longest_tail) +
                                " zeros behind the end marker of the tar, as in a file that was "
                                "preallocated and never filled",
                            tail_help, marker);
            saw_trailing_ = true;
        }
        if (junk == seen.data() + count) {
            window_.advance(count);
            continue;
        }
        const uint64_t junk_at = window_.position() + static_cast<uint64_t>(junk - seen.data());
        if (options_.concat &&
            (options_.trailing == Trailing::refuse || (whole && checksum_holds(seen.data())))) {
            marker_.reset();
            if (metadata_) metadata_->global = {};
            return true;
        }
        if (options_.trailing == Trailing::refuse)
            throw Error(
                SHF_E_FORMAT, "trailing data after the end of the tar",
                "concat=true reads on if another tar follows, trailing=ignore drops the rest",
                junk_at);
        dropping_ = saw_trailing_ = true;
    }
    while (window_.need(1)) window_.advance(window_.seen().size());
    return false;
}

// At the end of the input. A download that stopped in a preallocated file leaves a hole, which
// reads as an end marker, or as the missing half of the last member.
bool TarWalker::finish() {
    if (!source_ || !source_->ends_in_hole()) return false;
    if (options_.trailing == Trailing::refuse)
        throw Error(SHF_E_TRUNCATED, "the file ends in a hole: its last bytes were never written",
                    tail_help, window_.position());
    saw_trailing_ = true;
    return false;
}

void TarWalker::set_source(const Source& source, uint64_t start) {
    source_ = &source;
    if (const auto size = source.size()) input_size_ = *size - std::min(*size, start);
}

// False when it is known that the input ends before `size` more bytes.
bool TarWalker::in_input(uint64_t size) const {
    return !input_size_ || (size <= *input_size_ && window_.position() <= *input_size_ - size);
}

// Makes the next `size` bytes contiguous; false when the input ends before. A size in a header is a
// claim (T4): where the length of the input does not prove it, no more than 16 times the bytes that
// have arrived is taken ahead.
bool TarWalker::need_declared(uint64_t size) {
    constexpr uint64_t first_step = 1 << 20, growth = 16;
    if (!in_input(size)) return false;
    if (!input_size_)
        for (uint64_t step = first_step; step < size; step *= growth)
            if (!window_.need(static_cast<size_t>(step))) return false;
    return window_.need(static_cast<size_t>(size));
}

void TarWalker::pass_padding(const Member& member) {
    const auto size = static_cast<size_t>(padding(member.size));
    if (!window_.need(size)) throw cut_short(member);
    window_.advance(size);
}

void TarWalker::take_data(const Member& member) {
    if (!need_declared(member.size)) throw cut_short(member);
    window_.advance(static_cast<size_t>(member.size));
}

void TarWalker::take_start(const Member& member, uint64_t size) {
    if (!in_input(member.size) || !need_declared(size)) throw cut_short(member);
    window_.advance(static_cast<size_t>(size));
}

void TarWalker::skip_rest(const Member& member, uint64_t start) {
    if (!window_.skip(member.size - start + padding(member.size), 0)) throw cut_short(member);
}

void TarWalker::skip_data(const Member& member) {
    const uint64_t left = data_left(member);
    if (!in_input(left) || !window_.skip(left)) throw cut_short(member);
    if (window_.position() < end_of(member)) pass_padding(member);
}

size_t TarWalker::read_data(const Member& member, std::span<uint8_t> out) {
    const uint64_t left = data_left(member);
    if (left == 0) {
        skip_data(member);
        return 0;
    }
    const size_t count =
        in_input(left)
            ? window_.read(out.first(static_cast<size_t>(std::min<uint64_t>(left, out.size()))))
            : 0;
    if (count == 0) throw cut_short(member);
    return count;
}

uint64_t TarWalker::data_left(const Member& member) const {
    const uint64_t end = member.data_offset + member.size;
    return end - std::min(end, window_.position());
}

}  // namespace shf
