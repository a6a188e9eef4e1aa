// The first byte chooses: a page of Hugging Face, the link to the next one, a page of AIStore, a
// URL of either.
#include "core/error.h"
#include "store/ais_store.h"
#include "store/hf_store.h"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        switch (data[0]) {
            case 'h': (void)shf::parse_hf_page(text); break;
            case 'l': (void)shf::next_hf_page(text, "https://h"); break;
            case 'a': (void)shf::parse_ais_page(text); break;
            case 'u': (void)shf::parse_hf_url(text); break;
            default: (void)shf::parse_ais_url(text); break;
        }
    } catch (const shf::Error&) {  // what bad input is to give
    }
    return 0;
}
