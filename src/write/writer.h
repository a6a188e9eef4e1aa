// Samples in, shards out: shf_writer.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "index/shard_index.h"
#include "io/source_context.h"
#include "sample/block.h"
#include "sample/key_set.h"
#include "write/container.h"
#include "write/file_field.h"
#include "write/member_names.h"
#include "write/other_indexes.h"
#include "write/publisher.h"
#include "write/shard_name.h"
#include "write/shard_output.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// One thread at a time. An error of a sample (USAGE, and of a file that is to become a field) drops
// that sample, and the writer can continue. Other errors repeat. What is not published when the
// writer is destroyed is discarded.
class Writer {
  public:
    // `pattern` NULL: a function in `options` names the shards. Throws Error(USAGE). Creates
    // nothing.
    Writer(const char* pattern, const Options& options);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Begins a sample; one that was begun and not ended is dropped.
    void begin(std::string_view key);
    // Adds a field to it. The bytes are copied.
    void field(std::string_view name, std::span<const uint8_t> data);
    // The same without a copy: the bytes are the caller's, and stay as they are until the sample is
    // ended or dropped.
    void field_borrowed(std::string_view name, std::span<const uint8_t> data);
    // The same with the bytes of a file. A large one is read at end(), and must not change until
    // then.
    void field_file(std::string_view name, const std::string& path);
    // The same with all bytes of what a URL of a shard may name, up to the option "memory".
    void field_url(std::string_view name, const std::string& url);
    // Forgets the sample under construction.
    void drop();
    // Writes the sample.
    void end();
    // Writes a sample at once.
    void write(std::string_view key, std::span<const FieldView> fields);

    // Ends the shard that is being written, when it has samples. It is published meanwhile.
    void next_shard();
    // Hands all that was written to the system; `durable`: to the disk.
    void flush(bool durable);
    // Ends the last shard, and returns when all are published. No other call may follow.
    void finish();

    void cancel() noexcept { cancel_.request(); }
    [[nodiscard]] const Options& options() const { return options_; }
    // All shards that were published so far, in order.
    [[nodiscard]] const std::vector<PublishedShard>& shards();

  private:
    struct Field {
        std::string name;  // of the member
        uint32_t suffix;   // where the name of the field starts in it
        std::span<const uint8_t> data;
        bool copied = false;  // into copied_, from `start` on; else data is the caller's
        size_t start = 0;
        size_t size = 0;
        FieldFile file;  // open when the bytes are to be read from it
    };
    struct Shard;

    void check_prepare() const;
    void require_sample() const;
    [[nodiscard]] Field borrowed_field(std::string_view name, std::span<const uint8_t> data);
    void write_sample();
    uint64_t new_key();
    void check_name(const std::string& name) const;
    void open_shard();
    void add_members();
    [[nodiscard]] bool is_full() const;
    [[nodiscard]] static NewMember member_of(const Field& field);
    void index_sample(uint64_t header, std::span<const uint64_t> starts);
    template <typename Work>
    void work(Work body);

    const Options options_;
    const std::string folder_;  // in which relative names are, when the writer is opened
    ShardNames names_;
    const bool zip_;
    const Compression compression_;
    Cancel cancel_;
    const bool messages_;  // samples are sent as messages
    const bool stream_;    // a command, standard output, or messages
    const bool slow_;      // commands and servers: publishing may take long
    const pid_t owner_;
    SourceUse use_;  // nobody asks for it
    MemberNames member_names_;
    std::optional<Fault> failure_;
    bool finished_ = false;

    // The sample under construction.
    bool in_sample_ = false;
    std::string key_;
    std::vector<Field> fields_;
    std::vector<uint8_t> copied_;

    std::unique_ptr<Shard> shard_;
    OtherIndexes foreign_;
    std::vector<std::shared_ptr<const Schema>> schemas_;  // the last ones
    std::vector<PublishedShard> shards_;
    Publisher publisher_;
};

}  // namespace shf
