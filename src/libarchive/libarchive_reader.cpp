#include "libarchive/libarchive_reader.h"

#include "core/checksum.h"
#include "core/memory_to_decode.h"
#include "core/opening.h"
#include "core/options.h"
#include "libarchive/archive_end.h"
#include "libarchive/libarchive.h"
#include "libarchive/utf8_locale.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>
#include <vector>

namespace shf {

namespace {

// As for the streams of filters.
constexpr uint64_t ratio_start = uint64_t{64} << 20;
// Zeros behind the end of a cpio archive, as behind that of a tar (T20).
constexpr uint64_t longest_fill = uint64_t{64} << 10;
// Blocks without bytes that are taken for progress.
constexpr unsigned most_empty = 1000;
// Read at once.
constexpr uint64_t least_read = uint64_t{64} << 10, most_read = uint64_t{1} << 20;

struct Free {
    void operator()(archive* handle) const { libarchive().read_free(handle); }
};

bool has_word(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [text](std::string_view word) { return text.find(word) != text.npos; });
}

// libarchive 3.6 crashes in the headers of 7z where it gets no memory.
constexpr size_t archive_memory = 1 << 20;

// libarchive has one number for most faults; its texts tell more. What is not known is FORMAT.
int32_t code_of(int number, std::string_view text) {
    if (number == ENOMEM) return SHF_E_NOMEM;
    // It says that too where a header claims what no memory holds.
    if (has_word(text, {"memory", "llocate"})) check_memory(size_t{64} << 20);
    if (has_word(text, {"runcated", "remature", "nexpected end"})) return SHF_E_TRUNCATED;
    if (has_word(text, {"CRC", "hecksum", "BLAKE2"})) return SHF_E_INTEGRITY;
    if (has_word(text, {"upported", "ncrypted"})) return SHF_E_UNSUPPORTED;
    return SHF_E_FORMAT;
}

MemberKind kind_of(unsigned type) {
    switch (type) {
        case S_IFREG: return MemberKind::file;
        case S_IFDIR: return MemberKind::directory;
        case S_IFLNK: return MemberKind::symbolic_link;
        case S_IFCHR:
        case S_IFBLK:
        case S_IFIFO:
        case S_IFSOCK: return MemberKind::special;
        default: return MemberKind::unknown;
    }
}

}  // namespace

struct LibarchiveReader::State {
    State(Source& s, const Options& o, const Cancel& c)
        : source(s),
          options(o),
          cancel(c),
          la(libarchive()),
          size(*s.size()),
          format(other_archive(s)) {}

    Source& source;
    const Options& options;
    const Cancel& cancel;
    const Libarchive& la;
    const uint64_t size;
    const OtherArchive format;
    std::optional<ArchiveEnd> end;  // nothing: not looked for yet

    std::unique_ptr<archive, Free> handle;  // NULL: to be opened, and read up to where we are
    archive_entry* entry = nullptr;
    std::vector<uint8_t> buffer;
    uint64_t position = 0;             // of the next read
    std::exception_ptr thrown;         // by the source, inside a call of libarchive
    const Utf8Locale* utf8 = nullptr;  // while there is one

    uint64_t found = 0, claimed = 0;
    bool at_end = false, ended = false;  // ended: that was proven
    bool trailing = false;
    bool fatal = false;            // libarchive cannot continue
    std::optional<Fault> failure;  // repeats

    // The member, until next() has found another one.
    bool whole = false;
    std::string name, link, user, group;
    uint64_t declared = 0, delivered = 0;
    uint64_t wanted_crc = no_crc;
    uint32_t crc = 0;  // of what was delivered
    MemberFlaw flaw = MemberFlaw::none;
    uint64_t mode = 0;
    std::optional<uint64_t> uid, gid;
    std::optional<int64_t> mtime;
    std::span<const uint8_t> block;  // what libarchive gave and nobody has taken
    uint64_t fetched = 0;            // bytes that it gave

    // ---- What libarchive calls ----

    static la_ssize_t read_more(archive* /*handle*/, void* self, const void** bytes) noexcept {
        State& state = *static_cast<State*>(self);
        try {
            const Utf8Locale::Outside outside(state.utf8);
            // Not whether the time is over: what libarchive has done would be done again.
            if (state.cancel.requested()) state.cancel.check();
            const size_t count = state.source.read(state.position, state.buffer);
            state.position += count;
            *bytes = state.buffer.data();
            return static_cast<la_ssize_t>(count);
        } catch (...) {
            state.thrown = std::current_exception();
            return ARCHIVE_FATAL;
        }
    }
    static la_int64_t skip(archive* /*handle*/, void* self, la_int64_t count) noexcept {
        State& state = *static_cast<State*>(self);
        if (count < 0 || state.position > state.size) return 0;
        const auto can = std::min(static_cast<uint64_t>(count), state.size - state.position);
        state.position += can;
        return static_cast<la_int64_t>(can);
    }
    static la_int64_t seek(archive* /*handle*/, void* self, la_int64_t offset,
                           int whence) noexcept {
        State& state = *static_cast<State*>(self);
        const uint64_t base = whence == SEEK_SET   ? 0
                              : whence == SEEK_CUR ? state.position
                                                   : state.size;
        la_int64_t target = 0;
        if (__builtin_add_overflow(static_cast<la_int64_t>(base), offset, &target) || target < 0)
            return ARCHIVE_FATAL;
        state.position = static_cast<uint64_t>(target);
        return target;
    }

