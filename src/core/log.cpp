#include "core/log.h"

#include "core/options.h"

namespace shf {

void log(const Options& options, int32_t level, const std::string& message) {
    if (options.log && level <= options.log_level)
        options.log(options.log_ctx, level, message.c_str());
}

}  // namespace shf
