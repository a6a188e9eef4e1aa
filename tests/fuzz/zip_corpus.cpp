// Writes the first inputs of zip_fuzz into a folder: zip_corpus tests/fuzz/corpus/zip. Each file is
// named after what it tests; findings of the fuzzer are added beside them.
#include "../unit/zip_builder.h"
#include "../unit/zip_encoders.h"
#include "corpus_files.h"

#include <iostream>

namespace {

// First bytes, see zip_fuzz.cpp.
constexpr char strict = '0', prefix = '1', overlap = '2', trailing = '4';

}  // namespace

int main(int argc, char** argv) {
    using namespace shf::test;
    if (argc != 2) {
        std::cerr << "usage: zip_corpus FOLDER\n";
        return 2;
    }
    struct Input {
        std::string name;
        char switches;
        std::string file;
    };
    std::vector<Input> inputs;
    const auto add = [&](const std::string& name, const Zip& zip, char switches = strict) {
        inputs.push_back({name, switches, zip.bytes()});
    };
    const Entry a{.name = "a.txt", .data = "first"}, z{.name = "z.txt", .data = "last"};
    const auto with = [&](const Entry& entry) { return Zip{.entries = {a, entry, z}}; };

    add("stored", {.entries = {a, z}});
    add("empty", {});
    add("comment", {.entries = {a}, .comment = "PK\5\6 in a comment"});
    add("deflate", with(packed_entry("b.txt", zip_deflate, text(200))));
    add("bzip2", with(packed_entry("b.txt", zip_bzip2, text(60))));
    add("lzma", with(packed_entry("b.txt", zip_lzma, text(60))));
    add("zstd", with(packed_entry("b.txt", zip_zstd, text(60))));
    add("xz", with(packed_entry("b.txt", zip_xz, text(60))));
    Entry entry{.name = "b.txt", .data = text(60), .method = zip_lzma};
    entry.packed = zip_lzma_data(entry.data, false);
    add("lzma_without_end_mark", with(entry));
    for (const bool magic : {false, true})
        for (const bool wide : {false, true}) {
            entry = packed_entry("b.txt", zip_deflate, text(40));
            entry.descriptor = true;
            entry.tail = [=](Descriptor& d) { d.magic = magic, d.wide = wide; };
            const std::string name =
                "descriptor"s + (magic ? "_signed" : "") + (wide ? "_wide" : "");
            add(name, with(entry));
        }
    Zip zip{.entries = {a, {.name = "b.txt", .data = "wide", .zip64 = true}}, .zip64 = true};
    add("zip64", zip);
    zip.locator = [](Locator& l) { l.offset += 1; };
    add("zip64_wrong_locator", zip);
    entry = {.name = "b.txt", .data = "data"};
    entry.central = [](CentralHeader& h) { h.extra = zip64_extra(le64(4) + le64(5)); };
    add("zip64_disagrees", with(entry));
    entry.central = [](CentralHeader& h) { h.extra = unicode_extra(h.name, "other.txt"); };
    add("unicode_name", with(entry));
    entry.central = [](CentralHeader& h) { h.extra = le16(1) + le16(200); };
    add("extra_field_over_its_area", with(entry));
    entry.central = [](CentralHeader& h) { h.attributes = 0120777U << 16; };
    add("link", with(entry));
    entry.central = [](CentralHeader& h) { h.size = h.stored_size = sentinel32 - 1; };
    add("huge_size", with(entry));
    entry.central = {};
    entry.local = [](LocalHeader& h) { h.name = "c.txt"; };
    add("other_local_name", with(entry));
    entry.local = [](LocalHeader& h) { h.extra = extra(0x9999, std::string(600, 'x')); };
    add("long_local_header", with(entry));
    add("directory", with({.name = "d/", .data = ""}));
    add("directory_with_data", with({.name = "d/", .data = "data"}));
    add("nul_in_a_name", with({.name = "b\0.txt"s, .data = "data"}));
    add("name_twice", with(a));
    entry = packed_entry("b.txt", zip_deflate, "data");
    entry.flags = 1;
    add("encrypted", with(entry));
    entry.flags = 0;
    entry.method = 9;
    add("unknown_method", with(entry));
    zip = {.entries = {a, z}};
    zip.order = {1, 0, 1};
    add("entry_twice", zip);
    add("entry_twice_allowed", zip, overlap);
    zip.order = {1, 0};
    add("directory_in_another_order", zip);
    zip = {.entries = {a, z}, .prefix = "#!/bin/sh\n"};
    add("prefix", zip, prefix);
    zip.counted_prefix = true;
    add("counted_prefix", zip, prefix);
    zip = {.entries = {a, z}, .after = "junk"};
    add("junk_after_the_end", zip, trailing);
    zip = {.entries = {{.name = "in.zip", .data = Zip{.entries = {a}}.bytes()}}};
    add("file_in_the_file", zip);
    zip = {.entries = {a}, .comment = Zip{.entries = {z}}.bytes()};
    add("file_in_the_comment", zip, prefix);
    zip = {.entries = {a, z}};
    zip.end = [](EndRecord& e) { e.entries = e.disk_entries = 3; };
    add("wrong_count", zip);
    zip.end = [](EndRecord& e) { e.disk = 1; };
    add("several_disks", zip);
    inputs.push_back({"cut", strict, Zip{.entries = {a, z}}.bytes().substr(0, 100)});

    for (const Input& input : inputs)
        if (!write_input(argv[1], input.name, input.switches + input.file)) return 1;
    return 0;
}
