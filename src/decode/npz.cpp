// Arrays in .npz files: ZIP files whose members are .npy files.
#include "core/error.h"
#include "core/options.h"
#include "decode/npy.h"
#include "zip/zip_entry.h"

#include <algorithm>
#include <vector>

namespace shf {

namespace {

// Numpy pads headers to 128 bytes, and those of arrays with many dimensions to little more.
constexpr uint64_t usual_header = 1024;

class NpzDecoder final : public Decoder {
  public:
    NpzDecoder(std::string member, uint64_t max_decoded)
        : member_(std::move(member)), max_decoded_(max_decoded), array_(npy_decoder(max_decoded)) {}

    // Decompresses no more than the header of the member, so the rest of it, and its CRC, are for
    // decode() to look at.
    [[nodiscard]] Measured measure(std::span<const uint8_t> field,
                                   uint64_t /*random*/) const override {
        const Npz npz(field, options_);
        const size_t found = find(npz.directory);
        const uint64_t size = npz.directory.entry(found).size;
        std::vector<uint8_t> start(static_cast<size_t>(std::min(size, usual_header)));
        npz.reader.read_start(found, field, start);
        if (const uint64_t needed = std::min(size, npy_header_size(start)); needed > start.size()) {
            start.resize(static_cast<size_t>(needed));
            npz.reader.read_start(found, field, start);
        }
        return {.type = measure_npy(start, size, max_decoded_).type};
    }

    void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& scratch) const override {
        const Npz npz(field, options_);
        const size_t found = find(npz.directory);
        const ZipEntry& entry = npz.directory.entry(found);
        if (entry.method == 0)
            return decode_array(npz.reader.view(found, field), random, type, out, scratch);
        const auto size = static_cast<size_t>(entry.size);
        const auto array = std::make_unique_for_overwrite<uint8_t[]>(size);
        ZipScratch zip_scratch;
        npz.reader.read(found, {array.get(), size}, zip_scratch);
        decode_array({array.get(), size}, random, type, out, scratch);
    }

  private:
    struct Npz {
        Npz(std::span<const uint8_t> field, const Options& options)
            : file(memory_source(field)),
              directory(*file, options),
              reader(*file, directory, options) {}
        const std::unique_ptr<Source> file;
        const ZipDirectory directory;
        const ZipReader reader;
    };

    // The number of the member.
    [[nodiscard]] size_t find(const ZipDirectory& directory) const {
        const std::string with_suffix = member_ + ".npy";
        size_t found = directory.size();
        for (size_t i = 0; i < directory.size(); ++i) {
            if (directory.name(i) != member_ && directory.name(i) != with_suffix) continue;
            if (found < directory.size())
                throw Error(SHF_E_AMBIGUOUS,
                            "the npz has \"" + escape(member_) + "\" more than once",
                            "write it again with numpy.savez");
            found = i;
        }
        if (found == directory.size())
            throw Error(SHF_E_FORMAT, "the npz has no member \"" + escape(member_) + "\"",
                        "numpy.load(FILE).files lists those it has");
        // A size that the compressed bytes cannot have is reported before memory is allocated for
        // it.
        if (directory.entry(found).fault != ZipFault::none) throw directory.fault_of(found);
        // The header of an .npy has less than 64 KiB in all that numpy writes.
        const uint64_t size = directory.entry(found).size;
        if (size > max_decoded_ + 65536)
            throw Error(SHF_E_LIMIT,
                        "an array of " + plural(size, "byte") +
                            " is larger than max_decoded=" + std::to_string(max_decoded_),
                        "raise max_decoded");
        return found;
    }

    // Damaged data may decompress to another header here than where it was measured.
    void decode_array(std::span<const uint8_t> npy, uint64_t random, const ArrayType& type,
                      std::span<uint8_t> out, DecodeScratch& scratch) const {
        if (measure_npy(npy, npy.size(), max_decoded_).type != type)
            throw Error(SHF_E_FORMAT, "the npz is ambiguous: two decompressors disagree about it",
                        "write the file again");
        array_->decode(npy, random, type, out, scratch);
    }

    const std::string member_;
    const uint64_t max_decoded_;
    const std::unique_ptr<Decoder> array_;
    const Options options_;  // a file inside a file has the default limits
};

}  // namespace

std::unique_ptr<Decoder> npz_decoder(std::string member, uint64_t max_decoded) {
    return std::make_unique<NpzDecoder>(std::move(member), max_decoded);
}

}  // namespace shf