    // ---- Calls of libarchive ----

    // Throws unless `result` is OK or `also`.
    void check(int result, int also) {
        if (thrown) {
            handle.reset();
            block = {};
            fetched = 0;
            std::rethrow_exception(std::exchange(thrown, nullptr));
        }
        if (result == ARCHIVE_OK || result == also) return;
        fatal = result <= ARCHIVE_FATAL;
        const char* const said = la.error_string(handle.get());
        const std::string_view text = said ? said : "it gives no reason";
        const int32_t code = code_of(la.error_number(handle.get()), text);
        throw Error(code, "libarchive: " + escape(text),
                    code == SHF_E_UNSUPPORTED ? "write the archive as tar or ZIP" : copy_again);
    }

    void open() {
        check_memory(archive_memory);
        handle.reset(la.read_new());
        if (!handle) throw std::bad_alloc();
        buffer.resize(
            static_cast<size_t>(std::clamp(source.read_cost().at_once, least_read, most_read)));
        position = 0;
        entry = nullptr;
        archive* const a = handle.get();
        switch (format) {
            case OtherArchive::seven_zip:
                check(la.read_support_format_7zip(a), ARCHIVE_WARN);
                break;
            case OtherArchive::cpio: check(la.read_support_format_cpio(a), ARCHIVE_WARN); break;
            case OtherArchive::rar4: check(la.read_support_format_rar(a), ARCHIVE_WARN); break;
            case OtherArchive::rar5: check(la.read_support_format_rar5(a), ARCHIVE_WARN); break;
            case OtherArchive::iso9660:
                check(la.read_support_format_iso9660(a), ARCHIVE_WARN);
                break;
            case OtherArchive::none:
                throw Error(SHF_E_FORMAT, "no archive that libarchive reads", "check the URL", 0);
        }
        check(la.read_set_callback_data(a, this), ARCHIVE_OK);  // allocates
        check(la.read_set_read_callback(a, read_more), ARCHIVE_OK);
        check(la.read_set_skip_callback(a, skip), ARCHIVE_OK);
        check(la.read_set_seek_callback(a, seek), ARCHIVE_OK);
        const Utf8Locale names;
        utf8 = &names;
        const int result = la.read_open1(a);
        utf8 = nullptr;
        check(result, ARCHIVE_OK);
    }

    // Moves to the next header. False at the end.
    bool pass_header() {
        const Utf8Locale names;
        utf8 = &names;
        const int result = la.read_next_header(handle.get(), &entry);
        utf8 = nullptr;
        block = {};
        fetched = 0;
        if (!thrown && result < ARCHIVE_WARN && la.read_has_encrypted_entries(handle.get()) == 1)
            throw Error(SHF_E_UNSUPPORTED, "encrypted headers", "decrypt it first");
        check(result, ARCHIVE_EOF);
        return result != ARCHIVE_EOF;
    }

    // To where the last call ended, `bytes` into the member, when what libarchive had is gone.
    void resume(uint64_t bytes) {
        if (handle) return;
        if (!end) end = find_archive_end(source, format, cancel);
        open();
        for (uint64_t i = 0; i < found; ++i) {
            if (cancel.requested()) cancel.check();
            if (!pass_header()) throw changed();
        }
        while (fetched < bytes)
            if (!fetch()) throw changed();
        block = block.last(static_cast<size_t>(fetched - bytes));
    }

    static Error changed() {
        return Error(SHF_E_CHANGED, "the archive is not the one that it was", shrunk_help);
    }

