// New objects in a store: in one request when they are small, else in parts, several at once.
#pragma once

#include "io/sink.h"
#include "io/source_context.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shf {

// All parts but the last one are of part_size().
struct UploadPart {
    uint64_t number;  // from 0 on
    uint64_t offset;  // of its first byte in the object
    bool last;
    std::span<const uint8_t> bytes;
};

// What a store is asked for one object. Any number of threads. All throw Error.
class Upload {
  public:
    virtual ~Upload() = default;
    Upload() = default;
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;

    // All of a small object, which appears at once.
    virtual void put(std::span<const uint8_t> bytes, const SourceContext& context) = 0;
    // Before the first part.
    virtual void begin(const SourceContext& context) = 0;
    // Returns what complete() is to say of it.
    virtual std::string put_part(const UploadPart& part, const SourceContext& context) = 0;
    // The object appears, made of all parts.
    virtual void complete(std::span<const std::string> parts, const SourceContext& context) = 0;
    // After begin(), in place of complete(): nothing is left of the parts.
    virtual void abort(const SourceContext& context) = 0;
    // Looks at what is there now. Throws Error(INTEGRITY) when it is not this object, of `size`
    // bytes.
    virtual void check(uint64_t size, const SourceContext& context) = 0;
    // After the last part: what another process needs to complete or abort it.
    virtual void describe(PreparedFile& file) const = 0;
    // In place of begin() and of all parts: it is the upload that was described so.
    virtual void resume(const PreparedFile& file) = 0;
    // How many parts may be on their way at once.
    [[nodiscard]] virtual uint64_t most_at_once() const { return UINT64_MAX; }
};

// Parts of the same size are what the stores want or like; later ones are larger, since there can
// be 10,000 (50,000 at Azure).
uint64_t part_size(uint64_t number);
inline constexpr uint64_t most_parts = 10'000;

// Keeps parts within a third of the option `memory`, since there may be three shards on their way,
// but two at least. `context` must outlive it.
std::unique_ptr<Sink> upload_sink(std::unique_ptr<Upload> upload, const SourceContext& context);

// publish_prepared() and discard_prepared() of what an upload_sink() has prepared.
void publish_upload(Upload& upload, const PreparedFile& file, const SourceContext& context);
void discard_upload(Upload& upload, const PreparedFile& file, const SourceContext& context);

// A text that nobody else has, by which an object is known to be ours.
std::string upload_id();
// The CRC-32 of an upload in base64, most significant byte first, as stores take it.
std::string crc32_base64(std::span<const uint8_t> bytes);
// The error of an object that is not as it was written.
Error not_as_written(const std::string& cause);

}  // namespace shf
