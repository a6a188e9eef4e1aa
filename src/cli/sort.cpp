// sort: the samples of shards in another order.
#include "cli/sample_source.h"
#include "cli/sample_writer.h"
#include "cli/selection.h"
#include "cli/sort_key.h"
#include "cli/sorter.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <cstdlib>
#include <optional>
#include <random>

namespace cli {

namespace {

class Sort final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Writes the samples of all inputs sorted by their keys, or by a field. No sample is "
            "lost, and those that are equal keep their order. What does not fit into --memory is "
            "kept in files without names meanwhile.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        out_.declare(arguments);
        arguments
            .add_option("-s,--by,--sortfield,--sortkey", by_,
                        "the field to sort by; the default is __key__")
            .type_name("FIELD");
        arguments
            .add_option("-t,-S,--type,--sorttype", type_,
                        "how it is compared: bytes, int, float or natural (a2 before a10)")
            .type_name("TYPE");
        arguments.add_flag("-r,--reverse", reverse_, "the largest first");
        arguments.add_flag("--random", random_, "a random order instead, which --seed determines");
        arguments.add_option("--seed", seed_, "of the random order; the default is 0")
            .type_name("N");
        arguments
            .add_option("--slice", slice_,
                        "samples by their number in the whole, before they are sorted: N, "
                        "START:STOP or START:STOP:STEP")
            .type_name("SLICE");
        arguments
            .add_option("--tmpdir", folder_,
                        "folder for what does not fit into memory; the default is TMPDIR, else "
                        "/tmp")
            .type_name("DIR");
        arguments.add_flag(
            "--tarp-compat", tarp_,
            "a random order unless --by is given, fields chosen before the sort, steps of --slice "
            "from 0, and members with owner, mode and time, as tarp");
    }
    const char* openers() const override { return "stream writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed sort 'in-{000..009}.tar' --max-bytes 1GB -o sorted-%06d.tar",
                 "Sorts ten shards by key into shards of 1 GB."},
                {"shardfeed sort in.tar --by cls --type int -o by-class.tar",
                 "Sorts by the number in the field cls."},
                {"shardfeed sort 'in-*.tar' --random --seed 1 --memory 4GiB -o mixed.tar",
                 "Shuffles all shards perfectly, with 4 GiB of memory."}};
    }

    int run(const LibraryOptions& options) override {
        const SortType type = sort_type_of(type_);
        random_ = random_ || by_ == "__random__" || (tarp_ && by_.empty());
        if (by_.empty()) by_ = "__key__";
        std::optional<Slice> numbers;
        if (!slice_.empty()) numbers.emplace(slice_, tarp_);
        out_.open(options, tarp_);
        // A half for the samples that are sorted; the stream and the writer have the other.
        const uint64_t memory = std::stoull(options.get("memory")) / 2;
        options.set("memory", std::to_string(std::max<uint64_t>(memory, uint64_t{1} << 20)));
        Sorter sorter(temporary_folder(), memory, reverse_);
        {
            Progress progress(!options.is_quiet(), "sort: reading", local_bytes(inputs_));
            StreamSource source(inputs_, options.handle());
            std::mt19937_64 random(seed_);
            std::vector<FieldView> room, chosen;
            for (uint64_t number = 0; !(numbers && numbers->ends_before(number)); ++number) {
                const Sample sample = source.next();
                if (!sample) break;
                progress.add(1, payload_of(sample.get()));
                if (numbers && !numbers->takes(number)) continue;
                SampleView view = view_of(sample.get(), room);
                if (tarp_ && !out_.choose(view, chosen)) continue;
                sorter.add(random_ ? std::to_string(random()) : order_of(view, type), view);
            }
        }
        Progress progress(!options.is_quiet(), "sort: writing", 0);
        sorter.finish([&](const SampleView& sample) {
            if (tarp_)
                out_.write_chosen(sample);
            else
                out_.write(sample);
            progress.add(1, 0);
        });
        out_.finish();
        return done;
    }

  private:
    [[nodiscard]] std::string order_of(const SampleView& sample, SortType type) const {
        std::string_view value = sample.key;
        if (by_ != "__key__") {
            const FieldView* field = sample.find(by_);
            if (!field)
                throw Failure(failed,
                              sample.name() + " has no field " + printable(by_) +
                                  " to sort by; help: cat --fields leaves such samples out");
            value = text(field->data);
        }
        try {
            return sort_key(value, type);
        } catch (const Failure& failure) {
            throw Failure(failed, sample.name() + ": " + failure.what());
        }
    }

    [[nodiscard]] std::string temporary_folder() const {
        if (!folder_.empty()) return folder_;
        const char* folder = std::getenv("TMPDIR");
        return folder && *folder ? folder : "/tmp";
    }

    std::vector<std::string> inputs_;
    SampleWriter out_;
    std::string by_;
    std::string type_ = "bytes";
    bool reverse_ = false;
    bool random_ = false;
    uint64_t seed_ = 0;
    std::string slice_;
    std::string folder_;
    bool tarp_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_sort() {
    return std::make_unique<Sort>();
}

}  // namespace cli
