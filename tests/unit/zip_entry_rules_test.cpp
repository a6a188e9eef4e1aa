// Rules Z1 to Z6, Z9 to Z13, Z17, Z19, Z20 and Z22: what concerns one entry. The entry stands
// between two others, which stay readable whatever is wrong with it.
#include "zip_builder.h"
#include "zip_driver.h"
#include "zip_encoders.h"

namespace shf::test {
namespace {

Zip between(Entry entry) {
    return {.entries = {
                {.name = "a", .data = "first"}, std::move(entry), {.name = "z", .data = "last"}}};
}

using Numbers = std::initializer_list<uint16_t>;

const Entry stored_entry{.name = "b", .data = "data"};

// The class of the middle entry, or its bytes; the neighbours must be readable.
std::string middle(const Entry& entry, const Options& options = {}) {
    const Zip zip = between(entry);
    const ZipListing listing = list_zip(zip.bytes(), options);
    if (listing.fault.code != SHF_OK || listing.members.size() != 3) {
        ADD_FAILURE() << testing::PrintToString(listing);
        return summary(listing);
    }
    EXPECT_EQ(listing.members[0].bytes, "first") << listing.members[0].text;
    EXPECT_EQ(listing.members[2].bytes, "last") << listing.members[2].text;
    const ZipMember& member = listing.members[1];
    EXPECT_EQ(member.name, entry.name);
    if (member.code == SHF_OK) return member.bytes;
    EXPECT_EQ(member.offset, member.info.offset) << member.text;
    if (member.offset < zip.bytes().size()) {  // else the offset is what is wrong
        EXPECT_EQ(member.offset, zip.entries[0].local_bytes().size() + 5) << member.text;
    }
    EXPECT_NE(member.text.find("member \"" + escape(member.name) + '"'), std::string::npos)
        << member.text;
    return shf_error_name(member.code);
}

std::string local(const std::function<void(LocalHeader&)>& change, Entry entry = stored_entry) {
    entry.local = change;
    return middle(entry);
}
std::string central(const std::function<void(CentralHeader&)>& change, Entry entry = stored_entry) {
    entry.central = change;
    return middle(entry);
}
// The same change in both headers, which have these fields alike.
template <typename Change>
std::string both(Change change, Entry entry = stored_entry, const Options& options = {}) {
    entry.local = change;
    entry.central = change;
    return middle(entry, options);
}

// ---- Z1: local and central header -------------------------------------------------------------

TEST(Z1Headers, any_difference_is_ambiguous) {
    EXPECT_EQ(middle(stored_entry), "data");
    EXPECT_EQ(local([](auto& h) { h.name = "c"; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.name = "B"; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.flags = utf8_bit; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.flags = descriptor_bit; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.method = 8; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.crc += 1; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.crc = 0; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.size = 3; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.stored_size = 3; }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.size = h.stored_size = 0; }), "AMBIGUOUS");
    EXPECT_EQ(central([](auto& h) { h.flags = descriptor_bit; }), "AMBIGUOUS");
    // The fields of no meaning for the data.
    EXPECT_EQ(local([](auto& h) { h.version = 63, h.time = 1, h.date = 2; }), "data");
    EXPECT_EQ(local([](auto& h) { h.extra = extra(0x5455, "any time"); }), "data");
    EXPECT_EQ(central([](auto& h) { h.extra = extra(0x5455, "another"); }), "data");
}

TEST(Z1Headers, names_of_other_lengths) {
    // Longer and shorter ones: the data would begin somewhere else. The gap gives it room.
    Entry entry = stored_entry;
    entry.gap = std::string(700, '\0');
    for (const std::string& name : {""s, "bb"s, "b/"s, "b\0"s, std::string(600, 'b')})
        EXPECT_EQ(local([&](auto& h) { h.name = name; }, entry), "AMBIGUOUS") << name.size();
    // Without a gap such a header runs into the next entry.
    EXPECT_NE(local([](auto& h) { h.name = std::string(600, 'b'); }), "data");
}

TEST(Z1Headers, long_local_headers) {
    for (const size_t size : {1U, 200U, 255U, 256U, 257U, 500U, 1000U, 65531U})
        for (const size_t gap : {0U, 1U, 300U}) {
            Entry entry = stored_entry;
            entry.gap = std::string(gap, 'g');
            EXPECT_EQ(
                local([&](auto& h) { h.extra = extra(0x9999, std::string(size, 'x')); }, entry),
                "data")
                << size << ' ' << gap;
        }
}

TEST(Z1Headers, no_local_header_is_format) {
    EXPECT_EQ(local([](auto& h) { h.magic += 1; }), "FORMAT");
    EXPECT_EQ(local([](auto& h) { h.name_size = 65535; }), "FORMAT");
    EXPECT_EQ(local([](auto& h) { h.extra_size = 65535; }), "FORMAT");
}

// ---- Z2: overlaps -----------------------------------------------------------------------------

const Options overlap_allowed = options_with({{"zip_overlap", "allow"}});

TEST(Z2Overlap, two_entries_on_one_local_header) {
    Zip zip = between(stored_entry);
    zip.order = {0, 1, 1, 2};
    const ZipListing listing = list_zip(zip.bytes());
    EXPECT_EQ(summary(listing), "a=first b=FORMAT b=FORMAT z=last");
    EXPECT_NE(listing.members.at(1).text.find("zip_overlap=allow"), std::string::npos);
    EXPECT_EQ(read_zip(zip.bytes(), overlap_allowed), "a=first b=data b=data z=last");
    zip.order = {0, 1, 2};
    EXPECT_EQ(read_zip(zip.bytes()), "a=first b=data z=last");
}

TEST(Z2Overlap, an_entry_inside_another) {
    // The bytes of one entry are the local header and data of another one.
    const Entry inner{.name = "i", .data = "inner"};
    Zip zip = between({.name = "o", .data = inner.local_bytes() + "inner"});
    zip.entries.push_back(inner);
    const uint64_t at = zip.entries[0].local_bytes().size() + 5 + 31;
    zip.entries[3].central = [&](CentralHeader& h) { h.offset = static_cast<uint32_t>(at); };
    const std::string outer = zip.entries[1].data;
    EXPECT_EQ(read_zip(zip.bytes()), "a=first o=FORMAT z=last i=FORMAT");
    EXPECT_EQ(read_zip(zip.bytes(), overlap_allowed), "a=first o=" + outer + " z=last i=inner");
}

// One large entry over many: all of them overlap, though neighbours do not.
TEST(Z2Overlap, one_over_many) {
    std::string inside;
    Zip zip;
    for (size_t i = 0; i < 10; ++i) {
        const Entry entry{.name = "i" + std::to_string(i), .data = "inner"};
        const auto at = static_cast<uint32_t>(31 + inside.size());
        inside += entry.local_bytes() + entry.data;
        zip.entries.push_back(entry);
        zip.entries.back().central = [at](CentralHeader& h) { h.offset = at; };
    }
    zip.entries.insert(zip.entries.begin(), Entry{.name = "o", .data = inside});
    const ZipListing listing = list_zip(zip.bytes());
    ASSERT_EQ(listing.members.size(), 11U);
    for (const ZipMember& m : listing.members) EXPECT_EQ(m.code, SHF_E_FORMAT) << m.name;
    EXPECT_TRUE(list_zip(zip.bytes(), overlap_allowed).all_read());
}

// By one or two bytes, as honest tools have made them.
TEST(Z2Overlap, by_a_few_bytes) {
    for (const bool descriptor : {false, true})
        for (const uint32_t by : {1U, 2U, 4U}) {
            const Entry first{.name = "a", .data = "first PK", .descriptor = descriptor};
            const Entry next{.name = "b", .data = "data"};
            std::string bytes = first.local_bytes() + first.data + first.descriptor_bytes();
            const uint64_t at = bytes.size() - by;
            bytes.resize(at);
            bytes += next.local_bytes() + next.data;
            const Zip zip{.entries = {first, next}};
            const std::string whole = bytes + zip.tail({0, at}, bytes.size());
            const ZipListing listing = list_zip(whole);
            ASSERT_EQ(listing.fault.code, SHF_OK) << listing.fault.text;
            EXPECT_EQ(listing.members[0].code, SHF_E_FORMAT) << by << listing.members[0].text;
            EXPECT_NE(listing.members[0].text.find("zip_overlap=allow"), std::string::npos);
            // The data is read where it is still there: "PK" begins the next header as well.
            const ZipListing allowed = list_zip(whole, overlap_allowed);
            EXPECT_EQ(allowed.members.at(1).bytes, "data");
            EXPECT_EQ(allowed.members.at(0).code == SHF_OK, !descriptor && by == 2)
                << allowed.members.at(0).text;
        }
}

TEST(Z2Overlap, into_the_directory) {
    Zip zip = between(stored_entry);
    // The last entry is said to have one byte more.
    zip.entries[2].local = [](LocalHeader& h) { h.size = h.stored_size = 5; };
    zip.entries[2].central = [](CentralHeader& h) { h.size = h.stored_size = 5; };
    zip.entries[2].crc = crc_of("lastP");
    const ZipListing listing = list_zip(zip.bytes());
    EXPECT_EQ(summary(listing), "a=first b=data z=FORMAT");
    EXPECT_NE(listing.members.at(2).text.find("zip_overlap=allow"), std::string::npos);
    EXPECT_EQ(read_zip(zip.bytes(), overlap_allowed), "a=first b=data z=lastP");
    // Its header alone reaches over the directory.
    zip = between(stored_entry);
    zip.entries[2].central = [](CentralHeader& h) { h.offset += 31; };
    EXPECT_EQ(read_zip(zip.bytes()), "a=first b=data z=FORMAT");
    for (const uint32_t offset : {uint32_t{1} << 31, sentinel32 - 1}) {
        zip.entries[2].central = [&](CentralHeader& h) { h.offset = offset; };
        EXPECT_EQ(read_zip(zip.bytes()), "a=first b=data z=FORMAT");
        EXPECT_EQ(read_zip(zip.bytes(), overlap_allowed), "a=first b=data z=FORMAT");
    }
}

// The local extra field is not in the directory: it is counted when the entry is read.
TEST(Z2Overlap, local_extra_field_counts) {
    Entry entry = stored_entry;
    entry.local = [](LocalHeader& h) { h.extra_size = 1; };
    Zip zip = between(entry);
    EXPECT_EQ(read_zip(zip.bytes()), "a=first b=FORMAT z=last");
    entry.gap = "x";
    zip = between(entry);
    EXPECT_NE(list_zip(zip.bytes()).members.at(1).code, SHF_OK);  // the field is no field
}

TEST(Z2Overlap, ten_thousand_entries_on_one) {
    Zip zip = between(stored_entry);
    zip.order.assign(10000, 1);
    zip.order.push_back(0);
    const ZipListing listing = list_zip(zip.bytes());
    ASSERT_EQ(listing.members.size(), 10001U);
    EXPECT_EQ(listing.members.back().bytes, "first");
    for (size_t i = 0; i < 10000; ++i) ASSERT_EQ(listing.members[i].code, SHF_E_FORMAT);
}

// ---- Z4: ratio --------------------------------------------------------------------------------

TEST(Z4Ratio, what_deflate_cannot_reach_is_format) {
    const std::string zeros(1 << 20, '\0');
    EXPECT_EQ(middle(packed_entry("b", zip_deflate, zeros)), zeros);
    Entry entry = packed_entry("b", zip_deflate, "data");
    const auto claim = static_cast<uint32_t>(entry.packed.size() * 1032);
    EXPECT_EQ(both([&](auto& h) { h.size = claim + 1032; }, entry), "FORMAT");
    EXPECT_EQ(both([&](auto& h) { h.size = claim; }, entry), "FORMAT");  // it ends early
    EXPECT_EQ(both([&](auto& h) { h.size = sentinel32 - 1; }, entry), "FORMAT");
}

TEST(Z4Ratio, max_ratio_above_64_mib) {
    for (const uint16_t method : {zip_bzip2, zip_lzma, zip_zstd, zip_xz}) {
        const Entry entry = packed_entry("b", method, "data");
        EXPECT_EQ(both([](auto& h) { h.size = (64 << 20) + 1; }, entry), "LIMIT") << method;
    }
    const std::string zeros((64 << 20) + 1, '\0');
    const Entry entry = packed_entry("b", zip_zstd, zeros);
    EXPECT_EQ(middle(entry), "LIMIT");
    EXPECT_TRUE(middle(entry, options_with({{"max_ratio", "100000"}})) == zeros);
}

TEST(Z4Limits, max_member_and_memory) {
    const std::string data = noise(3 << 20);
    for (const uint16_t method : {zip_stored, zip_deflate}) {
        const Entry entry = packed_entry("b", method, data);
        EXPECT_EQ(middle(entry, options_with({{"max_member", "3145727"}})), "LIMIT") << method;
        EXPECT_TRUE(middle(entry, options_with({{"max_member", "3145728"}})) == data) << method;
    }
    EXPECT_EQ(middle(packed_entry("b", zip_deflate, data), options_with({{"memory", "2MiB"}})),
              "LIMIT");
    EXPECT_TRUE(middle(packed_entry("b", zip_deflate, data), options_with({{"memory", "4MiB"}})) ==
                data);
}

// ---- Z5: descriptors --------------------------------------------------------------------------

TEST(Z5Descriptor, all_forms) {
    for (const uint16_t method : {zip_stored, zip_deflate})
        for (const bool magic : {true, false})
            for (const bool wide : {true, false})
                for (const bool zip64 : {true, false})
                    for (const size_t gap : {0U, 1U, 100U, 1000U}) {
                        Entry entry = packed_entry("b", method, "some data of an entry");
                        entry.descriptor = true;
                        entry.zip64 = zip64;
                        entry.gap = std::string(gap, 'g');
                        entry.tail = [&](Descriptor& d) { d.magic = magic, d.wide = wide; };
                        EXPECT_EQ(middle(entry), "some data of an entry")
                            << method << magic << wide << zip64 << gap;
                    }
}

TEST(Z5Descriptor, any_difference_is_ambiguous) {
    Entry entry = packed_entry("b", zip_deflate, "some data of an entry");
    entry.descriptor = true;
    for (const bool magic : {true, false})
        for (const bool wide : {true, false}) {
            using Change = void (*)(Descriptor&);
            const Change changes[] = {[](Descriptor& d) { d.crc += 1; },
                                      [](Descriptor& d) { d.size += 1; },
                                      [](Descriptor& d) { d.stored_size += 1; },
                                      [](Descriptor& d) { d.crc = 0; },
                                      [](Descriptor& d) { d.size = d.stored_size = 0; },
                                      [](Descriptor& d) { std::swap(d.size, d.stored_size); }};
            for (const Change& change : changes) {
                entry.tail = [&](Descriptor& d) {
                    d.magic = magic, d.wide = wide;
                    change(d);
                };
                EXPECT_EQ(middle(entry), "AMBIGUOUS") << magic << wide;
            }
        }
    // Sizes that are right modulo 2^32.
    entry.tail = [](Descriptor& d) { d.wide = true, d.size += uint64_t{1} << 32; };
    EXPECT_EQ(middle(entry), "AMBIGUOUS");
    // None where there should be one: what follows is the next entry.
    entry.tail = {};
    entry.descriptor = false;
    entry.flags = descriptor_bit;
    entry.local = [](LocalHeader& h) { h.crc = h.size = h.stored_size = 0; };
    EXPECT_NE(middle(entry), "some data of an entry");
}

TEST(Z5Descriptor, local_values_are_zero_or_right) {
    Entry entry = packed_entry("b", zip_deflate, "some data");
    entry.descriptor = true;
    const auto packed = static_cast<uint32_t>(entry.packed.size());
    EXPECT_EQ(local([&](auto& h) { h.crc = crc_of("some data"), h.size = 9; }, entry), "some data");
    EXPECT_EQ(local([&](auto& h) { h.stored_size = packed; }, entry), "some data");
    EXPECT_EQ(local([&](auto& h) { h.stored_size = packed + 1; }, entry), "AMBIGUOUS");
    EXPECT_EQ(local([&](auto& h) { h.size = 8; }, entry), "AMBIGUOUS");
    EXPECT_EQ(local([&](auto& h) { h.crc = 1; }, entry), "AMBIGUOUS");
}

// ---- Z6: ZIP64 values of an entry -------------------------------------------------------------

Entry wide_entry() {
    Entry entry = stored_entry;
    entry.zip64 = true;
    return entry;
}

TEST(Z6Zip64Entry, sentinels_and_values) {
    EXPECT_EQ(middle(wide_entry()), "data");
    // All four values, the offset and disk being asked for as well.
    const auto offset = static_cast<uint32_t>(stored_entry.local_bytes().size() + 5);
    const auto all = [&](CentralHeader& h) {
        h.offset = sentinel32;
        h.disk = sentinel16;
        h.extra = zip64_extra(le64(4) + le64(4) + le64(offset) + le32(0));
    };
    EXPECT_EQ(central(all, wide_entry()), "data");
    EXPECT_EQ(central([&](CentralHeader& h) {
                  h.offset = sentinel32;
                  h.extra = zip64_extra(le64(offset));
              }),
              "data");
}

TEST(Z6Zip64Entry, sentinel_without_value_is_format) {
    EXPECT_EQ(central([](auto& h) { h.extra = zip64_extra(le64(4)); }, wide_entry()), "FORMAT");
    EXPECT_EQ(central([](auto& h) { h.extra = zip64_extra(""); }, wide_entry()), "FORMAT");
    EXPECT_EQ(central([](auto& h) { h.extra = ""; }, wide_entry()), "FORMAT");
    EXPECT_EQ(local([](auto& h) { h.extra = ""; }, wide_entry()), "FORMAT");
    EXPECT_EQ(local([](auto& h) { h.extra = zip64_extra(le64(4)); }, wide_entry()), "FORMAT");
    EXPECT_EQ(central([](auto& h) { h.offset = sentinel32; }, wide_entry()), "FORMAT");
    EXPECT_EQ(central([](auto& h) { h.disk = sentinel16; }), "FORMAT");
}

TEST(Z6Zip64Entry, value_without_sentinel) {
    EXPECT_EQ(central([](auto& h) { h.extra = zip64_extra(le64(4) + le64(4)); }), "data");
    EXPECT_EQ(central([](auto& h) { h.extra = zip64_extra(le64(4)); }), "data");
    EXPECT_EQ(central([](auto& h) { h.extra = zip64_extra(""); }), "data");
    EXPECT_EQ(central([](auto& h) { h.extra = zip64_extra(le64(5) + le64(4)); }), "AMBIGUOUS");
    EXPECT_EQ(central([](auto& h) { h.extra = zip64_extra(le64(4) + le64(5)); }), "AMBIGUOUS");
    EXPECT_EQ(local([](auto& h) { h.extra = zip64_extra(le64(4) + le64(4)); }), "data");
    EXPECT_EQ(local([](auto& h) { h.extra = zip64_extra(le64(4) + le64(5)); }), "AMBIGUOUS");
    // Only the stored size is asked for, and the first value is another one: it may be either.
    EXPECT_EQ(central([](auto& h) {
                  h.stored_size = sentinel32;
                  h.extra = zip64_extra(le64(5) + le64(4));
              }),
              "AMBIGUOUS");
}

TEST(Z6Zip64Entry, twice_and_huge) {
    const std::string once = zip64_extra(le64(4) + le64(4));
    EXPECT_EQ(central([&](auto& h) { h.extra = once + once; }, wide_entry()), "FORMAT");
    EXPECT_EQ(local([&](auto& h) { h.extra = once + once; }, wide_entry()), "FORMAT");
    for (const uint64_t huge : {uint64_t{1} << 63, UINT64_MAX, uint64_t{1} << 62}) {
        EXPECT_EQ(
            central([&](auto& h) { h.extra = zip64_extra(le64(huge) + le64(huge)); }, wide_entry()),
            "FORMAT")
            << huge;
        EXPECT_EQ(central([&](auto& h) {
                      h.offset = sentinel32;
                      h.extra = zip64_extra(le64(huge));
                  }),
                  "FORMAT")
            << huge;
    }
    // Modulo 2^32 it would be right.
    EXPECT_NE(
        central([&](auto& h) { h.extra = zip64_extra(le64((uint64_t{1} << 32) + 4) + le64(4)); },
                wide_entry()),
        "data");
    EXPECT_EQ(central([](auto& h) { h.disk = 1; }), "UNSUPPORTED");
}

// ---- Z9, Z10: what is not read ----------------------------------------------------------------

TEST(Z9Encrypted, in_either_header) {
    for (const int bit : {0, 6, 13}) {
        const auto set = [&](auto& h) { h.flags |= static_cast<uint16_t>(1 << bit); };
        EXPECT_EQ(both(set), "UNSUPPORTED") << bit;
        EXPECT_EQ(local(set), "UNSUPPORTED") << bit;
        EXPECT_EQ(central(set), "UNSUPPORTED") << bit;
    }
    EXPECT_EQ(both([](auto& h) { h.method = 99; }), "UNSUPPORTED");
    EXPECT_EQ(local([](auto& h) { h.method = 99; }), "UNSUPPORTED");
    EXPECT_EQ(central([](auto& h) { h.method = 99; }), "UNSUPPORTED");
    for (const int bit : {1, 2, 4, 11})
        EXPECT_EQ(both([&](auto& h) { h.flags |= static_cast<uint16_t>(1 << bit); }), "data")
            << bit;
}

TEST(Z10Unsupported, methods_patches_versions) {
    for (const uint16_t method : Numbers{1, 6, 9, 10, 97, 98, 100, 65535}) {
        Zip zip = between(stored_entry);
        const auto set = [&](auto& h) { h.method = method; };
        zip.entries[1].local = set;
        zip.entries[1].central = set;
        const ZipListing listing = list_zip(zip.bytes());
        EXPECT_EQ(summary(listing), "a=first b=UNSUPPORTED z=last") << method;
        EXPECT_NE(listing.members.at(1).text.find("method " + std::to_string(method)),
                  std::string::npos);
    }
    EXPECT_EQ(both([](auto& h) { h.flags = 1 << 5; }), "UNSUPPORTED");
    EXPECT_EQ(both([](auto& h) { h.version = 64; }), "UNSUPPORTED");
    EXPECT_EQ(both([](auto& h) { h.version = 255; }), "UNSUPPORTED");
    // The high byte is the host.
    for (const uint16_t version : Numbers{0, 10, 63, 3 << 8 | 20, 255 << 8 | 63})
        EXPECT_EQ(both([&](auto& h) { h.version = version; }), "data") << version;
    const Entry old = packed_entry("b", zip_zstd, "data");
    EXPECT_EQ(both([](auto& h) { h.version = 10; }, old), "data");
}

// ---- Z11: the CRC -----------------------------------------------------------------------------

TEST(Z11Crc, mismatch_is_integrity) {
    for (const uint16_t method : {zip_stored, zip_deflate, zip_bzip2, zip_lzma, zip_zstd, zip_xz}) {
        Entry entry = packed_entry("b", method, "data");
        EXPECT_EQ(middle(entry), "data") << method;
        entry.crc = crc_of("date");
        EXPECT_EQ(middle(entry), "INTEGRITY") << method;
    }
    Entry empty{.name = "b", .data = ""};
    EXPECT_EQ(middle(empty), "");
    empty.crc = 1;
    EXPECT_EQ(middle(empty), "INTEGRITY");
}

// ---- Z12, Z13, Z17, Z22: names ----------------------------------------------------------------

TEST(Z12Duplicates, by_position_fine_by_name_ambiguous) {
    Zip zip = between({.name = "a", .data = "other"});
    EXPECT_EQ(read_zip(zip.bytes()), "a=first a=other z=last");
    const auto find = [&](std::string_view name) -> std::string {
        const std::string bytes = zip.bytes();
        const auto source = memory_source(span_of(bytes));
        const Options options;
        const auto members = zip_members(*source, span_of(bytes), options);
        try {
            return std::to_string(NameTable(*members, member_words).find(name));
        } catch (const Error& error) {
            return std::string(shf_error_name(error.code())) + ": " + error.fault().cause;
        }
    };
    EXPECT_EQ(find("a"), "AMBIGUOUS: the name is there twice, at positions 0 and 1");
    EXPECT_EQ(find("z"), "2");
    EXPECT_EQ(find("A"), "NOT_FOUND: there is no member of this name");
    EXPECT_EQ(find(""), "NOT_FOUND: there is no member of this name");
    zip.entries[2].name = "a";
    EXPECT_EQ(find("a"), "AMBIGUOUS: the name is there 3 times, first at positions 0 and 1");
}

TEST(Z13Names, any_bytes_are_a_key) {
    for (const std::string& name : {"/etc/passwd"s, "../../x"s, "C:\\x"s, "\\\\host\\share"s, ""s,
                                    "."s, ".."s, "//"s.substr(1) + "x", "\x1b[31mred"s, "\xff\xfe"s,
                                    "a\nb"s, "CON"s, " "s, "x "s, std::string(1000, '/') + "x"})
        EXPECT_EQ(middle({.name = name, .data = "data"}), "data") << escape(name);
    // A name that is a slash, or ends in one, is that of a directory.
    for (const std::string& name : {"/"s, "//"s, "d/"s})
        EXPECT_EQ(middle({.name = name, .data = ""}), "") << name;
}

TEST(Z17UnicodeName, counts_when_its_crc_matches) {
    const std::string raw = "b", other = "c";
    EXPECT_EQ(central([&](auto& h) { h.extra = unicode_extra(raw, raw); }), "data");
    EXPECT_EQ(central([&](auto& h) { h.extra = unicode_extra(raw, other); }), "AMBIGUOUS");
    EXPECT_EQ(central([&](auto& h) { h.extra = unicode_extra(raw, ""); }), "AMBIGUOUS");
    EXPECT_EQ(central([&](auto& h) { h.extra = unicode_extra(other, other); }), "data");
    // Of another version, or too short to be one.
    EXPECT_EQ(central([&](auto& h) { h.extra = extra(0x7075, "\2" + le32(crc_of(raw)) + other); }),
              "data");
    EXPECT_EQ(central([&](auto& h) { h.extra = extra(0x7075, "\1abc"); }), "data");
    EXPECT_EQ(local([&](auto& h) { h.extra = unicode_extra(raw, other); }), "data");
    // cp437 in the header, UTF-8 in the field: two names.
    Entry entry{.name = "b\x81", .data = "data"};
    EXPECT_EQ(middle(entry), "data");
    EXPECT_EQ(central([&](auto& h) { h.extra = unicode_extra(h.name, "b\xc3\xbc"); }, entry),
              "AMBIGUOUS");
    // The same bytes, which are no UTF-8.
    EXPECT_EQ(central([&](auto& h) { h.extra = unicode_extra(h.name, h.name); }, entry),
              "AMBIGUOUS");
    // Bit 11 over invalid UTF-8 is a matter of the text helper.
    EXPECT_EQ(both([](auto& h) { h.flags = utf8_bit; }, entry), "data");
}

TEST(Z17UnicodeName, hides_no_other_fault) {
    // Sizes that are not known must not reach over other entries.
    for (const bool before : {true, false}) {
        const std::string name = unicode_extra("b", "c");
        EXPECT_EQ(central([&](auto& h) { h.extra = name; }, wide_entry()), "FORMAT");
        EXPECT_EQ(central(
                      [&](auto& h) {
                          const std::string wide = zip64_extra(le64(4));
                          h.extra = before ? name + wide : wide + name;
                      },
                      wide_entry()),
                  "FORMAT");
        EXPECT_EQ(central([&](auto& h) { h.extra = before ? name + h.extra : h.extra + name; },
                          wide_entry()),
                  "AMBIGUOUS");
    }
}

TEST(Z22Nul, in_a_name_is_format) {
    for (const std::string& name : {"b\0"s, "\0"s, "b\0c"s, "b\0/"s, "\0b"s})
        EXPECT_EQ(middle({.name = name, .data = ""}), "FORMAT") << escape(name);
}

// ---- Z19: kinds and sizes; Z20: extra fields --------------------------------------------------

TEST(Z19Sizes, stored_with_two_sizes) {
    EXPECT_EQ(both([](auto& h) { h.size = 3; }), "FORMAT");
    EXPECT_EQ(both([](auto& h) { h.stored_size = 3; }), "FORMAT");
    EXPECT_EQ(both([](auto& h) { h.stored_size = 0; }), "FORMAT");
}

TEST(Z19Sizes, directory_with_data) {
    EXPECT_EQ(middle({.name = "d/", .data = "data"}), "FORMAT");
    EXPECT_EQ(middle(packed_entry("d/", zip_deflate, "data")), "FORMAT");
    EXPECT_EQ(middle({.name = "d/", .data = ""}), "");
    EXPECT_EQ(middle(packed_entry("d/", zip_deflate, "")), "");  // as some writers have it
}

TEST(Z19Sizes, kinds_by_mode_and_slash) {
    const auto kind = [](const std::string& name, uint16_t host, uint32_t mode) {
        Entry entry{.name = name, .data = ""};
        entry.central = [&](CentralHeader& h) {
            h.made_by = static_cast<uint16_t>(host << 8 | 30);
            h.attributes = mode << 16;
        };
        return list_zip(between(entry).bytes()).members.at(1).info.kind;
    };
    constexpr uint16_t unix = 3, dos = 0;
    EXPECT_EQ(kind("l", unix, 0120777), MemberKind::symbolic_link);
    EXPECT_EQ(kind("l", dos, 0120777), MemberKind::file);
    EXPECT_EQ(kind("l/", unix, 0120777), MemberKind::directory);
    EXPECT_EQ(kind("f", unix, 0100644), MemberKind::file);
    EXPECT_EQ(kind("f", unix, 0010644), MemberKind::file) << "a FIFO's mode on real data";
    EXPECT_EQ(kind("f", unix, 0040755), MemberKind::file);
    EXPECT_EQ(kind("f", unix, 0), MemberKind::file);
    EXPECT_EQ(kind("d/", dos, 0), MemberKind::directory);
}

TEST(Z20Extra, must_stay_in_its_area) {
    for (const auto& change :
         {+[](std::string& e) { e = extra(0x5455, "time") + le16(1) + le16(9) + "12345678"; },
          +[](std::string& e) { e = le16(1) + le16(1); },
          +[](std::string& e) { e = le16(0x5455) + le16(65535); },
          +[](std::string& e) { e = "\1"; }, +[](std::string& e) { e = "\0\1"s; },
          +[](std::string& e) { e = extra(0x5455, "time") + "\0\0\1"s; }}) {
        EXPECT_EQ(central([&](auto& h) { change(h.extra); }), "FORMAT");
        EXPECT_EQ(local([&](auto& h) { change(h.extra); }), "FORMAT");
    }
    // One to three zero bytes align the data; four are an empty field of number 0.
    for (const size_t zeros : {1U, 2U, 3U, 4U, 5U, 8U}) {
        EXPECT_EQ(central([&](auto& h) { h.extra = std::string(zeros, '\0'); }), "data") << zeros;
        EXPECT_EQ(local([&](auto& h) { h.extra = std::string(zeros, '\0'); }), "data") << zeros;
        EXPECT_EQ(local([&](auto& h) { h.extra = extra(1, "") + std::string(zeros, '\0'); }),
                  "data")
            << zeros;
    }
}

// The first entry of the file: that it is bad must not look like data before the file.
TEST(BadFirstEntry, leaves_the_others_readable) {
    const auto first = [](const std::function<void(CentralHeader&)>& change) {
        Zip zip = between(stored_entry);
        zip.entries[0].central = change;
        return read_zip(zip.bytes());
    };
    EXPECT_EQ(first([](auto& h) { h.extra = "\1"; }), "a=FORMAT b=data z=last");
    EXPECT_EQ(first([](auto& h) { h.size = sentinel32; }), "a=FORMAT b=data z=last");
    EXPECT_EQ(first([](auto& h) { h.extra = zip64_extra(le64(6)); }), "a=AMBIGUOUS b=data z=last");
    EXPECT_EQ(first([](auto& h) { h.disk = 1; }), "a=UNSUPPORTED b=data z=last");
    EXPECT_EQ(first([](auto& h) { h.flags = 1; }), "a=UNSUPPORTED b=data z=last");
    EXPECT_EQ(first([](auto& h) { h.name = "\0"s; }), "\0=FORMAT b=data z=last"s);
}

}  // namespace
}  // namespace shf::test
