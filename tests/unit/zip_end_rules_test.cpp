// Rules Z6, Z7, Z8, Z14, Z15, Z16 and Z18: the end of a ZIP file and its directory as a whole. Each
// rule has an input that breaks it and the nearest one that does not.
#include "dataset/archive.h"
#include "zip_builder.h"
#include "zip_driver.h"

namespace shf::test {
namespace {

using Numbers = std::initializer_list<uint16_t>;

const std::string two = "a.txt=first b.txt=second";

Zip sound() {
    return {.entries = {{.name = "a.txt", .data = "first"}, {.name = "b.txt", .data = "second"}}};
}

// A sound file after a change of its end record.
std::string with_end(const std::function<void(EndRecord&)>& change) {
    Zip zip = sound();
    zip.end = change;
    return zip.bytes();
}

std::string zip64_with(const std::function<void(End64Record&)>& end64,
                       const std::function<void(Locator&)>& locator = {},
                       const std::function<void(EndRecord&)>& end = {}) {
    Zip zip = sound();
    zip.zip64 = true;
    zip.end64 = end64;
    zip.locator = locator;
    zip.end = end;
    return zip.bytes();
}

const Options prefix_allowed = options_with({{"zip_prefix", "allow"}});
const Options junk_ignored = options_with({{"trailing", "ignore"}});

// As a file called "x.zip" would be opened.
std::string opened(std::string_view bytes, const Options& options = {}) {
    try {
        const Archive archive(span_of(bytes), options);
        return std::to_string(archive.members().count()) + " members";
    } catch (const Error& error) {
        return shf_error_name(error.code());
    }
}

TEST(SoundZip, is_read_whole) {
    EXPECT_EQ(read_zip(sound().bytes()), two);
    EXPECT_EQ(opened(sound().bytes()), "2 members");
    Zip zip = sound();
    zip.zip64 = true;
    EXPECT_EQ(read_zip(zip.bytes()), two);
    zip.comment = "PK and other words";
    EXPECT_EQ(read_zip(zip.bytes()), two);
}

TEST(EmptyZip, is_valid) {
    EXPECT_EQ(read_zip(Zip().bytes()), "");
    EXPECT_EQ(opened(Zip().bytes()), "0 members");
    EXPECT_EQ(opened(Zip{.comment = "nothing here"}.bytes()), "0 members");
    EXPECT_EQ(opened(Zip{.zip64 = true}.bytes()), "0 members");
}

// ---- Z6: ZIP64 end records --------------------------------------------------------------------

TEST(Z6Zip64End, records_that_disagree_are_ambiguous) {
    // The end record has a value of its own that is not that of the ZIP64 record.
    using Change = void (*)(EndRecord&);
    const Change differs[] = {[](EndRecord& e) { e.entries = e.disk_entries = 1; },
                              [](EndRecord& e) { e.directory_size = 46; },
                              [](EndRecord& e) { e.offset = 7; },
                              [](EndRecord& e) { e.disk = 1; },
                              [](EndRecord& e) { e.directory_disk = 1; },
                              [](EndRecord& e) { e.entries = 3; },
                              [](EndRecord& e) { e.disk_entries = 3; }};
    for (const Change& change : differs)
        EXPECT_EQ(read_zip(zip64_with({}, {}, change)), "AMBIGUOUS");
    // The same value twice is what some writers do.
    const auto same = [](EndRecord& e) {
        const Zip zip = sound();
        e.entries = e.disk_entries = 2;
        e.offset = static_cast<uint32_t>(zip.entries[0].local_bytes().size() +
                                         zip.entries[1].local_bytes().size() + 11);
    };
    EXPECT_EQ(read_zip(zip64_with({}, {}, same)), two);
}

TEST(Z6Zip64End, values_without_sentinel_are_compared) {
    const auto none = [](EndRecord& e) {
        const Zip zip = sound();
        EndRecord plain;
        Zip other = sound();
        other.end = [&](EndRecord& made) { plain = made; };
        (void)other.bytes();
        e = plain;
    };
    EXPECT_EQ(read_zip(zip64_with({}, {}, none)), two);
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.entries = 3; }, {}, none)), "AMBIGUOUS");
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.offset += 1; }, {}, none)), "AMBIGUOUS");
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.directory_size -= 1; }, {}, none)),
              "AMBIGUOUS");
}

