// The first byte chooses: a page of a list, a refusal, a connection string, a token in JSON, a URL,
// base64.
#include "core/error.h"
#include "http/libcrypto.h"
#include "store/azure_credentials.h"
#include "store/azure_store.h"
#include "store/azure_token.h"
#include "store/azure_xml.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        switch (data[0]) {
            case 'l': (void)shf::parse_azure_page(text); break;
            case 'e': (void)shf::parse_azure_fault(text); break;
            case 'c': (void)shf::parse_azure_connection(text, "f"); break;
            case 'j': (void)shf::parse_azure_token(text, "x", 0); break;
            case 'u': {
                const shf::AzureUrl url = shf::parse_azure_url(text);
                // Of the name of the same blob, the same request.
                if (!url.blob.empty() &&
                    shf::parse_azure_url(shf::azure_url_of(url.blob, url, text)).target !=
                        url.target)
                    std::abort();
                break;
            }
            default:
                if (const auto bytes = shf::base64_decode(text);
                    bytes && shf::base64_encode(*bytes) != text)
                    std::abort();
                break;
        }
    } catch (const shf::Error&) {  // what bad input is to give
    }
    return 0;
}
