// Shards that a function of the program names.
#include "writer_client.h"

#include <gtest/gtest.h>

#include <functional>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

class WriterNames : public testing::Test {
  protected:
    using Name = std::function<std::string(uint64_t)>;

    ~WriterNames() override { shf_writer_close(writer); }

    int32_t open(Name given, const Settings& settings = {}, const char* pattern = nullptr) {
        name = std::move(given);
        shf_options* options = shf_options_new();
        for (const auto& [option, value] : settings)
            EXPECT_EQ(shf_options_set(options, option.c_str(), value.c_str(), &error), SHF_OK);
        if (name) shf_options_set_shard_name(options, call, this);
        code = shf_writer_open(&writer, pattern, options, &error);
        shf_options_free(options);
        return code;
    }
    int32_t write(const std::string& key, const std::string& text = "x") {
        code = shf_writer_begin(writer, key.c_str(), SHF_STRLEN, &error);
        if (code == SHF_OK)
            code = shf_writer_field(writer, "txt", SHF_STRLEN, text.data(), text.size(), &error);
        return code == SHF_OK ? code = shf_writer_end(writer, &error) : code;
    }
    int32_t finish() { return code = shf_writer_finish(writer, &error); }
    [[nodiscard]] std::string message() const { return error.message; }

    // The text is overwritten after the call, so that a library which keeps it would be found out.
    static int32_t call(void* ctx, uint64_t number, shf_bytes* out) {
        auto& self = *static_cast<WriterNames*>(ctx);
        self.asked.push_back(number);
        self.text = self.name(number);
        if (self.text == "stop") return 1;
        out->data = reinterpret_cast<const uint8_t*>(self.text.data());
        out->size = self.text.size();
        return 0;
    }

    TempDirectory folder;
    Name name;
    std::string text;
    std::vector<uint64_t> asked;
    shf_writer* writer = nullptr;
    shf_error error = {};
    int32_t code = SHF_OK;
};

TEST_F(WriterNames, are_asked_for_once_each_when_the_shard_begins) {
    const auto part = [&](uint64_t number) {
        return folder / ("part-" + std::string(1, static_cast<char>('a' + number)) + ".tar");
    };
    ASSERT_EQ(open(part, {{"max_samples", "2"}, {"first_shard", "3"}}), SHF_OK) << message();
    EXPECT_EQ(asked, (std::vector<uint64_t>{3}));
    EXPECT_TRUE(names_in(folder / "").empty());
    for (int i = 0; i < 4; ++i) ASSERT_EQ(write("k" + std::to_string(i)), SHF_OK) << message();
    EXPECT_EQ(asked, (std::vector<uint64_t>{3, 4})) << "a third one is not known to come";
    ASSERT_EQ(write("k4"), SHF_OK) << message();
    ASSERT_EQ(finish(), SHF_OK) << message();
    EXPECT_EQ(asked, (std::vector<uint64_t>{3, 4, 5}));
    EXPECT_EQ(samples_of({part(3), part(4), part(5)}).size(), 5U);
}

TEST_F(WriterNames, a_name_twice_is_an_error_however_it_is_written) {
    const std::string other = "file://" + (folder / "sub/.././a.tar");
    for (const std::string& again : {folder / "a.tar", folder / "./a.tar", other}) {
        for (const char* overwrite : {"false", "true"}) {
            ASSERT_EQ(open([&](uint64_t n) { return n == 0 ? folder / "a.tar" : again; },
                           {{"max_samples", "1"}, {"overwrite", overwrite}}),
                      SHF_OK)
                << message();
            ASSERT_EQ(write("first", "kept"), SHF_OK) << message();
            EXPECT_EQ(write("second"), SHF_E_USAGE);
            EXPECT_NE(message().find("a name twice, to shard 1 again"), std::string::npos)
                << message();
            EXPECT_NE(message().find("help: "), std::string::npos);
            EXPECT_EQ(finish(), SHF_E_USAGE) << "nothing is published in spite of it";
            shf_writer_close(std::exchange(writer, nullptr));
            if (fs::exists(folder / "a.tar")) {
                EXPECT_EQ(samples_of({folder / "a.tar"}),
                          std::vector<std::string>{"first txt=kept"});
                fs::remove(folder / "a.tar");
            }
        }
    }
}

TEST_F(WriterNames, nothing_is_overwritten) {
    std::ofstream(folder / "1.tar") << "precious";
    ASSERT_EQ(open([&](uint64_t n) { return folder / (std::to_string(n) + ".tar"); },
                   {{"max_samples", "1"}}),
              SHF_OK);
    ASSERT_EQ(write("a"), SHF_OK) << message();
    EXPECT_EQ(write("b"), SHF_E_IO);
    EXPECT_EQ(error.os_error, EEXIST);
    EXPECT_EQ(bytes_of_file(folder / "1.tar"), "precious");
}

