// Archives in 7z, cpio, RAR and ISO 9660 as a program in C reads them: by name and position, by
// number of the sample, in sequence, in streams that are stopped and resumed; and the reader over
// sources that fail.
#include "dataset_builder.h"
#include "filter_encoders.h"
#include "libarchive/libarchive_reader.h"
#include "libarchive_builder.h"
#include "resume_client.h"

#include "core/options.h"

#include <sys/wait.h>

#include <random>
#include <thread>

namespace shf::test {
namespace {

std::vector<Packed> keyed(uint64_t shard, uint64_t count) {
    std::vector<Packed> members;
    for (uint64_t i = 0; i < count; ++i) {
        const std::string key = sample_key(shard, i);
        members.push_back(
            {key + ".txt", key + std::string(static_cast<size_t>(i) * 37 % 900, 'x')});
    }
    return members;
}

std::string tar_of(const std::vector<Packed>& members) {
    std::string tar;
    for (const Packed& m : members) tar += member(m.name, m.data);
    return tar + end_marker();
}

class LibarchiveAccess : public testing::Test {
  protected:
    const Watchdog watchdog{120};
    const TempDirectory directory;
};

struct ArchiveHandle {
    explicit ArchiveHandle(const std::string& path) {
        code = shf_archive_open(&archive, path.c_str(), nullptr, &error);
    }
    ~ArchiveHandle() { shf_archive_close(archive); }
    ArchiveHandle(const ArchiveHandle&) = delete;
    ArchiveHandle& operator=(const ArchiveHandle&) = delete;

    [[nodiscard]] uint64_t info(uint64_t position, int32_t what) const {
        return shf_archive_info(archive, position, what);
    }
    std::string read(uint64_t position) {
        std::string out(static_cast<size_t>(info(position, SHF_MEMBER_SIZE)), '\0');
        code = shf_archive_read(archive, position, out.data(), out.size(), &error);
        return out;
    }
    uint64_t find(std::string_view name) {
        uint64_t position = UINT64_MAX;
        code = shf_archive_find(archive, name.data(), name.size(), &position, &error);
        return position;
    }

