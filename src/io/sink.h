// Where the bytes of one shard are written to.
#pragma once

#include "core/error.h"
#include "io/prepared_file.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shf {

struct SourceContext;

// One thread at a time, any of them. Errors are thrown without the name of the shard; after one
// nothing but the destructor may be called, which discards what was not published.
class Sink {
  public:
    virtual ~Sink() = default;
    Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    // Appends. Throws Error: NOSPACE, IO, CHILD, CANCELLED.
    virtual void write(std::span<const uint8_t> bytes) = 0;
    // Whether cut() can be called.
    [[nodiscard]] virtual bool can_cut() const { return false; }
    // Removes all but the first `size` bytes. Throws Error.
    virtual void cut(uint64_t size);
    // Returns when what was written will be there after a crash of the machine, as far as the
    // system says so; nothing to do for what has no disk. Throws Error.
    virtual void sync() {}
    // The absolute path of the file with what was written, under its name of now; empty: there is
    // none that could be read.
    [[nodiscard]] virtual std::string path() const { return {}; }
    // What was written appears under its name, whole; call it once. Throws Error.
    virtual void publish() = 0;
    // In place of publish(): what was written is whole, and stays where it is until
    // publish_prepared() or discard_prepared(), of any process, gets what is returned. Throws
    // Error; USAGE where there is no name that it could wait for.
    virtual PreparedFile prepare();
};

// For a path, file:// URL, "-" (standard output), pipe:COMMAND, which has its bytes on standard
// input and must end with status 0, or what was added to Sources. Throws Error: USAGE (a scheme
// that cannot be written, no target), IO (EEXIST: a target that is there without overwrite=true),
// CHILD, AUTH, NET_*, ... The references in `context` must outlive it.
std::unique_ptr<Sink> open_sink(const std::string& url, const SourceContext& context);

// The error of a target that is there already.
Error target_exists();

}  // namespace shf
