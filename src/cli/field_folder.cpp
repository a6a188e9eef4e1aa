#include "cli/field_folder.h"

#include "cli/library.h"
#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cli {

namespace {

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int get() const { return number_; }
    // Says whether it could be closed, which is where some file systems report a full disk.
    bool close() { return ::close(std::exchange(number_, -1)) == 0; }
    void replace(int number) {
        if (number_ >= 0) ::close(number_);
        number_ = number;
    }

  private:
    int number_;
};

// NUL, CON, COM1 and so on, whatever their suffix: devices for Windows.
bool is_device(std::string_view component) {
    std::string stem(component.substr(0, component.find('.')));
    std::transform(stem.begin(), stem.end(), stem.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    constexpr std::array<std::string_view, 4> names = {"NUL", "CON", "PRN", "AUX"};
    if (std::find(names.begin(), names.end(), stem) != names.end()) return true;
    return stem.size() == 4 && (stem.starts_with("COM") || stem.starts_with("LPT")) &&
           stem[3] >= '0' && stem[3] <= '9';
}

// Why a file of this name is not written; empty for a good one.
const char* refusal(std::string_view name) {
    if (name.empty()) return "it is empty";
    if (name[0] == '/' || name[0] == '\\') return "it is absolute";
    if (name.find('\0') != std::string_view::npos) return "it has a NUL";
    if (name.size() > 1 && name[1] == ':') return "it begins with a drive";
    while (true) {
        const size_t end = std::min(name.find_first_of("/\\"), name.size());
        const std::string_view component = name.substr(0, end);
        if (component == "..") return "it leads out of the folder";
        if (component.empty() || component == ".") return "it has an empty component";
        if (is_device(component)) return "it is that of a device on some systems";
        if (end == name.size()) return "";
        name.remove_prefix(end + 1);
    }
}

[[noreturn]] void fail_with(const std::string& path, int error, const char* help) {
    throw Failure(failed, printable(path) + ": " + std::strerror(error) + "; help: " + help);
}

}  // namespace

FieldFolder::FieldFolder(const std::string& path) : path_(path) {
    if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
        fail_with(path, errno, "give a folder that can be made");
    folder_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) fail_with(path, errno, "give a folder that can be written to");
}

FieldFolder::~FieldFolder() {
    ::close(folder_);
}

void FieldFolder::write(std::string_view key, std::string_view field, shf_bytes data) {
    const std::string name = std::string(key) + (field.empty() ? "" : ".") + std::string(field);
    const std::string path = path_ + "/" + name;
    if (const char* why = refusal(name); *why)
        throw Failure(failed, "the name " + printable(name) + " is not written to the folder: " +
                                  why + "; help: write the sample to standard output");
    Descriptor at(::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::string_view left = name;
    for (size_t end = left.find('/'); end != std::string_view::npos; end = left.find('/')) {
        const std::string component(left.substr(0, end));
        if (::mkdirat(at.get(), component.c_str(), 0777) != 0 && errno != EEXIST)
            fail_with(path, errno, "give a folder that can be written to");
        at.replace(
            ::openat(at.get(), component.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (at.get() < 0) fail_with(path, errno, "give a folder without files and links there");
        left.remove_prefix(end + 1);
    }
    const std::string last(left);
    Descriptor file(::openat(at.get(), last.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.get() < 0) fail_with(path, errno, "remove the file, or give another folder");
    int error = 0;
    for (size_t written = 0; written < data.size && error == 0;) {
        const ssize_t count = ::write(file.get(), data.data + written, data.size - written);
        if (count >= 0)
            written += static_cast<size_t>(count);
        else if (errno != EINTR)
            error = errno;
    }
    if (!file.close() && error == 0) error = errno;
    if (error != 0) {
        ::unlinkat(at.get(), last.c_str(), 0);  // no file that is not whole
        fail_with(path, error, "make room, or give another folder");
    }
}

}  // namespace cli
