// verify: whether shards are whole.
#include "cli/json_line.h"
#include "cli/sample_source.h"
#include "cli/shard_check.h"
#include "cli/shown_url.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace cli {

namespace {

class Verify final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Reads shards to their end and checks all that can be checked: every checksum, every "
            "header, end marks, the grouping into samples, and the index beside a shard. Continues "
            "behind damage and with the other shards, and lists what is wrong. The exit status is "
            "1 when something is. --threads says how many shards are checked at once, each in the "
            "memory of --memory.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        // A flag, so that the word after it is no SPEC.
        arguments.add_flag(
            "--decode{auto}", decode_,
            "also decode every field by its suffix, or with --decode=SPEC as SPEC says: "
            "jpg:image/rgb8, cls:int; JSON and MessagePack are parsed");
        arguments.add_flag("--json", json_, "print a line of JSON for each shard");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed verify 'train-{000..099}.tar'", "Checks 100 shards."},
                {"shardfeed verify a.zip --decode", "Also decodes all images, arrays and texts."},
                {"shardfeed verify --json 's3://bucket/train-{000..099}.tar' > report.jsonl",
                 "Writes a report for programs."}};
    }

    int run(const LibraryOptions& options) override {
        is_quiet_ = options.is_quiet();
        urls_ = expanded(inputs_, options.handle());
        if (urls_.empty())
            throw Failure(failed, "the list names no shard; help: shardfeed help verify");
        Progress progress(!is_quiet_, "verify", local_bytes(urls_));
        std::mutex progress_mutex;
        const size_t threads = thread_count(options);
        ShardCheck check(options, wanted(threads), [&](uint64_t samples, uint64_t bytes) {
            const std::lock_guard lock(progress_mutex);
            progress.add(samples, bytes);
        });
        std::vector<std::jthread> workers;
        for (size_t i = 0; i < threads; ++i) workers.emplace_back([&] { work(check); });
        print_all();
        return faulty_ > 0 ? failed : done;
    }

  private:
    [[nodiscard]] size_t thread_count(const LibraryOptions& options) const {
        size_t threads = 0;
        if (options.given("threads")) threads = std::stoul(options.get("threads"));
        if (threads == 0) threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4);
        return std::min(threads, urls_.size());
    }

    [[nodiscard]] ShardCheck::Wanted wanted(size_t threads) const {
        ShardCheck::Wanted made;
        made.decode_as = decode_;
        const size_t cores = std::max<size_t>(std::thread::hardware_concurrency(), 1);
        made.decode_threads = std::max<size_t>(cores / threads, 1);
        made.read_threads = threads > 1 ? 1 : 0;
        return made;
    }

    void work(ShardCheck& check) {
        for (;;) {
            size_t number = 0;
            {
                const std::lock_guard lock(mutex_);
                if (next_ == urls_.size() || failure_) return;
                number = next_++;
            }
            std::optional<ShardVerdict> verdict;
            std::exception_ptr failure;
            try {
                verdict = check.check(urls_[number]);
            } catch (...) {
                failure = std::current_exception();
            }
            const std::lock_guard lock(mutex_);
            if (failure && !failure_) failure_ = failure;
            if (verdict) verdicts_.emplace(number, std::move(*verdict));
            changed_.notify_one();
        }
    }

    // In the order of the shards, each as soon as those before it are done.
    void print_all() {
        Output out;
        uint64_t samples = 0;
        uint64_t payload = 0;
        for (size_t number = 0; number < urls_.size(); ++number) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return failure_ || verdicts_.contains(number); });
            if (failure_) std::rethrow_exception(failure_);
            const ShardVerdict verdict = std::move(verdicts_.extract(number).mapped());
            lock.unlock();
            samples += verdict.samples;
            payload += verdict.payload;
            if (verdict.fault_count > 0) ++faulty_;
            out.write(json_ ? as_json(verdict) : as_text(verdict));
            out.flush();
        }
        if (!json_ && !is_quiet_)
            out.write(count_text(urls_.size()) + (urls_.size() == 1 ? " shard, " : " shards, ") +
                      (faulty_ > 0 ? count_text(faulty_) + " with faults" : "all whole") + ": " +
                      count_text(samples) + " samples, " + size_text(payload) + "\n");
        out.flush();
    }

    [[nodiscard]] std::string as_text(const ShardVerdict& verdict) const {
        const bool is_whole = verdict.fault_count == 0;
        if (is_whole && is_quiet_) return {};
        std::string made = (is_whole ? "whole  " : "FAULTY ") + printable(shown_url(verdict.url)) +
                           "  " + count_text(verdict.samples) + " samples, " +
                           size_text(verdict.payload);
        if (verdict.index != "none") made += ", index " + verdict.index;
        for (const auto& [name, count] : verdict.counters)
            if (!name.starts_with("skip")) made += ", " + name + " " + count_text(count);
        made += "\n";
        for (const ShardFault& fault : verdict.faults)
            made += "       " + fault.code + ": " + fault.message + "\n";
        if (verdict.fault_count > verdict.faults.size())
            made +=
                "       and " + count_text(verdict.fault_count - verdict.faults.size()) + " more\n";
        return made;
    }

    static std::string as_json(const ShardVerdict& verdict) {
        std::vector<std::string> faults;
        for (const ShardFault& fault : verdict.faults) faults.push_back(fault.json());
        return JsonLine()
            .bytes("shard", shown_url(verdict.url))
            .text("format", verdict.format)
            .flag("whole", verdict.fault_count == 0)
            .number("samples", verdict.samples)
            .number("fields", verdict.fields)
            .number("payload", verdict.payload)
            .text("index", verdict.index)
            .raw("counters", counters_json(verdict.counters))
            .number("fault_count", verdict.fault_count)
            .raw("faults", json_list(faults))
            .line();
    }

    std::vector<std::string> inputs_;
    std::string decode_;
    bool json_ = false;

    bool is_quiet_ = false;
    std::vector<std::string> urls_;
    uint64_t faulty_ = 0;

    std::mutex mutex_;
    std::condition_variable changed_;
    size_t next_ = 0;
    std::map<size_t, ShardVerdict> verdicts_;  // that are not printed yet
    std::exception_ptr failure_;               // what ends the run
};

}  // namespace

std::unique_ptr<Verb> make_verify() {
    return std::make_unique<Verify>();
}

}  // namespace cli
