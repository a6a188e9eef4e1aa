// What shards are created of: rows that say where the fields of a sample come from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

struct RowField {
    enum class Kind { bytes, file, url };
    std::string name;
    Kind kind;
    std::string value;  // the bytes, the path, or the URL
};

struct Row {
    std::string key;
    std::vector<RowField> fields;
    std::string place;  // for messages: "recipe.txt: line 7"
};

class Rows {
  public:
    Rows() = default;
    virtual ~Rows() = default;
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;

    // False at the end. Throws Failure with the place of what is wrong.
    virtual bool next(Row& row) = 0;
};

// The lines of a text, without their newline, and where they are.
class Lines {
  public:
    // A path, or "-" for standard input. Throws Failure.
    explicit Lines(const std::string& path);
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    // False at the end. Throws Failure when reading fails.
    bool next(std::string& line);
    [[nodiscard]] std::string place() const;
    [[noreturn]] void fail(const std::string& cause, const std::string& help) const;

  private:
    struct Input;
    const std::string path_;
    const std::unique_ptr<Input> input_;
    uint64_t number_ = 0;
};

// Key and field of a member's name: "d/1.x.jpg" is "d/1" and "x.jpg". False when it has none.
bool split_name(std::string_view name, std::string& key, std::string& field);

// A recipe: KEY.FIELD, blanks or a TAB, which ends names with blanks, and a path, file:PATH,
// text:LITERAL, pipe:COMMAND or a URL. `count` lines at most; -1: all.
std::unique_ptr<Rows> recipe_rows(const std::string& path, int64_t count);

struct TableFormat {
    enum class Kind { tsv, csv, jsonl };
    Kind kind;
    std::string columns;  // their names, separated by blanks; empty: the first line has them
    std::string keys;     // pattern of keys where no column is __key__
    std::string folder;   // of relative paths; empty: the working directory
};
// A table: a column FIELD has the bytes of a field, @FIELD the path or URL of them, __key__ the
// key. CSV as RFC 4180 has it; TSV with the escapes \t, \n, \r and \\; JSON objects, one on each
// line.
std::unique_ptr<Rows> table_rows(const std::string& path, const TableFormat& format);

// All files below a folder, in the order of their paths. Paths below it, up to the first dot of
// their last part, are keys. `by_folder`: the first folder is a class, and the sample has its
// number as the field cls; `classes` becomes the names, sorted.
std::unique_ptr<Rows> folder_rows(const std::string& folder, bool by_folder,
                                  std::vector<std::string>& classes);

}  // namespace cli
