// convert: data sets of other formats to shards and back.
#include "cli/dataset_kind.h"
#include "cli/field_folder.h"
#include "cli/python_program.h"
#include "cli/sample_source.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <unistd.h>
#include <algorithm>
#include <filesystem>

namespace cli {

namespace {

class Convert final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Writes the samples of INPUT as another format: shards (tar or ZIP, plain or "
            "compressed), folder (a file for each field), parquet, lmdb, mds (MosaicML), litdata, "
            "tfrecord or hdf5. Keys, names of fields and bytes come back as they were; what a "
            "format cannot carry is an error that names it. A folder is told by a slash at the end "
            "of its name, mds and litdata by --to or such a suffix. All but shards and folders "
            "need the Python package with its extra: pip install 'shardfeed[convert]'.");
        arguments.add_option("INPUT", inputs_, "shards, files or folders of one format").required();
        arguments.add_option("-o,--output", output_, "what is written; it must not be there")
            .type_name("OUT")
            .required();
        arguments
            .add_option("--from", from_, "the format of INPUT, where what is there does not say it")
            .type_name("KIND")
            .one_of(dataset_kinds());
        arguments.add_option("--to", to_, "the format of OUT, where its name does not say it")
            .type_name("KIND")
            .one_of(dataset_kinds());
        arguments
            .add_option("--columns", columns_,
                        "only these fields, separated by blanks; Parquet needs them of a pipe")
            .type_name("LIST");
        arguments.add_option("--key", key_, "the column with the keys; the default is __key__")
            .type_name("COLUMN");
        arguments
            .add_option("--keys", keys_, "pattern of keys where there is no such column: img/%06d")
            .type_name("PATTERN");
        arguments.add_option("--field", field_, "what entries of LMDB are that name no field: jpg")
            .type_name("NAME");
        arguments.add_option("--nested", nested_, "lists and structures: error, or json")
            .type_name("WHAT")
            .one_of({"error", "json"});
    }
    const char* openers() const override { return "stream writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed convert photos.parquet --max-samples 10000 -o train-%06d.tar",
                 "Makes shards of a Parquet file with a column of bytes."},
                {"shardfeed convert 'train-{000..009}.tar' --to mds -o mds-folder",
                 "Writes ten shards as one data set for MosaicML's streaming."},
                {"shardfeed convert all.tar.gz -o all.zip", "Writes a tar as a ZIP file."},
                {"shardfeed convert all.tar -o files/", "Makes a file of every field."}};
    }

    int run(const LibraryOptions& options) override {
        if (from_.empty()) from_ = kind_of_input(inputs_.front());
        if (to_.empty()) to_ = kind_of_output(output_);
        const bool to_shards = to_ == "shards";
        if (from_ == "shards" && to_shards) {
            std::vector<std::string> words = {"-o", output_};
            if (!columns_.empty()) words.insert(words.end(), {"-f", columns_, "--missing", "keep"});
            words.push_back("--");
            words.insert(words.end(), inputs_.begin(), inputs_.end());
            return run_as("cat", std::move(words), options);
        }
        if (from_ == "folder" && to_shards) {
            if (inputs_.size() > 1)
                throw Failure(wrong_command_line,
                              "one folder at a time is converted; help: cat joins shards");
            return run_as("create", {"--from", "folder", "-o", output_, "--", inputs_.front()},
                          options);
        }
        if (from_ == "shards" && to_ == "folder") return to_folder(options);
        if (from_ == "folder" || to_ == "folder")
            throw Failure(wrong_command_line,
                          "a folder is converted to shards, and shards to a "
                          "folder; help: convert to shards first");
        return by_python(options);
    }

  private:
    int to_folder(const LibraryOptions& options) const {
        std::error_code ignored;
        if (std::filesystem::exists(output_, ignored))
            throw Failure(failed, printable(output_) +
                                      " is there already; help: give another name; nothing is "
                                      "overwritten");
        if (!columns_.empty()) options.set("fields", comma_list(columns_));
        Progress progress(!options.is_quiet(), "convert", local_bytes(inputs_));
        StreamSource source(inputs_, options.handle());
        std::optional<FieldFolder> folder;
        while (const Sample sample = source.next()) {
            if (!folder) folder.emplace(output_);
            for (size_t i = 0; i < shf_sample_field_count(sample.get()); ++i) {
                shf_bytes name;
                shf_bytes data;
                shf_sample_field(sample.get(), i, &name, &data);
                folder->write(key_of(sample.get()), text(name), data);
            }
            progress.add(1, payload_of(sample.get()));
        }
        return done;
    }

    static std::string comma_list(std::string names) {
        std::replace(names.begin(), names.end(), ' ', ',');
        return names;
    }

    [[nodiscard]] int by_python(const LibraryOptions& options) const {
        PythonProgram program("shardfeed.convert.__main__", "'shardfeed[convert]'");
        program.add("output", output_);
        program.add("from", from_);
        program.add("to", to_);
        program.add("columns", columns_);
        program.add("key", key_);
        program.add("keys", keys_);
        program.add("field", field_);
        program.add("nested", nested_);
        if (from_ == "shards") program.add_options("reader", options, "stream");
        if (to_ == "shards") program.add_options("writer", options, "writer");
        const bool reads = std::find(inputs_.begin(), inputs_.end(), "-") != inputs_.end();
        return program.run(inputs_, reads ? STDIN_FILENO : -1, output_ == "-" ? STDOUT_FILENO : -1);
    }

    std::vector<std::string> inputs_;
    std::string output_;
    std::string from_;
    std::string to_;
    std::string columns_;
    std::string key_;
    std::string keys_;
    std::string field_;
    std::string nested_;
};

}  // namespace

std::unique_ptr<Verb> make_convert() {
    return std::make_unique<Convert>();
}

}  // namespace cli
