// Random valid archives with all kinds of headers: our samples are what libarchive lists, by name
// and by bytes. What the rules refuse or skip on purpose (sparse members, unknown types) is left
// out.
#include "sample/name.h"
#include "shard_expect.h"
#include "tar_builder.h"

#include <archive.h>
#include <archive_entry.h>

#include <iostream>
#include <random>

namespace shf::test {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;  // name and bytes, in order

// The regular files that belong to samples, as libarchive sees them.
Files listed_by_libarchive(std::string_view bytes) {
    struct Free {
        void operator()(archive* a) const { archive_read_free(a); }
    };
    const std::unique_ptr<archive, Free> a(archive_read_new());
    archive_read_support_format_tar(a.get());
    EXPECT_EQ(archive_read_open_memory(a.get(), bytes.data(), bytes.size()), ARCHIVE_OK);
    Files files;
    archive_entry* entry = nullptr;
    int status = ARCHIVE_OK;
    while ((status = archive_read_next_header(a.get(), &entry)) == ARCHIVE_OK ||
           status == ARCHIVE_WARN) {
        const std::string name = archive_entry_pathname(entry);
        if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr ||
            !split_name(name).has_key)
            continue;
        std::string data(static_cast<size_t>(archive_entry_size(entry)), '\0');
        EXPECT_EQ(archive_read_data(a.get(), data.data(), data.size()),
                  static_cast<la_ssize_t>(data.size()));
        files.emplace_back(name, data);
    }
    EXPECT_EQ(status, ARCHIVE_EOF) << archive_error_string(a.get());
    return files;
}

Files listed_by_us(const ShardResult& result) {
    Files files;
    for (const SeenSample& sample : result.samples)
        for (const auto& [field, data] : sample.fields)
            files.emplace_back(sample.key + "." + field, data);
    return files;
}

class Generator {
  public:
    explicit Generator(uint32_t seed) : random_(seed) {}

    std::string archive() {
        std::string out;
        const size_t samples = 1 + below(30);
        for (size_t i = 0; i < samples; ++i) {
            const std::string key = random_key() + std::to_string(i);
            const size_t fields = 1 + below(4);
            for (size_t f = 0; f < fields; ++f) {
                if (below(6) == 0) out += something_else();
                out += file(key + (below(3) == 0 ? ".seg.f" : ".f") + std::to_string(f), data());
            }
        }
        return out + end_marker() + zeros(512 * below(20));
    }

  private:
    size_t below(size_t bound) { return random_() % bound; }

    std::string random_key() {
        std::string key;
        const size_t directories = below(3);
        for (size_t d = 0; d < directories; ++d) key += bytes(1 + below(60), true) + "/";
        return key + bytes(1 + below(below(8) == 0 ? 300 : 30), false);
    }
    // A path component, or the part of a name before its dot.
    std::string bytes(size_t size, bool dots) {
        std::string out(size, '\0');
        for (char& c : out) {
            do c = static_cast<char>(1 + below(255));
            while (c == '/' || (c == '.' && !dots) || c == '_');
        }
        return out;
    }
    std::string data() {
        std::string out(below(below(20) == 0 ? 100000 : below(3) == 0 ? 3000 : 600), '\0');
        for (char& c : out) c = static_cast<char>(random_());
        return out;
    }

    std::string file(const std::string& name, const std::string& data) {
        const char type = below(8) == 0 ? '7' : below(8) == 0 ? '\0' : '0';
        const size_t slash = name.rfind('/');
        switch (below(6)) {
            case 0:
                if (name.size() <= 100)
                    return sealed({.name = name, .type = type, .carrier = Carrier::v7}, data);
                break;
            case 1:
                if (slash != name.npos && slash > 0 && slash <= 155 &&
                    name.size() - slash - 1 <= 100)
                    return sealed({.name = name.substr(slash + 1),
                                   .type = type,
                                   .prefix = name.substr(0, slash)},
                                  data);
                break;
            case 2:
                return gnu_long(below(2) == 0 ? name : name + '\0') +
                       (below(4) == 0 ? gnu_long("target\0"s, 'K') : "") +
                       sealed({.name = "shortened", .type = type, .carrier = Carrier::gnu}, data);
            case 3: {
                // The size in pax only, as writers do from 8 GiB on.
                const std::string size = std::to_string(data.size());
                return pax({{"hdrcharset", "BINARY"}, {"size", size}, {"path", name}}) +
                       header({.name = "shortened"}) + padded(data);
            }
            default: break;
        }
        if (name.size() <= 100)
            return sealed({.name = name,
                           .type = type,
                           .carrier = below(2) == 0 ? Carrier::ustar : Carrier::gnu},
                          data);
        return pax({{"hdrcharset", "BINARY"},
                    {"mtime", "1700000000.25"},
                    {"path", "overridden"},
                    {"path", name},
                    {"comment", "two\nlines"}}) +
               sealed({.name = name.substr(0, 100), .type = type}, data);
    }

    // A member with one of the ways to write size and checksum.
    std::string sealed(Header h, const std::string& data) {
        h.size = data.size();
        std::string block = header(h);
        switch (below(5)) {
            case 0: overwrite(block, size_field, base256(data.size())); break;
            case 1: overwrite(block, size_field, octal(data.size(), 13).substr(0, 12)); break;
            case 2: {
                std::string blanks = octal(data.size());
                for (size_t i = 0; i < 10 && blanks[i] == '0'; ++i) blanks[i] = ' ';
                overwrite(block, size_field, blanks);
                break;
            }
            default: break;
        }
        reseal(block, 0, below(4) == 0);
        return block + padded(data);
    }

    std::string something_else() {
        switch (below(9)) {
            case 0: return header({.name = "some.dir/", .type = '5'});
            case 1: return header({.name = "l.f0", .type = '2', .link = "target"});
            case 2: return header({.name = "h.f0", .type = '1', .link = "target"});
            case 3: return header({.name = "c.f0", .type = "346"[below(3)]});
            case 4: return pax({{"comment", "global"}}, 'g');
            case 5: return member("README", data());
            case 6: return member("__meta__/x.f0", data());
            case 7: return header({.name = "label.f0", .type = 'V', .carrier = Carrier::gnu});
            default: return member(".hidden", data());
        }
    }

    std::mt19937 random_;
};

TEST(TarDifferential, libarchive_sees_the_same) {
    constexpr uint32_t first_seed = 20260801, archives = 300;
    std::cout << "seeds " << first_seed << " to " << first_seed + archives - 1 << '\n';
    size_t files = 0;
    for (uint32_t seed = first_seed; seed < first_seed + archives; ++seed) {
        const std::string shard = Generator(seed).archive();
        const ShardResult ours = read_shard(shard, {},
                                            {.chunk = seed % 4 == 0 ? size_t{777} : 0,
                                             .size_known = seed % 2 == 0,
                                             .alone = seed % 3 == 0});
        ASSERT_EQ(ours.end.code, SHF_OK) << "seed " << seed << ": " << ours.end.text;
        const Files expected = listed_by_libarchive(shard);
        ASSERT_TRUE(listed_by_us(ours) == expected) << "seed " << seed;
        files += expected.size();
    }
    EXPECT_GT(files, 5000U);
}

}  // namespace
}  // namespace shf::test
