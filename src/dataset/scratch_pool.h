// Scratches for threads that come and go, without locks.
#pragma once

#include "zip/zip_entry.h"

#include <array>
#include <atomic>
#include <memory>

namespace shf {

class ScratchPool {
  public:
    ScratchPool() = default;
    ~ScratchPool() {
        for (auto& place : idle_) delete place.load(std::memory_order_relaxed);
    }
    ScratchPool(const ScratchPool&) = delete;
    ScratchPool& operator=(const ScratchPool&) = delete;

    // A scratch for one thread: one that lies idle, or a new one. Goes back when it is destroyed.
    class Lease {
      public:
        explicit Lease(ScratchPool& pool) : pool_(pool) {
            for (auto& place : pool_.idle_) {
                if (!place.load(std::memory_order_relaxed)) continue;
                scratch_.reset(place.exchange(nullptr, std::memory_order_acquire));
                if (scratch_) return;
            }
            scratch_ = std::make_unique<ZipScratch>();
        }
        ~Lease() {
            for (auto& place : pool_.idle_) {
                ZipScratch* none = nullptr;
                if (!place.compare_exchange_strong(none, scratch_.get(), std::memory_order_release,
                                                   std::memory_order_relaxed))
                    continue;
                (void)scratch_.release();
                return;
            }
        }
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ZipScratch& operator*() const { return *scratch_; }

      private:
        ScratchPool& pool_;
        std::unique_ptr<ZipScratch> scratch_;
    };

  private:
    std::array<std::atomic<ZipScratch*>, 16> idle_{};
};

}  // namespace shf
