// The first byte chooses: a page of a list, one of uploads, a refusal, a file of aws, the keys of
// STS, those in JSON, a command.
#include "core/error.h"
#include "store/aws_chain.h"
#include "store/s3_xml.h"

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        switch (data[0]) {
            case 'l': (void)shf::parse_s3_page(text); break;
            case 'u': (void)shf::parse_s3_uploads(text); break;
            case 'e': (void)shf::parse_s3_fault(text); break;
            case 'c': (void)shf::parse_aws_file(text, "f"); break;
            case 's': (void)shf::parse_sts_keys(text); break;
            case 'j': (void)shf::parse_json_keys(text, "x", {"A", "S", "T", "E"}); break;
            default: (void)shf::words_of_command(text); break;
        }
    } catch (const shf::Error&) {  // what bad input is to give
    }
    return 0;
}
