// Versions, error texts, features.
#include "audio/audio_file.h"
#include "codec/filter.h"
#include "core/error_codes.h"
#include "video/video_file.h"
#ifdef SHF_HAVE_FEED
#include "feed/libzmq.h"
#endif
#ifdef SHF_HAVE_FEED_HTTP
#include "feed/libmicrohttpd.h"
#endif
#ifdef SHF_HAVE_CURL
#include "http/http_scheme.h"
#endif
#include "image/image_codecs.h"
#include "libarchive/libarchive_reader.h"

#include <shardfeed.h>

#include <string_view>

extern "C" {

uint32_t shf_version(void) {
    return SHF_VERSION_MAJOR * 65536 + SHF_VERSION_MINOR * 256 + SHF_VERSION_PATCH;
}

const char* shf_version_string(void) {
    return SHF_VERSION_STRING;
}

const char* shf_feature(const char* name) {
    if (name == nullptr) return nullptr;
    if (std::string_view(name) == "pipe") return "posix_spawn";
#ifdef SHF_HAVE_CURL
    if (std::string_view(name) == "http") {
        try {
            return shf::http_library();
        } catch (...) {  // this system has none
            return nullptr;
        }
    }
#endif
    if (std::string_view(name) == "audio") return shf::audio_library();
    if (std::string_view(name) == "video") return shf::video_library();
    if (std::string_view(name) == "libarchive") return shf::libarchive_version();
#ifdef SHF_HAVE_FEED
    if (std::string_view(name) == "feed") return shf::libzmq_version();
#endif
#ifdef SHF_HAVE_FEED_HTTP
    if (std::string_view(name) == "feed_http") return shf::libmicrohttpd_version();
#endif
    if (const char* version = shf::image_codec_version(name)) return version;
    return shf::codec_version(name);
}

const char* shf_strerror(int32_t code) {
    return shf::text_of_code(code);
}

const char* shf_error_name(int32_t code) {
    return shf::name_of_code(code);
}
}
