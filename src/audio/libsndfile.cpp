#include "audio/libsndfile.h"

#include "core/dynamic_library.h"

namespace shf {

namespace {

Libsndfile load_libsndfile() {
    const DynamicLibrary library("libsndfile", "libsndfile.so.1",
                                 "install libsndfile1 (Debian, Ubuntu) or libsndfile (Fedora)");
    Libsndfile functions;
    library.find("sf_close", functions.close);
    library.find("sf_error", functions.error);
    library.find("sf_error_number", functions.error_number);
    library.find("sf_open_virtual", functions.open_virtual);
    library.find("sf_readf_float", functions.readf_float);
    library.find("sf_readf_short", functions.readf_short);
    library.find("sf_seek", functions.seek);
    library.find("sf_version_string", functions.version_string);
    return functions;
}

}  // namespace

const Libsndfile& libsndfile() {
    static const Libsndfile functions = load_libsndfile();
    return functions;
}

}  // namespace shf
