// Rule T20: a tar that was cut and filled up with zeros, as a download into a preallocated file
// that stopped, is never taken for a whole one: not by streams, archives, datasets or indexes.
#include "dataset_builder.h"
#include "filter_encoders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <iostream>
#include <optional>

namespace shf::test {
namespace {

constexpr size_t longest_tail = 64 * 1024;  // of zeros that are accepted behind the end marker
constexpr size_t page = 4096;

// How the file gets the rest of its bytes.
enum class Fill : uint8_t { hole, zeros };

class ZeroTail : public testing::Test {
  protected:
    // Three samples of two fields; the last field is longer than the zeros that may follow.
    static std::string whole_tar() {
        std::string tar;
        for (size_t i = 0; i < 3; ++i) {
            tar += member(sample_key(0, i) + ".cls", sample_key(0, i));
            tar += member(sample_key(0, i) + ".jpg", noise(i == 2 ? 70'001 : 9'000 + i));
        }
        tar += end_marker();
        while (tar.size() % 10240 != 0) tar += '\0';
        return tar;
    }

    // The first `cut` bytes of the tar, and what fills it up to `size`.
    void write_cut(size_t cut, size_t size, Fill fill) const {
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        ASSERT_GE(fd, 0);
        std::string bytes = tar.substr(0, cut);
        if (fill == Fill::zeros) bytes.resize(size);
        ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
        ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
        ::close(fd);
    }

    [[nodiscard]] bool ends_in_hole() const {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        const off_t last = ::lseek(fd, 0, SEEK_END) - 1;
        const bool hole = ::lseek(fd, last, SEEK_HOLE) == last;
        ::close(fd);
        return hole;
    }
    [[nodiscard]] bool has_holes() const {
        write_cut(tar.size(), tar.size() + 16 * page, Fill::hole);
        return ends_in_hole();
    }

    // What each way to read gives; nothing when it ends with an error.
    using Read = std::optional<std::vector<std::string>>;

    [[nodiscard]] Read streamed(const std::string& url, const Settings& settings = {}) const {
        Client client(url, settings);
        std::vector<std::string> seen;
        if (client.code == SHF_OK)
            while (const SampleHandle sample = client.next())
                seen.push_back(fields_of(sample.get()));
        code = client.code;
        message = client.message();
        return client.code == SHF_END ? Read(seen) : std::nullopt;
    }
    [[nodiscard]] Read dataset(const Settings& settings = {}) const {
        Samples data(path, settings);
        std::vector<std::string> seen;
        for (uint64_t i = 0; data.code == SHF_OK && i < data.count(); ++i)
            if (const SampleHandle sample = data.get(i)) seen.push_back(fields_of(sample.get()));
        code = data.code;
        message = data.message();
        return data.code == SHF_OK ? Read(seen) : std::nullopt;
    }
    // Two members make a sample.
    [[nodiscard]] Read archive() const {
        shf_error error = {};
        shf_archive* opened = nullptr;
        code = shf_archive_open(&opened, path.c_str(), nullptr, &error);
        std::vector<std::string> seen;
        for (uint64_t i = 0; code == SHF_OK && i < shf_archive_member_count(opened); ++i) {
            std::string bytes(shf_archive_info(opened, i, SHF_MEMBER_SIZE), '\0');
            code = shf_archive_read(opened, i, bytes.data(), bytes.size(), &error);
            shf_bytes name;
            shf_archive_name(opened, i, &name);
            const std::string field = text_of(name).substr(text_of(name).find('.') + 1);
            if (i % 2 == 0) seen.push_back(text_of(name).substr(0, text_of(name).find('.')));
            seen.back() += "|" + field + "=" + bytes;
        }
        shf_archive_close(opened);
        message = error.message;
        return code == SHF_OK ? Read(seen) : std::nullopt;
    }

    static std::string fields_of(const shf_sample* sample) {
        std::string out = key_of(sample);
        for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
            shf_bytes name, data;
            EXPECT_EQ(shf_sample_field(sample, i, &name, &data), SHF_OK);
            out += "|" + text_of(name) + "=" + text_of(data);
        }
        return out;
    }