TEST(Z6Zip64End, sentinels_without_record_are_format) {
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.offset = sentinel32; })), "FORMAT");
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.directory_size = sentinel32; })), "FORMAT");
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.entries = e.disk_entries = sentinel16; })),
              "FORMAT");
}

TEST(Z6Zip64End, locator_must_be_adjacent_and_right) {
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.gap = "x"; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.magic += 1; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.offset += 1; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.offset -= 1; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.offset = UINT64_MAX; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.offset = 0; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.magic += 1; })), "FORMAT");
    // Between the ZIP64 record and its locator.
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.record_size = 43; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.record_size = 45; })), "FORMAT");
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.record_size = UINT64_MAX; })), "FORMAT");
    // The extensible data sector belongs to the record.
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.more = "some data"; })), two);
}

TEST(Z6Zip64End, huge_values_never_overflow) {
    for (const uint64_t huge :
         {uint64_t{1} << 32, uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX - 45, UINT64_MAX}) {
        EXPECT_EQ(read_zip(zip64_with([&](End64Record& e) { e.offset = huge; })), "FORMAT") << huge;
        EXPECT_EQ(read_zip(zip64_with([&](End64Record& e) { e.directory_size = huge; })), "FORMAT")
            << huge;
        EXPECT_EQ(read_zip(zip64_with([&](End64Record& e) { e.entries = e.disk_entries = huge; })),
                  "FORMAT")
            << huge;
        // Sums that come out right modulo 2^64 only.
        EXPECT_EQ(read_zip(zip64_with([&](End64Record& e) {
                      e.offset += huge;
                      e.directory_size -= huge;
                  })),
                  "FORMAT")
            << huge;
    }
}

// ---- Z7: the comment and what follows the end record ------------------------------------------

TEST(Z7Comment, must_end_at_the_end_of_the_file) {
    Zip zip = sound();
    zip.comment = "a comment";
    EXPECT_EQ(read_zip(zip.bytes()), two);
    zip.comment = std::string(65535, 'c');
    EXPECT_EQ(read_zip(zip.bytes()), two);
    zip.comment = "a comment";
    for (const uint16_t claimed : Numbers{8, 10, 0, 65535}) {
        zip.end = [&](EndRecord& e) { e.comment_size = claimed; };
        EXPECT_EQ(read_zip(zip.bytes()), "FORMAT") << claimed;
    }
    // Cut at the end.
    zip.end = {};
    const std::string whole = zip.bytes();
    for (size_t cut = 1; cut <= zip.comment.size(); ++cut)
        EXPECT_EQ(read_zip(whole.substr(0, whole.size() - cut)), "FORMAT") << cut;
}

TEST(Z7Trailing, junk_needs_the_switch) {
    for (const std::string& junk : {"x"s, "\0"s, std::string(1000, '\0'), "PK\5\6"s}) {
        Zip zip = sound();
        zip.after = junk;
        const ZipListing refused = list_zip(zip.bytes());
        EXPECT_EQ(summary(refused), "FORMAT");
        EXPECT_NE(refused.fault.text.find("trailing=ignore"), std::string::npos)
            << refused.fault.text;
        EXPECT_EQ(read_zip(zip.bytes(), junk_ignored), two);
    }
    // A comment that goes on past the end is no junk.
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.comment_size = 1; }), junk_ignored), "FORMAT");
    EXPECT_EQ(read_zip(sound().bytes(), junk_ignored), two);
}

