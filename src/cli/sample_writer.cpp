#include "cli/sample_writer.h"

namespace cli {

void SampleWriter::declare(Arguments& arguments) {
    arguments
        .add_option(
            "-o,--output,--outputs", output_,
            "the shard, or a pattern such as out-%06d.tar with --max-samples or --max-bytes; "
            "the default is standard output")
        .type_name("OUT");
    arguments
        .add_option("-f,--fields,--field", fields_,
                    "fields to keep, separated by blanks: cls, img:png,jpg (alternatives, and "
                    "another name)")
        .type_name("LIST")
        .repeatable();
    arguments.add_option("--missing", missing_, "samples without such a field: fail, skip, or keep")
        .type_name("WHAT")
        .one_of({"fail", "skip", "keep"});
    arguments
        .add_option("-R,--rekey", rekey_,
                    "new keys: # for nine digits from 0, or a pattern such as train/%06d")
        .type_name("PATTERN");
    arguments.add_flag("--json", json_, "print a line of JSON for each shard that is written");
}

void SampleWriter::open(const LibraryOptions& options, bool as_tarp) {
    if (as_tarp) {
        options.set_unless_given("tar_headers", "tarp");
        missing_keys_.emplace("_%09d_");
    }
    wanted_.emplace(fields_);
    if (!rekey_.empty()) keys_.emplace(rekey_ == "#" ? "%09d" : rekey_);
    target_.emplace(output_, options, ShardTarget::Report{.json = json_, .command = {}});
}

bool SampleWriter::choose(SampleView& sample, std::vector<FieldView>& room) const {
    if (!wanted_->choose(sample, FieldList::missing_of(missing_), room)) return false;
    sample.fields = room;
    return true;
}

void SampleWriter::write_chosen(const SampleView& sample) {
    if (keys_)
        target_->begin(keys_->text(written_));
    else if (missing_keys_ && sample.key.empty())
        target_->begin(missing_keys_->text(written_));
    else
        target_->begin(sample.key);
    for (const auto& [name, data] : sample.fields) target_->field(name, data);
    target_->end();
    ++written_;
}

void SampleWriter::write(const SampleView& sample) {
    SampleView kept = sample;
    if (choose(kept, chosen_)) write_chosen(kept);
}

void SampleWriter::write(const shf_sample* sample) {
    if (wanted_->all() && !keys_) {
        target_->write(sample);
        ++written_;
    } else {
        write(view_of(sample, room_));
    }
}

}  // namespace cli
