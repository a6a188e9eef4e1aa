#include "io/urls.h"

#define XXH_INLINE_ALL
#include "core/error.h"
#include "core/options.h"
#include "io/file.h"
#include "io/pipe.h"
#include "url/azure_host.h"
#include "url/braces.h"
#include "url/glob.h"
#include "url/redact.h"
#include "url/scheme.h"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace shf {

namespace {

// URLs that stand for themselves, one after another in one buffer.
struct Lines {
    std::string text;
    std::vector<uint32_t> ends;

    [[nodiscard]] std::string at(size_t line) const {
        const size_t start = line == 0 ? 0 : ends[line - 1];
        return text.substr(start, ends[line] - start);
    }
};

constexpr uint64_t max_text = std::numeric_limits<uint32_t>::max();

// Where a URL was written. What comes from a list file has not been typed by the caller.
struct Origin {
    std::string list;  // empty: the caller
    uint64_t line = 0;

    [[nodiscard]] bool caller() const { return list.empty(); }
    [[nodiscard]] std::string text() const {
        return "list file \"" + escape(list) + "\" line " + std::to_string(line) + ": ";
    }
};

// A URL for a message, which has room for little else when it is long.
std::string shown(std::string_view url) {
    std::string text = redact(std::string(url));
    if (text.size() > 200) {
        size_t size = 200;
        while ((static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
        text.resize(size);
        text += "...";
    }
    return "\"" + text + "\"";
}

bool is_word(char c) {  // \w; letters past ASCII count, as in Python
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

// One pass of replacing ${NAME} by the environment variable WDS_NAME. "${NAME:-x}" and the like
// belong to a shell and stay.
std::string replace_names(const std::string& url) {
    std::string out;
    size_t copied = 0;
    for (size_t at = url.find("${"); at != url.npos; at = url.find("${", at + 2)) {
        size_t end = at + 2;
        while (end < url.size() && is_word(url[end])) ++end;
        if (end == at + 2 || end == url.size() || url[end] != '}') continue;
        const std::string name = "WDS_" + url.substr(at + 2, end - at - 2);
        const char* value = std::getenv(name.c_str());
        if (value == nullptr)
            throw Error(SHF_E_USAGE,
                        "environment variable " + escape(name) + " is not set, URL " + shown(url),
                        "set it, or give the option expand=false to take URLs as they are");
        out.append(url, copied, at - copied);
        out += value;
        copied = end + 1;
    }
    return out.append(url, copied);
}

std::string replace_environment(std::string url) {
    constexpr int passes = 10;
    constexpr size_t longest = 1 << 20;
    if (url.find("${") == url.npos) return url;
    for (int pass = 0; pass <= passes; ++pass) {
        std::string next = replace_names(url);
        if (next == url) return url;
        if (next.size() > longest) break;
        url = std::move(next);
    }
    throw Error(SHF_E_USAGE, "environment variables WDS_* refer to one another without end",
                "look at the values of the variables in the URL");
}

// Whether this may be the name of several objects in a store. In URLs of the web a question mark is
// no pattern but in those of a store, and programs expand theirs themselves.
bool means_objects(std::string_view url) {
    return (Glob::is_pattern(url) || url.ends_with('/')) && !is_local_path(url) &&
           !url.starts_with("http:") && !url.starts_with("pipe:") &&
           (!url.starts_with("https:") || is_azure_blob_url(url));
}

bool needs_expansion(std::string_view url) {
    // One look at most of a million lines.
    if (url.find_first_of("{}\\*?[~:$") == url.npos) return false;
    return url.find_first_of("{}\\") != url.npos || url.find("::") != url.npos ||
           url.find("${") != url.npos || starts_at_home(url) ||
           (Glob::is_pattern(url) && is_local_path(url)) || means_objects(url);
}

// Puts Glob::literal for the backslash before what patterns and ~ are made of: braces take
// backslashes away, and which characters are literal is known no more.
std::string with_marks(const std::string& url) {
    std::string out;
    for (size_t i = 0; i < url.size(); ++i) {
        const bool pair = url[i] == '\\' && i + 1 < url.size();
        if (pair && std::strchr("*?[~", url[i + 1]) != nullptr)
            out += Glob::literal;
        else
            out += url[i];
        if (pair) out += url[++i];
    }
    return out;
}

// The first "{000000-000003}", which is taken for a range and is none; empty: there is none.
std::string_view dashed_range(std::string_view url) {
    constexpr std::string_view digits = "0123456789";
    for (size_t i = 0; i < url.size(); ++i) {
        if (url[i] == '\\') {
            ++i;  // the next character is literal
            continue;
        }
        if (url[i] != '{') continue;
        const size_t dash = url.find_first_not_of(digits, i + 1);
        if (dash == url.npos || dash == i + 1 || url[dash] != '-') continue;
        const size_t end = url.find_first_not_of(digits, dash + 1);
        if (end != url.npos && end != dash + 1 && url[end] == '}')
            return url.substr(i, end + 1 - i);
    }
    return {};
}

void refuse_dashed_range(const std::string& url) {
    const std::string_view braces = dashed_range(url);
    if (braces.empty() || url.starts_with("pipe:")) return;
    if (is_local_path(url) && Glob::exists(url)) return;
    std::string range(braces);
    range.replace(range.find('-'), 1, "..");
    throw Error(SHF_E_USAGE, std::string(braces) + " is no range, URL " + shown(url),
                "write " + range +
                    "; when the name has these braces, put a backslash before "
                    "each of them");
}

// What a list of a store takes for shards.
bool is_archive_name(std::string_view url) {
    const std::string_view name = url.substr(url.rfind('/') + 1);
    return name.ends_with(".tar") || name.ends_with(".tgz") || name.ends_with(".zip") ||
           (name.find(".tar.") != name.npos && name.find('.', name.find(".tar.") + 5) == name.npos);
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\v\f";
    const size_t first = text.find_first_not_of(blanks);
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

// A stretch of the list: a pattern, or some of the lines of one buffer. Ordered by `first`.
struct ShardList::Segment {
    uint64_t first = 0;
    std::unique_ptr<const BracePattern> pattern;
    std::shared_ptr<const Lines> lines;
    size_t line = 0;  // of `lines`
    uint64_t count = 0;
};

// Builds the segments in list order.
struct ShardList::Builder {
    const Options& options;
    std::vector<Segment>& segments;
    bool& has_messages;
    bool secure = pipes_refused(options);
    ListObjects list_objects;
    std::shared_ptr<Lines> plain = {};  // URLs that are no pattern in braces
    Glob glob = {};

    [[nodiscard]] uint64_t size() const {
        return segments.empty() ? 0 : segments.back().first + segments.back().count;
    }

    void check_count(uint64_t more) const {
        if (more > options.max_shards || size() > options.max_shards - more)
            throw Error(SHF_E_LIMIT,
                        "the URLs stand for more than " + plural(options.max_shards, "shard"),
                        "raise the option max_shards, or look for a mistake in the braces");
    }

    void add_lines(const std::shared_ptr<const Lines>& lines, size_t line) {
        check_count(1);
        if (!segments.empty()) {
            Segment& last = segments.back();
            if (last.lines == lines && last.line + last.count == line) {
                ++last.count;
                return;
            }
        }
        Segment segment;
        segment.first = size();
        segment.lines = lines;
        segment.line = line;
        segment.count = 1;
        segments.push_back(std::move(segment));
    }

    void add_plain(std::string_view url) {
        if (plain == nullptr || plain->text.size() + url.size() > max_text)
            plain = std::make_shared<Lines>();
        plain->text += url;
        plain->ends.push_back(static_cast<uint32_t>(plain->text.size()));
        add_lines(plain, plain->ends.size() - 1);
    }

    void add_pattern(BracePattern pattern) {
        check_count(pattern.count());
        Segment segment;
        segment.first = size();
        segment.count = pattern.count();
        segment.pattern = std::make_unique<const BracePattern>(std::move(pattern));
        segments.push_back(std::move(segment));
    }

    // A pipe runs a program, and messages open a port, so they must have been asked for by the
    // caller and nobody else.
    void check_origin(bool pipe, bool standard_input, bool messages, const Origin& origin) {
        has_messages |= messages;
        if (!origin.caller() && messages)
            throw Error(SHF_E_USAGE,
                        "a list file must not open ports, and this line is or expands to messages "
                        "of ZeroMQ",
                        "pass the URL to the call itself if you trust it");
        if (!origin.caller() && pipe)
            throw Error(SHF_E_USAGE,
                        "a list file must not start programs, and this line is or expands to a "
                        "pipe: URL",
                        "pass the URL to the call itself if you trust it");
        if (!origin.caller() && standard_input)
            throw Error(SHF_E_USAGE, "standard input (\"-\") is refused in a list file",
                        "pass \"-\" to the call itself");
        if (pipe && secure) refuse_pipe();
    }

    void check_plain(std::string_view url, const Origin& origin) {
        check_origin(url.starts_with("pipe:"), url == "-", is_message_url(url), origin);
        if (url.empty()) throw Error(SHF_E_USAGE, "an empty URL", "look for a \"::\" too many");
        if (url.find('\0') != url.npos)
            throw Error(SHF_E_USAGE, "a NUL byte in a URL",
                        "look at where the URL was put together");
        if (!origin.caller() && url[0] == '@') refuse_nested();
    }

    [[noreturn]] static void refuse_nested() {
        throw Error(SHF_E_USAGE, "a list file must not name another list file",
                    "give both to the call itself; for a file whose name starts with @ write ./@");
    }

    // One URL with everything that may be in it.
    void add_url(const std::string& url, const Origin& origin) {
        for (size_t start = 0;;) {
            const size_t end = url.find("::", start);
            add_part(url.substr(start, end == url.npos ? end : end - start), origin);
            if (end == url.npos) break;
            start = end + 2;
        }
    }

    // A URL without braces, in which Glob::literal may stand: itself, or the files that match it.
    void add_path(std::string marked, const Origin& origin) {
        if (marked.find_first_of(std::string_view("*?[~\0", 5)) == marked.npos &&
            !means_objects(marked)) {
            check_plain(marked, origin);
            return add_plain(marked);
        }
        marked = from_home(marked, "*?[", Glob::literal);
        const std::string url = Glob::literal_path(marked);
        check_plain(url, origin);
        if (!is_local_path(url)) return add_objects(marked, url);
        if (!Glob::is_pattern(marked) || Glob::exists(url)) return add_plain(url);
        const std::vector<std::string> paths = glob.matches(marked);
        if (paths.empty()) {
            Fault fault = Error(SHF_E_IO, "no file matches " + shown(url),
                                "look at the path; expand=false takes * ? and [ as they are")
                              .fault();
            fault.os_error = ENOENT;
            throw Error(std::move(fault));
        }
        // A file may have the name of something else: of a program, or of standard input.
        for (const std::string& path : paths)
            add_plain(is_local_path(path) && path[0] != '@' ? path : "./" + path);
    }

    // A URL of a store: the object that it names, or the shards among the objects that match it.
    void add_objects(const std::string& marked, const std::string& url) {
        if (!means_objects(marked)) return add_plain(url);
        const bool folder = url.ends_with('/');
        const auto listed = list_objects ? list_objects(Glob::literal_start(marked)) : std::nullopt;
        if (!listed) return add_plain(url);
        const uint64_t before = size();
        for (const std::string& object : *listed)
            if (is_archive_name(object) && (folder || Glob::fits(marked, object)))
                add_plain(object);
        if (size() == before)
            throw Error(SHF_E_NET_PERMANENT,
                        "no object matches " + shown(url) +
                            " whose name ends with .tar, .tgz, "
                            ".tar.* or .zip",
                        "look at the path; expand=false takes * ? and [ as they are");
    }

    void add_part(std::string url, const Origin& origin) {
        url = replace_environment(std::move(url));
        if (url.find('\0') != url.npos)
            throw Error(SHF_E_USAGE, "a NUL byte in a URL",
                        "look at where the URL was put together");
        const bool list = url.starts_with("@");
        if (list && !origin.caller()) refuse_nested();
        std::string name = list ? url.substr(1) : url;
        if (name.find_first_of("{}\\") == name.npos) {
            if (!list) return add_path(std::move(name), origin);
            return add_list(from_home(name));
        }
        name = from_home(name, "{}\\*?[", '\\');
        refuse_dashed_range(name);
        BracePattern pattern = parse(name, url);
        if (list) {
            check_count(pattern.count());
            for (uint64_t i = 0; i < pattern.count(); ++i) add_list(pattern.at(i));
            return;
        }
        check_origin(pattern.may_give("pipe:", BracePattern::Match::prefix),
                     pattern.may_give("-", BracePattern::Match::whole),
                     std::any_of(message_schemes.begin(), message_schemes.end(),
                                 [&](std::string_view scheme) {
                                     return pattern.may_give(scheme, BracePattern::Match::prefix);
                                 }),
                     origin);
        if (url.find('\\') == url.npos && pattern.may_give("@", BracePattern::Match::prefix))
            throw Error(SHF_E_USAGE, "a list file inside braces, URL " + shown(url),
                        "write @{a,b} instead of {@a,@b}; for a file whose name starts with @ "
                        "write ./@");
        if (url.find('\\') == url.npos && pattern.may_give("", BracePattern::Match::whole))
            throw Error(SHF_E_USAGE, "braces that give an empty URL, URL " + shown(url),
                        "write what the URLs have in common beside the braces");
        const std::string marked = with_marks(name);
        const bool paths =
            (Glob::is_pattern(marked) && is_local_path(name)) || means_objects(marked);
        if (!paths && !pattern.may_give("~/", BracePattern::Match::prefix))
            return add_pattern(std::move(pattern));
        check_count(pattern.count());
        if (marked != name) pattern = parse(marked, url);
        for (uint64_t i = 0; i < pattern.count(); ++i) add_path(pattern.at(i), origin);
    }

    static BracePattern parse(const std::string& text, const std::string& url) {
        try {
            return BracePattern(text);
        } catch (const Error& error) {
            Fault fault = error.fault();
            fault.cause += " of URL " + shown(url);
            throw Error(std::move(fault));
        }
    }

    void add_list(const std::string& name) {
        if (name.empty() || name == "-" || name.starts_with("pipe:"))
            throw Error(SHF_E_USAGE, "\"@\" takes the name of a list file, not " + shown(name),
                        "write the list to a file");
        Origin origin{.list = redact(name)};
        auto lines = std::make_shared<Lines>();
        try {
            const Cancel never;
            lines->text = read_whole_file(path_of(name), max_text, never, options.pipe_timeout);
        } catch (const Error& error) {
            Fault fault = error.fault();
            fault.cause = "list file \"" + escape(origin.list) + "\": " + fault.cause;
            throw Error(std::move(fault));
        }
        try {
            add_list_lines(*lines, lines, origin);
        } catch (const Error& error) {
            Fault fault = error.fault();
            fault.cause = origin.text() + fault.cause;
            throw Error(std::move(fault));
        }
    }

    // Moves the plain lines to the front of the buffer they were read into, without the rest.
    void add_list_lines(Lines& lines, const std::shared_ptr<const Lines>& shared, Origin& origin) {
        std::string& text = lines.text;
        size_t kept = 0;
        size_t next = text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // byte order mark, from Windows
        while (next < text.size()) {
            ++origin.line;
            const size_t end = std::min(text.find('\n', next), text.size());
            const std::string_view url = trim(std::string_view(text).substr(next, end - next));
            next = end + 1;
            if (url.empty() || url[0] == '#') continue;
            if (needs_expansion(url)) {
                add_url(std::string(url), origin);
                continue;
            }
            check_plain(url, origin);
            const size_t size = url.size();
            std::memmove(text.data() + kept, url.data(), size);
            kept += size;
            lines.ends.push_back(static_cast<uint32_t>(kept));
            add_lines(shared, lines.ends.size() - 1);
        }
        text.resize(kept);
        if (text.capacity() > kept + kept / 4) text.shrink_to_fit();
        lines.ends.shrink_to_fit();
    }
};

ShardList::ShardList(std::span<const char* const> urls, const Options& options,
                     ListObjects objects) {
    Builder builder{.options = options,
                    .segments = segments_,
                    .has_messages = has_messages_,
                    .list_objects = std::move(objects)};
    for (const char* url : urls) {
        if (url == nullptr) throw Error(SHF_E_USAGE, "a URL is NULL");
        if (options.expand) {
            builder.add_url(url, {});
        } else {
            builder.check_plain(url, {});
            builder.add_plain(url);
        }
    }
    if (builder.plain != nullptr) {
        builder.plain->text.shrink_to_fit();
        builder.plain->ends.shrink_to_fit();
    }
}

ShardList::~ShardList() = default;
ShardList::ShardList(ShardList&&) noexcept = default;
ShardList& ShardList::operator=(ShardList&&) noexcept = default;

uint64_t ShardList::size() const {
    return segments_.empty() ? 0 : segments_.back().first + segments_.back().count;
}

std::string ShardList::at(uint64_t index) const {
    if (index >= size()) throw Error(SHF_E_INTERNAL, "shard number past the end of the list");
    const auto after = std::upper_bound(
        segments_.begin(), segments_.end(), index,
        [](uint64_t value, const Segment& segment) { return value < segment.first; });
    const Segment& segment = *(after - 1);
    index -= segment.first;
    if (segment.pattern != nullptr) return segment.pattern->at(index);
    return segment.lines->at(segment.line + static_cast<size_t>(index));
}

uint64_t hash_of_names(const ShardList& shards) {
    constexpr uint64_t most = 4096;
    const uint64_t count = std::min(shards.size(), most);
    uint64_t hash = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const auto number =
            static_cast<uint64_t>(static_cast<unsigned __int128>(i) * shards.size() / count);
        const std::string url = redact(shards.at(number));
        const std::string_view name = std::string_view(url).substr(url.find_last_of('/') + 1);
        hash = XXH3_64bits_withSeed(name.data(), name.size(), hash);
    }
    return hash;
}

}  // namespace shf