// A file in the file, stored, has an end record too: it is never the one that counts.
TEST(Z7Trailing, nested_files_are_bytes) {
    const std::string inner = Zip{.entries = {{.name = "inner.txt", .data = "i"}}}.bytes();
    for (const Options& options : {Options(), junk_ignored}) {
        EXPECT_EQ(read_zip(Zip{.entries = {{.name = "in.zip", .data = inner}}}.bytes(), options),
                  "in.zip=" + inner);
        EXPECT_EQ(
            read_zip(Zip{.entries = {{.name = "in.zip", .data = Zip().bytes()}}}.bytes(), options),
            "in.zip=" + Zip().bytes());
    }
    EXPECT_EQ(read_zip(Zip{.entries = {{.name = "in.zip", .data = inner}}}.bytes(), prefix_allowed),
              "in.zip=" + inner);
}

// ---- Z8: two end records ----------------------------------------------------------------------

// A whole file in the comment of another; its offsets count the bytes before it, or not.
std::string in_comment(bool counted) {
    Zip outer = sound();
    const size_t before = outer.bytes().size();
    Zip inner{.entries = {{.name = "inner.txt", .data = "i"}}};
    if (counted) {
        inner.prefix = std::string(before, '\0');
        inner.counted_prefix = true;
        outer.comment = inner.bytes().substr(before);
    } else {
        outer.comment = inner.bytes();
    }
    return outer.bytes();
}

TEST(Z8TwoEnds, ambiguous_only_when_both_fit) {
    EXPECT_EQ(read_zip(in_comment(false)), two);  // its directory does not end at its end record
    EXPECT_EQ(read_zip(in_comment(true)), "AMBIGUOUS");
    EXPECT_EQ(read_zip(in_comment(false), prefix_allowed), "AMBIGUOUS");
}

TEST(Z8TwoEnds, end_magic_in_a_comment_is_text) {
    Zip zip = sound();
    for (const std::string& comment :
         {"PK\5\6"s, "PK\5\6 and what follows it is no record"s,
          "PK\5\6"s + std::string(18, '\0'),              // an empty file at byte 0
          "xPK\5\6"s + std::string(16, '\0') + "\1\0x"s,  // its comment ends right
          EndRecord{.disk_entries = 1, .entries = 1, .directory_size = 46}.bytes()}) {
        zip.comment = comment;
        EXPECT_EQ(read_zip(zip.bytes()), two) << escape(comment);
    }
    // An empty directory that is said to end right here.
    const auto at = static_cast<uint32_t>(sound().bytes().size());
    zip.comment = EndRecord{.offset = at}.bytes();
    EXPECT_EQ(read_zip(zip.bytes()), "AMBIGUOUS");
}

// Thousands of candidates take no more than a look at each.
TEST(Z8TwoEnds, many_candidates) {
    Zip zip = sound();
    while (zip.comment.size() + 4 <= 65535) zip.comment += "PK\5\6";
    EXPECT_EQ(read_zip(zip.bytes()), two);
}

// ---- Z14: counts ------------------------------------------------------------------------------

TEST(Z14Count, is_that_of_the_directory) {
    for (const uint16_t count : Numbers{0, 1, 3, 65534}) {
        const ZipListing listing =
            list_zip(with_end([&](EndRecord& e) { e.entries = e.disk_entries = count; }));
        EXPECT_EQ(summary(listing), "FORMAT") << count;
    }
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.entries = 1; })), "FORMAT");
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.disk_entries = 1; })), "FORMAT");
    for (const uint64_t count : {uint64_t{1}, uint64_t{3}, uint64_t{65538}, uint64_t{1} << 40})
        EXPECT_EQ(read_zip(zip64_with([&](End64Record& e) { e.entries = e.disk_entries = count; })),
                  "FORMAT")
            << count;
}

