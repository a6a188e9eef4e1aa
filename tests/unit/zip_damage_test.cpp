// V1 and V2 for ZIP: every prefix and every changed byte of small files. What is read is an error,
// or exactly what was written: no member is lost or made up in silence, and no byte is wrong.
//
// Bytes that mean nothing to a reader may change unseen. MayChange lists all of them; a change
// anywhere else must be an error.
#include "zip_builder.h"
#include "zip_driver.h"
#include "zip_encoders.h"

#include <set>

namespace shf::test {
namespace {

struct Case {
    const char* name;
    Zip zip;
};

void PrintTo(const Case& one, std::ostream* to) {
    *to << one.name;
}

Zip one(uint16_t method) {
    return {.entries = {packed_entry("sample.txt", method, text(150) + noise(20))}};
}

std::vector<Case> cases() {
    std::vector<Case> all = {{"stored", one(zip_stored)}, {"deflate", one(zip_deflate)},
                             {"bzip2", one(zip_bzip2)},   {"lzma", one(zip_lzma)},
                             {"zstd", one(zip_zstd)},     {"xz", one(zip_xz)}};
    Zip zip = one(zip_lzma);
    zip.entries[0] = {.name = "sample.txt", .data = text(150), .method = zip_lzma};
    zip.entries[0].packed = zip_lzma_data(zip.entries[0].data, false);
    all.push_back({"lzma_without_end_mark", zip});

    zip = {.entries = {packed_entry("a.txt", zip_deflate, text(60)),
                       // No single bit makes the sizes of these from 0.
                       {.name = "a.cls", .data = "7.0"},
                       packed_entry("b.txt", zip_zstd, text(40)),
                       {.name = "b.cls", .data = "8.0"}}};
    for (size_t i = 0; i < zip.entries.size(); ++i) {
        zip.entries[i].descriptor = true;
        zip.entries[i].tail = [i](Descriptor& d) { d.magic = i % 2 == 0, d.wide = i / 2 == 0; };
    }
    all.push_back({"descriptors", zip});

    zip = {.entries = {{.name = "a.txt", .data = text(50), .zip64 = true},
                       {.name = "b.txt", .data = text(40), .zip64 = true, .descriptor = true},
                       {.name = "c.txt", .data = "c"}},
           .comment = "a comment",
           .zip64 = true};
    all.push_back({"zip64", zip});

    zip = {.entries = {{.name = "dir/", .data = ""},
                       {.name = "dir/a.txt", .data = "first"},
                       {.name = "dir/link", .data = "a.txt"},
                       {.name = "dir/empty.bin", .data = ""},
                       {.name = "dir/\xc3\xbc.txt", .data = "last", .flags = utf8_bit}},
           .comment = "PK and a comment"};
    zip.entries[2].central = [](CentralHeader& h) { h.attributes = 0120777U << 16; };
    zip.entries[1].local = [](LocalHeader& h) { h.extra = extra(0x5455, "\1time"); };
    zip.entries[1].central = [](CentralHeader& h) {
        h.extra = extra(0x5455, "\1time");
        h.comment = "of the entry";
    };
    zip.order = {4, 2, 0, 1, 3};
    all.push_back({"several", zip});

    // A bit away from members that start, end, or are in the middle of a sample, and from none.
    zip = {.entries = {{.name = "d/", .data = ""},
                       {.name = "d/anw", .data = "no field"},
                       {.name = "d/a.x", .data = "ax"},
                       {.name = "d/a.y", .data = "ay"},
                       {.name = "d/a.z", .data = ""},
                       {.name = "d/b.x", .data = "bx"},
                       {.name = "d/cnw", .data = "no field"},
                       {.name = "d/c.x", .data = "cx"},
                       {.name = "d/c.y", .data = "cy"},
                       {.name = "d/cnz", .data = "no field"}}};
    all.push_back({"between_samples", zip});
    return all;
}

// Positions whose change may pass unseen, and those among them that tell the kind of an entry.
struct MayChange {
    std::set<size_t> any, kind;

