// cat: shards into others.
#include "cli/field_list.h"
#include "cli/number_pattern.h"
#include "cli/sample_source.h"
#include "cli/selection.h"
#include "cli/shard_target.h"
#include "cli/shuffle.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <CLI/CLI.hpp>

#include <optional>

namespace cli {

namespace {

class Cat final : public Verb {
  public:
    void declare(CLI::App& app) override {
        app.description(
            "Writes the samples of all inputs, one after another, into one shard or many. Samples "
            "are picked by --select and --exclude, then by --slice; then their fields are chosen, "
            "they are shuffled, and get new keys.");
        app.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")->required();
        app.add_option("-o,--output,--outputs", output_,
                       "the shard, or a pattern such as out-%06d.tar with --max-samples or "
                       "--max-bytes; the default is standard output")
            ->type_name("OUT");
        app.add_option("-f,--fields,--field", fields_,
                       "fields to keep, separated by blanks: cls, img:png,jpg (alternatives, and "
                       "another name)")
            ->type_name("LIST")
            ->expected(1)
            ->take_all();
        app.add_option("--missing", missing_, "samples without such a field: fail, skip, or keep")
            ->type_name("WHAT")
            ->check(CLI::IsMember({"fail", "skip", "keep"}));
        app.add_option("--select", select_, "only these keys: a key, a shell pattern, or @FILE")
            ->type_name("KEY")
            ->expected(1)
            ->take_all();
        app.add_option("--exclude", exclude_, "all but these keys, likewise")
            ->type_name("KEY")
            ->expected(1)
            ->take_all();
        app.add_option("--slice", slice_,
                       "samples by their number in the whole: N, START:STOP or START:STOP:STEP")
            ->type_name("SLICE");
        app.add_option("--shard-slice,--shardslice", shard_slice_, "the same within each shard")
            ->type_name("SLICE");
        app.add_option("-s,--shuffle", shuffle_, "mix the samples in a buffer of N")
            ->type_name("N");
        app.add_option("--seed", seed_, "of the shuffle; the default is 0")->type_name("N");
        app.add_option("-m,--mix", mix_, "open N inputs at once, and take a sample of each in turn")
            ->type_name("N");
        app.add_option("-R,--rekey", rekey_,
                       "new keys: # for nine digits from 0, or a pattern such as train/%06d")
            ->type_name("PATTERN");
        app.add_option("--max-errors,--maxerr", max_errors_,
                       "leave out that many damaged samples and shards, with a warning each")
            ->type_name("N");
        app.add_flag("--tarp-compat", tarp_, "count the steps of --slice from 0, as tarp does");
        app.add_flag("--json", json_, "print a line of JSON for each shard that is written");
    }
    const char* openers() const override { return "stream writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed cat a.tar b.tar.gz -o all.tar", "Makes one shard of two."},
                {"shardfeed cat 'train-{000..099}.tar' -s 10000 --max-bytes 1GB -o mixed-%06d.tar",
                 "Shuffles 100 shards into others of 1 GB."},
                {"shardfeed cat s3://bucket/a.tar -f 'jpg:png,jpg cls' --slice :1000 -o small.tar",
                 "Keeps two fields of the first 1,000 samples of a shard in a store."}};
    }

    int run(const LibraryOptions& options) override {
        if (max_errors_ > 0) {
            options.set("on_error", "skip_sample");
            options.set("max_skips", std::to_string(max_errors_));
        }
        if (!shard_slice_.empty()) options.set("slice", shard_slice_);
        fields_wanted_.emplace(fields_);
        selected_.emplace(select_);
        excluded_.emplace(exclude_);
        if (!slice_.empty()) numbers_.emplace(slice_, tarp_);
        if (!rekey_.empty()) keys_.emplace(rekey_ == "#" ? "%09d" : rekey_);
        target_.emplace(output_, options, ShardTarget::Report{.json = json_});
        Progress progress(!options.is_quiet(), "cat", local_bytes(inputs_));
        Shuffle shuffle(shuffle_, seed_);

        std::unique_ptr<SampleSource> source;
        if (mix_ > 1)
            source = std::make_unique<RoundRobinSource>(inputs_, mix_, options);
        else
            source = std::make_unique<StreamSource>(inputs_, options.handle());
        for (uint64_t number = 0; !(numbers_ && numbers_->ends_before(number));) {
            Sample sample = source->next();
            if (!sample) break;
            progress.add(1, payload_of(sample.get()));
            if (!is_selected(sample.get())) continue;
            if (numbers_ && !numbers_->takes(number++)) continue;
            if (Sample out = shuffle.exchange(std::move(sample))) write(out.get());
        }
        while (Sample out = shuffle.drain()) write(out.get());
        target_->finish();
        return done;
    }

  private:
    [[nodiscard]] bool is_selected(const shf_sample* sample) const {
        if (selected_->empty() && excluded_->empty()) return true;
        const std::string_view key = key_of(sample);
        return (selected_->empty() || selected_->has(key)) && !excluded_->has(key);
    }

    void write(const shf_sample* sample) {
        if (fields_wanted_->all() && !keys_) {
            target_->write(sample);
            return;
        }
        if (!fields_wanted_->choose(sample, FieldList::missing_of(missing_), chosen_)) return;
        if (keys_)
            target_->begin(keys_->text(written_++));
        else
            target_->begin(key_of(sample));
        for (const auto& [name, data] : chosen_) target_->field(name, data);
        target_->end();
    }

    std::vector<std::string> inputs_;
    std::string output_ = "-";
    std::vector<std::string> fields_;
    std::string missing_ = "fail";
    std::vector<std::string> select_;
    std::vector<std::string> exclude_;
    std::string slice_;
    std::string shard_slice_;
    size_t shuffle_ = 0;
    uint64_t seed_ = 0;
    size_t mix_ = 0;
    std::string rekey_;
    uint64_t max_errors_ = 0;
    bool tarp_ = false;
    bool json_ = false;

    std::optional<FieldList> fields_wanted_;
    std::optional<KeyList> selected_;
    std::optional<KeyList> excluded_;
    std::optional<Slice> numbers_;
    std::optional<NumberPattern> keys_;
    std::optional<ShardTarget> target_;
    std::vector<FieldList::Chosen> chosen_;
    uint64_t written_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_cat() {
    return std::make_unique<Cat>();
}

}  // namespace cli