    shf_archive* archive = nullptr;
    shf_error error = {};
    int32_t code = SHF_OK;
};

TEST_F(LibarchiveAccess, members_by_name_and_position) {
    const std::vector<Packed> members = keyed(0, 60);
    for (const auto& [name, bytes] : each_archive(members)) {
        directory.write(name, bytes);
        ArchiveHandle archive(directory / name);
        ASSERT_EQ(archive.code, SHF_OK) << name << ": " << archive.error.message;
        const uint64_t folders = name == "iso" ? 1 : 0;
        ASSERT_EQ(shf_archive_member_count(archive.archive), members.size() + folders) << name;
        // Backwards, then in any order.
        std::vector<size_t> order(members.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
        std::minstd_rand random(3);
        for (size_t i = 0; i < 40; ++i) order.push_back(random() % members.size());
        for (const size_t i : order) {
            const uint64_t position = archive.find(members[i].name);
            ASSERT_EQ(position, i + folders) << name;
            EXPECT_EQ(archive.read(position), members[i].data) << name << archive.error.message;
            EXPECT_EQ(archive.info(position, SHF_MEMBER_OFFSET), position);
            EXPECT_EQ(archive.info(position, SHF_MEMBER_KIND), uint64_t{SHF_KIND_FILE});
            const uint64_t crc = crc32(bytes_in(members[i].data));
            EXPECT_EQ(archive.info(position, SHF_MEMBER_CRC32),
                      name.starts_with("rar") ? crc : UINT64_MAX)
                << name;
        }
        shf_bytes view;
        EXPECT_EQ(shf_archive_view(archive.archive, folders, &view, &archive.error),
                  SHF_E_UNSUPPORTED);
        // Many at once, by several threads, with one of them twice.
        std::vector<uint64_t> positions;
        for (const size_t i : order) positions.push_back(i + folders);
        std::vector<std::string> data;
        for (const size_t i : order) data.emplace_back(members[i].data.size(), '\0');
        std::vector<void*> buffers;
        for (std::string& text : data) buffers.push_back(text.data());
        EXPECT_EQ(shf_archive_read_many(archive.archive, positions.data(), positions.size(),
                                        buffers.data(), &archive.error),
                  SHF_OK)
            << archive.error.message;
        for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(data[i], members[order[i]].data);
    }
}

TEST_F(LibarchiveAccess, threads_and_children_share_an_archive) {
    const std::vector<Packed> members = keyed(0, 40);
    directory.write("a.7z", pack("7zip", members));
    ArchiveHandle archive(directory / "a.7z");
    const auto work = [&](unsigned seed) {
        std::minstd_rand random(seed);
        size_t good = 0;
        for (int i = 0; i < 60; ++i) {
            const size_t at = random() % members.size();
            std::string out(members[at].data.size(), '\0');
            shf_error error = {};
            if (shf_archive_read(archive.archive, at, out.data(), out.size(), &error) == SHF_OK &&
                out == members[at].data)
                ++good;
        }
        return good;
    };
    EXPECT_EQ(work(1), 60U);
    std::array<size_t, 4> good{};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) threads.emplace_back([&, i] { good[i] = work(i + 2); });
    for (std::thread& thread : threads) thread.join();
    for (const size_t count : good) EXPECT_EQ(count, 60U);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work(9) == 60 ? 0 : 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(work(10), 60U);
}

TEST_F(LibarchiveAccess, a_file_that_changed_is_seen) {
    directory.write("a.cpio", pack("newc", {{"a.txt", "one"}, {"b.txt", "two"}}));
    ArchiveHandle archive(directory / "a.cpio");
    EXPECT_EQ(archive.read(1), "two");
    directory.write("a.cpio", pack("newc", {{"a.txt", "uno"}, {"c.txt", "due"}}));
    archive.read(1);
    EXPECT_EQ(archive.code, SHF_E_CHANGED) << archive.error.message;
}

TEST_F(LibarchiveAccess, samples_by_number) {
    for (const auto& [name, bytes] : each_archive(keyed(0, 30))) {
        directory.write(name, bytes);
        directory.write("a.tar", tar_of(keyed(0, 30)));
        const auto no_place = [](std::string text) {
            const size_t from = text.find(" of "), to = text.find(", epoch");
            return text.erase(from, to - from);
        };
        Samples other(directory / name), tar(directory / "a.tar");
        ASSERT_EQ(other.code, SHF_OK) << name << ": " << other.message();
        ASSERT_EQ(other.count(), 30U);
        for (uint64_t i = 30; i-- > 0;)
            EXPECT_EQ(no_place(other.text(i)), no_place(tar.text(i))) << name;
        const std::vector<uint64_t> numbers = {29, 3, 3, 17, 0, 1, 2, 28};
        const auto ours = other.texts(numbers), theirs = tar.texts(numbers);
        ASSERT_EQ(ours.size(), theirs.size()) << other.message();
        for (size_t i = 0; i < ours.size(); ++i)
            EXPECT_EQ(no_place(ours[i]), no_place(theirs[i])) << name;
        EXPECT_EQ(other.find(sample_key(0, 7)), 7U);
    }
}

TEST_F(LibarchiveAccess, members_in_sequence) {
    std::vector<Packed> members = keyed(0, 20);
    members.insert(members.begin() + 3,
                   {.name = "link", .data = "", .type = AE_IFLNK, .link = "x"});
    members.push_back({"large.bin", noise(300000)});
    for (const char* format : {"7zip", "newc", "odc", "iso9660"}) {
        const std::string path = directory / format;
        directory.write(format, pack(format, members));
        for (const std::string& url : {path, "pipe:cat " + path}) {
            if (url != path && format == std::string("iso9660")) continue;  // not seen in a pipe
            shf_members* sequence = nullptr;
            shf_error error = {};
            ASSERT_EQ(shf_members_open(&sequence, url.c_str(), nullptr, &error), SHF_OK);
            size_t count = 0;
            int32_t code = SHF_OK;
            shf_bytes name;
            std::map<std::string, std::string> seen;
            while ((code = shf_members_next(sequence, &name, &error)) == SHF_OK) {
                ++count;
                std::string data, piece(777, '\0');
                for (size_t size = 1; size > 0;) {
                    ASSERT_EQ(shf_members_read(sequence, piece.data(), piece.size(), &size, &error),
                              SHF_OK)
                        << error.message;
                    data.append(piece, 0, size);
                }
                seen[text_of(name)] = data;
                if (text_of(name) == "link") {
                    shf_bytes target;
                    EXPECT_EQ(shf_members_info(sequence, SHF_MEMBER_KIND),
                              uint64_t{SHF_KIND_SYMBOLIC_LINK});
                    if (shf_members_text(sequence, SHF_MEMBER_LINK, &target) == SHF_OK) {
                        EXPECT_EQ(text_of(target), "x") << format;
                    }
                } else if (shf_members_info(sequence, SHF_MEMBER_KIND) == SHF_KIND_FILE) {
                    EXPECT_EQ(shf_members_info(sequence, SHF_MEMBER_MTIME), 1700000000000000000U)
                        << format;
                    EXPECT_EQ(shf_members_info(sequence, SHF_MEMBER_SIZE), data.size());
                }
            }
            EXPECT_EQ(code, SHF_END) << url << ": " << error.message;
            for (const Packed& m : members) EXPECT_EQ(seen[m.name], m.data) << url << ' ' << m.name;
            shf_members_close(sequence);
        }
    }
}

TEST_F(LibarchiveAccess, streams_mix_them_with_tars) {
    const char* formats[] = {"7zip", "newc", "iso9660"};
    std::vector<std::string> others, tars;
    for (uint64_t i = 0; i < 6; ++i) {
        const std::string number = std::to_string(i);
        directory.write("o" + number,
                        i % 2 == 0 ? pack(formats[i / 2], keyed(i, 40)) : tar_of(keyed(i, 40)));
        directory.write("t" + number, tar_of(keyed(i, 40)));
        others.push_back(directory / ("o" + number));
        tars.push_back(directory / ("t" + number));
    }
    for (const Settings& order :
         {Settings{{"threads", "4"}}, Settings{{"lanes", "3"}},
          Settings{
              {"shuffle", "100"}, {"shuffle_shards", "true"}, {"seed", "7"}, {"epochs", "2"}}}) {
        Client a(others, order), b(tars, order);
        const auto keys = a.keys();
        EXPECT_EQ(keys, b.keys());
        EXPECT_EQ(a.code, SHF_END) << a.message();
        EXPECT_GE(keys.size(), 240U);
    }
    // How many samples they have is known before they are read.
    Client even({others[0], others[2], others[4]},
                {{"even", "drop"}, {"world_size", "3"}, {"rank", "1"}});
    EXPECT_EQ(even.keys().size(), 40U) << even.message();
    EXPECT_EQ(even.code, SHF_END) << even.message();
}

TEST_F(LibarchiveAccess, a_stream_resumes_at_every_sample) {
    directory.write("a.7z", pack("7zip", keyed(0, 25)));
    directory.write("b.cpio", pack("newc", keyed(1, 25)));
    const std::vector<std::string> urls = {directory / "a.7z", directory / "b.cpio"};
    for (const Settings& order :
         {Settings{}, Settings{{"shuffle", "10"}, {"seed", "3"}, {"lanes", "2"}}}) {
        Client whole(urls, order);
        const auto keys = whole.keys();
        ASSERT_EQ(keys.size(), 50U) << whole.message();
        for (size_t at = 0; at <= 50; at += 7) {
            Client first(urls, order);
            std::vector<std::string> seen;
            for (size_t i = 0; i < at; ++i) seen.push_back(key_of(first.next().get()));
            Client second(urls, order);
            ASSERT_EQ(restore(second, save(first)), SHF_OK) << second.message();
            for (const std::string& key : second.keys()) seen.push_back(key);
            EXPECT_EQ(seen, keys) << at;
        }
    }
}

// A source each of whose reads may fail.
class FailingSource final : public Source {
  public:
    FailingSource(std::string_view bytes, std::function<void()> before)
        : bytes_(memory_source(bytes_in(bytes))), before_(std::move(before)) {}
    [[nodiscard]] std::optional<uint64_t> size() const override { return bytes_->size(); }
    [[nodiscard]] bool seekable() const override { return true; }
    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        before_();
        return bytes_->read(offset, out);
    }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        return bytes_->open_sequential(offset);
    }

