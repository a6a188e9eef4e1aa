// reshard: the samples of all inputs into shards of equal size, one task for each.
#include "cli/python_program.h"
#include "cli/verb_list.h"

#include <unistd.h>
#include <cstdint>

namespace cli {

namespace {

class Reshard final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Makes shards of N samples each of all inputs, in their order, a random one, or that "
            "of keys. "
            "Which sample goes where is computed from the indexes, which are made where they are "
            "missing, and every output is a task of its own that reads its samples by number: in "
            "processes of this machine, in a job array, or under Ray or Dask, with the same bytes. "
            "What is published is skipped, so that a run that was interrupted is run again. It "
            "needs the Python package: pip install shardfeed.");
        arguments
            .add_option("URL", words_,
                        "the inputs, and at last the output: a folder, out/, or a "
                        "pattern such as out/%06d.tar")
            .required()
            .expected(2, -1);
        arguments.add_option("-n,--samples", samples_, "samples of each output shard")
            .type_name("N")
            .required()
            .within(1, int64_t{1} << 40);
        arguments.add_flag("--shuffle", shuffle_, "all samples in one random order");
        arguments.add_option("--seed", seed_, "of the random order; the default is 0")
            .type_name("N");
        arguments.add_flag("--sort", sort_,
                           "all samples in the order of their keys; needs --scratch");
        arguments
            .add_option("-R,--rekey", rekey_,
                        "new keys by the new order: # for nine digits from 0, or a pattern such as "
                        "train/%07d")
            .type_name("PATTERN");
        arguments
            .add_option("--scratch", scratch_,
                        "a folder for two phases: inputs are sorted there by where samples go; for "
                        "object stores and compressed inputs, and for --sort")
            .type_name("DIR");
        arguments
            .add_option("--memory", memory_,
                        "bytes of samples that a task holds; the default is 256MiB")
            .type_name("SIZE");
        arguments
            .add_option("--executor", executor_,
                        "where tasks run: local (the default), array, ray or dask")
            .type_name("WHERE")
            .one_of({"local", "array", "ray", "dask"});
        arguments
            .add_option("-p,--parallel", parallel_, "processes; the default is one for each core")
            .type_name("N")
            .within(0, 1024);
        arguments
            .add_option("--task-retries", retries_,
                        "how often a task that dies is run again; the default is 2")
            .type_name("N")
            .within(0, 1000);
        arguments.add_flag("--json", json_, "print the report as JSON");
    }
    const char* openers() const override { return "dataset writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed reshard --shuffle --seed 1 --samples 10000 'train-{000..999}.tar' new/",
                 "Shuffles a thousand shards as a whole, into shards of 10,000 samples."},
                {"shardfeed reshard -n 5000 --write-index 'a-*.tar' 'b-*.tar' joined-%05d.tar.zst",
                 "Cuts all samples into shards of 5,000, compressed, in their order."},
                {"shardfeed reshard --shuffle -n 10000 --scratch s3://bucket/tmp/ "
                 "s3://bucket/train-*.tar s3://bucket/new/",
                 "Shuffles a bucket in two phases, which read from front to back."}};
    }

    int run(const LibraryOptions& options) override {
        PythonProgram program("shardfeed.cluster._reshard_command", "shardfeed");
        program.add("output", words_.back());
        program.add("samples", std::to_string(samples_));
        program.add("seed", std::to_string(seed_));
        program.add_flag("shuffle", shuffle_);
        program.add_flag("sort", sort_);
        program.add_flag("json", json_);
        program.add_flag("quiet", options.is_quiet());
        program.add("rekey", rekey_);
        program.add("scratch", scratch_);
        program.add("memory", memory_);
        program.add("executor", executor_);
        program.add("parallel", parallel_);
        program.add("task-retries", retries_);
        program.add_options("reader", options, "dataset");
        program.add_options("writer", options, "writer");
        return program.run({words_.begin(), words_.end() - 1}, -1, STDOUT_FILENO);
    }

  private:
    std::vector<std::string> words_;
    uint64_t samples_ = 0;
    bool shuffle_ = false;
    bool sort_ = false;
    uint64_t seed_ = 0;
    std::string rekey_;
    std::string scratch_;
    std::string memory_;
    std::string executor_;
    std::string parallel_;
    std::string retries_;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_reshard() {
    return std::make_unique<Reshard>();
}

}  // namespace cli
