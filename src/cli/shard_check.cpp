#include "cli/shard_check.h"

#include "cli/document.h"
#include "cli/file_format.h"
#include "cli/terminal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

namespace cli {

namespace {

// Of all that an index says of samples: where they are, their keys, the names and sizes of fields.
class SampleDigest {
  public:
    SampleDigest() { XXH3_64bits_reset(&state_); }

    void add(const shf_sample* sample) {
        add(shf_sample_info(sample, SHF_SAMPLE_OFFSET));
        add(key_of(sample));
        const size_t fields = shf_sample_field_count(sample);
        add(uint64_t{fields});
        for (size_t i = 0; i < fields; ++i) {
            shf_bytes name;
            shf_bytes data;
            shf_sample_field(sample, i, &name, &data);
            add(text(name));
            add(uint64_t{data.size});
        }
    }
    [[nodiscard]] uint64_t value() const { return XXH3_64bits_digest(&state_); }

  private:
    void add(uint64_t number) { XXH3_64bits_update(&state_, &number, sizeof number); }
    void add(std::string_view bytes) {
        add(uint64_t{bytes.size()});
        XXH3_64bits_update(&state_, bytes.data(), bytes.size());
    }

    XXH3_state_t state_;
};

// The key of a member, by the rule for names: up to the first dot of the last component.
std::string_view key_of_member(std::string_view name) {
    const size_t base = name.rfind('/') + 1;  // 0 without a slash
    return name.substr(0, std::min(name.find('.', base), name.size()));
}

// What is wrong with the documents of a batch of one sample: no library call parses them.
std::optional<std::string> document_fault_of(const shf_batch* batch) {
    for (size_t i = 0; i < shf_batch_column_count(batch); ++i) {
        shf_bytes name;
        shf_array array;
        if (shf_batch_column(batch, i, &name, &array) != SHF_OK) continue;
        const bool is_json = array.kind == SHF_COLUMN_JSON;
        if (!is_json && array.kind != SHF_COLUMN_MSGPACK) continue;
        const std::string why = document_fault({static_cast<const char*>(array.data), array.size},
                                               is_json ? Encoding::json : Encoding::msgpack);
        if (!why.empty())
            return "field " + printable(text(name)) + " is not " +
                   (is_json ? "JSON" : "MessagePack") + ": " + why;
    }
    return std::nullopt;
}

std::optional<ShardFault> decode_fault(shf_sample* sample, const shf_options* options) {
    const std::array<shf_sample*, 1> one = {sample};
    shf_batch* made = nullptr;
    shf_error error = {};
    if (shf_batch_make(&made, one.data(), one.size(), options, &error) != SHF_OK)
        return ShardFault(error, key_of(sample), false);
    const auto why = document_fault_of(made);
    shf_batch_unref(made);
    if (!why) return std::nullopt;
    shf_bytes url;
    shf_sample_url(sample, &url);
    ShardFault fault(SHF_E_FORMAT, printable(text(url)) + ": sample " + printable(key_of(sample)) +
                                       ": " + *why +
                                       "; help: repair the field, or leave the sample out");
    fault.key = key_of(sample);
    return fault;
}

}  // namespace

void ShardVerdict::add(ShardFault fault) {
    ++fault_count;
    if (faults.size() < CheckPass::kept) faults.push_back(std::move(fault));
}

Options ShardCheck::new_options() {
    const std::lock_guard lock(options_mutex_);
    Options made = CheckPass::options_of(options_);
    call(shf_options_set, made.get(), "expand", "false");
    call(shf_options_set, made.get(), "threads", std::to_string(wanted_.read_threads).c_str());
    call(shf_options_set, made.get(), "decode_threads", "1");
    if (!wanted_.decode_as.empty())
        call(shf_options_set, made.get(), "decode", wanted_.decode_as.c_str());
    return made;
}

ShardVerdict ShardCheck::check(const std::string& url) {
    ShardVerdict verdict;
    verdict.url = url;
    verdict.format = format_of(url);
    uint64_t digest = 0;
    try {
        check_samples(verdict, digest);
        check_other_members(verdict);
        check_index(verdict, digest);
    } catch (const Failure& failure) {
        if (interrupted() || failure.status() == wrong_command_line) throw;
        // A shard that is lost ends its stream, which then says it once more.
        if (!verdict.faults.empty() && verdict.faults.back().whole_shard) return verdict;
        ShardFault fault(failure.code(), failure.what());
        fault.whole_shard = true;
        verdict.add(std::move(fault));
    }
    return verdict;
}

void ShardCheck::check_samples(ShardVerdict& verdict, uint64_t& digest) {
    CheckPass pass({verdict.url}, new_options());
    std::vector<Options> decoders;  // one for each thread
    if (!wanted_.decode_as.empty())
        while (decoders.size() < std::max<size_t>(wanted_.decode_threads, 1))
            decoders.push_back(new_options());
    SampleDigest whole;
    const auto finish = [&] {
        for (const ShardFault& fault : pass.faults()) verdict.add(fault);
        verdict.fault_count += pass.fault_count() - pass.faults().size();
        verdict.counters = pass.notable_counters();
        digest = whole.value();
    };
    try {
        pass.run_blocks([&](const shf_block* block) {
            const size_t count = shf_block_sample_count(block);
            uint64_t payload = 0;
            for (size_t i = 0; i < count; ++i) {
                const shf_sample* sample = shf_block_sample(block, i);
                whole.add(sample);
                payload += payload_of(sample);
                verdict.fields += shf_sample_field_count(sample);
            }
            verdict.samples += count;
            verdict.payload += payload;
            if (!decoders.empty()) decode(block, decoders, verdict);
            progress_(count, payload);
        });
    } catch (const Failure&) {
        finish();
        throw;
    }
    finish();
}

void ShardCheck::decode(const shf_block* block, const std::vector<Options>& decoders,
                        ShardVerdict& verdict) const {
    const size_t count = shf_block_sample_count(block);
    const size_t threads = std::min(decoders.size(), count);
    std::vector<std::vector<ShardFault>> found(threads);
    const auto part = [&](size_t number, const shf_options* options) {
        for (size_t i = count * number / threads; i < count * (number + 1) / threads; ++i)
            if (auto fault = decode_fault(shf_block_sample(block, i), options))
                found[number].push_back(std::move(*fault));
    };
    std::vector<std::jthread> others;
    for (size_t number = 1; number < threads; ++number)
        others.emplace_back(part, number, decoders[number].get());
    part(0, decoders[0].get());
    others.clear();  // waits for them
    for (std::vector<ShardFault>& faults : found)
        for (ShardFault& fault : faults) {
            const bool is_nonsense = fault.code == shf_error_name(SHF_E_USAGE);
            if (is_nonsense && wanted_.decode_as != "auto")
                throw Failure(wrong_command_line, fault.message);
            verdict.add(std::move(fault));
        }
}

// A tar has no checksums over data. What else has some may have members that are in no sample.
void ShardCheck::check_other_members(ShardVerdict& verdict) {
    const bool has_others =
        std::any_of(verdict.counters.begin(), verdict.counters.end(),
                    [](const auto& counter) { return counter.first == "ignored_members"; });
    if (!has_others || verdict.format.starts_with("tar") || verdict.url == "-" ||
        verdict.url.starts_with("pipe:"))
        return;
    const Options options = new_options();
    shf_members* opened = nullptr;
    call(shf_members_open, &opened, verdict.url.c_str(), options.get());
    const Members members(opened);
    const Cancellable cancellable(opened);
    std::vector<uint8_t> buffer(size_t{1} << 18);
    shf_bytes name;
    while (call(shf_members_next, opened, &name) == SHF_OK) {
        const std::string_view key = key_of_member(text(name));
        const auto is_known = [&](const ShardFault& fault) { return fault.key == key; };
        shf_error error = {};
        size_t size = 0;
        int32_t code = SHF_OK;
        do code = shf_members_read(opened, buffer.data(), buffer.size(), &size, &error);
        while (code == SHF_OK && size > 0);
        if (code == SHF_E_CANCELLED) fail(code, error);
        if (code != SHF_OK && std::none_of(verdict.faults.begin(), verdict.faults.end(), is_known))
            verdict.add(ShardFault(error, key, false));
    }
}

void ShardCheck::check_index(ShardVerdict& verdict, uint64_t digest) {
    if (verdict.format != "tar" || !local_file(verdict.url)) return;
    const Options options = new_options();
    call(shf_options_set, options.get(), "index", "require");
    const char* url = verdict.url.c_str();
    shf_dataset* opened = nullptr;
    shf_error error = {};
    const int32_t code = shf_dataset_open(&opened, &url, 1, options.get(), &error);
    const Dataset dataset(opened);
    if (code == SHF_E_NOT_FOUND) return;
    if (code == SHF_E_CANCELLED) fail(code, error);
    const bool is_partial =
        verdict.fault_count > 0 ||
        std::any_of(verdict.counters.begin(), verdict.counters.end(),
                    [](const auto& counter) { return counter.first == "filtered_samples"; });
    if (code == SHF_OK && is_partial) {
        verdict.index = "unchecked";
        return;
    }
    verdict.index = "faulty";
    if (code != SHF_OK) {
        verdict.add(ShardFault(error, {}, false));
        return;
    }
    SampleDigest indexed;
    const uint64_t count = shf_dataset_sample_count(opened);
    for (uint64_t number = 0; number < count; ++number) {
        shf_sample* made = nullptr;
        call(shf_dataset_get, opened, number, &made);
        const Sample sample(made);
        indexed.add(made);
    }
    if (indexed.value() == digest) {
        verdict.index = "whole";
        return;
    }
    verdict.add(ShardFault(
        SHF_E_INTEGRITY, printable(verdict.url) + ": its index has other samples than the shard: " +
                             count_text(count) + " of " + count_text(verdict.samples) +
                             "; help: remove the index file, so that it is made again"));
}

}  // namespace cli
