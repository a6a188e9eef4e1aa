// What is read of the boxes in a JSON field, and as what they come out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shf {

struct BoxOptions {
    enum class Format : uint8_t {
        xyxy,    // left, top, right, bottom
        xywh,    // left, top, width, height
        cxcywh,  // the middle, width, height
    };
    enum class Result : uint8_t {
        boxes,  // float32 (N, 4): left, top, right, bottom in the result's pixels
        kept,   // int64 (N): the number that each of these has in the field
    };

    Format format = Format::xyxy;
    bool relative = false;          // numbers are parts of the image's width and height
    std::vector<std::string> path;  // the names on the way to the boxes; none: the field is a list
    Result result = Result::boxes;

    bool operator==(const BoxOptions&) const = default;
};

}  // namespace shf