    explicit MayChange(const Zip& zip) {
        std::vector<size_t> centrals;
        size_t at = 0;
        for (const Entry& entry : zip.entries) {
            const size_t local = entry.local_bytes().size();
            add(at + 4, 2);   // version needed
            add(at + 10, 4);  // time and date
            add_extra(at + local_header_size + entry.name.size(), at + local, zip.bytes());
            // Compressed data has bits that no decoder looks at. Whatever changes in it, the CRC
            // watches over what comes out.
            if (entry.method != zip_stored) add(at + local, entry.packed.size());
            at += local + entry.stored().size() + entry.descriptor_bytes().size();
        }
        std::vector<size_t> order = zip.order;
        for (size_t i = 0; order.empty() && i < zip.entries.size(); ++i) centrals.push_back(i);
        if (!order.empty()) centrals = order;
        for (const size_t i : centrals) {
            const Entry& entry = zip.entries[i];
            const size_t size = entry.central_bytes(0).size();
            add(at + 4, 4);   // made by, version needed up to 6.3, and its host
            add(at + 12, 4);  // time and date
            add(at + 36, 6);  // attributes
            // A file becomes a link, or a link a file, by the mode, and by the host that has modes.
            kind.insert({at + 5, at + 41});
            const size_t extra_at = at + central_header_size + entry.name.size();
            CentralHeader header;
            if (entry.central) entry.central(header);
            add_extra(extra_at, at + size - header.comment.size(), zip.bytes());
            add(at + size - header.comment.size(), header.comment.size());
            at += size;
        }
        if (zip.zip64) {
            add(at + 12, 4);  // versions
            at += end64_record_size;
            add(at + 16, 1);  // the number of disks: 0 is as good as 1
            at += locator_record_size;
        }
        add(at + end_record_size, zip.comment.size());
    }

