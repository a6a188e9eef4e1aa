// shf_archive_*.
#include "api/handles.h"
#include "dataset/archive.h"

#include <limits>
#include <string>
#include <vector>

using shf::Error;
using shf::guard_without_skips;

struct shf_archive {
    shf::Archive archive;
};

namespace {

// Throws Error(USAGE).
const shf::Archive& checked(const shf_archive* archive) {
    if (!archive) throw Error(SHF_E_USAGE, "the archive is NULL");
    return archive->archive;
}

const shf::Archive& checked(const shf_archive* archive, uint64_t position) {
    const shf::Archive& checked_archive = checked(archive);
    if (const uint64_t count = checked_archive.members().count(); position >= count)
        throw Error(SHF_E_USAGE, "position " + std::to_string(position) + " of an archive with " +
                                     shf::plural(count, "member"));
    return checked_archive;
}

}  // namespace

extern "C" {

int32_t shf_archive_open(shf_archive** out, const char* url, const shf_options* options,
                         shf_error* error) {
    if (out) *out = nullptr;
    return guard_without_skips(error, [&] {
        if (!out || !url) throw Error(SHF_E_USAGE, "shf_archive_open: out or url is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        *out = new shf_archive{{std::string(url), values}};
        return SHF_OK;
    });
}

int32_t shf_archive_open_memory(shf_archive** out, const void* data, size_t size,
                                const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard_without_skips(error, [&] {
        if (!out || !data) throw Error(SHF_E_USAGE, "shf_archive_open_memory: out or data is NULL");
        const std::span file(static_cast<const uint8_t*>(data), size);
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        *out = new shf_archive{{file, values}};
        return SHF_OK;
    });
}

void shf_archive_close(shf_archive* archive) {
    delete archive;
}

uint64_t shf_archive_member_count(const shf_archive* archive) {
    return archive ? archive->archive.members().count() : 0;
}

int32_t shf_archive_find(const shf_archive* archive, const char* name, size_t name_size,
                         uint64_t* position, shf_error* error) {
    if (position) *position = 0;
    return guard_without_skips(error, [&] {
        if (!position || (!name && name_size > 0))
            throw Error(SHF_E_USAGE, "shf_archive_find: position or name is NULL");
        *position = checked(archive).find(shf::name_of(name, name_size));
        return SHF_OK;
    });
}

int32_t shf_archive_name(const shf_archive* archive, uint64_t position, shf_bytes* out) {
    if (out) *out = {nullptr, 0};
    if (!archive || !out) return SHF_E_USAGE;
    const shf::Members& members = archive->archive.members();
    if (position >= members.count()) return SHF_E_NOT_FOUND;
    *out = shf::borrowed(members.name(static_cast<size_t>(position)));
    return SHF_OK;
}

uint64_t shf_archive_info(const shf_archive* archive, uint64_t position, int32_t what) {
    constexpr uint64_t nothing = std::numeric_limits<uint64_t>::max();
    if (!archive || position >= archive->archive.members().count()) return nothing;
    const shf::MemberInfo info = archive->archive.members().info(static_cast<size_t>(position));
    switch (what) {
        case SHF_MEMBER_SIZE: return info.size;
        case SHF_MEMBER_STORED: return info.stored_size;
        case SHF_MEMBER_METHOD: return info.method;
        case SHF_MEMBER_CRC32: return info.crc;
        case SHF_MEMBER_OFFSET: return info.offset;
        case SHF_MEMBER_KIND: return static_cast<uint64_t>(info.kind);
        default: return nothing;
    }
}

int32_t shf_archive_read(const shf_archive* archive, uint64_t position, void* buffer,
                         size_t capacity, shf_error* error) {
    return guard_without_skips(error, [&] {
        const shf::Archive& source = checked(archive, position);
        const uint64_t size = source.members().info(static_cast<size_t>(position)).size;
        // A size is a claim: whoever asks how much memory it takes learns first that it is refused.
        if (size > capacity) source.check(static_cast<size_t>(position));
        if (size > capacity || (!buffer && size > 0))
            throw Error(SHF_E_USAGE, "the buffer of " + shf::plural(capacity, "byte") +
                                         " is too small for the member of " + std::to_string(size));
        source.read(static_cast<size_t>(position),
                    {static_cast<uint8_t*>(buffer), static_cast<size_t>(size)});
        return SHF_OK;
    });
}

int32_t shf_archive_read_many(const shf_archive* archive, const uint64_t* positions, size_t count,
                              void* const* buffers, shf_error* error) {
    return guard_without_skips(error, [&] {
        if (count > 0 && (!positions || !buffers))
            throw Error(SHF_E_USAGE, "shf_archive_read_many: positions or buffers is NULL");
        std::vector<uint8_t*> outputs(count);
        for (size_t i = 0; i < count; ++i) {
            const auto& members = checked(archive, positions[i]).members();
            if (!buffers[i] && members.info(static_cast<size_t>(positions[i])).size > 0)
                throw Error(SHF_E_USAGE, "buffers[" + std::to_string(i) + "] is NULL");
            outputs[i] = static_cast<uint8_t*>(buffers[i]);
        }
        checked(archive).read_many({positions, count}, outputs);
        return SHF_OK;
    });
}

int32_t shf_archive_view(const shf_archive* archive, uint64_t position, shf_bytes* out,
                         shf_error* error) {
    if (out) *out = {nullptr, 0};
    return guard_without_skips(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_archive_view: out is NULL");
        const auto bytes = checked(archive, position).view(static_cast<size_t>(position));
        *out = {bytes.data(), bytes.size()};
        return SHF_OK;
    });
}
}
