// Writes the first inputs of libarchive_fuzz into a folder: libarchive_corpus
// tests/fuzz/corpus/libarchive. Each file is named after what it tests; findings of the fuzzer are
// added beside them.
#include "../unit/libarchive_builder.h"
#include "corpus_files.h"

#include <iostream>

namespace {

// First bytes, see libarchive_fuzz.cpp.
constexpr char strict = '0', trailing = '1';

}  // namespace

int main(int argc, char** argv) {
    using namespace shf::test;
    if (argc != 2) {
        std::cerr << "usage: libarchive_corpus FOLDER\n";
        return 2;
    }
    const std::vector<Packed> members = {{.name = "d", .data = "", .type = AE_IFDIR},
                                         {"d/a.txt", "first"},
                                         {"d/a.cls", std::string(300, '7')},
                                         {"d/b.txt", ""},
                                         {"d/c.txt", "last"}};
    std::vector<Packed> links = members;
    links.push_back({.name = "d/l.txt", .data = "", .type = AE_IFLNK, .link = "a.txt"});
    struct Input {
        std::string name;
        char switches;
        std::string file;
    };
    std::vector<Input> inputs;
    const auto add = [&](const std::string& name, std::string file, char switches = strict) {
        inputs.push_back({name, switches, std::move(file)});
    };
    for (const char* method : {"store", "deflate", "bzip2", "lzma1", "lzma2", "ppmd"})
        add(std::string("7z_") + method,
            pack("7zip", members, (std::string("7zip:compression=") + method).c_str()));
    for (const char* format : {"odc", "newc", "bin"})
        add(std::string("cpio_") + format, pack(format, links));
    add("iso", pack("iso9660", members, "iso9660:!pad"));
    add("iso_joliet", pack("iso9660", members, "iso9660:!pad,!rockridge"));
    add("rar4", rar4(members));
    add("rar5", rar5(members));
    add("rar4_volume", rar4(members, 1));
    add("rar5_volume", rar5(members, 1));
    add("7z_trailing", pack("7zip", members) + "junk", trailing);
    add("cpio_twice", pack("newc", members) + pack("newc", members), trailing);
    add("rar5_trailing", rar5(members) + "junk", trailing);
    add("rar5_cut", rar5(members).substr(0, rar5(members).size() - 8));
    std::string wrong = rar4(members);
    wrong[wrong.find("first")] = 'F';
    add("rar4_wrong_crc", wrong);
    wrong = pack("7zip", members, "7zip:compression=store");
    wrong[wrong.find("first")] = 'F';
    add("7z_wrong_crc", wrong);

    for (const Input& input : inputs)
        if (!write_input(argv[1], input.name, input.switches + input.file)) return 1;
    return 0;
}
