#include "tar/tar_header.h"

#include <algorithm>
#include <array>

namespace shf {

namespace {

constexpr size_t block = 512, name_room = 100, prefix_room = 155;
constexpr uint64_t largest_octal = (uint64_t{1} << 33) - 1;  // eleven digits

struct PrefixedName {
    std::string_view prefix, name;
    bool fits = false;
};

// A name of more than 100 bytes may be cut at a slash, which is then left out.
PrefixedName split(std::string_view name) {
    if (name.size() <= name_room) return {{}, name, true};
    if (name.size() > prefix_room + 1 + name_room) return {};
    const size_t slash = name.find('/', name.size() - name_room - 1);
    if (slash == name.npos || slash > prefix_room || slash == 0 || slash + 1 == name.size())
        return {};
    return {name.substr(0, slash), name.substr(slash + 1), true};
}

void put_octal(char* field, size_t digits, uint64_t value) {
    for (size_t i = digits; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

void append_block(std::string& out, const PrefixedName& name, uint64_t size, char type,
                  const TarOwner& owner) {
    std::array<char, block> header = {};
    const auto put = [&](size_t at, std::string_view text) {
        std::copy(text.begin(), text.end(), header.begin() + static_cast<ptrdiff_t>(at));
    };
    put(0, name.name.substr(0, name_room));
    put_octal(&header[100], 7, owner.mode);
    put_octal(&header[108], 7, owner.id);
    put_octal(&header[116], 7, owner.id);
    put_octal(&header[124], 11, size);
    put_octal(&header[136], 11, owner.modified);
    put(148, "        ");
    header[156] = type;
    put(257, "ustar");
    put(263, "00");
    put(265, owner.name);
    put(297, owner.name);
    put(329, "0000000");
    put(337, "0000000");
    put(345, name.prefix);
    uint64_t sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put_octal(&header[148], 6, sum);
    header[154] = '\0';
    out.append(header.data(), header.size());
}

// "LENGTH KEY=VALUE\n", whose length counts itself.
void append_record(std::string& out, std::string_view key, std::string_view value) {
    const size_t rest = 1 + key.size() + 1 + value.size() + 1;
    size_t length = rest + 1;
    while (length != rest + std::to_string(length).size())
        length = rest + std::to_string(length).size();
    out += std::to_string(length);
    out += ' ';
    out += key;
    out += '=';
    out += value;
    out += '\n';
}

std::string pax_records(std::string_view name, uint64_t size, const PrefixedName& split_name) {
    std::string records;
    if (!split_name.fits) append_record(records, "path", name);
    if (size > largest_octal) append_record(records, "size", std::to_string(size));
    return records;
}

}  // namespace

TarOwner tarp_owner(uint64_t now) {
    return {.mode = 0755, .id = 1000, .name = "bigdata", .modified = now < 2 ? 0 : now - 2};
}

void append_tar_header(std::string& out, std::string_view name, uint64_t size,
                       const TarOwner& owner) {
    const PrefixedName parts = split(name);
    const std::string records = pax_records(name, size, parts);
    if (!records.empty()) {
        // The name is for readers that know no pax headers, and take them for files.
        append_block(out, {{}, "PaxHeaders/shardfeed", true}, records.size(), 'x', {});
        out += records;
        out.append(tar_padding(records.size()), '\0');
    }
    append_block(out, parts.fits ? parts : PrefixedName{{}, name, true},
                 size > largest_octal ? 0 : size, '0', owner);
}

uint64_t tar_header_size(std::string_view name, uint64_t size) {
    const size_t records = pax_records(name, size, split(name)).size();
    return block + (records == 0 ? 0 : block + records + tar_padding(records));
}

size_t tar_end_size(uint64_t position) {
    constexpr uint64_t record = 20 * block;
    const uint64_t end = position + 2 * block;
    return static_cast<size_t>(2 * block + (record - end % record) % record);
}

}  // namespace shf
