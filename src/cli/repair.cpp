// repair: a new shard of what is whole in a damaged one.
#include "cli/json_line.h"
#include "cli/salvage.h"
#include "cli/shard_target.h"
#include "cli/shown_url.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <filesystem>
#include <limits>
#include <optional>

namespace cli {

namespace {

class Repair final : public Verb, SalvageClient {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Writes a new shard of all samples of INPUT that are provably whole, and lists what is "
            "lost. INPUT is never changed. Behind damage in a tar it continues at the next block "
            "of 512 bytes that is a header; of a ZIP file it takes the entries whose checksum "
            "holds, and reads the headers before them where the directory is lost. A sample beside "
            "lost bytes is dropped, as a member of it may be among them. A tar has no checksums of "
            "data: bytes that are wrong where nothing is missing cannot be seen. The exit status "
            "is 0 when nothing is lost.");
        arguments.add_option("INPUT", input_, "a shard: path or URL").required();
        arguments.add_option("-o,--output", output_, "the new shard").type_name("OUT").required();
        arguments.add_flag("--keep-fields", keep_fields_,
                           "of samples that are not whole, write the fields that are");
        arguments.add_flag(
            "--unverified", unverified_,
            "of a compressed tar, also take what lies behind the last checksum that holds");
        arguments.add_flag("--json", json_,
                           "print a line of JSON for each loss, and one for the whole");
    }
    const char* openers() const override { return "archive writer"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed repair broken.tar -o repaired.tar",
                 "Writes the whole samples of a damaged shard."},
                {"shardfeed repair cut.tar.gz --unverified --json -o cut.tar > lost.jsonl",
                 "Takes what can be decompressed of a download that stopped, checked or not."}};
    }

    int run(const LibraryOptions& options) override {
        std::error_code ignored;
        if (output_ == "-")
            throw Failure(wrong_command_line,
                          "the report is on standard output; help: give a file with -o FILE");
        if (std::filesystem::equivalent(input_, output_, ignored))
            throw Failure(wrong_command_line,
                          "repair never changes its input; help: give another name with -o");
        // A name that stands in the shard already is no reason to lose its sample.
        if (!options.given("unsafe_names")) options.set("unsafe_names", "allow");
        if (!options.given("duplicate_keys")) options.set("duplicate_keys", "accept");
        options_ = &options;
        is_quiet_ = options.is_quiet();
        Progress progress(!is_quiet_, "repair", 0);
        progress_ = &progress;
        Salvage salvage(input_, options, {.fields = keep_fields_, .unverified = unverified_},
                        *this);
        salvage.run();
        out_.flush();
        if (target_) target_->finish();
        print_sum();
        return losses_ > 0 || samples_ == 0 ? failed : done;
    }

  private:
    // Made with the first sample: without one no shard is written.
    void sample(const OwnedSample& sample) override {
        if (!target_)
            target_.emplace(output_, *options_, ShardTarget::Report{.json = json_, .command = {}});
        const SampleView view = sample.view(room_);
        target_->begin(view.key);
        uint64_t bytes = 0;
        for (const FieldView& field : view.fields) {
            target_->field(field.name, field.data);
            bytes += field.data.size;
        }
        target_->end();
        ++samples_;
        progress_->add(1, bytes);
    }

    void lost_bytes(uint64_t from, std::optional<uint64_t> to,
                    const std::string& message) override {
        ++losses_;
        const bool has_place = from != std::numeric_limits<uint64_t>::max();
        if (json_) {
            JsonLine line;
            line.text("lost", "bytes");
            if (has_place) line.number("from", from);
            if (to) line.number("to", *to);
            return out_.write(line.text("message", message).line());
        }
        std::string where = "what stands somewhere";
        if (has_place)
            where = "bytes " + std::to_string(from) +
                    (to ? " to " + std::to_string(*to) : " to the end");
        out_.write("lost    " + where + ": " + message + "\n");
    }

    void lost_member(std::string_view name, uint64_t offset, const std::string& message) override {
        ++losses_;
        if (json_)
            return out_.write(JsonLine()
                                  .text("lost", "member")
                                  .bytes("name", name)
                                  .number("offset", offset)
                                  .text("message", message)
                                  .line());
        out_.write("lost    member " + printable(name) + " at byte " + std::to_string(offset) +
                   ": " + message + "\n");
    }

    void lost_sample(std::string_view key, const std::vector<std::string>& whole, bool kept,
                     const std::string& reason) override {
        ++losses_;
        ++(kept ? partial_ : dropped_);
        if (json_) {
            std::vector<std::string> fields;
            for (const std::string& name : whole) fields.push_back(json_text(name));
            return out_.write(JsonLine()
                                  .text("lost", "sample")
                                  .bytes("key", key)
                                  .raw("whole_fields", json_list(fields))
                                  .flag("kept", kept)
                                  .text("message", reason)
                                  .line());
        }
        std::string fields;
        for (const std::string& name : whole) fields += " " + printable(name);
        out_.write((kept ? "partial sample " : "dropped sample ") + printable(key) + ": " + reason +
                   (fields.empty() ? std::string() : "; whole fields:" + fields) + "\n");
    }

    void left_out() override { ++left_out_; }

    void print_sum() {
        if (json_)
            out_.write(JsonLine()
                           .bytes("input", shown_url(input_))
                           .flag("whole", losses_ == 0)
                           .number("samples", samples_)
                           .number("partial", partial_)
                           .number("dropped", dropped_)
                           .number("losses", losses_)
                           .number("left_out", left_out_)
                           .line());
        else if (!is_quiet_)
            out_.write(printable(shown_url(input_)) + ": " + count_text(samples_) +
                       (samples_ == 1 ? " sample" : " samples") + " written, " +
                       (partial_ > 0 ? count_text(partial_) + " of them in part, " : "") +
                       (losses_ == 0 ? "nothing lost" : count_text(dropped_) + " dropped") +
                       (left_out_ > 0 ? ", " + count_text(left_out_) +
                                            " directories, links or devices left out"
                                      : "") +
                       "\n");
        out_.flush();
        if (samples_ == 0) say("no sample is whole: nothing was written");
    }

    std::string input_;
    std::string output_;
    bool keep_fields_ = false;
    bool unverified_ = false;
    bool json_ = false;

    const LibraryOptions* options_ = nullptr;
    bool is_quiet_ = false;
    Output out_;
    Progress* progress_ = nullptr;
    std::optional<ShardTarget> target_;
    std::vector<FieldView> room_;
    uint64_t samples_ = 0;
    uint64_t partial_ = 0;
    uint64_t dropped_ = 0;
    uint64_t losses_ = 0;
    uint64_t left_out_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_repair() {
    return std::make_unique<Repair>();
}

}  // namespace cli
