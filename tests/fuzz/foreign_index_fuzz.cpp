// Fuzz target of the index files of other tools: any bytes as an index of DALI, of Energon and of
// wids. What is taken for an index of this shard says the truth about it, in full.
#include "../unit/tar_builder.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "interop/dali_index.h"
#include "interop/energon_index.h"
#include "interop/wids_index.h"
#include "io/source.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace shf::test;
using Lines = std::vector<std::vector<std::string>>;  // of words

const shf::TarFiles& shard() {
    static const shf::TarFiles files = [] {
        const std::string tar = member("d/a.jpg", "12345") + member("d/a.Cls", "7") +
                                member("README", "") + member("d/b.seg.png", "") + end_marker();
        const auto source =
            shf::memory_source({reinterpret_cast<const uint8_t*>(tar.data()), tar.size()});
        const shf::Cancel never;
        return shf::TarFiles(*source, {}, never);
    }();
    return files;
}

// Words without the zeros before their numbers, and without empty lines at the end.
Lines lines_of(std::string_view text) {
    Lines lines(1);
    std::string word;
    const auto end_word = [&] {
        if (word.empty()) return;
        if (word.find_first_not_of("0123456789") == word.npos)
            word.erase(0, std::min(word.find_first_not_of('0'), word.size() - 1));
        lines.back().push_back(word);
        word.clear();
    };
    for (const char c : text) {
        if (std::string_view(" \t\n\v\f\r").find(c) == std::string_view::npos) {
            word += c;
            continue;
        }
        end_word();
        if (c == '\n') lines.emplace_back();
    }
    end_word();
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
}

// All that may be said of the shard, by hand, and is taken. wds2idx sees a sample in README, and
// lower-cases nothing.
const std::vector<Lines>& truths() {
    static const std::vector<Lines> all = [] {
        std::vector<Lines> lines;
        for (const char* text : {
                 "v1.2 3\njpg 512 5 d/a.jpg Cls 1536 1 d/a.Cls\nREADME 2560 0 README\n"
                 "seg.png 3072 0 d/b.seg.png",
                 "v1.2 2\njpg 512 5 d/a.jpg Cls 1536 1 d/a.Cls\nseg.png 3072 0 d/b.seg.png",
                 "v1.2 2\njpg 512 5 d/a.jpg cls 1536 1 d/a.Cls\nseg.png 3072 0 d/b.seg.png",
                 "v1.1 3\njpg 512 5 Cls 1536 1\nREADME 2560 0\nseg.png 3072 0",
                 "v1.1 2\njpg 512 5 Cls 1536 1\nseg.png 3072 0",
                 "v1.1 2\njpg 512 5 cls 1536 1\nseg.png 3072 0",
                 "v1.0 3\njpg 5 512 Cls 1 1536\nREADME 0 2560\nseg.png 0 3072",
                 "v1.0 2\njpg 5 512 Cls 1 1536\nseg.png 0 3072",
                 "v1.0 2\njpg 5 512 cls 1 1536\nseg.png 0 3072",
             }) {
            std::string one = text;
            shf::check_dali_index(one, shard());
            lines.push_back(lines_of(one));
            if (one.starts_with("v1.0")) continue;
            // These columns go under v1.0 as well.
            one.replace(0, 4, "v1.0");
            shf::check_dali_index(one, shard());
            lines.push_back(lines_of(one));
        }
        return lines;
    }();
    return all;
}

// Runs `read`; false when it throws one of `codes`. Anything else it may not throw.
template <typename Read>
bool taken(std::initializer_list<int32_t> codes, Read read) {
    try {
        read();
        return true;
    } catch (const shf::Error& error) {
        if (std::find(codes.begin(), codes.end(), error.code()) == codes.end()) std::abort();
        return false;
    }
}

void require(bool right) {
    if (!right) std::abort();
}

void read_dali(std::string_view bytes) {
    if (taken({SHF_E_FORMAT, SHF_E_CHANGED, SHF_E_UNSUPPORTED},
              [&] { shf::check_dali_index(bytes, shard()); }))
        require(std::find(truths().begin(), truths().end(), lines_of(bytes)) != truths().end());
}

void read_energon(std::string_view bytes) {
    using namespace std::string_view_literals;
    if (taken({SHF_E_FORMAT, SHF_E_CHANGED}, [&] { shf::check_energon_index(bytes, shard()); }))
        require(bytes == "\0\0\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0"sv);
}

void read_wids(std::string_view bytes) {
    std::vector<shf::WidsShard> shards;
    if (!taken({SHF_E_FORMAT, SHF_E_UNSUPPORTED}, [&] { shards = shf::read_wids_index(bytes); }))
        return;
    // What was read can be written, and is read again as the same.
    const auto again = shf::read_wids_index(shf::wids_index(shards));
    require(std::equal(shards.begin(), shards.end(), again.begin(), again.end(),
                       [](const shf::WidsShard& a, const shf::WidsShard& b) {
                           return a.url == b.url && a.samples == b.samples && a.size == b.size;
                       }));
    const std::filesystem::path folder = "/data/set";
    for (const shf::WidsShard& one : shards) {
        std::filesystem::path path;
        std::string url;
        if (taken({SHF_E_USAGE, SHF_E_UNSUPPORTED},
                  [&] { path = shf::wids_path(one.url, folder); }) &&
            taken({SHF_E_UNSUPPORTED}, [&] { url = shf::wids_url(path, folder); }))
            require(path.is_absolute() && shf::wids_path(url, folder) == path);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    (void)truths();
    read_dali(bytes);
    read_energon(bytes);
    read_wids(bytes);
    return 0;
}
