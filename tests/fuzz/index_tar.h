// The shard that index_fuzz reads: every way in which the places of fields can be told.
#pragma once

#include "../unit/index_builder.h"

namespace shf::test {

inline std::string tar_of_index_fuzz() {
    return member("a.jpg", std::string(600, 'j')) + member("a.cls", "7") +
           pax({{"path", "b.jpg"}, {"size", "9"}}) + header({.name = "other"}) +
           padded("pax bytes") + member("README", "ignored") + member("b.CLS", "") +
           header({.name = "d/", .type = '5'}) + gnu_name("d/" + std::string(120, 'n') + ".txt") +
           member("short", "gnu bytes", Carrier::gnu) + pax({{"mtime", "1.5"}}) +
           member("e.jpg", std::string(600, 'e')) + end_marker();
}

}  // namespace shf::test
