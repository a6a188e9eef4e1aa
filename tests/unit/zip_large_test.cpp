// Z6 and Z14 at their borders: 65,535 and 65,536 entries, and entries around 4 GiB, which are holes
// of sparse files.
#include "dataset/archive.h"
#include "zip_builder.h"
#include "zip_driver.h"
#include "zip_encoders.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace shf::test {
namespace {

constexpr uint64_t four_gib = uint64_t{1} << 32;

// ---- Many entries -----------------------------------------------------------------------------

Zip many(size_t count) {
    Zip zip;
    for (size_t i = 0; i < count; ++i)
        zip.entries.push_back({.name = std::to_string(i), .data = std::to_string(i * 7)});
    return zip;
}

TEST(ManyEntries, around_the_border_of_16_bits) {
    for (const size_t count : {65534U, 65535U, 65536U, 65537U}) {
        const std::string bytes = many(count).bytes();
        const Archive archive(span_of(bytes), Options());
        ASSERT_EQ(archive.members().count(), count);
        for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(archive.members().name(i), std::to_string(i));
            ASSERT_EQ(archive.find(std::to_string(i)), i);
            const auto view = archive.view(i);
            ASSERT_EQ(std::string(view.begin(), view.end()), std::to_string(i * 7));
        }
    }
}

// 65,535 is a count like others when no ZIP64 record is there; a count modulo 65,536 never is.
TEST(ManyEntries, without_zip64_records) {
    const auto without = [](size_t count) {
        const Zip zip = many(count);
        std::vector<uint64_t> offsets;
        std::string out, directory;
        for (const Entry& entry : zip.entries) {
            directory += entry.central_bytes(out.size());
            out += entry.local_bytes() + entry.data;
        }
        EndRecord end;
        end.entries = end.disk_entries = static_cast<uint16_t>(count);
        end.directory_size = static_cast<uint32_t>(directory.size());
        end.offset = static_cast<uint32_t>(out.size());
        return list_zip(out + directory + end.bytes());
    };
    EXPECT_EQ(without(65535).members.size(), 65535U);
    EXPECT_TRUE(without(65535).all_read());
    EXPECT_EQ(without(65536).fault.code, SHF_E_FORMAT);
    EXPECT_EQ(without(65537).fault.code, SHF_E_FORMAT);
}

// ---- Large entries ----------------------------------------------------------------------------

// A file without a name that has the bytes of `parts` at their offsets, and holes between them.
class SparseFile {
  public:
    explicit SparseFile(const std::vector<std::pair<uint64_t, std::string>>& parts)
        : descriptor_(::memfd_create("sparse", MFD_CLOEXEC)) {
        EXPECT_GE(descriptor_, 0);
        for (const auto& [at, bytes] : parts)
            EXPECT_EQ(::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at)),
                      static_cast<ssize_t>(bytes.size()));
    }
    ~SparseFile() { ::close(descriptor_); }
    SparseFile(const SparseFile&) = delete;
    SparseFile& operator=(const SparseFile&) = delete;
    [[nodiscard]] std::string path() const {
        return "/proc/self/fd/" + std::to_string(descriptor_);
    }

  private:
    int descriptor_;
};

// A large hole, stored, between two small entries; `crc` is that of the zeros.
struct Large {
    Zip zip;
    std::vector<uint64_t> offsets;
    std::vector<std::pair<uint64_t, std::string>> parts;

    Large(uint64_t hole, uint32_t crc, bool descriptor) {
        zip.entries = {
            {.name = "a.txt", .data = "first"},
            {.name = "hole.bin", .data = "", .descriptor = descriptor, .hole = hole, .crc = crc},
            {.name = "z.txt", .data = "last"}};
        uint64_t at = 0;
        const auto put = [&](const std::string& bytes) {
            parts.emplace_back(at, bytes);
            at += bytes.size();
        };
        for (const Entry& entry : zip.entries) {
            offsets.push_back(at);
            put(entry.local_bytes() + entry.stored());
            at += entry.hole;
            put(entry.descriptor_bytes());
        }
        put(zip.tail(offsets, at));
    }
};

const Options large_members = options_with({{"max_member", "1TiB"}});

std::string read_small(const Archive& archive, size_t position) {
    std::string out(static_cast<size_t>(archive.members().info(position).size), '\0');
    archive.read(position, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
    return out;
}

TEST(LargeEntries, around_the_border_of_32_bits) {
    for (const uint64_t hole : {four_gib - 2, four_gib - 1, four_gib, four_gib + 1, 5 * four_gib})
        for (const bool descriptor : {false, true}) {
            const Large large(hole, 0, descriptor);
            const SparseFile file(large.parts);
            const Archive archive(file.path(), large_members);
            ASSERT_EQ(archive.members().count(), 3U);
            for (size_t i = 0; i < 3; ++i) {
                const MemberInfo info = archive.members().info(i);
                EXPECT_EQ(info.offset, large.offsets[i]) << hole;
                EXPECT_EQ(info.size, large.zip.entries[i].size()) << hole;
                EXPECT_EQ(info.stored_size, large.zip.entries[i].size()) << hole;
            }
            EXPECT_EQ(read_small(archive, 0), "first") << hole;
            EXPECT_EQ(read_small(archive, 2), "last") << hole;
        }
}

// A size modulo 2^32, as a writer without ZIP64 makes it: bytes are left over, or missing.
TEST(LargeEntries, sizes_modulo_32_bits_are_refused) {
    Large large(four_gib + 10, 0, false);
    const auto cut = [](auto& h) {
        h.stored_size = h.size = 10;
        h.extra.clear();
    };
    large.zip.entries[1].local = cut;
    large.zip.entries[1].central = cut;
    const uint64_t end = large.parts.back().first;
    large.parts.back().second = large.zip.tail(large.offsets, end);
    large.parts[2].second = large.zip.entries[1].local_bytes();
    const SparseFile file(large.parts);
    const Archive archive(file.path(), large_members);
    EXPECT_EQ(read_small(archive, 2), "last");
    EXPECT_THROW(read_small(archive, 1), Error);
}

// More than one system call gives: the rest must follow.
TEST(LargeEntriesWhole, above_two_gib) {
    // The CRC of so many zeros, from the library that reads; zlib's own way to combine is the
    // check.
    const auto size = static_cast<size_t>(four_gib / 2 + 1);
    auto* memory = static_cast<uint8_t*>(::mmap(
        nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    (void)::madvise(memory, size, MADV_HUGEPAGE);
    uint32_t crc = crc_of("\0"s);
    for (uint64_t zeros = 1; zeros < four_gib / 2; zeros *= 2)
        crc = static_cast<uint32_t>(::crc32_combine(crc, crc, static_cast<z_off_t>(zeros)));
    crc = static_cast<uint32_t>(::crc32_combine(crc, crc_of("\0"s), 1));
    const Large large(size, crc, true);
    const SparseFile file(large.parts);
    const Archive archive(file.path(), large_members);
    archive.read(1, {memory, size});
    ::munmap(memory, size);
}

}  // namespace
}  // namespace shf::test
