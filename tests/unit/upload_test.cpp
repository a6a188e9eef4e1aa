// New objects in a store that is no server: parts, threads, faults, and what is said of them in XML
// and JSON.
#include "store/upload.h"

#include "core/cancel.h"
#include "core/options.h"
#include "http/libcrypto.h"
#include "store/gs_json.h"
#include "store/s3_xml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shf {
namespace {

constexpr uint64_t mib = uint64_t{1} << 20;

std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// What the test sees; outlives the upload.
struct Seen {
    std::mutex mutex;
    std::map<uint64_t, std::string> parts;
    std::map<uint64_t, uint64_t> offsets;
    std::vector<uint64_t> last;
    std::string whole;
    std::vector<std::string> tags;
    int begun = 0, completed = 0, aborted = 0;
    std::string resumed;
    uint64_t checked = 0;
    std::atomic<uint64_t> now{0}, most{0};
    uint64_t fails_at = UINT64_MAX;  // the number of a part
    uint64_t gathers = 1;            // parts wait, some time, until so many were there at once
    bool blocks = false;             // parts wait until they are cancelled
    uint64_t at_once = UINT64_MAX;
};

class FakeUpload : public Upload {
  public:
    explicit FakeUpload(Seen& seen) : seen_(seen) {}
    void put(std::span<const uint8_t> bytes, const SourceContext& /*context*/) override {
        seen_.whole.assign(bytes.begin(), bytes.end());
    }
    void begin(const SourceContext& /*context*/) override { ++seen_.begun; }
    std::string put_part(const UploadPart& part, const SourceContext& context) override {
        const uint64_t now = ++seen_.now;
        uint64_t most = seen_.most;
        while (most < now && !seen_.most.compare_exchange_weak(most, now)) continue;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (seen_.most < seen_.gathers && std::chrono::steady_clock::now() < limit)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        while (seen_.blocks) {
            context.cancel.check();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        --seen_.now;
        if (part.number == seen_.fails_at) throw Error(SHF_E_AUTH, "no", "yes");
        const std::lock_guard lock(seen_.mutex);
        seen_.parts[part.number].assign(part.bytes.begin(), part.bytes.end());
        seen_.offsets[part.number] = part.offset;
        if (part.last) seen_.last.push_back(part.number);
        return "tag" + std::to_string(part.number);
    }
    void complete(std::span<const std::string> parts, const SourceContext& /*context*/) override {
        ++seen_.completed;
        seen_.tags.assign(parts.begin(), parts.end());
    }
    void abort(const SourceContext& /*context*/) override { ++seen_.aborted; }
    void check(uint64_t size, const SourceContext& /*context*/) override { seen_.checked = size; }
    void describe(PreparedFile& file) const override { file.upload = "mine"; }
    void resume(const PreparedFile& file) override { seen_.resumed = file.upload; }
    [[nodiscard]] uint64_t most_at_once() const override { return seen_.at_once; }

  private:
    Seen& seen_;
};

class Uploads : public ::testing::Test {
  protected:
    std::unique_ptr<Sink> open() {
        return upload_sink(std::make_unique<FakeUpload>(seen), {options, cancel, use});
    }
    // A text of which every part has other bytes.
    static std::string text(uint64_t size) {
        std::string result(size, '\0');
        for (size_t i = 0; i < result.size(); i += 4096)
            result[i] = static_cast<char>(i / 4096 % 251);
        return result;
    }

    Seen seen;
    Options options;
    Cancel cancel;
    SourceUse use;
};

TEST_F(Uploads, what_is_small_is_put_at_once) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, 8 * mib}) {
        const std::string data = text(size);
        const auto sink = open();
        sink->write(bytes_of(data));
        sink->publish();
        EXPECT_EQ(seen.whole, data);
        EXPECT_EQ(seen.checked, size);
        EXPECT_FALSE(sink->can_cut());
    }
    EXPECT_EQ(seen.begun, 0);
    EXPECT_EQ(seen.aborted, 0);
}

TEST_F(Uploads, what_is_prepared_waits) {
    for (const uint64_t size : {uint64_t{1}, 8 * mib, 8 * mib + 1, 3 * 8 * mib}) {
        const uint64_t parts = (size + 8 * mib - 1) / (8 * mib);
        seen.begun = 0;
        PreparedFile file;
        {
            const auto sink = open();
            sink->write(bytes_of(text(size)));
            file = sink->prepare();
        }
        EXPECT_EQ(file.size, size);
        EXPECT_EQ(file.upload, "mine");
        EXPECT_EQ(file.parts.size(), parts);
        EXPECT_EQ(file.parts.back(), "tag" + std::to_string(parts - 1));
        EXPECT_EQ(seen.begun, 1);
        EXPECT_EQ(seen.last.back(), parts - 1);
        EXPECT_EQ(seen.whole, "");
        EXPECT_EQ(seen.completed, 0);
        EXPECT_EQ(seen.checked, 0);
        EXPECT_EQ(seen.aborted, 0);
        FakeUpload again(seen);
        publish_upload(again, file, {options, cancel, use});
        EXPECT_EQ(seen.resumed, "mine");
        EXPECT_EQ(seen.tags, file.parts);
        EXPECT_EQ(seen.checked, size);
        discard_upload(again, file, {options, cancel, use});
        EXPECT_EQ(seen.aborted, 1);
        seen.completed = seen.aborted = 0;
        seen.checked = 0;
    }
    // What cannot be prepared is discarded.
    seen.fails_at = 1;
    {
        const auto sink = open();
        sink->write(bytes_of(text(8 * mib + 1)));
        EXPECT_THROW(sink->prepare(), Error);
    }
    EXPECT_EQ(seen.aborted, 1);
}

