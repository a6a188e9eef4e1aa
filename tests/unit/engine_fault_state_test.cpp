// States of streams that have failed: the fault comes again after a restore, wherever it was.
#include "resume_client.h"
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

constexpr uint64_t samples = 30, batch_size = 8;

// What is wrong with the one bad sample.
enum class Bad : uint8_t { lacks_the_field, is_no_number };

class EngineFaultState : public testing::TestWithParam<Bad> {
  protected:
    // One shard, in which sample number `bad` is bad.
    void write(uint64_t bad) const {
        std::string bytes;
        for (uint64_t i = 0; i < samples; ++i) {
            const std::string key = sample_key(0, i);
            if (i != bad)
                bytes += member(key + ".txt", key) + member(key + ".cls", "7");
            else if (GetParam() == Bad::lacks_the_field)
                bytes += member(key + ".txt", key);
            else
                bytes += member(key + ".txt", key) + member(key + ".cls", "seven");
        }
        directory.write("a.tar", bytes + end_marker());
    }
    [[nodiscard]] std::unique_ptr<BatchClient> open(const Settings& more) const {
        return std::make_unique<BatchClient>(
            directory / "a.tar",
            Settings{{"batch", std::to_string(batch_size)}, {"decode", "cls:int"}} + more);
    }

    TempDirectory directory;
};

TEST_P(EngineFaultState, of_a_bad_row_leads_to_it_again) {
    for (const char* threads : {"1", "2"})
        for (const Settings& order : {Settings{}, Settings{{"shuffle", "5"}}})
            for (uint64_t bad = 0; bad < samples; ++bad) {
                SCOPED_TRACE("sample " + std::to_string(bad) + ", threads " + threads +
                             (order.empty() ? "" : ", shuffled"));
                write(bad);
                const Settings settings = Settings{{"decode_threads", threads}} + order;
                const auto failed = open(settings);
                size_t delivered = 0;
                while (const BatchHandle batch = failed->next_batch())
                    delivered += shf_batch_row_count(batch.get());
                ASSERT_EQ(failed->code, SHF_E_FORMAT) << failed->message();
                const std::string why = failed->message();
                const auto again = open(settings);
                ASSERT_EQ(restore(*again, save(*failed)), SHF_OK) << again->message();
                while (const BatchHandle batch = again->next_batch())
                    delivered += shf_batch_row_count(batch.get());
                ASSERT_EQ(again->code, SHF_E_FORMAT) << again->message();
                EXPECT_EQ(again->message(), why);
                EXPECT_LE(delivered, samples - 1);
            }
}

INSTANTIATE_TEST_SUITE_P(sample, EngineFaultState,
                         testing::Values(Bad::lacks_the_field, Bad::is_no_number));

}  // namespace
