#include "io/callback_source.h"

#include "core/error.h"
#include "core/fork.h"
#include "core/options.h"
#include "core/source_functions.h"
#include "url/percent.h"
#include "url/redact.h"
#include "url/scheme.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shf {

namespace {

// A call may be a request, or run a program in a language that is slow.
constexpr ReadCost callback_cost{.gap = 64 * 1024, .at_once = 1024 * 1024};
constexpr uint64_t not_known = std::numeric_limits<uint64_t>::max();
constexpr size_t version_room = 256;
constexpr std::string_view hidden = "***";

Error misbehaves(const char* function, const std::string& what) {
    return Error(SHF_E_USAGE, std::string("the source's function ") + function + " " + what,
                 "see shf_source in shardfeed.h");
}

// The parts of a URL that are secrets wherever a program shows them: user and password, the query
// and its values. Short ones would be found in any text.
std::vector<std::string> secrets_of(std::string_view url) {
    constexpr size_t shortest = 4;
    std::vector<std::string> secrets;
    // As it is written, and as programs use it to log in.
    const auto add = [&](std::string_view secret, size_t least) {
        if (secret.size() >= least) secrets.emplace_back(secret);
        if (std::string plain = percent_decoded(secret); plain != secret && plain.size() >= least)
            secrets.push_back(std::move(plain));
    };
    std::string_view rest = url.substr(std::min(url.find("://") + 3, url.size()));
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
    if (const size_t at = authority.rfind('@'); at != authority.npos) {
        const std::string_view user = authority.substr(0, at);
        const size_t colon = user.find(':');
        add(user, colon == user.npos ? shortest : 1);
        if (colon != user.npos) add(user.substr(colon + 1), shortest);
    }
    const size_t query = std::min(rest.find_first_of("?#"), rest.size());
    rest.remove_prefix(std::min(query + 1, rest.size()));
    add(rest, 1);
    while (!rest.empty()) {
        const std::string_view one = rest.substr(0, rest.find_first_of("&;#"));
        add(one.substr(std::min(one.find('=') + 1, one.size())), shortest);
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    // A part must not hide the whole.
    std::sort(secrets.begin(), secrets.end(),
              [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    return secrets;
}

// What a function has said, as an error of the library.
Error failure(const char* function, int64_t code, shf_error& said, const std::string& url) {
    if (code > 0 || code < SHF_E_INTERNAL)
        return misbehaves(function, "returned " + std::to_string(code) + ", which is no code");
    said.message[sizeof said.message - 1] = '\0';
    std::string cause = said.message;
    for (const std::string& secret : secrets_of(url))
        for (size_t at = 0; (at = cause.find(secret, at)) != cause.npos; at += hidden.size())
            cause.replace(at, secret.size(), hidden);
    Fault fault{.code = static_cast<int32_t>(code),
                .os_error = said.os_error,
                .shard = {},
                .member = {},
                .cause = printable(redact_command(cause)),
                .help = {}};
    // "Call again" is not for the program to say: what is to be called again has ended.
    if (fault.code == SHF_E_TIMEOUT) fault.code = SHF_E_IO;
    if (fault.cause.empty())
        fault.cause = std::string("the source's function ") + function +
                      " failed: " + shf_strerror(fault.code);
    return Error(std::move(fault));
}

// An object of the program, which the process that opened it alone uses.
class Opened {
  public:
    // Both must outlive it.
    Opened(const SourceFunctions& functions, const std::string& url)
        : functions_(functions), url_(url) {
        shf_error error{};
        uint32_t flags = 0;
        const int32_t code =
            functions->open(functions.ctx(), url.c_str(), &object_, &flags, &error);
        if (code != SHF_OK) throw failure("open", code, error, url_);
        try {
            if ((flags & ~uint32_t{SHF_SOURCE_SEQUENTIAL | SHF_SOURCE_ONE_THREAD}) != 0)
                throw misbehaves("open", "set unknown flags: " + std::to_string(flags));
            one_thread_ = (flags & SHF_SOURCE_ONE_THREAD) != 0;
            ask(flags);
        } catch (...) {
            close();
            throw;
        }
    }
    ~Opened() {
        if (is_ours()) close();
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    [[nodiscard]] bool is_ours() const { return generation_ == fork_generation(); }
    // An object whose end is not known is read until it has come.
    [[nodiscard]] bool seekable() const { return !sequential_ && size_; }
    [[nodiscard]] const std::optional<uint64_t>& size() const { return size_; }
    [[nodiscard]] const std::string& version() const { return version_; }

    // At least one byte unless `offset` is the end; 0 there.
    size_t read(uint64_t offset, std::span<uint8_t> out) {
        if (out.empty()) return 0;
        shf_error error{};
        const int64_t count =
            one_thread_ ? read_alone(offset, out, error)
                        : functions_->read_at(object_, offset, out.data(), out.size(), &error);
        if (count < 0) throw failure("read_at", count, error, url_);
        if (static_cast<uint64_t>(count) > out.size())
            throw misbehaves("read_at", "gave " + plural(static_cast<uint64_t>(count), "byte") +
                                            " where " + std::to_string(out.size()) +
                                            " were asked for");
        return static_cast<size_t>(count);
    }

    Opened* before = nullptr;  // that of the parent process

  private:
    // Size and version, of which nothing has changed from one look to the next.
    void ask(uint32_t flags) {
        sequential_ = (flags & SHF_SOURCE_SEQUENTIAL) != 0;
        shf_error error{};
        if (functions_->size) {
            uint64_t size = not_known;
            const int32_t code = functions_->size(object_, &size, &error);
            if (code != SHF_OK) throw failure("size", code, error, url_);
            if (size != not_known) size_ = size;
            if (size_ && *size_ > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
                throw misbehaves("size", "gave " + std::to_string(*size_));
        }
        if (functions_->version) {
            std::array<char, version_room> text{};
            const int32_t code = functions_->version(object_, text.data(), text.size(), &error);
            if (code != SHF_OK) throw failure("version", code, error, url_);
            if (text.back() != '\0') throw misbehaves("version", "wrote a text without an end");
            version_ = text.data();
        }
    }

    int64_t read_alone(uint64_t offset, std::span<uint8_t> out, shf_error& error) {
        // A signal handler inside the function would find it in the middle of its work.
        if (reader_.load(std::memory_order_relaxed) == std::this_thread::get_id())
            throw Error(SHF_E_USAGE, "the source is in use by the call that this one is inside of",
                        "do not read what is being read, from a signal handler or a source");
        const std::lock_guard turn(turn_);
        reader_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        const int64_t count = functions_->read_at(object_, offset, out.data(), out.size(), &error);
        reader_.store(std::thread::id(), std::memory_order_relaxed);
        return count;
    }

    void close() {
        if (functions_->close) functions_->close(object_);
    }

    const SourceFunctions& functions_;
    const std::string& url_;
    void* object_ = nullptr;
    const uint64_t generation_ = fork_generation();
    bool sequential_ = false, one_thread_ = false;
    std::optional<uint64_t> size_;
    std::string version_;
    std::mutex turn_;  // made by the process that uses it: never held by a thread of the parent
    std::atomic<std::thread::id> reader_;
};

// What a URL names. A forked child that reads it opens it again: archives and datasets may be used
// by both, and an object of the program cannot.
class CallbackObject {
  public:
    CallbackObject(std::shared_ptr<const SourceFunctions> functions, std::string url,
                   const Cancel& cancel)
        : cancel_(cancel),
          functions_(std::move(functions)),
          url_(std::move(url)),
          first_(new Opened(*functions_, url_)),
          newest_(first_) {}
    ~CallbackObject() {
        for (Opened* next = newest_.load(); next != nullptr;)
            delete std::exchange(next, next->before);
    }
    CallbackObject(const CallbackObject&) = delete;
    CallbackObject& operator=(const CallbackObject&) = delete;

    [[nodiscard]] const Opened& opened() const { return *first_; }

    size_t read(uint64_t offset, std::span<uint8_t> out) {
        cancel_.check();
        const size_t count = newest().read(offset, out);
        const auto& size = first_->size();
        if (count == 0 && !out.empty() && offset < size.value_or(0))
            throw Error(Fault{
                .code = SHF_E_TRUNCATED,
                .offset = offset,
                .shard = {},
                .member = {},
                .cause = "the source ends here, and said that its size is " + std::to_string(*size),
                .help = "look at what serves the URL"});
        return count;
    }

  private:
    // No locks: another thread of the parent may have held them.
    Opened& newest() {
        Opened* now = newest_.load(std::memory_order_acquire);
        while (!now->is_ours()) {
            if (!first_->seekable())
                throw Error(SHF_E_FORKED, "the source is read by the parent process",
                            "open it in the process that reads it");
            auto mine = std::make_unique<Opened>(*functions_, url_);
            if (!mine->seekable() || mine->size() != first_->size() ||
                mine->version() != first_->version())
                throw Error(SHF_E_CHANGED,
                            "the shard is another one than when the parent process opened it",
                            shrunk_help);
            mine->before = now;
            if (newest_.compare_exchange_strong(now, mine.get(), std::memory_order_acq_rel))
                return *mine.release();
        }
        return *now;
    }

    const Cancel& cancel_;
    const std::shared_ptr<const SourceFunctions> functions_;  // outlives the objects
    const std::string url_;
    Opened* const first_;
    std::atomic<Opened*> newest_;
};

class CallbackReader final : public Sequential {
  public:
    CallbackReader(std::shared_ptr<CallbackObject> object, uint64_t offset)
        : object_(std::move(object)), at_(offset) {}

    size_t read(std::span<uint8_t> out) override {
        const Opened& opened = object_->opened();
        if (opened.seekable())
            out = out.first(static_cast<size_t>(
                std::min<uint64_t>(out.size(), *opened.size() - std::min(at_, *opened.size()))));
        const size_t count = object_->read(at_, out);
        at_ += count;
        if (at_ > opened.size().value_or(at_))
            throw Error(SHF_E_CHANGED,
                        "the source gives more than " + plural(*opened.size(), "byte") +
                            ", which it said that its size is",
                        "look at what serves the URL");
        return count;
    }
    // Near bytes come with those before them, from most sources.
    bool skip(uint64_t size) override {
        const Opened& opened = object_->opened();
        if (!opened.seekable() || size < callback_cost.gap || at_ > *opened.size() ||
            size > *opened.size() - at_)
            return false;
        at_ += size;
        return true;
    }
    bool ready() override { return false; }

  private:
    const std::shared_ptr<CallbackObject> object_;
    uint64_t at_;
};

Error cannot_seek() {
    return Error(SHF_E_USAGE, "the source is read from front to back, once",
                 "copy the shard to a local disk");
}

class CallbackSource final : public Source {
  public:
    explicit CallbackSource(std::shared_ptr<CallbackObject> object) : object_(std::move(object)) {}

    [[nodiscard]] std::optional<uint64_t> size() const override { return object_->opened().size(); }
    [[nodiscard]] Identity identity() const override {
        return {.size = size(), .modified = 0, .tag = {}, .version = object_->opened().version()};
    }
    [[nodiscard]] ReadCost read_cost() const override { return callback_cost; }
    [[nodiscard]] bool seekable() const override { return object_->opened().seekable(); }

    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        if (!seekable()) throw cannot_seek();
        if (offset >= *size()) return 0;
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), *size() - offset)));
        size_t done = 0;
        while (done < out.size()) done += object_->read(offset + done, out.subspan(done));
        return done;
    }

    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        if (!seekable() && (offset > 0 || std::exchange(begun_, true))) throw cannot_seek();
        return std::make_unique<CallbackReader>(object_, offset);
    }

