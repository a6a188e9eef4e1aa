// cat: shards into others.
#include "cli/sample_source.h"
#include "cli/sample_writer.h"
#include "cli/selection.h"
#include "cli/shuffle.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <optional>

namespace cli {

namespace {

class Cat final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Writes the samples of all inputs, one after another, into one shard or many. Samples "
            "are picked by --select and --exclude, then by --slice; then their fields are chosen, "
            "they are shuffled, and get new keys.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        out_.declare(arguments);
        arguments
            .add_option("--select", select_, "only these keys: a key, a shell pattern, or @FILE")
            .type_name("KEY")
            .repeatable();
        arguments.add_option("--exclude", exclude_, "all but these keys, likewise")
            .type_name("KEY")
            .repeatable();
        arguments
            .add_option("--slice", slice_,
                        "samples by their number in the whole: N, START:STOP or START:STOP:STEP")
            .type_name("SLICE");
        arguments
            .add_option("--shard-slice,--shardslice", shard_slice_, "the same within each shard")
            .type_name("SLICE");
        arguments.add_option("-s,--shuffle", shuffle_, "mix the samples in a buffer of N")
            .type_name("N");
        arguments.add_option("--seed", seed_, "of the shuffle; the default is 0").type_name("N");
        arguments
            .add_option("-m,--mix", mix_,
                        "open N inputs at once, and take a sample of each in turn")
            .type_name("N");
        arguments
            .add_option("--max-errors,--maxerr", max_errors_,
                        "leave out that many damaged samples and shards, with a warning each; "
                        "with --mix so many of each input")
            .type_name("N");
        arguments.add_flag("--tarp-compat", tarp_,
                           "steps of --slice from 0, and members with owner, mode and time, as "
                           "tarp writes them");
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
        selected_.emplace(select_);
        excluded_.emplace(exclude_);
        if (!slice_.empty()) numbers_.emplace(slice_, tarp_);
        out_.open(options, tarp_);
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
            if (Sample out = shuffle.exchange(std::move(sample))) out_.write(out.get());
        }
        while (Sample out = shuffle.drain()) out_.write(out.get());
        out_.finish();
        return done;
    }

  private:
    [[nodiscard]] bool is_selected(const shf_sample* sample) const {
        if (selected_->empty() && excluded_->empty()) return true;
        const std::string_view key = key_of(sample);
        return (selected_->empty() || selected_->has(key)) && !excluded_->has(key);
    }

    std::vector<std::string> inputs_;
    SampleWriter out_;
    std::vector<std::string> select_;
    std::vector<std::string> exclude_;
    std::string slice_;
    std::string shard_slice_;
    size_t shuffle_ = 0;
    uint64_t seed_ = 0;
    size_t mix_ = 0;
    uint64_t max_errors_ = 0;
    bool tarp_ = false;

    std::optional<KeyList> selected_;
    std::optional<KeyList> excluded_;
    std::optional<Slice> numbers_;
};

}  // namespace

std::unique_ptr<Verb> make_cat() {
    return std::make_unique<Cat>();
}

}  // namespace cli
