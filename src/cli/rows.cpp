#include "cli/rows.h"

#include "cli/library.h"
#include "cli/terminal.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

namespace cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* blanks = " \t\r\v\f";

RowField field_from(std::string name, const std::string& from) {
    using Kind = RowField::Kind;
    if (from.starts_with("text:")) return {std::move(name), Kind::bytes, from.substr(5)};
    if (from.starts_with("file:") && !from.starts_with("file://"))
        return {std::move(name), Kind::file, from.substr(5)};
    const bool is_url =
        from == "-" || from.starts_with("pipe:") || from.find("://") != std::string::npos;
    return {std::move(name), is_url ? Kind::url : Kind::file, from};
}

class Recipe final : public Rows {
  public:
    Recipe(const std::string& path, int64_t count) : lines_(path), left_(count) {}

    bool next(Row& row) override {
        row.fields.clear();
        if (!waiting_ && !read()) return false;
        row.key = waiting_->key;
        row.place = waiting_->place;
        do {
            row.fields.push_back(std::move(waiting_->field));
            waiting_.reset();
        } while (read() && waiting_->key == row.key);
        return true;
    }

  private:
    struct Line {
        std::string key;
        RowField field;
        std::string place;
    };

    bool read() {
        std::string line;
        if (left_ == 0 || !lines_.next(line)) return false;
        if (left_ > 0) --left_;
        // Names with blanks end at a TAB.
        const size_t tab = line.find('\t');
        const size_t blank = tab != std::string::npos ? tab : line.find_first_of(blanks);
        const size_t source =
            blank == std::string::npos ? blank : line.find_first_not_of(blanks, blank);
        if (blank == 0 || source == std::string::npos)
            lines_.fail("\"" + printable(line) + "\" is no name and source",
                        "write KEY.FIELD, a blank, and a path, text:LITERAL or URL");
        const std::string name = line.substr(0, blank);
        std::string from = line.substr(source);
        if (!from.starts_with("text:") && from.ends_with('\r')) from.pop_back();
        std::string key;
        std::string field;
        if (!split_name(name, key, field))
            lines_.fail("the name \"" + printable(name) + "\" has no key and field",
                        "names are KEY.FIELD, as 0001.jpg");
        waiting_ = Line{key, field_from(field, from), lines_.place()};
        return true;
    }

    Lines lines_;
    int64_t left_;
    std::optional<Line> waiting_;
};

class Folder final : public Rows {
  public:
    Folder(const std::string& folder, bool by_folder, std::vector<std::string>& classes) {
        const fs::path root(folder);
        std::error_code error;
        fs::recursive_directory_iterator walk(root, fs::directory_options::follow_directory_symlink,
                                              error);
        for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error))
            if (std::error_code unknown; walk->is_regular_file(unknown))
                paths_.push_back(walk->path().lexically_relative(root).string());
        if (error) throw Failure(failed, printable(folder) + ": " + error.message());
        // Files of a sample lie together: by key, then by name.
        std::sort(paths_.begin(), paths_.end(), [](const std::string& a, const std::string& b) {
            std::string key_a;
            std::string key_b;
            std::string rest;
            (void)split_name(a, key_a, rest);
            (void)split_name(b, key_b, rest);
            return key_a != key_b ? key_a < key_b : a < b;
        });
        root_ = root.string();
        if (by_folder) find_classes(classes);
    }

    bool next(Row& row) override {
        row.fields.clear();
        std::string key;
        std::string field;
        for (; next_ < paths_.size(); ++next_) {
            const std::string& path = paths_[next_];
            if (!split_name(path, key, field)) {
                say("warning: " + printable(root_ + "/" + path) +
                    " is left out: its name has no key and field");
                continue;
            }
            if (!row.fields.empty() && key != row.key) break;
            row.key = key;
            row.place = root_ + "/" + path;
            row.fields.push_back({field, RowField::Kind::file, root_ + "/" + path});
        }
        if (row.fields.empty()) return false;
        if (!classes_.empty()) {
            const std::string name = row.key.substr(0, row.key.find('/'));
            row.fields.push_back({"cls", RowField::Kind::bytes, std::to_string(classes_.at(name))});
        }
        return true;
    }

  private:
    void find_classes(std::vector<std::string>& classes) {
        for (const std::string& path : paths_) {
            const size_t slash = path.find('/');
            if (slash == std::string::npos)
                throw Failure(failed, printable(root_ + "/" + path) +
                                          " is in no folder of a class; help: without --by-folder "
                                          "samples get no class");
            classes_[path.substr(0, slash)] = 0;
        }
        for (auto& [name, number] : classes_) {
            number = classes.size();
            classes.push_back(name);
        }
    }

    std::string root_;
    std::vector<std::string> paths_;
    std::map<std::string, size_t> classes_;
    size_t next_ = 0;
};

}  // namespace

struct Lines::Input {
    std::ifstream file;
    std::istream* from = &file;
};

Lines::Lines(const std::string& path) : path_(path), input_(std::make_unique<Input>()) {
    if (path == "-") {
        input_->from = &std::cin;
        return;
    }
    input_->file.open(path, std::ios::binary);
    if (!input_->file)
        throw Failure(failed, printable(path) + ": " + std::strerror(errno) +
                                  "; help: give the path of a file, or - for standard input");
}

Lines::~Lines() = default;

bool Lines::next(std::string& line) {
    ++number_;
    if (std::getline(*input_->from, line)) return true;
    if (input_->from->bad()) throw Failure(failed, printable(path_) + ": it cannot be read");
    return false;
}

std::string Lines::place() const {
    return printable(path_) + ": line " + std::to_string(number_);
}

void Lines::fail(const std::string& cause, const std::string& help) const {
    throw Failure(failed, place() + ": " + cause + "; help: " + help);
}

bool split_name(std::string_view name, std::string& key, std::string& field) {
    const size_t slash = name.rfind('/');
    const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
    const size_t dot = name.find('.', base);
    if (dot == std::string_view::npos || dot == base || dot + 1 == name.size()) return false;
    key = name.substr(0, dot);
    field = name.substr(dot + 1);
    return true;
}

std::unique_ptr<Rows> recipe_rows(const std::string& path, int64_t count) {
    return std::make_unique<Recipe>(path, count);
}

std::unique_ptr<Rows> folder_rows(const std::string& folder, bool by_folder,
                                  std::vector<std::string>& classes) {
    return std::make_unique<Folder>(folder, by_folder, classes);
}

}  // namespace cli
