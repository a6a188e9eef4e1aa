#include "tar/window.h"

#include "core/cancel.h"

#include <algorithm>
#include <cstring>

namespace shf {

namespace {

constexpr size_t page = 4096;
// Up to this many bytes in front of the needed ones are copied along to keep a sample in one slab.
constexpr size_t longest_carry = 64 * 1024;
// A slab above this size is not kept while the reader waits for the next one, when no more than
// this many of its bytes go along.
constexpr size_t largest_kept = 1024 * 1024;
constexpr size_t longest_aside = 128 * 1024;
// Bytes asked for at once, so that a cancel is seen soon.
constexpr size_t longest_read = 16 * 1024 * 1024;

// Some bytes beyond a large member, so that the headers and small fields after it come along.
size_t some_more(size_t size) {
    return std::clamp<size_t>(size / 32, 2 * page, 16 * page);
}

}  // namespace

Window::Window(Sequential& input, const ReadContext& context, SlabSizer& sizer, SlabKeeper* keeper)
    : input_(input), context_(context), sizer_(sizer), keeper_(keeper) {}

bool Window::fill(size_t size) {
    if (mapping_) return show(size);
    while (stop_ - next_ < size) {
        if (ended_) return false;
        if (room_ - next_ < size || room_ == stop_) move_to_new_slab(size);
        if (!input_.ready()) context_.about_to_wait();
        context_.cancel.check();
        const size_t count = input_.read({data_ + stop_, std::min(room_ - stop_, longest_read)});
        if (count == 0) ended_ = true;
        stop_ += count;
    }
    return true;
}

// Leaves the current slab, apart from the bytes that go along to the next one: returns where they
// start.
size_t Window::leave() {
    const size_t keep = mark_ == none ? next_ : mark_;
    if (next_ - keep <= longest_carry) return keep;
    keeper_->leave_behind(slab_);
    return mark_ = next_;
}

// Makes the slab a piece of the mapping with the next `size` bytes, or with all that are left.
bool Window::show(size_t size) {
    const std::span<const uint8_t> all = mapping_->bytes();
    const auto seen_to = static_cast<size_t>(start_) + stop_;
    if (seen_to == all.size()) return false;
    context_.cancel.check();
    const size_t keep = leave();
    const size_t from = static_cast<size_t>(start_) + keep;
    const size_t carried = next_ - keep;
    const size_t left = all.size() - from;
    const size_t length =
        size >= left ? left
                     : std::min(std::max(carried + size + some_more(size), sizer_.next()), left);
    if (slab_ && slab_->capacity > largest_kept) slab_ = {};
    context_.admit(length);
    mapping_->expect({.offset = seen_to, .size = from + length - seen_to}, true);
    slab_ = context_.pool.borrow(mapping_->memory(), all.subspan(from, length));
    start_ = from;
    next_ = carried;
    stop_ = room_ = length;
    data_ = slab_->data;
    if (mark_ != none) mark_ = 0;
    return size <= stop_ - next_;
}

void Window::move_to_new_slab(size_t size) {
    const size_t keep = leave();
    const size_t carry = stop_ - keep;
    // Reads go to an address that has the same place in its page as the bytes have in the shard:
    // the kernel then copies whole pages from its cache to whole pages of ours.
    const size_t phase = static_cast<size_t>((start_ + stop_) % page);
    const size_t front = carry + (phase + page - carry % page) % page;
    const size_t rest = next_ + size - stop_;
    const size_t wanted = sizer_.next();
    size_t capacity = front + rest + some_more(size);
    if (capacity < wanted) capacity = wanted;
    const uint8_t* carried = data_ + keep;
    if (slab_ && slab_->capacity > largest_kept && carry <= longest_aside) {
        // The reader may sleep in admit() for long, and a large sample that the user has had and
        // freed must not stay for the sake of a few bytes after it.
        carried_.assign(carried, carried + carry);
        carried = carried_.data();
        slab_ = {};
    }
    context_.admit(capacity);
    StorageRef slab = context_.pool.acquire(capacity, context_.cancel);
    uint8_t* data = slab->data + front - carry;
    if (carry > 0) std::memcpy(data, carried, carry);
    start_ += keep;
    next_ -= keep;
    stop_ = carry;
    if (mark_ != none) mark_ = 0;
    data_ = data;
    // Not all that the pool gave: what is read beyond a large member is only carried along.
    room_ = static_cast<size_t>(slab->data + capacity - data);
    slab_ = std::move(slab);
}

size_t Window::read(std::span<uint8_t> out) {
    constexpr size_t direct = 16 * 1024;  // less is read ahead
    if (next_ == stop_ && !ended_ && !mapping_ && out.size() >= direct) {
        if (!input_.ready()) context_.about_to_wait();
        context_.cancel.check();
        const size_t count = input_.read(out.first(std::min(out.size(), longest_read)));
        ended_ = count == 0;
        start_ += count;
        return count;
    }
    if (!need(1)) return 0;
    const size_t count = std::min(out.size(), stop_ - next_);
    std::memcpy(out.data(), data_ + next_, count);
    next_ += count;
    return count;
}

// Moves the end of what was seen.
bool Window::jump(uint64_t size) {
    if (!mapping_) return input_.skip(size);
    return size <= mapping_->bytes().size() - (start_ + stop_);
}

bool Window::skip(uint64_t size, uint64_t worth) {
    if (const uint64_t seen = stop_ - next_;
        size > seen && size - seen > worth && jump(size - seen)) {
        if (mark_ != none) keeper_->leave_behind(slab_);  // what follows is not behind it in memory
        start_ += size - seen;
        next_ = stop_;
        if (mark_ != none) mark_ = next_;
        return true;
    }
    while (size > 0) {
        const auto step = static_cast<size_t>(std::min<uint64_t>(size, stop_ - next_));
        next_ += step;
        size -= step;
        if (size > 0 && !need(1)) return false;
    }
    return true;
}

}  // namespace shf
