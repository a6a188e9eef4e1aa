// get: one sample, or one field of it.
#include "cli/field_folder.h"
#include "cli/sample_finder.h"
#include "cli/shard_target.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <unistd.h>

#include <optional>

namespace cli {

namespace {

class Get final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Writes one sample, as a tar, or one field of it, as it is, to standard output; or the "
            "fields as files into a folder. ZIP files and tars with an index are read where the "
            "sample lies, others from their start.");
        arguments.add_option("URL", url_, "shards: a path or URL, with braces for several")
            .required();
        arguments
            .add_option("KEY", words_, "the key, unless --key or --number says it; then the field")
            .expected(0, 2);
        arguments.add_option("--key", key_, "the first sample with this key").type_name("KEY");
        arguments.add_option("--number", number_, "a sample by its number in all shards, from 0")
            .type_name("N");
        arguments
            .add_option("-f,--field", field_,
                        "write this field alone; names separated by ; are alternatives")
            .type_name("NAME");
        arguments
            .add_option("-o,--output", folder_, "write each field to a file KEY.FIELD below DIR")
            .type_name("DIR");
    }
    const char* openers() const override { return "stream dataset"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed get train-000000.tar 0001 json", "Prints a field of a sample."},
                {"shardfeed get 'train-{000..099}.tar' --number 123456 -o sample",
                 "Writes the fields of a sample as files into the folder sample."},
                {"shardfeed get a.zip 0001 | tar tv", "Writes a sample as a tar."}};
    }

    int run(const LibraryOptions& options) override {
        take_words();
        const std::vector<std::string> urls = {url_};
        const Sample sample =
            number_ ? find_by_number(urls, *number_, options) : find_by_key(urls, *key_, options);
        if (!folder_.empty())
            write_files(sample.get());
        else if (!field_.empty())
            write_field(sample.get());
        else
            write_tar(sample.get(), options);
        return done;
    }

  private:
    void take_words() {
        if (key_ && number_)
            throw Failure(wrong_command_line, "--key and --number; help: give one of them");
        size_t word = 0;
        if (!key_ && !number_ && word < words_.size()) key_ = words_[word++];
        if (field_.empty() && word < words_.size()) field_ = words_[word++];
        if (word < words_.size())
            throw Failure(
                wrong_command_line,
                printable(words_[word]) + " is one word too many; help: shardfeed help get");
        if (!key_ && !number_)
            throw Failure(wrong_command_line,
                          "no sample is named; help: give a key, or --number N");
    }

    void write_field(const shf_sample* sample) {
        std::string name;
        const shf_bytes data = field_of(sample, field_, name);
        refuse_terminal(text(data));
        Output out;
        out.write(text(data));
        out.flush();
    }

    void write_files(const shf_sample* sample) {
        std::string name;
        shf_bytes data = {nullptr, 0};
        if (!field_.empty()) data = field_of(sample, field_, name);
        FieldFolder folder(folder_);
        if (!field_.empty()) {
            folder.write(key_of(sample), name, data);
            return;
        }
        for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
            shf_bytes own;
            shf_sample_field(sample, i, &own, &data);
            folder.write(key_of(sample), text(own), data);
        }
    }

    static void write_tar(const shf_sample* sample, const LibraryOptions& options) {
        if (::isatty(STDOUT_FILENO) == 1)
            throw Failure(wrong_command_line,
                          "a tar is no text for a terminal; help: name a field, give -o DIR, or "
                          "write to a file: > FILE");
        ShardTarget target("-", options, {});
        target.write(sample);
        target.finish();
    }

    std::string url_;
    std::vector<std::string> words_;
    std::optional<std::string> key_;
    std::optional<uint64_t> number_;
    std::string field_;
    std::string folder_;
};

}  // namespace

std::unique_ptr<Verb> make_get() {
    return std::make_unique<Get>();
}

}  // namespace cli
