// Faults, their texts, and how they become an shf_error.
#include "core/error.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace {

using namespace std::string_literals;
using shf::Error;
using shf::escape;
using shf::Fault;

// A fault with a code and a cause.
Fault fault_of(int32_t code, std::string cause = {}) {
    Fault fault;
    fault.code = code;
    fault.cause = std::move(cause);
    return fault;
}

TEST(DropSkips, takes_the_end_of_the_help) {
    const auto left = [](const std::string& help) {
        Fault fault = fault_of(SHF_E_FORMAT);
        fault.help = help;
        shf::drop_skips(fault);
        return fault.help;
    };
    EXPECT_EQ(left(shf::copy_again), "copy it again");
    EXPECT_EQ(left(shf::write_again), "write the shard again");
    EXPECT_EQ(left("the shard is damaged here; copy it again, or use on_error=skip_shard"),
              "the shard is damaged here; copy it again");
    EXPECT_EQ(left("add a bound, or leave such samples out with on_error=skip_sample"),
              "add a bound");
    for (const char* other : {"", "raise memory, or copy it to a file", "a, or b", "set on_error="})
        EXPECT_EQ(left(other), other);
}

TEST(Escape, harmless_names_stay) {
    for (const char* name : {"", "a/b.jpg", "with blank", "ümlaut/日本/😀.png", "it's", "100%"})
        EXPECT_EQ(escape(name), name);
}

TEST(Escape, nothing_reaches_the_terminal) {
    EXPECT_EQ(escape("a\x1b[31mb"), "a\\x1b[31mb");
    EXPECT_EQ(escape("\0\n\r\t\x7f"s), "\\x00\\x0a\\x0d\\x09\\x7f");
    EXPECT_EQ(escape("\xc2\x9b"
                     "31m"),
              "\\xc2\\x9b31m");                 // CSI as U+009B
    EXPECT_EQ(escape("\xc2\xa0"), "\xc2\xa0");  // U+00A0 is no control
    EXPECT_EQ(escape("a\\b\"c"), "a\\x5cb\\x22c");
}

TEST(Escape, invalid_utf8) {
    EXPECT_EQ(escape("\xff"), "\\xff");
    EXPECT_EQ(escape("\x80x"), "\\x80x");
    EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
    EXPECT_EQ(escape("\xe0\x80\x80"), "\\xe0\\x80\\x80");           // overlong
    EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
    EXPECT_EQ(escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // past U+10FFFF
    EXPECT_EQ(escape("\xe2\x82"), "\\xe2\\x82");                    // cut
    EXPECT_EQ(escape("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
}

TEST(Escape, different_names_stay_different) {
    EXPECT_NE(escape("a\nb"), escape("a\\x0ab"));
    EXPECT_NE(escape("\xff"), escape("\\xff"));
}

TEST(Escape, long_names_are_cut) {
    const std::string longest(200, 'x');
    EXPECT_EQ(escape(longest), longest);
    EXPECT_EQ(escape(longest + "y"), longest + "...");
}

TEST(Fault, text_names_shard_first_and_help_last) {
    const Fault fault{.code = SHF_E_FORMAT,
                      .offset = 512,
                      .shard = "train.tar",
                      .member = "a.jpg",
                      .cause = "the checksum is wrong",
                      .help = "write it again"};
    EXPECT_EQ(
        fault.text(),
        "train.tar: member \"a.jpg\": at byte 512: the checksum is wrong; help: write it again");
    EXPECT_EQ(fault_of(SHF_E_NOMEM).text(), shf_strerror(SHF_E_NOMEM));
    EXPECT_STREQ(Error(SHF_E_USAGE, "no", "yes").what(), "no; help: yes");
}

TEST(Error, system_errors_carry_errno) {
    const Error error = Error::system("open", ENOENT);
    EXPECT_EQ(error.code(), SHF_E_IO);
    EXPECT_EQ(error.fault().os_error, ENOENT);
    EXPECT_STREQ(error.what(), "open: No such file or directory");
    EXPECT_EQ(Error::system("mmap", ENOMEM).code(), SHF_E_NOMEM);
    EXPECT_EQ(Error::system("write", ENOSPC).code(), SHF_E_NOSPACE);
    EXPECT_EQ(Error::system("write", EDQUOT).code(), SHF_E_NOSPACE);
}

TEST(Error, classes_that_may_be_skipped) {
    for (int32_t code = SHF_E_INTERNAL; code <= SHF_END; ++code) {
        const bool run = code == SHF_OK || code == SHF_END || code == SHF_E_AUTH ||
                         code == SHF_E_TLS || code == SHF_E_NOSPACE || code == SHF_E_NOMEM ||
                         code == SHF_E_CANCELLED || code == SHF_E_TIMEOUT || code <= SHF_E_USAGE;
        EXPECT_EQ(shf::skippable(code), !run) << shf_error_name(code);
    }
}

template <typename Exception>
Fault described(const Exception& exception) {
    try {
        throw exception;
    } catch (...) {
        return shf::describe_exception();
    }
}

TEST(Error, any_exception_is_described) {
    EXPECT_EQ(described(Error(SHF_E_FORMAT, "cause", "help", 7)).offset, 7U);
    EXPECT_EQ(described(Error(SHF_E_FORMAT, "cause")).cause, "cause");
    EXPECT_EQ(described(std::bad_alloc()).code, SHF_E_NOMEM);
    const Fault system = described(std::system_error(EAGAIN, std::generic_category(), "thread"));
    EXPECT_EQ(system.code, SHF_E_IO);
    EXPECT_EQ(system.os_error, EAGAIN);
    EXPECT_EQ(described(std::logic_error("slip")).code, SHF_E_INTERNAL);
    EXPECT_EQ(described(std::logic_error("slip")).cause, "slip");
    EXPECT_EQ(described(42).code, SHF_E_INTERNAL);
}

TEST(WriteError, fills_everything) {
    shf_error error;
    std::memset(&error, 0x55, sizeof error);
    Fault fault = fault_of(SHF_E_IO, "broken");
    fault.os_error = 5;
    fault.offset = 77;
    shf::write_error(&error, fault);
    EXPECT_EQ(error.code, SHF_E_IO);
    EXPECT_EQ(error.os_error, 5);
    EXPECT_EQ(error.offset, 77U);
    EXPECT_STREQ(error.message, "at byte 77: broken");
    EXPECT_EQ(error.message[sizeof error.message - 1], '\0');
    EXPECT_EQ(error.message[100], '\0');  // no old bytes behind the text
    shf::write_error(nullptr, fault);
}

// 1,008 bytes with the NUL; one byte less than full, full, one more, and a cut inside a character.
TEST(WriteError, cuts_at_a_character) {
    shf_error error;
    for (const size_t size : {1006U, 1007U, 1008U, 5000U}) {
        shf::write_error(&error, fault_of(SHF_E_IO, std::string(size, 'x')));
        EXPECT_EQ(std::strlen(error.message), std::min<size_t>(size, 1007));
    }
    for (const size_t before : {1004U, 1005U, 1006U}) {
        const std::string text = std::string(before, 'x') + "\xe2\x82\xac";  // euro sign, 3 bytes
        shf::write_error(&error, fault_of(SHF_E_IO, text));
        EXPECT_EQ(error.message, before == 1004 ? text : std::string(before, 'x'));
    }
}

}  // namespace
