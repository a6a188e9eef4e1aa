// bench: how fast this machine reads shards, and what limits it.
#include "cli/interrupts.h"
#include "cli/json_report.h"
#include "cli/library.h"
#include "cli/machine.h"
#include "cli/sample_source.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace cli {

namespace {

using Clock = std::chrono::steady_clock;
using Batch = std::unique_ptr<shf_batch, Releaser<shf_batch_unref>>;

constexpr size_t read_size = size_t{1} << 20;
constexpr double second_ns = 1e9;
// Above this share of its threads' time, a phase is limited by the processor.
constexpr double busy_share = 0.6;
constexpr double idle_share = 0.3;
constexpr double shortest = 0.2;  // seconds

struct Phase {
    std::string name;  // "read", "samples", "batches"
    double seconds = 0;
    double processor = 0;  // seconds of all threads
    uint64_t samples = 0;
    uint64_t bytes = 0;        // of files for "read", of fields, or of decoded columns
    double consumer_wait = 0;  // seconds
    double reader_wait = 0;    // of all readers
    uint64_t network_bytes = 0;
    bool whole = false;  // all shards were read

    [[nodiscard]] double rate(uint64_t count) const {
        return seconds > 0 ? static_cast<double>(count) / seconds : 0;
    }
    [[nodiscard]] double waiting_share() const { return seconds > 0 ? consumer_wait / seconds : 0; }
};

// The time of a phase: it ends after so many seconds.
class Watch {
  public:
    explicit Watch(double seconds) : limit_(seconds) {}

    [[nodiscard]] bool is_over() const { return wall() >= limit_ || interrupted(); }
    void stop(Phase& phase) const {
        phase.seconds = wall();
        phase.processor = processor_seconds() - processor_;
    }

  private:
    [[nodiscard]] double wall() const {
        return std::chrono::duration<double>(Clock::now() - start_).count();
    }

