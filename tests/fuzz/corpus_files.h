// The files of a corpus, for the programs that write the first inputs of a fuzzer.
#pragma once

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace shf::test {

// Writes one input. False, with the reason on stderr, when that fails.
inline bool write_input(const std::filesystem::path& folder, const std::string& name,
                        std::string_view bytes) {
    std::ofstream file(folder / name, std::ios::binary);
    file << bytes;
    if (file.flush()) return true;
    std::cerr << "cannot write " << name << '\n';
    return false;
}

}  // namespace shf::test
