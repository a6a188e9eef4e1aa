// libsndfile, loaded when the first sound is decoded.
#pragma once

#include <sndfile.h>

namespace shf {

// Its functions, under their names without "sf_".
struct Libsndfile {
    decltype(&sf_close) close;
    decltype(&sf_error) error;
    decltype(&sf_error_number) error_number;
    decltype(&sf_open_virtual) open_virtual;
    decltype(&sf_readf_float) readf_float;
    decltype(&sf_readf_short) readf_short;
    decltype(&sf_seek) seek;
    decltype(&sf_version_string) version_string;
};

// Loads it at the first call. Throws Error(UNSUPPORTED) when the system has none. It is never
// unloaded.
const Libsndfile& libsndfile();

}  // namespace shf
