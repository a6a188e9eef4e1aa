// Secrets that a server was sent, and may send back in what it says.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// For any number of threads.
class SentSecrets {
  public:
    // In place of those of the request before.
    void set(std::vector<std::string> secrets) {
        const std::lock_guard lock(mutex_);
        secrets_ = std::move(secrets);
    }
    // `text` with *** in place of each.
    [[nodiscard]] std::string hidden(std::string text) const {
        constexpr std::string_view instead = "***";
        const std::lock_guard lock(mutex_);
        for (const std::string& secret : secrets_)
            for (size_t at = 0; !secret.empty() && (at = text.find(secret, at)) != text.npos;
                 at += instead.size())
                text.replace(at, secret.size(), instead);
        return text;
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> secrets_;
};

}  // namespace shf
