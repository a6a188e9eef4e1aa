// Batches of fields that are compressed: the same columns as of the fields unpacked, in every way
// in which batches are made, and errors that say where they are.
#include "batch_client.h"
#include "image_files.h"
#include "npy_builder.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <tuple>
#include <utility>

namespace shf::test {
namespace {

std::string gzip(std::string_view data) {
    z_stream z{};
    EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&z, data.size()), '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    z.avail_in = static_cast<uInt>(data.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
}

std::string zstd(std::string_view data) {
    std::string out(ZSTD_compressBound(data.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), data.data(), data.size(), 3));
    return out;
}

std::string text_of_file(const Bytes& file) {
    return {file.begin(), file.end()};
}

class PackedFields : public testing::Test {
  protected:
    using Fields = std::vector<std::pair<std::string, std::string>>;

    [[nodiscard]] std::string write(const std::string& name,
                                    const std::vector<Fields>& samples) const {
        std::string bytes;
        for (size_t i = 0; i < samples.size(); ++i)
            for (const auto& [field, data] : samples[i])
                bytes += member(numbered("k", i) + "." + field, data);
        directory.write(name, bytes + end_marker());
        return directory / name;
    }
    [[nodiscard]] std::string write(const std::vector<Fields>& samples) const {
        return write("shard.tar", samples);
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
};

// What becomes of one sample with all kinds of fields.
constexpr std::string_view all_kinds =
    "cls:int, txt:text, json:list/ids, jpg:image/rgb8/crop=random:20x20/flip=random, "
    "json:boxes/path=b/of=jpg, x.npy:npy, y.npy:npy, bin:bytes, json:json, __augment__";

// The same of fields that are called .gz or .zst.
std::string of_packed(std::string_view decode) {
    std::string text;
    for (size_t at = 0, end = 0; at < decode.size(); at = end + 1) {
        end = std::min(decode.find(',', at), decode.size());
        std::string part(decode.substr(at, end - at));
        part.erase(0, part.find_first_not_of(' '));
        if (const size_t colon = part.find(':'); colon != part.npos) {
            const std::string name = part.substr(0, colon);
            part = name + ".gz;" + name + ".zst" + part.substr(colon);
        }
        if (part.ends_with("/of=jpg")) part += ".gz";
        text += (at == 0 ? "" : ",") + part;
    }
    return text;
}

std::string without(std::string text, std::string_view part) {
    for (size_t at = 0; (at = text.find(part)) != text.npos;) text.erase(at, part.size());
    return text;
}

TEST_F(PackedFields, columns_are_those_of_the_fields_unpacked) {
    std::vector<Fields> plain, packed;
    for (size_t i = 0; i < 20; ++i) {
        const std::vector<float> numbers(3000, static_cast<float>(i));
        const Fields fields = {
            {"cls", std::to_string(i)},
            {"txt", "word " + std::to_string(i)},
            {"json", R"({"ids": [4, 5, )" + std::to_string(i) + R"(], "b": [[1, 2, 20, 18]]})"},
            {"jpg", text_of_file(jpeg_file(40, 30, noise(3600, static_cast<uint32_t>(i))))},
            {"x.npy", npy("<f4", {3000}, numbers)},
            {"y.npy", npy(">f4", {3000}, numbers)},
            {"bin", text_of_file(noise(500 * i))}};
        plain.push_back(fields);
        packed.emplace_back();
        for (const auto& [name, data] : fields) {
            const bool is_zstd = (i + name.size()) % 2 == 0;
            packed.back().emplace_back(name + (is_zstd ? ".zst" : ".gz"),
                                       is_zstd ? zstd(data) : gzip(data));
        }
    }
    const std::string url = write("plain.tar", plain), packed_url = write("packed.tar", packed);
    for (const char* ragged : {"offsets", "pad"})
        for (const char* threads : {"1", "3"}) {
            const Settings settings = {
                {"batch", "20"}, {"decode_threads", threads}, {"ragged", ragged}};
            const auto with = [&](std::string decode) {
                Settings all = settings;
                all.emplace_back("decode", std::move(decode));
                return all;
            };
            BatchClient client(url, with(std::string(all_kinds)));
            BatchClient packed_client(packed_url, with(of_packed(all_kinds)));
            const BatchHandle expected = client.next_batch(), got = packed_client.next_batch();
            ASSERT_TRUE(expected) << client.error.message;
            ASSERT_TRUE(got) << packed_client.error.message;
            const size_t count = shf_batch_column_count(expected.get());
            ASSERT_EQ(shf_batch_column_count(got.get()), count);
            // Records have the names of the columns, and the last one has the names of the shards.
            for (size_t c = 0; c + 3 < count; ++c) {
                shf_array one{}, other{};
                ASSERT_EQ(shf_batch_column(expected.get(), c, nullptr, &one), SHF_OK);
                ASSERT_EQ(shf_batch_column(got.get(), c, nullptr, &other), SHF_OK);
                EXPECT_EQ(one.dtype, other.dtype) << c;
                ASSERT_EQ(one.size, other.size) << c;
                EXPECT_EQ(std::memcmp(one.data, other.data, one.size), 0) << c;
            }
            for (size_t row = 0; row < 20; ++row)
                EXPECT_EQ(without(text_of(column(got, "__augment__"), row), ".gz"),
                          text_of(column(expected, "__augment__"), row));
        }
}

TEST_F(PackedFields, suffixes_before_the_codec_say_the_kind) {
    const std::string url = write({{{"cls.gz", gzip("7")},
                                    {"json.zst", zstd("{}")},
                                    {"npy.gz", gzip(npy("<i2", {2}, std::vector<int16_t>{1, 2}))},
                                    {"bin.gz", gzip("abc")},
                                    {"gz", gzip("def")}}});
    BatchClient client(url, {{"batch", "1"}});
    const BatchHandle batch = client.next_batch();
    ASSERT_TRUE(batch) << client.error.message;
    EXPECT_EQ(row_of<int64_t>(column(batch, "cls.gz"), 0), std::vector<int64_t>{7});
    EXPECT_EQ(column(batch, "json.zst").kind, SHF_COLUMN_JSON);
    EXPECT_EQ(text_of(column(batch, "json.zst"), 0), "{}");
    EXPECT_EQ(row_of<int16_t>(column(batch, "npy.gz"), 0), (std::vector<int16_t>{1, 2}));
    EXPECT_EQ(text_of(column(batch, "bin.gz"), 0), "abc");
    EXPECT_EQ(text_of(column(batch, "gz"), 0), "def");
}

TEST_F(PackedFields, bytes_as_they_are_stored) {
    const std::string field = gzip("abc");
    const std::string url = write({{{"bin.gz", field}}, {{"bin", "plain"}}});
    BatchClient client(url, {{"batch", "2"}, {"decode", "bin.gz;bin:bytes/compressed"}});
    const BatchHandle batch = client.next_batch();
    ASSERT_TRUE(batch) << client.error.message;
    EXPECT_EQ(text_of(column(batch, "bin.gz"), 0), field);
    EXPECT_EQ(text_of(column(batch, "bin.gz"), 1), "plain");
}

TEST_F(PackedFields, errors_name_shard_and_member) {
    std::string wrong = gzip("7");
    wrong[wrong.size() - 5] ^= 1;
    const std::string bomb = zstd(std::string(3 << 20, 'a'));
    for (const auto& [name, field, code, words] :
         {std::tuple{"cls.gz", wrong, SHF_E_INTEGRITY, "wrong CRC-32"},
          {"cls.gz", gzip("7") + "x", SHF_E_FORMAT, "starts no more of it"},
          {"cls.gz", gzip("7").substr(0, 15), SHF_E_TRUNCATED, "ends too early"},
          {"cls.gz", gzip("seven"), SHF_E_FORMAT, "seven"},
          {"bin.zst", bomb, SHF_E_LIMIT, "max_decoded"}}) {
        const std::string url = write({{{name, field}}});
        BatchClient client(url, {{"batch", "1"}, {"max_decoded", "1MiB"}});
        EXPECT_FALSE(client.next_batch());
        EXPECT_EQ(client.code, code) << name;
        const std::string message = client.error.message;
        EXPECT_NE(message.find("shard.tar: member \"k"), message.npos) << message;
        EXPECT_NE(message.find(name), message.npos) << message;
        EXPECT_NE(message.find(words), message.npos) << message;
        EXPECT_NE(message.find("help: "), message.npos) << message;
    }
}

TEST_F(PackedFields, bad_ones_are_skipped) {
    std::string wrong = gzip("2");
    wrong[wrong.size() - 5] ^= 1;
    const std::string url =
        write({{{"cls.gz", gzip("1")}}, {{"cls.gz", wrong}}, {{"cls.gz", gzip("3")}}});
    BatchClient client(url, {{"batch", "2"}, {"on_error", "skip_sample"}});
    const BatchHandle batch = client.next_batch();
    ASSERT_TRUE(batch) << client.error.message;
    EXPECT_EQ(row_of<int64_t>(column(batch, "cls.gz"), 1), std::vector<int64_t>{3});
}

TEST_F(PackedFields, tokens_are_packed_into_rows) {
    const auto tokens = [](std::vector<int32_t> numbers) {
        return gzip(npy("<i4", {static_cast<int64_t>(numbers.size())}, numbers));
    };
    const std::string url = write({{{"npy.gz", tokens({1, 2, 3})}}, {{"npy.gz", tokens({4, 5})}}});
    BatchClient client(url, {{"batch", "2"}, {"pack", "4"}});
    const BatchHandle batch = client.next_batch();
    ASSERT_TRUE(batch) << client.error.message;
    EXPECT_EQ(row_of<int32_t>(column(batch, "npy.gz"), 0), (std::vector<int32_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace shf::test
