// Writes the first inputs of index_fuzz into a folder: index_corpus tests/fuzz/corpus/index. Each
// file is named after what it tests; findings of the fuzzer are added beside them.
#include "corpus_files.h"
#include "index_tar.h"

#include <functional>
#include <iostream>

int main(int argc, char** argv) {
    using namespace shf::test;
    if (argc != 2) {
        std::cerr << "usage: index_corpus FOLDER\n";
        return 2;
    }
    const IndexParts good = parts_of(*build_index_of(tar_of_index_fuzz()));
    const auto with = [&good](const std::function<void(IndexParts&)>& change) {
        IndexParts parts = good;
        change(parts);
        return parts.file();
    };
    const IndexParts good_gzip = parts_of(*build_index_of(compressed_tar_of_index_fuzz()));
    const auto with_points = [&good_gzip](const std::function<void(shf::DecodePoints&)>& change) {
        IndexParts parts = good_gzip;
        change(*parts.points);
        return parts.file();
    };
    const std::string start = "\x94" + pack_text("shardfeed-index");
    std::string wrong_checksum = good.file();
    wrong_checksum.back() = static_cast<char>(wrong_checksum.back() ^ 1);
    struct Input {
        const char* name;
        std::string file;
    };
    const Input inputs[] = {
        {"good", good.file()},
        {"no_samples", with([](auto& p) {
             p = IndexParts();
             p.head = p.tail = zeros(16);
         })},
        {"one_sample_only", with([](auto& p) {
             p.keys = "a", p.key_ends = {1}, p.schema = {0}, p.headers = {0};
             p.offsets.resize(2), p.sizes.resize(2);
         })},
        {"another_key", with([](auto& p) { p.keys[0] = 'b'; })},
        {"another_name", with([](auto& p) { p.schemas[0] = 'J'; })},
        {"a_byte_less", with([](auto& p) { --p.sizes[0]; })},
        {"a_member_on", with([](auto& p) {
             p.offsets.erase(p.offsets.begin()), p.sizes.erase(p.sizes.begin());
             p.offsets.push_back(p.end), p.sizes.push_back(0);
         })},
        {"header_too_late", with([](auto& p) { p.headers[1] += 512; })},
        {"header_too_early", with([](auto& p) { p.headers[1] -= 512; })},
        {"header_of_another", with([](auto& p) { p.headers[1] = 1536; })},
        {"schemas_swapped", with([](auto& p) { std::swap(p.schema[0], p.schema[2]); })},
        {"end_at_2_62", with([](auto& p) {
             p.size = p.end = uint64_t{1} << 62;
             p.sizes.back() = (uint64_t{1} << 62) - p.offsets.back();
         })},
        {"many_samples_of_nothing", with([](auto& p) {
             p.size = p.end = uint64_t{1} << 40;
             p.schemas = "/\0"s;
             p.keys.clear();
             p.key_ends.assign(50, 0), p.schema.assign(50, 0), p.headers.clear();
             p.offsets.clear(), p.sizes.assign(50, 0);
             for (uint64_t i = 0; i < 50; ++i)
                 p.headers.push_back(i * 512), p.offsets.push_back(i * 512 + 512);
         })},
        {"wrong_checksum", wrong_checksum},
        {"version_2_without_points", index_file(IndexParts::pack_map(good.entries()), 2)},
        {"version_3", index_file(IndexParts::pack_map(good.entries()), 3)},
        {"gzip", good_gzip.file()},
        {"gzip_other_sum", with_points([](auto& p) { p.sums[0] ^= 1; })},
        {"gzip_other_place", with_points([](auto& p) { p.places[0] += 8; })},
        {"gzip_two_stretches", with_points([](auto& p) {
             p.starts.push_back(3000), p.sums.push_back(1), p.places.push_back(8 * 3023);
             p.window_ends.push_back(0);
         })},
        {"gzip_stretch_without_point", with_points([](auto& p) {
             p.starts.push_back(3000), p.sums.push_back(1);
             p.places.push_back(shf::DecodePoints::none), p.window_ends.push_back(0);
         })},
        {"gzip_window", with_points([](auto& p) {
             p.starts.push_back(3000), p.sums.push_back(1), p.places.push_back(8 * 100 + 3);
             p.windows.assign(40, 0x78), p.window_ends.push_back(40);
         })},
        {"gzip_as_zstd", with_points([](auto& p) { p.codec = "zstd"; })},
        {"gzip_longer", with_points([](auto& p) { p.length += 1 << 20; })},
        {"claims_an_array", start + "\xdd\x7f\xff\xff\xff"},
        {"claims_a_map_inside", index_file("\x81" + pack_text("size") + "\xdf\x7f\xff\xff\xff")},
        {"cut", good.file().substr(0, 200)},
        {"nothing", ""},
    };
    for (const Input& input : inputs)
        if (!write_input(argv[1], input.name, input.file)) return 1;
    return 0;
}
