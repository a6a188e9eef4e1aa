#include "http/object_check.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "http/http_transfer.h"
#include "io/descriptor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string_view>
#include <utility>

namespace shf {

namespace {

// In SourceUse::digest_kinds, beyond kinds of digests: some answer came; one had a digest that can
// be compared here; and how many had none, or came too late, as long as no other came. After so
// many nobody is asked any more.
constexpr uint32_t answered = uint32_t{1} << 31U, useful = uint32_t{1} << 30U;
constexpr uint32_t useless = uint32_t{1} << 24U, most_useless = 4 * useless;
constexpr uint32_t all_useless = 7 * useless;
// So many bytes are read while the answer is on its way; then it is waited for, as at the end.
constexpr uint64_t most_unanswered = 64 << 20;
// From the sending of the question, and from when all else is done.
constexpr std::chrono::milliseconds longest_unanswered{2000}, longest_at_end{500};

bool is_silent(uint32_t met) {
    return (met & useful) == 0 && (met & all_useless) >= most_useless;
}

void count_useless(std::atomic<uint32_t>& kinds) {
    uint32_t met = kinds.load(std::memory_order_relaxed);
    while ((met & useful) == 0 && !is_silent(met) &&
           !kinds.compare_exchange_weak(met, met + useless, std::memory_order_relaxed)) {
    }
}

std::string in_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += digits[byte >> 4U];
        text += digits[byte & 15U];
    }
    return text;
}

bool ends_reading(const Error& error) {
    return error.code() == SHF_E_CANCELLED || error.code() == SHF_E_TIMEOUT;
}

}  // namespace

// A request of HEAD on its way, on a client of its own. It is sent once: it is not redirected, and
// no refusal is repaired.
class ObjectCheck::Question {
  public:
    explicit Question(const HttpObject& object)
        : object_(object), client_(HttpClient::take(object.server()).release()) {
        request_.target = object.target;
        request_.method = "HEAD";
        request_.digest = true;
        object.store->pin(request_, object.first);
        object.store->prepare(request_, object.context);
        sent_ = Clock::now();
        transfer_ = std::make_unique<HttpTransfer>(*client_, request_, object.context, 0);
        client_->drive();
    }

    // False in a forked child: the answer goes to the parent process.
    [[nodiscard]] bool is_ours() const { return client_->is_ours(); }
    // Whether the answer, or a fault, is there. With `wait` it is waited for, but not for long.
    bool came(bool wait) {
        const auto until = std::min(sent_ + longest_unanswered, Clock::now() + longest_at_end);
        for (;;) {
            if (transfer_->ready()) return true;
            client_->drive();
            if (transfer_->ready()) return true;
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
            if (!wait || left.count() <= 0) return false;
            client_->wait(object_.context.cancel, left);
        }
    }
    // After that. Of another object than the one that is read there are none.
    std::vector<ObjectDigest> digests() {
        const HttpAnswer& answer = transfer_->answer();
        const HttpStore& store = *object_.store;
        if (answer.status != 200 || answer.length != object_.size ||
            store.version(answer) != store.version(object_.first))
            return {};
        return digests_of(answer);
    }

  private:
    const HttpObject& object_;
    TakenHttpClient client_;
    HttpRequest request_;
    Clock::time_point sent_;
    std::unique_ptr<HttpTransfer> transfer_;  // goes before the client
};

ObjectCheck::ObjectCheck(std::shared_ptr<const HttpObject> object, const HttpAnswer& answer)
    : object_(std::move(object)) {
    const Checksums option = object_->context.options.checksums;
    for (const ObjectDigest& digest : digests_of(answer)) {
        auto sum = DigestSum::make(digest.kind, option);
        if (!sum) continue;
        sums_.push_back(std::move(sum));
        wanted_ = digest;
        return;
    }
}

ObjectCheck::~ObjectCheck() = default;

void ObjectCheck::ask() {
    const Checksums option = object_->context.options.checksums;
    if (wanted_ || option == Checksums::none || !object_->store->has_digests()) return;
    // Of the slow ones, what this stream met before: most data sets have one kind. At the start it
    // is what stores have most.
    uint32_t met = object_->context.use.digest_kinds.load(std::memory_order_relaxed);
    if (is_silent(met)) return;
    if ((met & answered) == 0) met = bit_of(DigestKind::sha256) | bit_of(DigestKind::sha1);
    for (const DigestKind kind : digest_kinds) {
        if (!is_fast(kind) && (met & bit_of(kind)) == 0) continue;
        if (auto sum = DigestSum::make(kind, option)) sums_.push_back(std::move(sum));
    }
    try {
        question_ = std::make_unique<Question>(*object_);
    } catch (const Error& error) {
        give_up();
        if (ends_reading(error)) throw;
        count_useless(object_->context.use.digest_kinds);
    }
}

void ObjectCheck::add(std::span<const uint8_t> bytes) {
    for (const auto& sum : sums_) sum->add(bytes);
    added_ += bytes.size();
    if (question_) look(added_ > most_unanswered);
}

void ObjectCheck::give_up() {
    wanted_.reset();
    sums_.clear();
    question_.reset();
}

// Keeps what is needed for the best of `digests` that is computed here.
bool ObjectCheck::want(const std::vector<ObjectDigest>& digests) {
    for (const ObjectDigest& digest : digests) {
        const auto at = std::find_if(sums_.begin(), sums_.end(),
                                     [&](const auto& sum) { return sum->kind() == digest.kind; });
        if (at == sums_.end()) continue;
        std::swap(sums_.front(), *at);
        sums_.resize(1);
        wanted_ = digest;
        return true;
    }
    return false;
}

// Takes the answer to the question when it is there.
void ObjectCheck::look(bool wait) {
    if (!question_->is_ours()) return give_up();
    std::atomic<uint32_t>& kinds = object_->context.use.digest_kinds;
    try {
        // Others of this stream may have learned meanwhile that there is nothing to wait for.
        const bool hopeless = is_silent(kinds.load(std::memory_order_relaxed));
        if (!question_->came(wait && !hopeless)) {
            if (!wait) return;
            count_useless(kinds);
            return give_up();
        }
        const std::vector<ObjectDigest> digests = question_->digests();
        uint32_t met = answered;
        for (const ObjectDigest& digest : digests) {
            met |= bit_of(digest.kind);
            // Also a kind that is computed from the next shard on.
            if (DigestSum::make(digest.kind, object_->context.options.checksums)) met |= useful;
        }
        kinds.fetch_or(met, std::memory_order_relaxed);
        if ((met & useful) == 0) count_useless(kinds);
        question_.reset();
        if (!want(digests)) give_up();
    } catch (const Error& error) {
        give_up();
        if (ends_reading(error)) throw;
        count_useless(kinds);
    }
}

void ObjectCheck::finish() {
    if (question_) look(true);
    if (!wanted_) return;
    const std::string found = sums_.front()->result();
    if (found != wanted_->bytes) {
        const std::string name = name_of(wanted_->kind);
        throw Error(SHF_E_INTEGRITY,
                    "the bytes that came are not those whose " + name +
                        " the server gives: it is " + in_hex(found) + ", and should be " +
                        in_hex(wanted_->bytes),
                    "read the shard again; where this stays, upload it again");
    }
    ++object_->context.use.verified;
}

}  // namespace shf
