// Files of credentials while somebody writes them, and JSON that is larger than its text.
#include "store/settings.h"
#include "store/json_text.h"
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Settings : public testing::Test {
  protected:
    void write(const std::string& text, std::ios::openmode mode = std::ios::trunc) const {
        std::ofstream(path, std::ios::binary | std::ios::out | mode) << text;
    }
    [[nodiscard]] std::string read() const {
        std::string text;
        EXPECT_TRUE(shf::read_small_file(path, text));
        return text;
    }
    // A program continues to write after `pause`, and the reader waits for that. On a loaded
    // machine it may come later than `patience`, after which a file counts as written: then once
    // more.
    template <typename Begin, typename End>
    void expect_whole(const Begin& begin, Clock::duration pause, const End& end,
                      Clock::duration patience) const {
        for (int round = 0; round < 50; ++round) {
            const auto start = Clock::now();
            begin();
            Clock::duration took{};
            std::thread writer([&] {
                std::this_thread::sleep_for(pause);
                end();
                took = Clock::now() - start;
            });
            const std::string text = read();
            writer.join();
            if (took > patience) continue;
            EXPECT_EQ(text, whole);
            return;
        }
        FAIL() << "the writer was never in time";
    }

    const shf::test::TempDirectory folder;
    const std::string path = folder / "credentials";
    const std::string whole =
        "[default]\naws_access_key_id = KEY\naws_secret_access_key = SECRET\n";
};

TEST_F(Settings, a_file_that_is_being_written_is_read_when_it_is_whole) {
    expect_whole([&] { write(whole.substr(0, 30)); }, 60ms,
                 [&] { write(whole.substr(30), std::ios::app); }, 100ms);
}

TEST_F(Settings, a_file_that_was_emptied_is_read_when_it_is_whole) {
    expect_whole([&] { write(""); }, 300ms, [&] { write(whole); }, 800ms);
}

TEST_F(Settings, a_file_that_is_always_written_keeps_nobody) {
    std::atomic<bool> over = false;
    write(whole);
    std::thread writer([&] {
        while (!over) {
            write("# more\n", std::ios::app);
            std::this_thread::sleep_for(5ms);
        }
    });
    const auto start = Clock::now();
    EXPECT_TRUE(read().starts_with(whole));
    EXPECT_LT(Clock::now() - start, 5s);
    over = true;
    writer.join();
}

TEST_F(Settings, an_old_file_is_read_and_none_is_none) {
    std::string text;
    EXPECT_FALSE(shf::read_small_file(path, text));
    EXPECT_FALSE(shf::read_small_file("", text));
    write(whole);
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - 1h);
    EXPECT_EQ(read(), whole);
}

TEST(JsonText, is_parsed_within_bounds) {
    const auto json = shf::parse_json(R"({"a": [1, -2, 3.5, "x", true, null, {"b": {}}]})");
    ASSERT_TRUE(json.is_object());
    EXPECT_EQ(json["a"].size(), 7U);
    EXPECT_TRUE(shf::parse_json("").is_discarded());
    EXPECT_TRUE(shf::parse_json("{\"a\": 1").is_discarded());
    EXPECT_TRUE(shf::parse_json("{} {}").is_discarded());
}

TEST(JsonText, deep_and_long_lists_take_no_memory) {
    const auto nested = [](size_t depth) {
        return std::string(depth, '[') + std::string(depth, ']');
    };
    EXPECT_FALSE(shf::parse_json(nested(64)).is_discarded());
    EXPECT_TRUE(shf::parse_json(nested(65)).is_discarded());
    EXPECT_TRUE(shf::parse_json(nested(size_t{16} << 20)).is_discarded());
    std::string zeros = "[0", many_lists = "[[]";
    for (int i = 1; i < 400'000; ++i) zeros += ",0";
    EXPECT_EQ(shf::parse_json(zeros + "]").size(), 400'000U);
    for (int i = 0; i < 8'000'000; ++i) many_lists += ",[]";
    EXPECT_TRUE(shf::parse_json(many_lists + "]").is_discarded());
}

}  // namespace
