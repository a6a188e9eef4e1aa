// V1 through the real sources: every prefix of a shard, as a file and as the output of a command,
// is an error, and what was delivered before it is right. truncation_test.cpp has many more
// archives, in memory.
#include "filter_encoders.h"
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace shf::test;

class TruncationSources : public testing::Test {
  protected:
    // Streams each prefix; `command` reads the file for us.
    void sweep(const std::string& whole, const char* command) {
        const std::vector<std::string> all = {sample_key(0, 0), sample_key(0, 1)};
        for (size_t size = 0; size <= whole.size(); ++size) {
            directory.write("a", whole.substr(0, size));
            Client client(command + (directory / "a"), {});
            const auto keys = client.keys();
            ASSERT_LE(keys.size(), all.size()) << size;
            for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(keys[i], all[i]) << size;
            if (size < whole.size()) {
                ASSERT_LT(client.code, 0) << "silent loss at " << size;
            } else {
                ASSERT_EQ(client.code, SHF_END) << client.message();
                ASSERT_EQ(keys, all);
            }
        }
    }

    const Watchdog watchdog{600};
    const TempDirectory directory;
    const std::string plain = shard_bytes(0, 2);
};

TEST_F(TruncationSources, plain_file) {
    sweep(plain, "");
}
TEST_F(TruncationSources, plain_pipe) {
    sweep(plain, "pipe:cat ");
}
TEST_F(TruncationSources, compressed_file) {
    for (const char* codec : codecs) sweep(compress(codec, plain), "");
}
TEST_F(TruncationSources, compressed_pipe) {
    for (const char* codec : codecs) sweep(compress(codec, plain), "pipe:cat ");
}

}  // namespace
