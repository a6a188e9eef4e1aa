// V20: hostile input of 1 MiB costs at most a second, and more of it costs in proportion. The
// bounds are generous: only growth with the square of the input can break them.
#include "shard_expect.h"
#include "tar_builder.h"

#include <ctime>
#include <functional>

namespace shf::test {
namespace {

constexpr size_t MiB = 1 << 20;

std::string digits(size_t number, size_t width = 7) {
    std::string text = std::to_string(number);
    return std::string(width - std::min(width, text.size()), '0') + text;
}

// Repeats entries until the input is that long.
std::string repeated(size_t size, const std::function<std::string(size_t)>& entry) {
    std::string out;
    for (size_t i = 0; out.size() < size; ++i) out += entry(i);
    return out;
}

struct Shape {
    const char* name;
    std::function<std::string(size_t)> make;  // input of about that many bytes
};

void PrintTo(const Shape& shape, std::ostream* to) {
    *to << shape.name;
}

// Lookups of names and keys must not depend on what an attacker makes them.
const Shape shapes[] = {
    {"long_gnu_name",
     [](size_t size) {
         return gnu_name(std::string(size, 'n') + ".x") + member("n", "", Carrier::gnu);
     }},
    {"name_of_slashes_and_dots",
     [](size_t size) {
         std::string name;
         while (name.size() < size) name += "./.";
         return pax({{"path", name + "/a.x"}}) + member("n", "");
     }},
    {"many_pax_records",
     [](size_t size) {
         return pax_body(repeated(size, [](size_t i) { return record(digits(i) + "k", "v"); })) +
                member("a.x", "");
     }},
    {"one_pax_key_repeated",
     [](size_t size) {
         return pax_body(repeated(
                    size, [](size_t i) { return record("path", std::string("a.") + digits(i)); })) +
                member("a.x", "");
     }},
    {"pax_lengths_of_many_digits",
     [](size_t size) { return pax_body(std::string(size, '0')) + member("a.x", ""); }},
    {"many_global_headers",
     [](size_t size) {
         return repeated(size,
                         [](size_t) {
                             return pax({{"comment", "c"}}, 'g');
                         }) +
                member("a.x", "");
     }},
    {"many_samples",
     [](size_t size) {
         return repeated(size, [](size_t i) { return member(digits(i) + ".x", ""); });
     }},
    {"many_fields_in_one_sample",
     [](size_t size) {
         return repeated(size, [](size_t i) { return member(std::string("a.") + digits(i), ""); });
     }},
    {"one_field_again_and_again",
     [](size_t size) { return repeated(size, [](size_t) { return member("a.x", ""); }); }},
    {"every_sample_twice",
     [](size_t size) {
         const size_t half = size / 1024 + 1;
         return repeated(size, [=](size_t i) { return member(digits(i % half) + ".x", ""); });
     }},
    {"other_field_names_in_every_sample",
     [](size_t size) {
         return repeated(size, [](size_t i) {
             return member(digits(i) + ".a" + digits(i), "") + member(digits(i) + ".B", "");
         });
     }},
    {"ignored_members_in_a_sample",
     [](size_t size) {
         return member("a.x", "") + repeated(size, [](size_t) { return member("README", ""); }) +
                member("a.y", "");
     }},
    {"sparse_map_of_many_blocks",
     [](size_t size) { return sparse_old_gnu("s.x", size / 512) + member("a.x", ""); }},
    {"many_archives",
     [](size_t size) {
         return repeated(size,
                         [](size_t i) { return member(digits(i) + ".x", "") + end_marker(); });
     }},
    {"zeros_after_the_end", [](size_t size) { return member("a.x", "") + zeros(size); }},
    {"junk_after_the_end",
     [](size_t size) { return member("a.x", "") + end_marker() + std::string(size, 'j'); }},
};

double cpu_seconds(std::string_view shard, size_t chunk) {
    const Options options = options_with({{"on_error", "skip_sample"},
                                          {"max_meta", "64MiB"},
                                          {"max_name", "64MiB"},
                                          {"concat", "true"},
                                          {"trailing", "ignore"},
                                          {"allow_empty", "true"}});
    double best = 1e9;
    for (int run = 0; run < 3; ++run) {
        const std::clock_t start = std::clock();
        const ShardResult result =
            read_shard(shard, options, {.chunk = chunk, .size_known = chunk == 0});
        best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
        EXPECT_LE(result.memory_peak, 64 * MiB);
    }
    return best;
}

class Complexity : public testing::TestWithParam<Shape> {};

INSTANTIATE_TEST_SUITE_P(V20, Complexity, testing::ValuesIn(shapes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Complexity, grows_with_the_input) {
    constexpr size_t times = 8;
    const std::string small = GetParam().make(MiB) + end_marker();
    const std::string large = GetParam().make(times * MiB) + end_marker();
    for (const size_t chunk : {size_t{0}, size_t{512}}) {
        const double one = cpu_seconds(small, chunk), many = cpu_seconds(large, chunk);
        EXPECT_LE(one, 1.0) << "chunk " << chunk;
        // Three doublings of at most 2.3 times each, twice that for noise, and some to start with.
        EXPECT_LE(many, 2 * 12.2 * one + 0.05) << "chunk " << chunk << ", one MiB: " << one;
    }
}

// Bytes that come one by one cost reads, not copies.
TEST_P(Complexity, single_bytes) {
    EXPECT_LE(cpu_seconds(GetParam().make(MiB) + end_marker(), 1), 1.0);
}

}  // namespace
}  // namespace shf::test