  private:
    const std::unique_ptr<Source> bytes_;
    const std::function<void()> before_;
};

TEST(LibarchiveReader, calls_that_timed_out_are_repeated) {
    const std::vector<Packed> members = {
        {"a.bin", noise(200000)}, {"b.bin", noise(150000, 2)}, {"c.bin", noise(90000, 3)}};
    for (const auto& [name, bytes] : each_archive(members)) {
        unsigned reads = 0, faults = 0;
        // Each time later, so that every place is met and the end is reached.
        unsigned wait = 1;
        FailingSource source(bytes, [&] {
            if (++reads < wait) return;
            reads = 0;
            ++wait;
            ++faults;
            throw Error(SHF_E_TIMEOUT, "not yet");
        });
        const Options options;
        const Cancel cancel;
        std::unique_ptr<LibarchiveReader> reader;
        const auto patient = [](auto call) {
            for (;;) {
                try {
                    return call();
                } catch (const Error& error) {
                    if (error.code() != SHF_E_TIMEOUT) throw;
                }
            }
        };
        patient([&] { reader = std::make_unique<LibarchiveReader>(source, options, cancel); });
        std::vector<std::string> seen;
        Member member{};
        while (patient([&] { return reader->next(member); })) {
            if (member.kind != MemberKind::file) continue;
            std::string data, piece(5000, '\0');
            const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(piece.data()), piece.size());
            while (const size_t count = patient([&] { return reader->read(out); }))
                data.append(piece, 0, count);
            seen.push_back(data);
        }
        ASSERT_EQ(seen.size(), 3U) << name;
        for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(seen[i] == members[i].data) << name << i;
        EXPECT_GT(faults, 2U) << name;
    }
}

