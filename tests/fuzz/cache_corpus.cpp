// Writes the first inputs of cache_fuzz into a folder: cache_corpus tests/fuzz/corpus/cache. Each
// file is named after what it tests; findings of the fuzzer are added beside them.
#include "cache_entry.h"
#include "corpus_files.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <functional>
#include <iostream>

int main(int argc, char** argv) {
    using namespace shf::test;
    if (argc != 2) {
        std::cerr << "usage: cache_corpus FOLDER\n";
        return 2;
    }
    const FuzzCache cache;
    const std::string block = bytes_of_file(cache.file("00000000"));
    const std::string label = bytes_of_file(cache.file("version"));
    // Changed, and sealed again.
    const auto with = [](std::string bytes, size_t header, size_t at, uint64_t number) {
        std::memcpy(bytes.data() + at, &number, sizeof number);
        const uint64_t sum = XXH3_64bits(bytes.data() + 16, header - 16);
        std::memcpy(bytes.data() + 8, &sum, sizeof sum);
        return bytes;
    };
    const auto flipped = [](std::string bytes, size_t at) {
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        return bytes;
    };
    const size_t page = 4096;
    const std::string head = block.substr(0, page);
    struct Input {
        const char* name;
        std::string bytes;
    };
    const Input inputs[] = {
        {"block", "b" + block},
        {"block_cut", "b" + block.substr(0, block.size() - 1)},
        {"block_longer", "b" + block + "x"},
        {"block_header_alone", "b" + head},
        {"block_of_zeros", "b" + std::string(page, '\0')},
        {"block_flipped_first_piece", "b" + flipped(block, page)},
        {"block_flipped_last_byte", "b" + flipped(block, block.size() - 1)},
        {"block_flipped_header", "b" + flipped(head, 30)},
        {"block_claims_a_header", "b" + with(head, page, 16, uint64_t{1} << 40)},
        {"block_claims_a_long_header", "b" + with(head, page, 16, 2 * page)},
        {"block_claims_an_empty_header", "b" + with(head, page, 16, 0)},
        {"block_of_another_number", "b" + with(head, page, 24, 7)},
        {"block_of_another_size", "b" + with(head, page, 32, UINT64_MAX)},
        {"block_of_a_long_url", "b" + with(head, page, 48, UINT64_MAX)},
        {"nothing", ""},
        {"label", "v" + label},
        {"label_flipped", "v" + flipped(label, 50)},
        {"label_cut", "v" + label.substr(0, 47)},
        {"label_claims_a_url", "v" + with(label, label.size(), 32, UINT64_MAX)},
        {"label_claims_a_version", "v" + with(label, label.size(), 40, UINT64_MAX - 16)},
        {"label_without_texts", "v" + label.substr(0, 48)},
    };
    for (const Input& input : inputs)
        if (!write_input(argv[1], input.name, input.bytes)) return 1;
    return 0;
}
