// What compress(1) writes: all lengths of codes, against libarchive's decoder, and cuts. The format
// has no checks (rule D10 of docs/rules.md).
#include "filter_encoders.h"
#include "filter_outcome.h"
#include "shard_driver.h"
#include "tar_builder.h"

#include <archive.h>
#include <archive_entry.h>

#include <map>
#include <memory>

namespace shf::test {
namespace {

struct Shape {
    unsigned width = 16;     // of the longest code
    size_t clear_every = 0;  // codes; 0: when the table is full
    char padding = '\x55';   // old programs leave there what was in their buffer
};

class Encoder {
  public:
    explicit Encoder(const Shape& shape) : shape_(shape) {
        out_ = "\x1f\x9d";
        out_ += static_cast<char>(shape.width | 0x80U);
    }
    std::string encode(std::string_view data) {
        if (data.empty()) return out_;
        uint32_t code = static_cast<unsigned char>(data[0]);
        for (const char c : data.substr(1)) {
            const auto key = std::pair(code, c);
            if (const auto found = table_.find(key); found != table_.end()) {
                code = found->second;
                continue;
            }
            put(code, false);
            code = static_cast<unsigned char>(c);
            if (next_ < (1U << shape_.width)) table_[key] = next_++;
            const bool full = next_ == (1U << shape_.width);
            if (shape_.clear_every == 0 ? full && ++codes_ > 3000
                                        : ++codes_ % shape_.clear_every == 0) {
                table_.clear();
                codes_ = 0;
                put(256, true);
                next_ = 257;
            }
        }
        put(code, false);
        if (bits_ > 0) out_ += static_cast<char>(held_);
        return out_;
    }

    // A run that grows by a byte with each code.
    std::string encode_run(uint32_t codes) {
        put('r', false);
        for (uint32_t i = 1; i < codes; ++i) put(next_++, false);
        return out_;
    }

  private:
    void put(uint32_t code, bool clear) {
        held_ |= code << bits_;
        for (bits_ += width_; bits_ >= 8; bits_ -= 8, held_ >>= 8) out_ += static_cast<char>(held_);
        group_ = (group_ + 1) % 8;
        const uint32_t largest = width_ == shape_.width ? 1U << width_ : (1U << width_) - 1;
        if (!clear && next_ <= largest) return;
        if (bits_ > 0) out_ += static_cast<char>(held_);
        const uint32_t whole = group_ == 0 ? 0 : width_ - (group_ * width_ + 7) / 8;
        out_.append(whole, shape_.padding);
        held_ = bits_ = group_ = 0;
        width_ = clear ? 9 : width_ + 1;
    }

