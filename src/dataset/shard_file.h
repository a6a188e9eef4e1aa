// The file of one shard of a dataset, opened when it is first needed.
#pragma once

#include "codec/unpacked_source.h"
#include "io/sources.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shf {

// How many files a dataset keeps open; the others are opened for each read. All datasets of a
// process together keep half of what it may have.
class FileBudget {
  public:
    FileBudget();
    ~FileBudget();  // gives back what was taken
    FileBudget(const FileBudget&) = delete;
    FileBudget& operator=(const FileBudget&) = delete;
    // Any thread.
    bool take();
    void give_back();

  private:
    int64_t most_;
    std::atomic<int64_t> taken_{0};
};

// Any number of threads, and forked children too; no locks.
class ShardFile {
  public:
    // `source` is the open shard. The references must outlive the file. With `unpacked`, which may
    // be NULL, the shard is compressed, and a lease is a source of what comes out of it.
    ShardFile(std::string url, std::unique_ptr<Source> source, const Sources& sources,
              FileBudget& budget, const UnpackedShard* unpacked = nullptr);
    ~ShardFile();
    ShardFile(const ShardFile&) = delete;
    ShardFile& operator=(const ShardFile&) = delete;

    // An open source of the shard, for the time of a read.
    class Lease {
      public:
        explicit Lease(const ShardFile& file);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        Source& operator*() const { return *source_; }
        Source* operator->() const { return source_; }

      private:
        friend ShardFile;
        struct Opened;
        std::unique_ptr<Opened> own_;
        Source* source_;
        std::optional<UnpackedSource> unpacked_;
    };

    // Whether this source of a lease is there as long as the file.
    [[nodiscard]] bool keeps(const Source& source) const;

  private:
    std::unique_ptr<Lease::Opened> open() const;

    const std::string url_;
    const Identity identity_;
    const std::shared_ptr<SeenBytes> seen_;
    const Sources& sources_;
    FileBudget& budget_;
    const UnpackedShard* const unpacked_;
    mutable std::atomic<Source*> kept_{nullptr};
};

}  // namespace shf
