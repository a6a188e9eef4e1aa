// The first byte chooses: a page of a list, a step of a copy, a refusal, a token, a file of
// credentials, the answer of the source of an external account.
#include "core/error.h"
#include "store/gs_json.h"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        switch (data[0]) {
            case 'l': (void)shf::parse_gs_page(text); break;
            case 'r': (void)shf::parse_gs_rewrite(text); break;
            case 'e': (void)shf::parse_gs_fault(text); break;
            case 't': (void)shf::parse_gs_token(text, 0); break;
            case 'c': (void)shf::parse_gs_account(text, "f"); break;
            default: (void)shf::subject_token(text, "v"); break;
        }
    } catch (const shf::Error&) {  // what bad input is to give
    }
    return 0;
}
