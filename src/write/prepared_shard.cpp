#include "write/prepared_shard.h"

#include "core/error.h"
#include "core/options.h"
#include "io/source_context.h"
#include "url/in_shard.h"
#include "url/percent.h"
#include "url/scheme.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>
#include <cstdio>

namespace shf {

namespace {

constexpr std::string_view first_line = "shardfeed-prepared 1";
constexpr std::string_view last_name = "sum ";

[[noreturn]] void refuse_token(const std::string& cause) {
    throw Error(SHF_E_USAGE, "this is no token of a prepared shard: " + cause,
                "give what the writer said of the shard, as it is");
}

// What is no printable ASCII, or a percent sign, as %XX: a line ends nowhere else.
std::string on_one_line(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte < 0x7f && c != '%') {
            result += c;
            continue;
        }
        char coded[4];
        std::snprintf(coded, sizeof coded, "%%%02X", static_cast<unsigned>(byte));
        result += coded;
    }
    return result;
}

std::string sum_of_token(std::string_view text) {
    char sum[17];
    std::snprintf(sum, sizeof sum, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
    return sum;
}

// URLs of stores have no query: ? and @ are characters of a name there.
bool may_have_secret(const std::string& url) {
    return scheme_of(url).starts_with("http") && url.find_first_of("?@") != url.npos;
}

void append_file(std::string& token, const PreparedFile& file) {
    if (may_have_secret(file.url))
        throw Error(SHF_E_USAGE,
                    "prepare: the URL has a user or a query, which may be secrets, and would be in "
                    "the token of the shard",
                    "give credentials by options or environment");
    token += "url " + on_one_line(file.url) + "\n";
    token += "size " + std::to_string(file.size) + "\n";
    token += "upload " + on_one_line(file.upload) + "\n";
    token += "place " + on_one_line(file.place) + "\n";
    token += "parts " + std::to_string(file.parts.size()) + "\n";
    for (const std::string& part : file.parts) token += "part " + on_one_line(part) + "\n";
}

// The lines of a token, one after another.
class TokenLines {
  public:
    explicit TokenLines(std::string_view text) : rest_(text) {}

    [[nodiscard]] bool has(std::string_view name) const {
        return rest_.starts_with(name) && rest_.substr(name.size()).starts_with(' ');
    }
    std::string text(std::string_view name) {
        const size_t end = rest_.find('\n');
        if (!has(name) || end == rest_.npos) refuse_token("a line is missing");
        const std::string_view value = rest_.substr(name.size() + 1, end - name.size() - 1);
        rest_.remove_prefix(end + 1);
        std::string decoded = percent_decoded(value);
        if (on_one_line(decoded) != value) refuse_token("a line is damaged");
        return decoded;
    }
    uint64_t number(std::string_view name) {
        const std::string value = text(name);
        uint64_t result = 0;
        const char* const end = value.data() + value.size();
        if (const auto [at, error] = std::from_chars(value.data(), end, result);
            error != std::errc() || at != end || result > INT64_MAX)
            refuse_token("a number is damaged");
        return result;
    }
    [[nodiscard]] size_t left() const { return rest_.size(); }

  private:
    std::string_view rest_;
};

PreparedFile read_file(TokenLines& lines) {
    PreparedFile file;
    file.url = lines.text("url");
    if (file.url.empty() || file.url.find('\0') != file.url.npos) refuse_token("it names no shard");
    file.size = lines.number("size");
    file.upload = lines.text("upload");
    file.place = lines.text("place");
    // A count is a claim: each part has a line.
    for (uint64_t left = lines.number("parts"); left > 0; --left)
        file.parts.push_back(lines.text("part"));
    return file;
}

}  // namespace

std::string token_of(const PreparedShard& shard) {
    std::string token(first_line);
    token += "\ndigest " + on_one_line(shard.digest) + "\n";
    append_file(token, shard.file);
    if (shard.index) append_file(token, *shard.index);
    token += std::string(last_name) + sum_of_token(token) + "\n";
    if (token.size() > most_token)
        throw Error(SHF_E_LIMIT, "the shard has more parts than its token can name",
                    "set max_bytes");
    return token;
}

PreparedShard parse_token(std::string_view token) {
    if (token.size() > most_token) refuse_token("it is too long");
    if (!token.starts_with(first_line) || !token.substr(first_line.size()).starts_with('\n'))
        refuse_token(token.starts_with("shardfeed-prepared ") ? "it is of another version"
                                                              : "it begins with something else");
    constexpr size_t sum_size = last_name.size() + 17;
    if (token.size() < sum_size) refuse_token("it was cut");
    const std::string_view body = token.substr(0, token.size() - sum_size);
    if (token.substr(body.size()) != std::string(last_name) + sum_of_token(body) + "\n")
        refuse_token("it was cut or changed");
    TokenLines lines(body.substr(first_line.size() + 1));
    PreparedShard shard;
    shard.digest = lines.text("digest");
    shard.file = read_file(lines);
    if (lines.left() > 0) shard.index = read_file(lines);
    if (lines.left() > 0) refuse_token("it has more lines than it should");
    return shard;
}

void publish_shard(const PreparedShard& shard, const SourceContext& context) {
    in_shard(shard.file.url, [&] {
        publish_prepared(shard.file, context);
        if (!shard.index) return;
        // Behind the shard, whose name is ours from then on: an index that is there is of none.
        Options overwriting = context.options;
        overwriting.overwrite = true;
        publish_prepared(*shard.index, {overwriting, context.cancel, context.use});
    });
}

void discard_shard(const PreparedShard& shard, const SourceContext& context) {
    in_shard(shard.file.url, [&] {
        if (shard.index) discard_prepared(*shard.index, context);
        discard_prepared(shard.file, context);
    });
}

}  // namespace shf
