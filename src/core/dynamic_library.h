// A system library that is loaded when it is first used, so that programs that do not use it pay
// nothing. Never unloaded.
#pragma once

#include "core/error.h"

#include <dlfcn.h>

#include <string>

namespace shf {

class DynamicLibrary {
  public:
    // `name` is for messages, `install` the help of the error when it is missing. Both are
    // literals. Throws Error(UNSUPPORTED).
    DynamicLibrary(const char* name, const char* file, const char* install)
        : name_(name), install_(install), library_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
        if (library_) return;
        const char* const why = ::dlerror();
        refuse(why ? escape(why) : file);
    }

    template <typename Function>
    void find(const char* function_name, Function& function) const {
        function = reinterpret_cast<Function>(::dlsym(library_, function_name));
        if (!function) refuse(std::string("it has no function ") + function_name);
    }

    // Of this library or those that it needs; null when none of them has it.
    template <typename Function>
    [[nodiscard]] Function find_if_there(const char* function_name) const {
        return reinterpret_cast<Function>(::dlsym(library_, function_name));
    }

    [[noreturn]] void refuse(const std::string& cause) const {
        throw Error(SHF_E_UNSUPPORTED, std::string(name_) + " cannot be loaded: " + cause,
                    install_);
    }

  private:
    const char* name_;
    const char* install_;
    void* library_;
};

}  // namespace shf
