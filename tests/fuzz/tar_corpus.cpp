// Writes the first inputs of tar_fuzz into a folder: tar_corpus tests/fuzz/corpus/tar. Each file is
// named after what it tests; findings of the fuzzer are added beside them.
#include "../unit/tar_builder.h"
#include "corpus_files.h"

#include <iostream>

int main(int argc, char** argv) {
    using namespace shf::test;
    if (argc != 2) {
        std::cerr << "usage: tar_corpus FOLDER\n";
        return 2;
    }
    // First bytes, see tar_fuzz.cpp.
    constexpr char raise = 0x40, skip_sample = 0x42, optional_end = 0x46, concat = 0x4a,
                   ignore = 0x52, accept_keys = 0x62;
    const std::string a = member("a.txt", "first"), z = member("z.txt", "last"), end = end_marker();
    struct Input {
        const char* name;
        char switches;
        std::string shard;
    };
    const Input inputs[] = {
        {"ustar_two_samples", raise,
         member("1.jpg", "jpeg") + member("1.cls", "7") + member("2.jpg", "jpeg") +
             member("2.cls", "8") + end},
        {"v7", raise,
         member("a.txt", "first", Carrier::v7) +
             header({.name = "d/", .type = '\0', .carrier = Carrier::v7}) + end},
        {"ustar_prefix", raise, member({.name = "b.txt", .prefix = "some/dir"}, "data") + end},
        {"gnu_long_name", raise,
         gnu_name(std::string(120, 'n') + ".txt") + member("n", "data", Carrier::gnu) + end},
        {"gnu_long_link", skip_sample,
         gnu_long("target\0"s, 'K') +
             header({.name = "l.txt", .type = '2', .carrier = Carrier::gnu}) + a + end},
        {"gnu_long_name_twice", raise,
         gnu_name("b.txt") + gnu_name("c.txt") + member("n", "data", Carrier::gnu) + end},
        {"pax_path_and_size", raise,
         pax({{"path", "b.txt"}, {"size", "4"}, {"mtime", "1.5"}}) + header({.name = "n"}) +
             padded("data") + end},
        {"pax_size_hides_members", raise,
         pax({{"size", "1024"}}) + header({.name = "b.txt"}) + member("evil.txt", "evil") + end},
        {"pax_global", raise, pax({{"comment", "c"}}, 'g') + a + end},
        {"pax_global_path", raise, pax({{"path", "b.txt"}}, 'g') + a + end},
        {"pax_bad_length", raise, pax_body("99 comment=c\n") + a + end},
        {"pax_pending_at_end", raise, a + pax({{"path", "b.txt"}}) + end},
        {"pax_solaris", raise, pax({{"path", "b.txt"}}, 'X') + member("n", "data") + end},
        {"base256_size", raise,
         with(header({.name = "b.txt"}), size_field, base256(4)) + padded("data") + end},
        {"base256_negative", raise,
         with(header({.name = "b.txt"}), size_field, std::string(12, '\xff')) + end},
        {"size_above_2_60", raise,
         with(header({.name = "b.txt"}), size_field, base256((uint64_t{1} << 60) + 1)) + end},
        {"size_beyond_the_end", raise, header({.name = "b.txt", .size = 8000}) + end},
        {"member_over_limit", skip_sample,
         a + member("b.txt", std::string((8 << 10) + 1, 'b')) + z + end},
        {"sample_over_limit", skip_sample,
         member("b.x", std::string(7000, 'x')) + member("b.y", std::string(7000, 'y')) + z + end},
        {"sparse_four_encodings", skip_sample,
         a + sparse_old_gnu("s1.x", 2) + sparse_pax_0_0("s2.x") + sparse_pax_0_1("s3.x") +
             sparse_pax_1_0("s4.x") + z + end},
        {"links_and_devices", raise,
         a + header({.name = "l.x", .type = '2', .link = "a"}) +
             header({.name = "h.x", .type = '1', .link = "a"}) +
             header({.name = "c.x", .type = '3'}) + header({.name = "f.x", .type = '6'}) +
             header({.name = "d/", .type = '5'}) + end},
        {"label_multi_volume_unknown", skip_sample,
         header({.name = "label", .type = 'V', .carrier = Carrier::gnu}) + a +
             member({.name = "m.x", .type = 'M', .carrier = Carrier::gnu}, "piece") +
             member({.name = "u.x", .type = 'u'}, "unknown") + z + end},
        {"field_twice", skip_sample, member("s.x", "1") + member("s.X", "2") + z + end},
        {"key_comes_again", skip_sample, a + z + member("a.y", "2") + end},
        {"key_comes_again_accepted", accept_keys, a + z + member("a.y", "2") + end},
        {"ignored_names", raise,
         member("README", "r") + member("__m__/x.txt", "m") + member(".h.txt", "h") + a + end},
        {"no_end_marker", optional_end, a + z},
        {"one_zero_block", optional_end, a + z + zeros(512)},
        {"two_archives", concat, a + end + zeros(512) + z + end},
        {"junk_after_the_end", ignore, a + end + "junk"},
        {"bad_checksum", raise, a + std::string(z).replace(0, 1, "y") + end},
        {"html_page", raise, "<!DOCTYPE html><html>login</html>"},
        {"only_zero_blocks", raise, end},
        {"cut_in_data", raise, a + z.substr(0, 514)},
    };
    for (const Input& input : inputs)
        if (!write_input(argv[1], input.name, input.switches + input.shard)) return 1;
    return 0;
}
