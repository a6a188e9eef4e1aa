#include "sample/field_slabs.h"

#include <algorithm>
#include <utility>

namespace shf {

uint8_t* FieldSlabs::room(size_t size, size_t beside) {
    if (slabs_.empty() || slabs_.back()->capacity - used_ < size) {
        const size_t capacity = std::max(size, sizer_.next());
        // A slab without a field in it goes before the next one comes.
        if (!slabs_.empty() && !in_use_) slabs_.pop_back();
        context_.admit(capacity + beside);
        slabs_.push_back(context_.pool.acquire(capacity, context_.cancel));
        used_ = 0;
        in_use_ = false;
    }
    return slabs_.back()->data + used_;
}

void FieldSlabs::keep(size_t size) {
    fields_.push_back({slabs_.back()->data + used_, size, &slabs_.back()});
    used_ =
        std::min((used_ + size + alignment - 1) / alignment * alignment, slabs_.back()->capacity);
    in_use_ = true;
}

void FieldSlabs::keep(StorageRef piece) {
    // One that was made for a large field is not kept for the next one, which may never come.
    constexpr size_t largest_idle = 1024 * 1024;
    if (!slabs_.empty() && !in_use_ && slabs_.back()->capacity > largest_idle) slabs_.pop_back();
    const StorageRef& kept = pieces_.emplace_back(std::move(piece));
    fields_.push_back({kept->data, kept->capacity, &kept});
}

void FieldSlabs::release() {
    fields_.clear();
    pieces_.clear();
    in_use_ = false;
    // The last slab has room for the next ones.
    while (slabs_.size() > 1) slabs_.pop_front();
}

}  // namespace shf
