// Compares the bytes of an object that is read from its start to its end with the digest that its
// server gives of it (H17).
#pragma once

#include "http/http_client.h"
#include "http/http_object.h"
#include "http/object_digest.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shf {

// By one thread at a time, which calls add() for all bytes in their order.
class ObjectCheck {
  public:
    // `answer`: with which the object, or the start of it, came.
    ObjectCheck(std::shared_ptr<const HttpObject> object, const HttpAnswer& answer);
    ~ObjectCheck();
    ObjectCheck(const ObjectCheck&) = delete;
    ObjectCheck& operator=(const ObjectCheck&) = delete;

    // Before the first byte is added: when `answer` has no digest, and the store gives one to those
    // who ask by HEAD, does so beside what is read. A question that fails is no error: nothing is
    // compared then. Throws Error: CANCELLED, and TIMEOUT of an opening, as the two below do.
    void ask();
    void add(std::span<const uint8_t> bytes);
    // At the end. Counts the shard as verified when it is. Throws Error(INTEGRITY).
    void finish();

  private:
    class Question;

    bool want(const std::vector<ObjectDigest>& digests);
    void look(bool wait);
    void give_up();

    const std::shared_ptr<const HttpObject> object_;
    // Of all that may be wanted; once `wanted_` is known of that alone.
    std::vector<std::unique_ptr<DigestSum>> sums_;
    std::optional<ObjectDigest> wanted_;
    std::unique_ptr<Question> question_;  // until its answer came
    uint64_t added_ = 0;                  // bytes
};

}  // namespace shf
