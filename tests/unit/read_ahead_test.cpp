// Small reads that follow one another are read ahead; other ones are made as they are asked for.
#include "io/read_ahead.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shf {
namespace {

// A file of `size` bytes that writes down what was asked of it. Reads that touch the byte at `bad`
// fail.
class Recorded final : public Source {
  public:
    explicit Recorded(size_t size, uint64_t bad = UINT64_MAX) : bad_(bad) {
        std::mt19937 random(1);
        while (bytes_.size() < size) bytes_.push_back(static_cast<char>(random()));
    }

    [[nodiscard]] std::optional<uint64_t> size() const override { return bytes_.size(); }
    [[nodiscard]] bool seekable() const override { return true; }
    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        asked.emplace_back(offset, out.size());
        const auto at = std::min<size_t>(offset, bytes_.size());
        const size_t count = std::min(out.size(), bytes_.size() - at);
        if (bad_ >= at && bad_ < at + count) throw Error(SHF_E_IO, "a bad block");
        std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at), count, out.begin());
        return count;
    }
    std::unique_ptr<Sequential> open_sequential(uint64_t /*offset*/) override { return nullptr; }

    [[nodiscard]] std::string part(uint64_t offset, size_t size) const {
        return offset < bytes_.size() ? bytes_.substr(offset, size) : "";
    }
    [[nodiscard]] size_t bytes_asked() const {
        size_t sum = 0;
        for (const auto& [offset, size] : asked) sum += size;
        return sum;
    }

    std::vector<std::pair<uint64_t, size_t>> asked;

  private:
    std::string bytes_;
    uint64_t bad_;
};

std::string read(ReadAhead& ahead, uint64_t offset, size_t size) {
    std::string out(size, '\0');
    auto* bytes = reinterpret_cast<uint8_t*>(out.data());
    // In two parts, as the header and the data of an entry.
    const std::span<uint8_t> parts[] = {{bytes, size / 3}, {bytes + size / 3, size - size / 3}};
    out.resize(ahead.read_scattered(offset, parts));
    return out;
}

TEST(ReadAhead, small_reads_in_turn_are_few_calls) {
    Recorded file(2'000'000);
    ReadAhead ahead(file);
    std::mt19937 random(2);
    size_t reads = 0;
    for (uint64_t at = 0; at < 2'000'000; ++reads) {
        const size_t size = random() % 500;
        ASSERT_EQ(read(ahead, at, size), file.part(at, size)) << "at byte " << at;
        // The same again, on to the next, or over a few bytes that nobody wants.
        if (random() % 4 > 0) at += size + (random() % 4 == 0 ? random() % 300 : 0);
    }
    EXPECT_GT(reads, 7000U);
    EXPECT_LT(file.asked.size(), 40U);
    EXPECT_LT(file.bytes_asked(), 2'300'000U);
}

TEST(ReadAhead, reads_far_apart_are_made_as_they_are) {
    Recorded file(2'000'000);
    ReadAhead ahead(file);
    // As when one small field of each sample is wanted: its header, its data, the header of the
    // next one, and on to the next sample.
    size_t wanted = 0;
    for (uint64_t at = 0; at + 6100 < 2'000'000; at += 6100) {
        for (const auto& [offset, size] :
             {std::pair<uint64_t, size_t>(at, 45), {at, 48}, {at + 48, 512}}) {
            ASSERT_EQ(read(ahead, offset, size), file.part(offset, size));
            wanted += size;
        }
    }
    EXPECT_EQ(file.bytes_asked(), wanted);
    // Backwards.
    for (uint64_t at = 1'000'000; at > 0; at -= 1000) {
        ASSERT_EQ(read(ahead, at, 100), file.part(at, 100));
        wanted += 100;
    }
    EXPECT_EQ(file.bytes_asked(), wanted);
}

TEST(ReadAhead, large_reads_go_straight) {
    Recorded file(2'000'000);
    ReadAhead ahead(file);
    size_t wanted = 0;
    for (uint64_t at = 0; at < 1'900'000; at += 100'000, wanted += 100'000)
        ASSERT_EQ(read(ahead, at, 100'000), file.part(at, 100'000));
    EXPECT_EQ(file.bytes_asked(), wanted);
}

TEST(ReadAhead, ends_where_the_file_does) {
    Recorded file(20'050);
    ReadAhead ahead(file);
    for (uint64_t at = 0; at < 21'000; at += 100)
        ASSERT_EQ(read(ahead, at, 100), file.part(at, 100)) << "at byte " << at;
}

TEST(ReadAhead, a_bad_block_is_told_to_who_reads_it) {
    Recorded file(200'000, 150'000);
    ReadAhead ahead(file);
    for (uint64_t at = 0; at < 200'000; at += 100) {
        if (at == 150'000)
            EXPECT_THROW(read(ahead, at, 100), Error);
        else
            ASSERT_EQ(read(ahead, at, 100), file.part(at, 100)) << "at byte " << at;
    }
}

}  // namespace
}  // namespace shf
