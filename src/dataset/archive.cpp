#include "dataset/archive.h"

#include "format/filter.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

namespace shf {

namespace {

// Too few bytes for more than one thread to be worth its start, which takes as long as copying
// this much.
constexpr uint64_t least_per_thread = 256 * 1024;

}  // namespace

void WholeFile::Free::operator()(uint8_t* bytes) const {
    std::free(bytes);
}

// Takes a scratch that lies idle, or makes one, and puts it back: two atomic exchanges.
class Archive::Lease {
  public:
    explicit Lease(const Archive& archive) : archive_(archive) {
        for (auto& place : archive_.idle_)
            if (place.load(std::memory_order_relaxed) != nullptr) {
                scratch_.reset(place.exchange(nullptr, std::memory_order_acquire));
                if (scratch_) return;
            }
        scratch_ = std::make_unique<ZipScratch>();
    }
    ~Lease() {
        for (auto& place : archive_.idle_) {
            ZipScratch* none = nullptr;
            if (place.compare_exchange_strong(none, scratch_.get(), std::memory_order_release,
                                              std::memory_order_relaxed)) {
                (void)scratch_.release();
                return;
            }
        }
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ZipScratch& operator*() const { return *scratch_; }

  private:
    const Archive& archive_;
    std::unique_ptr<ZipScratch> scratch_;
};

// Runs `action`; its errors say which archive.
template <typename Do>
auto Archive::with_url(Do action) const {
    try {
        return action();
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.shard = url_;
        throw Error(std::move(fault));
    }
}

Archive::Archive(const std::string& url, const Options& options)
    : options_(options), url_(redact(url)) {
    with_url([&] {
        source_ = open_source(url, options_, cancel_);
        if (!source_->seekable() || !source_->size()) {
            const auto input = source_->open_sequential(0);
            take_into_memory(*input, "raise memory, or copy it to a file");
            input->finish();
        }
        list({whole_.bytes.get(), whole_.size});
    });
}

Archive::Archive(std::span<const uint8_t> file, const Options& options)
    : options_(options), url_("memory") {
    with_url([&] {
        source_ = memory_source(file);
        list(file);
    });
}

Archive::~Archive() {
    for (auto& place : idle_) delete place.load(std::memory_order_relaxed);
}

// `memory` is the whole file where it is in memory.
void Archive::list(std::span<const uint8_t> memory) {
    std::array<uint8_t, zip_head> start{};
    const auto head = std::span(start).first(source_->read(0, start));
    if (is_zip(head, url_, options_)) {
        members_ = zip_members(*source_, memory, options_);
    } else {
        if (codec_of_magic(head)) {
            FilterReport report;
            const auto input = open_filter(source_->open_sequential(0), options_, report);
            take_into_memory(*input,
                             "raise memory, or decompress the file: members of a compressed tar "
                             "cannot be read in place, those of a plain tar or a ZIP can");
            input->finish();
            memory = {whole_.bytes.get(), whole_.size};
        }
        members_ = tar_members(*source_, memory, options_, cancel_);
    }
    names_.emplace(*members_);
}

// Reads all of `input`, which then is the archive.
void Archive::take_into_memory(Sequential& input, const char* help) {
    WholeFile whole;
    size_t capacity = 0;
    for (;;) {
        if (whole.size == capacity) {
            if (whole.size > options_.memory)
                throw Error(
                    SHF_E_LIMIT,
                    "the archive has more bytes than memory=" + std::to_string(options_.memory),
                    help);
            capacity = std::max<size_t>(2 * capacity, 1 << 20);
            auto* larger = static_cast<uint8_t*>(std::realloc(whole.bytes.get(), capacity));
            if (!larger) throw std::bad_alloc();
            (void)whole.bytes.release();
            whole.bytes.reset(larger);
        }
        const size_t got = input.read({whole.bytes.get() + whole.size, capacity - whole.size});
        if (got == 0) break;
        whole.size += got;
    }
    if (whole.size > options_.memory)
        throw Error(SHF_E_LIMIT,
                    "the archive has more bytes than memory=" + std::to_string(options_.memory),
                    help);
    whole_ = std::move(whole);
    source_ = memory_source({whole_.bytes.get(), whole_.size});
}

size_t Archive::find(std::string_view name) const {
    return with_url([&] { return names_->find(name); });
}

void Archive::read(size_t position, std::span<uint8_t> out) const {
    with_url([&] {
        const Lease scratch(*this);
        members_->read(position, out, *scratch);
    });
}

std::span<const uint8_t> Archive::view(size_t position) const {
    return with_url([&] { return members_->view(position); });
}

void Archive::read_many(std::span<const uint64_t> positions,
                        std::span<uint8_t* const> outputs) const {
    // In the order of the file: neighbours share pages, and disks seek less.
    std::vector<std::pair<uint64_t, size_t>> order;
    order.reserve(positions.size());
    uint64_t bytes = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
        const MemberInfo info = members_->info(static_cast<size_t>(positions[i]));
        order.emplace_back(info.offset, i);
        bytes += std::min<uint64_t>(info.size, uint64_t{1} << 40);
    }
    std::sort(order.begin(), order.end());

    std::atomic<size_t> next{0};
    std::mutex mutex;  // guards the two below; only taken when something is wrong
    size_t first_bad = positions.size();
    std::optional<Fault> fault;
    const auto work = [&]() noexcept {
        constexpr size_t step = 8;
        for (;;) {
            const size_t from = next.fetch_add(step, std::memory_order_relaxed);
            if (from >= order.size()) return;
            size_t i = 0;
            const auto failed = [&] {
                Fault what = describe_exception();
                const std::lock_guard lock(mutex);
                if (i > first_bad) return;
                first_bad = i;
                fault = std::move(what);
            };
            try {
                const Lease scratch(*this);
                for (size_t k = from; k < std::min(from + step, order.size()); ++k) {
                    i = order[k].second;
                    const auto position = static_cast<size_t>(positions[i]);
                    const auto size = static_cast<size_t>(members_->info(position).size);
                    try {
                        members_->read(position, {outputs[i], size}, *scratch);
                    } catch (...) {
                        failed();
                    }
                }
            } catch (...) {
                failed();
            }
        }
    };
    uint64_t wanted = options_.threads;
    if (wanted == 0) wanted = std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, 4);
    wanted = std::min({wanted, bytes / least_per_thread + 1, uint64_t{positions.size() / 8 + 1}});
    std::vector<std::thread> threads;
    sigset_t all, before;  // the program's handlers run on the program's threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        threads.reserve(static_cast<size_t>(wanted));
        for (uint64_t i = 1; i < wanted; ++i) threads.emplace_back(work);
    } catch (const std::exception&) {  // then with fewer
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    work();
    for (std::thread& thread : threads) thread.join();
    if (fault) {
        fault->shard = url_;
        throw Error(std::move(*fault));
    }
}

}  // namespace shf
