#include "core/error.h"
#include "libarchive/libarchive_reader.h"

namespace shf {

Fault fault_of(MemberFlaw flaw, uint64_t size) {
    const auto fault = [](int32_t code, std::string cause, const char* help) {
        return Fault{
            .code = code, .shard = {}, .member = {}, .cause = std::move(cause), .help = help};
    };
    switch (flaw) {
        case MemberFlaw::encrypted:
            return fault(SHF_E_UNSUPPORTED, "an encrypted member", "decrypt it first");
        case MemberFlaw::no_size:
            return fault(SHF_E_UNSUPPORTED, "a member whose size the archive does not say",
                         "write the archive as tar or ZIP");
        case MemberFlaw::ratio:
            return fault(SHF_E_LIMIT,
                         "with this member of " + plural(size, "byte") +
                             " the archive would become larger than max_ratio allows",
                         "raise max_ratio");
        case MemberFlaw::none: break;
    }
    return fault(SHF_E_INTERNAL, "no flaw", "");
}

}  // namespace shf
