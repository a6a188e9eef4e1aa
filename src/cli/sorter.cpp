#include "cli/sorter.h"

#include "cli/interrupts.h"
#include "cli/terminal.h"

#include <sys/uio.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <queue>
#include <span>

namespace cli {

namespace {

// Files that are merged at once: enough for 16 GB in 256 MiB, and few enough to be open together.
constexpr size_t most_merged = 128;
constexpr size_t smallest_buffer = size_t{64} << 10, largest_buffer = size_t{1} << 20;

[[noreturn]] void fail_file(const std::string& folder, const char* what) {
    const int error = errno;
    throw Failure(failed, printable(folder) + ": " + what +
                              " a file of the sort: " + std::strerror(error) +
                              "; help: --tmpdir names a folder with room for all samples");
}

// Writes all of `parts`, which are used up, past the buffer of the file.
void write_parts(std::FILE* file, std::span<iovec> parts, const std::string& folder) {
    while (!parts.empty()) {
        const size_t most = std::min<size_t>(parts.size(), IOV_MAX);
        const ssize_t done = ::writev(::fileno(file), parts.data(), static_cast<int>(most));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) fail_file(folder, "writing");
        auto left = static_cast<size_t>(done);
        while (!parts.empty() && left >= parts.front().iov_len) {
            left -= parts.front().iov_len;
            parts = parts.subspan(1);
        }
        if (left == 0) continue;
        parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + left;
        parts.front().iov_len -= left;
    }
}

// A record is a row of texts, each after its size of 8 bytes: the order, the key, and the name and
// bytes of each field. Its own size comes before it. Only this process reads it.
void put(std::string& out, std::string_view text) {
    const uint64_t size = text.size();
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out.append(text);
}

std::string_view get(std::string_view& record) {
    uint64_t size = 0;
    std::memcpy(&size, record.data(), sizeof size);
    const std::string_view text = record.substr(sizeof size, size);
    record.remove_prefix(sizeof size + size);
    return text;
}

std::string_view order_of(std::string_view record) {
    return get(record);
}

void give(std::string_view record, std::vector<FieldView>& fields,
          const std::function<void(const SampleView&)>& take) {
    if (interrupted()) throw Failure(failed, "interrupted");
    (void)get(record);
    const std::string_view key = get(record);
    fields.clear();
    while (!record.empty()) {
        const std::string_view name = get(record);
        const std::string_view data = get(record);
        fields.push_back({name, {reinterpret_cast<const uint8_t*>(data.data()), data.size()}});
    }
    take({.key = key, .fields = fields});
}

}  // namespace

// The records of one run, from its file.
class Sorter::Reader {
  public:
    Reader(std::FILE* file, size_t buffer, const std::string& folder)
        : fd_(::fileno(file)), folder_(folder), buffer_(buffer, '\0') {
        if (::lseek(fd_, 0, SEEK_SET) < 0) fail_file(folder_, "reading");
    }

    // False at the end.
    bool next() {
        start_ += size_;
        size_ = 0;
        uint64_t size = 0;
        if (!fill(sizeof size)) return false;
        std::memcpy(&size, buffer_.data() + start_, sizeof size);
        start_ += sizeof size;
        if (!fill(size)) {
            errno = EIO;  // nobody else can have shortened it
            fail_file(folder_, "reading");
        }
        size_ = size;
        return true;
    }
    // Until next().
    [[nodiscard]] std::string_view record() const {
        return std::string_view(buffer_).substr(start_, size_);
    }

  private:
    // Whether `wanted` bytes lie from start_ on, or that many come from the file.
    bool fill(size_t wanted) {
        if (end_ - start_ >= wanted) return true;
        std::memmove(buffer_.data(), buffer_.data() + start_, end_ - start_);
        end_ -= start_;
        start_ = 0;
        if (buffer_.size() < wanted) buffer_.resize(wanted);
        while (end_ < wanted) {
            const ssize_t count = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) fail_file(folder_, "reading");
            if (count == 0) return false;
            end_ += static_cast<size_t>(count);
        }
        return true;
    }

    const int fd_;
    const std::string& folder_;
    std::string buffer_;
    size_t start_ = 0, size_ = 0, end_ = 0;  // of the record, and of what was read
};

Sorter::Sorter(std::string folder, uint64_t memory, bool reverse)
    : folder_(std::move(folder)), memory_(memory), reverse_(reverse) {}

