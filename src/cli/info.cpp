// info: what a data set consists of, and what looks wrong about it.
#include "cli/check_pass.h"
#include "cli/file_format.h"
#include "cli/json_line.h"
#include "cli/key_census.h"
#include "cli/sample_source.h"
#include "cli/spread.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace cli {

namespace {

constexpr size_t most_fields = 1000;  // names that have a row of their own
constexpr size_t shown_faults = 10;

std::string padded(const std::string& text, size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string percent(uint64_t part, uint64_t whole) {
    if (part == whole) return "100 %";
    const auto tenths = static_cast<uint64_t>(1000.0 * static_cast<double>(part) /
                                              static_cast<double>(std::max<uint64_t>(whole, 1)));
    if (tenths == 0) return part > 0 ? "<0.1 %" : "0 %";
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

class Info final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Reads shards once and says what they are: formats, numbers of samples, a table of the "
            "fields with their sizes, how sizes of samples and shards spread, and what is "
            "suspicious: damage, unequal shards, samples without a field, keys that come again, "
            "shards sorted by suffix. With --world-size and --num-workers also what a plan for "
            "such a run warns of.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        arguments.add_flag("--json", json_, "print one line of JSON");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed info 'train-{000..099}.tar'", "Describes 100 shards."},
                {"shardfeed info 'train-*.tar' --world-size 64 --num-workers 4",
                 "Also says whether 64 processes of 4 workers can share them well."},
                {"shardfeed info --json s3://bucket/a.tar | jq .fields", "For programs."}};
    }

    int run(const LibraryOptions& options) override {
        urls_ = expanded(inputs_, options.handle());
        shards_.resize(urls_.size());
        Options reading = CheckPass::options_of(options);
        // What comes twice is counted here, over all shards.
        if (!options.given("duplicate_keys"))
            call(shf_options_set, reading.get(), "duplicate_keys", "accept");
        if (!options.given("allow_empty"))
            call(shf_options_set, reading.get(), "allow_empty", "true");
        CheckPass pass(inputs_, std::move(reading));
        {
            Progress progress(!options.is_quiet(), "info", local_bytes(urls_));
            pass.run([&](const shf_sample* sample) { progress.add(1, count(sample)); });
        }
        look_at_files();
        find_suspicious(pass, options);
        Output out;
        out.write(json_ ? as_json(pass) : as_text(pass));
        out.flush();
        return pass.fault_count() > 0 ? failed : done;
    }

  private:
    struct Warning {
        const char* kind;
        std::string message;
    };

    // Returns the bytes of the sample.
    uint64_t count(const shf_sample* sample) {
        uint64_t payload = 0;
        const size_t fields = shf_sample_field_count(sample);
        for (size_t i = 0; i < fields; ++i) {
            shf_bytes name;
            shf_bytes data;
            shf_sample_field(sample, i, &name, &data);
            spread_of(text(name)).add(data.size);
            payload += data.size;
        }
        fields_ += fields;
        one_field_ += fields == 1 ? 1 : 0;
        sample_sizes_.add(payload);
        const uint64_t shard = shf_sample_info(sample, SHF_SAMPLE_SHARD);
        if (shard < shards_.size()) ++shards_[static_cast<size_t>(shard)];
        if (keys_.add(key_of(sample)) && repeated_key_.empty()) repeated_key_ = key_of(sample);
        return payload;
    }

    Spread& spread_of(std::string_view name) {
        const auto found = table_.find(name);
        if (found != table_.end()) return *found->second;
        if (table_.size() >= most_fields) return others_;
        auto made = std::make_unique<Spread>();
        Spread& spread = *made;
        order_.emplace_back(name);
        table_.emplace(std::string(name), std::move(made));
        return spread;
    }

    void look_at_files() {
        for (size_t i = 0; i < urls_.size(); ++i) {
            ++formats_[format_of(urls_[i])];
            samples_in_shard_.add(shards_[i]);
            const auto path = local_file(urls_[i]);
            struct stat file = {};
            if (path && ::stat(path->c_str(), &file) == 0)
                shard_sizes_.add(static_cast<uint64_t>(file.st_size));
        }
    }

    void find_suspicious(const CheckPass& pass, const LibraryOptions& options) {
        if (pass.fault_count() > 0)
            warn("damage", count_text(pass.fault_count()) +
                               " damaged samples or shards, which the figures leave out; help: "
                               "shardfeed verify lists all");
        find_unequal();
        const bool is_sorted = one_field_ == sample_sizes_.count() && keys_.repeated() > 0;
        if (is_sorted)
            warn("sorted_by_suffix",
                 "each sample has one field, and keys come again: members are sorted by suffix, so "
                 "that fields of a sample do not follow one another; help: shardfeed sort");
        else if (keys_.repeated() > 0)
            warn("duplicate_keys", count_text(keys_.repeated()) +
                                       " samples have a key that came before, the first is " +
                                       printable(repeated_key_) +
                                       "; help: shardfeed cat --rekey gives new keys");
        if (!is_sorted) find_missing();
        for (const auto& [name, count] : pass.notable_counters()) {
            if (name.starts_with("skip")) continue;  // said above
            warn("counter", name + ": " + count_text(count));
        }
        find_plan_warnings(options);
    }

    // The last shard may be smaller: it has what was left.
    void find_unequal() {
        if (shards_.size() < 2) return;
        uint64_t least = UINT64_MAX;
        uint64_t most = 0;
        const bool is_rest = shards_.back() < shards_.front();
        for (size_t i = 0; i < shards_.size() - (is_rest ? 1 : 0); ++i) {
            least = std::min(least, shards_[i]);
            most = std::max(most, shards_[i]);
        }
        if (most > least + least / 2)
            warn("unequal_shards", "shards have " + count_text(least) + " to " + count_text(most) +
                                       " samples; help: shardfeed split makes equal ones");
    }

    void find_missing() {
        const uint64_t samples = sample_sizes_.count();
        std::string names;
        for (const std::string& name : order_) {
            const uint64_t without = samples - std::min(samples, table_.at(name)->count());
            if (without == 0) continue;
            names +=
                (names.empty() ? "" : ", ") + printable(name) + " (" + count_text(without) + ")";
            if (names.size() > 300) {
                names += ", ...";
                break;
            }
        }
        if (!names.empty())
            warn("missing_fields", "samples without a field that others have: " + names +
                                       "; help: shardfeed cat -f LIST --missing skip leaves "
                                       "them out");
    }

    void find_plan_warnings(const LibraryOptions& options) {
        std::vector<const char*> names;
        for (const std::string& url : inputs_) names.push_back(url.c_str());
        shf_plan* made = nullptr;
        call(shf_plan_make, &made, names.data(), names.size(), options.handle());
        const Plan plan(made);
        shf_bytes warning;
        for (size_t i = 0; shf_plan_warning(made, i, &warning) == SHF_OK; ++i)
            warn("plan", std::string(text(warning)));
    }

    void warn(const char* kind, std::string message) {
        warnings_.push_back({kind, std::move(message)});
    }

    [[nodiscard]] std::string as_text(const CheckPass& pass) const {
        std::string formats;
        for (const auto& [format, count] : formats_)
            formats += (formats.empty() ? "" : ", ") + count_text(count) + " " + format;
        std::string made = "shards   " + formats;
        if (shard_sizes_.count() > 0) made += ", " + size_text(shard_sizes_.total());
        made += "\nsamples  " + count_text(sample_sizes_.count()) + ", " + count_text(fields_) +
                " fields, " + size_text(sample_sizes_.total()) + "\n\n";
        size_t width = 18;  // of "samples of a shard"
        for (const std::string& name : order_) width = std::max(width, printable(name).size());
        const auto left = [&](const std::string& text) {
            return text + std::string(width - std::min(width, text.size()), ' ');
        };
        const auto row = [&](const std::string& name, const std::string& share,
                             const Spread& spread, std::string (*shown)(uint64_t)) {
            std::string line = left(name) + padded(share, 8) + padded(shown(spread.total()), 11) +
                               padded(shown(spread.smallest()), 9) +
                               padded(shown(spread.median()), 9) +
                               padded(shown(spread.largest()), 9) + "  " + spread.bars();
            while (line.back() == ' ') line.pop_back();
            made += line + "\n";
        };
        made += left("field") + padded("share", 8) + padded("total", 11) + padded("min", 9) +
                padded("median", 9) + padded("max", 9) + "  sizes\n";
        for (const std::string& name : order_) {
            const Spread& spread = *table_.at(name);
            row(printable(name), percent(spread.count(), sample_sizes_.count()), spread, size_text);
        }
        if (others_.count() > 0) row("(others)", "", others_, size_text);
        made += "\n";
        row("sample", "", sample_sizes_, size_text);
        if (shard_sizes_.count() > 0) row("file of a shard", "", shard_sizes_, size_text);
        row("samples of a shard", "", samples_in_shard_, count_text);
        for (const Warning& warning : warnings_)
            made += (&warning == warnings_.data() ? "\nwarning: " : "warning: ") + warning.message +
                    "\n";
        for (size_t i = 0; i < std::min(shown_faults, pass.faults().size()); ++i)
            made += "damage: " + pass.faults()[i].message + "\n";
        return made;
    }

    [[nodiscard]] std::string as_json(const CheckPass& pass) const {
        JsonLine formats;
        for (const auto& [format, count] : formats_) formats.number(format, count);
        std::vector<std::string> fields;
        for (const std::string& name : order_) {
            const Spread& spread = *table_.at(name);
            fields.push_back(JsonLine()
                                 .bytes("name", name)
                                 .number("samples", spread.count())
                                 .raw("sizes", spread.json())
                                 .object());
        }
        std::vector<std::string> warnings;
        for (const auto& [kind, message] : warnings_)
            warnings.push_back(JsonLine().text("kind", kind).text("message", message).object());
        std::vector<std::string> faults;
        for (const ShardFault& fault : pass.faults()) faults.push_back(fault.json());
        return JsonLine()
            .number("shards", uint64_t{urls_.size()})
            .raw("formats", formats.object())
            .number("samples", sample_sizes_.count())
            .number("field_count", fields_)
            .raw("fields", json_list(fields))
            .raw("sample_sizes", sample_sizes_.json())
            .raw("file_sizes", shard_sizes_.json())
            .raw("samples_of_shards", samples_in_shard_.json())
            .number("repeated_keys", keys_.repeated())
            .flag("all_keys_compared", !keys_.is_full())
            .raw("counters", counters_json(pass.notable_counters()))
            .raw("warnings", json_list(warnings))
            .number("fault_count", pass.fault_count())
            .raw("faults", json_list(faults))
            .line();
    }

    std::vector<std::string> inputs_;
    bool json_ = false;

    std::vector<std::string> urls_;
    std::vector<uint64_t> shards_;  // samples of each
    std::map<std::string, uint64_t> formats_;
    std::map<std::string, std::unique_ptr<Spread>, std::less<>> table_;
    std::vector<std::string> order_;  // of the fields, as they came
    Spread others_;
    Spread sample_sizes_;
    Spread shard_sizes_;
    Spread samples_in_shard_;
    KeyCensus keys_;
    std::string repeated_key_;
    uint64_t fields_ = 0;
    uint64_t one_field_ = 0;
    std::vector<Warning> warnings_;
};

}  // namespace

std::unique_ptr<Verb> make_info() {
    return std::make_unique<Info>();
}

}  // namespace cli
