// A server in memory for tests of the cache: shards at test:// URLs, whose bytes are counted over
// all processes.
#pragma once

#include "cache/cache_block.h"
#include "cache/cache_folder.h"
#include "cache/cached_source.h"
#include "core/error.h"
#include "core/options.h"
#include "io/sources.h"
#include "temp_shards.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace shf::test {

// Shared with forked children.
struct Traffic {
    std::atomic<uint64_t> opens{0}, reads{0}, bytes{0};
    std::atomic<uint64_t> brief{0};     // of the openings
    std::atomic<int32_t> down{0};       // an error code: opening fails with it
    std::atomic<uint32_t> delay_us{0};  // of each read
};

struct ServedShard {
    std::string bytes, version;
    bool seekable = true;
    uint64_t head = 0;  // bytes that come with the opening
};

class Server {
  public:
    static Server& get() {
        static Server server;
        return server;
    }
    std::map<std::string, ServedShard> shards;
    Traffic& traffic;
    std::function<void(uint64_t)> on_read;  // gets the offset

  private:
    Server()
        : traffic(*new (::mmap(nullptr, sizeof(Traffic), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Traffic()) {}
};

class ServedSource final : public Source {
  public:
    explicit ServedSource(const ServedShard& shard) : shard_(shard) {}
    [[nodiscard]] std::optional<uint64_t> size() const override { return shard_.bytes.size(); }
    [[nodiscard]] Identity identity() const override {
        return {.size = size(), .modified = 1000, .tag = {}, .version = shard_.version};
    }
    [[nodiscard]] ReadCost read_cost() const override {
        return {.gap = 256 * 1024, .at_once = 4 * 1024 * 1024};
    }
    [[nodiscard]] bool seekable() const override { return shard_.seekable; }
    [[nodiscard]] uint64_t at_hand() const override { return shard_.head; }
    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        Server& server = Server::get();
        if (offset + out.size() <= shard_.head) {
            std::memcpy(out.data(), shard_.bytes.data() + offset, out.size());
            return out.size();
        }
        if (server.on_read) server.on_read(offset);
        if (const uint32_t delay = server.traffic.delay_us.load())
            std::this_thread::sleep_for(std::chrono::microseconds(delay));
        if (offset >= shard_.bytes.size()) return 0;
        const size_t count = std::min<size_t>(out.size(), shard_.bytes.size() - offset);
        std::memcpy(out.data(), shard_.bytes.data() + offset, count);
        ++server.traffic.reads;
        server.traffic.bytes += count;
        return count;
    }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        struct Reader final : Sequential {
            Reader(ServedSource source, uint64_t at) : source(std::move(source)), at(at) {}
            size_t read(std::span<uint8_t> out) override {
                // As a network does: less than was asked for.
                const size_t count =
                    source.read(at, out.first(std::min<size_t>(out.size(), 100000)));
                at += count;
                return count;
            }
            ServedSource source;
            uint64_t at;
        };
        return std::make_unique<Reader>(*this, offset);
    }

  private:
    ServedShard shard_;
};

inline const Scheme& served_scheme() {
    static constexpr Scheme scheme{
        "test",
        [](const std::string& url, const SourceContext& context) -> std::unique_ptr<Source> {
            Server& server = Server::get();
            if (const int32_t code = server.traffic.down.load())
                throw Error(code, "the server does not answer", "look at the network");
            const auto shard = server.shards.find(url.substr(0, url.find('?')));
            if (shard == server.shards.end()) throw Error(SHF_E_NOT_FOUND, "no such shard");
            ++server.traffic.opens;
            ServedShard opened = shard->second;
            if (context.brief) {
                ++server.traffic.brief;
                opened.head = 0;
            }
            return std::make_unique<ServedSource>(std::move(opened));
        },
        [](const std::string& url, const SourceContext& /*context*/) -> Identity {
            return {.size = Server::get().shards.at(url).bytes.size(),
                    .modified = 1000,
                    .tag = {},
                    .version = Server::get().shards.at(url).version};
        },
        nullptr};
    return scheme;
}

// Bytes of which no two pieces are alike.
inline std::string noise(uint64_t size, uint64_t seed) {
    std::string bytes(size, '\0');
    uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
    for (size_t i = 0; i < bytes.size(); i += 8) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        std::memcpy(bytes.data() + i, &state, std::min<size_t>(8, bytes.size() - i));
    }
    return bytes;
}

class CacheTest : public testing::Test {
  protected:
    CacheTest() {
        static const bool added = [] {
            Sources::add(served_scheme());
            add_cache();
            return true;
        }();
        (void)added;
        Server& server = Server::get();
        server.shards.clear();
        server.on_read = {};
        Traffic& t = server.traffic;
        t.opens = t.reads = t.bytes = t.brief = 0;
        t.down = 0;
        t.delay_us = 0;
        options.cache = folder / "cache";
        options.log_level = SHF_LOG_WARNING;
        use.warn = [this](const std::string& text) { warnings.push_back(text); };
    }

    const std::string& serve(const std::string& url, uint64_t size, uint64_t seed,
                             const std::string& version = "\"1\"") {
        ServedShard& shard = Server::get().shards[url];
        shard = {noise(size, seed), version};
        return shard.bytes;
    }
    std::unique_ptr<Source> open(const std::string& url) {
        return Sources(options, cancel, use).open(url);
    }
    // All of the shard from `offset` on, in reads of `chunk` bytes.
    static std::string rest_of(Source& source, uint64_t offset = 0, size_t chunk = 300000) {
        const auto reader = source.open_sequential(offset);
        std::string text;
        std::vector<uint8_t> buffer(chunk);
        while (const size_t count = reader->read(buffer))
            text.append(reinterpret_cast<const char*>(buffer.data()), count);
        reader->finish();
        return text;
    }
    static std::string part_of(Source& source, uint64_t offset, size_t size) {
        std::string text(size, '\0');
        text.resize(source.read(offset, {reinterpret_cast<uint8_t*>(text.data()), size}));
        return text;
    }
    // Bytes that the server gave since the last call.
    static uint64_t fetched() { return Server::get().traffic.bytes.exchange(0); }

    [[nodiscard]] std::string root() const {
        return options.cache + "/shardfeed-" + std::to_string(::geteuid());
    }
    // The files in the cache whose name passes.
    [[nodiscard]] std::vector<std::filesystem::path> files(
        const std::function<bool(const std::string&)>& passes) const {
        std::vector<std::filesystem::path> found;
        std::error_code error;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root(), error))
            if (entry.is_regular_file() && passes(entry.path().filename().string()))
                found.push_back(entry.path());
        std::sort(found.begin(), found.end());
        return found;
    }
    [[nodiscard]] std::vector<std::filesystem::path> blocks() const {
        return files([](const std::string& name) { return block_of_name(name) != no_block; });
    }
    [[nodiscard]] std::vector<std::filesystem::path> parts() const {
        return files([](const std::string& name) { return name.ends_with(".part"); });
    }

    const TempDirectory folder;
    Options options;
    Cancel cancel;
    SourceUse use;
    std::vector<std::string> warnings;
};

inline std::string file_bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

// The code of the error that `action` throws, with its text; SHF_OK when there is none.
inline std::pair<int32_t, std::string> error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    return {SHF_OK, {}};
}

}  // namespace shf::test
