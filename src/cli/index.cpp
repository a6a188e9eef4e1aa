// index: indexes of shards, and those of other tools.
#include "cli/json_report.h"
#include "cli/library.h"
#include "cli/sample_source.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <array>

namespace cli {

namespace {

struct Format {
    const char* name;
    int32_t number;
};
constexpr std::array<Format, 6> formats = {{
    {"dali", SHF_INDEX_DALI_1_2},
    {"dali1.0", SHF_INDEX_DALI_1_0},
    {"dali1.1", SHF_INDEX_DALI_1_1},
    {"dali1.2", SHF_INDEX_DALI_1_2},
    {"energon", SHF_INDEX_ENERGON},
    {"wids", SHF_INDEX_WIDS},
}};

int32_t index_format_of(const std::string& name) {
    for (const Format& format : formats)
        if (name == format.name) return format.number;
    throw Failure(wrong_command_line, printable(name) +
                                          " is no format of an index; help: dali (1.2), dali1.0, "
                                          "dali1.1, energon or wids");
}

// The path of another tool's index for one shard: {} is the path of the shard without .tar.
std::string path_for(const std::string& pattern, std::string shard) {
    const size_t place = pattern.find("{}");
    if (place == std::string::npos) return pattern;
    if (shard.ends_with(".tar")) shard.resize(shard.size() - 4);
    return std::string(pattern).replace(place, 2, shard);
}

class IndexVerb final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Makes the index of each shard, which says where its samples are, beside it or where "
            "--index-dir says; random access and plans use it. With --export the indexes that "
            "other tools need are written instead, and with --import those of other tools are "
            "compared with the shards and taken over.");
        arguments.add_option("URL", urls_, "tar files: paths and URLs; none for --import wids");
        const Argument exported =
            arguments
                .add_option(
                    "--export", exported_,
                    "write an index for another tool: dali (1.2), dali1.0, dali1.1, energon or "
                    "wids, and its path. wids has one index for all shards, the others one for "
                    "each: {} in PATH is the path of the shard without .tar")
                .type_name("FORMAT PATH")
                .expected(2);
        arguments
            .add_option("--import", imported_,
                        "take over an index of another tool, likewise; nothing is taken that the "
                        "shard does not say too")
            .type_name("FORMAT PATH")
            .expected(2)
            .excludes(exported);
        arguments.add_flag("--json", json_, "print a line of JSON for each index that is written");
    }
    const char* openers() const override { return "dataset"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed index 'train-{000..099}.tar'", "Makes an index beside each shard."},
                {"shardfeed index 'train-{000..099}.tar' --export dali '{}.idx'",
                 "Writes train-000.idx and so on for DALI."},
                {"shardfeed index train-*.tar --export wids train.json",
                 "Writes one index of all shards for wids."},
                {"shardfeed index a.tar --import energon a.tar.idx",
                 "Compares Energon's index with the shard, and makes one of it."}};
    }

    int run(const LibraryOptions& options) override {
        if (!exported_.empty()) {
            write_out(options);
        } else if (!imported_.empty()) {
            take_over(options);
        } else {
            for (const std::string& url : shards(options)) {
                call(shf_index_build, url.c_str(), options.handle());
                report(url, {});
            }
        }
        out_.flush();
        return done;
    }

  private:
    [[nodiscard]] std::vector<std::string> shards(const LibraryOptions& options) const {
        if (urls_.empty())
            throw Failure(wrong_command_line, "URL is required; help: shardfeed help index");
        return expanded(urls_, options.handle());
    }

    void write_out(const LibraryOptions& options) {
        const int32_t format = index_format_of(exported_[0]);
        const std::vector<std::string> all = shards(options);
        const Options exact = options.copy();
        call(shf_options_set, exact.get(), "expand", "false");
        if (format == SHF_INDEX_WIDS) {
            std::vector<const char*> names;
            for (const std::string& url : all) names.push_back(url.c_str());
            call(shf_index_export, names.data(), names.size(), format, exported_[1].c_str(),
                 exact.get());
            report({}, exported_[1]);
            return;
        }
        expect_path_for_each(exported_[1], all.size());
        for (const std::string& url : all) {
            const char* const name = url.c_str();
            const std::string path = path_for(exported_[1], url);
            call(shf_index_export, &name, size_t{1}, format, path.c_str(), exact.get());
            report(url, path);
        }
    }

    void take_over(const LibraryOptions& options) {
        const int32_t format = index_format_of(imported_[0]);
        if (format == SHF_INDEX_WIDS) {
            if (!urls_.empty())
                throw Failure(wrong_command_line,
                              "an index of wids names its shards; help: give no URL");
            const char* const none = nullptr;
            call(shf_index_import, none, format, imported_[1].c_str(), options.handle());
            report({}, imported_[1]);
            return;
        }
        const std::vector<std::string> all = shards(options);
        expect_path_for_each(imported_[1], all.size());
        const Options exact = options.copy();
        call(shf_options_set, exact.get(), "expand", "false");
        for (const std::string& url : all) {
            const std::string path = path_for(imported_[1], url);
            call(shf_index_import, url.c_str(), format, path.c_str(), exact.get());
            report(url, path);
        }
    }

    static void expect_path_for_each(const std::string& path, size_t shards) {
        if (shards <= 1 || path.find("{}") != std::string::npos) return;
        throw Failure(wrong_command_line,
                      "one path for " + count_text(shards) +
                          " indexes; help: write {} for the path of the shard without .tar: "
                          "{}.idx, {}.tar.idx");
    }

    void report(const std::string& shard, const std::string& path) {
        if (!json_) return;
        Json made;
        if (!shard.empty()) made["shard"] = json_of(shard);
        if (!path.empty()) made["index"] = json_of(path);
        out_.write(line_of(made));
    }

    std::vector<std::string> urls_;
    std::vector<std::string> exported_;
    std::vector<std::string> imported_;
    bool json_ = false;
    Output out_;
};

}  // namespace

std::unique_ptr<Verb> make_index() {
    return std::make_unique<IndexVerb>();
}

}  // namespace cli
