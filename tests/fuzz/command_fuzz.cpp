// Fuzz target of what the command reads: recipes, tables, and the small languages of its words.
// What is refused is a Failure; what is accepted has its meaning.
#include "cli/field_list.h"
#include "cli/library.h"
#include "cli/number_pattern.h"
#include "cli/rows.h"
#include "cli/selection.h"
#include "cli/shares.h"
#include "cli/sort_key.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

// A file in memory, whose path can be opened.
class MemoryFile {
  public:
    explicit MemoryFile(const std::string& bytes) : fd_(::memfd_create("fuzz", 0)) {
        require(fd_ >= 0);
        require(::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    }
    ~MemoryFile() { (void)::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    const int fd_;
};

void read_rows(const std::string& text, char kind) {
    using Kind = cli::TableFormat::Kind;
    const MemoryFile file(text);
    const auto table = [&](Kind of) {
        return cli::table_rows(file.path(),
                               {.kind = of, .columns = {}, .keys = "%09d", .folder = "/f"});
    };
    const auto rows = kind == 'r'   ? cli::recipe_rows(file.path(), -1)
                      : kind == 't' ? table(Kind::tsv)
                      : kind == 'c' ? table(Kind::csv)
                                    : table(Kind::jsonl);
    cli::Row row;
    size_t bytes = 0;
    while (rows->next(row)) {
        require(!row.key.empty() && !row.place.empty());
        for (const cli::RowField& field : row.fields) bytes += field.value.size();
    }
    // Nothing comes from nowhere: names of JSON numbers, folders of paths.
    if (kind != 'j') require(bytes <= text.size() * 4);
}

void read_words(const std::string& text, char kind) {
    if (kind == 'f') {
        const cli::FieldList list({text});
        const cli::FieldView field = {"jpg", {nullptr, 0}};
        std::vector<cli::FieldView> chosen;
        (void)list.choose({.key = "k", .fields = {&field, 1}}, cli::Missing::keep, chosen);
        require(chosen.size() <= text.size() + 1);
    } else if (kind == 's') {
        const cli::Slice slice(text, false);
        for (uint64_t i = 0; i < 10; ++i) require(!(slice.takes(i) && slice.ends_before(i)));
    } else if (kind == 'p') {
        const cli::NumberPattern pattern(text);
        require(pattern.text(7) != pattern.text(8));
    } else if (kind == 'h') {
        const cli::Shares shares(text);
        require(shares.part_of(text) < shares.names().size());
    } else {
        const size_t middle = text.find('|');
        const std::string a = text.substr(0, middle);
        const std::string b = middle == std::string::npos ? "" : text.substr(middle + 1);
        (void)(cli::sort_key(a, cli::SortType::natural) < cli::sort_key(b, cli::SortType::natural));
        (void)cli::sort_key(a, cli::SortType::number);
        const bool less =
            cli::sort_key(a, cli::SortType::integer) < cli::sort_key(b, cli::SortType::integer);
        if (a.size() < 18 && b.size() < 18) require(less == (std::stoll(a) < std::stoll(b)));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const char kind = static_cast<char>(data[0]);
    const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        if (std::string_view("rtcj").find(kind) != std::string_view::npos)
            read_rows(text, kind);
        else
            read_words(text, kind);
    } catch (const cli::Failure& failure) {
        require(*failure.what() != '\0');
    }
    return 0;
}