    const Shape shape_;
    std::map<std::pair<uint32_t, char>, uint32_t> table_;
    std::string out_;
    uint32_t next_ = 257, width_ = 9, held_ = 0, bits_ = 0, group_ = 0;
    size_t codes_ = 0;
};

std::string lzw(std::string_view data, const Shape& shape = {}) {
    return Encoder(shape).encode(data);
}

std::string as_libarchive_reads(std::string_view input) {
    const std::unique_ptr<archive, int (*)(archive*)> a(archive_read_new(), archive_read_free);
    archive_read_support_filter_compress(a.get());
    archive_read_support_format_raw(a.get());
    EXPECT_EQ(archive_read_open_memory(a.get(), input.data(), input.size()), ARCHIVE_OK);
    archive_entry* entry = nullptr;
    EXPECT_EQ(archive_read_next_header(a.get(), &entry), ARCHIVE_OK);
    std::string out(size_t{8} << 20, '\0');
    const la_ssize_t count = archive_read_data(a.get(), out.data(), out.size());
    EXPECT_GE(count, 0) << archive_error_string(a.get());
    out.resize(static_cast<size_t>(std::max<la_ssize_t>(count, 0)));
    return out;
}

std::string as_libarchive_writes(std::string_view data) {
    std::string out(2 * data.size() + 20000, '\0');
    size_t used = 0;
    const std::unique_ptr<archive, int (*)(archive*)> a(archive_write_new(), archive_write_free);
    archive_write_add_filter_compress(a.get());
    archive_write_set_format_raw(a.get());
    archive_write_set_bytes_in_last_block(a.get(), 1);
    EXPECT_EQ(archive_write_open_memory(a.get(), out.data(), out.size(), &used), ARCHIVE_OK);
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         archive_entry_free);
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    EXPECT_EQ(archive_write_header(a.get(), entry.get()), ARCHIVE_OK);
    archive_write_data(a.get(), data.data(), data.size());
    EXPECT_EQ(archive_write_close(a.get()), ARCHIVE_OK);
    out.resize(used);
    return out;
}

std::vector<std::string> inputs() {
    return {"a", "aaaaaaaaaaaaaaaa", text(500), std::string(60000, 'r'),
            text(60000) + noise(60000) + text(60000)};
}

TEST(FilterCompress, reads_every_length_of_codes) {
    for (const std::string& data : inputs())
        for (unsigned width = 10; width <= 16; ++width)
            for (const Shape& shape :
                 {Shape{.width = width}, Shape{.width = width, .clear_every = 1000}}) {
                const std::string packed = lzw(data, shape);
                const Outcome outcome = filter(packed);
                ASSERT_EQ(outcome.code, SHF_OK) << width << ": " << outcome.message;
                ASSERT_TRUE(outcome.bytes == data) << width << ' ' << shape.clear_every;
                ASSERT_EQ(outcome.codec, "compress");
                // It takes the last padding for a code.
                if (data.size() > 100) {
                    ASSERT_TRUE(as_libarchive_reads(packed).starts_with(data))
                        << width << ' ' << shape.clear_every << ' ' << data.size();
                }
            }
}

TEST(FilterCompress, reads_what_libarchive_writes) {
    for (const std::string& data : inputs()) {
        const Outcome outcome = always(as_libarchive_writes(data));
        EXPECT_EQ(outcome.code, SHF_OK) << outcome.message;
        EXPECT_TRUE(outcome.bytes == data) << data.size();
        EXPECT_EQ(outcome.verified, data.size());
    }
    EXPECT_EQ(always(std::string("\x1f\x9d\x90", 3)).bytes, "");
}

TEST(FilterCompress, a_cut_gives_a_prefix) {
    const std::string data = text(1500) + noise(300), packed = lzw(data, {.clear_every = 400});
    for (size_t size = 1; size < packed.size(); size += size < 30 ? 1 : 7) {
        const Outcome outcome = always(packed.substr(0, size));
        EXPECT_TRUE(data.starts_with(outcome.bytes)) << size;
        EXPECT_TRUE(outcome.code == SHF_OK || outcome.code == SHF_E_TRUNCATED) << outcome.message;
        if (size < 3) {
            EXPECT_EQ(outcome.code, SHF_E_TRUNCATED);
        }
    }
}

// What the format cannot prove, the end of the tar inside does.
TEST(FilterCompress, a_cut_tar_is_never_whole) {
    std::string tar;
    for (uint32_t i = 0; i < 12; ++i)
        tar += member(numbered("sample", i) + ".txt", text(700, i)) +
               member(numbered("sample", i) + ".cls", std::to_string(i));
    const std::string packed = lzw(tar + end_marker());
    const auto whole = read_shard(packed).samples;
    ASSERT_EQ(whole.size(), 12U);
    for (size_t size = 0; size + 10 < packed.size(); size += packed.size() / 200) {
        const ShardResult result = read_shard(std::string_view(packed).substr(0, size));
        EXPECT_TRUE(result.end.code == SHF_E_TRUNCATED || result.end.code == SHF_E_FORMAT)
            << size << ": " << result.end.text;
        EXPECT_LE(result.samples.size(), whole.size());
        EXPECT_TRUE(std::equal(result.samples.begin(), result.samples.end(), whole.begin()))
            << size;
    }
}

TEST(FilterCompress, damage_is_an_error_or_other_bytes) {
    const std::string packed = lzw(text(1500), {.clear_every = 300});
    for (size_t bit = 0; bit < packed.size() * 8; bit += 5) {
        std::string bad = packed;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        const Outcome outcome = filter(bad);
        EXPECT_TRUE(outcome.code == SHF_OK || outcome.code == SHF_E_FORMAT ||
                    outcome.code == SHF_E_TRUNCATED || outcome.code == SHF_E_UNSUPPORTED)
            << outcome.message;
        EXPECT_EQ(outcome, filter(bad, {}, 1, 17)) << bit;
    }
    for (const char flags : {'\x91', '\xb0', '\xd0', '\x88', '\x89', '\x10'}) {
        std::string bad = packed;
        bad[2] = flags;
        const Outcome outcome = filter(bad);
        // Others are no magic: the tar reader says that this is no tar.
        const bool known = flags == '\x89' || flags == '\x10';
        EXPECT_EQ(outcome.code, known ? SHF_E_UNSUPPORTED : SHF_OK) << outcome.message;
        EXPECT_EQ(outcome.codec, known ? "compress" : "");
    }
}

TEST(FilterCompress, bombs_stop_at_max_ratio) {
    Options options;
    options.set("max_ratio", "50");
    const Outcome outcome = filter(Encoder({}).encode_run(20000), options);
    EXPECT_EQ(outcome.code, SHF_E_LIMIT) << outcome.message;
    EXPECT_EQ(outcome.bytes.size(), size_t{65} << 20);
}

}  // namespace
}  // namespace shf::test