    const double limit_;
    const Clock::time_point start_ = Clock::now();
    const double processor_ = processor_seconds();
};

class File {
  public:
    explicit File(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (number_ < 0)
            throw Failure(failed, printable(path) + ": " + std::strerror(errno) +
                                      "; help: name shards that can be read");
    }
    ~File() { ::close(number_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] int number() const { return number_; }

  private:
    const int number_;
};

// Gives up what the system keeps of a file in memory.
void forget(const std::vector<std::string>& files) {
    for (const std::string& path : files) {
        const File file(path);
        ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
    }
}

Phase read_files(const std::vector<std::string>& files, double seconds) {
    Phase phase = {.name = "read"};
    std::vector<char> room(read_size);
    const Watch watch(seconds);
    phase.whole = true;
    for (const std::string& path : files) {
        if (!phase.whole) break;
        const File file(path);
        for (;;) {
            const ssize_t count = ::read(file.number(), room.data(), room.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0)
                throw Failure(failed, printable(path) + ": " + std::strerror(errno) +
                                          "; help: look at the disk");
            if (count == 0) break;
            phase.bytes += static_cast<uint64_t>(count);
            phase.whole = !watch.is_over();
            if (!phase.whole) break;
        }
    }
    watch.stop(phase);
    return phase;
}

Stream timed_stream(const std::vector<std::string>& urls, const shf_options* options) {
    std::vector<const char*> names;
    for (const std::string& url : urls) names.push_back(url.c_str());
    shf_stream* made = nullptr;
    call(shf_stream_open, &made, names.data(), names.size(), options);
    return Stream(made);
}

void take_counters(const shf_stream* stream, Phase& phase) {
    const auto counter = [&](int32_t stat) { return shf_stream_stat(stream, stat); };
    phase.samples = counter(SHF_STAT_SAMPLES);
    phase.bytes = counter(SHF_STAT_BYTES);
    phase.consumer_wait = static_cast<double>(counter(SHF_STAT_CONSUMER_WAIT_NS)) / second_ns;
    phase.reader_wait = static_cast<double>(counter(SHF_STAT_READER_WAIT_NS)) / second_ns;
    phase.network_bytes = counter(SHF_STAT_NETWORK_BYTES);
}

Phase read_samples(const std::vector<std::string>& urls, const shf_options* options,
                   double seconds) {
    Phase phase = {.name = "samples"};
    const Watch watch(seconds);
    const Stream stream = timed_stream(urls, options);
    const Cancellable cancellable(stream.get());
    while (!watch.is_over()) {
        shf_block* made = nullptr;
        if (call(shf_stream_next_block, stream.get(), size_t{0}, &made) == SHF_END) {
            phase.whole = true;
            break;
        }
        const Block block(made);
    }
    watch.stop(phase);
    take_counters(stream.get(), phase);
    return phase;
}

Phase read_batches(const std::vector<std::string>& urls, const shf_options* options,
                   double seconds) {
    Phase phase = {.name = "batches"};
    const Watch watch(seconds);
    const Stream stream = timed_stream(urls, options);
    const Cancellable cancellable(stream.get());
    while (!watch.is_over()) {
        shf_batch* made = nullptr;
        if (call(shf_stream_next_batch, stream.get(), &made) == SHF_END) {
            phase.whole = true;
            break;
        }
        const Batch batch(made);
    }
    watch.stop(phase);
    take_counters(stream.get(), phase);
    return phase;
}

struct Verdict {
    const char* limit;
    const char* help;
};

// `threads` work in the last phases.
Verdict verdict_of(const std::vector<Phase>& phases, double threads, bool is_local) {
    const Phase* samples = nullptr;
    const Phase* batches = nullptr;
    for (const Phase& phase : phases) {
        if (phase.name == "samples") samples = &phase;
        if (phase.name == "batches") batches = &phase;
    }
    if (batches && batches->rate(batches->samples) < 0.7 * samples->rate(samples->samples))
        return {"decoding",
                "more --threads and cores, smaller images, or only the fields that are "
                "needed (--decode)"};
    if (samples->waiting_share() < idle_share)
        return {"the consumer", "the readers wait for it: samples come as fast as they are taken"};
    if (samples->processor < busy_share * threads * samples->seconds) {
        if (is_local)
            return {"the disk", "a faster disk; without --cold shards may come from memory"};
        return {"the network", "more --connections or --threads, or a --cache"};
    }
    return {"decompression and checks by the processor",
            "more --threads where cores are free, or shards in zstd or without compression"};
}

std::string line_of_phase(const Phase& phase) {
    const auto whole = [](double number) { return static_cast<uint64_t>(number + 0.5); };
    std::string rate = size_text(whole(phase.rate(phase.bytes))) + "/s";
    std::string samples =
        phase.name == "read" ? "" : count_text(whole(phase.rate(phase.samples))) + " samples/s";
    std::array<char, 160> made = {};
    std::snprintf(made.data(), made.size(), "%-8s %12s %18s  %6.2f s  %3.0f%% of a core",
                  phase.name.c_str(), rate.c_str(), samples.c_str(), phase.seconds,
                  phase.seconds > 0 ? 100 * phase.processor / phase.seconds : 0.0);
    std::string line = made.data();
    if (phase.name != "read") {
        std::snprintf(made.data(), made.size(), "  consumer waits %2.0f%%, readers %.2f s",
                      100 * phase.waiting_share(), phase.reader_wait);
        line += made.data();
    }
    return line + "\n";
}

Json json_of_phase(const Phase& phase) {
    Json made;
    made["phase"] = phase.name;
    made["seconds"] = phase.seconds;
    made["processor_seconds"] = phase.processor;
    made["bytes"] = phase.bytes;
    if (phase.name != "read") {
        made["samples"] = phase.samples;
        made["consumer_wait_seconds"] = phase.consumer_wait;
        made["reader_wait_seconds"] = phase.reader_wait;
        made["network_bytes"] = phase.network_bytes;
    }
    made["whole"] = phase.whole;
    return made;
}

bool is_file(const std::string& path) {
    struct stat info = {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

class Bench final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Measures how fast this machine reads shards: the bytes of local files (read), samples "
            "with decompression and all checks (samples), and batches with decoded fields "
            "(batches). Says what limits it. Files that were read lately come from memory unless "
            "--cold is given.");
        arguments.add_option("URL", urls_, "shards: paths and URLs").required();
        arguments.add_option("--seconds", seconds_, "time for each of the three; the default is 5")
            .type_name("N")
            .positive();
        arguments.add_flag("--cold", cold_,
                           "give up what the system keeps of local shards in memory");
        arguments.add_flag("--no-decode", no_decode_, "no batches");
        arguments.add_flag("--json", json_, "print one line of JSON");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed bench 'train-{000..009}.tar'",
                 "Measures reading, samples and batches, 5 seconds each."},
                {"shardfeed bench 'train-{000..009}.tar' --cold --threads 8",
                 "The same from the disk and not from memory, with eight threads."},
                {"shardfeed bench s3://bucket/a.tar --decode 'jpg:image/rgb8/resize=224' --json",
                 "Measures a store, with a decoding of one's own."}};
    }

    int run(const LibraryOptions& options) override {
        const std::vector<std::string> all = expanded(urls_, options.handle());
        const bool is_local = std::all_of(all.begin(), all.end(), is_file);
        if (cold_ && !is_local)
            throw Failure(wrong_command_line, "--cold is for local files; help: leave it out");
        options.set("expand", "false");
        std::vector<Phase> phases;
        const auto add = [&](const auto& measure) {
            if (interrupted()) return;
            if (cold_) forget(all);
            phases.push_back(measure());
        };
        if (is_local) add([&] { return read_files(all, seconds_); });
        add([&] { return read_samples(all, options.handle(), seconds_); });
        if (!no_decode_) {
            const Options batched = options.copy();
            if (!options.given("batch")) call(shf_options_set, batched.get(), "batch", "32");
            add([&] { return read_batches(all, batched.get(), seconds_); });
        }
        if (interrupted()) return failed;
        report(phases, threads_of(options, all.size()), is_local);
        if (!options.is_quiet() && phases.back().seconds < shortest)
            say("warning: all shards were read in less than 0.2 s, which is too short for good "
                "figures; help: name more shards");
        return done;
    }

  private:
    // How many threads of the library can work at once.
    static double threads_of(const LibraryOptions& options, size_t shards) {
        const Machine machine = this_machine();
        double cores = machine.usable_cores;
        if (machine.core_limit) cores = std::min(cores, *machine.core_limit);
        double threads = std::strtod(options.get("threads").c_str(), nullptr);
        if (threads == 0) threads = 4;
        return std::min({threads, cores, static_cast<double>(std::max<size_t>(shards, 1))});
    }

    void report(const std::vector<Phase>& phases, double threads, bool is_local) const {
        const Verdict verdict = verdict_of(phases, threads, is_local);
        Output out;
        if (json_) {
            Json made;
            made["phases"] = Json::array();
            for (const Phase& phase : phases) made["phases"].push_back(json_of_phase(phase));
            made["limit"] = verdict.limit;
            made["help"] = verdict.help;
            out.write(line_of(made));
        } else {
            for (const Phase& phase : phases) out.write(line_of_phase(phase));
            out.write(std::string("limited by ") + verdict.limit + "; help: " + verdict.help +
                      "\n");
        }
        out.flush();
    }

    std::vector<std::string> urls_;
    double seconds_ = 5;
    bool cold_ = false;
    bool no_decode_ = false;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_bench() {
    return std::make_unique<Bench>();
}

}  // namespace cli
