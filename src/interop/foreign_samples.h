// The samples of a plain tar as other tools see them: what their index files are written from, and
// compared with.
#pragma once

#include "sample/name.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class Cancel;
class Source;
struct Options;

// The regular files in a plain tar, in order, whether they belong to samples or not.
class TarFiles {
  public:
    struct File {
        uint64_t header;  // offset of the first header that belongs to it
        uint64_t data;    // offset of its data
        uint64_t size;
        uint64_t name_at = 0;  // in names_
        uint32_t name_size = 0;
    };

    // Those that a writer adds.
    TarFiles() = default;
    // Throws Error when the tar is damaged, or a file in it is not there as it is (UNSUPPORTED).
    TarFiles(Source& source, const Options& options, const Cancel& cancel);

    // Appends a file. Throws Error(LIMIT).
    void add(std::string_view name, File file);
    void end_at(uint64_t offset) { end_ = offset; }

    [[nodiscard]] size_t size() const { return files_.size(); }
    [[nodiscard]] const File& operator[](size_t i) const { return files_[i]; }
    [[nodiscard]] std::string_view name(size_t i) const {
        return std::string_view(names_).substr(files_[i].name_at, files_[i].name_size);
    }
    // Where the end marker starts.
    [[nodiscard]] uint64_t end() const { return end_; }

  private:
    std::vector<File> files_;
    std::string names_;
    uint64_t end_ = 0;
};

// How a tool splits a member's name. No key: the tool passes over the member.
using SplitName = MemberName (*)(std::string_view name);

// wds2idx of DALI: files without a dot are samples too, and so is metadata; hidden files are not.
// The key of "read.me/LICENSE" is "read.me/LICENS" there, and its extension the whole name.
MemberName split_dali_name(std::string_view name);
// Megatron-Energon. Its expression makes of "dir/.x" the key "dir/" and the field "x", as that of
// webdataset does, unless "dir" has a dot.
MemberName split_energon_name(std::string_view name);
// wids: the field starts at the first dot after the last slash that has a dot after it.
MemberName split_wids_name(std::string_view name);

// Runs of files with the same key. Files without a key end no run.
class FileGroups {
  public:
    FileGroups(const TarFiles& files, SplitName split);

    [[nodiscard]] size_t size() const { return first_.size() - 1; }
    // The files of a sample, at least one, by their numbers.
    [[nodiscard]] std::span<const uint32_t> operator[](size_t sample) const {
        return std::span(numbers_).subspan(first_[sample], first_[sample + 1] - first_[sample]);
    }

  private:
    std::vector<uint32_t> numbers_, first_;
};

}  // namespace shf
