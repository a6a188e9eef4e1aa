// Tables as rows.
#include "cli/base64.h"
#include "cli/library.h"
#include "cli/number_pattern.h"
#include "cli/rows.h"
#include "cli/terminal.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <sstream>

namespace cli {

namespace {

class Table final : public Rows {
  public:
    Table(const std::string& path, const TableFormat& format)
        : lines_(path), format_(format), keys_(format.keys) {
        std::istringstream words(format.columns);
        std::string word;
        while (words >> word) columns_.push_back(word);
        if (!columns_.empty() || format.kind == TableFormat::Kind::jsonl) return;
        if (!read_cells(columns_))
            throw Failure(failed, printable(path) +
                                      ": the table is empty; help: its first line has the names of "
                                      "the columns, or --columns");
    }

    bool next(Row& row) override {
        row.key.clear();
        row.fields.clear();
        const bool found =
            format_.kind == TableFormat::Kind::jsonl ? next_object(row) : next_cells(row);
        if (!found) return false;
        if (row.key.empty()) row.key = keys_.text(number_);
        ++number_;
        row.place = place_;
        return true;
    }

  private:
    bool next_cells(Row& row) {
        std::vector<std::string> cells;
        if (!read_cells(cells)) return false;
        if (cells.size() != columns_.size())
            lines_.fail(std::to_string(cells.size()) + " cells for " +
                            std::to_string(columns_.size()) + " columns",
                        "every line has the same number of cells");
        for (size_t i = 0; i < cells.size(); ++i) add(row, columns_[i], std::move(cells[i]));
        return true;
    }

    bool next_object(Row& row) {
        using Json = nlohmann::ordered_json;
        std::string line;
        do {
            if (!lines_.next(line)) return false;
        } while (line.find_first_not_of(" \t\r") == std::string::npos);
        place_ = lines_.place();
        const Json object = Json::parse(line, nullptr, false);
        if (!object.is_object())
            lines_.fail("this is no JSON object", "write {\"FIELD\": VALUE, ...} on one line");
        for (const auto& [name, value] : object.items())
            if (!value.is_null()) add(row, name, bytes_of(name, value));
        return true;
    }

    // Of a text, of {"base64": TEXT} as `shardfeed json` writes what is no UTF-8, or the JSON
    // itself.
    std::string bytes_of(const std::string& name, const nlohmann::ordered_json& value) const {
        if (value.is_string()) return value.get<std::string>();
        if (!value.is_object() || value.size() != 1 || !value.contains("base64") ||
            !value["base64"].is_string())
            return value.dump();
        const std::optional<std::string> bytes = from_base64(value["base64"].get<std::string>());
        if (!bytes)
            lines_.fail("what " + printable(name) + " has as base64 is none",
                        "write the digits of RFC 4648 with their padding");
        return *bytes;
    }

    void add(Row& row, const std::string& column, std::string value) const {
        if (column == "__key__") {
            if (value.empty()) lines_.fail("the key is empty", "give every sample a key");
            row.key = std::move(value);
        } else if (column.starts_with('@')) {
            const bool is_url = value.find("://") != std::string::npos;
            const bool is_relative = !is_url && !value.starts_with('/') && !format_.folder.empty();
            row.fields.push_back({column.substr(1),
                                  is_url ? RowField::Kind::url : RowField::Kind::file,
                                  is_relative ? format_.folder + "/" + value : value});
        } else {
            row.fields.push_back({column, RowField::Kind::bytes, std::move(value)});
        }
    }

    // The cells of the next line, which in CSV may have newlines inside quotes.
    bool read_cells(std::vector<std::string>& cells) {
        std::string line;
        if (!lines_.next(line)) return false;
        place_ = lines_.place();
        cells.assign(1, "");
        if (format_.kind == TableFormat::Kind::tsv)
            split_tabs(line, cells);
        else
            split_commas(line, cells);
        return true;
    }

    void split_tabs(std::string_view line, std::vector<std::string>& cells) const {
        if (line.ends_with('\r')) line.remove_suffix(1);
        for (size_t i = 0; i < line.size(); ++i) {
            if (line[i] == '\t') {
                cells.emplace_back();
                continue;
            }
            if (line[i] != '\\') {
                cells.back() += line[i];
                continue;
            }
            constexpr std::string_view codes = "tnr\\";
            constexpr std::string_view meanings = "\t\n\r\\";
            const size_t code = i + 1 < line.size() ? codes.find(line[i + 1]) : std::string::npos;
            if (code == std::string::npos)
                lines_.fail("a backslash without t, n, r or a backslash",
                            "write \\\\ for a backslash");
            cells.back() += meanings[code];
            ++i;
        }
    }

    // RFC 4180, section 2.
    void split_commas(std::string line, std::vector<std::string>& cells) {
        bool quoted = false;
        for (size_t i = 0;; ++i) {
            if (i >= line.size()) {
                if (!quoted) return;
                cells.back() += '\n';
                if (!lines_.next(line))
                    throw Failure(failed, place_ +
                                              ": a quote has no end; help: double quotes "
                                              "inside cells");
                i = static_cast<size_t>(-1);
                continue;
            }
            const char c = line[i];
            if (quoted) {
                if (c != '"')
                    cells.back() += c;
                else if (i + 1 < line.size() && line[i + 1] == '"')
                    cells.back() += line[++i];
                else
                    quoted = false;
            } else if (c == ',') {
                cells.emplace_back();
            } else if (c == '"' && cells.back().empty()) {
                quoted = true;
            } else if (c != '\r' || i + 1 < line.size()) {
                cells.back() += c;
            }
        }
    }

    Lines lines_;
    const TableFormat format_;
    const NumberPattern keys_;
    std::vector<std::string> columns_;
    std::string place_;
    uint64_t number_ = 0;
};

}  // namespace

std::unique_ptr<Rows> table_rows(const std::string& path, const TableFormat& format) {
    return std::make_unique<Table>(path, format);
}

}  // namespace cli
