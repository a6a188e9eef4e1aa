// split: shards into more of them.
#include "cli/sample_source.h"
#include "cli/selection.h"
#include "cli/shard_target.h"
#include "cli/shares.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <cmath>
#include <optional>

namespace cli {

namespace {

// One of the outputs, with what tarp counts of its shard.
struct Part {
    std::unique_ptr<ShardTarget> target;
    uint64_t samples = 0;
    double bytes = 0;
};

class Split final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Cuts the samples of all inputs into shards, in their order: after --count samples, or "
            "when their fields have --size bytes, or before the file exceeds --max-bytes. With "
            "--ratio each sample goes to one of several outputs, by its key alone: it goes there "
            "in every later run too, regardless of the other samples.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        arguments
            .add_option("-o,--output", output_,
                        "name of the shards with their number, by default split-%06d.tar; with "
                        "--ratio {} stands for the name of the output, by default {}-%06d.tar")
            .type_name("PATTERN");
        arguments.add_option("-c,--count", count_, "samples of a shard").type_name("N");
        arguments
            .add_option("-s,--size", size_,
                        "cut when keys, names and contents of fields have so many bytes: 1e9")
            .type_name("BYTES");
        arguments.add_option("--ratio", ratio_, "outputs and their shares, as train:0.9,val:0.1")
            .type_name("LIST");
        arguments
            .add_option("-p,--post", post_,
                        "a shell command for each shard, with {} for its name; it must succeed")
            .type_name("COMMAND");
        arguments
            .add_option("--slice", slice_,
                        "samples by their number in the whole: N, START:STOP or START:STOP:STEP")
            .type_name("SLICE");
        arguments.add_flag(
            "--tarp-compat", tarp_,
            "cut at 1,000,000 samples and at 1e9 bytes too, steps of --slice from 0, and members "
            "with owner, mode and time, as tarp");
        arguments.add_flag("--json", json_, "print a line of JSON for each shard that is written");
    }
    const char* openers() const override { return "stream writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed split all.tar -c 10000 -o train-%06d.tar",
                 "Makes shards of 10,000 samples."},
                {"shardfeed split 'all-{000..099}.tar' --max-bytes 1GB --ratio train:0.9,val:0.1",
                 "Makes train-000000.tar, val-000000.tar and so on, of at most 1 GB each."},
                {"shardfeed split all.tar -s 1e9 -p 'gsutil cp {} gs://bucket/ && rm {}'",
                 "Moves each shard away once it is written."}};
    }

    int run(const LibraryOptions& options) override {
        if (tarp_ && count_ == 0) count_ = 1'000'000;
        if (tarp_ && size_ == 0) size_ = 1e9;
        if (tarp_) options.set_unless_given("tar_headers", "tarp");
        if (!std::isfinite(size_) || size_ < 0)
            throw Failure(wrong_command_line, "--size is a number of bytes, such as 1e9");
        const Shares shares(ratio_);
        if (count_ == 0 && size_ == 0 && !options.given("max_samples") &&
            !options.given("max_bytes") && ratio_.empty())
            throw Failure(wrong_command_line,
                          "nothing says where to cut; help: give --count, --size, --max-bytes or "
                          "--ratio");
        open_parts(shares, options);
        std::optional<Slice> numbers;
        if (!slice_.empty()) numbers.emplace(slice_, tarp_);
        Progress progress(!options.is_quiet(), "split", local_bytes(inputs_));
        StreamSource source(inputs_, options.handle());
        for (uint64_t number = 0; !(numbers && numbers->ends_before(number)); ++number) {
            const Sample sample = source.next();
            if (!sample) break;
            if (numbers && !numbers->takes(number)) continue;
            progress.add(1, payload_of(sample.get()));
            write(parts_[shares.part_of(key_of(sample.get()))], sample.get());
        }
        for (Part& part : parts_) part.target->finish();
        return done;
    }

  private:
    void open_parts(const Shares& shares, const LibraryOptions& options) {
        std::string pattern = output_;
        if (pattern.empty()) pattern = ratio_.empty() ? "split-%06d.tar" : "{}-%06d.tar";
        const size_t place = pattern.find("{}");
        if (!ratio_.empty() && place == std::string::npos)
            throw Failure(wrong_command_line,
                          "--ratio needs a pattern with {} for the name of the output; help: such "
                          "as -o {}-%06d.tar");
        for (const std::string& name : shares.names()) {
            std::string own = pattern;
            if (!ratio_.empty()) own.replace(place, 2, name);
            parts_.push_back({std::make_unique<ShardTarget>(
                own, options, ShardTarget::Report{.json = json_, .command = post_})});
        }
    }

    void write(Part& part, const shf_sample* sample) const {
        if ((count_ > 0 && part.samples >= count_) || (size_ > 0 && part.bytes >= size_)) {
            part.target->next_shard();
            part.samples = 0;
            part.bytes = 0;
        }
        part.target->write(sample);
        ++part.samples;
        if (size_ > 0) part.bytes += static_cast<double>(tarp_size(sample));
    }

    // The key counts as a field of the name __key__.
    static uint64_t tarp_size(const shf_sample* sample) {
        uint64_t sum = std::string_view("__key__").size() + key_of(sample).size();
        for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
            shf_bytes name;
            shf_bytes data;
            shf_sample_field(sample, i, &name, &data);
            sum += name.size + data.size;
        }
        return sum;
    }

    std::vector<std::string> inputs_;
    std::string output_;
    uint64_t count_ = 0;
    double size_ = 0;
    std::string ratio_;
    std::string post_;
    std::string slice_;
    bool tarp_ = false;
    bool json_ = false;

    std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Verb> make_split() {
    return std::make_unique<Split>();
}

}  // namespace cli
