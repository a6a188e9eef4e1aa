// A folder that receives fields of samples as files.
#pragma once

#include <shardfeed.h>

#include <string>
#include <string_view>

namespace cli {

class FieldFolder {
  public:
    // The folder is made where it is not there. Throws Failure.
    explicit FieldFolder(const std::string& path);
    ~FieldFolder();
    FieldFolder(const FieldFolder&) = delete;
    FieldFolder& operator=(const FieldFolder&) = delete;

    // Writes the file KEY.FIELD, with the folders that the key names. Nothing
    // outside of the folder is touched, no file replaced, no symbolic link followed. Throws
    // Failure: names that are absolute, that have a component "..", or that other systems take for
    // something else.
    void write(std::string_view key, std::string_view field, shf_bytes data);

  private:
    const std::string path_;
    int folder_;  // its descriptor
};

}  // namespace cli
