// map: samples through a command, or a function of Python.
#include "cli/process.h"
#include "cli/python_program.h"
#include "cli/python_worker.h"
#include "cli/sample_folder.h"
#include "cli/sample_source.h"
#include "cli/sample_writer.h"
#include "cli/selection.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>

namespace cli {

namespace {

class Map final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Changes each sample by a command. The command runs in a folder of its own with the "
            "files sample.FIELD and sample.__key__; the files sample.* that are there when it ends "
            "are the new sample. With --multi the files sample-NUMBER.* are any number of new "
            "samples. Commands run at the same time, and samples keep their order.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        out_.declare(arguments);
        Argument command =
            arguments.add_option("-c,--command", command_, "the command, for a shell");
        command.type_name("COMMAND");
        Argument multi = arguments.add_option("-m,--multi,--multicommand", multi_,
                                              "the same, for one that makes many samples of one");
        multi.type_name("COMMAND");
        Argument python =
            arguments.add_option("--python", python_,
                                 "MODULE:FUNCTION, called with a dict of fields as bytes and "
                                 "__key__; it returns a dict, a list of dicts, or None");
        python.type_name("FUNCTION");
        command.excludes(multi).excludes(python);
        multi.excludes(python);
        arguments
            .add_option("-p,--parallel", parallel_,
                        "commands that run at the same time; the default is one for each core")
            .type_name("N")
            .within(1, 1024);
        arguments
            .add_option("-e,--on-error,--error-handling", on_fault_,
                        "a command that fails: abort, skip its sample, or keep what it left")
            .type_name("WHAT")
            .one_of({"abort", "skip", "keep", "ignore"});
        arguments
            .add_option("--slice", slice_,
                        "samples by their number in the whole: N, START:STOP or START:STOP:STEP")
            .type_name("SLICE");
        arguments.add_option("--shell", shell_, "the default is /bin/bash, else /bin/sh")
            .type_name("PATH");
        arguments.add_option("-b,--base", base_, "name of the files instead of sample")
            .type_name("NAME");
        arguments
            .add_option("--tmpdir", folder_, "of the folders; the default is TMPDIR, else /tmp")
            .type_name("DIR");
        arguments.add_flag(
            "--tarp-compat", tarp_,
            "keep samples of commands that fail, one command at a time, keys such as _000000007_ "
            "where there is none, steps of --slice from 0, and members with owner, mode and time, "
            "as tarp");
    }
    const char* openers() const override { return "stream writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed map in.tar -c 'convert sample.jpg -resize 256x256 sample.png && rm "
                 "sample.jpg' -o out.tar",
                 "Makes small PNG files of all images."},
                {"shardfeed map in.tar --python mymodule:clean -p 4 -o out.tar",
                 "Calls clean(sample) of mymodule.py in four processes."}};
    }

    int run(const LibraryOptions& options) override {
        if (command_.empty() && multi_.empty() && python_.empty())
            throw Failure(wrong_command_line,
                          "nothing says what to run; help: give --command, --multi or --python");
        const bool keeps = on_fault_ == "keep" || on_fault_ == "ignore";
        if (keeps && !python_.empty())
            throw Failure(wrong_command_line,
                          "a function that fails leaves nothing to keep; help: --on-error skip");
        if (base_.empty() || base_.find('/') != std::string::npos)
            throw Failure(wrong_command_line,
                          "--base is the name of a file, without slash; help: such as sample");
        std::optional<Slice> numbers;
        if (!slice_.empty()) numbers.emplace(slice_, tarp_);
        if (parallel_ == 0)
            parallel_ = tarp_ ? 1 : std::max(1U, std::thread::hardware_concurrency());
        if (tarp_ && on_fault_.empty()) on_fault_ = "keep";
        if (shell_.empty()) shell_ = ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
        if (folder_.empty()) {
            const char* folder = std::getenv("TMPDIR");
            folder_ = folder && *folder ? folder : "/tmp";
        }
        out_.open(options, tarp_);
        Progress progress(!options.is_quiet(), "map", local_bytes(inputs_));
        StreamSource source(inputs_, options.handle());
        std::counting_semaphore<> places(static_cast<std::ptrdiff_t>(parallel_));
        std::deque<std::future<std::vector<OwnedSample>>> results;
        std::vector<FieldView> room;
        const auto write_first = [&] {
            const std::vector<OwnedSample> made = results.front().get();
            results.pop_front();
            for (const OwnedSample& sample : made) out_.write(sample.view(room));
        };
        try {
            for (uint64_t number = 0; !(numbers && numbers->ends_before(number)); ++number) {
                Sample sample = source.next();
                if (!sample) break;
                progress.add(1, payload_of(sample.get()));
                if (numbers && !numbers->takes(number)) continue;
                results.push_back(
                    std::async(std::launch::async, [this, &places, sample = std::move(sample)] {
                        places.acquire();
                        struct Leave {
                            std::counting_semaphore<>& places;
                            ~Leave() { places.release(); }
                        } const leave{places};
                        return changed(sample.get());
                    }));
                if (results.size() >= 2 * parallel_) write_first();
            }
            while (!results.empty()) write_first();
        } catch (...) {
            stop_ = true;
            throw;
        }
        out_.finish();
        if (skipped_ > 0)
            say(count_text(skipped_) + (skipped_ == 1 ? " sample was" : " samples were") +
                " left out");
        return done;
    }

  private:
    // Any thread.
    std::vector<OwnedSample> changed(const shf_sample* sample) {
        if (stop_ || interrupted()) throw Failure(failed, "interrupted");
        std::vector<FieldView> room;
        const SampleView view = view_of(sample, room);
        try {
            return python_.empty() ? by_command(view) : by_python(view);
        } catch (const Failure& failure) {
            const std::string fault = view.name() + ": " + failure.what();
            if (interrupted() || on_fault_.empty() || on_fault_ == "abort")
                throw Failure(failed, fault + "; help: --on-error skip leaves such samples out");
            say("warning: " + fault);
            ++skipped_;
            return {};
        }
    }

    std::vector<OwnedSample> by_command(const SampleView& sample) const {
        const SampleFolder folder(folder_, base_, sample);
        Process process({.words = {shell_, "-c", multi_.empty() ? command_ : multi_},
                         .folder = folder.path(),
                         .environment = {}});
        const std::string fault = process.wait();
        if (!fault.empty()) {
            if (interrupted() || (on_fault_ != "keep" && on_fault_ != "ignore"))
                throw Failure(failed, "the command failed: " + fault);
            say("warning: " + sample.name() + ": the command failed: " + fault);
        }
        if (!multi_.empty()) return folder.collect_many();
        OwnedSample made = folder.collect(tarp_ ? "" : sample.key);
        if (made.fields.empty())
            throw Failure(failed, "the command left no file " + base_ + ".FIELD");
        std::vector<OwnedSample> all;
        all.push_back(std::move(made));
        return all;
    }

    std::vector<OwnedSample> by_python(const SampleView& sample) {
        std::unique_ptr<PythonWorker> worker;
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                worker = std::move(idle_.back());
                idle_.pop_back();
            }
        }
        if (!worker) {
            worker = std::make_unique<PythonWorker>(python_interpreter(), python_);
        }
        std::vector<OwnedSample> made;
        std::exception_ptr fault;
        try {
            made = worker->call(sample);
        } catch (const Failure&) {
            fault = std::current_exception();
        }
        if (!worker->has_ended()) {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(worker));
        }
        if (fault) std::rethrow_exception(fault);
        return made;
    }

    std::vector<std::string> inputs_;
    SampleWriter out_;
    std::string command_;
    std::string multi_;
    std::string python_;
    unsigned parallel_ = 0;
    std::string on_fault_;
    std::string slice_;
    std::string shell_;
    std::string base_ = "sample";
    std::string folder_;
    bool tarp_ = false;

    std::atomic<bool> stop_ = false;
    std::atomic<uint64_t> skipped_ = 0;
    std::mutex mutex_;
    std::vector<std::unique_ptr<PythonWorker>> idle_;
};

}  // namespace

std::unique_ptr<Verb> make_map() {
    return std::make_unique<Map>();
}

}  // namespace cli
