// What a program makes tokens of texts with (shf_options_set_tokenizer).
#pragma once

#include <shardfeed.h>

namespace shf {

// Shared by all copies of the options and by what was opened with them; the last one releases ctx.
class TokenizerFunctions {
  public:
    TokenizerFunctions(const shf_tokenizer& functions, void* ctx)
        : functions_(functions), ctx_(ctx) {}
    ~TokenizerFunctions() {
        if (owns_ && functions_.release) functions_.release(ctx_);
    }
    TokenizerFunctions(const TokenizerFunctions&) = delete;
    TokenizerFunctions& operator=(const TokenizerFunctions&) = delete;

    // From now on ctx is the library's: until then nothing that fails may release it.
    void own() noexcept { owns_ = true; }

    [[nodiscard]] void* ctx() const { return ctx_; }
    const shf_tokenizer* operator->() const { return &functions_; }

  private:
    const shf_tokenizer functions_;
    void* const ctx_;
    bool owns_ = false;
};

}  // namespace shf
