#include "url/redact.h"

#include "core/error.h"
#include "core/lowered.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shf {

namespace {

constexpr std::string_view hidden = "***";
constexpr std::string_view quotes = "'\"`";

bool is_scheme(char c) {  // RFC 3986, 3.1
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
}

bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Copies one URL without userinfo, query and fragment (RFC 3986, 3.2.1, 3.4 and 3.5). `rest` starts
// after "://".
void append_url(std::string_view rest, std::string& out) {
    const size_t authority_end = std::min(rest.find_first_of("/?#"), rest.size());
    const std::string_view authority = rest.substr(0, authority_end);
    // A password may have a slash that is not encoded: what follows the colon is no port then.
    const size_t port = authority.find(':') + 1;
    const bool password = port > 0 && authority.find('@') == authority.npos &&
                          !authority.starts_with('[') &&
                          authority.find_first_not_of("0123456789", port) != authority.npos;
    const size_t at = password ? rest.rfind('@') : authority.rfind('@');
    if (at != rest.npos) rest.remove_prefix(at + 1);
    out += rest.substr(0, std::min(rest.find_first_of("?#"), rest.size()));
}

bool is_container(std::string_view text) {  // a password would follow a colon
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '$';
    });
}

// Copies text and cuts every URL in it short. A URL ends where a shell or a sentence ends it; the
// characters & and ; do not, since a quoted query is full of them.
void append_urls(std::string_view text, std::string& out) {
    while (!text.empty()) {
        const size_t mark = text.find("://");
        if (mark == text.npos || mark == 0 || !is_scheme(text[mark - 1])) {
            const size_t size = mark == text.npos ? text.size() : mark + 3;
            out += text.substr(0, size);
            text.remove_prefix(size);
            continue;
        }
        out += text.substr(0, mark + 3);
        text.remove_prefix(mark + 3);
        const size_t size = std::min(text.find_first_of(" \t\r\n\v\f'\"`<>|"), text.size());
        append_url(text.substr(0, size), out);
        text.remove_prefix(size);
    }
}

// True for names such as AWS_SECRET_ACCESS_KEY and --access-token.
bool is_secret_name(std::string_view name) {
    static constexpr std::array<std::string_view, 10> words = {
        "token",      "secret", "password", "passwd",  "signature",
        "credential", "bearer", "api-key",  "api_key", "apikey"};
    const std::string text = lowered(name);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != text.npos; });
}

bool is_secret_option(std::string_view name) {
    return name == "--header" || name == "--user" || name == "--proxy-user" ||
           name == "--proxy-header" || name == "--cookie" || is_secret_name(name);
}

// The value of a short option written in one word with it, as in -uNAME:PASSWORD or -sHName:value.
// The position where the value starts, or 0.
size_t attached_value(std::string_view word) {
    if (word.size() < 3 || word[0] != '-' || word[1] == '-') return 0;
    if (word[1] == 'H' || word[1] == 'u') return 2;
    size_t flag = 1;
    while (flag < word.size() && std::isalpha(static_cast<unsigned char>(word[flag])) != 0 &&
           word[flag] != 'H' && word[flag] != 'u')
        ++flag;
    if (flag + 1 >= word.size() || (word[flag] != 'H' && word[flag] != 'u')) return 0;
    return word.find(':', flag) == word.npos ? 0 : flag + 1;
}

// True when the word after this one is a secret.
bool announces_secret(std::string_view word) {
    if (word.size() < 2 || word[0] != '-' || word.find('=') != word.npos) return false;
    if (word[1] == '-') return is_secret_option(word);
    const bool letters = std::all_of(word.begin() + 1, word.end(), [](char c) {
        return std::isalpha(static_cast<unsigned char>(c)) != 0;
    });
    const char last = word.back();
    return (letters && (last == 'H' || last == 'u' || last == 'U')) || is_secret_name(word);
}

// The length of the shell word at the start of `text` (POSIX.1-2017, XCU 2.2 and 2.3): quotes and
// backslashes keep blanks and operators in it.
size_t word_length(std::string_view text) {
    size_t i = 0;
    char quote = 0;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else if (c == '\\' && quote == '"')
                ++i;
        } else if (c == '\\') {
            ++i;
        } else if (quotes.find(c) != quotes.npos) {
            quote = c;
        } else if (is_blank(c) || c == '|' || c == ';' || c == '(' || c == ')') {
            break;
        }
    }
    return std::min(i, text.size());
}

