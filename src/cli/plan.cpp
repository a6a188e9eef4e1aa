// plan: what each rank and worker of a run will read.
#include "cli/json_report.h"
#include "cli/library.h"
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
            "bytes are known when all shards have indexes, as shardfeed index makes them.");
        arguments
            .add_option(
                "URL", words_,
                "shards, and options of streams such as world_size=8 or shuffle=1000, which "
                "may be written --world-size 8 too; a file with such a name is written "
                "./NAME=VALUE")
            .required();
        arguments.add_flag("--json", json_, "print the plan as one line of JSON");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed plan 'train-{000..119}.tar' world_size=8 num_workers=4 shuffle=1000",
                 "Prints what each of the 32 workers will read, and warns of shards that do not "
                 "divide."},
                {"shardfeed plan 'train-{000..119}.tar' --world-size 8 --lanes 64 --json",
                 "The same for programs, for 8 ranks of one worker."}};
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
        if (urls.empty())
            throw Failure(
                wrong_command_line,
                "a plan needs at least one URL; help: shardfeed plan URL... NAME=VALUE...");
        shf_plan* made = nullptr;
        call(shf_plan_make, &made, urls.data(), urls.size(), options.handle());
        const Plan plan(made);
        Output out;
        if (json_) {
            out.write(line_of(report(plan.get())));
        } else {
            shf_bytes said;
            shf_plan_text(plan.get(), &said);
            out.write(text(said));
        }
        out.flush();
        return done;
    }

  private:
    static Json report(const shf_plan* plan) {
        Json made;
        made["shards"] = shf_plan_shard_count(plan);
        made["consumers"] = consumers_of(plan);
        made["warnings"] = Json::array();
        shf_bytes warning;
        for (size_t i = 0; shf_plan_warning(plan, i, &warning) == SHF_OK; ++i)
            made["warnings"].push_back(json_of(text(warning)));
        return made;
    }

    std::vector<std::string> words_;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_plan() {
    return std::make_unique<PlanVerb>();
}

}  // namespace cli
