#include "batch/tokens.h"

#include "core/cancel.h"
#include "core/options.h"
#include "core/tokenizer_functions.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace shf {

namespace {

constexpr const char* tokenizer_help = "see shf_tokenizer in shardfeed.h";
// Between what a program says of an error, and what to do about it.
constexpr std::string_view before_help = "; help: ";

std::string_view text_in(const shf_bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

}  // namespace

void set_tokenizer(Options& options, const shf_tokenizer* tokenizer, void* ctx) {
    std::shared_ptr<TokenizerFunctions> functions;
    if (tokenizer) {
        // What later versions add is at the end.
        if (tokenizer->struct_size < sizeof(shf_tokenizer))
            throw Error(SHF_E_USAGE,
                        "the tokenizer has struct_size=" + std::to_string(tokenizer->struct_size) +
                            ", which is not sizeof(shf_tokenizer)",
                        tokenizer_help);
        if (!tokenizer->tokenize)
            throw Error(SHF_E_USAGE, "the tokenizer's function tokenize is NULL", tokenizer_help);
        functions = std::make_shared<TokenizerFunctions>(*tokenizer, ctx);
        functions->own();
    }
    options.tokenizer = std::move(functions);
}

Fault fault_of_text(int32_t code, const shf_text& text, std::string_view field, std::string cause,
                    std::string help) {
    Fault fault;
    fault.code = code;
    fault.shard = text_in(text.url);
    fault.key = text_in(text.key);
    fault.member = escape(fault.key + "." + std::string(field));
    fault.cause = std::move(cause);
    fault.help = std::move(help);
    return fault;
}

// ---- TokenSink ----------------------------------------------------------------------------------

void TokenSink::add(const int32_t* ids, const uint64_t* counts, size_t texts) {
    try {
        append(ids, counts, texts);
    } catch (...) {
        if (!fault_) fault_ = describe_exception();
        throw;
    }
}

void TokenSink::append(const int32_t* ids, const uint64_t* counts, size_t texts) {
    if (texts == 0) return;
    if (!counts) throw Error(SHF_E_USAGE, "the counts of tokens are NULL", tokenizer_help);
    const size_t had = tokens_.ends.size() - texts_before_;
    if (texts > wanted_ - had)
        throw Error(SHF_E_FORMAT,
                    "tokens of more than the " + plural(wanted_, "text") + " that were given",
                    "a tokenizer gives one sequence of tokens for each text");
    uint64_t more = 0;
    for (size_t i = 0; i < texts; ++i)
        if (__builtin_add_overflow(more, counts[i], &more)) more = UINT64_MAX;
    if (more > 0 && !ids) throw Error(SHF_E_USAGE, "the tokens are NULL", tokenizer_help);
    reserve(more);
    if (more > 0)
        std::memcpy(tokens_.values->data + tokens_.bytes(), ids,
                    static_cast<size_t>(more * sizeof(int32_t)));
    for (size_t i = 0; i < texts; ++i) {
        tokens_.count += counts[i];
        tokens_.ends.push_back(static_cast<int64_t>(tokens_.count));
    }
}

// Room for so many tokens more.
void TokenSink::reserve(uint64_t count) {
    const uint64_t room = memory_ / sizeof(int32_t);
    if (count > room || tokens_.count > room - count) {
        full_ = true;
        throw Error(SHF_E_LIMIT,
                    "the tokens of a batch take more than memory=" + std::to_string(memory_),
                    "raise memory, or lower batch");
    }
    const uint64_t needed = (tokens_.count + count) * sizeof(int32_t);
    const uint64_t capacity = tokens_.values ? tokens_.values->capacity : 0;
    if (tokens_.values && needed <= capacity) return;
    StorageRef larger =
        allocate_(std::max({needed, std::min(2 * capacity, memory_), uint64_t{64}}));
    if (tokens_.count > 0)
        std::memcpy(larger->data, tokens_.values->data, static_cast<size_t>(tokens_.bytes()));
    tokens_.values = std::move(larger);
}

void TokenSink::begin(size_t texts) {
    wanted_ = texts;
    texts_before_ = tokens_.ends.size();
    count_before_ = tokens_.count;
    fault_.reset();
    tokens_.ends.reserve(texts_before_ + texts);
    reserve(0);
}

std::optional<Fault> TokenSink::end(bool failed) {
    const size_t made = tokens_.ends.size() - texts_before_;
    if (!failed && !fault_ && made < wanted_)
        fault_ = Error(SHF_E_FORMAT,
                       "the tokenizer gave tokens of " + std::to_string(made) + " of " +
                           plural(wanted_, "text"),
                       "a tokenizer gives one sequence of tokens for each text")
                     .fault();
    if (failed || fault_) {
        tokens_.ends.resize(texts_before_);
        tokens_.count = count_before_;
    }
    return std::exchange(fault_, std::nullopt);
}

// ---- Tokenizing ---------------------------------------------------------------------------------

void Tokenizing::run() {
    if (!texts_.empty()) run(0, texts_.size());
}

bool Tokenizing::is_over() const {
    return bad_.size() > most_bad_ || cancel_.requested();
}

void Tokenizing::run(size_t begin, size_t end) {
    if (is_over()) {
        for (size_t i = begin; i < end; ++i) sink_.add_nothing();
        return;
    }
    std::optional<Fault> fault = call(begin, end);
    if (!fault) return;
    const int os_error = fault->os_error;
    *fault = fault_of_text(fault->code, texts_[begin], field_, std::move(fault->cause),
                           std::move(fault->help));
    fault->os_error = os_error;
    if (sink_.is_full() || !skippable(fault->code)) throw Error(std::move(*fault));
    if (end - begin == 1) {
        bad_.push_back({begin, std::move(*fault)});
        sink_.add_nothing();
        return;
    }
    const size_t bad_before = bad_.size(), middle = begin + (end - begin) / 2;
    run(begin, middle);
    run(middle, end);
    if (bad_.size() > bad_before || is_over()) return;
    fault->code = SHF_E_USAGE;
    fault->cause = "the tokenizer fails with the texts of " + plural(end - begin, "sample") +
                   " together, and with none of them alone: " + fault->cause;
    fault->help = "let it make of each text the same tokens, regardless of the others";
    throw Error(std::move(*fault));
}

std::optional<Fault> Tokenizing::call(size_t begin, size_t end) {
    sink_.begin(end - begin);
    shf_error error{};
    const int32_t code = functions_->tokenize(functions_.ctx(), texts_.data() + begin, end - begin,
                                              reinterpret_cast<shf_tokens*>(&sink_), &error);
    // What the sink found comes first: the program may have passed it on.
    if (std::optional<Fault> fault = sink_.end(code != SHF_OK)) return fault;
    if (code == SHF_OK) return std::nullopt;
    error.message[sizeof error.message - 1] = '\0';
    std::string_view said = error.message;
    Fault fault;
    fault.code = code < 0 && code >= SHF_E_INTERNAL && code != SHF_E_TIMEOUT ? code : SHF_E_FORMAT;
    fault.os_error = error.os_error;
    const size_t help = said.find(before_help);
    if (help != said.npos) {
        fault.help = said.substr(help + before_help.size());
        said = said.substr(0, help);
    } else {
        fault.help = "see why, or leave such samples out with on_error=skip_sample";
    }
    fault.cause = said.empty() ? "the tokenizer failed" : said;
    return fault;
}

}  // namespace shf
