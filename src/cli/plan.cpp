// plan: what each rank and worker of a run will read, and when.
#include "cli/json_report.h"
#include "cli/library.h"
#include "cli/plan_simulation.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

namespace cli {

namespace {

// The position of "=" in NAME=VALUE; npos for URLs.
size_t equals_sign(std::string_view word) {
    const size_t at = word.find('=');
    if (at == std::string_view::npos || at == 0 || word[0] < 'a' || word[0] > 'z')
        return std::string_view::npos;
    const std::string_view name = word.substr(0, at);
    const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    return is_name ? at : std::string_view::npos;
}

// Throws Failure for an option that only others than streams take.
void expect_of_streams(const std::string& name) {
    for (size_t i = 0; const char* known = shf_option_describe(i, SHF_OPTION_NAME); ++i) {
        if (name != known) continue;
        const std::string openers = shf_option_describe(i, SHF_OPTION_OPENERS);
        std::istringstream words(openers);
        std::string word;
        while (words >> word)
            if (word == "stream") return;
        throw Failure(wrong_command_line,
                      name + " is an option of " + openers +
                          " only; help: shardfeed help options lists those of streams");
    }
}

struct Property {
    const char* name;
    int32_t what;
};

// What is not known is null.
Json number(uint64_t value) {
    return value == std::numeric_limits<uint64_t>::max() ? Json(nullptr) : Json(value);
}

Json consumers_of(const shf_plan* plan) {
    constexpr std::array<Property, 6> properties = {{
        {"rank", SHF_PLAN_RANK},
        {"worker", SHF_PLAN_WORKER},
        {"lanes", SHF_PLAN_LANES},
        {"shards", SHF_PLAN_SHARDS},
        {"samples", SHF_PLAN_SAMPLES},
        {"bytes", SHF_PLAN_BYTES},
    }};
    Json all = Json::array();
    for (uint64_t i = 0; i < shf_plan_consumer_count(plan); ++i) {
        Json one;
        for (const auto& [name, what] : properties)
            one[name] = number(shf_plan_info(plan, i, what));
        all.push_back(one);
    }
    return all;
}

class PlanVerb final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Prints what each rank and worker will read, and warnings. Opens no shard. Samples and "
            "bytes are known when all shards have indexes, as shardfeed index makes them. Shards "
            "that are not there yet can be made up (--shards) or listed (--counts).");
        arguments.add_option(
            "URL", words_,
            "shards, and options of streams such as world_size=8 or shuffle=1000, which "
            "may be written --world-size 8 too; a file with such a name is written "
            "./NAME=VALUE");
        planned_.declare(arguments);
        arguments.add_flag("--reads", reads_,
                           "print too when each rank and worker reads which shard, in its own "
                           "samples, counted from 0; threads read ahead of that");
        arguments.add_flag("--json", json_,
                           "print the plan as one line of JSON, and with --reads one more for each "
                           "rank and worker: [shard, samples, first, last] of each reading");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed plan 'train-{000..119}.tar' world_size=8 num_workers=4 shuffle=1000",
                 "Prints what each of the 32 workers will read, and warns of shards that do not "
                 "divide."},
                {"shardfeed plan 'train-{000..119}.tar' --world-size 8 --lanes 64 --json",
                 "The same for programs, for 8 ranks of one worker."},
                {"shardfeed plan --shards 100000 --samples-per-shard 1000 --spread 0.2 "
                 "world_size=1024 shuffle_shards=true",
                 "Prints how unequal the parts of 1,024 ranks are with so many shards."}};
    }

    int run(const LibraryOptions& options) override {
        std::vector<const char*> urls;
        for (const std::string& word : words_) {
            const size_t at = equals_sign(word);
            if (at == std::string::npos) {
                urls.push_back(word.c_str());
            } else {
                const std::string name = word.substr(0, at);
                expect_of_streams(name);
                options.set(name.c_str(), word.substr(at + 1));
            }
        }
        if (urls.empty() == !planned_.given())
            throw Failure(wrong_command_line,
                          "a plan needs at least one URL, or --shards or --counts; help: shardfeed "
                          "plan URL... NAME=VALUE...");
        const Plan plan =
            planned_.given() ? planned_.plan(options.handle()) : plan_of(urls, options);
        Output out;
        if (json_) {
            out.write(line_of(report(plan.get())));
        } else {
            shf_bytes said;
            shf_plan_text(plan.get(), &said);
            out.write(text(said));
            if (planned_.given()) out.write(PlanSummary(plan.get()).text());
        }
        if (reads_) write_reads(plan.get(), out);
        out.flush();
        return done;
    }

  private:
    static Plan plan_of(const std::vector<const char*>& urls, const LibraryOptions& options) {
        shf_plan* made = nullptr;
        call(shf_plan_make, &made, urls.data(), urls.size(), options.handle());
        return Plan(made);
    }

    // One consumer after another: all of them together may be large.
    void write_reads(const shf_plan* plan, Output& out) const {
        constexpr size_t numbers = 4;
        for (uint64_t i = 0; i < shf_plan_consumer_count(plan); ++i) {
            const std::vector<uint64_t> reads = reads_of(plan, i);
            const std::string rank = std::to_string(shf_plan_info(plan, i, SHF_PLAN_RANK)),
                              worker = std::to_string(shf_plan_info(plan, i, SHF_PLAN_WORKER));
            std::string list;
            for (size_t at = 0; at < reads.size(); at += numbers) {
                const auto number = [&](size_t which) { return std::to_string(reads[at + which]); };
                if (json_)
                    list += (at == 0 ? "[" : ",[") + number(0) + "," + number(1) + "," + number(2) +
                            "," + number(3) + "]";
                else
                    list += "rank " + rank + " worker " + worker + ": shard " + number(0) + ", " +
                            number(1) + (reads[at + 1] == 1 ? " sample" : " samples") + ", at " +
                            number(2) + " to " + number(3) + "\n";
            }
            if (json_)
                list = R"({"rank":)" + rank + R"(,"worker":)" + worker + R"(,"reads":[)" + list +
                       "]}\n";
            out.write(list);
        }
    }

    Json report(const shf_plan* plan) const {
        Json made;
        made["shards"] = shf_plan_shard_count(plan);
        made["consumers"] = consumers_of(plan);
        if (planned_.given()) made["summary"] = PlanSummary(plan).json();
        made["warnings"] = Json::array();
        shf_bytes warning;
        for (size_t i = 0; shf_plan_warning(plan, i, &warning) == SHF_OK; ++i)
            made["warnings"].push_back(json_of(text(warning)));
        return made;
    }

    std::vector<std::string> words_;
    PlannedShards planned_;
    bool reads_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_plan() {
    return std::make_unique<PlanVerb>();
}

}  // namespace cli
