// What an archive or a dataset claims is looked at before memory is taken for it.
#include "dataset_builder.h"

#include <cstdlib>
#include <filesystem>

namespace shf::test {
namespace {

// A ZIP file with one entry of these sizes (ZIP64, APPNOTE.TXT 4.5.3), and few bytes of data.
std::string claiming_zip(uint64_t size, uint64_t stored, uint16_t method) {
    const std::string name = "a.txt", data = "some bytes";
    const std::string shared = little_endian_of(45, 2) + little_endian_of(0, 2) +
                               little_endian_of(method, 2) + little_endian_of(0x21, 4) +
                               little_endian_of(7, 4) + std::string(8, '\xff') +
                               little_endian_of(name.size(), 2) + little_endian_of(20, 2);
    const std::string extra = little_endian_of(1, 2) + little_endian_of(16, 2) +
                              little_endian_of(size, 8) + little_endian_of(stored, 8);
    const std::string local = "PK\x03\x04" + shared + name + extra + data;
    const std::string central =
        "PK\x01\x02" + little_endian_of(45, 2) + shared + zeros(10) + zeros(4) + name + extra;
    return local + central + "PK\x05\x06" + zeros(4) + little_endian_of(1, 2) +
           little_endian_of(1, 2) + little_endian_of(central.size(), 4) +
           little_endian_of(local.size(), 4) + zeros(2);
}

class Archives : public testing::Test {
  protected:
    ~Archives() override { shf_archive_close(archive); }
    int32_t open(const std::string& path, const Settings& settings = {}) {
        shf_archive_close(archive);
        shf_options* options = shf_options_new();
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK);
        const int32_t code = shf_archive_open(&archive, path.c_str(), options, &error);
        shf_options_free(options);
        return code;
    }
    // How much memory it takes, asked as somebody who has none yet.
    int32_t ask(uint64_t position) {
        return shf_archive_read(archive, position, nullptr, 0, &error);
    }

    const TempDirectory directory;
    shf_archive* archive = nullptr;
    shf_error error = {};
};

TEST_F(Archives, claims_are_refused_before_memory_is_taken) {
    constexpr uint64_t tebi = uint64_t{1} << 40, most = (uint64_t{1} << 63) - 1;
    struct Case {
        uint64_t size, stored;
        uint16_t method;
        const char* max_member;
        int32_t code;
    };
    for (const Case& c :
         {Case{tebi, tebi, 0, "16GiB", SHF_E_FORMAT}, Case{tebi, tebi, 0, "2TiB", SHF_E_FORMAT},
          Case{most, most, 0, "16GiB", SHF_E_FORMAT},
          Case{most + 1, most + 1, 0, "1EiB", SHF_E_FORMAT},
          Case{tebi, 10, 8, "2TiB", SHF_E_FORMAT}, Case{tebi, tebi, 8, "2TiB", SHF_E_FORMAT},
          Case{100, 100, 0, "16GiB", SHF_E_FORMAT}}) {
        directory.write("a.zip", claiming_zip(c.size, c.stored, c.method));
        ASSERT_EQ(open(directory / "a.zip", {{"max_member", c.max_member}}), SHF_OK)
            << error.message;
        EXPECT_STREQ(shf_error_name(ask(0)), shf_error_name(c.code))
            << c.size << ": " << error.message;
        EXPECT_NE(std::string(error.message).find("a.txt"), std::string::npos) << error.message;
    }
    // A sound member has a buffer that is too small.
    directory.write("b.zip", stored_zip({{"a.txt", "some bytes"}}));
    directory.write("b.tar", tar_of_members({{"a.txt", std::string(3000, 'x')}}));
    for (const char* name : {"b.zip", "b.tar"}) {
        ASSERT_EQ(open(directory / name), SHF_OK) << error.message;
        EXPECT_EQ(ask(0), SHF_E_USAGE) << error.message;
        ASSERT_EQ(open(directory / name, {{"max_member", "5"}}), SHF_OK) << error.message;
        EXPECT_EQ(ask(0), SHF_E_LIMIT) << error.message;
    }
}

TEST_F(Archives, names_are_escaped_once) {
    const std::string path = directory / "a\nb.tar";
    directory.write("a\nb.tar", tar_of_members({{"m\n.txt", "x"}, {"m\n.txt", "y"}}));
    ASSERT_EQ(open(path), SHF_OK) << error.message;
    uint64_t position = 0;
    for (const std::string name : {"m\n.txt", "none\n"}) {
        EXPECT_NE(shf_archive_find(archive, name.data(), name.size(), &position, &error), SHF_OK);
        const std::string message = error.message;
        EXPECT_NE(message.find("a\\x0ab.tar"), std::string::npos) << message;
        EXPECT_NE(message.find(name.substr(0, name.find('\n')) + "\\x0a"), std::string::npos)
            << message;
        EXPECT_EQ(message.find("\\x5c"), std::string::npos) << message;
    }
}

TEST(Dataset, names_are_bounded_by_memory) {
    const TempDirectory directory;
    std::string shard, many;
    for (size_t i = 0; i < 5000; ++i)
        shard += member({.name = std::string(80, 'n') + std::to_string(10000 + i) + ".x",
                         .prefix = std::string(150, 'p')},
                        "");
    directory.write("long.tar", shard + end_marker());
    Samples refused(directory / "long.tar", {{"memory", "1MiB"}, {"index", "memory"}});
    EXPECT_EQ(refused.code, SHF_E_LIMIT) << refused.message();
    EXPECT_NE(refused.message().find("more than memory=1048576"), std::string::npos)
        << refused.message();
    Samples enough(directory / "long.tar", {{"memory", "2MiB"}, {"index", "memory"}});
    EXPECT_EQ(enough.code, SHF_OK) << enough.message();
    EXPECT_EQ(enough.count(), 5000U);
    // Each shard counts.
    Samples both({directory / "long.tar", directory / "long.tar"},
                 {{"memory", "2MiB"}, {"index", "memory"}});
    EXPECT_EQ(both.code, SHF_E_LIMIT) << both.message();

    for (size_t i = 0; i < 99'000; ++i) many += member(std::to_string(100000 + i) + ".x", "");
    directory.write("many.tar", many + end_marker());
    Samples data(directory / "many.tar", {{"memory", "1MiB"}, {"index", "memory"}});
    ASSERT_EQ(data.code, SHF_OK) << data.message();
    EXPECT_EQ(data.find("100007"), UINT64_MAX);
    EXPECT_EQ(data.code, SHF_E_LIMIT) << data.message();
    EXPECT_NE(data.message().find("memory=1048576"), std::string::npos) << data.message();
    EXPECT_NE(data.text(7), "");
    Samples room(directory / "many.tar", {{"memory", "2MiB"}, {"index", "memory"}});
    EXPECT_EQ(room.find("100007"), 7U) << room.message();
}

}  // namespace
}  // namespace shf::test
