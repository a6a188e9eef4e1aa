// Fuzz target of the files of a cache. The first byte says which: "b", a block; "v", the label of a
// version. A block gives the bytes that were written, piece by piece, or none.
#include "cache_entry.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <vector>

namespace {

using namespace shf::test;

void read_block(const FuzzCache& cache) {
    shf::BlockLook look;
    const std::string path = std::string(fuzz_version) + "/00000000";
    const auto block = shf::OpenBlock::open(cache.folder.fd(), path, fuzz_label(), 0, look);
    if (!block != (look.state != shf::BlockState::good)) std::abort();
    if (!block) return;
    if (block->size() != fuzz_data().size()) std::abort();
    const std::string file = bytes_of_file(cache.file("00000000"));
    for (const size_t chunk : {size_t{1000}, size_t{70000}, size_t{200000}}) {
        shf::HeldBytes held;
        std::vector<uint8_t> out(chunk);
        for (uint64_t at = 0; at < block->size();) {
            const size_t count = block->read(at, out, held);
            if (count == 0) break;
            // Of the file, at that place.
            if (count > chunk || at + count > block->size() ||
                std::memcmp(out.data(), file.data() + (file.size() - block->size()) + at, count) !=
                    0)
                std::abort();
            at += count;
        }
    }
}

void read_label(const FuzzCache& cache) {
    shf::CacheLabel label;
    if (!cache.folder.read_label(fuzz_version, label)) return;
    if (label.url.size() + label.version.size() > (1 << 20)) std::abort();
    // What was understood is written as it was.
    const std::string before = bytes_of_file(cache.file("version"));
    std::filesystem::remove(cache.file("version"));
    if (cache.folder.write_label(fuzz_version, label) != 0 ||
        bytes_of_file(cache.file("version")) != before)
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const FuzzCache cache;
    if (size == 0) return 0;
    const bool is_block = data[0] == 'b';
    std::ofstream(cache.file(is_block ? "00000000" : "version"), std::ios::binary)
        .write(reinterpret_cast<const char*>(data + 1), static_cast<std::streamsize>(size - 1));
    if (is_block)
        read_block(cache);
    else
        read_label(cache);
    return 0;
}

#ifdef SHF_LIBFUZZER
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Most mutations would end at the checksum of a header, so it is made right again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 == 0 || size < 1 + 64) return size;
    const size_t header = data[0] == 'b' ? std::min<size_t>(size - 1, 4096) : size - 1;
    std::memcpy(data + 1, data[0] == 'b' ? "SHFBLOC2" : "SHFVERS1", 8);
    const uint64_t sum = XXH3_64bits(data + 1 + 16, header - 16);
    std::memcpy(data + 1 + 8, &sum, 8);
    return size;
}
#endif