    // Cuts at every `step`-th block and around it. Returns how many files were tried.
    size_t sweep(size_t step) {
        const bool holes = has_holes();
        directory.write("a.tar", tar);
        const Read whole = streamed(path);
        EXPECT_EQ(whole.value_or(std::vector<std::string>()).size(), 3U);
        if (!whole) return 0;
        EXPECT_EQ(archive(), whole);
        EXPECT_EQ(dataset({{"index", "auto"}}), whole);  // and leaves an index
        struct stat state = {};
        EXPECT_EQ(::stat(path.c_str(), &state), 0);
        const std::array<timespec, 2> times{state.st_atim, state.st_mtim};
        const size_t end = tar.size() - tar.size() % 512;
        size_t files = 0, refused = 0;
        for (size_t block = 0; block < end; block += 512 * step)
            for (const size_t more : {size_t{0}, size_t{1}, size_t{157}, size_t{511}}) {
                const size_t cut = block + more;
                const size_t next_page = (cut + page - 1) / page * page;
                for (const auto& ending :
                     {std::pair{tar.size(), Fill::hole}, std::pair{next_page + page, Fill::hole},
                      std::pair{std::max(next_page, tar.size()) + 16 * page, Fill::hole},
                      std::pair{tar.size() + 1024 + longest_tail + 1, Fill::zeros}}) {
                    // Clang 14 does not let lambdas capture structured bindings.
                    const size_t size = ending.first;
                    const Fill fill = ending.second;
                    if (size < cut) continue;
                    write_cut(cut, size, fill);
                    // What can be known: the rest is a hole, or more than a writer leaves.
                    if (fill == Fill::hole && !ends_in_hole()) {
                        EXPECT_TRUE(!holes || size - cut < page) << cut << " of " << size;
                        continue;
                    }
                    // The index of the whole file lies beside it, for a file of this age.
                    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
                    ++files;
                    const auto expect_no_loss = [&](const char* way, const Read& read) {
                        if (!read) {
                            ++refused;
                            EXPECT_TRUE(code == SHF_E_TRUNCATED || code == SHF_E_FORMAT)
                                << way << ", " << cut << " of " << size << ": " << message;
                            return;
                        }
                        ADD_FAILURE()
                            << way << ": " << read->size() << " samples of a file cut at " << cut
                            << " and filled up to " << size << ", hole " << (fill == Fill::hole);
                    };
                    expect_no_loss("stream", streamed(path));
                    expect_no_loss("stream without a marker",
                                   streamed(path, {{"end_marker", "optional"}}));
                    expect_no_loss("archive", archive());
                    expect_no_loss("dataset", dataset({{"index", "memory"}}));
                    // The index knows the last 64 KiB, and zeros that were zeros are no loss.
                    if (const Read read = dataset({{"index", "auto"}}); !read || *read != *whole)
                        expect_no_loss("dataset and index", read);
                    if (fill == Fill::zeros) expect_no_loss("pipe", streamed("pipe:cat " + path));
                    // A shard that is skipped gives nothing that is filled with zeros.
                    const Read skipped = streamed(path, {{"on_error", "skip_shard"}});
                    for (const std::string& sample : skipped.value_or(*whole))
                        EXPECT_NE(std::find(whole->begin(), whole->end(), sample), whole->end())
                            << "cut at " << cut;
                }
            }
        std::cout << files << " files, read " << refused << " times, all refused\n";
        return files;
    }

