// A process of Python that calls a function of the user for each sample.
#pragma once

#include "cli/owned_sample.h"
#include "cli/process.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace cli {

// One thread at a time.
class PythonWorker {
  public:
    // `function` is MODULE:FUNCTION, in the working directory or where Python looks. It gets a dict
    // of the fields, as bytes, and "__key__", and returns such a dict, a list of them, or None.
    // Throws Failure.
    PythonWorker(const std::string& python, const std::string& function);
    ~PythonWorker();
    PythonWorker(const PythonWorker&) = delete;
    PythonWorker& operator=(const PythonWorker&) = delete;

    // What the function returns. Throws Failure with the traceback of an exception, or when the
    // process has ended: it can then not be called again.
    std::vector<OwnedSample> call(const SampleView& sample);
    [[nodiscard]] bool has_ended() const { return !to_; }

  private:
    struct CloseFile {
        void operator()(std::FILE* file) const { (void)std::fclose(file); }
    };
    using File = std::unique_ptr<std::FILE, CloseFile>;

    void put(std::string_view bytes);
    void put_number(uint64_t number);
    uint64_t get_number();
    std::string get();
    [[noreturn]] void fail_ended();

    File to_;
    File from_;
    std::unique_ptr<Process> process_;
};

}  // namespace cli
