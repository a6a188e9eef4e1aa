// Memory runs out while batches are made: of streams, of data sets, of samples.
#include "batch_client.h"
#include "failing_allocations.h"
#include "gif_and_tiff_files.h"
#include "npy_builder.h"
#include "zip_builder.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace shf::test {
namespace {

using Where = Faults::Where;

constexpr uint64_t samples = 14;

std::string text_of(const Bytes& bytes) {
    return {bytes.begin(), bytes.end()};
}

// A WAV file of `frames` frames, mono, 16 bits.
std::string wav(size_t frames) {
    std::string numbers;
    for (size_t i = 0; i < frames; ++i) numbers += le16(i * 77);
    return "RIFF" + le32(36 + numbers.size()) + "WAVEfmt " + le32(16) + le16(1) + le16(1) +
           le32(8000) + le32(16000) + le16(2) + le16(16) + "data" + le32(numbers.size()) + numbers;
}
// An input of a fuzz target, without the bytes that choose the options.
std::string of_corpus(const char* name, size_t choices) {
    const char* const corpus = std::getenv("SHARDFEED_FUZZ_CORPUS");
    if (!corpus)
        throw std::runtime_error("SHARDFEED_FUZZ_CORPUS: tests/fuzz/corpus; meson test says it");
    std::ifstream file(corpus + ("/" + std::string(name)), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_GT(bytes.size(), choices) << name;
    return bytes.substr(choices);
}
bool has(const char* feature) {
    return shf_feature(feature) != nullptr;
}

// These crash where they get no memory. What they need is there before they are called. They are
// loaded by then.
bool spare_libraries_that_crash() {
    for (const char* library : {"libsndfile", "libsoxr", "libtiff", "libavif", "libdav1d", "libaom",
                                "libgav1", "libyuv", "libabsl"})
        faults::spare_library(library);
    return true;
}

// One stored block (RFC 1951, 3.2.4; RFC 1952).
std::string stored_gzip(const std::string& text) {
    return std::string("\x1f\x8b\x08\0\0\0\0\0\0\3", 10) + '\1' + le16(text.size()) +
           le16(~text.size() & 0xffff) + text + le32(crc_of(text)) + le32(text.size());
}

// A picture of 40 x 30 in each format that the build reads.
std::string pictures(const std::string& key) {
    const Bytes rgb = gradient(40, 30, 3);
    std::string members;
    const auto add = [&](const char* feature, const char* field, const std::string& file) {
        if (has(feature)) members += member(key + field, file);
    };
    add("webp", ".webp", text_of(webp_file(40, 30, rgb, 3, false)));
    GifSpec spec;
    spec.width = 40;
    spec.height = 30;
    add("gif", ".gif", text_of(gif_file(spec, Bytes(1200, 7))));
    add("tiff", ".tif", of_corpus("image/tiff_lzw", 2));
    add("avif", ".avif", of_corpus("image/avif", 2));
    return members;
}

// Sample `i`: the number in "cls", two pictures of 40 x 30, an array of 12 kB (more than is decoded
// with the row, and bytes in an order that is not this machine's), one of another length in each
// sample, text, boxes, and four sounds, where the build reads them. In every seventh the checksum
// of the PNG is wrong when `damaged`.
std::string sample(uint64_t i, bool damaged) {
    const std::string key = numbered("k", i);
    Bytes png = png_grey(40, 30, Bytes(1200, static_cast<uint8_t>(i)));
    if (damaged && i % 7 == 3) png[png.size() - 13] ^= 1;
    std::string sounds;
    if (has("audio"))
        sounds = member(key + ".wav", wav(400 + 10 * i)) +
                 member(key + ".flac", of_corpus("audio/flac", 1)) +
                 member(key + ".mp3", of_corpus("audio/mp3", 1)) +
                 member(key + ".opus", of_corpus("audio/opus", 1));
    const std::string boxes =
        R"([{"b": [1, 2, 30, 20]}, {"b": [0, 0, 3, )" + std::to_string(5 + i) + R"(]}])";
    return member(key + ".cls", std::to_string(i)) +
           member(key + ".json", R"({"ids": [1, 2, 3], "a": )" + boxes + "}") +
           member(key + ".jpg", text_of(jpeg_file(40, 30, gradient(40, 30, 3)))) +
           member(key + ".png", text_of(png)) + member(key + ".txt", key) +
           member(key + ".x.npy", npy(">f4", {3000}, std::vector<uint32_t>(3000, 1))) +
           member(key + ".y.npy",
                  npy("<i4", {static_cast<int64_t>(i % 7)}, std::vector<uint32_t>(i % 7, 1))) +
           pictures(key) + member(key + ".n.cls.gz", stored_gzip(std::to_string(i))) + sounds;
}

// Whether the rows are `expected` and the samples after it.
bool sound_rows(const shf_batch* batch, uint64_t& expected, bool gaps) {
    for (size_t row = 0; row < shf_batch_row_count(batch); ++row) {
        shf_bytes key;
        if (shf_batch_key(batch, row, &key) != SHF_OK) return false;
        while (gaps && expected % 7 == 3) ++expected;
        if (test::text_of(key) != numbered("k", expected++)) return false;
    }
    return true;
}

// Goes over all bytes of the columns.
uint64_t digest_of(const shf_batch* batch, uint64_t digest) {
    for (size_t i = 0; i < shf_batch_column_count(batch); ++i) {
        shf_array array{};
        EXPECT_EQ(shf_batch_column(batch, i, nullptr, &array), SHF_OK);
        digest = 31 * digest + crc_of({static_cast<const char*>(array.data), array.size});
    }
    return digest;
}

// Five tokens for each text.
int32_t five_tokens(void* /*ctx*/, const shf_text* texts, size_t count, shf_tokens* tokens,
                    shf_error* error) {
    constexpr uint64_t five = 5;
    for (size_t i = 0; i < count; ++i) {
        std::array<int32_t, five> ids{};
        ids.fill(static_cast<int32_t>(texts[i].key.size));
        const int32_t code = shf_tokens_add(tokens, ids.data(), &five, 1, error);
        if (code != SHF_OK) return code;
    }
    return SHF_OK;
}

shf_options* options_of(const Settings& settings, Where where) {
    constexpr shf_tokenizer tokenizer = {
        .struct_size = sizeof tokenizer, .tokenize = five_tokens, .release = nullptr};
    shf_options* options = shf_options_new();
    if (!options) return nullptr;
    const bool packs_texts =
        std::find(settings.begin(), settings.end(),
                  std::pair<std::string, std::string>("decode", "txt")) != settings.end();
    if (packs_texts && shf_options_set_tokenizer(options, &tokenizer, nullptr, nullptr) != SHF_OK) {
        shf_options_free(options);
        return nullptr;
    }
    for (const auto& [name, value] : settings)
        if (shf_options_set(options, name.c_str(), value.c_str(), nullptr) != SHF_OK) {
            shf_options_free(options);
            return nullptr;
        }
    if (where == Where::allocator)
        shf_options_set_allocator(options, faults::take_piece, faults::release_piece, nullptr);
    return options;
}

void note(Outcome& outcome, int32_t code, const shf_error& error) {
    outcome.code = code;
    std::copy(std::begin(error.message), std::end(error.message), outcome.message);
}

// All batches of a stream, in order, and what it says behind them.
Scenario batches_of(const std::string& url, const Settings& settings, Where where, bool gaps) {
    return [=](Outcome& outcome) {
        shf_options* options = options_of(settings, where);
        if (!options) {
            outcome.code = SHF_E_NOMEM;
            return;
        }
        shf_error error = {};
        shf_stream* stream = nullptr;
        const char* const given = url.c_str();
        outcome.code = shf_stream_open(&stream, &given, 1, options, &error);
        uint64_t expected = 0;
        while (outcome.code == SHF_OK) {
            shf_batch* batch = nullptr;
            outcome.code = shf_stream_next_batch(stream, &batch, &error);
            const faults::Exempt own;
            if (batch) {
                outcome.sound = outcome.sound && sound_rows(batch, expected, gaps);
                outcome.count += shf_batch_row_count(batch);
                outcome.digest = digest_of(batch, outcome.digest);
            }
            shf_batch_unref(batch);
        }
        note(outcome, outcome.code, error);
        if (stream) {
            shf_batch* batch = nullptr;
            outcome.sound =
                outcome.sound && shf_stream_next_batch(stream, &batch, nullptr) == outcome.code;
        }
        shf_stream_close(stream);
        shf_options_free(options);
    };
}

struct Case {
    const char* name;
    Settings settings;
    bool damaged = false;
};

// Tokens are made for streams alone.
std::vector<Case> cases(bool of_streams = true) {
    std::vector<Case> all = {
        {"images", {{"decode", "jpg:image/rgb/chw/resize=20x20/flip=random, png:image/l8, cls"}}},
        {"skipped_images",
         {{"decode", "png:image/rgb8/resize=16, cls"}, {"on_error", "skip_sample"}},
         true},
        {"arrays", {{"decode", "x.npy, cls, txt"}, {"lanes", "1"}}},
        {"compressed_fields",
         {{"decode", "n.cls.gz, json:list/ids, cls"}, {"on_error", "skip_sample"}}},
        {"ragged_arrays", {{"decode", "y.npy, x.npy, cls"}, {"ragged", "offsets"}}},
        {"padded_arrays", {{"decode", "y.npy, cls"}, {"ragged", "pad"}}},
        {"counted_arrays", {{"decode", "y.npy, cls"}, {"ragged", "pad"}, {"batch_elements", "12"}}},
        {"bucketed_arrays",
         {{"decode", "x.npy, y.npy, cls"}, {"ragged", "pad"}, {"bucket", "1000, 3000"}}},
        {"fitted_arrays", {{"decode", "x.npy"}, {"pack", "4000"}, {"pack_window", "5"}}},
        {"packed_arrays", {{"decode", "x.npy"}, {"pack", "3000"}}},
        {"bytes", {{"decode", "txt, png:bytes, cls:text"}, {"even", "pad"}, {"missing", "empty"}}},
        {"training_images",
         {{"decode",
           "jpg:image/rgb/chw/rrc=16x16/flip=random/brightness=0.6..1.4/hue=-0.1..0.1/"
           "grayscale=0.2/normalize=imagenet/views=2, png:image/l8/pad=to:50x50"}}},
        {"mixed_images", {{"decode", "png:image/l8/mixup=0.2/cutmix=1, cls"}}},
        {"boxes",
         {{"decode", "png:image/l8/crop=30x20, json:boxes/path=a.b/of=png, cls"},
          {"on_error", "skip_sample"}},
         true},
        {"padded_boxes",
         {{"decode", "png:image/l8/crop=30x20, json:boxes/path=a.b/of=png"}, {"ragged", "pad"}}},
        {"all_fields",
         {{"decode", "auto"},
          {"fields", "cls,json,jpg,png,txt,x.npy,y.npy,webp,gif,n.cls.gz,wav,flac,mp3,opus"},
          {"ragged", "offsets"},
          {"missing", "empty"}}},
    };
    if (of_streams) all.push_back({"packed_texts", {{"decode", "txt"}, {"pack", "5"}}});
    // Not JPEG XL: libjxl 0.7 ends with NOMEM, but loses objects of its own.
    for (const auto& [feature, decode] : {std::pair{"webp", "webp:image/rgb8/resize=16x16, cls"},
                                          {"gif", "gif:image/rgb8/resize=16x16, cls"},
                                          {"tiff", "tif:image/rgb8/resize=16x16, cls"},
                                          {"avif", "avif:image/rgb8/resize=16x16, cls"}})
        if (has(feature)) {
            all.push_back({feature, {{"decode", decode}}});
            all.push_back({"skipped", {{"decode", decode}, {"on_error", "skip_sample"}}});
        }
    if (has("audio")) {
        all.push_back({"sounds", {{"decode", "flac:audio, mp3:audio/int16, opus:audio, cls"}}});
        all.push_back({"resampled_sounds",
                       {{"decode", "wav:audio/rate=5000/crop=random:40ms, mp3:audio/mono"}}});
        all.push_back({"ragged_sounds", {{"decode", "wav:audio/int16"}, {"ragged", "offsets"}}});
    }
    return all;
}

// The deleter is the last member of a DLManagedTensor of 64-bit systems. Its argument has another
// type of pointer there, which UBSan of Clang does not accept.
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
void delete_tensor(void* tensor) {
    (*reinterpret_cast<void (**)(void*)>(static_cast<char*>(tensor) + 56))(tensor);
}

// The stride is small in the slow suite, where each allocation fails.
class BatchNomem : public testing::TestWithParam<int64_t> {
  protected:
    BatchNomem() {
        for (const bool damaged : {false, true})
            for (uint64_t s = 0; s < 2; ++s) {
                std::string bytes;
                for (uint64_t i = 0; i < samples / 2; ++i)
                    bytes += sample(samples / 2 * s + i, damaged);
                directory.write((damaged ? "damaged-" : "whole-") + std::to_string(s) + ".tar",
                                bytes + end_marker());
            }
        // Indexes for even=pad and data sets.
        for (const char* shard : {"whole-0.tar", "whole-1.tar"})
            EXPECT_EQ(shf_index_build((directory / shard).c_str(), nullptr, nullptr), SHF_OK);
        for (const Case& one : cases())
            (void)attempt(
                batches_of(url(), one.settings + Settings{{"batch", "5"}}, Where::heap, false), {});
        static const bool once = spare_libraries_that_crash();
        EXPECT_TRUE(once);
    }
    [[nodiscard]] std::string url(bool damaged = false) const {
        return directory / (damaged ? "damaged-{0..1}.tar" : "whole-{0..1}.tar");
    }
    void run(const std::string& name, const Scenario& scenario, Where where, int64_t stride,
             const std::function<bool(const Outcome&)>& allowed = {}) {
        SCOPED_TRACE(name);
        const Counts counts = fail_each_allocation(scenario, where, stride, allowed);
        EXPECT_GT(counts.nomem, 0U);
        points += counts.points;
    }
    void run_streams(Where where, const char* threads, int64_t stride) {
        for (const Case& one : cases())
            run(one.name,
                batches_of(
                    url(one.damaged),
                    one.settings +
                        Settings{{"batch", "5"}, {"threads", "1"}, {"decode_threads", threads}},
                    where, one.damaged),
                where, stride, no_thread);
        RecordProperty("points", std::to_string(points));
    }
    // pthread_create says EAGAIN also where the memory for a thread is missing.
    static bool no_thread(const Outcome& outcome) {
        return outcome.code == SHF_E_LIMIT &&
               std::string_view(outcome.message).find("thread") != std::string_view::npos;
    }

    const TempDirectory directory;
    uint64_t points = 0;
};

TEST_P(BatchNomem, heap_with_one_thread) {
    run_streams(Where::heap, "1", GetParam());
}
// Every one of those with which the first batches are made.
TEST_P(BatchNomem, heap_while_the_first_batches_are_made) {
    for (const Case& one : cases()) {
        SCOPED_TRACE(one.name);
        const Settings settings{{"batch", "5"}, {"threads", "1"}, {"decode_threads", "2"}};
        const Scenario scenario =
            batches_of(url(one.damaged), one.settings + settings, Where::heap, one.damaged);
        const Counts counts = fail_each_allocation(scenario, Where::heap, 1, no_thread, 300, 420);
        EXPECT_GT(counts.nomem, 0U);
        points += counts.points;
    }
}
TEST_P(BatchNomem, heap_with_two_threads) {
    run_streams(Where::heap, "2", GetParam());
}
// There are few of these.
TEST_P(BatchNomem, allocator_with_one_thread) {
    run_streams(Where::allocator, "1", std::min<int64_t>(GetParam(), 3));
}
TEST_P(BatchNomem, allocator_with_two_threads) {
    run_streams(Where::allocator, "2", std::min<int64_t>(GetParam(), 3));
}

TEST_P(BatchNomem, of_a_dataset) {
    const std::string list = url();
    for (const Case& one : cases(false))
        for (const char* threads : {"1", "2"}) {
            const Settings settings =
                one.settings + Settings{{"threads", threads}, {"decode_threads", threads}};
            run(
                one.name,
                [&](Outcome& outcome) {
                    shf_options* options = options_of(settings, Where::heap);
                    if (!options) {
                        outcome.code = SHF_E_NOMEM;
                        return;
                    }
                    shf_error error = {};
                    shf_dataset* dataset = nullptr;
                    const char* const given = list.c_str();
                    int32_t code = shf_dataset_open(&dataset, &given, 1, options, &error);
                    const std::array<uint64_t, 9> numbers = {12, 3, 4, 5, 3, 0, 13, 8, 7};
                    for (int i = 0; i < 2 && code == SHF_OK; ++i) {
                        shf_batch* batch = nullptr;
                        code = shf_dataset_get_batch(dataset, numbers.data(), numbers.size(),
                                                     nullptr, &batch, &error);
                        outcome.count += shf_batch_row_count(batch);
                        outcome.digest = digest_of(batch, outcome.digest);
                        for (size_t row = 0; row < shf_batch_row_count(batch); ++row) {
                            const faults::Exempt own;
                            shf_bytes key;
                            outcome.sound = outcome.sound &&
                                            shf_batch_key(batch, row, &key) == SHF_OK &&
                                            test::text_of(key) == numbered("k", numbers[row]);
                        }
                        shf_batch_unref(batch);
                    }
                    note(outcome, code, error);
                    shf_dataset_close(dataset);
                    shf_options_free(options);
                },
                Where::heap, GetParam(), no_thread);
        }
    RecordProperty("points", std::to_string(points));
}

TEST_P(BatchNomem, of_samples) {
    std::vector<SampleHandle> kept;
    {
        Client client(url(), {});
        while (SampleHandle one = client.next()) kept.push_back(std::move(one));
    }
    std::vector<shf_sample*> list;
    for (const SampleHandle& one : kept) list.push_back(one.get());
    ASSERT_EQ(list.size(), samples);
    for (const Case& one : cases(false))
        run(
            one.name,
            [&](Outcome& outcome) {
                shf_options* options = options_of(one.settings, Where::heap);
                if (!options) {
                    outcome.code = SHF_E_NOMEM;
                    return;
                }
                shf_error error = {};
                shf_batch* batch = nullptr;
                int32_t code = shf_batch_make(&batch, list.data(), list.size(), options, &error);
                uint64_t expected = 0;
                outcome.count = shf_batch_row_count(batch);
                {
                    const faults::Exempt own;
                    outcome.sound = !batch || sound_rows(batch, expected, false);
                    outcome.digest = digest_of(batch, 0);
                }
                void* tensor = nullptr;
                if (code == SHF_OK && (code = shf_batch_dlpack(batch, 0, 0, &tensor, &error)) == 0)
                    delete_tensor(tensor);
                note(outcome, code, error);
                shf_batch_unref(batch);
                shf_options_free(options);
            },
            Where::heap, std::min<int64_t>(GetParam(), 7), no_thread);
    RecordProperty("points", std::to_string(points));
}

INSTANTIATE_TEST_SUITE_P(sample, BatchNomem, testing::Values(61));
INSTANTIATE_TEST_SUITE_P(every, BatchNomem, testing::Values(1));

}  // namespace
}  // namespace shf::test
