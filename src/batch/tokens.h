// Tokens of texts, made by the functions of a program (shf_options_set_tokenizer).
#pragma once

#include "core/error.h"
#include "core/memory.h"

#include <shardfeed.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class Cancel;
struct Options;
class RequestQueue;
class TokenizerFunctions;

// What a tokenizer is to be.
void set_tokenizer(Options& options, const shf_tokenizer* tokenizer, void* ctx);
// The tokens are what the program answers to requests.
void set_tokenizer(Options& options, std::shared_ptr<RequestQueue> queue);

// Tokens of texts one after another.
struct Tokens {
    StorageRef values;               // int32
    uint64_t count = 0;              // of all texts
    std::vector<int64_t> ends = {};  // of each text
    [[nodiscard]] uint64_t bytes() const { return count * sizeof(int32_t); }
};

// What a call of a tokenizer puts tokens into: the public shf_tokens.
class TokenSink {
  public:
    // `allocate` gives memory of at least so many bytes, or throws; at most `memory` is asked for.
    TokenSink(std::function<StorageRef(uint64_t)> allocate, uint64_t memory)
        : allocate_(std::move(allocate)), memory_(memory) {}

    // shf_tokens_add(). Throws Error.
    void add(const int32_t* ids, const uint64_t* counts, size_t texts);

    // A call for so many texts begins.
    void begin(size_t texts);
    // It is over. What add() threw, also where the program did not say so; nothing else of the call
    // is kept then.
    std::optional<Fault> end(bool failed);
    // A text without tokens.
    void add_nothing() { tokens_.ends.push_back(static_cast<int64_t>(tokens_.count)); }
    // The memory is used up: no fault of a text.
    [[nodiscard]] bool is_full() const { return full_; }
    [[nodiscard]] Tokens take() { return std::move(tokens_); }

  private:
    void append(const int32_t* ids, const uint64_t* counts, size_t texts);
    void reserve(uint64_t count);

    const std::function<StorageRef(uint64_t)> allocate_;
    const uint64_t memory_;
    Tokens tokens_;
    size_t wanted_ = 0;  // texts of the call
    size_t texts_before_ = 0;
    uint64_t count_before_ = 0;
    bool full_ = false;
    std::optional<Fault> fault_;
};

// A fault of the text of a sample, in this field.
Fault fault_of_text(int32_t code, const shf_text& text, std::string_view field, std::string cause,
                    std::string help);

inline TokenSink* sink_of(shf_tokens* tokens) {
    return reinterpret_cast<TokenSink*>(tokens);
}

// One column of texts.
class Tokenizing {
  public:
    // A text that has no tokens, and why.
    struct Bad {
        size_t text;
        Fault fault;
    };

    // `field` names the column in faults. After more than `most_bad` bad texts no more are made;
    // tokens of these are none. All that is given must outlive this.
    Tokenizing(const TokenizerFunctions& functions, std::span<const shf_text> texts,
               std::string_view field, uint64_t most_bad, const Cancel& cancel, TokenSink& sink)
        : functions_(functions),
          texts_(texts),
          field_(field),
          most_bad_(most_bad),
          cancel_(cancel),
          sink_(sink) {}

    // Calls the tokenizer with all texts, and where that fails with halves of them, so that each
    // text that is bad alone is found. Throws Error for what is no fault of one text.
    void run();
    [[nodiscard]] std::vector<Bad> take_bad() { return std::move(bad_); }

  private:
    void run(size_t begin, size_t end);
    std::optional<Fault> call(size_t begin, size_t end);
    [[nodiscard]] bool is_over() const;

    const TokenizerFunctions& functions_;
    const std::span<const shf_text> texts_;
    const std::string_view field_;
    const uint64_t most_bad_;
    const Cancel& cancel_;
    TokenSink& sink_;
    std::vector<Bad> bad_;
};

}  // namespace shf