TEST(Z14Count, no_entries_is_never_success_over_data) {
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) {
                  e.entries = e.disk_entries = 0;
                  e.directory_size = 0;
              })),
              "FORMAT");
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) {
                  e.entries = e.disk_entries = 0;
                  e.offset += e.directory_size;
                  e.directory_size = 0;
              })),
              "FORMAT");
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) {
                  e.entries = e.disk_entries = 0;
                  e.offset = e.directory_size = 0;
              })),
              "FORMAT");
    // With zip_prefix=allow too: there is no entry that could agree on a base.
    for (const bool counted : {false, true})
        EXPECT_EQ(read_zip(with_end([&](EndRecord& e) {
                               e.entries = e.disk_entries = 0;
                               e.offset = counted ? e.offset + e.directory_size : 0;
                               e.directory_size = 0;
                           }),
                           prefix_allowed),
                  "FORMAT");
}

// ---- Z15: data before the first entry ---------------------------------------------------------

TEST(Z15Prefix, needs_the_switch) {
    for (const bool counted : {false, true})
        for (const std::string& prefix : {"x"s, "#!/bin/sh\nexit\n"s, std::string(100000, 'p')}) {
            Zip zip = sound();
            zip.prefix = prefix;
            zip.counted_prefix = counted;
            const ZipListing refused = list_zip(zip.bytes());
            EXPECT_EQ(summary(refused), "FORMAT");
            EXPECT_NE(refused.fault.text.find("zip_prefix=allow"), std::string::npos)
                << refused.fault.text;
            EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), two);
            EXPECT_EQ(opened(zip.bytes(), prefix_allowed), "2 members");
            EXPECT_EQ(opened(zip.bytes()), "FORMAT");
            zip.zip64 = true;
            EXPECT_EQ(read_zip(zip.bytes()), "FORMAT");
            EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), two);
        }
    EXPECT_EQ(read_zip(sound().bytes(), prefix_allowed), two);
}

TEST(Z15Prefix, one_base_for_all) {
    Zip zip = sound();
    zip.prefix = "12345678";
    // An entry that is 4 bytes off, and another one that counts the prefix.
    zip.entries[1].central = [](CentralHeader& h) { h.offset -= 4; };
    EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), "a.txt=FORMAT b.txt=FORMAT");
    zip.entries[1].central = [](CentralHeader& h) { h.offset += 8; };
    EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), "a.txt=first b.txt=FORMAT");
    zip.entries[1].central = {};
    // The directory is at another distance from its place than the ZIP64 record.
    zip.zip64 = true;
    zip.locator = [](Locator& l) { l.offset += 8; };
    EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), "FORMAT");
    zip.locator = [](Locator& l) { l.offset += 4; };
    EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), "FORMAT");
}

TEST(Z15Prefix, gap_before_the_first_entry) {
    // The first entry of the file is not in the directory.
    Zip zip = sound();
    zip.order = {1};
    EXPECT_EQ(read_zip(zip.bytes()), "FORMAT");
    EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), "b.txt=second");
    zip.order = {1, 0};
    EXPECT_EQ(read_zip(zip.bytes()), "b.txt=second a.txt=first");
}

// ---- Z16, Z18 ---------------------------------------------------------------------------------

TEST(Z16MultiDisk, is_unsupported) {
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.disk = 1; })), "UNSUPPORTED");
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.directory_disk = 1; })), "UNSUPPORTED");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.disk = 1; })), "UNSUPPORTED");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.disks = 2; })), "UNSUPPORTED");
    EXPECT_EQ(read_zip(zip64_with([](End64Record& e) { e.disk = 1; }, {},
                                  [](EndRecord& e) { e.disk = sentinel16; })),
              "UNSUPPORTED");
    EXPECT_EQ(read_zip(zip64_with({}, [](Locator& l) { l.disks = 0; })), two);
}

