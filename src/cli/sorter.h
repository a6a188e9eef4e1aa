// Sorts any number of samples in bounded memory: runs of them are sorted and kept in files, which
// are merged (Knuth, The Art of Computer Programming 3, section 5.4).
#pragma once

#include "cli/sample_view.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

class Sorter {
  public:
    // `folder` has the files, which have no names and vanish with the process. About `memory` bytes
    // are held, and one sample from each of at most 128 runs. `reverse`: the largest first.
    Sorter(std::string folder, uint64_t memory, bool reverse);

    // Copies the sample. Samples of equal order keep the order in which they were added.
    void add(const std::string& order, const SampleView& sample);
    // Calls `take` with all samples in their order. Call once, after all were added.
    void finish(const std::function<void(const SampleView&)>& take);

  private:
    struct CloseFile {
        void operator()(std::FILE* file) const { (void)std::fclose(file); }
    };
    using File = std::unique_ptr<std::FILE, CloseFile>;
    struct Entry {
        uint64_t start;  // of the record
        uint64_t size;
    };
    class Reader;

    void sort_run();
    void spill();
    [[nodiscard]] File new_file() const;
    [[nodiscard]] bool comes_before(std::string_view a, std::string_view b) const {
        return reverse_ ? b < a : a < b;
    }
    // Calls `take` with the records of files [first, last) in their order.
    void merge(size_t first, size_t last, const std::function<void(std::string_view)>& take);

    const std::string folder_;
    const uint64_t memory_;
    const bool reverse_;
    std::string records_;  // of the run that is gathered
    std::vector<Entry> entries_;
    std::vector<File> runs_;
};

}  // namespace cli
