// Memory for the fields of one sample, read one by one: slabs of the pool.
#pragma once

#include "core/memory.h"
#include "core/read_context.h"
#include "core/slab_sizer.h"
#include "sample/block_builder.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace shf {

class FieldSlabs {
  public:
    // The references must outlive it.
    FieldSlabs(const ReadContext& context, SlabSizer& sizer) : context_(context), sizer_(sizer) {}

    // Memory for the next field. `beside`: what its reading takes elsewhere meanwhile.
    uint8_t* room(size_t size, size_t beside = 0);
    // The field is in what room() gave.
    void keep(size_t size);
    // The field is this piece of other memory.
    void keep(StorageRef piece);
    [[nodiscard]] std::span<const LooseField> kept() const { return fields_; }
    void release();

  private:
    static constexpr size_t alignment = 64;

    const ReadContext context_;
    SlabSizer& sizer_;
    std::vector<LooseField> fields_;
    std::deque<StorageRef> slabs_;  // the last one has room from used_ on
    size_t used_ = 0;
    bool in_use_ = false;            // whether a field is in the last slab
    std::deque<StorageRef> pieces_;  // that are no slabs
};

}  // namespace shf