TEST(Z18Directory, gaps_cuts_and_wrong_places) {
    // A gap before the directory is legal, one before the end records is not.
    Zip zip = sound();
    zip.before_directory = "padding";
    EXPECT_EQ(read_zip(zip.bytes()), two);
    zip = sound();
    zip.entries[0].gap = std::string(1000, '\0');
    EXPECT_EQ(read_zip(zip.bytes()), two);
    zip = sound();
    for (const bool wide : {false, true}) {
        zip.zip64 = wide;
        zip.before_end = "gap";
        EXPECT_EQ(read_zip(zip.bytes()), "FORMAT") << wide;
        EXPECT_EQ(read_zip(zip.bytes(), prefix_allowed), "FORMAT") << wide;
    }
    for (const int32_t off : {-47, -46, -1, 1, 46}) {
        const auto move = static_cast<uint32_t>(off);
        EXPECT_EQ(read_zip(with_end([&](EndRecord& e) { e.directory_size += move; })), "FORMAT")
            << off;
        EXPECT_EQ(read_zip(with_end([&](EndRecord& e) { e.offset += move; })), "FORMAT") << off;
    }
    EXPECT_EQ(read_zip(with_end([](EndRecord& e) { e.directory_size = 0; })), "FORMAT");
}

TEST(Z18Directory, bad_magic_and_cut_entries) {
    for (const size_t bad : {size_t{0}, size_t{1}}) {
        Zip zip = sound();
        zip.entries[bad].central = [](CentralHeader& h) { h.magic ^= 0x100; };
        EXPECT_EQ(read_zip(zip.bytes()), "FORMAT") << bad;
        // Lengths that make the next entry start somewhere else.
        zip.entries[bad].central = [](CentralHeader& h) { h.comment_size = 1; };
        EXPECT_EQ(read_zip(zip.bytes()), "FORMAT") << bad;
        zip.entries[bad].central = [](CentralHeader& h) { h.extra_size = 65535; };
        EXPECT_EQ(read_zip(zip.bytes()), "FORMAT") << bad;
        zip.entries[bad].central = [](CentralHeader& h) { h.name_size = 4; };
        EXPECT_EQ(read_zip(zip.bytes()), "FORMAT") << bad;
        zip.entries[bad].central = [](CentralHeader& h) { h.comment = "about this entry"; };
        EXPECT_EQ(read_zip(zip.bytes()), two) << bad;
    }
}

TEST(Z18NoEnd, truncated_when_it_starts_as_a_zip) {
    const std::string whole = sound().bytes();
    for (size_t size = 0; size < whole.size(); ++size) {
        const int32_t code = list_zip(whole.substr(0, size)).fault.code;
        EXPECT_TRUE(code == SHF_E_TRUNCATED || (size < 4 && code == SHF_E_FORMAT)) << size;
    }
    EXPECT_EQ(read_zip(std::string(1000, 'x')), "FORMAT");
    EXPECT_EQ(read_zip("x"), "FORMAT");
    EXPECT_EQ(read_zip(""), "TRUNCATED");
}

// ---- Limits -----------------------------------------------------------------------------------

TEST(ZipLimits, directory_and_names) {
    Zip zip = sound();
    EXPECT_EQ(read_zip(zip.bytes(), options_with({{"max_name", "5"}})), two);
    EXPECT_EQ(read_zip(zip.bytes(), options_with({{"max_name", "4"}})), "LIMIT");
    zip.entries[0].name = std::string(65535, 'n');
    EXPECT_EQ(list_zip(zip.bytes()).members.at(0).name, zip.entries[0].name);
    EXPECT_TRUE(list_zip(zip.bytes()).all_read());
    for (size_t i = 0; i < 20; ++i) zip.entries.push_back(zip.entries[0]);
    EXPECT_EQ(read_zip(zip.bytes(), options_with({{"memory", "1MiB"}})), "LIMIT");
    EXPECT_TRUE(list_zip(zip.bytes(), options_with({{"memory", "2MiB"}})).all_read());
}

}  // namespace
}  // namespace shf::test
