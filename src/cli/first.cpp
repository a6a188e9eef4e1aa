// first: a field of the first sample.
#include "cli/sample_finder.h"
#include "cli/sample_source.h"
#include "cli/selection.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

namespace cli {

namespace {

class First final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Writes a field of the first sample to standard output, and its name to standard "
            "error. Of the fields listed the first that the sample has is taken; by default an "
            "image.");
        arguments.add_option("URL", inputs_, "shards: paths, URLs; the default is standard input");
        arguments
            .add_option("-f,--fields,--field", fields_,
                        "names, separated by ; or ,: the default is img;image;ppm;pgm;pbm;jpeg;jpg;"
                        "png")
            .type_name("LIST");
        arguments
            .add_option("--select", keys_, "the first of these keys: a key, a shell pattern, @FILE")
            .type_name("KEY")
            .repeatable();
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed first train-000000.tar > first.jpg", "Saves the first image."},
                {"shardfeed first -f 'cls;txt' 'pipe:zcat a.tar.gz' --select 'dog*'",
                 "Prints the class, or the text, of the first sample whose key begins with dog."}};
    }

    int run(const LibraryOptions& options) override {
        const KeyList keys(keys_);
        if (inputs_.empty()) inputs_ = {"-"};
        StreamSource source(inputs_, options.handle());
        while (const Sample sample = source.next()) {
            const std::string_view key = key_of(sample.get());
            if (!keys.empty() && !keys.has(key)) continue;
            std::string name;
            const shf_bytes data = field_of(sample.get(), fields_, name);
            refuse_terminal(text(data));
            Output out;
            out.write(text(data));
            out.flush();
            if (!options.is_quiet()) say(printable(key) + "." + printable(name));
            return done;
        }
        throw Failure(failed, "there is no such sample; help: shardfeed ls --samples prints all");
    }

  private:
    std::vector<std::string> inputs_;
    std::string fields_ = "img;image;ppm;pgm;pbm;jpeg;jpg;png";
    std::vector<std::string> keys_;
};

}  // namespace

std::unique_ptr<Verb> make_first() {
    return std::make_unique<First>();
}

}  // namespace cli
