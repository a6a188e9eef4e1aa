// ls: what is in shards and archives.
#include "cli/file_format.h"
#include "cli/interrupts.h"
#include "cli/json_line.h"
#include "cli/sample_source.h"
#include "cli/shown_url.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <limits>
#include <numeric>

namespace cli {

namespace {

constexpr uint64_t unknown = std::numeric_limits<uint64_t>::max();

struct Kind {
    char letter;  // as ls -l has it
    const char* name;
};
constexpr std::array<Kind, 8> kinds = {{{'-', "file"},
                                        {'d', "directory"},
                                        {'h', "hard link"},
                                        {'l', "symbolic link"},
                                        {'s', "special"},
                                        {'S', "sparse"},
                                        {'M', "multi-volume"},
                                        {'?', "unknown"}}};

const Kind& kind_of(uint64_t kind) {
    return kinds[static_cast<size_t>(std::min<uint64_t>(kind, SHF_KIND_UNKNOWN))];
}

// "rw-r--r--"
std::string mode_text(uint64_t mode) {
    if (mode == unknown) return "---------";
    constexpr std::string_view letters = "rwxrwxrwx";
    std::string made(letters.size(), '-');
    for (size_t i = 0; i < letters.size(); ++i)
        if ((mode >> (8 - i) & 1U) != 0) made[i] = letters[i];
    const auto mark = [&](unsigned bit, size_t at, char executable, char plain) {
        if ((mode & bit) != 0) made[at] = made[at] == 'x' ? executable : plain;
    };
    mark(04000, 2, 's', 'S');
    mark(02000, 5, 's', 'S');
    mark(01000, 8, 't', 'T');
    return made;
}

// "2026-01-31 23:59:59", in UTC so that it is the same everywhere.
std::string time_text(uint64_t nanoseconds) {
    if (nanoseconds == unknown) return "-";
    auto seconds = static_cast<int64_t>(nanoseconds) / 1'000'000'000;
    if (static_cast<int64_t>(nanoseconds) % 1'000'000'000 < 0) --seconds;
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts = {};
    std::array<char, 32> made = {};
    if (!gmtime_r(&time, &parts) ||
        std::strftime(made.data(), made.size(), "%Y-%m-%d %H:%M:%S", &parts) == 0)
        return std::to_string(seconds);
    return made.data();
}

std::string_view text_of(const shf_members* members, int32_t what) {
    shf_bytes bytes;
    return shf_members_text(members, what, &bytes) == SHF_OK ? text(bytes) : std::string_view();
}

class Ls final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Lists the members of shards and archives in their order, one on each line. Nothing "
            "is left out: neither directories and links, nor names that come twice. On a terminal "
            "control bytes in names are shown as \\xNN; else names are written as they are. The "
            "names of a ZIP file are those of its directory.");
        arguments
            .add_option("URL", inputs_, "shards or archives: paths, URLs, - for standard input")
            .required();
        arguments.add_flag("-l,--long", long_, "print kind, mode, owner, size and time (UTC) too");
        arguments.add_flag("--samples", samples_,
                           "list samples: key, and each field with its size in bytes, after tabs");
        arguments.add_flag("--shard", shard_,
                           "print the URL of the shard and a tab before each line");
        arguments.add_flag("-0,--null", null_, "end each line with a NUL and not with a newline");
        arguments.add_flag("--json", json_, "print a line of JSON for each member or sample");
    }
    const char* openers() const override { return "stream archive"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed ls train-000000.tar", "Prints the names of all members."},
                {"shardfeed ls -l s3://bucket/images.zip", "Prints their sizes and times too."},
                {"shardfeed ls --samples --json 'train-{000..099}.tar.zst'",
                 "Prints a line of JSON for each sample of 100 shards."}};
    }

    int run(const LibraryOptions& options) override {
        end_ = null_ ? '\0' : '\n';
        is_safe_ = json_ || ::isatty(STDOUT_FILENO) == 1;
        const std::vector<std::string> urls = expanded(inputs_, options.handle());
        if (samples_) {
            list_samples(options);
            out_.flush();
            return done;
        }
        int status = done;
        for (const std::string& url : urls) {
            try {
                list(url, options.handle());
            } catch (const Failure& failure) {
                if (interrupted() || urls.size() == 1) throw;
                out_.flush();
                say(failure.what());  // the others may be good
                status = failed;
            }
        }
        out_.flush();
        return status;
    }

  private:
    // The names of a ZIP file are in its directory. Of what the other lines say some is beside the
    // data alone.
    void list(const std::string& url, const shf_options* options) {
        if (!long_ && !json_ && url != "-" && format_of(url) == "zip")
            list_directory(url, options);
        else
            list_members(url, options);
    }

    void list_directory(const std::string& url, const shf_options* options) {
        shf_archive* opened = nullptr;
        call(shf_archive_open, &opened, url.c_str(), options);
        const Archive archive(opened);
        std::vector<uint64_t> order(shf_archive_member_count(opened));
        std::iota(order.begin(), order.end(), uint64_t{0});
        const auto offset = [&](uint64_t position) {
            return shf_archive_info(opened, position, SHF_MEMBER_OFFSET);
        };
        const auto before = [&](uint64_t a, uint64_t b) { return offset(a) < offset(b); };
        if (!std::is_sorted(order.begin(), order.end(), before))
            std::stable_sort(order.begin(), order.end(), before);
        for (const uint64_t position : order) {
            shf_bytes name;
            shf_archive_name(opened, position, &name);
            line_.clear();
            if (shard_) add_shard(shown_url(url));
            add_name(text(name));
            line_ += end_;
            out_.write(line_);
        }
    }

    void list_members(const std::string& url, const shf_options* options) {
        shf_members* opened = nullptr;
        call(shf_members_open, &opened, url.c_str(), options);
        const Members members(opened);
        const Cancellable cancellable(opened);
        try {
            shf_bytes name;
            while (call(shf_members_next, opened, &name) == SHF_OK) {
                line_.clear();
                if (json_)
                    describe_as_json(url, opened, text(name));
                else
                    describe(url, opened, text(name));
                out_.write(line_);
            }
        } catch (const Failure&) {
            out_.flush();  // what was found before comes before the message
            throw;
        }
    }

    void describe(const std::string& url, const shf_members* members, std::string_view name) {
        if (shard_) add_shard(shown_url(url));
        if (long_) add_properties(members);
        add_name(name);
        if (long_)
            if (const std::string_view link = text_of(members, SHF_MEMBER_LINK); !link.empty()) {
                line_ += " -> ";
                add_name(link);
            }
        line_ += end_;
    }

    void add_properties(const shf_members* members) {
        const auto info = [&](int32_t what) { return shf_members_info(members, what); };
        const auto owner = [&](int32_t name, int32_t number) {
            const std::string_view known = text_of(members, name);
            if (!known.empty()) return printable(known);
            return info(number) == unknown ? std::string("-") : std::to_string(info(number));
        };
        const std::string owners =
            owner(SHF_MEMBER_USER, SHF_MEMBER_UID) + "/" + owner(SHF_MEMBER_GROUP, SHF_MEMBER_GID);
        const std::string size =
            info(SHF_MEMBER_SIZE) == unknown ? "-" : std::to_string(info(SHF_MEMBER_SIZE));
        owner_width_ = std::max(owner_width_, owners.size());
        size_width_ = std::max(size_width_, size.size());
        line_ += kind_of(info(SHF_MEMBER_KIND)).letter;
        line_ += mode_text(info(SHF_MEMBER_MODE)) + " " + owners +
                 std::string(owner_width_ - owners.size() + 1 + size_width_ - size.size(), ' ') +
                 size + " " + time_text(info(SHF_MEMBER_MTIME)) + " ";
    }

    void describe_as_json(const std::string& url, const shf_members* members,
                          std::string_view name) {
        JsonLine json;
        json.bytes("shard", shown_url(url)).bytes("name", name);
        const auto number = [&](const char* key, int32_t what) {
            const uint64_t value = shf_members_info(members, what);
            if (value != unknown) json.number(key, value);
        };
        const auto words = [&](const char* key, int32_t what) {
            const std::string_view value = text_of(members, what);
            if (!value.empty()) json.bytes(key, value);
        };
        json.text("kind", kind_of(shf_members_info(members, SHF_MEMBER_KIND)).name);
        number("size", SHF_MEMBER_SIZE);
        number("stored", SHF_MEMBER_STORED);
        number("method", SHF_MEMBER_METHOD);
        number("crc32", SHF_MEMBER_CRC32);
        number("offset", SHF_MEMBER_OFFSET);
        const uint64_t mode = shf_members_info(members, SHF_MEMBER_MODE);
        if (mode != unknown) json.text("mode", mode_text(mode));
        number("uid", SHF_MEMBER_UID);
        number("gid", SHF_MEMBER_GID);
        words("user", SHF_MEMBER_USER);
        words("group", SHF_MEMBER_GROUP);
        const uint64_t time = shf_members_info(members, SHF_MEMBER_MTIME);
        if (time != unknown) json.raw("mtime_ns", std::to_string(static_cast<int64_t>(time)));
        words("link", SHF_MEMBER_LINK);
        line_ = json.line();
    }

    void list_samples(const LibraryOptions& options) {
        StreamSource source(inputs_, options.handle());
        try {
            while (const Sample sample = source.next()) {
                line_.clear();
                if (json_)
                    describe_as_json(sample.get());
                else
                    describe(sample.get());
                out_.write(line_);
            }
        } catch (const Failure&) {
            out_.flush();
            throw;
        }
    }

    void describe(const shf_sample* sample) {
        if (shard_) {
            shf_bytes url;
            shf_sample_url(sample, &url);
            add_shard(text(url));
        }
        add_name(key_of(sample));
        for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
            shf_bytes name;
            shf_bytes data;
            shf_sample_field(sample, i, &name, &data);
            line_ += '\t';
            add_name(text(name));
            line_ += ' ';
            line_ += std::to_string(data.size);
        }
        line_ += end_;
    }

    void describe_as_json(const shf_sample* sample) {
        shf_bytes url;
        shf_sample_url(sample, &url);
        std::vector<std::string> fields;
        for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
            shf_bytes name;
            shf_bytes data;
            shf_sample_field(sample, i, &name, &data);
            fields.push_back(
                JsonLine().bytes("name", text(name)).number("size", uint64_t{data.size}).object());
        }
        line_ = JsonLine()
                    .bytes("shard", text(url))
                    .bytes("key", key_of(sample))
                    .number("size", payload_of(sample))
                    .raw("fields", json_list(fields))
                    .line();
    }

    void add_shard(std::string_view url) {
        add_name(url);
        line_ += '\t';
    }
    void add_name(std::string_view name) {
        if (is_safe_)
            line_ += printable(name);
        else
            line_ += name;
    }

    std::vector<std::string> inputs_;
    bool long_ = false;
    bool samples_ = false;
    bool shard_ = false;
    bool null_ = false;
    bool json_ = false;

    Output out_;
    std::string line_;
    size_t owner_width_ = 3;  // grow with what is printed, as the columns of tar tv
    size_t size_width_ = 6;
    bool is_safe_ = false;
    char end_ = '\n';
};

}  // namespace

std::unique_ptr<Verb> make_ls() {
    return std::make_unique<Ls>();
}

}  // namespace cli
