// shf_members_*.
#include "api/handles.h"
#include "member/member_sequence.h"

#include <limits>
#include <memory>
#include <string>

using shf::Error;
using shf::guard_without_skips;

struct shf_members : shf::Exclusive {
    std::unique_ptr<shf::MemberSequence> sequence;
};

namespace {

constexpr const char* members_noun = "sequence of members";

}  // namespace

extern "C" {

int32_t shf_members_open(shf_members** out, const char* url, const shf_options* options,
                         shf_error* error) {
    if (out) *out = nullptr;
    return guard_without_skips(error, [&] {
        if (!out || !url) throw Error(SHF_E_USAGE, "shf_members_open: out or url is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::stream);
        auto members = std::make_unique<shf_members>();
        members->sequence = std::make_unique<shf::MemberSequence>(std::string(url), values);
        *out = members.release();
        return SHF_OK;
    });
}

int32_t shf_members_next(shf_members* members, shf_bytes* name, shf_error* error) {
    if (name) *name = {nullptr, 0};
    return guard_without_skips(error, [&] {
        const shf::ExclusiveCall call(members, members_noun);
        if (!members->sequence->next()) return SHF_END;
        if (name) *name = shf::borrowed(members->sequence->name());
        return SHF_OK;
    });
}

uint64_t shf_members_info(const shf_members* members, int32_t what) {
    return members ? members->sequence->number(what).value_or(std::numeric_limits<uint64_t>::max())
                   : std::numeric_limits<uint64_t>::max();
}

int32_t shf_members_text(const shf_members* members, int32_t what, shf_bytes* out) {
    if (out) *out = {nullptr, 0};
    if (!members || !out) return SHF_E_USAGE;
    const std::string_view text = members->sequence->text(what);
    if (text.empty()) return SHF_E_NOT_FOUND;
    *out = shf::borrowed(text);
    return SHF_OK;
}

int32_t shf_members_read(shf_members* members, void* buffer, size_t capacity, size_t* size,
                         shf_error* error) {
    if (size) *size = 0;
    return guard_without_skips(error, [&] {
        const shf::ExclusiveCall call(members, members_noun);
        if (!size || !buffer || capacity == 0)
            throw Error(SHF_E_USAGE, "shf_members_read: size or buffer is NULL, or capacity is 0");
        *size = members->sequence->read({static_cast<uint8_t*>(buffer), capacity});
        return SHF_OK;
    });
}

void shf_members_cancel(shf_members* members) {
    if (members && !members->forked()) members->sequence->cancel();
}

void shf_members_close(shf_members* members) {
    if (!members) return;
    // In a forked child descriptors and commands are the parent's.
    if (members->forked()) (void)members->sequence.release();
    delete members;
}
}
