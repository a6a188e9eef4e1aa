#include "cli/python_worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace cli {

namespace {

// Numbers are 8 bytes in the order of the machine; texts are bytes after their number. A sample is
// its number of fields, its key, and names and contents. A reply is 0, the number of samples and
// these; or 1 and a traceback.
constexpr const char* program = R"PY(
import importlib, json, os, struct, sys, traceback

out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
given = os.fdopen(os.dup(0), "rb")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # programs that the function runs read nothing of ours
number = struct.Struct("=Q")


def text():
    return given.read(number.unpack(given.read(8))[0])


def put(data):
    return number.pack(len(data)) + data


def encoded(field, value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bool, int, float)):
        return str(value).encode()
    if isinstance(value, (dict, list)):
        return json.dumps(value).encode()
    raise TypeError(f"field {field}: a {type(value).__name__} is no bytes, str, number, dict or list")


def row(sample):
    key = sample["__key__"].encode("utf-8", "surrogateescape")
    fields = [(name, value) for name, value in sample.items() if name != "__key__"]
    parts = [number.pack(len(fields)), put(key)]
    for name, value in fields:
        parts += [put(name.encode("utf-8", "surrogateescape")), put(encoded(name, value))]
    return b"".join(parts)


def reply(sample):
    result = function(sample)
    made = [] if result is None else [result] if isinstance(result, dict) else list(result)
    return number.pack(0) + number.pack(len(made)) + b"".join(map(row, made))


sys.path.insert(0, "")
module, _, name = sys.argv[1].partition(":")
try:
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
except BaseException:
    fault = traceback.format_exc()

    def function(sample):
        raise ImportError(fault)


while True:
    head = given.read(8)
    if not head:
        break
    count = number.unpack(head)[0]
    sample = {"__key__": text().decode("utf-8", "surrogateescape")}
    for _ in range(count):
        field = text().decode("utf-8", "surrogateescape")
        sample[field] = text()
    try:
        answer = reply(sample)
    except Exception:
        answer = number.pack(1) + put(traceback.format_exc().strip().encode("utf-8", "replace"))
    out.write(answer)
    out.flush()
)PY";

struct Pipe {
    int read_end = -1;
    int write_end = -1;
};

Pipe new_pipe() {
    std::array<int, 2> ends = {-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        throw Failure(failed, std::string("pipe: ") + std::strerror(errno));
    return {ends[0], ends[1]};
}

}  // namespace

PythonWorker::PythonWorker(const std::string& python, const std::string& function) {
    const Pipe in = new_pipe();
    to_.reset(::fdopen(in.write_end, "wb"));
    const Pipe out = new_pipe();
    from_.reset(::fdopen(out.read_end, "rb"));
    try {
        process_ = std::make_unique<Process>(Command{.words = {python, "-c", program, function},
                                                     .environment = {},
                                                     .input = in.read_end,
                                                     .output = out.write_end});
    } catch (...) {
        (void)::close(in.read_end);
        (void)::close(out.write_end);
        throw;
    }
    (void)::close(in.read_end);
    (void)::close(out.write_end);
}

PythonWorker::~PythonWorker() = default;

std::vector<OwnedSample> PythonWorker::call(const SampleView& sample) {
    put_number(sample.fields.size());
    put(sample.key);
    for (const FieldView& field : sample.fields) {
        put(field.name);
        put(text(field.data));
    }
    if (std::fflush(to_.get()) != 0) fail_ended();
    if (get_number() != 0) throw Failure(failed, get());
    std::vector<OwnedSample> made(get_number());
    for (OwnedSample& one : made) {
        const uint64_t fields = get_number();
        one.key = get();
        for (uint64_t i = 0; i < fields; ++i) {
            std::string name = get();
            std::string data = get();
            one.fields.emplace_back(std::move(name), std::move(data));
        }
    }
    return made;
}

void PythonWorker::put(std::string_view bytes) {
    put_number(bytes.size());
    (void)std::fwrite(bytes.data(), 1, bytes.size(), to_.get());  // fflush says whether it failed
}

void PythonWorker::put_number(uint64_t number) {
    (void)std::fwrite(&number, sizeof number, 1, to_.get());
}

uint64_t PythonWorker::get_number() {
    uint64_t number = 0;
    if (std::fread(&number, sizeof number, 1, from_.get()) != 1) fail_ended();
    return number;
}

std::string PythonWorker::get() {
    std::string bytes(get_number(), '\0');
    if (std::fread(bytes.data(), 1, bytes.size(), from_.get()) != bytes.size()) fail_ended();
    return bytes;
}

void PythonWorker::fail_ended() {
    to_.reset();
    const std::string fault = process_->wait();
    throw Failure(
        failed, "the process of Python has ended: " + (fault.empty() ? "its status is 0" : fault));
}

}  // namespace cli
