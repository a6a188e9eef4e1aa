// The end of a ZIP file: end record, ZIP64 end record and its locator (APPNOTE 4.3.14 to 4.3.16).
#include "codec/magic.h"
#include "core/little_endian.h"
#include "core/options.h"
#include "zip/zip_directory.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace shf {

namespace {

constexpr uint32_t end64_magic = 0x06064b50, locator_magic = 0x07064b50;
constexpr size_t end_size = 22, locator_size = 20, end64_size = 56;
constexpr size_t longest_comment = 65535;

// One candidate for the end record.
class Candidate {
  public:
    // `tail` is the end of the file, `index` where in it the record starts.
    Candidate(Source& source, uint64_t size, const Options& options, std::span<const uint8_t> tail,
              size_t index)
        : source_(source),
          size_(size),
          options_(options),
          tail_(tail),
          record_(tail.subspan(index)),
          at_(size - record_.size()) {}

    // Throws Error when it is not the end of this file.
    ZipEnd read() {
        check_comment();
        read_record();
        uint64_t directory_end = at_;
        if (const auto at64 = find_end64()) {
            read_end64(*at64);
            directory_end = *at64;
        } else if (directory_size_ == UINT32_MAX || offset_ == UINT32_MAX || disk_ == UINT16_MAX) {
            throw bad("the end record refers to a ZIP64 record that is not there");
        }
        if (disk_ != 0 || directory_disk_ != 0)
            throw Error(SHF_E_UNSUPPORTED, "a part of a ZIP file in several parts",
                        "join the parts, as with zip -s 0 PARTS --out WHOLE", at_);
        if (disk_entries_ != entries_)
            throw bad("the end record has two numbers of entries, " +
                      std::to_string(disk_entries_) + " and " + std::to_string(entries_));
        uint64_t stated_end = 0;
        if (__builtin_add_overflow(offset_, directory_size_, &stated_end) ||
            directory_size_ > directory_end || stated_end > directory_end)
            throw bad("the directory of " + plural(directory_size_, "byte") + " at byte " +
                      std::to_string(offset_) + " would reach over the end record at byte " +
                      std::to_string(directory_end));
        ZipEnd end{.directory = directory_end - directory_size_,
                   .directory_size = directory_size_,
                   .entries = entries_,
                   .base = directory_end - stated_end};
        if (base64_ && *base64_ != end.base)
            throw bad(
                "the ZIP64 record and the directory lie at different distances from where "
                "the end records say");
        if (end.base > 0) check_base(end);
        if (end.entries > 0 && !starts_directory(end))
            throw Error(SHF_E_FORMAT, "there is no directory where the end record says",
                        "copy the file again", end.directory);
        return end;
    }

  private:
    [[nodiscard]] Error bad(std::string cause, std::string help = "copy the file again") const {
        return Error(SHF_E_FORMAT, std::move(cause), std::move(help), at_);
    }

    void check_comment() const {
        const uint64_t comment_end = at_ + end_size + le16(&record_[20]);
        if (comment_end > size_)
            throw bad("the comment of the end record reaches over the end of the file");
        if (comment_end < size_ && options_.trailing != Trailing::ignore)
            throw bad(plural(size_ - comment_end, "byte") + " after the end of the ZIP file",
                      "trailing=ignore accepts them");
    }

    void read_record() {
        disk_ = le16(&record_[4]);
        directory_disk_ = le16(&record_[6]);
        disk_entries_ = le16(&record_[8]);
        entries_ = le16(&record_[10]);
        directory_size_ = le32(&record_[12]);
        offset_ = le32(&record_[16]);
    }

    [[nodiscard]] bool has_sentinel() const {
        return disk_ == UINT16_MAX || directory_disk_ == UINT16_MAX ||
               disk_entries_ == UINT16_MAX || entries_ == UINT16_MAX ||
               directory_size_ == UINT32_MAX || offset_ == UINT32_MAX;
    }

    // What lies in the tail is not read again. Fewer bytes are there when the file has become
    // shorter.
    void fetch(uint64_t offset, std::span<uint8_t> out) const {
        if (const uint64_t tail_at = size_ - tail_.size(); offset >= tail_at) {
            const auto there = tail_.subspan(static_cast<size_t>(offset - tail_at), out.size());
            std::copy(there.begin(), there.end(), out.begin());
            return;
        }
        if (source_.read(offset, out) < out.size())
            throw Error(SHF_E_TRUNCATED, "the file became shorter while it was read", shrunk_help);
    }

    [[nodiscard]] bool is_central(uint64_t offset) const {
        if (size_ - offset < sizeof zip_central_magic) return false;
        std::array<uint8_t, sizeof zip_central_magic> magic;
        fetch(offset, magic);
        return le32(magic.data()) == zip_central_magic;
    }

    // Requests the whole directory at once: ZipDirectory reads the rest of it later.
    [[nodiscard]] bool starts_directory(const ZipEnd& end) const {
        const ByteRange whole{end.directory, end.directory_size};
        if (end.directory_size <= options_.memory) source_.prefetch({&whole, 1});
        return is_central(end.directory);
    }

    // Reads the ZIP64 end record when one that ends at `end` starts at `at`.
    bool fetch_end64(uint64_t at, uint64_t end) {
        if (at > end || end - at < end64_size) return false;
        fetch(at, end64_);
        return le32(end64_.data()) == end64_magic && le64(&end64_[4]) == end - at - 12;
    }