    // Gets more of the member into `block`. False at its end.
    bool fetch() {
        for (unsigned empty = 0; empty < most_empty; ++empty) {
            if (cancel.requested()) cancel.check();
            const void* bytes = nullptr;
            size_t count = 0;
            la_int64_t at = 0;
            const int result = la.read_data_block(handle.get(), &bytes, &count, &at);
            check(result, ARCHIVE_EOF);
            if (result == ARCHIVE_EOF) return false;
            if (count == 0) continue;
            if (at < 0 || static_cast<uint64_t>(at) != fetched)
                throw Error(SHF_E_UNSUPPORTED, "a member with holes", "write the archive as tar");
            if (count > declared - fetched)
                throw Error(SHF_E_FORMAT,
                            "more data than the " + plural(declared, "byte") + " of its header",
                            copy_again);
            block = {static_cast<const uint8_t*>(bytes), count};
            fetched += count;
            return true;
        }
        throw Error(SHF_E_FORMAT, "the decoder makes no progress", copy_again);
    }

    // ---- Members ----

    static std::string text(const char* bytes) { return bytes ? bytes : ""; }

    void take_member(Member& member) {
        const char* const called = la.entry_pathname(entry);
        if (!called)
            throw Error(SHF_E_FORMAT, "a member name that is no text", "write the archive again");
        name = called;
        if (name.size() > options.max_name)
            throw Error(SHF_E_LIMIT,
                        "a member name of " + plural(name.size(), "byte") +
                            " is longer than max_name=" + std::to_string(options.max_name),
                        "raise max_name");
        MemberKind kind = kind_of(la.entry_filetype(entry));
        const bool sized = la.entry_size_is_set(entry) != 0;
        const la_int64_t said = sized ? la.entry_size(entry) : 0;
        if (said < 0) throw named(SHF_E_FORMAT, "a size below 0", copy_again);
        declared = kind == MemberKind::file ? static_cast<uint64_t>(said) : 0;
        // In a cpio archive one of several links has the data: most often the last one, and the
        // others are empty.
        const bool is_link = format == OtherArchive::cpio
                                 ? declared == 0 && la.entry_nlink(entry) > 1
                                 : la.entry_hardlink(entry) != nullptr;
        if (kind == MemberKind::file && is_link) {
            kind = MemberKind::hard_link;
            declared = 0;
        }
        if (format == OtherArchive::cpio && declared > size)
            throw named(
                SHF_E_TRUNCATED,
                "a member of " + plural(declared, "byte") + " in a file of " + std::to_string(size),
                copy_again);
        claimed = claimed > UINT64_MAX - declared ? UINT64_MAX : claimed + declared;
        flaw = MemberFlaw::none;
        if (kind == MemberKind::file) {
            if (la.entry_is_data_encrypted(entry) == 1)
                flaw = MemberFlaw::encrypted;
            else if (!sized)
                flaw = MemberFlaw::no_size;
            else if (claimed > ratio_start && claimed / options.max_ratio > size)
                flaw = MemberFlaw::ratio;
        }
        take_metadata(kind);
        delivered = 0;
        crc = 0;
        wanted_crc = end->crcs && found < end->crcs->size() ? (*end->crcs)[found] : no_crc;
        whole = kind != MemberKind::file;  // libarchive refuses to read some of the others
        member = {.kind = kind,
                  .name = name,
                  .header_offset = found,
                  .data_offset = found,
                  .size = declared};
    }

    void take_metadata(MemberKind kind) {
        mode = la.entry_perm(entry) & 07777;
        uid = gid = std::nullopt;
        if (format == OtherArchive::cpio) {  // others may have none, which is 0 here
            uid = static_cast<uint64_t>(la.entry_uid(entry));
            gid = static_cast<uint64_t>(la.entry_gid(entry));
        }
        mtime = std::nullopt;
        int64_t time = 0;
        if (la.entry_mtime_is_set(entry) != 0 &&
            !__builtin_mul_overflow(int64_t{la.entry_mtime(entry)}, int64_t{1000000000}, &time) &&
            !__builtin_add_overflow(time, int64_t{la.entry_mtime_nsec(entry)}, &time))
            mtime = time;
        link = kind == MemberKind::symbolic_link ? text(la.entry_symlink(entry))
               : kind == MemberKind::hard_link   ? text(la.entry_hardlink(entry))
                                                 : std::string();
        user = text(la.entry_uname(entry));
        group = text(la.entry_gname(entry));
    }

    [[nodiscard]] Error named(int32_t code, std::string cause, const char* help) const {
        return Error(Fault{.code = code,
                           .shard = {},
                           .member = escape(name),
                           .cause = std::move(cause),
                           .help = help});
    }

    // libarchive is at the end. Throws unless that is the end of the archive too, and of the file.
    void check_end() {
        if (end->crcs && end->crcs->size() != found)
            throw Error(SHF_E_FORMAT,
                        "the headers are of " + plural(end->crcs->size(), "member") +
                            ", libarchive found " + std::to_string(found),
                        copy_again);
        if (end->end)
            check_behind(*end->end, 0);
        else if (format == OtherArchive::cpio)
            check_behind(static_cast<uint64_t>(la.filter_bytes(handle.get(), 0)), longest_fill);
        source.verify();
    }

