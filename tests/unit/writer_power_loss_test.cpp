// A loss of power while a writer writes. What it asks of the system is recorded; a state of the
// disk has all that fsync has brought there, and of the rest any pages in any order. Names change
// in their order, as journals of file systems keep it, up to any point after the last fsync of the
// folder. Whatever is found then: published shards are whole, and no acknowledged sample is lost.
#include "written_shards.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <fcntl.h>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

constexpr uint64_t page = 4096;

enum class Kind : uint8_t {
    create,
    write,
    cut,
    sync,
    link,
    unlink,
    rename,
    sync_folder,
    acknowledge
};

struct Step {
    Kind kind;
    int file = -1;
    uint64_t at = 0;             // of a write; the new size; how many samples
    std::string bytes, to = {};  // of a write; names
};

// What happens in one folder. The calls below come here.
struct Recorder {
    std::mutex mutex;  // held while a call runs, so that steps are in the order of the calls
    std::string folder;
    std::vector<Step> steps;
    std::map<int, int> files;        // of a descriptor
    std::map<int, uint64_t> places;  // where the next write goes, by descriptor
    std::map<int, bool> folders;
    int made = 0;

    // The name in the folder; empty: it is elsewhere.
    [[nodiscard]] std::string name(const char* path) const {
        const std::string text = path;
        return !folder.empty() && text.starts_with(folder) ? text.substr(folder.size()) : "";
    }
    void forget(int fd) {
        files.erase(fd);
        places.erase(fd);
        folders.erase(fd);
    }
};

Recorder& recorder() {
    static Recorder* const one = new Recorder;  // other threads may write until the end
    return *one;
}

int open_recorded(const char* path, int flags, mode_t mode) {
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    if (fd < 0) return fd;
    r.forget(fd);
    const std::string name = r.name(path);
    if ((flags & O_DIRECTORY) != 0 && std::string(path) + "/" == r.folder) r.folders[fd] = true;
    if (name.empty() || (flags & O_CREAT) == 0) return fd;
    r.files[fd] = r.made;
    r.places[fd] = 0;
    r.steps.push_back({.kind = Kind::create, .file = r.made++, .bytes = name});
    return fd;
}

int sync_recorded(int fd, long call) {
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    const auto result = static_cast<int>(::syscall(call, fd));
    if (result == 0 && r.files.contains(fd))
        r.steps.push_back({.kind = Kind::sync, .file = r.files[fd], .bytes = {}});
    if (result == 0 && r.folders.contains(fd))
        r.steps.push_back({.kind = Kind::sync_folder, .bytes = {}});
    return result;
}

int cut_recorded(int fd, off_t size) {
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    const auto result = static_cast<int>(::syscall(SYS_ftruncate, fd, size));
    if (result == 0 && r.files.contains(fd)) {
        r.steps.push_back(
            {.kind = Kind::cut, .file = r.files[fd], .at = uint64_t(size), .bytes = {}});
        r.places[fd] = static_cast<uint64_t>(size);  // lseek follows
    }
    return result;
}

int names_recorded(Kind kind, long result, const char* from, const char* to) {
    Recorder& r = recorder();
    if (result == 0 && !r.name(from).empty())
        r.steps.push_back({.kind = kind, .bytes = r.name(from), .to = to ? r.name(to) : ""});
    return static_cast<int>(result);
}

}  // namespace

// The library of this program calls these instead of those of the C library, under the names that
// both are compiled to (open64).
extern "C" {

int open(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const auto mode = static_cast<mode_t>(va_arg(list, int));
    va_end(list);
    return open_recorded(path, flags, mode);
}
ssize_t write(int fd, const void* bytes, size_t size) {
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    const ssize_t count = ::syscall(SYS_write, fd, bytes, size);
    if (count > 0 && r.files.contains(fd)) {
        r.steps.push_back({.kind = Kind::write,
                           .file = r.files[fd],
                           .at = r.places[fd],
                           .bytes = {static_cast<const char*>(bytes), static_cast<size_t>(count)}});
        r.places[fd] += static_cast<uint64_t>(count);
    }
    return count;
}
int close(int fd) {
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    r.forget(fd);
    return static_cast<int>(::syscall(SYS_close, fd));
}
int fsync(int fd) {
    return sync_recorded(fd, SYS_fsync);
}
int fdatasync(int fd) {
    return sync_recorded(fd, SYS_fdatasync);
}
int ftruncate(int fd, off_t size) noexcept {
    return cut_recorded(fd, size);
}
int link(const char* from, const char* to) noexcept {
    const std::lock_guard lock(recorder().mutex);
    return names_recorded(Kind::link, ::syscall(SYS_link, from, to), from, to);
}
int unlink(const char* path) noexcept {
    const std::lock_guard lock(recorder().mutex);
    return names_recorded(Kind::unlink, ::syscall(SYS_unlink, path), path, nullptr);
}
int rename(const char* from, const char* to) noexcept {
    const std::lock_guard lock(recorder().mutex);
    return names_recorded(Kind::rename, ::syscall(SYS_rename, from, to), from, to);
}

}  // extern "C"

