// Arrays in .npz files: ZIP files whose members are .npy files.
#include "core/error.h"
#include "core/options.h"
#include "decode/npy.h"
#include "format/zip_entry.h"

#include <algorithm>
#include <vector>

namespace shf {

namespace {

class NpzDecoder final : public Decoder {
  public:
    NpzDecoder(std::string member, uint64_t max_decoded)
        : member_(std::move(member)), max_decoded_(max_decoded), array_(npy_decoder(max_decoded)) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field, uint64_t random) const override {
        return {.type = array_->measure(extract(field), random).type};
    }

    void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& scratch) const override {
        array_->decode(extract(field), random, type, out, scratch);
    }

  private:
    // The .npy that is the member.
    [[nodiscard]] std::vector<uint8_t> extract(std::span<const uint8_t> field) const {
        const auto file = memory_source(field);
        const ZipDirectory directory(*file, options_);
        const std::string with_suffix = member_ + ".npy";
        size_t found = directory.size();
        for (size_t i = 0; i < directory.size(); ++i) {
            if (directory.name(i) != member_ && directory.name(i) != with_suffix) continue;
            if (found < directory.size())
                throw Error(SHF_E_AMBIGUOUS,
                            "the npz has \"" + escape(member_) + "\" more than once");
            found = i;
        }
        if (found == directory.size())
            throw Error(SHF_E_FORMAT, "the npz has no member \"" + escape(member_) + "\"");
        // A size that the compressed bytes cannot have is told before memory is made for it.
        if (directory.entry(found).fault != ZipFault::none) throw directory.fault_of(found);
        // The header of an .npy has less than 64 KiB in all that numpy writes.
        const uint64_t size = directory.entry(found).size;
        if (size > max_decoded_ + 65536)
            throw Error(SHF_E_LIMIT,
                        "an array of " + std::to_string(size) +
                            " bytes is larger than max_decoded=" + std::to_string(max_decoded_),
                        "raise max_decoded");
        std::vector<uint8_t> bytes(static_cast<size_t>(size));
        ZipScratch scratch;
        ZipReader(*file, directory, options_).read(found, bytes, scratch);
        return bytes;
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
