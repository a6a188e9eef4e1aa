// Memory runs out while shards are written: the writer then ends with NOMEM, or does without. What
// it has published is whole, and nothing else is left in the folder.
#include "failing_allocations.h"
#include "writer_client.h"

#include <array>

namespace shf::test {
namespace {

constexpr uint64_t samples = 24;

// The stride is 1 in the slow suite.
class WriterNomem : public testing::TestWithParam<int64_t> {
  protected:
    void fail_each(const std::string& ending, const std::string& options) {
        SCOPED_TRACE(ending + " " + options);
        const std::string pattern = folder / ("%03d." + ending);
        const Counts counts = fail_each_allocation(
            [&](Outcome& outcome) { write(pattern, options, outcome); }, Faults::heap, GetParam(),
            [](const Outcome& outcome) {
                return outcome.code == SHF_E_LIMIT &&
                       std::string_view(outcome.message).find("thread") != std::string_view::npos;
            });
        EXPECT_GT(counts.nomem, 0U);
        points += counts.points;
        RecordProperty("points", std::to_string(points));
    }

    const TempDirectory folder;
    uint64_t points = 0;

  private:
    // Three shards of eight samples each.
    void write(const std::string& pattern, const std::string& settings, Outcome& outcome) {
        shf_error error = {};
        shf_writer* writer = nullptr;
        shf_options* options = shf_options_new();
        int32_t code =
            options ? shf_options_set_all(options, settings.c_str(), &error) : int32_t{SHF_E_NOMEM};
        if (code == SHF_OK) code = shf_writer_open(&writer, pattern.c_str(), options, &error);
        for (uint64_t i = 0; i < samples && code == SHF_OK; ++i) {
            std::array<char, 3000> bytes{};
            bytes.fill(static_cast<char>('a' + i));
            const std::array<char, 3> key = {'k', static_cast<char>('a' + i), '\0'};
            code = shf_writer_begin(writer, key.data(), SHF_STRLEN, &error);
            if (code == SHF_OK)
                code = shf_writer_field(writer, "cls", SHF_STRLEN, key.data() + 1, 1, &error);
            if (code == SHF_OK)
                code = shf_writer_field_borrowed(writer, "txt", SHF_STRLEN, bytes.data(),
                                                 bytes.size(), &error);
            if (code == SHF_OK) code = shf_writer_end(writer, &error);
        }
        if (code == SHF_OK) code = shf_writer_finish(writer, &error);
        outcome.code = code;
        std::copy(std::begin(error.message), std::end(error.message), outcome.message);
        shf_writer_close(writer);
        shf_options_free(options);
        // The readers have threads.
        faults::until_failure = -1;
        look_at(outcome);
    }

    // Counts the samples of the shards in the folder and removes them.
    void look_at(Outcome& outcome) {
        const std::string path = folder / "";
        for (const std::string& name : names_in(path)) {
            const std::string file = path + name;
            if (name.ends_with(".sfidx")) continue;
            if (name.ends_with(".partial")) outcome.sound = false;
            for (const std::string& sample : samples_of({file})) {
                ++outcome.count;
                outcome.sound = outcome.sound && sample.starts_with("k") &&
                                sample.size() == std::string_view("ka cls=a txt=").size() + 3000 &&
                                sample.back() == sample[1] && sample[7] == sample[1];
            }
        }
        if (outcome.code == SHF_OK) outcome.sound = outcome.sound && outcome.count == samples;
        outcome.sound = outcome.sound && outcome.count % 8 == 0;
        for (const std::string& name : names_in(path)) std::filesystem::remove(path + name);
    }
};

TEST_P(WriterNomem, tars_with_their_indexes) {
    fail_each("tar", "max_samples=8,write_index=true");
}
TEST_P(WriterNomem, compressed_tars) {
    fail_each("tar.gz", "max_samples=8,write_index=true,threads=2");
    fail_each("tar.zst", "max_samples=8,threads=1");
}
TEST_P(WriterNomem, zip_files) {
    fail_each("zip", "max_samples=8");
}

INSTANTIATE_TEST_SUITE_P(sample, WriterNomem, testing::Values(29));
INSTANTIATE_TEST_SUITE_P(every, WriterNomem, testing::Values(1));

}  // namespace
}  // namespace shf::test
