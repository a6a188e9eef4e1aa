// merge-states: one saved state of those of all ranks and workers.
#include "cli/library.h"
#include "cli/saved_state.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cli {

namespace {

constexpr size_t largest_state = size_t{1} << 30;

class StateFile {
  public:
    StateFile(const std::string& path, int flags, mode_t mode = 0)
        : number_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
    ~StateFile() { close(); }
    StateFile(const StateFile&) = delete;
    StateFile& operator=(const StateFile&) = delete;

    [[nodiscard]] int number() const { return number_; }
    // Returns whether what was written has arrived, as far as close() says.
    bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

  private:
    int number_;
};

[[noreturn]] void fail_at(const std::string& path, int error, const char* help) {
    throw Failure(failed, printable(path) + ": " + std::strerror(error) + "; help: " + help);
}

std::string read_whole(const std::string& path) {
    const StateFile file(path, O_RDONLY);
    if (file.number() < 0)
        fail_at(path, errno, "name files that json.dump(state, file) has written");
    std::string made;
    std::array<char, 65536> room;
    for (;;) {
        const ssize_t count = ::read(file.number(), room.data(), room.size());
        if (count == 0) return made;
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail_at(path, errno, "name files that json.dump(state, file) has written");
        made.append(room.data(), static_cast<size_t>(count));
        if (made.size() > largest_state)
            throw Failure(failed, printable(path) +
                                      ": more than 1 GiB is no saved state; help: name files that "
                                      "json.dump(state, file) has written");
    }
}

SavedState read_state(const std::string& path) {
    const std::string text = read_whole(path);
    try {
        const SavedState state = parsed_state(text);
        merged({state});  // so that a bad one is named
        return state;
    } catch (const Failure& failure) {
        throw Failure(failure.status(), printable(path) + ": " + failure.what());
    }
}

// An old file is never replaced: with the output forgotten, it would be a state of a rank.
void write_new(const std::string& path, std::string_view text) {
    StateFile file(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file.number() < 0 && errno == EEXIST)
        throw Failure(wrong_command_line,
                      printable(path) +
                          ": there is such a file already; help: name first the new file, and "
                          "after it those of the ranks and workers");
    if (file.number() < 0) fail_at(path, errno, "name a file in a folder that can be written");
    int error = 0;
    while (!text.empty() && error == 0) {
        const ssize_t count = ::write(file.number(), text.data(), text.size());
        if (count >= 0)
            text.remove_prefix(static_cast<size_t>(count));
        else if (errno != EINTR)
            error = errno;
    }
    if (!file.close() && error == 0) error = errno;
    if (error == 0) return;
    ::unlink(path.c_str());  // rather none than a part
    fail_at(path, error, "make room there, or name another folder");
}

class MergeStates final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Makes one state of those that all ranks and workers of a run saved with "
            "json.dump(stream.state_dict(), file). Any number of ranks and workers can continue "
            "from it; best one that divides the option lanes.");
        arguments.add_option("OUT.json", output_, "is made, and must not be there yet").required();
        arguments.add_option("IN.json", inputs_, "a state of each rank and worker").required();
    }
    std::vector<Example> examples() const override {
        return {{"shardfeed merge-states all.json rank-0.json rank-1.json",
                 "Makes one state of those of two ranks, from which any number of ranks can "
                 "resume."},
                {"shardfeed merge-states all.json state-*.json",
                 "The same for all files that the pattern matches."}};
    }

    int run(const LibraryOptions& /*options*/) override {
        std::vector<SavedState> states;
        for (const std::string& path : inputs_) states.push_back(read_state(path));
        write_new(output_, text_of(merged(states)));
        return done;
    }

  private:
    std::string output_;
    std::vector<std::string> inputs_;
};

}  // namespace

std::unique_ptr<Verb> make_merge_states() {
    return std::make_unique<MergeStates>();
}

}  // namespace cli
