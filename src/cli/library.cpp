#include "cli/library.h"

namespace cli {

void fail(int32_t code, const shf_error& error) {
    throw Failure(code == SHF_E_USAGE ? wrong_command_line : failed, error.message, code);
}

uint64_t payload_of(const shf_sample* sample) {
    uint64_t sum = 0;
    for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
        shf_bytes data;
        shf_sample_field(sample, i, nullptr, &data);
        sum += data.size;
    }
    return sum;
}

}  // namespace cli