  private:
    const std::shared_ptr<CallbackObject> object_;
    bool begun_ = false;  // of a source that is read once
};

}  // namespace

void set_source(Options& options, std::string_view scheme, const shf_source* source, void* ctx) {
    const bool any = scheme == "*";
    if (!any && (scheme.empty() || uri_scheme(std::string(scheme) + ":") != scheme))
        throw Error(SHF_E_USAGE, "\"" + escape(scheme) + "\" is no scheme of URLs",
                    "give \"s3\" for s3://..., in lower case, or \"*\" for all schemes");
    if (scheme == "file" || scheme == "pipe")
        throw Error(SHF_E_USAGE, std::string(scheme) + ": URLs are served by the library alone",
                    "give the source a scheme of its own");
    std::shared_ptr<SourceFunctions> functions;
    if (source) {
        // What later versions add is at the end.
        if (source->struct_size < sizeof(shf_source))
            throw misbehaves("table", "has struct_size=" + std::to_string(source->struct_size) +
                                          ", which is not sizeof(shf_source)");
        if (!source->open || !source->read_at)
            throw misbehaves(source->open ? "read_at" : "open", "is NULL");
        functions = std::make_shared<SourceFunctions>(std::string(scheme), *source, ctx);
    }
    auto& all = options.sources;
    if (functions) all.reserve(all.size() + 1);
    std::erase_if(all, [&](const auto& one) { return one->scheme() == scheme; });
    if (!functions) return;
    functions->own();
    all.push_back(std::move(functions));
}

std::shared_ptr<const SourceFunctions> source_functions(const Options& options,
                                                        std::string_view scheme) {
    std::shared_ptr<const SourceFunctions> any;
    for (const auto& one : options.sources) {
        if (one->scheme() == scheme) return one;
        if (one->scheme() == "*") any = one;
    }
    return any;
}

std::unique_ptr<Source> callback_source(std::shared_ptr<const SourceFunctions> functions,
                                        const std::string& url, const Cancel& cancel) {
    return std::make_unique<CallbackSource>(
        std::make_shared<CallbackObject>(std::move(functions), url, cancel));
}

}  // namespace shf