TEST(Uploads_that_are_left, pages_of_S3) {
    const std::string page =
        "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><EncodingType>url"
        "</EncodingType><NextKeyMarker>a%2Fb+c</NextKeyMarker><NextUploadIdMarker>2</"
        "NextUploadIdMarker><Upload><Key>a</Key><UploadId>1</UploadId></Upload><Upload><Key>a%2Fb+c"
        "</Key><UploadId>2</UploadId></Upload></ListMultipartUploadsResult>";
    const S3UploadPage read = parse_s3_uploads(page);
    EXPECT_EQ(read.uploads, (std::vector<S3PendingUpload>{{"a", "1"}, {"a/b c", "2"}}));
    EXPECT_TRUE(read.more);
    EXPECT_EQ(read.next, (S3PendingUpload{"a/b c", "2"}));
    EXPECT_FALSE(parse_s3_uploads("<ListMultipartUploadsResult/>").more);
    for (const char* wrong :
         {"", "<ListMultipartUploadsResult>", "<ListBucketResult/>",
          "<ListMultipartUploadsResult><EncodingType>no</EncodingType></"
          "ListMultipartUploadsResult>",
          "<ListMultipartUploadsResult><Upload><Key>a</Key></Upload></ListMultipartUploadsResult>",
          "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></"
          "ListMultipartUploadsResult>"})
        EXPECT_THROW(parse_s3_uploads(wrong), Error) << wrong;
}

TEST(Copies, steps_of_Google) {
    EXPECT_TRUE(parse_gs_rewrite(R"({"done":true,"rewriteToken":"x"})").done);
    EXPECT_EQ(parse_gs_rewrite(R"({"done":true,"rewriteToken":"x"})").token, "");
    EXPECT_EQ(parse_gs_rewrite(R"({"done":false,"rewriteToken":"x"})").token, "x");
    for (const char* wrong : {"", "[]", "{}", R"({"done":"true"})", R"({"rewriteToken":3})"}) {
        EXPECT_FALSE(parse_gs_rewrite(wrong).done) << wrong;
        EXPECT_EQ(parse_gs_rewrite(wrong).token, "") << wrong;
    }
}

TEST_F(Uploads, parts_are_of_one_size_and_in_order) {
    const std::string data = text(8 * mib * 5 + 3);
    const auto sink = open();
    for (size_t at = 0; at < data.size(); at += 3 * mib + 1)
        sink->write(bytes_of(std::string_view(data).substr(at, 3 * mib + 1)));
    sink->publish();
    std::string joined;
    for (const auto& [number, part] : seen.parts) {
        EXPECT_EQ(seen.offsets[number], joined.size());
        joined += part;
        if (number < 5) {
            EXPECT_EQ(part.size(), 8 * mib);
        }
    }
    EXPECT_EQ(joined, data);
    EXPECT_EQ(seen.tags,
              (std::vector<std::string>{"tag0", "tag1", "tag2", "tag3", "tag4", "tag5"}));
    EXPECT_EQ(seen.last, std::vector<uint64_t>{5});
    EXPECT_EQ(seen.checked, data.size());
    EXPECT_EQ(seen.begun, 1);
    EXPECT_EQ(seen.completed, 1);
}

TEST_F(Uploads, so_many_at_once_as_memory_connections_and_the_store_allow) {
    const std::string data = text(5 * 8 * mib);
    const auto most = [&](uint64_t memory, uint64_t connections, uint64_t at_once) {
        options.memory = memory;
        options.connections = connections;
        seen.at_once = at_once;
        seen.most = 0;
        const auto sink = open();
        sink->write(bytes_of(data));
        sink->publish();
        return seen.most.load();
    };
    seen.gathers = 3;
    EXPECT_EQ(most(uint64_t{1} << 40, 3, UINT64_MAX), 3U);
    seen.gathers = 2;
    EXPECT_EQ(most(72 * mib, 8, UINT64_MAX), 2U);
    seen.gathers = 1;
    EXPECT_EQ(most(uint64_t{1} << 40, 8, 1), 1U);
    EXPECT_EQ(most(mib, 8, UINT64_MAX), 1U);
}