TEST(LibarchiveReader, other_faults_of_a_source_stay) {
    for (const auto& [name, bytes] : each_archive({{"a.bin", noise(200000)}})) {
        for (unsigned fail = 2; fail < 12; ++fail) {
            unsigned reads = 0;
            FailingSource source(bytes, [&] {
                if (++reads >= fail) throw Error(SHF_E_IO, "the disk is gone");
            });
            const Options options;
            const Cancel cancel;
            int32_t code = SHF_OK, again = SHF_OK;
            try {
                LibarchiveReader reader(source, options, cancel);
                Member member{};
                const auto run = [&](int32_t& result) {
                    try {
                        std::string data;
                        while (reader.next(member)) {
                            data.resize(static_cast<size_t>(member.size));
                            if (member.kind == MemberKind::file)
                                reader.read_whole(
                                    {reinterpret_cast<uint8_t*>(data.data()), data.size()});
                        }
                    } catch (const Error& error) {
                        result = error.code();
                    }
                };
                run(code);
                run(again);
            } catch (const Error& error) {
                code = again = error.code();
            }
            EXPECT_EQ(code, reads >= fail ? SHF_E_IO : SHF_OK) << name << fail;
            EXPECT_EQ(again, code) << name << fail;
        }
    }
}

}  // namespace
}  // namespace shf::test