void append_word(std::string_view word, std::string& out, int depth);

void append_command(std::string_view text, std::string& out, int depth) {
    bool hide = false;
    while (!text.empty()) {
        const size_t size = word_length(text);
        if (size == 0) {
            if (!is_blank(text[0])) hide = false;
            out += text[0];
            text.remove_prefix(1);
            continue;
        }
        const std::string_view word = text.substr(0, size);
        text.remove_prefix(size);
        if (hide) {
            out += hidden;
            hide = false;
        } else {
            append_word(word, out, depth);
            hide = announces_secret(word);
        }
    }
}

// A quoted string may be a command of its own, as in sh -c "...". `word` starts with the quote;
// returns how much of it the string is.
size_t append_quoted(std::string_view word, std::string& out, int depth) {
    const char quote = word[0];
    std::string inner;
    size_t i = 1;
    for (; i < word.size() && word[i] != quote; ++i) {
        if (quote == '"' && word[i] == '\\' && i + 1 < word.size() &&
            (word[i + 1] == '"' || word[i + 1] == '\\'))
            ++i;
        inner += word[i];
    }
    out += quote;
    append_command(inner, out, depth + 1);
    if (i == word.size()) return i;
    out += quote;
    return i + 1;
}

void append_word(std::string_view word, std::string& out, int depth) {
    const size_t equal = word.find('=');
    const std::string_view name = word.substr(0, equal);
    const bool named = equal != word.npos && name.find("://") == name.npos;
    if (named && (is_secret_name(name) || is_secret_option(name))) {
        out += word.substr(0, equal + 1);
        out += hidden;
    } else if (const size_t value = attached_value(word); value != 0) {
        out += word.substr(0, value);
        out += hidden;
    } else {
        while (depth < 4 && std::any_of(word.begin(), word.end(), is_blank)) {
            const size_t quote = std::min(word.find_first_of(quotes), word.size());
            append_urls(word.substr(0, quote), out);
            word.remove_prefix(quote);
            if (!word.empty()) word.remove_prefix(append_quoted(word, out, depth));
        }
        append_urls(word, out);
    }
}

}  // namespace

std::string redact_command(std::string_view text) {
    std::string out;
    append_command(text, out, 0);
    return out;
}

std::string printable(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto c = static_cast<unsigned char>(text[0]);
        size_t size = 1;
        // "\x" stays apart from the \xNN that this function writes, so that two names never look
        // the same.
        if (c < 0x20 || c == 0x7f || (c == '\\' && text.size() > 1 && text[1] == 'x')) {
            out += {'\\', 'x', hex[c >> 4], hex[c & 15]};
        } else if (c < 0x80) {
            out += text[0];
        } else {  // escape() knows UTF-8; it takes up to 200 bytes and must not be given half of
                  // one
            while (size < text.size() && static_cast<unsigned char>(text[size]) >= 0x80 &&
                   (size < 190 || (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) &&
                   size < 200)
                ++size;
            out += escape(text.substr(0, size));
        }
        text.remove_prefix(size);
    }
    return out;
}

std::string redact(const std::string& url) {
    constexpr std::string_view pipe = "pipe:";
    if (url.starts_with(pipe))
        return printable("pipe:" + redact_command(std::string_view(url).substr(pipe.size())));
    const size_t mark = url.find("://");
    if (mark == url.npos || mark == 0 ||
        !std::all_of(url.begin(), url.begin() + static_cast<std::ptrdiff_t>(mark), is_scheme))
        return printable(url);
    std::string out = url.substr(0, mark + 3);
    const std::string_view rest = std::string_view(url).substr(mark + 3);
    const size_t at = std::min(rest.find_first_of("@/?#"), rest.size());
    // There the container stands in front of the host.
    if ((out == "abfs://" || out == "abfss://") && is_container(rest.substr(0, at)) &&
        rest.substr(at).starts_with('@'))
        out += rest.substr(0, at + 1);
    append_url(rest, out);
    return printable(out);
}

}  // namespace shf
