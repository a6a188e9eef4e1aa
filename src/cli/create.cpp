// create: files into shards, as a recipe says.
#include "cli/shard_target.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>

namespace cli {

namespace {

class Create final : public Verb {
  public:
    void declare(CLI::App& app) override {
        app.description(
            "Makes shards of what a recipe lists. Each line of it names a member, KEY.FIELD, then "
            "after blanks where its bytes come from: a path, file:PATH, text:LITERAL, "
            "pipe:COMMAND, "
            "or a URL. Lines that follow one another and have the same key are one sample.");
        app.add_option("RECIPE", recipe_, "a file, or - for standard input")->required();
        app.add_option("-o,--output", output_,
                       "the shard, or a pattern such as out-%06d.tar with --max-samples or "
                       "--max-bytes; the default is standard output")
            ->type_name("OUT");
        app.add_option("--count", count_, "stop after N lines")->type_name("N");
        app.add_flag("--json", json_, "print a line of JSON for each shard that is written");
    }
    const char* openers() const override { return "writer"; }
    std::vector<Example> examples() const override {
        return {{"find . -name '*.jpg' | awk '{print substr($0, 3), $0}' | shardfeed create - -o "
                 "all.tar",
                 "Makes a shard of all images below the current folder."},
                {"shardfeed create recipe.txt --max-samples 10000 -o train-%06d.tar",
                 "Makes shards of 10,000 samples each."}};
    }

    int run(const LibraryOptions& options) override {
        std::ifstream file;
        if (recipe_ != "-") {
            file.open(recipe_, std::ios::binary);
            if (!file)
                throw Failure(failed, printable(recipe_) + ": " + std::strerror(errno) +
                                          "; help: give the path of a recipe, or - for standard "
                                          "input");
        }
        std::istream& lines = recipe_ == "-" ? std::cin : file;
        target_.emplace(output_, options, ShardTarget::Report{.json = json_});
        Progress progress(!options.is_quiet(), "create", 0);
        std::string line;
        for (number_ = 1; count_ != 0 && std::getline(lines, line); ++number_, --count_) {
            add(line);
            progress.add(1, 0);
        }
        if (lines.bad())
            throw Failure(failed, printable(recipe_) + ": it cannot be read to its end");
        if (in_sample_) target_->end();
        target_->finish();
        return done;
    }

  private:
    [[noreturn]] void fail_line(const std::string& cause, const std::string& help) const {
        throw Failure(failed, printable(recipe_) + ": line " + std::to_string(number_) + ": " +
                                  cause + "; help: " + help);
    }

    void add(const std::string& line) {
        const size_t blank = line.find_first_of(" \t\r\v\f");
        const size_t source =
            blank == std::string::npos ? blank : line.find_first_not_of(" \t\r\v\f", blank);
        if (blank == 0 || source == std::string::npos)
            fail_line("\"" + printable(line) + "\" is no name and source",
                      "write KEY.FIELD, a blank, and a path, text:LITERAL or URL");
        const std::string name = line.substr(0, blank);
        std::string from = line.substr(source);
        if (!from.starts_with("text:") && from.ends_with('\r')) from.pop_back();
        const size_t slash = name.rfind('/');
        const size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
        if (dot == std::string::npos || dot == 0 || name[dot - 1] == '/' || dot + 1 == name.size())
            fail_line("the name \"" + printable(name) + "\" has no key and field",
                      "names are KEY.FIELD, as 0001.jpg");
        const std::string key = name.substr(0, dot);
        try {
            if (!in_sample_ || key != key_) {
                if (in_sample_) target_->end();
                in_sample_ = false;
                target_->begin(key);
                key_ = key;
                in_sample_ = true;
            }
            add_field(name.substr(dot + 1), from);
        } catch (const Failure& failure) {
            throw Failure(failed, printable(recipe_) + ": line " + std::to_string(number_) + ": " +
                                      failure.what());
        }
    }

    void add_field(const std::string& field, const std::string& from) {
        if (from.starts_with("text:"))
            target_->field(field,
                           {reinterpret_cast<const uint8_t*>(from.data()) + 5, from.size() - 5});
        else if (from.starts_with("file:"))
            target_->field_file(field, from.substr(5));
        else if (from == "-" || from.starts_with("pipe:") || from.find("://") != std::string::npos)
            target_->field_url(field, from);
        else
            target_->field_file(field, from);
    }

    std::string recipe_;
    std::string output_ = "-";
    int64_t count_ = -1;
    bool json_ = false;

    std::optional<ShardTarget> target_;
    uint64_t number_ = 0;
    std::string key_;
    bool in_sample_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_create() {
    return std::make_unique<Create>();
}

}  // namespace cli
