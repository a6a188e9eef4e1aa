// The form that files and blobs of our own have: a msgpack array of four - magic, version, XXH3-64
// of the body, body - where the body is a map from names to plain values: numbers, texts and bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// What errors say of it.
struct SealedKind {
    std::string_view magic;  // at most 31 bytes
    uint64_t version;        // the oldest that is read, and the one that is written
    const char* what;        // "the index file"
    const char* help;
    uint64_t newest = version;  // the newest that is read
};

class SealedMap {
  public:
    // `file` must outlive the map. Throws Error(FORMAT, INTEGRITY, UNSUPPORTED). Takes no memory
    // that the bytes only claim to need.
    SealedMap(std::span<const uint8_t> file, const SealedKind& kind);
    ~SealedMap();
    SealedMap(const SealedMap&) = delete;
    SealedMap& operator=(const SealedMap&) = delete;

    [[nodiscard]] uint64_t version() const;
    // The value of a name, borrowed from the file. Throws Error(FORMAT) where it is not there.
    [[nodiscard]] uint64_t number(std::string_view name) const;
    [[nodiscard]] std::span<const uint8_t> bytes(std::string_view name) const;
    // For numbers that are left out where they are 0.
    [[nodiscard]] uint64_t number_or_0(std::string_view name) const;

  private:
    struct Entries;
    const std::unique_ptr<Entries> entries_;
};

// What a sealed map in a file has under which name, without reading the long values. That it is
// whole and undamaged is not proven, so it is for what nothing but a message depends on.
class SealedOutline {
  public:
    // Reads bytes of a file at an offset; fewer only at its end.
    using Read = std::function<size_t(uint64_t offset, std::span<uint8_t> out)>;
    // Reads a file of `size` bytes. Throws Error(FORMAT, UNSUPPORTED), and what reading throws.
    SealedOutline(uint64_t size, const Read& read, const SealedKind& kind);

    [[nodiscard]] uint64_t version() const { return version_; }
    // The value of a number, and the length of a text or of bytes. Throws Error(FORMAT) where it is
    // not there.
    [[nodiscard]] uint64_t number(std::string_view name) const { return at(name, true); }
    [[nodiscard]] uint64_t length(std::string_view name) const { return at(name, false); }

  private:
    struct Entry {
        std::string name;
        bool is_number;
        uint64_t value;
    };
    [[nodiscard]] uint64_t at(std::string_view name, bool is_number) const;

    const SealedKind kind_;
    uint64_t version_ = 0;
    std::vector<Entry> entries_;
};

// Something is wrong with it. Error(FORMAT).
[[noreturn]] void throw_damaged(const SealedKind& kind, const std::string& what);

class SealedWriter {
  public:
    SealedWriter();
    ~SealedWriter();
    SealedWriter(const SealedWriter&) = delete;
    SealedWriter& operator=(const SealedWriter&) = delete;

    void put(std::string_view name, uint64_t value);
    // Throws Error(LIMIT) from 4 GiB on.
    void put(std::string_view name, std::span<const uint8_t> value);
    void put(std::string_view name, std::string_view value) {
        put(name, std::span(reinterpret_cast<const uint8_t*>(value.data()), value.size()));
    }
    template <typename Number>
    void put(std::string_view name, const std::vector<Number>& column) {
        static_assert(std::endian::native == std::endian::little, "columns are little endian");
        put(name, std::span(reinterpret_cast<const uint8_t*>(column.data()),
                            column.size() * sizeof(Number)));
    }
    // The whole, valid until the writer is destroyed.
    std::span<const uint8_t> finish(const SealedKind& kind);

  private:
    struct Packer;
    const std::unique_ptr<Packer> entries_, whole_;
    uint32_t count_ = 0;
};

}  // namespace shf