    const Watchdog watchdog{1200};
    const TempDirectory directory;
    const std::string path = directory / "a.tar", tar = whole_tar();
    mutable int32_t code = SHF_OK;
    mutable std::string message;
};

TEST_F(ZeroTail, some_cuts) {
    EXPECT_GT(sweep(23), 30U);
}
TEST_F(ZeroTail, every_cut) {
    EXPECT_GT(sweep(1), 1000U);
}

// The last sample is complete when the zeros behind the marker were counted.
TEST_F(ZeroTail, of_64_KiB_is_the_longest) {
    const size_t end = tar.find_last_not_of('\0') / 512 * 512 + 512 + 1024;
    for (const size_t more : {size_t{0}, size_t{1}, size_t{9999}, longest_tail - 1, longest_tail}) {
        write_cut(end, end + more, Fill::zeros);
        EXPECT_EQ(streamed(path).value_or(std::vector<std::string>()).size(), 3U) << message;
        EXPECT_EQ(archive().value_or(std::vector<std::string>()).size(), 3U) << message;
        EXPECT_EQ(dataset({{"index", "memory"}}).value_or(std::vector<std::string>()).size(), 3U)
            << message;
    }
    for (const size_t more : {longest_tail + 1, longest_tail + 512, size_t{3'000'000}}) {
        write_cut(end, end + more, Fill::zeros);
        for (const bool pipe : {false, true}) {
            EXPECT_FALSE(streamed(pipe ? "pipe:cat " + path : path)) << more;
            EXPECT_EQ(code, SHF_E_TRUNCATED) << message;
            EXPECT_NE(message.find("trailing=ignore"), std::string::npos) << message;
        }
        EXPECT_FALSE(archive());
        EXPECT_EQ(code, SHF_E_TRUNCATED) << message;
        EXPECT_FALSE(dataset({{"index", "memory"}}));
        EXPECT_EQ(code, SHF_E_TRUNCATED) << message;
        Client ignoring(path, {{"trailing", "ignore"}});
        EXPECT_EQ(ignoring.keys().size(), 3U);
        EXPECT_EQ(ignoring.code, SHF_END) << ignoring.message();
        EXPECT_EQ(ignoring.stat(SHF_STAT_TRAILING), 1U);
    }
}

TEST_F(ZeroTail, that_is_a_hole_is_ignored_on_request) {
    if (!has_holes()) GTEST_SKIP() << "the file system reports no holes";
    const size_t end = tar.find_last_not_of('\0') / 512 * 512 + 512 + 1024;
    write_cut(end, (end + page - 1) / page * page + page, Fill::hole);
    ASSERT_TRUE(ends_in_hole());
    EXPECT_FALSE(streamed(path));
    EXPECT_EQ(code, SHF_E_TRUNCATED);
    EXPECT_NE(message.find("hole"), std::string::npos) << message;
    EXPECT_EQ(streamed("pipe:cat " + path).value_or(std::vector<std::string>()).size(), 3U);
    EXPECT_EQ(streamed(path, {{"trailing", "ignore"}}).value_or(std::vector<std::string>()).size(),
              3U);
    EXPECT_EQ(dataset({{"index", "memory"}, {"trailing", "ignore"}})
                  .value_or(std::vector<std::string>())
                  .size(),
              3U);
}

// A hole between members is what a sparse copy makes of zeros in their data.
TEST_F(ZeroTail, holes_elsewhere_are_data) {
    const std::string zero_field(200'000, '\0');
    const std::string head = member("a.cls", "1") + member("a.npy", zero_field);
    const std::string rest = member("b.cls", "2") + end_marker();
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ASSERT_GE(fd, 0);
    const std::string start = head.substr(0, 1536);
    ASSERT_EQ(::pwrite(fd, start.data(), start.size(), 0), static_cast<ssize_t>(start.size()));
    ASSERT_EQ(::pwrite(fd, rest.data(), rest.size(), static_cast<off_t>(head.size())),
              static_cast<ssize_t>(rest.size()));
    ::close(fd);
    const Read read = streamed(path);
    ASSERT_TRUE(read) << message;
    ASSERT_EQ(read->size(), 2U);
    EXPECT_NE((*read)[0].find(zero_field), std::string::npos);
}

// The same inside compressed data; zeros behind it are padding (rule D4).
TEST_F(ZeroTail, in_compressed_tars) {
    const size_t end = tar.find_last_not_of('\0') / 512 * 512 + 512;
    for (const char* codec : codecs) {
        for (const size_t cut : {size_t{0}, size_t{1024}, size_t{5000}, end - 512, end}) {
            directory.write("a.tar", compress(codec, tar.substr(0, cut) +
                                                         zeros(tar.size() - cut + longest_tail)));
            EXPECT_FALSE(streamed(path)) << codec << " " << cut;
            EXPECT_TRUE(code == SHF_E_TRUNCATED || code == SHF_E_FORMAT) << message;
            EXPECT_FALSE(archive()) << codec << " " << cut;
        }
        const std::string whole = compress(codec, tar);
        directory.write("a.tar", whole + zeros(300'000));
        EXPECT_EQ(streamed(path).value_or(std::vector<std::string>()).size(), 3U)
            << codec << " " << message;
        // A cut in the compressed data, filled up with zeros.
        for (size_t cut = 1; cut < whole.size(); cut += 997) {
            directory.write("a.tar", whole.substr(0, cut) + zeros(300'000));
            EXPECT_FALSE(streamed(path)) << codec << " " << cut;
        }
    }
}

}  // namespace
}  // namespace shf::test
