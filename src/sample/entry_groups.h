// The samples of an archive with a directory: groups of entries, in the order of the archive.
#pragma once

#include "core/member.h"
#include "sample/block.h"
#include "sample/schema_set.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shf {

class LibarchiveDirectory;
class ZipDirectory;
struct Options;

// The entries of a directory, in the order in which they are grouped.
struct EntryList {
    size_t count;
    // Entry `i` of that order, and its place in the directory. Throws Error.
    std::function<Member(size_t i, uint32_t& entry)> at;
    bool counted;  // their offsets are numbers, as MemberFeed::counts_members() has it
};

class EntryGroups {
  public:
    // Throws Error when the entries are no samples, or there are none. What is wrong with the data
    // of an entry is said when it is read.
    EntryGroups(const EntryList& entries, const Options& options);

    [[nodiscard]] size_t size() const { return schema_.size(); }
    // The entries of a sample, at least one.
    [[nodiscard]] std::span<const uint32_t> operator[](size_t sample) const {
        const size_t begin = first_entry_[sample];
        return std::span(entries_).subspan(begin, first_entry_[sample + 1] - begin);
    }
    // The different lists of field names, and which of them a sample has.
    [[nodiscard]] std::span<const std::shared_ptr<const Schema>> schemas() const {
        return schemas_.list();
    }
    [[nodiscard]] size_t schema_number(size_t sample) const { return schema_[sample]; }

  private:
    class Grouping;

    std::vector<uint32_t> entries_;         // of all samples
    std::vector<uint32_t> first_entry_{0};  // samples + 1
    std::vector<uint32_t> schema_;          // of each sample
    SchemaSet schemas_;
};

EntryGroups entry_groups(const ZipDirectory& directory, const Options& options);
EntryGroups entry_groups(const LibarchiveDirectory& directory, const Options& options);

}  // namespace shf
