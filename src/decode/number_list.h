// Lists of whole numbers in JSON: tokens of a text, a mask over them.
#pragma once

#include "decode/decoder.h"

#include <memory>
#include <string>

namespace shf {

// A JSON list of whole numbers of 64 bits: int64, one dimension. With a name it is that member of a
// JSON object; of several with this name the last one, as json.loads has it. Faults say which byte
// of the field is wrong.
std::unique_ptr<Decoder> list_decoder(std::string member, uint64_t max_decoded);

}  // namespace shf
