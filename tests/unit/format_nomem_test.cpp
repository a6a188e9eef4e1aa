// Memory runs out while shards in other formats than plain tar are read: compressed tars and ZIP
// files, by streams, data sets, archives and as members in sequence.
#include "dataset_builder.h"
#include "filter_encoders.h"
#include "libarchive_builder.h"
#include "nomem_client.h"

#include <array>

namespace shf::test {
namespace {

constexpr uint64_t samples = 40;

// The stride is 1 in the slow suite.
class FormatNomem : public testing::TestWithParam<int64_t> {
  protected:
    FormatNomem() {
        const std::string tar = shard_bytes(0, samples, 3000);
        for (const char* codec : {"gzip", "bzip2", "xz", "zstd", "lz4"})
            directory.write(std::string("0.tar.") + codec, compress(codec, tar));
        directory.write("members.tar.gz", gzip(tar.substr(0, tar.size() / 1024 * 512)) +
                                              gzip(tar.substr(tar.size() / 1024 * 512)));
        NamedBytes members;
        for (uint64_t i = 0; i < samples; ++i)
            members.emplace_back(sample_key(0, i) + ".txt", sample_key(0, i) + text(3000));
        directory.write("0.zip", stored_zip(members));
        if (shf_feature("libarchive")) {
            std::vector<Packed> packed;
            for (const auto& [name, bytes] : members)
                packed.push_back({.name = name, .data = bytes});
            directory.write("0.7z", pack("7zip", packed));
            directory.write("0.cpio", pack("newc", packed));
        }
    }
    void fail_each(const std::string& name, const Scenario& scenario, int64_t stride) {
        SCOPED_TRACE(name);
        const Counts counts = fail_each_allocation(scenario, Faults::heap, stride, no_thread);
        EXPECT_GT(counts.nomem, 0U);
        points += counts.points;
        RecordProperty("points", std::to_string(points));
    }
    void fail_each(const std::string& name, const Scenario& scenario) {
        fail_each(name, scenario, GetParam());
    }

    const TempDirectory directory;
    uint64_t points = 0;
};

TEST_P(FormatNomem, streams) {
    for (const char* name : {"0.tar.gzip", "0.tar.bzip2", "0.tar.xz", "0.tar.zstd", "0.tar.lz4",
                             "members.tar.gz", "0.zip"})
        fail_each(name, run(directory / name, {{"threads", "1"}}, false));
    for (const char* name : {"0.7z", "0.cpio"}) {
        if (!shf_feature("libarchive")) continue;  // which loads it
        // It crashes where it gets no memory; what it needs is there before it is called.
        static const bool once = [] {
            faults::spare_library("libarchive");
            return true;
        }();
        EXPECT_TRUE(once);
        fail_each(name, run(directory / name, {{"threads", "1"}}, false));
    }
}

// Damage does not become NOMEM, and NOMEM is not skipped as damage.
TEST_P(FormatNomem, skipped_shards) {
    for (const char* name : {"0.tar.gzip", "0.tar.zstd", "0.zip"}) {
        const TempDirectory cut;
        std::ifstream file(directory / name, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        cut.write(std::string("cut-") + name, bytes.substr(0, bytes.size() * 2 / 3));
        cut.write(std::string("whole-") + name, bytes);
        fail_each(name, run((cut / "{whole,cut}-") + name,
                            {{"threads", "1"}, {"on_error", "skip_sample"}}, true));
    }
}

// The indexes say where decompression can start.
TEST_P(FormatNomem, indexes_and_data_sets) {
    for (const char* name : {"members.tar.gz", "0.tar.zstd", "0.zip"}) {
        const std::string path = directory / name;
        const bool is_tar = path.find(".tar") != std::string::npos;
        fail_each(name, [&](Outcome& outcome) {
            const char* const given = path.c_str();
            shf_error error = {};
            shf_dataset* dataset = nullptr;
            uint64_t number = 0;
            int32_t code = is_tar ? shf_index_build(given, nullptr, &error) : int32_t{SHF_OK};
            if (code == SHF_OK) code = shf_dataset_open(&dataset, &given, 1, nullptr, &error);
            if (code == SHF_OK)
                code = shf_dataset_find(dataset, "s000-00033", SHF_STRLEN, &number, &error);
            const std::array<uint64_t, 5> numbers = {number, 7, 4, 3, 39};
            std::array<shf_sample*, 5> many{};
            if (code == SHF_OK)
                code = shf_dataset_get_many(dataset, numbers.data(), 5, many.data(), &error);
            for (size_t i = 0; i < many.size(); ++i) {
                const faults::Exempt own;
                outcome.sound = outcome.sound && (code == SHF_OK) == (many[i] != nullptr);
                if (many[i])
                    outcome.sound = outcome.sound && is_whole(many[i]) &&
                                    key_of(many[i]) == sample_key(0, i == 0 ? 33 : numbers[i]);
                shf_sample_unref(many[i]);
            }
            outcome.code = code;
            std::copy(std::begin(error.message), std::end(error.message), outcome.message);
            shf_dataset_close(dataset);
        });
    }
}

TEST_P(FormatNomem, archives_and_members) {
    for (const char* name : {"0.tar.gzip", "0.zip"}) {
        const std::string path = directory / name;
        fail_each(name, [&](Outcome& outcome) {
            shf_error error = {};
            shf_members* members = nullptr;
            shf_bytes member{};
            std::array<char, 4000> bytes{};
            int32_t code = shf_members_open(&members, path.c_str(), nullptr, &error);
            while (code == SHF_OK &&
                   (code = shf_members_next(members, &member, &error)) == SHF_OK) {
                size_t size = 1;
                while (code == SHF_OK && size > 0) {
                    code = shf_members_read(members, bytes.data(), bytes.size(), &size, &error);
                    outcome.digest =
                        ::crc32(outcome.digest, reinterpret_cast<const Bytef*>(bytes.data()),
                                static_cast<uInt>(code == SHF_OK ? size : 0));
                }
                ++outcome.count;
            }
            outcome.code = code;
            std::copy(std::begin(error.message), std::end(error.message), outcome.message);
            shf_members_close(members);
        });
        fail_each(name, [&](Outcome& outcome) {
            shf_error error = {};
            shf_archive* archive = nullptr;
            uint64_t position = 0;
            std::array<char, 4000> bytes{};
            int32_t code = shf_archive_open(&archive, path.c_str(), nullptr, &error);
            if (code == SHF_OK)
                code = shf_archive_find(archive, "s000-00003.txt", SHF_STRLEN, &position, &error);
            if (code == SHF_OK)
                code = shf_archive_read(archive, position, bytes.data(), bytes.size(), &error);
            outcome.code = code;
            std::copy(std::begin(error.message), std::end(error.message), outcome.message);
            shf_archive_close(archive);
        });
    }
}

INSTANTIATE_TEST_SUITE_P(sample, FormatNomem, testing::Values(23));
INSTANTIATE_TEST_SUITE_P(every, FormatNomem, testing::Values(1));

}  // namespace
}  // namespace shf::test
