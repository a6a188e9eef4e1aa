#include "core/checksum.h"
#include "core/error.h"
#include "write/container.h"
#include "write/file_field.h"
#include "zip/zip_records.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

// What is compressed already: deflate would cost time and save nothing.
constexpr std::array<std::string_view, 38> packed = {
    "7z",  "aac",  "avif", "bz2",  "flac", "gif", "gz",  "heic", "heif",    "j2k",
    "jp2", "jpeg", "jpg",  "jxl",  "lz4",  "m4a", "m4v", "mkv",  "mov",     "mp3",
    "mp4", "mpeg", "mpg",  "npz",  "oga",  "ogg", "ogv", "opus", "parquet", "png",
    "pth", "rar",  "webm", "webp", "wma",  "xz",  "zip", "zst"};

bool is_packed(std::string_view name) {
    const size_t dot = name.rfind('.');
    if (dot == name.npos) return false;
    std::string suffix(name.substr(dot + 1));
    for (char& c : suffix)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    return std::find(packed.begin(), packed.end(), suffix) != packed.end();
}

struct Entry {
    size_t name_end;  // in names_
    ZipRecord record;
};

class ZipContainer : public Container {
  public:
    explicit ZipContainer(ZipMethod method) : method_(method) {}

    uint64_t add(const NewMember& member, ShardOutput& output) override {
        if (member.name.size() > 0xffff)
            throw Error(
                SHF_E_USAGE,
                "a ZIP file has no room for a name of " + plural(member.name.size(), "byte"),
                "give shorter keys, or write a tar");
        ZipRecord record{.name = member.name,
                         .stored = member.size(),
                         .size = member.size(),
                         .offset = output.position()};
        std::span<const uint8_t> data = member.data;
        if (member.file) {
            // The header, which comes first, has the checksum: the file is read twice.
            record.crc = crc32_of(*member.file);
        } else {
            record.crc = crc32(data);
            if (method_ == ZipMethod::deflate ||
                (method_ == ZipMethod::automatic && !is_packed(member.name)))
                if (const auto smaller = deflate(data); !smaller.empty()) {
                    data = smaller;
                    record.stored = data.size();
                    record.deflated = true;
                }
        }
        headers_.clear();
        append_local_header(headers_, record);
        output.write(headers_);
        const uint64_t start = output.position();
        if (!member.file)
            output.write(data);
        else if (copy_file(*member.file, output) != record.crc)
            throw FieldFileError(
                SHF_E_CHANGED, "file " + escape(member.file->path) + " changed while it was added",
                "add files that nobody writes to");
        names_ += member.name;
        record.name = {};
        entries_.push_back({names_.size(), record});
        return start;
    }

    [[nodiscard]] uint64_t room(const NewMember& member) const override {
        return zip_headers_size(member.name) + member.size();
    }

    [[nodiscard]] uint64_t end_room(uint64_t /*position*/) const override {
        return names_.size() + entries_.size() * zip_headers_size({}) + zip_end_size;
    }

    void forget(size_t count) override {
        entries_.resize(count);
        names_.resize(count == 0 ? 0 : entries_.back().name_end);
    }
    [[nodiscard]] size_t count() const override { return entries_.size(); }

    void finish(ShardOutput& output) override {
        const uint64_t start = output.position();
        size_t begin = 0;
        std::string records;
        for (Entry& entry : entries_) {
            entry.record.name = std::string_view(names_).substr(begin, entry.name_end - begin);
            begin = entry.name_end;
            append_central_header(records, entry.record);
            if (records.size() < size_t{1} << 16) continue;
            output.write(records);
            records.clear();
        }
        output.write(records);
        records.clear();
        append_zip_end(records, entries_.size(), output.position() - start, start);
        output.write(records);
    }

  private:
    // The data compressed, where that is less; else nothing. Valid until the next call.
    std::span<const uint8_t> deflate(std::span<const uint8_t> data) {
        if (data.size() < 2) return {};
        if (!deflate_) {
            deflate_.reset(libdeflate_alloc_compressor(6));
            if (!deflate_) throw Error(SHF_E_NOMEM, "no memory to compress");
        }
        if (room_.size() < data.size()) room_.resize(data.size());
        // Nothing where it does not fit into less room than the data take.
        return std::span(room_).first(libdeflate_deflate_compress(
            deflate_.get(), data.data(), data.size(), room_.data(), data.size() - 1));
    }

    struct Free {
        void operator()(libdeflate_compressor* deflate) const {
            libdeflate_free_compressor(deflate);
        }
    };

    const ZipMethod method_;
    std::unique_ptr<libdeflate_compressor, Free> deflate_;
    std::vector<uint8_t> room_;
    std::string headers_;
    std::string names_;  // of all entries, one after another
    std::vector<Entry> entries_;
};

}  // namespace

std::unique_ptr<Container> zip_container(ZipMethod method) {
    return std::make_unique<ZipContainer>(method);
}

}  // namespace shf
