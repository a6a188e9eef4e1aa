// doctor: what this build and this machine can do.
#include "cli/credentials.h"
#include "cli/environment.h"
#include "cli/json_report.h"
#include "cli/library.h"
#include "cli/machine.h"
#include "cli/sample_source.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

extern char** environ;

namespace cli {

namespace {

constexpr std::array features = {"gzip",       "bzip2", "xz",       "zstd",  "lz4",   "lzip",
                                 "compress",   "pipe",  "jpeg",     "png",   "webp",  "gif",
                                 "tiff",       "jxl",   "avif",     "audio", "video", "http",
                                 "libarchive", "feed",  "feed_http"};
// Those that the library or this command reads, and whether their value is no secret.
struct Variable {
    const char* name;
    bool is_shown;
};
constexpr std::array<Variable, 17> variables = {{
    {"SHARDFEED_CACHE", true},
    {"SHARDFEED_SECURE", true},
    {"SHARDFEED_PYTHON", true},
    {"TMPDIR", true},
    {"AWS_PROFILE", true},
    {"AWS_REGION", true},
    {"AWS_DEFAULT_REGION", true},
    {"AWS_ENDPOINT_URL", false},
    {"AWS_ENDPOINT_URL_S3", false},
    {"STORAGE_EMULATOR_HOST", false},
    {"AZURE_STORAGE_ACCOUNT", true},
    {"HF_ENDPOINT", false},
    {"AIS_ENDPOINT", false},
    {"http_proxy", false},
    {"https_proxy", false},
    {"all_proxy", false},
    {"no_proxy", true},
}};
constexpr uint64_t few_files = 1024;

Json or_null(const char* text) {
    return text ? json_of(text) : Json(nullptr);
}

Json build_facts() {
    Json made = Json::object();
    for (const char* name : features) made[name] = or_null(shf_feature(name));
    return made;
}

Json machine_facts(const Machine& machine) {
    Json made;
    made["cores"] = machine.cores;
    made["usable_cores"] = machine.usable_cores;
    made["core_limit"] = machine.core_limit ? Json(*machine.core_limit) : Json(nullptr);
    made["memory"] = machine.memory;
    made["free_memory"] = machine.free_memory;
    made["memory_limit"] = machine.memory_limit ? Json(*machine.memory_limit) : Json(nullptr);
    made["open_files"] = machine.open_files;
    made["most_open_files"] = machine.most_open_files;
    return made;
}

// Their values, or true where those may be secrets.
Json environment_facts() {
    Json made = Json::object();
    for (const auto& [name, is_shown] : variables) {
        const std::string value = variable(name);
        if (!value.empty()) made[name] = is_shown ? json_of(value) : Json(true);
    }
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view word = *entry;
        if (word.starts_with("WDS_")) made[std::string(word.substr(0, word.find('=')))] = true;
    }
    return made;
}

Json credential_facts() {
    Json made = Json::object();
    for (const StoreCredentials& one : store_credentials()) {
        made[one.store] = Json::array();
        for (const std::string& place : one.places) made[one.store].push_back(json_of(place));
    }
    return made;
}

void warn_of_cache(std::vector<std::string>& warnings) {
    const std::string folder = variable("SHARDFEED_CACHE");
    if (folder.empty() || ::access(folder.c_str(), W_OK | X_OK) == 0) return;
    if (errno == ENOENT) return;  // it is made when it is needed
    warnings.push_back("SHARDFEED_CACHE: " + printable(folder) +
                       " cannot be written; help: name a folder of this user");
}

std::vector<std::string> warnings_of(const Machine& machine, const LibraryOptions& options) {
    std::vector<std::string> made;
    if (machine.open_files < few_files)
        made.push_back("this process may open " + count_text(machine.open_files) +
                       " files; help: ulimit -n " +
                       std::to_string(std::min(machine.most_open_files, uint64_t{65536})));
    uint64_t memory = machine.memory;
    if (machine.memory_limit) memory = std::min(memory, *machine.memory_limit);
    const uint64_t wanted = std::strtoull(options.get("memory").c_str(), nullptr, 10);
    if (wanted > memory / 2)
        made.push_back("a stream may take " + size_text(wanted) + " of " + size_text(memory) +
                       "; help: give a smaller --memory");
    const double usable = machine.core_limit ? *machine.core_limit : machine.usable_cores;
    if (usable < machine.usable_cores)
        made.push_back(
            "a control group gives this process the time of fewer cores than it sees; "
            "help: give --threads");
    warn_of_cache(made);
    return made;
}

std::string lines_of(const Json& facts) {
    std::string made;
    const auto line = [&](const std::string& name, const std::string& value) {
        made +=
            "  " + name + std::string(name.size() < 24 ? 24 - name.size() : 1, ' ') + value + "\n";
    };
    made += "shardfeed " + facts["version"].get<std::string>() + "\nfeatures\n";
    for (const auto& [name, value] : facts["features"].items())
        line(name, value.is_null() ? "missing from this build" : value.get<std::string>());
    const Json& machine = facts["machine"];
    made += "machine\n";
    line("cores", machine["usable_cores"].dump() + " of " + machine["cores"].dump());
    if (!machine["core_limit"].is_null())
        line("limit of cores", machine["core_limit"].dump() + " (control group)");
    line("memory", size_text(machine["memory"].get<uint64_t>()) + ", " +
                       size_text(machine["free_memory"].get<uint64_t>()) + " free");
    if (!machine["memory_limit"].is_null())
        line("limit of memory",
             size_text(machine["memory_limit"].get<uint64_t>()) + " (control group)");
    line("open files", count_text(machine["open_files"].get<uint64_t>()) + ", at most " +
                           count_text(machine["most_open_files"].get<uint64_t>()));
    made += "environment\n";
    for (const auto& [name, value] : facts["environment"].items())
        line(printable(name),
             value.is_string() ? printable(value.get<std::string>()) : "set, not shown");
    if (facts["environment"].empty()) made += "  nothing of what the library reads\n";
    made += "credentials (not shown)\n";
    for (const StoreCredentials& one : store_credentials()) {
        std::string places;
        for (const std::string& place : one.places)
            places += (places.empty() ? "" : ", ") + printable(place);
        line(one.store, places.empty() ? std::string("none found; ") + one.help : places);
    }
    return made;
}

class Doctor final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Says what this build can read, what the machine gives to this process, what of the "
            "environment is used, and where credentials are; none of them is shown. Shards are "
            "opened as a stream would do it, up to the first sample.");
        arguments.add_option("URL", urls_, "shards to open");
        arguments.add_flag("--json", json_, "print one line of JSON");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed doctor", "Prints versions, features, limits and credentials."},
                {"shardfeed doctor 's3://bucket/train-{000..099}.tar' --s3-region eu-west-1",
                 "Also opens shards of a bucket, and says what went wrong."},
                {"shardfeed doctor --json", "The same for programs."}};
    }

    int run(const LibraryOptions& options) override {
        const Machine machine = this_machine();
        Json facts;
        facts["version"] = shf_version_string();
        facts["features"] = build_facts();
        facts["machine"] = machine_facts(machine);
        facts["environment"] = environment_facts();
        facts["credentials"] = credential_facts();
        const std::vector<std::string> warnings = warnings_of(machine, options);
        facts["warnings"] = Json::array();
        for (const std::string& warning : warnings) facts["warnings"].push_back(json_of(warning));
        Output out;
        if (!json_) {
            out.write(lines_of(facts));
            out.flush();
            for (const std::string& warning : warnings) say("warning: " + warning);
        }
        int status = done;
        if (!urls_.empty()) {
            facts["opened"] = opened(options);
            if (!facts["opened"]["error"].is_null()) status = failed;
            if (!json_) print(facts["opened"], out);
        }
        if (json_) out.write(line_of(facts));
        out.flush();
        return status;
    }

  private:
    Json opened(const LibraryOptions& options) const {
        Json made;
        made["shards"] = nullptr;
        made["error"] = nullptr;
        try {
            made["shards"] = expanded(urls_, options.handle()).size();
            const auto start = std::chrono::steady_clock::now();
            StreamSource source(urls_, options.handle());
            const Sample sample = source.next();
            made["seconds"] =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            if (!sample) return made;
            made["key"] = json_of(key_of(sample.get()));
            made["fields"] = shf_sample_field_count(sample.get());
            made["bytes"] = payload_of(sample.get());
        } catch (const Failure& failure) {
            made["error"] = json_of(failure.what());
        }
        return made;
    }

    static void print(const Json& opened, Output& out) {
        if (!opened["error"].is_null()) {
            say(opened["error"].get<std::string>());
            return;
        }
        std::array<char, 32> seconds = {};
        std::snprintf(seconds.data(), seconds.size(), "%.3f", opened["seconds"].get<double>());
        std::string line = "opened\n  " + count_text(opened["shards"].get<uint64_t>()) +
                           (opened["shards"] == 1 ? " shard; " : " shards; ");
        if (opened.contains("key"))
            line += "the first sample is " + printable(opened["key"].get<std::string>()) + ", " +
                    count_text(opened["fields"].get<uint64_t>()) + " fields, " +
                    size_text(opened["bytes"].get<uint64_t>()) + ", after " + seconds.data() +
                    " s\n";
        else
            line += "they have no samples\n";
        out.write(line);
    }

    std::vector<std::string> urls_;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_doctor() {
    return std::make_unique<Doctor>();
}

}  // namespace cli
