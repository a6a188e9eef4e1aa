#include "sample/field_slabs.h"

#include <algorithm>

namespace shf {

uint8_t* FieldSlabs::room(size_t size, size_t beside) {
    if (slabs_.empty() || slabs_.back()->capacity - used_ < size) {
        const size_t capacity = std::max(size, sizer_.next());
        // A slab without a field in it goes before the next one comes.
        if (!slabs_.empty() && (fields_.empty() || fields_.back().storage != &slabs_.back()))
            slabs_.pop_back();
        context_.admit(capacity + beside);
        slabs_.push_back(context_.pool.acquire(capacity, context_.cancel));
        used_ = 0;
    }
    return slabs_.back()->data + used_;
}

void FieldSlabs::keep(size_t size) {
    fields_.push_back({slabs_.back()->data + used_, size, &slabs_.back()});
    used_ =
        std::min((used_ + size + alignment - 1) / alignment * alignment, slabs_.back()->capacity);
}

void FieldSlabs::release() {
    fields_.clear();
    // The last slab has room for the next ones.
    while (slabs_.size() > 1) slabs_.pop_front();
}

}  // namespace shf
