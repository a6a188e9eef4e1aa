#include "store/refusal.h"

namespace shf {

Error refusal_error(const HttpAnswer& answer, const Refused& refused,
                    std::span<const Refusal> refusals, const char* anonymous_help,
                    const char* credentials_help) {
    const Error plain = answer.error();
    // What they mean does not depend on what the store says: the object is another one.
    if (answer.status == 412 || answer.status == 416) return plain;
    const std::string request = refused.request.empty() ? answer.request_id : refused.request;
    std::string cause = "the server answers " + std::to_string(answer.status);
    // GCC 12 warns of "text" + string at some of these places, without reason.
    if (!refused.code.empty()) cause.append(" ").append(escape(refused.code));
    if (!refused.message.empty()) cause.append(": ").append(escape(refused.message));
    if (!request.empty()) {
        cause.append(" (request ").append(escape(request));
        if (!refused.host.empty()) cause.append(", host ").append(escape(refused.host));
        cause += ')';
    }
    for (const Refusal& refusal : refusals)
        if (refused.code == refusal.code && !(anonymous_help && refusal.error == SHF_E_AUTH))
            return Error(refusal.error, cause, refusal.help);
    if (plain.code() != SHF_E_AUTH) return Error(plain.code(), cause, plain.fault().help);
    return Error(SHF_E_AUTH, cause, anonymous_help ? anonymous_help : credentials_help);
}

}  // namespace shf