TEST_F(Uploads, a_part_that_fails_ends_it_and_aborts) {
    seen.fails_at = 2;
    const std::string data = text(8 * mib);
    {
        const auto sink = open();
        int32_t code = SHF_OK;
        try {
            for (int i = 0; i < 30; ++i) sink->write(bytes_of(data));
        } catch (const Error& error) {
            code = error.code();
        }
        EXPECT_EQ(code, SHF_E_AUTH);
    }
    EXPECT_EQ(seen.completed, 0);
    EXPECT_EQ(seen.aborted, 1);
}

TEST_F(Uploads, what_is_dropped_is_aborted_at_once) {
    seen.blocks = true;
    const std::string data = text(20 * mib);
    const auto begun = std::chrono::steady_clock::now();
    {
        const auto sink = open();
        sink->write(bytes_of(data));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
    EXPECT_EQ(seen.aborted, 1);
    const auto untouched = open();  // begins nothing
    EXPECT_EQ(seen.begun, 1);
}

TEST_F(Uploads, a_cancel_ends_the_wait_and_the_parts_are_aborted) {
    seen.blocks = true;
    options.connections = 1;
    const std::string data = text(40 * mib);
    {
        const auto sink = open();
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            cancel.request();
        });
        int32_t code = SHF_OK;
        try {
            sink->write(bytes_of(data));
        } catch (const Error& error) {
            code = error.code();
        }
        other.join();
        EXPECT_EQ(code, SHF_E_CANCELLED);
    }
    EXPECT_EQ(seen.aborted, 1);
}

TEST(PartSize, all_parts_together_are_hundreds_of_gigabytes) {
    EXPECT_EQ(part_size(0), 8 * mib);
    EXPECT_EQ(part_size(999), 8 * mib);
    EXPECT_EQ(part_size(1000), 16 * mib);
    uint64_t sum = 0;
    for (uint64_t number = 0; number < most_parts; ++number) sum += part_size(number);
    EXPECT_EQ(sum, 440'000 * mib);
    // Google takes parts of whole multiples of 256 KiB.
    for (uint64_t number = 0; number < most_parts; ++number)
        ASSERT_EQ(part_size(number) % (256 * 1024), 0U);
}

TEST(Checksums, as_stores_want_them) {
    EXPECT_EQ(crc32_base64(bytes_of("123456789")), "y/Q5Jg==");  // CBF43926
    EXPECT_EQ(crc32_base64({}), "AAAAAA==");
    EXPECT_EQ(hex(md5(bytes_of("abc")).value()), "900150983cd24fb0d6963f7d28e17f72");
    RunningHash parts(HashKind::md5);
    parts.add(bytes_of("a"));
    EXPECT_EQ(hex(parts.result().value()), "0cc175b9c0f1b6a831c399e269772661");
    parts.add(bytes_of("bc"));
    EXPECT_EQ(hex(parts.result().value()), "900150983cd24fb0d6963f7d28e17f72");
    EXPECT_EQ(upload_id().size(), 32U);
    EXPECT_NE(upload_id(), upload_id());
}

TEST(UploadsInS3, what_the_server_says) {
    EXPECT_EQ(parse_s3_upload_id("<?xml version=\"1.0\"?><InitiateMultipartUploadResult "
                                 "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Bucket>b"
                                 "</Bucket><UploadId>a&amp;b</UploadId>"
                                 "</InitiateMultipartUploadResult>"),
              "a&b");
    for (const char* const bad :
         {"", "<Other><UploadId>a</UploadId></Other>", "<InitiateMultipartUploadResult/>",
          "<InitiateMultipartUploadResult><UploadId>a</UploadId>"})
        EXPECT_THROW((void)parse_s3_upload_id(bad), Error) << bad;
    EXPECT_EQ(s3_part_xml("3", "\"t\"", "AAAAAA=="),
              "<Part><PartNumber>3</PartNumber><ETag>\"t\"</ETag>"
              "<ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part>");
    for (const char* const bad : {"", "\"<\"", "\"&\""})
        EXPECT_THROW((void)s3_part_xml("3", bad, ""), Error) << bad;
}

TEST(UploadsInGs, objects_in_json) {
    EXPECT_EQ(gs_object_json("a \"b\"", "7", md5(bytes_of("abc"))),
              R"({"contentType":"application/octet-stream","md5Hash":"kAFQmDzST7DWlj99KOF/cg==",)"
              R"("metadata":{"shardfeed-upload":"7"},"name":"a \"b\""})");
    const GsObject made = parse_gs_object(R"({"md5Hash":"AA==","generation":"17","size":"3"})");
    EXPECT_EQ(made.md5, "AA==");
    EXPECT_EQ(made.generation, "17");
    EXPECT_EQ(parse_gs_object("[1").md5, "");
    EXPECT_EQ(parse_gs_object("").generation, "");
}

}  // namespace
}  // namespace shf
