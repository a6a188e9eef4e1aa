// An Archive is the members of one tar, ZIP file or other archive.
#pragma once

#include "core/cancel.h"
#include "core/options.h"
#include "dataset/members.h"
#include "dataset/name_table.h"
#include "dataset/scratch_pool.h"
#include "io/source_context.h"
#include "io/whole_file.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shf {

// Read-only and without locks once it is open: any number of threads, and forked children
// use it as it is.
class Archive {
  public:
    // Opens the file at `url` and lists its members. Throws Error.
    Archive(const std::string& url, const Options& options);
    // The same over bytes that must outlive the archive.
    Archive(std::span<const uint8_t> file, const Options& options);

    [[nodiscard]] const Members& members() const { return *members_; }
    // Throws Error: NOT_FOUND, AMBIGUOUS.
    [[nodiscard]] size_t find(std::string_view name) const;
    // Throws Error unless what is known of the member allows to read it.
    void check(size_t position) const;
    // Each fills its output, which has the member's size, and throws Error.
    void read(size_t position, std::span<uint8_t> out) const;
    // outputs[i] has the size of member positions[i]. All are tried; throws what was wrong with the
    // first bad one in the list.
    void read_many(std::span<const uint64_t> positions, std::span<uint8_t* const> outputs) const;
    [[nodiscard]] std::span<const uint8_t> view(size_t position) const;

  private:
    void list(std::span<const uint8_t> memory);
    void take_into_memory(Sequential& input, const char* help);
    void expect(const MemberInfo& member) const;

    const Options options_;
    const std::string url_;
    Cancel cancel_;  // nobody requests it
    SourceUse source_use_;
    WholeFile whole_;  // when the file cannot be read in place
    std::unique_ptr<Source> source_;
    std::shared_ptr<const Mapping> mapping_;  // NULL: the file is read
    std::unique_ptr<Members> members_;
    std::optional<NameTable> names_;
    mutable ScratchPool scratches_;
};

}  // namespace shf
