#include "interop/wids_index.h"

#include "core/error.h"
#include "url/redact.h"
#include "url/scheme.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace shf {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* wids_kind = "wids-shard-index-v1";

Error wids_malformed(const std::string& what) {
    return Error(SHF_E_FORMAT, what, "an index of wids is made by its tool widsindex");
}

// ---- Reading ------------------------------------------------------------------------------------

// Takes the list of shards out of the values as the parser finds them, so that nothing else is
// kept. Top-level values are at depth 1, the list is at depth 2, what it says of a shard at 3.
class ShardListReader final : public nlohmann::json_sax<json> {
  public:
    std::vector<WidsShard> shards;

    void check() const {
        if (!versioned_) throw wids_malformed("lacks \"wids_version\"");
        if (shards.empty()) throw wids_malformed("has no shards");
    }

    bool null() override { return value("null"); }
    bool boolean(bool /*value*/) override { return value("a truth value"); }
    bool number_integer(number_integer_t /*value*/) override { return value("a negative number"); }
    bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
        return value("a number that is not whole");
    }
    bool binary(binary_t& /*value*/) override { return value("bytes"); }

    bool number_unsigned(number_unsigned_t number) override {
        if (at_top("wids_version")) {
            if (number != 1)
                throw Error(SHF_E_UNSUPPORTED, "an index of wids_version " + std::to_string(number),
                            "1 is known");
            versioned_ = true;
        } else if (in_shard("nsamples")) {
            shards.back().samples = number;
            counted_ = true;
        } else if (in_shard("filesize")) {
            shards.back().size = number;
        } else {
            return value("a number");
        }
        return true;
    }

    bool string(string_t& text) override {
        if (at_top("__kind__")) {
            if (text != wids_kind)
                throw Error(SHF_E_UNSUPPORTED, "a file of kind \"" + escape(text) + "\"",
                            std::string(wids_kind) + " is known");
        } else if (in_shard("url")) {
            if (text.empty() || text.find('\0') != text.npos)
                throw wids_malformed(place() + "names no file");
            shards.back().url = std::move(text);
        } else {
            return value("text");
        }
        return true;
    }

    bool start_object(size_t /*size*/) override {
        if (depth_ == 2 && in_list_) {
            shards.emplace_back();
            counted_ = false;
        } else if (depth_ > 0) {
            value("an object");
        }
        return enter();
    }
    bool end_object() override {
        --depth_;
        if (depth_ == 2 && in_list_ && (!counted_ || shards.back().url.empty()))
            throw wids_malformed(place() + "lacks \"url\" or \"nsamples\"");
        return true;
    }
    bool start_array(size_t /*size*/) override {
        if (at_top("shardlist")) {
            in_list_ = true;
            shards.clear();  // a name that comes twice: the last value counts, as in Python
        } else if (at_top("datasets")) {
            in_parts_ = true;
        } else {
            value("a list");
        }
        return enter();
    }
    bool end_array() override {
        if (--depth_ == 1) in_list_ = in_parts_ = false;
        return true;
    }
    bool key(string_t& name) override {
        if (depth_ == 1) top_ = std::move(name);
        if (depth_ == 3) field_ = std::move(name);
        return true;
    }

    bool parse_error(size_t position, const std::string& /*token*/,
                     const nlohmann::detail::exception& /*error*/) override {
        throw wids_malformed("is not JSON, at byte " + std::to_string(position));
    }

  private:
    static constexpr size_t deepest = 64;

    [[nodiscard]] bool at_top(std::string_view name) const { return depth_ == 1 && top_ == name; }
    [[nodiscard]] bool in_shard(std::string_view name) const {
        return depth_ == 3 && in_list_ && field_ == name;
    }
    [[nodiscard]] std::string place() const {
        return "shard " + std::to_string(shards.size() - 1) + " of the list ";
    }

    bool enter() {
        if (++depth_ > deepest)
            throw wids_malformed("has values inside one another more than " +
                                 std::to_string(deepest) + " deep");
        return true;
    }

    // Any value that no place above took: right where nobody looks.
    bool value(const char* what) const {
        if (depth_ == 0) throw wids_malformed(std::string("is ") + what + ", not an object");
        for (const char* name : {"wids_version", "__kind__", "shardlist", "datasets"})
            if (at_top(name))
                throw wids_malformed(std::string("has ") + what + " as \"" + name + "\"");
        for (const char* name : {"url", "nsamples", "filesize"})
            if (in_shard(name))
                throw wids_malformed(place() + "has " + what + " as \"" + name + "\"");
        if (depth_ == 2 && in_list_)
            throw wids_malformed(std::string("lists ") + what + " as a shard");
        if (depth_ == 2 && in_parts_)
            throw Error(SHF_E_UNSUPPORTED, "it is put together from other \"datasets\"",
                        "take the index of each of them");
        return true;
    }

    size_t depth_ = 0;
    std::string top_, field_;
    bool versioned_ = false, counted_ = false, in_list_ = false, in_parts_ = false;
};

