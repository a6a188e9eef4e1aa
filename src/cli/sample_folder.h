// A sample as files in a folder, for a command that changes it.
#pragma once

#include "cli/owned_sample.h"

#include <string>
#include <vector>

namespace cli {

// A new folder in `parent` with the files BASE.FIELD and BASE.__key__. It is removed at the end,
// with all that is in it then.
class SampleFolder {
  public:
    // Throws Failure; a field whose name cannot be that of a file is one.
    SampleFolder(const std::string& parent, const std::string& base, const SampleView& sample);
    ~SampleFolder();
    SampleFolder(const SampleFolder&) = delete;
    SampleFolder& operator=(const SampleFolder&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    // The sample that the files BASE.* are now. The fields that it had before come first, in their
    // order, then new ones by name. The key is what BASE.__key__ has, without a newline at its end;
    // `key` where the file is gone.
    [[nodiscard]] OwnedSample collect(std::string_view key) const;
    // The samples that the files BASE-NUMBER.* are, by their numbers. The key is what
    // BASE-NUMBER.__key__ has, else KEY/NUMBER.
    [[nodiscard]] std::vector<OwnedSample> collect_many() const;

  private:
    struct File {
        std::string number;  // of BASE-NUMBER; empty: of BASE
        std::string field;
        std::string path;
    };
    [[nodiscard]] std::vector<File> files() const;
    [[nodiscard]] OwnedSample made_of(const std::vector<File>& files, std::string key) const;

    std::string path_;
    const std::string base_;
    const std::string key_;
    std::vector<std::string> fields_;
};

}  // namespace cli
