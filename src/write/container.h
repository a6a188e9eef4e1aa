// What stands around the members of a shard: the headers of a tar, or the entries of a ZIP file.
#pragma once

#include "core/error.h"
#include "core/options.h"
#include "io/descriptor.h"
#include "write/shard_output.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shf {

// What is wrong with a file that becomes a field, and not with the shard.
struct FieldFileError : Error {
    using Error::Error;
};

// A file that becomes a field, too large for memory. Moved, not copied.
struct FieldFile {
    Descriptor file;
    std::string path;
    uint64_t size = 0;
    int64_t modified = 0;  // nanoseconds since 1970

    // Throws FieldFileError(CHANGED) when the file is not as it was.
    void check() const;
    // Reads at most out.size() bytes at `offset`: fewer than out.size() at the end of the file
    // alone. Throws FieldFileError.
    [[nodiscard]] size_t read(uint64_t offset, std::span<uint8_t> out) const;
};

struct NewMember {
    std::string_view name;          // not empty, no NUL
    std::span<const uint8_t> data;  // when `file` is NULL
    const FieldFile* file = nullptr;
    size_t key_size = 0;  // bytes of the name that are the key of its sample; a dot follows them

    [[nodiscard]] uint64_t size() const { return file ? file->size : data.size(); }
};

class Container {
  public:
    virtual ~Container() = default;
    // Appends a member. Returns where its data begins in the shard. Throws Error.
    virtual uint64_t add(const NewMember& member, ShardOutput& output) = 0;
    // Appends what follows the members of a sample. Throws Error.
    virtual void end_sample(ShardOutput& /*output*/) {}
    // How many bytes of the shard that takes, at most, with what the end of the shard has of it.
    [[nodiscard]] virtual uint64_t room(const NewMember& member) const = 0;
    // And what finish() appends at `position`, at most, for the members there are.
    [[nodiscard]] virtual uint64_t end_room(uint64_t position) const = 0;
    // Forgets the members since there were `count` of them.
    virtual void forget(size_t count) = 0;
    [[nodiscard]] virtual size_t count() const = 0;
    // Appends what closes the shard. Throws Error.
    virtual void finish(ShardOutput& output) = 0;
};

std::unique_ptr<Container> tar_container(TarHeaders headers);

std::unique_ptr<Container> zip_container(ZipMethod method);

// Messages (sample_message.h), each of which is one write to the sink.
std::unique_ptr<Container> message_container();

}  // namespace shf
