// tsv, json: tables of the fields of samples.
#include "cli/base64.h"
#include "cli/field_list.h"
#include "cli/json_report.h"
#include "cli/sample_source.h"
#include "cli/sample_view.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace cli {

namespace {

// A cell; none where the sample lacks the field.
using Cell = std::optional<std::string_view>;

struct Column {
    std::string name;
    FieldList field;
};

std::vector<Column> columns_of(const std::vector<std::string>& lists) {
    std::vector<Column> made;
    for (const std::string& list : lists) {
        std::istringstream words(list);
        std::string word;
        while (words >> word)
            made.push_back({word.substr(0, word.find_first_of(":,")), FieldList({word})});
    }
    return made;
}

class TableVerb : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        arguments
            .add_option("-f,--fields,--field,-k,--keys", fields_,
                        "the columns, separated by blanks: cls, img:png,jpg (alternatives, and "
                        "another name); the default is the fields of the first sample")
            .type_name("LIST")
            .repeatable();
        arguments
            .add_option("--missing", missing_,
                        "samples without such a field: fail, skip, or keep with an empty cell")
            .type_name("WHAT")
            .one_of({"fail", "skip", "keep"});
        arguments.add_option("-c,--count", count_, "stop after N samples").type_name("N");
        arguments.add_flag("--no-key,--nokey", no_key_, "no column __key__");
    }
    const char* openers() const override { return "stream"; }

    int run(const LibraryOptions& options) override {
        columns_ = columns_of(fields_);
        const bool chosen = !columns_.empty();
        const Missing missing = FieldList::missing_of(missing_);
        StreamSource source(inputs_, options.handle());
        Output out;
        try {
            print(source, chosen, missing, out);
        } catch (const Failure&) {
            out.flush();  // what comes before the fault is right
            throw;
        }
        out.flush();
        return done;
    }

  protected:
    [[nodiscard]] virtual std::string header() const = 0;
    [[nodiscard]] virtual std::string row(std::string_view key) const = 0;

    [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
    [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }
    [[nodiscard]] bool has_key() const { return !no_key_; }

  private:
    void print(StreamSource& source, bool chosen, Missing missing, Output& out) {
        bool begun = false;
        for (uint64_t number = 0; !count_ || number < *count_; ++number) {
            const Sample sample = source.next();
            if (!sample) break;
            const SampleView view = view_of(sample.get(), room_);
            if (!begun && !chosen)
                for (const FieldView& field : view.fields)
                    columns_.push_back({std::string(field.name), FieldList({})});
            if (!begun) out.write(header());
            begun = true;
            if (chosen ? choose(view, missing) : take_all(view, missing)) out.write(row(view.key));
        }
        if (!begun && chosen) out.write(header());
    }

    // Fills the cells; false for a sample that is left out.
    bool choose(const SampleView& sample, Missing missing) {
        cells_.clear();
        for (const Column& column : columns_) {
            if (!column.field.choose(sample, missing, found_)) return false;
            cells_.push_back(found_.empty() ? Cell() : Cell(text(found_[0].data)));
        }
        return true;
    }

    // The same for columns of the first sample: a field that has no column is never lost silently.
    bool take_all(const SampleView& sample, Missing missing) {
        cells_.clear();
        size_t taken = 0;
        for (const Column& column : columns_) {
            const FieldView* const field = sample.find(column.name);
            taken += field ? 1 : 0;
            cells_.push_back(field ? Cell(text(field->data)) : Cell());
            if (field || missing == Missing::keep) continue;
            if (missing == Missing::skip) return false;
            throw Failure(failed, sample.name() + " has no field " + printable(column.name) +
                                      "; help: name the columns with -f, or --missing keep");
        }
        if (taken == sample.fields.size()) return true;
        for (const FieldView& field : sample.fields)
            if (!has(field.name))
                throw Failure(failed, sample.name() + " has the field " + printable(field.name) +
                                          ", which the first sample has not; help: name the "
                                          "columns with -f");
        return true;
    }

    [[nodiscard]] bool has(std::string_view name) const {
        return std::any_of(columns_.begin(), columns_.end(),
                           [&](const Column& column) { return column.name == name; });
    }

    std::vector<std::string> inputs_;
    std::vector<std::string> fields_;
    std::string missing_ = "fail";
    std::optional<uint64_t> count_;
    bool no_key_ = false;

    std::vector<Column> columns_;
    std::vector<FieldView> room_;
    std::vector<FieldView> found_;
    std::vector<Cell> cells_;
};