    // The offset of the ZIP64 end record, which lies right before its locator, which lies right
    // before the end record.
    std::optional<uint64_t> find_end64() {
        if (at_ < locator_size + end64_size) return std::nullopt;
        std::array<uint8_t, locator_size> locator;
        const uint64_t locator_at = at_ - locator_size;
        fetch(locator_at, locator);
        if (le32(locator.data()) != locator_magic) return std::nullopt;
        const uint64_t stated = le64(&locator[8]);
        if (fetch_end64(stated, locator_at)) {
            base64_ = 0;
        } else if (const uint64_t moved = locator_at - end64_size;
                   moved > stated && fetch_end64(moved, locator_at)) {
            base64_ = moved - stated;
        } else if (has_sentinel()) {
            throw bad("the ZIP64 end record does not lie right before its locator");
        } else {
            return std::nullopt;  // the bytes before the end record only look like a locator
        }
        if (le32(&locator[4]) != 0 || le32(&locator[16]) > 1)
            throw Error(SHF_E_UNSUPPORTED, "a part of a ZIP file in several parts",
                        "join the parts, as with zip -s 0 PARTS --out WHOLE", at_);
        return locator_at - (le64(&end64_[4]) + 12);
    }

    // Takes the 64-bit values, which must be the others wherever those are not sentinels.
    void read_end64(uint64_t at) {
        const auto take = [&](uint64_t& value, uint64_t sentinel, uint64_t wide) {
            if (value != sentinel && value != wide)
                throw Error(SHF_E_AMBIGUOUS,
                            "the end record says " + std::to_string(value) +
                                " where the ZIP64 end record says " + std::to_string(wide),
                            "write the file again", at);
            value = wide;
        };
        take(disk_, UINT16_MAX, le32(&end64_[16]));
        take(directory_disk_, UINT16_MAX, le32(&end64_[20]));
        take(disk_entries_, UINT16_MAX, le64(&end64_[24]));
        take(entries_, UINT16_MAX, le64(&end64_[32]));
        take(directory_size_, UINT32_MAX, le64(&end64_[40]));
        take(offset_, UINT32_MAX, le64(&end64_[48]));
    }

    // Data before the ZIP file, as in a self-extractor, or a gap, or a wrong size.
    void check_base(const ZipEnd& end) const {
        const bool shifted = end.entries == 0 ? end.directory_size == 0 : is_central(end.directory);
        if (!shifted)
            throw bad("the directory of " + plural(directory_size_, "byte") + " at byte " +
                      std::to_string(offset_) + " does not end at the end record");
        if (options_.zip_prefix != Leniency::allow)
            throw bad(plural(end.base, "byte") + " before the start of the ZIP file",
                      "zip_prefix=allow accepts them, as in self-extracting files");
    }

    Source& source_;
    const uint64_t size_;
    const Options& options_;
    const std::span<const uint8_t> tail_, record_;
    const uint64_t at_;
    uint64_t disk_ = 0, directory_disk_ = 0, disk_entries_ = 0, entries_ = 0;
    uint64_t directory_size_ = 0, offset_ = 0;
    std::array<uint8_t, end64_size> end64_{};
    std::optional<uint64_t> base64_;  // how far the ZIP64 record lies behind where it should be
};

// No end record at all.
[[noreturn]] void no_end(Source& source, uint64_t size) {
    std::array<uint8_t, 4> head{};
    const size_t have = source.read(0, head);
    if (size == 0 || (have == head.size() && has_zip_magic(head)))
        throw Error(
            SHF_E_TRUNCATED,
            "the ZIP file ends without its directory; " + plural(size, "byte") + " are there",
            "copy it again", size);
    throw Error(SHF_E_FORMAT, "this is not a ZIP file: it has no end record", "check the URL", 0);
}

// Where end records may begin in the end of a file, the last one first. In small files, such as an
// .npz in a shard, the search is most of the work: find() skips what is not 'P' with SIMD.
std::vector<size_t> end_records(std::span<const uint8_t> tail) {
    using namespace std::string_view_literals;
    const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
    std::vector<size_t> found;
    for (size_t i = 0; (i = text.find("PK\5\6"sv, i)) != text.npos && tail.size() - i >= end_size;
         ++i)
        found.push_back(i);
    std::reverse(found.begin(), found.end());
    return found;
}

}  // namespace

ZipEnd find_zip_end(Source& source, uint64_t size, const Options& options) {
    const auto tail_size =
        static_cast<size_t>(std::min<uint64_t>(size, end_size + longest_comment));
    std::vector<uint8_t> tail(tail_size);
    if (source.read(size - tail_size, tail) < tail_size)
        throw Error(SHF_E_TRUNCATED, "the file became shorter while it was read", shrunk_help);
    std::optional<ZipEnd> found;
    std::optional<uint64_t> second;
    std::optional<Error> last;  // of the candidate that is nearest to the end of the file
    // Any candidate that fits in all respects counts: readers differ in which one they take (Z8).
    for (const size_t i : end_records(tail)) {
        const uint64_t at = size - tail_size + i;
        try {
            const ZipEnd end = Candidate(source, size, options, tail, i).read();
            if (found) second = at;
            found = end;
        } catch (const Error& error) {
            if (error.fault().os_error != 0) throw;
            if (!last) last = error;
        }
    }
    if (second)
        throw Error(SHF_E_AMBIGUOUS, "the file has two end records that both fit",
                    "write the file again without the comment", *second);
    if (found) return *found;
    if (last) throw Error(*last);
    no_end(source, size);
}

}  // namespace shf