  private:
    void add(size_t at, size_t size) {
        for (size_t i = 0; i < size; ++i) any.insert(at + i);
    }
    // Numbers and bodies of the extra fields that nobody reads.
    void add_extra(size_t from, size_t to, const std::string& bytes) {
        while (from + 4 <= to) {
            const auto byte = [&](size_t i) {
                return static_cast<size_t>(static_cast<uint8_t>(bytes[i]));
            };
            const size_t size = byte(from + 2) + 256 * byte(from + 3);
            if (byte(from) != 1) {
                add(from, 2);
                add(from + 4, size);
            }
            from += 4 + size;
        }
    }
};

bool same_content(const ZipListing& a, const ZipListing& b, bool kinds) {
    return a.all_read() && a.members.size() == b.members.size() &&
           std::equal(a.members.begin(), a.members.end(), b.members.begin(),
                      [&](const ZipMember& x, const ZipMember& y) {
                          return x.name == y.name && x.bytes == y.bytes &&
                                 (!kinds || x.info.kind == y.info.kind);
                      });
}

// What a stream or a dataset makes of it is whole samples, then an error or the end. With
// `regrouped` the change may have moved a field out of its sample by making a link of it: only the
// directory knows of links. The fields that are there are right all the same.
void expect_no_loss(const ShardResult& result, const ShardResult& whole, bool regrouped,
                    const std::string& what) {
    const auto holds = [](const SeenSample& all, const SeenSample& some) {
        return std::all_of(some.fields.begin(), some.fields.end(), [&](const auto& field) {
            return std::find(all.fields.begin(), all.fields.end(), field) != all.fields.end();
        });
    };
    for (const SeenSample& sample : result.samples)
        ASSERT_TRUE(std::any_of(whole.samples.begin(), whole.samples.end(),
                                [&](const SeenSample& other) {
                                    return sample.key == other.key &&
                                           (regrouped ? holds(other, sample)
                                                      : sample.fields == other.fields);
                                }))
            << what << ": " << escape(sample.key) << '\n'
            << testing::PrintToString(result);
    if (result.end.code == SHF_OK && result.bad_samples.empty() && !regrouped) {
        ASSERT_EQ(result.samples.size(), whole.samples.size()) << what;
    }
}

class Damage : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(V2, Damage, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Damage, no_prefix_is_a_file) {
    const std::string bytes = GetParam().zip.bytes();
    ASSERT_TRUE(list_zip(bytes).all_read()) << testing::PrintToString(list_zip(bytes));
    for (size_t size = 0; size < bytes.size(); ++size) {
        const ZipListing listing = list_zip(std::string_view(bytes).substr(0, size));
        ASSERT_NE(listing.fault.code, SHF_OK) << size;
        // Only a cut comment leaves an end record, and so no doubt that this was a ZIP file.
        ASSERT_TRUE(listing.fault.code == SHF_E_TRUNCATED || size < 4 ||
                    size >= bytes.size() - GetParam().zip.comment.size())
            << size << ": " << listing.fault.text;
        const ShardResult stream =
            read_shard(std::string_view(bytes).substr(0, size), {}, {}, "x.zip");
        ASSERT_NE(stream.end.code, SHF_OK) << size;
        ASSERT_TRUE(stream.samples.empty()) << size;
        ASSERT_NE(read_by_number(std::string_view(bytes).substr(0, size)).end.code, SHF_OK) << size;
    }
}

TEST_P(Damage, no_changed_byte_is_silent) {
    const std::string bytes = GetParam().zip.bytes();
    const MayChange may(GetParam().zip);
    const ZipListing whole = list_zip(bytes);
    const ShardResult samples = read_shard(bytes);
    const Options skipping = options_with({{"on_error", "skip_sample"}});
    ASSERT_TRUE(whole.all_read());
    ASSERT_EQ(samples.end.code, SHF_OK) << samples.end.text;
    ASSERT_EQ(read_by_number(bytes).samples, samples.samples);
    std::set<size_t> unseen;
    for (size_t at = 0; at < bytes.size(); ++at)
        for (const unsigned change : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 255U}) {
            std::string bad = bytes;
            bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(change));
            const ZipListing listing = list_zip(bad);
            const bool kinds = !may.kind.contains(at);
            if (same_content(listing, whole, kinds))
                unseen.insert(at);
            else
                ASSERT_FALSE(listing.all_read()) << at << '^' << change << '\n'
                                                 << testing::PrintToString(listing);
            // What can still be read under its name has the bytes of that name.
            for (const ZipMember& member : listing.members)
                if (member.code == SHF_OK) {
                    ASSERT_TRUE(std::any_of(whole.members.begin(), whole.members.end(),
                                            [&](const ZipMember& other) {
                                                return member.name == other.name &&
                                                       member.bytes == other.bytes;
                                            }))
                        << at << '^' << change << ": " << escape(member.name);
                }
            const std::string what = std::to_string(at) + '^' + std::to_string(change);
            if (change == 1 || change == 32 || change == 255)
                expect_no_loss(read_shard(bad, skipping), samples, !kinds, "stream, " + what);
            expect_no_loss(read_by_number(bad), samples, !kinds, "dataset, " + what);
        }
    for (const size_t at : unseen) EXPECT_TRUE(may.any.contains(at)) << at;
    // The list is no longer than it has to be: outside of compressed data all of it is true.
    for (const size_t at : may.any) {
        const bool packed =
            std::any_of(whole.members.begin(), whole.members.end(), [&](const ZipMember& m) {
                return m.info.method != 0 && at >= m.info.offset &&
                       at < m.info.offset + local_header_size + m.name.size() + m.info.stored_size;
            });
        EXPECT_TRUE(packed || unseen.contains(at)) << at;
    }
}

// Which entry is damaged says which one cannot be read: the others still are.
TEST_P(Damage, one_bad_entry_harms_no_other) {
    const std::string bytes = GetParam().zip.bytes();
    const ZipListing whole = list_zip(bytes);
    size_t tried = 0;
    for (size_t bad = 0; bad < whole.members.size(); ++bad) {
        const auto from = static_cast<size_t>(whole.members[bad].info.offset);
        const size_t to = from + local_header_size + whole.members[bad].name.size() +
                          static_cast<size_t>(whole.members[bad].info.stored_size);
        for (size_t at = from; at < to; ++at) {
            std::string damaged = bytes;
            damaged[at] = static_cast<char>(~damaged[at]);
            const ZipListing listing = list_zip(damaged);
            ASSERT_EQ(listing.members.size(), whole.members.size()) << at << listing.fault.text;
            for (size_t i = 0; i < whole.members.size(); ++i)
                if (i != bad) {
                    ++tried;
                    ASSERT_EQ(listing.members[i].bytes, whole.members[i].bytes)
                        << at << listing.members[i].text;
                    ASSERT_EQ(listing.members[i].code, SHF_OK) << at << listing.members[i].text;
                }
        }
    }
    EXPECT_EQ(tried == 0, whole.members.size() == 1);
}

}  // namespace
}  // namespace shf::test
