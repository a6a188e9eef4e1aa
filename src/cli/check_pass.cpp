#include "cli/check_pass.h"

#include "cli/json_line.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace cli {

namespace {

constexpr std::string_view endless = "18446744073709551615";

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> all) {
    return std::find(all.begin(), all.end(), word) != all.end();
}

}  // namespace

ShardFault::ShardFault(int32_t code_is, std::string message_is)
    : code(shf_error_name(code_is)),
      message(std::move(message_is)),
      offset(std::numeric_limits<uint64_t>::max()),
      whole_shard(false) {}

ShardFault::ShardFault(const shf_error& error, std::string_view key_is, bool whole_shard_is)
    : code(shf_error_name(error.code)),
      key(key_is),
      message(error.message),
      offset(error.offset),
      whole_shard(whole_shard_is) {}

std::string ShardFault::json() const {
    JsonLine line;
    line.text("class", code);
    if (!key.empty()) line.bytes("key", key);
    if (offset != std::numeric_limits<uint64_t>::max()) line.number("offset", offset);
    return line.flag("whole_shard", whole_shard).text("message", message).object();
}

Options CheckPass::options_of(const LibraryOptions& options) {
    Options made = options.copy();
    for (size_t i = 0; const char* name = shf_option_describe(i, SHF_OPTION_NAME); ++i) {
        const std::string_view group = shf_option_describe(i, SHF_OPTION_GROUP);
        if (group == "order" || group == "consumer")
            call(shf_options_set, made.get(), name, shf_option_describe(i, SHF_OPTION_DEFAULT));
    }
    if (!options.given("on_error")) call(shf_options_set, made.get(), "on_error", "skip_sample");
    if (!options.given("max_skips")) call(shf_options_set, made.get(), "max_skips", endless.data());
    return made;
}

CheckPass::CheckPass(const std::vector<std::string>& urls, Options options)
    : options_(std::move(options)), stream_(open(urls)), cancellable_(stream_.get()) {}

Stream CheckPass::open(const std::vector<std::string>& urls) {
    shf_options_set_on_skip(options_.get(), skipped, this);
    std::vector<const char*> names;
    for (const std::string& url : urls) names.push_back(url.c_str());
    shf_stream* stream = nullptr;
    call(shf_stream_open, &stream, names.data(), names.size(), options_.get());
    return Stream(stream);
}

void CheckPass::skipped(void* pass, const shf_skip* skip) {
    auto& self = *static_cast<CheckPass*>(pass);
    ++self.fault_count_;
    if (self.faults_.size() < kept)
        self.faults_.emplace_back(*skip->error, text(skip->key), skip->whole_shard != 0);
}

std::vector<std::pair<std::string, uint64_t>> CheckPass::notable_counters() const {
    std::vector<std::pair<std::string, uint64_t>> made;
    constexpr int32_t all = 2 * SHF_STAT_SKIPS_BY_CLASS;
    for (int32_t i = 0; i < all; ++i) {
        const char* name = shf_stat_describe(i, SHF_COUNTER_NAME);
        if (!name || i == SHF_STAT_SAMPLES || i == SHF_STAT_SHARDS || i == SHF_STAT_EPOCH_SAMPLES)
            continue;
        const std::string_view unit = shf_stat_describe(i, SHF_COUNTER_UNIT);
        if (i != SHF_STAT_RETRIES &&
            !is_one_of(unit, {"samples", "shards", "members", "skips", "blocks"}))
            continue;
        if (const uint64_t count = counter(i); count > 0) made.emplace_back(name, count);
    }
    return made;
}

std::string counters_json(const std::vector<std::pair<std::string, uint64_t>>& counters) {
    JsonLine line;
    for (const auto& [name, count] : counters) line.number(name, count);
    return line.object();
}

}  // namespace cli