// ---- Writing ------------------------------------------------------------------------------------

// RFC 8259, section 7. `text` is UTF-8.
std::string json_text(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (byte < 0x20)
            out += {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
        else
            out += c;
    }
    return out + '"';
}

}  // namespace

std::string wids_index(std::span<const WidsShard> shards) {
    std::string text = "{\n  \"wids_version\": 1,\n  \"__kind__\": " + json_text(wids_kind) +
                       ",\n  \"shardlist\": [";
    for (const WidsShard& shard : shards) {
        text += &shard == shards.data() ? "\n" : ",\n";
        text += "    {\"url\": " + json_text(shard.url) +
                ", \"nsamples\": " + std::to_string(shard.samples);
        if (shard.size) text += ", \"filesize\": " + std::to_string(*shard.size);
        text += "}";
    }
    return text + "\n  ]\n}\n";
}

std::vector<WidsShard> read_wids_index(std::string_view text) {
    ShardListReader reader;
    try {
        if (!json::sax_parse(text.begin(), text.end(), &reader))
            throw wids_malformed("is not JSON");
    } catch (const json::exception&) {
        throw wids_malformed("is not JSON");
    }
    reader.check();
    return std::move(reader.shards);
}

std::string wids_url(const fs::path& path, const fs::path& folder) {
    const fs::path relative = path.lexically_relative(folder);
    std::string url = relative.string();
    // Above the folder, or what a URL parser would not take for a path: said from the root on.
    if (relative.empty() || *relative.begin() == ".." || !uri_scheme(url).empty() ||
        url.find(':') < url.find('/') || static_cast<unsigned char>(url[0]) <= ' ')
        url = path.string();
    const auto special = [](char c) {
        return c == '?' || c == '#' || c == ';' || static_cast<unsigned char>(c) < 0x20;
    };
    if (std::any_of(url.begin(), url.end(), special))
        throw Error(SHF_E_UNSUPPORTED,
                    "wids cannot open a file with ?, #, ; or a control character in its path",
                    "give the file another name");
    if (!is_utf8(url))
        throw Error(SHF_E_UNSUPPORTED, "JSON cannot hold a path that is not UTF-8",
                    "give the file another name");
    return url;
}

fs::path wids_path(const std::string& url, const fs::path& folder) {
    const std::string scheme = uri_scheme(url);
    if (scheme == "pipe")
        throw Error(SHF_E_USAGE, "it must not name a command: " + redact(url),
                    "give pipes to the call itself");
    if ((!scheme.empty() && scheme != "file") || url.starts_with("//"))
        throw Error(SHF_E_UNSUPPORTED, "it names a shard that is no local file: " + redact(url),
                    "copy the shards, and name the copies in the index");
    if (url.find_first_of("?#") != url.npos)
        throw Error(SHF_E_UNSUPPORTED, "it names a shard with a query: " + redact(url),
                    "name local files");
    const fs::path path = scheme.empty() ? url : path_of("file:" + url.substr(scheme.size() + 1));
    return (folder / path).lexically_normal();
}

}  // namespace shf
