#include "cli/file_format.h"

#include <sys/stat.h>

#include <array>
#include <fstream>
#include <string_view>

namespace cli {

namespace {

struct Mark {
    std::string_view format;
    std::string_view bytes;
    size_t at;
};
using namespace std::string_view_literals;
constexpr std::array marks = {
    Mark{"zip", "PK\3\4"sv, 0},
    Mark{"zip", "PK\5\6"sv, 0},
    Mark{"tar.gz", "\x1f\x8b"sv, 0},
    Mark{"tar.bz2", "BZh"sv, 0},
    Mark{"tar.xz",
         "\xfd"
         "7zXZ\0"sv,
         0},
    Mark{"tar.zst", "\x28\xb5\x2f\xfd"sv, 0},
    Mark{"tar.lz4", "\x04\x22\x4d\x18"sv, 0},
    Mark{"tar.lz", "LZIP"sv, 0},
    Mark{"tar.Z", "\x1f\x9d"sv, 0},
    Mark{"7z", "7z\xbc\xaf\x27\x1c"sv, 0},
    Mark{"rar", "Rar!\x1a\x07"sv, 0},
    Mark{"cpio", "0707"sv, 0},
    Mark{"tar", "ustar"sv, 257},
};

struct Suffix {
    std::string_view suffix;
    std::string_view format;
};
constexpr std::array suffixes = {
    Suffix{".zip", "zip"},     Suffix{".gz", "tar.gz"},    Suffix{".tgz", "tar.gz"},
    Suffix{".bz2", "tar.bz2"}, Suffix{".tbz2", "tar.bz2"}, Suffix{".xz", "tar.xz"},
    Suffix{".txz", "tar.xz"},  Suffix{".zst", "tar.zst"},  Suffix{".tzst", "tar.zst"},
    Suffix{".lz4", "tar.lz4"}, Suffix{".lz", "tar.lz"},    Suffix{".Z", "tar.Z"},
    Suffix{".7z", "7z"},       Suffix{".rar", "rar"},      Suffix{".cpio", "cpio"},
    Suffix{".iso", "iso"},
};

}  // namespace

std::optional<std::string> local_file(const std::string& url) {
    std::string path = url;
    if (path.starts_with("file://")) path.erase(0, 7);
    struct stat info = {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
    return path;
}

std::string format_of(const std::string& url) {
    if (const auto path = local_file(url)) {
        std::array<char, 512> head = {};
        std::ifstream file(*path, std::ios::binary);
        file.read(head.data(), head.size());
        const std::string_view bytes(head.data(), static_cast<size_t>(file.gcount()));
        for (const auto& [format, mark, at] : marks)
            if (bytes.size() >= at + mark.size() && bytes.substr(at, mark.size()) == mark)
                return std::string(format);
    }
    const std::string_view name = std::string_view(url).substr(0, url.find_first_of("?#"));
    for (const auto& [suffix, format] : suffixes)
        if (name.ends_with(suffix)) return std::string(format);
    return "tar";
}

}  // namespace cli
