// In place of the reader, in a build without libarchive.
#include "core/error.h"
#include "libarchive/libarchive_reader.h"

namespace shf {

struct LibarchiveReader::State {};

LibarchiveReader::LibarchiveReader(Source& source, const Options& /*options*/,
                                   const Cancel& /*cancel*/) {
    throw Error(SHF_E_UNSUPPORTED,
                std::string(words_for(other_archive(source))) +
                    ", and this build has no libarchive to read it",
                "build with -Dlibarchive=enabled, or write the archive as tar or ZIP");
}

LibarchiveReader::~LibarchiveReader() = default;

// There is no object to call these of.
bool LibarchiveReader::next(Member& /*member*/) {
    return false;
}
size_t LibarchiveReader::read(std::span<uint8_t> /*out*/) {
    return 0;
}
void LibarchiveReader::read_whole(std::span<uint8_t> /*out*/) {}
bool LibarchiveReader::can_continue() const {
    return false;
}
uint64_t LibarchiveReader::found() const {
    return 0;
}
bool LibarchiveReader::saw_trailing() const {
    return false;
}
bool LibarchiveReader::is_slow() const {
    return false;
}
MemberFlaw LibarchiveReader::flaw() const {
    return MemberFlaw::none;
}
std::optional<uint64_t> LibarchiveReader::crc() const {
    return std::nullopt;
}
uint64_t LibarchiveReader::mode() const {
    return 0;
}
std::optional<uint64_t> LibarchiveReader::uid() const {
    return std::nullopt;
}
std::optional<uint64_t> LibarchiveReader::gid() const {
    return std::nullopt;
}
std::optional<int64_t> LibarchiveReader::mtime() const {
    return std::nullopt;
}
std::string_view LibarchiveReader::link() const {
    return {};
}
std::string_view LibarchiveReader::user() const {
    return {};
}
std::string_view LibarchiveReader::group() const {
    return {};
}

const char* libarchive_version() {
    return nullptr;
}

}  // namespace shf
