// Opens a ZIP file in memory, as an archive or as a shard of a dataset, and tells all that can be
// read of it.
#pragma once

#include "core/options.h"
#include "dataset/dataset_shard.h"
#include "dataset/members.h"
#include "dataset/name_table.h"
#include "sample/sample_filter.h"
#include "shard_driver.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf::test {

struct ZipMember {
    std::string name;
    std::string bytes;      // when it could be read
    int32_t code = SHF_OK;  // else why not
    uint64_t offset = no_offset;
    std::string text;  // the message
    MemberInfo info;
};

struct ZipListing {
    SeenFault fault;  // of the file as a whole
    std::vector<ZipMember> members;

    [[nodiscard]] bool all_read() const {
        return fault.code == SHF_OK &&
               std::all_of(members.begin(), members.end(),
                           [](const ZipMember& m) { return m.code == SHF_OK; });
    }
};

inline void PrintTo(const ZipListing& listing, std::ostream* to) {
    *to << shf_error_name(listing.fault.code) << ' ' << listing.fault.text;
    for (const ZipMember& m : listing.members)
        *to << "\n  " << escape(m.name) << ": " << m.bytes.size() << " bytes, "
            << shf_error_name(m.code) << ' ' << m.text;
}

inline std::span<const uint8_t> span_of(std::string_view bytes) {
    return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// What is claimed to be larger must be refused before its memory is touched, so that none is there.
inline constexpr uint64_t largest_buffer = uint64_t{256} << 20;

// Reads every member, the stored ones in both ways.
inline ZipListing list_zip(std::string_view bytes, const Options& options = {}) {
    ZipListing listing;
    const auto source = memory_source(span_of(bytes));
    std::unique_ptr<Members> members;
    try {
        members = zip_members(*source, span_of(bytes), options);
    } catch (const Error& error) {
        listing.fault = {error.code(), error.fault().offset, error.fault().text(), 0};
        return listing;
    }
    ZipScratch scratch;
    for (size_t i = 0; i < members->count(); ++i) {
        ZipMember& member = listing.members.emplace_back();
        member.name = members->name(i);
        member.info = members->info(i);
        const auto size = static_cast<size_t>(member.info.size);
        std::unique_ptr<uint8_t[]> buffer;
        if (size <= largest_buffer) buffer = std::make_unique_for_overwrite<uint8_t[]>(size);
        try {
            members->read(i, {buffer.get(), size}, scratch);
            member.bytes.assign(reinterpret_cast<const char*>(buffer.get()), size);
        } catch (const Error& error) {
            member.code = error.code();
            member.offset = error.fault().offset;
            member.text = error.fault().text();
        }
        if (member.info.method != 0) continue;
        try {
            const auto view = members->view(i);
            EXPECT_EQ(member.code, SHF_OK) << member.text;
            EXPECT_TRUE(std::equal(view.begin(), view.end(), member.bytes.begin(),
                                   member.bytes.end(),
                                   [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), member.code) << error.what() << "\n" << member.text;
        }
    }
    return listing;
}

// "name=bytes name=FORMAT ..." - what most tests compare; a fault of the file is its class alone.
inline std::string summary(const ZipListing& listing) {
    if (listing.fault.code != SHF_OK) return shf_error_name(listing.fault.code);
    std::string out;
    for (const ZipMember& m : listing.members)
        out += (out.empty() ? "" : " ") + m.name + '=' +
               (m.code == SHF_OK ? m.bytes : std::string(shf_error_name(m.code)));
    return out;
}
inline std::string read_zip(std::string_view bytes, const Options& options = {}) {
    return summary(list_zip(bytes, options));
}

// What the shards of one dataset share.
class DatasetRoom {
  public:
    explicit DatasetRoom(Options options = {}) : options_(std::move(options)) {}
    [[nodiscard]] const DatasetContext& context() const { return context_; }

  private:
    // Thousands of rooms are made, and this is large.
    static Recycler& memory() {
        struct Drop {
            void operator()(Recycler* memory) const { memory->drop(); }
        };
        static const std::unique_ptr<Recycler, Drop> memory(Recycler::make(1 << 20));
        return *memory;
    }
    const Options options_;
    const Cancel cancel_;
    FileBudget budget_;
    ScratchPool scratches_;
    StretchCache stretches_{1 << 23};
    const FieldFilter fields_{options_.fields};
    const Sources sources_{options_, cancel_};
    const DatasetContext context_{options_, fields_,    cancel_,  sources_,
                                  budget_,  scratches_, memory(), stretches_};
};

// Reads every sample by its number.
inline ShardResult read_by_number(const DatasetShard& shard) {
    ShardResult result;
    for (size_t i = 0; i < shard.samples(); ++i) {
        try {
            const BlockRef block = shard.read(i);
            result.samples.push_back(seen_sample(*block, 0));
        } catch (const Error& error) {
            result.bad_samples.push_back(
                {error.code(), error.fault().offset, error.fault().text(), result.samples.size()});
        }
    }
    return result;
}
inline ShardResult read_by_number(std::string_view bytes, const Options& options = {}) {
    const DatasetRoom room(options);
    try {
        return read_by_number(
            *zip_dataset_shard("test.zip", 0, memory_source(span_of(bytes)), room.context()));
    } catch (const Error& error) {
        ShardResult result;
        result.end = {error.code(), error.fault().offset, error.fault().text(), 0};
        return result;
    }
}

}  // namespace shf::test
