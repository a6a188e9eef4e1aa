#include "core/fault_encoding.h"

#include "core/sealed_map.h"

#include <algorithm>
#include <string>

namespace shf {

namespace {

constexpr SealedKind fault_kind = {.magic = "shardfeed-fault",
                                   .version = 1,
                                   .what = "the message about a fault",
                                   .help = "use one version of shardfeed on all machines"};

std::string fault_text(const SealedMap& map, std::string_view name) {
    const std::span<const uint8_t> bytes = map.bytes(name);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::vector<uint8_t> encode_fault(const Fault& fault) {
    SealedWriter writer;
    writer.put("code", static_cast<uint64_t>(-static_cast<int64_t>(fault.code)));
    writer.put("os_error", static_cast<uint64_t>(std::max(fault.os_error, 0)));
    writer.put("offset", fault.offset);
    writer.put("unverified", fault.unverified);
    writer.put("shard", std::string_view(fault.shard));
    writer.put("member", std::string_view(fault.member));
    writer.put("cause", std::string_view(fault.cause));
    writer.put("help", std::string_view(fault.help));
    writer.put("key", std::string_view(fault.key));
    const std::span<const uint8_t> bytes = writer.finish(fault_kind);
    return {bytes.begin(), bytes.end()};
}

Fault decode_fault(std::span<const uint8_t> bytes) {
    const SealedMap map(bytes, fault_kind);
    const uint64_t code = map.number("code"), os_error = map.number("os_error");
    if (code == 0 || code > static_cast<uint64_t>(-SHF_E_INTERNAL))
        throw_damaged(fault_kind, "has an unknown class");
    if (os_error > 100'000) throw_damaged(fault_kind, "has no error number");
    Fault fault;
    fault.code = -static_cast<int32_t>(code);
    fault.os_error = static_cast<int>(os_error);
    fault.offset = map.number("offset");
    fault.unverified = map.number("unverified");
    fault.shard = fault_text(map, "shard");
    fault.member = fault_text(map, "member");
    fault.cause = fault_text(map, "cause");
    fault.help = fault_text(map, "help");
    fault.key = fault_text(map, "key");
    return fault;
}

}  // namespace shf
