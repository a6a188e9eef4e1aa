#include "audio/resample_audio.h"

#include "core/dynamic_library.h"
#include "core/error.h"

#include <soxr.h>

#include <cstddef>
#include <new>
#include <string>
#include <string_view>

namespace shf {

namespace {

// Its functions, under their names without "soxr_".
struct Libsoxr {
    decltype(&soxr_oneshot) oneshot;
    decltype(&soxr_quality_spec) quality_spec;
    decltype(&soxr_runtime_spec) runtime_spec;
};

Libsoxr load_libsoxr() {
    const DynamicLibrary library("libsoxr", "libsoxr.so.0",
                                 "install libsoxr0 (Debian, Ubuntu) or soxr (Fedora)");
    Libsoxr functions;
    library.find("soxr_oneshot", functions.oneshot);
    library.find("soxr_quality_spec", functions.quality_spec);
    library.find("soxr_runtime_spec", functions.runtime_spec);
    return functions;
}

const Libsoxr& libsoxr() {
    static const Libsoxr functions = load_libsoxr();
    return functions;
}

}  // namespace

void resample_audio(std::span<const float> in, uint32_t channels, uint32_t from, uint32_t to,
                    std::span<float> out) {
    const Libsoxr& library = libsoxr();
    const soxr_quality_spec_t quality = library.quality_spec(SOXR_HQ, 0);
    const soxr_runtime_spec_t runtime = library.runtime_spec(1);  // threads
    const size_t room = out.size() / channels, wanted = room - 1;
    size_t used = 0, made = 0;
    const soxr_error_t error =
        library.oneshot(from, to, channels, in.data(), in.size() / channels, &used, out.data(),
                        room, &made, nullptr, &quality, &runtime);
    // It says "malloc failed" or "out of memory", and has no other failure for these arguments.
    const std::string_view why = error ? error : "";
    if (why.find("memory") != std::string_view::npos ||
        why.find("malloc") != std::string_view::npos)
        throw std::bad_alloc();
    if (error) throw Error(SHF_E_INTERNAL, std::string("libsoxr: ") + error);
    if (made < wanted)
        throw Error(SHF_E_INTERNAL, "libsoxr made " + std::to_string(made) + " frames of " +
                                        std::to_string(wanted));
}

}  // namespace shf
