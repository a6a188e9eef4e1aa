// cache: looks after the folder that the option "cache" fills.
#include "cli/json_report.h"
#include "cli/library.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

namespace cli {

namespace {

double in_seconds(uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

struct TimeUnit {
    char letter;
    uint64_t seconds;
};
constexpr std::array<TimeUnit, 4> units = {{{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};

// Seconds; none for a text that is no age.
std::optional<uint64_t> parsed_age(std::string_view text) {
    if (text.size() < 2 || text.size() > 10) return std::nullopt;
    uint64_t number = 0;
    const char* const end = text.data() + text.size() - 1;
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) return std::nullopt;
    for (const TimeUnit& unit : units)
        if (text.back() == unit.letter) return number * unit.seconds;
    return std::nullopt;
}

std::string age_text(double seconds) {
    std::array<char, 32> made = {};
    for (const TimeUnit& unit : units)
        if (seconds >= static_cast<double>(unit.seconds) || unit.seconds == 1) {
            std::snprintf(made.data(), made.size(), "%.0f%c",
                          seconds / static_cast<double>(unit.seconds), unit.letter);
            break;
        }
    return made.data();
}

// One version of one shard.
struct CacheRow {
    std::string_view url;
    std::string_view version;
    uint64_t size;  // of the shard
    uint64_t data;  // of it, in the cache
    uint64_t disk;
    uint64_t age_ns;
    uint64_t faults;  // damaged blocks, which were removed
};

CacheRow row_of(const shf_cache_report* report, size_t number) {
    const auto text_at = [&](int32_t what) {
        shf_bytes found;
        shf_cache_text(report, number, what, &found);
        return text(found);
    };
    const auto number_at = [&](int32_t what) { return shf_cache_number(report, number, what); };
    return {.url = text_at(SHF_CACHE_URL),
            .version = text_at(SHF_CACHE_VERSION),
            .size = number_at(SHF_CACHE_SIZE),
            .data = number_at(SHF_CACHE_DATA),
            .disk = number_at(SHF_CACHE_DISK),
            .age_ns = number_at(SHF_CACHE_AGE),
            .faults = number_at(SHF_CACHE_FAULTS)};
}

std::string row_line(const CacheRow& row) {
    const std::string size = size_text(row.data);
    const double age = in_seconds(row.age_ns);
    const unsigned percent = row.size == 0
                                 ? 0
                                 : static_cast<unsigned>(100.0 * static_cast<double>(row.data) /
                                                         static_cast<double>(row.size));
    std::array<char, 64> made = {};
    std::snprintf(made.data(), made.size(), "%9s  %3u%%  used %4s ago  ", size.c_str(), percent,
                  age_text(age).c_str());
    std::string line = made.data();
    line += row.url.empty() ? "(no label)" : printable(row.url);
    if (row.faults > 0) line += "  " + std::to_string(row.faults) + " damaged, removed";
    return line + "\n";
}

Json row_json(const CacheRow& row) {
    Json made;
    made["url"] = json_of(row.url);
    made["version"] = json_of(row.version);
    made["size"] = row.size;
    made["data"] = row.data;
    made["disk"] = row.disk;
    made["age"] = in_seconds(row.age_ns);
    made["faults"] = row.faults;
    return made;
}

class CacheVerb final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Looks after the folder that the option --cache fills. Programs may use it meanwhile; "
            "what they have open stays readable.");
        arguments
            .add_option("ACTION", action_,
                        "ls: list the versions of shards; verify: read them and remove damaged "
                        "blocks, with exit status 1 when there were any; clear: remove them")
            .required()
            .one_of({"ls", "verify", "clear"});
        arguments.add_option(
            "URL", urls_,
            "these shards; a URL that ends in / means all below it; the default is all");
        arguments
            .add_option("--dir", folder_,
                        "the folder, as in the option --cache; the default is SHARDFEED_CACHE in "
                        "the environment")
            .type_name("DIR");
        arguments
            .add_option("--older-than", age_,
                        "only what was not used for so long: 90s, 45m, 12h, 30d")
            .type_name("AGE");
        arguments.add_flag("--json", json_, "print a line of JSON for each version of a shard");
    }
    std::vector<Example> examples() const override {
        return {{"shardfeed cache ls --dir /local/ssd",
                 "Lists the shards in a cache, as the option --cache /local/ssd fills it."},
                {"shardfeed cache verify --dir /local/ssd",
                 "Compares the checksums of all blocks, and removes those that are damaged."},
                {"shardfeed cache clear --dir /local/ssd --older-than 30d",
                 "Removes what was not used for 30 days."}};
    }

    int run(const LibraryOptions& options) override {
        const std::optional<uint64_t> age = parsed_age(age_);
        if (!age)
            throw Failure(wrong_command_line, "--older-than: " + printable(age_) +
                                                  " is no age; help: such as 90s, "
                                                  "45m, 12h or 30d");
        if (!folder_.empty()) options.set("cache", folder_);
        std::vector<const char*> urls;
        for (const std::string& url : urls_) urls.push_back(url.c_str());
        const auto act = action_ == "ls"       ? shf_cache_list
                         : action_ == "verify" ? shf_cache_verify
                                               : shf_cache_clear;
        shf_cache_report* made = nullptr;
        call(act, &made, urls.data(), urls.size(), *age, options.handle());
        const CacheReport report(made);
        return print(report.get());
    }

  private:
    int print(const shf_cache_report* report) const {
        const size_t count = shf_cache_count(report);
        Output out;
        uint64_t disk = 0;
        uint64_t faults = 0;
        for (size_t i = 0; i < count; ++i) {
            const CacheRow row = row_of(report, i);
            disk += row.disk;
            faults += row.faults;
            out.write(json_ ? line_of(row_json(row)) : row_line(row));
        }
        const char* const effect = action_ == "ls"       ? "in the cache"
                                   : action_ == "verify" ? "verified"
                                                         : "removed";
        if (!json_)
            out.write(count_text(count) + (count == 1 ? " version" : " versions") + " of shards, " +
                      size_text(disk) + " " + effect + "\n");
        out.flush();
        if (faults == 0) return done;
        say(count_text(faults) + (faults == 1 ? " block" : " blocks") +
            " of the cache did not have the bytes that were written; help: they are fetched again; "
            "test the disk when more follow");
        return failed;
    }

    std::string action_;
    std::vector<std::string> urls_;
    std::string folder_;
    std::string age_ = "0s";
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_cache() {
    return std::make_unique<CacheVerb>();
}

}  // namespace cli
