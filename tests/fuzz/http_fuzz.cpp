// Header lines of an HTTP answer, one a line.
#include "http/http_answer.h"
#include "http/object_digest.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    shf::HttpAnswer answer;
    answer.status = size > 0 ? 200 + data[0] : 200;
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        answer.add_header(rest.substr(0, end));
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    (void)answer.total();
    (void)answer.pause();
    (void)answer.error();
    for (const shf::ObjectDigest& digest : shf::digests_of(answer))
        if (digest.bytes.size() < 4 || digest.bytes.size() > 64) __builtin_trap();
    return answer.strong_tag().size() > answer.etag.size();
}
