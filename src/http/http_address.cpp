#include "http/http_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace shf {

namespace {

struct Block {
    uint32_t start;
    unsigned bits;
};
// RFC 6890, table 1 and following: what is not reachable from everywhere.
constexpr std::array private_blocks = {
    Block{0x00000000, 8},  Block{0x0a000000, 8},  Block{0x64400000, 10}, Block{0x7f000000, 8},
    Block{0xa9fe0000, 16}, Block{0xac100000, 12}, Block{0xc0000000, 24}, Block{0xc0a80000, 16},
    Block{0xc6120000, 15}, Block{0xe0000000, 4},  Block{0xf0000000, 4},
};

bool is_public_v4(uint32_t address) {
    for (const Block& block : private_blocks)
        if (address >> (32 - block.bits) == block.start >> (32 - block.bits)) return false;
    return true;
}

}  // namespace

bool is_public_address(std::string_view address) {
    const std::string text(address.substr(0, address.find('%')));  // without a zone
    in_addr four = {};
    if (inet_pton(AF_INET, text.c_str(), &four) == 1) return is_public_v4(ntohl(four.s_addr));
    in6_addr six = {};
    if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return false;
    const std::span<const uint8_t, 16> bytes(six.s6_addr);
    if (IN6_IS_ADDR_V4MAPPED(&six) || IN6_IS_ADDR_V4COMPAT(&six)) {
        const uint32_t last = static_cast<uint32_t>(bytes[12]) << 24 |
                              static_cast<uint32_t>(bytes[13]) << 16 |
                              static_cast<uint32_t>(bytes[14]) << 8 | bytes[15];
        return is_public_v4(last);
    }
    // Global unicast is 2000::/3 (RFC 4291, 2.4); NAT64 leads to an IPv4 address (RFC 6052).
    if (bytes[0] == 0x00 && bytes[1] == 0x64 && bytes[2] == 0xff && bytes[3] == 0x9b) return false;
    return (bytes[0] & 0xe0) == 0x20;
}

}  // namespace shf