std::string escaped(std::string_view bytes) {
    std::string made;
    made.reserve(bytes.size());
    for (const char c : bytes) {
        const size_t at = std::string_view("\t\n\r\\").find(c);
        if (at == std::string_view::npos)
            made += c;
        else
            made += {'\\', "tnr\\"[at]};
    }
    return made;
}

class Tsv final : public TableVerb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Prints a table of the samples: a line for each, and their key and fields as cells "
            "between tabs. A tab, newline, carriage return and backslash of a cell are written "
            "\\t, \\n, \\r and \\\\; all other bytes stay as they are. shardfeed create reads such "
            "a table.");
        TableVerb::declare(arguments);
        arguments.add_flag("--no-header,--noheader", no_header_,
                           "no line with the names of the columns");
    }
    std::vector<Example> examples() const override {
        return {{"shardfeed tsv 'train-{000..099}.tar' -f 'cls txt'",
                 "Prints keys, classes and texts of all samples."},
                {"shardfeed tsv a.tar -f cls --no-key --no-header | sort -n | uniq -c",
                 "Counts the samples of each class."}};
    }

  private:
    [[nodiscard]] std::string header() const override {
        if (no_header_) return {};
        std::string made = has_key() ? "__key__" : "";
        for (const Column& column : columns())
            made += (made.empty() ? "" : "\t") + escaped(column.name);
        return made + "\n";
    }

    [[nodiscard]] std::string row(std::string_view key) const override {
        std::string made = has_key() ? escaped(key) : "";
        bool first = !has_key();
        for (const Cell& cell : cells()) {
            if (!std::exchange(first, false)) made += '\t';
            if (cell) made += escaped(*cell);
        }
        return made + "\n";
    }

    bool no_header_ = false;
};

// {"base64": ...} for bytes that no text of JSON can hold.
Json value_of(std::string_view bytes) {
    if (is_utf8(bytes)) return json_of(bytes);
    return {{"base64", base64(bytes)}};
}

class JsonLines final : public TableVerb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Prints a line of JSON for each sample: an object with its key and fields as texts. "
            "Bytes that are no UTF-8 are an object {\"base64\": ...}; a field that is missing is "
            "null.");
        TableVerb::declare(arguments);
    }
    std::vector<Example> examples() const override {
        return {{"shardfeed json 'train-{000..099}.tar' -f 'cls txt'",
                 "Prints keys, classes and texts of all samples."},
                {"shardfeed json a.tar -c 1", "Prints the first sample with all its fields."}};
    }

  private:
    [[nodiscard]] std::string header() const override { return {}; }

    [[nodiscard]] std::string row(std::string_view key) const override {
        Json made = Json::object();
        if (has_key()) made["__key__"] = value_of(key);
        for (size_t i = 0; i < cells().size(); ++i) {
            std::string name =
                is_utf8(columns()[i].name) ? columns()[i].name : printable(columns()[i].name);
            made[std::move(name)] = cells()[i] ? value_of(*cells()[i]) : Json(nullptr);
        }
        return line_of(made);
    }
};

}  // namespace

std::unique_ptr<Verb> make_tsv() {
    return std::make_unique<Tsv>();
}

std::unique_ptr<Verb> make_json() {
    return std::make_unique<JsonLines>();
}

}  // namespace cli
