#include "write/piece_encoders.h"

#include "codec/decode_points.h"
#include "core/cancel.h"
#include "core/error.h"
#include "core/threads.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace shf {

namespace {

struct Piece {
    std::vector<uint8_t> plain, compressed;
    std::exception_ptr failure;
    bool taken = false, done = false;  // by a thread
};

void append_u32(std::vector<uint8_t>& out, uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

}  // namespace

struct PieceEncoders::State {
    const Compression compression;
    const uint64_t level;
    const size_t piece;
    const Cancel& cancel;
    PointRecorder* const recorder;
    uint64_t compressed_size = 0, plain_size = 0;  // of the pieces that were put
    uint64_t wanted;                               // threads
    std::unique_ptr<Encoder> encoder;  // of the caller's thread, when no others are wanted
    const pid_t owner = ::getpid();

    std::vector<uint8_t> plain;  // of the piece that is being filled
    std::vector<std::vector<uint8_t>> spare;
    std::vector<std::pair<uint32_t, uint32_t>> seek_table;  // sizes compressed and plain

    std::mutex mutex;
    std::condition_variable work, done;
    std::deque<std::unique_ptr<Piece>> pieces;  // in order; under the mutex
    bool stop = false;                          // under the mutex
    std::vector<std::thread> threads;

    State(Compression compression_, uint64_t level_, uint64_t threads_, const Cancel& cancel_,
          PointRecorder* recorder_)
        : compression(compression_),
          level(level_),
          piece(piece_size(compression_)),
          cancel(cancel_),
          recorder(recorder_),
          wanted(threads_ != 0 ? threads_
                               : std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1, 16)),
          encoder(make_encoder(compression_, level_)) {
        plain.reserve(piece);
    }

    void start() {
        while (threads.size() < wanted)
            start_thread(threads, "compressors", wanted, [this] { run(); });
    }

    void run() {
        std::unique_ptr<Encoder> own;
        for (;;) {
            Piece* next = nullptr;
            {
                std::unique_lock lock(mutex);
                work.wait(lock, [&] { return stop || (next = untaken()) != nullptr; });
                if (stop) return;
                next->taken = true;
            }
            try {
                if (!own) own = make_encoder(compression, level);
                own->encode(next->plain, next->compressed);
            } catch (...) {
                next->failure = std::current_exception();
            }
            const std::lock_guard lock(mutex);
            next->done = true;
            done.notify_one();
        }
    }

    // Under the mutex.
    Piece* untaken() {
        const auto found =
            std::find_if(pieces.begin(), pieces.end(), [](const auto& p) { return !p->taken; });
        return found == pieces.end() ? nullptr : found->get();
    }

    void put_piece(std::span<const uint8_t> compressed, std::span<const uint8_t> its_plain,
                   const Put& put) {
        if (compression == Compression::zstd)
            seek_table.emplace_back(static_cast<uint32_t>(compressed.size()),
                                    static_cast<uint32_t>(its_plain.size()));
        if (recorder) {
            recorder->frame(compressed_size, plain_size);
            recorder->bytes(its_plain);
        }
        compressed_size += compressed.size();
        plain_size += its_plain.size();
        put(compressed);
    }

    // Puts finished pieces until at most `most` are on their way.
    void collect(size_t most, const Put& put) {
        for (;;) {
            std::unique_ptr<Piece> first;
            {
                std::unique_lock lock(mutex);
                if (pieces.empty()) return;
                while (!pieces.front()->done) {
                    if (pieces.size() <= most) return;
                    if (done.wait_for(lock, std::chrono::milliseconds(50)) ==
                        std::cv_status::timeout)
                        cancel.check();
                }
                first = std::move(pieces.front());
                pieces.pop_front();
            }
            if (first->failure) std::rethrow_exception(first->failure);
            put_piece(first->compressed, first->plain, put);
            first->plain.clear();
            spare.push_back(std::move(first->plain));
        }
    }

    void submit(const Put& put) {
        if (wanted == 1) {
            std::vector<uint8_t> compressed;
            if (!spare.empty()) std::swap(compressed, spare.back());
            encoder->encode(plain, compressed);
            put_piece(compressed, plain, put);
            plain.clear();
            spare.resize(1);
            std::swap(compressed, spare.back());
            return;
        }
        if (threads.empty()) start();
        collect(2 * wanted - 1, put);
        auto next = std::make_unique<Piece>();
        std::swap(next->plain, plain);
        {
            const std::lock_guard lock(mutex);
            pieces.push_back(std::move(next));
        }
        work.notify_one();
        if (!spare.empty()) {
            plain = std::move(spare.back());
            spare.pop_back();
        }
        plain.reserve(piece);
    }
};

PieceEncoders::PieceEncoders(Compression compression, uint64_t level, uint64_t threads,
                             const Cancel& cancel, PointRecorder* recorder)
    : state_(std::make_unique<State>(compression, level, threads, cancel, recorder)) {}

PieceEncoders::~PieceEncoders() {
    State& s = *state_;
    if (::getpid() != s.owner) {  // the threads are the parent's
        for (std::thread& thread : s.threads) thread.detach();
        return;
    }
    {
        const std::lock_guard lock(s.mutex);
        s.stop = true;
    }
    s.work.notify_all();
    for (std::thread& thread : s.threads) thread.join();
}

void PieceEncoders::write(std::span<const uint8_t> bytes, const Put& put) {
    State& s = *state_;
    while (!bytes.empty()) {
        const size_t count = std::min(bytes.size(), s.piece - s.plain.size());
        s.plain.insert(s.plain.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
        bytes = bytes.subspan(count);
        if (s.plain.size() == s.piece) s.submit(put);
    }
}

void PieceEncoders::flush(const Put& put) {
    State& s = *state_;
    if (!s.plain.empty()) s.submit(put);
    s.collect(0, put);
}

void PieceEncoders::finish(const Put& put) {
    State& s = *state_;
    flush(put);
    if (s.seek_table.empty()) return;
    // A skippable frame, with a footer that is found from the end of the file.
    std::vector<uint8_t> table;
    append_u32(table, 0x184d2a5e);
    append_u32(table, static_cast<uint32_t>(8 * s.seek_table.size() + 9));
    for (const auto& [compressed, plain] : s.seek_table) {
        append_u32(table, compressed);
        append_u32(table, plain);
    }
    append_u32(table, static_cast<uint32_t>(s.seek_table.size()));
    table.push_back(0);  // no checksums here: each frame has one
    append_u32(table, 0x8f92eab1);
    put(table);
}

}  // namespace shf
