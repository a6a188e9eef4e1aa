#include "core/member.h"

namespace shf {

std::optional<Fault> refusal(MemberKind kind) {
    const auto unsupported = [](const char* cause, const char* help) {
        return Fault{
            .code = SHF_E_UNSUPPORTED, .shard = {}, .member = {}, .cause = cause, .help = help};
    };
    switch (kind) {
        case MemberKind::sparse:
            return unsupported("a sparse member", "write the archive without --sparse");
        case MemberKind::multi_volume:
            return unsupported("a piece of a multi-volume member",
                               "write the archive as one volume");
        case MemberKind::unknown:
            return unsupported("a member of unknown type",
                               "write the archive with the types of POSIX, or skip this member");
        default: return std::nullopt;
    }
}

}  // namespace shf
