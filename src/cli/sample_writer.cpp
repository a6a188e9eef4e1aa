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

void SampleWriter::open(const LibraryOptions& options) {
    wanted_.emplace(fields_);
    if (!rekey_.empty()) keys_.emplace(rekey_ == "#" ? "%09d" : rekey_);
    target_.emplace(output_, options, ShardTarget::Report{.json = json_, .command = {}});
}

void SampleWriter::write(const SampleView& sample) {
    if (!wanted_->choose(sample, FieldList::missing_of(missing_), chosen_)) return;
    if (keys_)
        target_->begin(keys_->text(written_++));
    else
        target_->begin(sample.key);
    for (const auto& [name, data] : chosen_) target_->field(name, data);
    target_->end();
}

void SampleWriter::write(const shf_sample* sample) {
    if (wanted_->all() && !keys_)
        target_->write(sample);
    else
        write(view_of(sample, room_));
}

}  // namespace cli
