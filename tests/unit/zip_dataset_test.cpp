// A ZIP file as a shard of a dataset: what is wrong around a sample is wrong with the sample, and
// is looked for once.
#include "zip_builder.h"
#include "zip_driver.h"
#include "zip_encoders.h"

#include <atomic>

namespace shf::test {
namespace {

// Three samples of two fields, with members that belong to none before and between them.
Zip three() {
    return {.entries = {{.name = "README", .data = "text"},
                        {.name = "a.x", .data = "a1"},
                        {.name = "a.y", .data = "a2"},
                        {.name = "LICENSE", .data = "text"},
                        {.name = "b.x", .data = "b1"},
                        {.name = "b.y", .data = "b2"},
                        {.name = "c.x", .data = "c1"},
                        {.name = "c.y", .data = "c2"}}};
}
constexpr const char* all_three = "a{x=a1 y=a2} b{x=b1 y=b2} c{x=c1 y=c2}";

// The name that the directory has, where the local header keeps the right one.
std::function<void(CentralHeader&)> named(const char* name) {
    return [name](CentralHeader& h) { h.name = name; };
}

TEST(ZipDataset, a_field_that_the_directory_moves_away_is_missed) {
    ASSERT_EQ(listing(read_by_number(three().bytes())), all_three);
    struct Moved {
        size_t entry;
        const char* name;
        const char* rest;
    };
    for (const Moved& moved : {Moved{2, "a/y", "c{x=c1 y=c2}"},  // to no sample
                               Moved{4, "b_x", "c{x=c1 y=c2}"},  // may have been a's last
                               Moved{5, "c.z", "a{x=a1 y=a2}"},  // to the one behind
                               Moved{4, "a.z", "c{x=c1 y=c2}"},  // to the one before
                               Moved{7, "d.y", "a{x=a1 y=a2} b{x=b1 y=b2}"},  // to a new one
                               Moved{3, "LICENZE", "c{x=c1 y=c2}"},           // from none
                               Moved{0, "REA.ME", "b{x=b1 y=b2} c{x=c1 y=c2}"}}) {
        SCOPED_TRACE(moved.name);
        Zip zip = three();
        zip.entries[moved.entry].central = named(moved.name);
        const ShardResult result = read_by_number(zip.bytes());
        EXPECT_EQ(result.end.code, SHF_OK) << result.end.text;
        EXPECT_EQ(listing(result), moved.rest);
        ASSERT_FALSE(result.bad_samples.empty());
        for (const SeenFault& fault : result.bad_samples) {
            EXPECT_EQ(fault.code, SHF_E_AMBIGUOUS) << fault.text;
            EXPECT_NE(fault.text.find("member \"" + std::string(moved.name) + '"'),
                      std::string::npos)
                << fault.text;
        }
    }
}

TEST(ZipDataset, a_member_around_that_cannot_be_read_does_not_matter) {
    Zip zip = three();
    zip.entries[0].crc = 7;
    zip.entries[3].method = 9;
    EXPECT_EQ(listing(read_by_number(zip.bytes())), all_three);
}

// A wrong offset gives the directory another order than the file: then any sample may lack a field.
TEST(ZipDataset, in_another_order_all_is_checked_at_once) {
    Zip zip = three();
    zip.order = {7, 0, 6, 1, 5, 2, 4, 3};
    EXPECT_EQ(listing(read_by_number(zip.bytes())), all_three);
    zip.entries[3].central = named("LICENZE");
    const ShardResult result = read_by_number(zip.bytes());
    EXPECT_EQ(result.end.code, SHF_E_AMBIGUOUS) << result.end.text;
    EXPECT_TRUE(result.samples.empty());
}

TEST(ZipDataset, without_samples_all_is_checked_at_once) {
    const Options empty = options_with({{"allow_empty", "true"}});
    Zip zip{.entries = {{.name = "README", .data = "text"}}};
    EXPECT_EQ(read_by_number(zip.bytes(), empty).end.code, SHF_OK);
    zip = {.entries = {{.name = "a.x", .data = "text", .central = named("a_x")}}};
    EXPECT_EQ(read_by_number(zip.bytes(), empty).end.code, SHF_E_AMBIGUOUS);
}

// A source that counts how often it is asked.
class CountingSource final : public Source {
  public:
    CountingSource(std::string_view bytes, std::atomic<size_t>& count)
        : bytes_(memory_source(span_of(bytes))), count_(count) {}
    [[nodiscard]] std::optional<uint64_t> size() const override { return bytes_->size(); }
    [[nodiscard]] bool seekable() const override { return true; }
    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        ++count_;
        return bytes_->read(offset, out);
    }
    size_t read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts) override {
        ++count_;
        return bytes_->read_scattered(offset, parts);
    }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        return bytes_->open_sequential(offset);
    }

  private:
    const std::unique_ptr<Source> bytes_;
    std::atomic<size_t>& count_;
};

TEST(ZipDataset, what_is_around_a_sample_is_checked_once) {
    std::atomic<size_t> count = 0;
    const std::string bytes = three().bytes();
    const DatasetRoom room;
    const auto shard = zip_dataset_shard("x.zip", 0, std::make_unique<CountingSource>(bytes, count),
                                         room.context());
    const auto reads_of = [&](size_t sample) {
        const size_t before = count;
        (void)shard->read(sample);
        return count - before;
    };
    EXPECT_EQ(reads_of(1), 2U + 3) << "two fields; a.y, LICENSE and c.x around them";
    EXPECT_EQ(reads_of(1), 2U);
    EXPECT_EQ(reads_of(0), 2U + 3) << "README, LICENSE and b.x";
    EXPECT_EQ(reads_of(2), 2U + 1) << "b.y";
    EXPECT_EQ(reads_of(0) + reads_of(1) + reads_of(2), 6U);
}

}  // namespace
}  // namespace shf::test