namespace {

using Names = std::map<std::string, int>;

// WRITER_POWER_LOSS_STATES=5000 is the campaign.
int states() {
    const char* const wanted = std::getenv("WRITER_POWER_LOSS_STATES");
    return wanted ? std::atoi(wanted) : 100;
}

void change_names(Names& names, const Step& step) {
    switch (step.kind) {
        case Kind::create: names[step.bytes] = step.file; break;
        case Kind::link: names[step.to] = names.at(step.bytes); break;
        case Kind::unlink: names.erase(step.bytes); break;
        case Kind::rename:
            names[step.to] = names.at(step.bytes);
            names.erase(step.bytes);
            break;
        default: break;
    }
}

void put(std::string& file, uint64_t at, const std::string& bytes) {
    if (file.size() < at + bytes.size()) file.resize(at + bytes.size());
    file.replace(at, bytes.size(), bytes);
}

// The bytes of `file` when the power goes after `end` steps: all that was synchronised, and some
// pages of what was not. With `all` everything.
std::string left_of(const std::vector<Step>& steps, size_t end, int file, std::mt19937& random,
                    bool all) {
    size_t synced = 0;
    for (size_t i = 0; i < end; ++i)
        if (steps[i].file == file && steps[i].kind == Kind::sync) synced = i;
    std::string bytes;
    for (size_t i = 0; i < end; ++i) {
        const Step& step = steps[i];
        if (step.file != file) continue;
        const bool sure = all || i < synced;
        if (step.kind == Kind::cut && (sure || random() % 2 == 0)) bytes.resize(step.at);
        if (step.kind != Kind::write) continue;
        if (sure || random() % 3 == 0) {
            put(bytes, step.at, step.bytes);
            continue;
        }
        for (uint64_t done = 0; done < step.bytes.size();) {
            const uint64_t at = step.at + done;
            const uint64_t count = std::min<uint64_t>(page - at % page, step.bytes.size() - done);
            if (random() % 2 == 0) put(bytes, at, step.bytes.substr(done, count));
            done += count;
        }
    }
    return bytes;
}

class WriterPowerLoss : public testing::TestWithParam<bool> {};

TEST_P(WriterPowerLoss, loses_nothing_acknowledged_and_tears_no_shard) {
    const TempDirectory folder, disk;
    Recorder& r = recorder();
    r.folder = folder / "";
    r.steps.clear();
    {
        WriterClient client(folder / "a-%03d.tar",
                            {{"max_samples", std::to_string(numbered_samples)},
                             {"write_index", GetParam() ? "true" : "false"}});
        for (uint64_t i = 0; i < 4 * numbered_samples; ++i) {
            write_numbered(client, i);
            ASSERT_EQ(client.code, SHF_OK) << client.message();
            if (i % 25 != 24) continue;
            ASSERT_EQ(shf_writer_flush(client.writer, 1, &client.error), SHF_OK);
            const std::lock_guard lock(r.mutex);
            r.steps.push_back({.kind = Kind::acknowledge, .at = i + 1, .bytes = {}});
        }
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        const std::lock_guard lock(r.mutex);
        r.steps.push_back({.kind = Kind::acknowledge, .at = 4 * numbered_samples, .bytes = {}});
    }
    r.folder.clear();
    const std::vector<Step> steps = std::move(r.steps);
    std::mt19937 random(GetParam() ? 5 : 6);
    // What was recorded is what is there.
    Names names;
    for (const Step& step : steps) change_names(names, step);
    ASSERT_EQ(names.size(), names_in(folder / "").size());
    ASSERT_GE(names.size(), GetParam() ? 8U : 4U);
    for (const auto& [name, file] : names)
        ASSERT_TRUE(left_of(steps, steps.size(), file, random, true) ==
                    bytes_of_file(folder / name))
            << name;
    uint64_t lost = 0;  // states that lack something
    for (int state = 0; state < states(); ++state) {
        const size_t end = random() % (steps.size() + 1);
        size_t sure = 0;
        uint64_t acknowledged = 0;
        for (size_t i = 0; i < end; ++i) {
            if (steps[i].kind == Kind::sync_folder) sure = i;
            if (steps[i].kind == Kind::acknowledge) acknowledged = steps[i].at;
        }
        const size_t named = sure + random() % (end - sure + 1);
        Names found;
        for (size_t i = 0; i < named; ++i) change_names(found, steps[i]);
        const std::string place = disk / std::to_string(state);
        fs::create_directories(place);
        for (const auto& [name, file] : found) {
            const std::string left = left_of(steps, end, file, random, false);
            if (left != left_of(steps, end, file, random, true)) ++lost;
            std::ofstream(place + "/" + name, std::ios::binary) << left;
        }
        const testing::ScopedTrace trace(
            __FILE__, __LINE__,
            "state " + std::to_string(state) + ", after step " + std::to_string(end));
        check_numbered(place, acknowledged, true);
        if (HasFailure()) return;
        fs::remove_all(place);
    }
    EXPECT_GT(lost, static_cast<uint64_t>(states()) / 10);
}

INSTANTIATE_TEST_SUITE_P(Shards, WriterPowerLoss, testing::Bool());

}  // namespace
