#include "core/log.h"

#include "core/options.h"

namespace shf {

thread_local constinit LogQueue* LogQueue::current = nullptr;

LogQueue::Use::Use(LogQueue& queue) noexcept {
    current = &queue;
}

LogQueue::Use::~Use() {
    current = nullptr;
}

void LogQueue::pass_on(const Options& options) {
    std::vector<std::pair<int32_t, std::string>> messages;
    {
        const std::lock_guard lock(mutex_);
        messages.swap(messages_);
    }
    for (const auto& [level, message] : messages) log(options, level, message);
}

void log(const Options& options, int32_t level, const std::string& message) {
    if (!options.log || level > options.log_level) return;
    if (LogQueue* const queue = LogQueue::current) {
        const std::lock_guard lock(queue->mutex_);
        queue->messages_.emplace_back(level, message);
        return;
    }
    options.log(options.log_ctx, level, message.c_str());
}

}  // namespace shf
