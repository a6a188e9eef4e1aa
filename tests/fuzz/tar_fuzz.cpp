// Fuzz target of the tar walker, the grouping and the shard reader: any bytes, small limits, and
// the same samples and faults however the bytes arrive.
//
// The first byte holds the switches, so that a corpus file says how it is read: bits 0 and 1
// on_error, bit 2 end_marker=optional, bit 3 concat, bit 4 trailing=ignore, bit 5
// duplicate_keys=accept, bits 6 and 7 the size of the reads.
#include "../unit/shard_driver.h"

#include "member/member_walk.h"

#include <array>
#include <cstdlib>

namespace {

using shf::Options;
using shf::test::read_shard;
using shf::test::ShardResult;

Options options_of(unsigned choice) {
    Options options;
    options.on_error = choice % 4 == 0   ? shf::OnError::raise
                       : choice % 4 == 1 ? shf::OnError::skip_shard
                                         : shf::OnError::skip_sample;
    options.end_marker = (choice & 4) != 0 ? shf::EndMarker::optional : shf::EndMarker::required;
    options.concat = (choice & 8) != 0;
    options.trailing = (choice & 16) != 0 ? shf::Trailing::ignore : shf::Trailing::refuse;
    options.duplicate_keys =
        (choice & 32) != 0 ? shf::DuplicateKeys::accept : shf::DuplicateKeys::error;
    options.memory = 1 << 20;
    options.max_member = 8 << 10;
    options.max_sample = 12 << 10;
    options.max_name = 4 << 10;
    options.max_meta = 16 << 10;
    options.max_window = 1 << 20;
    return options;
}

void check(const ShardResult& result, size_t input_size) {
    for (const auto& sample : result.samples) {
        if (sample.key.find('\0') != sample.key.npos || sample.fields.empty()) std::abort();
        for (const auto& [name, data] : sample.fields)
            if (name.find('/') != name.npos || name.find('\0') != name.npos) std::abort();
    }
    for (const auto& fault : result.bad_samples)
        if (!shf::skippable(fault.code)) std::abort();
    if (result.end.code == SHF_E_INTERNAL) std::abort();
    // A shard ends with samples, or bad ones, or an error.
    if (result.end.code == SHF_OK && result.samples.empty() && result.bad_samples.empty())
        std::abort();
    if (result.memory_peak > (input_size + (4 << 20)) * 4) std::abort();
}

// The members in sequence: names, bytes, and how it ended.
std::string read_members(std::string_view input, const Options& options, size_t chunk) {
    const shf::Cancel cancel;
    const auto source = shf::memory_source(
        {reinterpret_cast<const uint8_t*>(input.data()), input.size()}, chunk, false);
    const auto walk = shf::tar_walk(source->open_sequential(0), nullptr, options, cancel);
    std::string seen;
    std::array<uint8_t, 600> piece;
    try {
        while (walk->next()) {
            seen.append(walk->member().name).append(1, '\0');
            for (int32_t what = SHF_MEMBER_SIZE; what <= SHF_MEMBER_GROUP; ++what)
                seen.append(std::to_string(walk->number(what).value_or(0)))
                    .append(walk->text(what));
            while (const size_t size = walk->read(piece))
                seen.append(reinterpret_cast<const char*>(piece.data()), size);
        }
    } catch (const shf::Error& error) {
        if (error.code() == SHF_E_INTERNAL) std::abort();
        seen += error.what();
    }
    return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    static constexpr size_t chunks[] = {1, 7, 513, 4096};
    const Options options = options_of(data[0]);
    const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
    const ShardResult whole = read_shard(input, options);
    check(whole, size);
    const ShardResult cut =
        read_shard(input, options, {chunks[data[0] >> 6], false, (data[0] & 64) == 0});
    check(cut, size);
    if (!whole.same_as(cut)) std::abort();
    if (read_members(input, options, 0) != read_members(input, options, chunks[data[0] >> 6]))
        std::abort();
    return 0;
}

#ifdef SHF_LIBFUZZER
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Most mutations would end at a wrong checksum; most of those get it right again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    std::minstd_rand random(seed);
    if (random() % 8 == 0) return size;
    constexpr size_t block = 512, checksum = 148, magic = 257;
    for (size_t at = 1; at + block <= size; at += block) {
        uint8_t* header = data + at;
        const bool known = std::equal(header + magic, header + magic + 5, "ustar");
        if (!known && random() % 16 != 0) continue;
        unsigned sum = 8 * ' ';
        for (size_t i = 0; i < block; ++i)
            if (i < checksum || i >= checksum + 8) sum += header[i];
        for (size_t digit = 6; digit-- > 0; sum /= 8)
            header[checksum + digit] = static_cast<uint8_t>('0' + sum % 8);
        header[checksum + 6] = 0;
        header[checksum + 7] = ' ';
    }
    return size;
}
#endif