void Sorter::add(const std::string& order, const SampleView& sample) {
    uint64_t size = order.size() + sample.key.size() + 64;
    for (const FieldView& field : sample.fields) size += field.name.size() + field.data.size + 16;
    if (!entries_.empty() && records_.size() + size + entries_.size() * sizeof(Entry) > memory_)
        spill();
    if (records_.capacity() == 0)  // memory that is not written to is not taken
        records_.reserve(std::min<uint64_t>(memory_, uint64_t{1} << 30));
    records_.append(sizeof(uint64_t), '\0');
    const uint64_t start = records_.size();
    put(records_, order);
    put(records_, sample.key);
    for (const FieldView& field : sample.fields) {
        put(records_, field.name);
        put(records_, text(field.data));
    }
    const uint64_t recorded = records_.size() - start;
    std::memcpy(records_.data() + start - sizeof recorded, &recorded, sizeof recorded);
    entries_.push_back({start, recorded});
}

void Sorter::finish(const std::function<void(const SampleView&)>& take) {
    std::vector<FieldView> fields;
    if (runs_.empty()) {
        sort_run();
        const std::string_view all = records_;
        for (const Entry& entry : entries_) give(all.substr(entry.start, entry.size), fields, take);
        return;
    }
    spill();
    records_ = {};
    entries_ = {};
    while (runs_.size() > most_merged) {
        std::vector<File> longer;
        for (size_t first = 0; first < runs_.size(); first += most_merged) {
            const size_t last = std::min(first + most_merged, runs_.size());
            File file = new_file();
            const auto room = std::make_unique_for_overwrite<char[]>(largest_buffer);
            std::setvbuf(file.get(), room.get(), _IOFBF, largest_buffer);
            merge(first, last, [&](std::string_view record) {
                const uint64_t size = record.size();
                if (std::fwrite(&size, sizeof size, 1, file.get()) != 1 ||
                    std::fwrite(record.data(), 1, record.size(), file.get()) != record.size())
                    fail_file(folder_, "writing");
            });
            if (std::fflush(file.get()) != 0) fail_file(folder_, "writing");
            std::setvbuf(file.get(), nullptr, _IONBF, 0);
            for (size_t i = first; i < last; ++i) runs_[i].reset();
            longer.push_back(std::move(file));
        }
        runs_ = std::move(longer);
    }
    merge(0, runs_.size(), [&](std::string_view record) { give(record, fields, take); });
}

void Sorter::sort_run() {
    const std::string_view all = records_;
    std::stable_sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
        return comes_before(order_of(all.substr(a.start)), order_of(all.substr(b.start)));
    });
}

void Sorter::spill() {
    sort_run();
    File file = new_file();
    // Many records with one call, from where they lie.
    std::vector<iovec> parts;
    for (const Entry& entry : entries_) {
        parts.push_back(
            {records_.data() + entry.start - sizeof(uint64_t), entry.size + sizeof(uint64_t)});
        if (parts.size() < IOV_MAX) continue;
        write_parts(file.get(), parts, folder_);
        parts.clear();
    }
    write_parts(file.get(), parts, folder_);
    runs_.push_back(std::move(file));
    entries_.clear();
    // A large sample is not a reason to keep its memory.
    if (records_.capacity() > memory_) records_ = {};
    records_.clear();
}

Sorter::File Sorter::new_file() const {
    int fd = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {  // not on every file system
        std::string name = folder_ + "/shardfeed-sort-XXXXXX";
        fd = ::mkostemp(name.data(), O_CLOEXEC);
        if (fd >= 0) ::unlink(name.c_str());
    }
    std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "w+b");
    if (!file) {
        if (fd >= 0) ::close(fd);
        fail_file(folder_, "making");
    }
    return File(file);
}

void Sorter::merge(size_t first, size_t last, const std::function<void(std::string_view)>& take) {
    const auto share = static_cast<size_t>(memory_ / (last - first));
    const size_t buffer = std::clamp(share, smallest_buffer, largest_buffer);
    std::vector<std::unique_ptr<Reader>> readers;
    // The reader that comes first is on top; of equal ones that of the earlier run.
    const auto comes_after = [&](size_t a, size_t b) {
        const std::string_view mine = order_of(readers[a]->record());
        const std::string_view other = order_of(readers[b]->record());
        if (mine == other) return a > b;
        return comes_before(other, mine);
    };
    std::priority_queue<size_t, std::vector<size_t>, decltype(comes_after)> queue(comes_after);
    for (size_t i = first; i < last; ++i) {
        readers.push_back(std::make_unique<Reader>(runs_[i].get(), buffer, folder_));
        if (readers.back()->next()) queue.push(readers.size() - 1);
    }
    while (!queue.empty()) {
        const size_t i = queue.top();
        take(readers[i]->record());
        queue.pop();
        if (readers[i]->next()) queue.push(i);
    }
}

}  // namespace cli
