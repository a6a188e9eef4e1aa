// JSON and MessagePack of samples, for people to read and for checks. Parsed in one pass, so that a
// large document takes no more memory than what is shown of it, and only so deep.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cli {

enum class Encoding { json, msgpack };

// The document with a value on each line, cut after `size` bytes with "..."; nothing for bytes that
// are no such document.
std::optional<std::string> document_text(std::string_view bytes, Encoding encoding, size_t size);

// What is wrong with the document; empty when it is whole.
std::string document_fault(std::string_view bytes, Encoding encoding);

}  // namespace cli
