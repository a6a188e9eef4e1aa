#include "write/shard_name.h"

#include "core/error.h"
#include "core/options.h"
#include "url/redact.h"
#include "url/scheme.h"

#include <filesystem>
#include <utility>

namespace shf {

namespace {

// What two names of the same file have in common.
std::string place_of(const std::string& name, const std::string& folder) {
    const std::string scheme = scheme_of(name);
    if (!scheme.empty() && scheme != "file") return name;
    return (std::filesystem::path(folder) / path_of(name)).lexically_normal().string();
}

}  // namespace

ShardName::ShardName(const std::string& pattern) {
    const auto refuse = [&](size_t at, const std::string& cause) {
        refuse_text("pattern", pattern, at, cause,
                    "one number, as %06d, and %% for a percent sign");
    };
    std::string* part = &before_;
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            *part += pattern[i];
            continue;
        }
        if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
            *part += pattern[++i];
            continue;
        }
        size_t end = i + 1;
        if (end < pattern.size() && pattern[end] == '0') {
            for (++end; end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9'; ++end)
                if (width_ <= 20) width_ = width_ * 10 + static_cast<uint64_t>(pattern[end] - '0');
            if (width_ < 1 || width_ > 20) refuse(i, "a number has 1 to 20 digits");
        }
        if (end >= pattern.size() || pattern[end] != 'd') refuse(i, "this is no number of a shard");
        if (numbered_) refuse(i, "a second number");
        numbered_ = true;
        part = &after_;
        i = end;
    }
    if (before_.empty() && after_.empty()) refuse(0, "there is no name");
}

std::string ShardName::at(uint64_t number) const {
    if (!numbered_) return before_;
    std::string digits = std::to_string(number);
    if (digits.size() < width_) digits.insert(0, width_ - digits.size(), '0');
    return before_ + digits + after_;
}

ShardNames::ShardNames(const char* pattern, const Options& options)
    : options_(options), number_(options.first_shard) {
    if (pattern && options.name_shard)
        throw Error(SHF_E_USAGE, "the shards have a pattern, and a function that names them",
                    "give one of the two");
    if (!pattern && !options.name_shard)
        throw Error(SHF_E_USAGE, "the writer has no pattern for the names of its shards",
                    "give one, as train-%06d.tar, or set a function that names them");
    if (pattern) pattern_.emplace(pattern);
    next_ = ask();
}

std::string ShardNames::ask() const {
    if (pattern_) return from_home(pattern_->at(number_));
    shf_bytes out = {nullptr, 0};
    if (options_.name_shard(options_.name_shard_ctx, number_, &out) != 0)
        throw Error(SHF_E_CANCELLED, "the function that names the shards ended the call");
    std::string name;
    if (out.data) name.assign(reinterpret_cast<const char*>(out.data), out.size);
    const std::string of_shard = " of shard " + std::to_string(number_);
    if (name.empty())
        throw Error(SHF_E_USAGE, "the function that names the shards gave no name" + of_shard,
                    "give a path, or a URL");
    if (name.find('\0') != name.npos)
        throw Error(SHF_E_USAGE, "the name" + of_shard + " has a NUL: " + escape(name),
                    "give a path, or a URL");
    return from_home(name);
}

void ShardNames::prepare() {
    if (next_.empty() && !pattern_) next_ = ask();
}

std::string ShardNames::take(const std::string& folder) {
    if (!many() && number_ != options_.first_shard)
        throw Error(SHF_E_USAGE, "the pattern has no number, so there is no second shard",
                    "put a number into it, as in train-%06d.tar");
    if (next_.empty()) next_ = ask();
    if (!pattern_) {
        last_place_ = place_of(next_, folder);
        if (!places_.insert(last_place_).second)
            throw Error(SHF_E_USAGE,
                        "the function that names the shards gave a name twice, to shard " +
                            std::to_string(number_) + " again: " + redact(next_),
                        "give every shard a name of its own");
    }
    ++number_;
    last_ = std::exchange(next_, {});
    return last_;
}

void ShardNames::put_back() {
    --number_;
    if (!pattern_) places_.erase(last_place_);
    next_ = last_;
}

}  // namespace shf
