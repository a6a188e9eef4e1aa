#include "interop/dali_index.h"

#include "core/error.h"
#include "sample/name.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace shf {

namespace {

constexpr std::string_view blanks = " \t\n\v\f\r";  // what DALI separates at: isspace(), C locale
constexpr std::string_view names[] = {"v1.0", "v1.1", "v1.2"};
constexpr const char* dali_help = "make the index again from this shard";

std::string_view next_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

std::optional<uint64_t> number(std::string_view word) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
}

// wds2idx takes names from what GNU tar prints, where a backslash, and each byte that the locale
// cannot print, is escaped as in C: of all others than ASCII in the locale C.
std::string without_escapes(std::string_view word) {
    constexpr std::string_view letters = "abtnvfr\\", bytes = "\a\b\t\n\v\f\r\\";
    const auto is_octal = [](char c, char largest) { return c >= '0' && c <= largest; };
    std::string text;
    while (!word.empty()) {
        size_t used = 1;
        char byte = word[0];
        if (byte == '\\' && word.size() >= 4 && is_octal(word[1], '3') && is_octal(word[2], '7') &&
            is_octal(word[3], '7')) {
            used = 4;
            byte = static_cast<char>((word[1] - '0') * 64 + (word[2] - '0') * 8 + word[3] - '0');
        } else if (byte == '\\' && word.size() >= 2) {
            if (const size_t i = letters.find(word[1]); i != letters.npos) {
                used = 2;
                byte = bytes[i];
            }
        }
        text += byte;
        word.remove_prefix(used);
    }
    return text;
}

Error malformed(const std::string& what) {
    return Error(SHF_E_FORMAT, what, dali_help);
}

// The lines of a file.
struct Text {
    DaliVersion version;
    std::vector<std::string_view> samples;

    explicit Text(std::string_view text) {
        std::string_view head = next_line(text);
        const std::string_view name = next_word(head), count = next_word(head);
        const auto* found = std::find(std::begin(names), std::end(names), name);
        if (found == std::end(names)) {
            if (name.size() < 2 || name[0] != 'v' || name[1] < '0' || name[1] > '9')
                throw malformed("line 1: \"" + escape(name) + "\" is not the version of an index");
            throw Error(SHF_E_UNSUPPORTED, "line 1: an index of version " + escape(name),
                        "v1.0, v1.1 and v1.2 are known");
        }
        version = static_cast<DaliVersion>(found - std::begin(names));
        const auto claimed = number(count);
        if (!claimed || *claimed == 0 || !next_word(head).empty())
            throw malformed("line 1: \"" + escape(count) + "\" is not the number of samples");
        while (!text.empty()) {
            const std::string_view line = next_line(text);
            if (samples.size() < *claimed)
                samples.push_back(line);
            else if (line.find_first_not_of(blanks) != line.npos)
                throw malformed("line 1 says " + plural(*claimed, "sample") +
                                ", and more lines follow");
        }
        if (samples.size() < *claimed)
            throw malformed("line 1 says " + plural(*claimed, "sample") + ", and " +
                            std::to_string(samples.size()) + " lines follow");
    }

  private:
    static std::string_view next_line(std::string_view& text) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        return line;
    }
};

enum class Columns : uint8_t {
    extension_offset_size_name,
    extension_offset_size,
    extension_size_offset
};

// How far a file agrees with the shard, and what is wrong then.
struct DaliDifference {
    size_t sample, component;
    Error error;
};

// The samples of a shard as somebody sees them.
struct View {
    const TarFiles& files;
    SplitName split;
    bool lowered;  // extensions may be lower-cased
    FileGroups groups{files, split};
};

bool same_name(std::string_view name, std::string_view claimed) {
    return claimed == name ||
           (claimed.find('\\') != claimed.npos && without_escapes(claimed) == name);
}

// Compares one component, whose words are taken from the front of `line`. Returns what is wrong.
std::optional<Error> compare(std::string_view& line, const View& view, uint32_t file,
                             Columns columns) {
    const TarFiles::File& truth = view.files[file];
    const std::string_view name = view.files.name(file), field = view.split(name).field;
    const std::string_view extension = next_word(line);
    if (extension.empty()) return malformed("lacks member \"" + escape(name) + "\" of the shard");
    const auto first = number(next_word(line)), second = number(next_word(line));
    if (!first || !second)
        return malformed("has no offset and size after \"" + escape(extension) + "\"");
    if (!same_name(field, extension) && !(view.lowered && same_lowered(field, extension)))
        return malformed("has the extension \"" + escape(extension) + "\" where the shard has \"" +
                         escape(field) + "\", member \"" + escape(name) + "\"");
    const bool swapped = columns == Columns::extension_size_offset;
    const uint64_t offset = swapped ? *second : *first, size = swapped ? *first : *second;
    const auto differs = [&](const char* what, uint64_t claimed, uint64_t value, const char* help) {
        return Error(SHF_E_FORMAT,
                     "has " + std::string(what) + " " + std::to_string(claimed) + " for member \"" +
                         escape(name) + "\", the shard has " + std::to_string(value),
                     help);
    };
    if (offset != truth.data)
        return differs("offset", offset, truth.data,
                       offset == truth.header + 512
                           ? "wds2idx is wrong about GNU long names: let shardfeed make the index"
                           : dali_help);
    if (size != truth.size) return differs("size", size, truth.size, dali_help);
    if (columns == Columns::extension_offset_size_name)
        if (const std::string_view claimed = next_word(line); !same_name(name, claimed))
            return malformed("has the name \"" + escape(claimed) + "\" where the shard has \"" +
                             escape(name) + "\"");
    return std::nullopt;
}

