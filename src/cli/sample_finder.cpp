#include "cli/sample_finder.h"

#include "cli/field_preview.h"
#include "cli/sample_source.h"
#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

namespace cli {

namespace {

// All shards by number, without reading any for that: nothing when one has no index, and for
// formats without random access.
std::optional<Dataset> random_access(const std::vector<std::string>& urls,
                                     const LibraryOptions& options) {
    for (const std::string& url : urls)
        if (url == "-" || url.starts_with("pipe:")) return std::nullopt;  // read once
    const Options own = options.copy();
    if (!options.given("index")) call(shf_options_set, own.get(), "index", "require");
    std::vector<const char*> names;
    for (const std::string& url : urls) names.push_back(url.c_str());
    shf_dataset* opened = nullptr;
    shf_error error = {};
    const int32_t code = shf_dataset_open(&opened, names.data(), names.size(), own.get(), &error);
    if (code == SHF_E_CANCELLED) fail(code, error);
    if (code != SHF_OK) return std::nullopt;  // what is wrong, the stream will say
    return Dataset(opened);
}

Sample sample_of(const Dataset& dataset, uint64_t number) {
    shf_sample* sample = nullptr;
    call(shf_dataset_get, dataset.get(), number, &sample);
    return Sample(sample);
}

[[noreturn]] void no_key(const std::string& key) {
    throw Failure(failed, "no sample has the key " + printable(key) +
                              "; help: shardfeed ls --samples prints all keys");
}

}  // namespace

Sample find_by_key(const std::vector<std::string>& urls, const std::string& key,
                   const LibraryOptions& options) {
    if (const auto dataset = random_access(urls, options)) {
        uint64_t number = 0;
        shf_error error = {};
        const int32_t code =
            shf_dataset_find(dataset->get(), key.data(), key.size(), &number, &error);
        if (code == SHF_E_NOT_FOUND) no_key(key);
        if (code == SHF_OK) return sample_of(*dataset, number);
        // Several have it: the first one. A table that is too large: no table.
        if (code != SHF_E_AMBIGUOUS && code != SHF_E_LIMIT) fail(code, error);
    }
    Progress progress(!options.is_quiet(), "get", local_bytes(urls));
    StreamSource source(urls, options.handle());
    while (Sample sample = source.next()) {
        if (key_of(sample.get()) == key) return sample;
        progress.add(1, payload_of(sample.get()));
    }
    no_key(key);
}

Sample find_by_number(const std::vector<std::string>& urls, uint64_t number,
                      const LibraryOptions& options) {
    uint64_t count = 0;
    if (const auto dataset = random_access(urls, options)) {
        count = shf_dataset_sample_count(dataset->get());
        if (number < count) return sample_of(*dataset, number);
    } else {
        Progress progress(!options.is_quiet(), "get", local_bytes(urls));
        StreamSource source(urls, options.handle());
        while (Sample sample = source.next()) {
            if (count++ == number) return sample;
            progress.add(1, payload_of(sample.get()));
        }
    }
    throw Failure(failed, "there is no sample " + std::to_string(number) + ": the shards have " +
                              std::to_string(count) + "; help: numbers count from 0");
}

shf_bytes field_of(const shf_sample* sample, const std::string& names, std::string& found) {
    for (size_t at = 0; at <= names.size();) {
        const size_t end = std::min(names.find_first_of(";,", at), names.size());
        found = names.substr(at, end - at);
        shf_bytes data;
        if (shf_sample_find(sample, found.data(), found.size(), &data) == SHF_OK) return data;
        at = end + 1;
    }
    std::string there;
    for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
        shf_bytes name;
        shf_sample_field(sample, i, &name, nullptr);
        there += (there.empty() ? "" : ", ") + printable(text(name));
    }
    shf_bytes url;
    shf_sample_url(sample, &url);
    throw Failure(failed, printable(text(url)) + ": sample " + printable(key_of(sample)) +
                              " has no field " + printable(names) + "; help: it has " + there);
}

void refuse_terminal(std::string_view bytes) {
    if (::isatty(STDOUT_FILENO) == 1 && !is_text(bytes))
        throw Failure(wrong_command_line,
                      "these bytes are no text for a terminal; help: write them to a file: > FILE");
}

}  // namespace cli