    // Only zeros, at most `fill` of them, from `from` on.
    void check_behind(uint64_t from, uint64_t fill) {
        bool zeros = true;
        for (uint64_t at = from; at < size && zeros && size - from <= fill;) {
            const size_t count = source.read(at, buffer);
            if (count == 0) break;
            zeros = std::all_of(buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(count),
                                [](uint8_t byte) { return byte == 0; });
            at += count;
        }
        if (from >= size || (zeros && size - from <= fill)) return;
        if (options.trailing == Trailing::ignore) {
            trailing = true;
            return;
        }
        throw Error(SHF_E_FORMAT, plural(size - from, "byte") + " behind the end of the archive",
                    "trailing=ignore accepts them; what they are is not read", from);
    }

    // Runs `action`, whose errors repeat where `lasting` says so, or libarchive cannot continue.
    template <typename Do>
    auto guarded(bool lasting, Do action) {
        if (failure) throw Error(*failure);
        fatal = false;
        try {
            return action();
        } catch (...) {
            const Fault fault = describe_exception();
            if (!ends_call(fault.code) && (lasting || fatal || !handle)) failure = fault;
            throw;
        }
    }
};

LibarchiveReader::LibarchiveReader(Source& source, const Options& options, const Cancel& cancel)
    : state_(std::make_unique<State>(source, options, cancel)) {}

LibarchiveReader::~LibarchiveReader() = default;

bool LibarchiveReader::next(Member& member) {
    State& s = *state_;
    return s.guarded(true, [&] {
        if (s.ended) return false;
        s.cancel.check();
        s.resume(0);
        s.at_end = s.at_end || !s.pass_header();
        if (s.at_end) {
            s.check_end();
            s.ended = true;
            return false;
        }
        s.take_member(member);
        ++s.found;
        return true;
    });
}

size_t LibarchiveReader::read(std::span<uint8_t> out) {
    State& s = *state_;
    return s.guarded(false, [&]() -> size_t {
        if (s.flaw != MemberFlaw::none) throw Error(fault_of(s.flaw, s.declared));
        if (s.whole) return 0;
        s.cancel.check();
        s.resume(s.delivered);
        if (s.block.empty() && !s.fetch()) {
            if (s.delivered != s.declared)
                throw Error(SHF_E_TRUNCATED,
                            "a member of " + plural(s.declared, "byte") + " has only " +
                                std::to_string(s.delivered),
                            copy_again);
            if (s.wanted_crc != no_crc && s.wanted_crc != s.crc)
                throw Error(SHF_E_INTEGRITY, "the CRC of the data is wrong", copy_again);
            s.whole = true;
            return 0;
        }
        const size_t count = std::min(out.size(), s.block.size());
        std::copy_n(s.block.begin(), count, out.begin());
        s.block = s.block.subspan(count);
        if (s.wanted_crc != no_crc) s.crc = crc32(out.first(count), s.crc);
        s.delivered += count;
        return count;
    });
}

void LibarchiveReader::read_whole(std::span<uint8_t> out) {
    while (!out.empty()) {
        const size_t count = read(out);
        if (count == 0) break;
        out = out.subspan(count);
    }
    uint8_t more = 0;
    if (!out.empty() || read({&more, 1}) != 0)
        throw Error(SHF_E_INTERNAL, "a member of another size than it has");
}

bool LibarchiveReader::can_continue() const {
    return !state_->failure;
}
uint64_t LibarchiveReader::found() const {
    return state_->found;
}
bool LibarchiveReader::saw_trailing() const {
    return state_->trailing;
}
bool LibarchiveReader::is_slow() const {
    return state_->format != OtherArchive::cpio && state_->format != OtherArchive::iso9660;
}
MemberFlaw LibarchiveReader::flaw() const {
    return state_->flaw;
}
std::optional<uint64_t> LibarchiveReader::crc() const {
    return state_->wanted_crc == no_crc ? std::nullopt : std::optional(state_->wanted_crc);
}
uint64_t LibarchiveReader::mode() const {
    return state_->mode;
}
std::optional<uint64_t> LibarchiveReader::uid() const {
    return state_->uid;
}
std::optional<uint64_t> LibarchiveReader::gid() const {
    return state_->gid;
}
std::optional<int64_t> LibarchiveReader::mtime() const {
    return state_->mtime;
}
std::string_view LibarchiveReader::link() const {
    return state_->link;
}
std::string_view LibarchiveReader::user() const {
    return state_->user;
}
std::string_view LibarchiveReader::group() const {
    return state_->group;
}

const char* libarchive_version() {
    try {
        return libarchive().version_string();
    } catch (const Error&) {  // this system has none
        return nullptr;
    }
}

}  // namespace shf
