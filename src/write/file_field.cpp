#include "write/file_field.h"

#include "core/checksum.h"
#include "core/error.h"
#include "core/opening.h"
#include "core/options.h"
#include "core/times.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <functional>

namespace shf {

namespace {

[[noreturn]] void rethrow_of(const Error& error, const std::string& path) {
    Fault fault = error.fault();
    fault.cause = "file " + escape(path) + ": " + fault.cause;
    throw FieldFileError(fault);
}

// Calls `take` with all of the file's bytes, in order.
void for_bytes(const FieldFile& file, const std::function<void(std::span<const uint8_t>)>& take) {
    constexpr size_t chunk = size_t{1} << 20;
    const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(chunk);
    uint64_t at = 0;
    while (at < file.size) {
        const auto want = static_cast<size_t>(std::min<uint64_t>(chunk, file.size - at));
        const size_t got = file.read(at, {buffer.get(), want});
        if (got < want) break;
        take({buffer.get(), got});
        at += got;
    }
    if (at < file.size)
        throw FieldFileError(SHF_E_CHANGED,
                             "file " + escape(file.path) + " became shorter while it was added",
                             "add files that nobody writes to");
    // Files of /proc have bytes that their size does not tell.
    uint8_t more = 0;
    if (file.read(at, {&more, 1}) != 0)
        throw FieldFileError(SHF_E_CHANGED,
                             "file " + escape(file.path) + " has more bytes than its size says",
                             "add files that nobody writes to");
    file.check();
}

}  // namespace

void FieldFile::check() const {
    struct stat info = {};
    if (::fstat(file.get(), &info) != 0) rethrow_of(Error::system("stat", errno), path);
    if (static_cast<uint64_t>(info.st_size) != size || nanoseconds(info.st_mtim) != modified)
        throw FieldFileError(SHF_E_CHANGED, "file " + escape(path) + " changed while it was added",
                             "add files that nobody writes to");
}

size_t FieldFile::read(uint64_t offset, std::span<uint8_t> out) const {
    size_t done = 0;
    while (done < out.size()) {
        const ssize_t count = ::pread(file.get(), out.data() + done, out.size() - done,
                                      static_cast<off_t>(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) rethrow_of(Error::system("read", errno), path);
        if (count == 0) break;
        done += static_cast<size_t>(count);
    }
    return done;
}

FieldFile open_field(const std::string& path) {
    FieldFile field;
    field.path = path;
    try {
        // A FIFO must not keep the call waiting for its writer.
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) throw system_error("open", errno);
        field.file = Descriptor(fd);
        struct stat info = {};
        if (::fstat(fd, &info) != 0) throw Error::system("stat", errno);
        if (!S_ISREG(info.st_mode))
            throw Error(SHF_E_USAGE, "this is no regular file", "give its bytes instead");
        field.size = static_cast<uint64_t>(info.st_size);
        field.modified = nanoseconds(info.st_mtim);
    } catch (const Error& error) {
        rethrow_of(error, path);
    }
    return field;
}

void read_field(const FieldFile& file, std::vector<uint8_t>& out) {
    for_bytes(file, [&](std::span<const uint8_t> bytes) {
        out.insert(out.end(), bytes.begin(), bytes.end());
    });
}

void read_source(Source& source, const Options& options, std::vector<uint8_t>& out) {
    constexpr size_t most_at_once = size_t{1} << 20;
    const auto limit = static_cast<uint64_t>(options.memory);
    const std::unique_ptr<Sequential> reader = source.open_sequential(0);
    const size_t start = out.size();
    size_t end = start;
    for (size_t chunk = 64 * 1024;; chunk = std::min(2 * chunk, most_at_once)) {
        Opening::check();
        out.resize(end + chunk);
        const size_t count = reader->read(std::span(out).subspan(end));
        if (count == 0) break;
        end += count;
        if (end - start > limit)
            throw Error(SHF_E_LIMIT, "it has more bytes than memory=" + std::to_string(limit),
                        "raise memory");
    }
    out.resize(end);
    reader->finish();
}

uint32_t copy_file(const FieldFile& file, ShardOutput& output) {
    uint32_t crc = 0;
    for_bytes(file, [&](std::span<const uint8_t> bytes) {
        crc = crc32(bytes, crc);
        output.write(bytes);
    });
    return crc;
}

uint32_t crc32_of(const FieldFile& file) {
    uint32_t crc = 0;
    for_bytes(file, [&](std::span<const uint8_t> bytes) { crc = crc32(bytes, crc); });
    return crc;
}

}  // namespace shf
