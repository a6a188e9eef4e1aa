// create: files into shards, as a recipe, a table or a folder says.
#include "cli/dataset_kind.h"
#include "cli/file_format.h"
#include "cli/rows.h"
#include "cli/shard_target.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

namespace cli {

namespace {

class Create final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Makes shards of files. SOURCE is a folder, of which all files are taken; a table "
            "(.tsv, .csv, .jsonl), whose columns are fields, or paths and URLs of them where their "
            "name begins with @; or a recipe. Each line of a recipe names a member, KEY.FIELD, "
            "then "
            "after blanks where its bytes come from: a path, file:PATH, text:LITERAL, pipe:COMMAND "
            "or a URL. Lines that follow one another and have the same key are one sample.");
        arguments
            .add_option("SOURCE", source_,
                        "a folder, table, recipe, ZIP or Parquet file; - for standard input")
            .required();
        arguments
            .add_option("-o,--output", output_,
                        "the shard, or a pattern such as out-%06d.tar with --max-samples or "
                        "--max-bytes; the default is standard output")
            .type_name("OUT");
        arguments
            .add_option("--from", from_,
                        "what SOURCE is: recipe, tsv, csv, jsonl, folder, zip or parquet")
            .type_name("KIND")
            .one_of({"recipe", "tsv", "csv", "jsonl", "folder", "zip", "parquet"});
        arguments
            .add_option("--columns", columns_,
                        "names of a table's columns, where its first line does not have them: "
                        "\"__key__ @jpg txt\"")
            .type_name("LIST");
        arguments.add_option("--keys", keys_, "pattern of keys for a table without __key__")
            .type_name("PATTERN");
        arguments.add_option("-C,--dir", folder_, "where relative paths of a table begin")
            .type_name("DIR");
        arguments.add_flag(
            "--by-folder", by_folder_,
            "the first folder below SOURCE is a class; its number becomes the field cls");
        arguments
            .add_option("--classes", classes_, "write the names of the classes into this new file")
            .type_name("FILE");
        arguments.add_option("--count", count_, "stop after N lines of a recipe").type_name("N");
        arguments.add_flag("--tarp-compat", tarp_,
                           "members with owner, mode and time, as tarp writes them");
        arguments.add_flag("--json", json_, "print a line of JSON for each shard that is written");
    }
    // Of an archive: what reads URLs.
    const char* openers() const override { return "archive writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed create images --by-folder --classes classes.txt --max-samples 10000 -o "
                 "train-%06d.tar",
                 "Makes shards of a folder with a folder for each class."},
                {"shardfeed create table.csv --keys 'img/%06d' -o all.tar",
                 "Makes a sample of each line of a table, with columns such as @jpg and txt."},
                {"find . -name '*.jpg' | awk '{print substr($0, 3), $0}' | shardfeed create - -o "
                 "all.tar",
                 "Makes a shard of all images below the current folder."}};
    }

    int run(const LibraryOptions& options) override {
        std::vector<std::string> classes;
        find_kind();
        if (tarp_) options.set_unless_given("tar_headers", "tarp");
        if (from_ == "zip" || from_ == "parquet") return of_samples(options);
        const std::unique_ptr<Rows> rows = open_rows(classes);
        if (!classes_.empty()) write_classes(classes);
        ShardTarget target(output_, options, ShardTarget::Report{.json = json_, .command = {}});
        Progress progress(!options.is_quiet(), "create", 0);
        Row row;
        while (rows->next(row)) {
            try {
                target.begin(row.key);
                for (const RowField& field : row.fields) add(target, field);
                target.end();
            } catch (const Failure& failure) {
                throw Failure(failed, row.place + ": " + failure.what());
            }
            progress.add(1, 0);
        }
        target.finish();
        return done;
    }

  private:
    void find_kind() {
        if (!from_.empty()) return;
        std::error_code ignored;
        const std::string suffix = std::filesystem::path(source_).extension().string();
        if (std::filesystem::is_directory(source_, ignored))
            from_ = "folder";
        else if (suffix == ".tsv" || suffix == ".csv" || suffix == ".jsonl")
            from_ = suffix.substr(1);
        else if (kind_of_input(source_) == "parquet")
            from_ = "parquet";
        else
            from_ = local_file(source_) && format_of(source_) == "zip" ? "zip" : "recipe";
    }

    // What is samples already.
    [[nodiscard]] int of_samples(const LibraryOptions& options) const {
        if (by_folder_ || count_ >= 0 || !columns_.empty() || !folder_.empty())
            throw Failure(wrong_command_line,
                          "--by-folder, --columns, --dir and --count are for other sources; help: "
                          "shardfeed help convert, or cat, which picks samples and fields");
        if (from_ == "zip") {
            std::vector<std::string> words = {"-o", output_, "--", source_};
            if (json_) words.insert(words.begin(), "--json");
            return run_as("cat", std::move(words), options);
        }
        if (json_ || tarp_)
            throw Failure(wrong_command_line,
                          "--json and --tarp-compat are not for Parquet files; help: leave them "
                          "out");
        return run_as("convert",
                      {"--from", "parquet", "--keys", keys_, "-o", output_, "--", source_},
                      options);
    }

    std::unique_ptr<Rows> open_rows(std::vector<std::string>& classes) {
        if (by_folder_ && from_ != "folder")
            throw Failure(wrong_command_line, "--by-folder is for a folder; help: give one");
        if (!classes_.empty() && !by_folder_)
            throw Failure(wrong_command_line, "--classes has no classes; help: add --by-folder");
        if (from_ == "recipe") return recipe_rows(source_, count_);
        if (from_ == "folder") return folder_rows(source_, by_folder_, classes);
        using Kind = TableFormat::Kind;
        return table_rows(source_, {.kind = from_ == "tsv"   ? Kind::tsv
                                            : from_ == "csv" ? Kind::csv
                                                             : Kind::jsonl,
                                    .columns = columns_,
                                    .keys = keys_,
                                    .folder = folder_});
    }

    void write_classes(const std::vector<std::string>& classes) const {
        if (std::filesystem::exists(classes_))
            throw Failure(failed, printable(classes_) +
                                      ": there is such a file already; help: give another name");
        std::ofstream file(classes_, std::ios::binary);
        for (const std::string& name : classes) file << name << '\n';
        file.close();
        if (!file) throw Failure(failed, printable(classes_) + ": " + std::strerror(errno));
    }

    static void add(ShardTarget& target, const RowField& field) {
        switch (field.kind) {
            case RowField::Kind::bytes:
                target.field(field.name, {reinterpret_cast<const uint8_t*>(field.value.data()),
                                          field.value.size()});
                break;
            case RowField::Kind::file: target.field_file(field.name, field.value); break;
            case RowField::Kind::url: target.field_url(field.name, field.value); break;
        }
    }

    std::string source_;
    std::string output_ = "-";
    std::string from_;
    std::string columns_;
    std::string keys_ = "%09d";
    std::string folder_;
    bool by_folder_ = false;
    std::string classes_;
    int64_t count_ = -1;
    bool tarp_ = false;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_create() {
    return std::make_unique<Create>();
}

}  // namespace cli
