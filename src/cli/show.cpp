// show: samples for people to read.
#include "cli/field_list.h"
#include "cli/field_preview.h"
#include "cli/sample_source.h"
#include "cli/selection.h"
#include "cli/terminal.h"
#include "cli/terminal_image.h"
#include "cli/verb_list.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

namespace cli {

namespace {

constexpr size_t wide = 1000;         // columns where standard output is no terminal
constexpr size_t name_width = 10;     // of the column of names, at least
constexpr size_t size_width = 7;      // "1.23 GB"
constexpr size_t bytes_a_line = 200;  // of a preview, so that it is not made for nothing

// Columns of the terminal that standard output is.
size_t columns() {
    winsize size = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return wide;
    return size.ws_col;
}

// The first `count` characters.
std::string_view cut(std::string_view line, size_t count) {
    size_t at = 0;
    for (; at < line.size(); ++at)
        if ((static_cast<unsigned char>(line[at]) & 0xC0U) != 0x80 && count-- == 0) break;
    return line.substr(0, at);
}

class Show final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Prints samples for people to read: the key, and of each field name, size, and what is "
            "in it. Text, numbers, JSON and MessagePack are printed, of arrays (npy) type, shape "
            "and the first values, of images format and size, of other fields the first bytes.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs, - for standard input")
            .required();
        arguments.add_option("-n,--number", count_, "samples to show; 0: all; the default is 10")
            .type_name("N");
        arguments
            .add_option("-f,--fields,--field", fields_,
                        "fields to show, separated by blanks; commas separate alternatives")
            .type_name("LIST")
            .repeatable();
        arguments
            .add_option("--key,--select", keys_,
                        "only these keys: a key, a shell pattern, or @FILE")
            .type_name("KEY")
            .repeatable();
        arguments.add_option("--lines", lines_, "lines to show of a field; the default is 12")
            .type_name("N")
            .within(1, 1'000'000);
        arguments.add_flag(
            "--images", images_,
            "show images, in terminals that can: kitty, ghostty, iTerm2, WezTerm, mintty");
        arguments.add_flag("--json", json_, "print a line of JSON for each sample");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed show train-000000.tar", "Shows the first ten samples."},
                {"shardfeed show s3://bucket/train-000000.tar -n 1 --images",
                 "Shows one sample of a shard in a store, with its image."},
                {"shardfeed show 'train-{000..099}.tar' --key 'n01440764/*' -f 'cls json'",
                 "Shows two fields of the first ten samples of one class."}};
    }

    int run(const LibraryOptions& options) override {
        const FieldList wanted(fields_);
        const KeyList keys(keys_);
        protocol_ = images_ && !json_ ? image_protocol() : ImageProtocol::none;
        if (images_ && !json_ && protocol_ == ImageProtocol::none && !options.is_quiet())
            say("this terminal shows no images; help: kitty, ghostty, iTerm2, WezTerm and mintty "
                "do, outside of tmux and screen");
        columns_ = columns();
        Progress progress(!options.is_quiet() && !keys.empty(), "show", local_bytes(inputs_));
        StreamSource source(inputs_, options.handle());
        Output out;
        try {
            uint64_t shown = 0;
            while (count_ == 0 || shown < count_) {
                const Sample sample = source.next();
                if (!sample) break;
                progress.add(1, payload_of(sample.get()));
                if (!keys.empty() && !keys.has(key_of(sample.get()))) continue;
                wanted.choose(view_of(sample.get(), room_), Missing::keep, chosen_);
                out.write(json_ ? as_json(sample.get()) : as_text(sample.get(), shown));
                ++shown;
            }
            if (shown == 0 && !keys.empty())
                throw Failure(failed,
                              "no sample has such a key; help: shardfeed ls --samples "
                              "prints all keys");
        } catch (const Failure&) {
            out.flush();
            throw;
        }
        out.flush();
        return done;
    }

  private:
    // The name in the sample, which the library decodes by; the list of fields may give another.
    static std::string_view own_name(const shf_sample* sample, const FieldView& field) {
        for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
            shf_bytes name;
            shf_bytes data;
            shf_sample_field(sample, i, &name, &data);
            if (data.data == field.data.data && data.size == field.data.size && data.size > 0)
                return text(name);
        }
        return field.name;
    }

    [[nodiscard]] FieldPreview preview(const shf_sample* sample, const FieldView& field) const {
        return preview_of(sample, own_name(sample, field), field.data, lines_ * bytes_a_line);
    }

    std::string as_text(const shf_sample* sample, uint64_t shown) {
        shf_bytes url;
        shf_sample_url(sample, &url);
        const size_t count = shf_sample_field_count(sample);
        std::string made = (shown == 0 ? "" : "\n") + printable(key_of(sample)) + "  (" +
                           count_text(count) + (count == 1 ? " field, " : " fields, ") +
                           size_text(payload_of(sample)) + ", " + printable(text(url)) + ")\n";
        size_t width = name_width;
        for (const auto& [name, data] : chosen_) width = std::max(width, printable(name).size());
        for (const FieldView& field : chosen_) {
            const std::string name = printable(field.name);
            const std::string size = size_text(field.data.size);
            made += "  " + name +
                    std::string(
                        width - name.size() + size_width - std::min(size_width, size.size()), ' ') +
                    size + "  ";
            const FieldPreview shown_field = preview(sample, field);
            add_lines(made, shown_field.text, width + size_width + 4);
            if (shown_field.kind == std::string_view("image"))
                made += image_escape(protocol_, sample, own_name(sample, field), text(field.data));
        }
        return made;
    }

    // The cursor is `indent` columns to the right.
    void add_lines(std::string& made, std::string_view text, size_t indent) const {
        const size_t width = columns_ > indent + 20 ? columns_ - indent : 20;
        for (size_t line = 0;; ++line) {
            if (line > 0) made += std::string(indent, ' ');
            if (line == lines_) {
                made += "...\n";
                return;
            }
            const size_t end = std::min(text.find('\n'), text.size());
            made += cut(text.substr(0, end), width);
            made += '\n';
            if (end == text.size()) return;
            text.remove_prefix(end + 1);
        }
    }

    std::string as_json(const shf_sample* sample) {
        shf_bytes url;
        shf_sample_url(sample, &url);
        std::vector<std::string> fields;
        for (const FieldView& field : chosen_) {
            const std::string facts = preview(sample, field).facts.object();
            JsonLine line;
            line.bytes("name", field.name).number("size", uint64_t{field.data.size});
            std::string object = line.object();
            object.back() = ',';
            fields.push_back(object + facts.substr(1));
        }
        return JsonLine()
            .bytes("shard", text(url))
            .bytes("key", key_of(sample))
            .number("size", payload_of(sample))
            .raw("fields", json_list(fields))
            .line();
    }

    std::vector<std::string> inputs_;
    uint64_t count_ = 10;
    std::vector<std::string> fields_;
    std::vector<std::string> keys_;
    size_t lines_ = 12;
    bool images_ = false;
    bool json_ = false;

    ImageProtocol protocol_ = ImageProtocol::none;
    size_t columns_ = wide;
    std::vector<FieldView> room_;
    std::vector<FieldView> chosen_;
};

}  // namespace

std::unique_ptr<Verb> make_show() {
    return std::make_unique<Show>();
}

}  // namespace cli