std::optional<DaliDifference> compare(const Text& text, const View& view, Columns columns) {
    const size_t both = std::min(text.samples.size(), view.groups.size());
    for (size_t i = 0; i < both; ++i) {
        std::string_view line = text.samples[i];
        size_t component = 0;
        std::optional<Error> error;
        for (const uint32_t file : view.groups[i]) {
            error = compare(line, view, file, columns);
            if (error) break;
            ++component;
        }
        if (!error && line.find_first_not_of(blanks) != line.npos)
            error = malformed("has more members than the " + std::to_string(component) +
                              " that the shard has");
        if (!error) continue;
        Fault fault = error->fault();
        fault.cause =
            "line " + std::to_string(i + 2) + ", sample " + std::to_string(i) + " " + fault.cause;
        return DaliDifference{i, component, Error(std::move(fault))};
    }
    if (text.samples.size() == view.groups.size()) return std::nullopt;
    return DaliDifference{both, 0,
                          Error(SHF_E_CHANGED,
                                "the index has " + plural(text.samples.size(), "sample") +
                                    ", the shard " + std::to_string(view.groups.size()),
                                dali_help)};
}

// Throws Error (UNSUPPORTED) for words that cannot be in a line.
void check_words(std::string_view name, std::string_view extension, bool named, uint64_t offset) {
    if (!extension.empty() &&
        (named ? name : extension).find_first_of(blanks) == std::string_view::npos)
        return;
    throw Error(Fault{.code = SHF_E_UNSUPPORTED,
                      .offset = offset,
                      .shard = {},
                      .member = escape(name),
                      .cause = extension.empty()
                                   ? "an index of DALI cannot hold a name that ends after its dot"
                                   : "an index of DALI cannot hold a name with blanks",
                      .help = "write the shard again with another name; v1.0 and v1.1 have no "
                              "names, but extensions"});
}

std::vector<Columns> columns_of(DaliVersion version) {
    switch (version) {
        case DaliVersion::v1_0:
            return {Columns::extension_size_offset, Columns::extension_offset_size_name,
                    Columns::extension_offset_size};
        case DaliVersion::v1_1: return {Columns::extension_offset_size};
        case DaliVersion::v1_2: break;
    }
    return {Columns::extension_offset_size_name};
}

}  // namespace

void check_dali_name(std::string_view name) {
    const MemberName parts = split_dali_name(name);
    if (parts.has_key) check_words(name, parts.field, true, no_offset);
}

std::string dali_index(const TarFiles& files, DaliVersion version) {
    const View view{files, split_dali_name, false};
    if (view.groups.size() == 0)
        throw Error(SHF_E_UNSUPPORTED, "DALI has no index of a shard without samples",
                    "leave the shard out");
    std::string text(names[static_cast<size_t>(version)]);
    const auto add = [&text](std::string_view word) { text.append(" ").append(word); };
    add(std::to_string(view.groups.size()));
    text += '\n';
    for (size_t i = 0; i < view.groups.size(); ++i) {
        bool first = true;
        for (const uint32_t file : view.groups[i]) {
            const std::string_view name = files.name(file), extension = view.split(name).field;
            const bool named = version == DaliVersion::v1_2;
            check_words(name, extension, named, files[file].header);
            if (!std::exchange(first, false)) text += ' ';
            text += extension;
            std::pair numbers(files[file].data, files[file].size);
            if (version == DaliVersion::v1_0) std::swap(numbers.first, numbers.second);
            add(std::to_string(numbers.first));
            add(std::to_string(numbers.second));
            if (named) add(name);
        }
        text += '\n';
    }
    return text;
}

void check_dali_index(std::string_view bytes, const TarFiles& files) {
    const Text text(bytes);
    const View views[] = {{files, split_dali_name, false}, {files, split_name, true}};
    std::optional<DaliDifference> closest;
    for (const Columns columns : columns_of(text.version)) {
        for (const View& view : views) {
            auto difference = compare(text, view, columns);
            if (!difference) return;
            if (!closest || std::pair(difference->sample, difference->component) >
                                std::pair(closest->sample, closest->component))
                closest = std::move(difference);
        }
    }
    throw Error(closest->error);
}

}  // namespace shf
