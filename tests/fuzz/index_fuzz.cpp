// Fuzz target of index files: any bytes as the index of one shard, plain or compressed. What is
// taken for an index gives samples of that shard, or an error, and nothing else.
#include "index_tar.h"

#include <cstdlib>

namespace {

using namespace shf::test;

const std::string& tar() {
    static const std::string bytes = tar_of_index_fuzz();
    return bytes;
}

const std::string& compressed_tar() {
    static const std::string bytes = compressed_tar_of_index_fuzz();
    return bytes;
}

const std::vector<SeenSample>& truth() {
    static const std::vector<SeenSample> samples = read_shard(tar()).samples;
    return samples;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::shared_ptr<const shf::ShardIndex> index;
    try {
        index = parse_index({reinterpret_cast<const char*>(data), size});
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_INTEGRITY &&
            error.code() != SHF_E_UNSUPPORTED)
            std::abort();
        return 0;
    }
    const bool compressed = index->points() != nullptr;
    const IndexedTar shard(compressed ? compressed_tar() : tar(), index,
                           options_with({{"memory", "1MiB"}}));
    for (size_t i = 0; i < shard.samples(); ++i) {
        try {
            if (!is_true(shard.read(i), truth())) std::abort();
        } catch (const shf::Error& error) {
            // LIMIT: the sample claims more than `memory`.
            const bool of_bytes = error.code() == SHF_E_INTEGRITY ||
                                  error.code() == SHF_E_TRUNCATED ||
                                  error.code() == SHF_E_UNSUPPORTED;
            if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_LIMIT &&
                !(compressed && of_bytes))
                std::abort();
        }
    }
    return 0;
}

#ifdef SHF_LIBFUZZER
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Most mutations would end at a wrong checksum; most of those are of the body, and sealed again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
    std::minstd_rand random(seed);
    constexpr size_t most_before = 64;
    if (random() % 8 == 0 || max_size < 2 * most_before)
        return LLVMFuzzerMutate(data, size, max_size);
    std::string body(reinterpret_cast<const char*>(data), size);
    for (size_t head = 0; head <= std::min(size, most_before); ++head) {
        const std::string rest = body.substr(head);
        if (index_file(rest) != body) continue;
        body = rest;
        break;
    }
    const size_t before = std::min(body.size(), max_size - most_before);
    body.resize(max_size - most_before);
    body.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(body.data()), before, body.size()));
    const std::string file = index_file(body);
    std::copy(file.begin(), file.end(), data);
    return file.size();
}
#endif
