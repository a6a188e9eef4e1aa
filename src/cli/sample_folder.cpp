#include "cli/sample_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view key_field = "__key__";

void write_file(const std::string& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file)
        throw Failure(failed, printable(path) + ": it cannot be written: " + std::strerror(errno));
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    if (!file)
        throw Failure(failed, printable(path) + ": it cannot be read: " + std::strerror(errno));
    return bytes;
}

std::string read_key(const std::string& path) {
    std::string key = read_file(path);
    if (key.ends_with('\n')) key.pop_back();
    return key;
}

}  // namespace

SampleFolder::SampleFolder(const std::string& parent, const std::string& base,
                           const SampleView& sample)
    : path_(parent + "/shardfeed-XXXXXX"), base_(base), key_(sample.key) {
    if (!::mkdtemp(path_.data()))
        throw Failure(failed, printable(parent) + ": no folder can be made: " +
                                  std::strerror(errno) + "; help: --tmpdir names another one");
    try {
        for (const FieldView& field : sample.fields) {
            if (field.name.find('/') != std::string_view::npos || field.name == key_field)
                throw Failure(failed, sample.name() + ": the field " + printable(field.name) +
                                          " cannot be a file; help: --fields renames or drops it");
            write_file(path_ + "/" + base_ + "." + std::string(field.name), text(field.data));
            fields_.emplace_back(field.name);
        }
        write_file(path_ + "/" + base_ + "." + std::string(key_field), sample.key);
    } catch (...) {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
        throw;
    }
}

SampleFolder::~SampleFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::vector<SampleFolder::File> SampleFolder::files() const {
    std::vector<File> found;
    std::error_code error;
    fs::directory_iterator listing(path_, error);
    if (error)
        throw Failure(failed,
                      "the command removed its folder; help: it may change and remove the "
                      "files in it");
    for (const fs::directory_entry& entry : listing) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(base_) || !entry.is_regular_file(error)) continue;
        const size_t dot = name.find('.', base_.size());
        if (dot == std::string::npos) continue;
        std::string number = name.substr(base_.size(), dot - base_.size());
        if (!number.empty()) {
            if (number.size() < 2 || number[0] != '-' ||
                number.find_first_not_of("0123456789", 1) != std::string::npos)
                continue;
            number.erase(0, 1);
        }
        found.push_back({number, name.substr(dot + 1), entry.path().string()});
    }
    const auto place = [&](const File& file) {
        return std::find(fields_.begin(), fields_.end(), file.field) - fields_.begin();
    };
    std::sort(found.begin(), found.end(), [&](const File& a, const File& b) {
        return place(a) != place(b) ? place(a) < place(b) : a.field < b.field;
    });
    return found;
}

OwnedSample SampleFolder::made_of(const std::vector<File>& files, std::string key) const {
    OwnedSample sample = {.key = std::move(key), .fields = {}};
    for (const File& file : files)
        if (file.field == key_field)
            sample.key = read_key(file.path);
        else
            sample.fields.emplace_back(file.field, read_file(file.path));
    return sample;
}

OwnedSample SampleFolder::collect(std::string_view key) const {
    std::vector<File> mine = files();
    std::erase_if(mine, [](const File& file) { return !file.number.empty(); });
    return made_of(mine, std::string(key));
}

std::vector<OwnedSample> SampleFolder::collect_many() const {
    // Shorter numbers are smaller ones.
    const auto is_less = [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    std::map<std::string, std::vector<File>, decltype(is_less)> groups(is_less);
    for (File& file : files())
        if (!file.number.empty()) groups[file.number].push_back(file);
    std::vector<OwnedSample> made;
    for (const auto& [number, group] : groups) {
        made.push_back(made_of(group, key_ + "/" + number));
        if (made.back().fields.empty()) made.pop_back();
    }
    return made;
}

}  // namespace cli