TEST_F(WriterNames, a_shard_without_samples_keeps_its_name) {
    ASSERT_EQ(open([&](uint64_t n) { return folder / (std::to_string(n) + ".tar"); }), SHF_OK);
    ASSERT_EQ(shf_writer_begin(writer, "a", SHF_STRLEN, &error), SHF_OK);
    // Larger than what is read at once, and then gone: the shard is open when that is found.
    std::ofstream(folder / "large") << std::string(3 << 20, 'x');
    ASSERT_EQ(shf_writer_field_file(writer, "bin", SHF_STRLEN, (folder / "large").c_str(), &error),
              SHF_OK);
    fs::resize_file(folder / "large", 5);
    ASSERT_EQ(shf_writer_end(writer, &error), SHF_E_CHANGED) << message();
    ASSERT_EQ(shf_writer_next_shard(writer, &error), SHF_OK) << message();
    ASSERT_EQ(write("b"), SHF_OK) << message();
    ASSERT_EQ(finish(), SHF_OK) << message();
    EXPECT_EQ(asked, std::vector<uint64_t>{0});
    EXPECT_EQ(samples_of({folder / "0.tar"}), std::vector<std::string>{"b txt=x"});
}

TEST_F(WriterNames, that_are_no_names_are_refused) {
    const auto said = [&](const std::string& bad, const char* words, int32_t wanted) {
        // As the first name, and as a later one.
        EXPECT_EQ(open([&](uint64_t) { return bad; }), wanted) << bad;
        EXPECT_NE(message().find(words), std::string::npos) << message();
        shf_writer_close(std::exchange(writer, nullptr));
        ASSERT_EQ(open([&](uint64_t n) { return n == 0 ? folder / "a.tar" : bad; },
                       {{"max_samples", "1"}, {"overwrite", "true"}}),
                  SHF_OK)
            << message();
        ASSERT_EQ(write("a"), SHF_OK);
        EXPECT_EQ(write("b"), wanted);
        EXPECT_NE(message().find(words), std::string::npos) << message();
        shf_writer_close(std::exchange(writer, nullptr));
    };
    said("", "gave no name of shard", SHF_E_USAGE);
    said(std::string("a\0b.tar", 7), "has a NUL", SHF_E_USAGE);
    said("stop", "ended the call", SHF_E_CANCELLED);
}

TEST_F(WriterNames, are_asked_for_again_after_a_refusal) {
    bool refused = true;
    ASSERT_EQ(open(
                  [&](uint64_t n) {
                      return n == 1 && refused ? "stop" : folder / (std::to_string(n) + ".tar");
                  },
                  {{"max_samples", "1"}}),
              SHF_OK);
    ASSERT_EQ(write("a"), SHF_OK);
    EXPECT_EQ(write("b"), SHF_E_CANCELLED);
    refused = false;
    ASSERT_EQ(write("b"), SHF_OK) << message();
    ASSERT_EQ(finish(), SHF_OK) << message();
    EXPECT_EQ(asked, (std::vector<uint64_t>{0, 1, 1}));
    EXPECT_EQ(samples_of({folder / "0.tar", folder / "1.tar"}).size(), 2U);
}

TEST_F(WriterNames, say_one_format) {
    for (const char* other : {"b.zip", "b.tar.gz", "pipe:cat > b.tar", "-"}) {
        ASSERT_EQ(open([&](uint64_t n) { return n == 0 ? folder / "a.tar" : std::string(other); },
                       {{"max_samples", "1"}, {"overwrite", "true"}}),
                  SHF_OK);
        ASSERT_EQ(write("a"), SHF_OK);
        EXPECT_EQ(write("b"), SHF_E_USAGE) << other;
        EXPECT_NE(message().find("another format or target"), std::string::npos) << message();
        shf_writer_close(std::exchange(writer, nullptr));
    }
}

TEST_F(WriterNames, are_of_a_pattern_or_of_a_function) {
    EXPECT_EQ(open([&](uint64_t) { return folder / "a.tar"; }, {}, "a.tar"), SHF_E_USAGE);
    EXPECT_NE(message().find("give one of the two"), std::string::npos) << message();
    EXPECT_EQ(open(nullptr), SHF_E_USAGE);
    EXPECT_NE(message().find("has no pattern"), std::string::npos) << message();
}

}  // namespace
