// The conformance suite through the public C header:
//
//     run_conformance [--make MAKE_ARCHIVES.PY | --print] FOLDER CASES.JSON [NAME...]
//
// --make writes the archives into the folder first. --print compares nothing and prints what came,
// as a JSON object from names of cases to what "expect" has; write_cases.py --freeze reads it.
#include <shardfeed.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using nlohmann::json;

// ---- What the library gives, released when it is let go of -------------------------------------

template <auto release>
struct Release {
    void operator()(auto* handle) const { release(handle); }
};
using Options = std::unique_ptr<shf_options, Release<shf_options_free>>;
using Stream = std::unique_ptr<shf_stream, Release<shf_stream_close>>;
using State = std::unique_ptr<shf_state, Release<shf_state_free>>;
using Sample = std::unique_ptr<shf_sample, Release<shf_sample_unref>>;
using Plan = std::unique_ptr<shf_plan, Release<shf_plan_free>>;
using Block = std::unique_ptr<shf_block, Release<shf_block_unref>>;
using Batch = std::unique_ptr<shf_batch, Release<shf_batch_unref>>;
using Archive = std::unique_ptr<shf_archive, Release<shf_archive_close>>;
using Members = std::unique_ptr<shf_members, Release<shf_members_close>>;
using Writer = std::unique_ptr<shf_writer, Release<shf_writer_close>>;
using Dataset = std::unique_ptr<shf_dataset, Release<shf_dataset_close>>;

// An error of the library: the end of a case.
struct Failure {
    shf_error error;
};

void check(int32_t result, const shf_error& error) {
    if (result != SHF_OK) throw Failure{error};
}

std::string_view text(shf_bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

// ---- Cases -------------------------------------------------------------------------------------

// Takes `part` away wherever it is.
std::string without(std::string_view whole, std::string_view part) {
    std::string rest;
    for (size_t start = 0;;) {
        const size_t found = whole.find(part, start);
        rest += whole.substr(start, found - start);
        if (found == whole.npos) return rest;
        start = found + part.size();
    }
}

// A case, and what came of it.
class Run {
  public:
    Run(const json& one, std::string folder) : case_(one), folder_(std::move(folder)) {
        urls_ = Urls(case_, *this);
        XXH64_reset(&hash_, 0);
    }

    // What "expect" has to be. `blocks`: a stream is taken in blocks, and not one by one.
    json result(bool blocks) {
        json expect;
        try {
            run(blocks);
        } catch (const Failure& failure) {
            const shf_error& error = failure.error;
            expect["error"] = {{"class", shf_error_name(error.code)},
                               {"message", shown(error.message)}};
            if (error.offset != UINT64_MAX) expect["error"]["offset"] = error.offset;
        }
        std::array<char, 17> digest{};
        std::snprintf(digest.data(), digest.size(), "%016llx",
                      static_cast<unsigned long long>(XXH64_digest(&hash_)));
        expect["digest"] = digest.data();
        expect["count"] = count_;
        if (!stats_.is_null()) expect["stats"] = stats_;
        return expect;
    }

  private:
    void run(bool blocks) {
        const std::string kind = case_.at("kind");
        if (kind == "stream") return stream(blocks);
        if (kind == "resume") return resume(false);
        if (kind == "batches") return drain_batches(open_stream({}));
        if (kind == "resume_batches") return resume(true);
        if (kind == "merge") return merge();
        if (kind == "archive") return archive();
        if (kind == "members") return members();
        if (kind == "dataset") return dataset();
        if (kind == "expand") return expand();
        if (kind == "mix") return mix();
        if (kind == "plan") return plan();
        if (kind == "simulate") return simulate();
        if (kind == "write") return write();
        throw std::runtime_error("unknown kind " + kind);
    }

    // The URLs of a case, or of a part of a mix, as the library takes them.
    struct Urls {
        Urls() = default;
        Urls(const json& of, const Run& run) {
            for (const std::string url : of.at("urls")) texts.push_back(run.in_folder(url, true));
            for (const std::string& text : texts) pointers.push_back(text.c_str());
        }
        std::vector<std::string> texts;
        std::vector<const char*> pointers;
    };

    std::string in_folder(const std::string& text, bool url) const {
        const std::string_view name = "$FOLDER";
        if (text.starts_with("$OUT/")) return out_ + text.substr(4);
        std::string whole = text;
        if (url && text.find(name) == text.npos)
            return text.find("://") == text.npos ? folder_ + "/" + text : text;
        for (size_t found = 0; (found = whole.find(name, found)) != whole.npos;)
            whole.replace(found, name.size(), folder_);
        return whole;
    }

    using More = std::vector<std::pair<std::string, std::string>>;
    Options options(const json& of, const More& more = {}) const {
        Options options(shf_options_new());
        shf_error error;
        for (const auto& [name, value] : of.at("options").items())
            check(shf_options_set(options.get(), name.c_str(),
                                  in_folder(value.get<std::string>(), false).c_str(), &error),
                  error);
        for (const auto& [name, value] : more)
            check(shf_options_set(options.get(), name.c_str(), value.c_str(), &error), error);
        return options;
    }

    // ---- Hashing ----

    void u64(uint64_t number) {
        std::array<uint8_t, 8> bytes{};
        for (uint8_t& byte : bytes) {
            byte = static_cast<uint8_t>(number & 0xFF);
            number >>= 8;
        }
        XXH64_update(&hash_, bytes.data(), bytes.size());
    }

    void str(std::string_view bytes) {
        u64(bytes.size());
        if (!bytes.empty()) XXH64_update(&hash_, bytes.data(), bytes.size());
    }

    void url(std::string_view bytes) { str(shown(bytes)); }
    // Without the folders of this run.
    std::string shown(std::string_view text) const {
        const std::string rest = without(text, folder_ + "/");
        return out_.empty() ? rest : without(rest, out_ + "/");
    }

    void sample(const shf_sample* sample) {
        shf_bytes name, data;
        shf_sample_key(sample, &name);
        str(text(name));
        shf_sample_url(sample, &name);
        url(text(name));
        u64(shf_sample_field_count(sample));
        for (size_t i = 0; shf_sample_field(sample, i, &name, &data) == SHF_OK; ++i) {
            str(text(name));
            str(text(data));
        }
    }

    void batch(const shf_batch* batch) {
        const size_t rows = shf_batch_row_count(batch);
        u64(rows);
        u64(shf_batch_column_count(batch));
        shf_bytes name;
        shf_array array;
        for (size_t i = 0; shf_batch_column(batch, i, &name, &array) == SHF_OK; ++i) {
            str(text(name));
            const auto* data = static_cast<const char*>(array.data);
            if (text(name) == "__url__") {
                for (size_t row = 0; row < rows; ++row)
                    url({data + array.offsets[row],
                         static_cast<size_t>(array.offsets[row + 1] - array.offsets[row])});
            } else {
                column(array, rows);
            }
        }
    }

    void column(const shf_array& array, size_t rows) {
        u64(static_cast<uint64_t>(array.kind));
        u64(static_cast<uint64_t>(array.dtype));
        u64(static_cast<uint64_t>(array.row_ndim));
        u64(static_cast<uint64_t>(array.ndim));
        for (int32_t i = 0; i < array.ndim; ++i) u64(static_cast<uint64_t>(array.shape[i]));
        str({static_cast<const char*>(array.data), array.size});
        numbers(array.offsets, rows + 1);
        numbers(array.shapes, rows * static_cast<size_t>(array.row_ndim));
    }

    void numbers(const int64_t* numbers, size_t count) {
        u64(numbers == nullptr ? 0 : count);
        for (size_t i = 0; numbers != nullptr && i < count; ++i)
            u64(static_cast<uint64_t>(numbers[i]));
    }

    // ---- Streams ----

    Stream open_stream(const More& more) const { return open_stream(case_, urls_, more); }

    Stream open_stream(const json& of, const Urls& urls, const More& more) const {
        const Options set = options(of, more);
        shf_stream* stream = nullptr;
        shf_error error;
        check(
            shf_stream_open(&stream, urls.pointers.data(), urls.pointers.size(), set.get(), &error),
            error);
        return Stream(stream);
    }

    // Each hashes and counts what comes next; false at the end.
    bool next_sample(const Stream& stream) {
        shf_sample* taken = nullptr;
        shf_error error;
        const int32_t result = shf_stream_next(stream.get(), &taken, &error);
        if (result == SHF_END) return false;
        check(result, error);
        sample(Sample(taken).get());
        ++count_;
        return true;
    }

    bool next_block(const Stream& stream) {
        shf_block* taken = nullptr;
        shf_error error;
        const int32_t result = shf_stream_next_block(stream.get(), 0, &taken, &error);
        if (result == SHF_END) return false;
        check(result, error);
        const Block block(taken);
        for (size_t i = 0; i < shf_block_sample_count(taken); ++i)
            sample(shf_block_sample(taken, i));
        count_ += shf_block_sample_count(taken);
        return true;
    }

    bool next_batch(const Stream& stream) {
        shf_batch* taken = nullptr;
        shf_error error;
        const int32_t result = shf_stream_next_batch(stream.get(), &taken, &error);
        if (result == SHF_END) return false;
        check(result, error);
        batch(Batch(taken).get());
        ++count_;
        return true;
    }

    void drain(const Stream& stream) {
        while (next_sample(stream)) {
        }
    }

    void drain_batches(const Stream& stream) {
        while (next_batch(stream)) {
        }
    }

    void stream(bool blocks) {
        const Stream stream = open_stream({});
        try {
            if (!blocks) drain(stream);
            while (blocks && next_block(stream)) {
            }
        } catch (const Failure&) {
            count_stats(stream);
            throw;
        }
        count_stats(stream);
    }

    void count_stats(const Stream& stream) {
        const json expect = case_.value("expect", json::object());
        if (!expect.contains("stats")) return;
        for (const auto& [name, value] : expect["stats"].items()) {
            for (int32_t number = 0; number < 256; ++number) {
                const char* known = shf_stat_describe(number, SHF_COUNTER_NAME);
                if (known == nullptr || name != known) continue;
                stats_[name] = shf_stream_stat(stream.get(), number);
            }
        }
    }

    static std::string save(const Stream& stream) {
        shf_state* saved = nullptr;
        shf_error error;
        check(shf_stream_save(stream.get(), 0, &saved, &error), error);
        return bytes_of(State(saved));
    }

    static std::string bytes_of(const State& state) {
        shf_bytes bytes;
        shf_state_bytes(state.get(), &bytes);
        return std::string(text(bytes));
    }

    static void restore(const Stream& stream, const std::string& blob) {
        shf_error error;
        check(shf_stream_restore(stream.get(), reinterpret_cast<const uint8_t*>(blob.data()),
                                 blob.size(), &error),
              error);
    }

    void take(const Stream& stream, bool batches) {
        for (uint64_t i = 0; i < case_.at("stop").get<uint64_t>(); ++i)
            if (!(batches ? next_batch(stream) : next_sample(stream)))
                throw std::runtime_error("the end came before the place to stop");
    }

    void resume(bool batches) {
        std::string blob;
        {
            const Stream stream = open_stream({});
            take(stream, batches);
            blob = save(stream);
        }
        const Stream stream = open_stream({});
        restore(stream, blob);
        batches ? drain_batches(stream) : drain(stream);
    }

    void merge() {
        const std::array<uint64_t, 2> consumers = case_.at("consumers");
        std::vector<Stream> streams;
        std::vector<std::string> blobs;
        for (uint64_t rank = 0; rank < consumers[0]; ++rank) {
            const Stream stream = open_stream(of_rank(rank, consumers[0]));
            take(stream, false);
            blobs.push_back(save(stream));
        }
        std::vector<shf_bytes> states;
        for (const std::string& blob : blobs)
            states.push_back({reinterpret_cast<const uint8_t*>(blob.data()), blob.size()});
        shf_state* merged = nullptr;
        shf_error error;
        check(shf_state_merge(states.data(), states.size(), &merged, &error), error);
        const std::string blob = bytes_of(State(merged));
        for (uint64_t rank = 0; rank < consumers[1]; ++rank) {
            const Stream stream = open_stream(of_rank(rank, consumers[1]));
            restore(stream, blob);
            drain(stream);
        }
    }

    Stream open_mix() const {
        std::vector<Stream> parts;
        std::vector<shf_stream*> pointers;
        for (const json& part : case_.at("parts")) {
            parts.push_back(open_stream(part, Urls(part, *this), {}));
            pointers.push_back(parts.back().get());
        }
        const auto weights = case_.value("weights", std::vector<double>{});
        const Options set = options(case_);
        shf_stream* mixed = nullptr;
        shf_error error;
        check(shf_stream_mix(&mixed, pointers.data(), weights.empty() ? nullptr : weights.data(),
                             pointers.size(), set.get(), &error),
              error);
        for (Stream& part : parts) static_cast<void>(part.release());  // the mix has them now
        return Stream(mixed);
    }

    void mix() {
        if (!case_.contains("stop")) return drain(open_mix());
        std::string blob;
        {
            const Stream stream = open_mix();
            take(stream, false);
            blob = save(stream);
        }
        const Stream stream = open_mix();
        restore(stream, blob);
        drain(stream);
    }

    void plan() {
        const Options set = options(case_);
        shf_plan* made = nullptr;
        shf_error error;
        check(shf_plan_make(&made, urls_.pointers.data(), urls_.pointers.size(), set.get(), &error),
              error);
        const Plan plan(made);
        shf_bytes line;
        shf_plan_text(made, &line);
        url(text(line));
        std::vector<std::string> warnings;
        while (shf_plan_warning(made, warnings.size(), &line) == SHF_OK)
            warnings.emplace_back(text(line));
        u64(warnings.size());
        for (const std::string& warning : warnings) url(warning);
        count_ = shf_plan_consumer_count(made);
        for (uint64_t consumer = 0; consumer < count_; ++consumer) share(made, consumer);
    }

    void simulate() {
        const Options set = options(case_);
        const std::vector<uint64_t> samples = case_.at("shards");
        const auto bytes = case_.value("bytes", std::vector<uint64_t>{});
        shf_plan* made = nullptr;
        shf_error error;
        check(shf_plan_simulate(&made, samples.data(), bytes.empty() ? nullptr : bytes.data(),
                                samples.size(), set.get(), &error),
              error);
        const Plan plan(made);
        count_ = shf_plan_consumer_count(made);
        for (uint64_t consumer = 0; consumer < count_; ++consumer) {
            share(made, consumer);
            size_t count = 0;
            check(shf_plan_reads(made, consumer, nullptr, 0, &count, &error), error);
            std::vector<uint64_t> reads(count * 4);
            check(shf_plan_reads(made, consumer, reads.data(), count, &count, &error), error);
            u64(count);
            for (const uint64_t number : reads) u64(number);
        }
    }

    void share(const shf_plan* plan, uint64_t consumer) {
        for (int32_t what = SHF_PLAN_RANK; what <= SHF_PLAN_BYTES; ++what)
            u64(shf_plan_info(plan, consumer, what));
    }

    static More of_rank(uint64_t rank, uint64_t world_size) {
        return {{"world_size", std::to_string(world_size)}, {"rank", std::to_string(rank)}};
    }

    // ---- Random access ----

    std::vector<std::string> names_to_find() const {
        return case_.value("find", std::vector<std::string>{});
    }

    void archive() {
        const Options set = options(case_);
        shf_archive* opened = nullptr;
        shf_error error;
        check(shf_archive_open(&opened, urls_.texts.at(0).c_str(), set.get(), &error), error);
        const Archive archive(opened);
        for (uint64_t i = 0; i < shf_archive_member_count(opened); ++i) {
            std::string data(shf_archive_info(opened, i, SHF_MEMBER_SIZE), '\0');
            check(shf_archive_read(opened, i, data.data(), data.size(), &error), error);
            shf_bytes name;
            shf_archive_name(opened, i, &name);
            str(text(name));
            str(data);
            ++count_;
        }
        for (const std::string& name : names_to_find()) {
            uint64_t position = 0;
            check(shf_archive_find(opened, name.data(), name.size(), &position, &error), error);
            u64(position);
        }
    }

    // A member counts when all of it was read; of what cannot be read nothing is hashed.
    void members() {
        const Options set = options(case_);
        shf_members* opened = nullptr;
        shf_error error;
        check(shf_members_open(&opened, urls_.texts.at(0).c_str(), set.get(), &error), error);
        const Members members(opened);
        shf_bytes name;
        int32_t result = SHF_OK;
        while ((result = shf_members_next(opened, &name, &error)) == SHF_OK) {
            std::string data;
            std::array<char, 1000> piece;
            size_t size = 0;
            do {
                check(shf_members_read(opened, piece.data(), piece.size(), &size, &error), error);
                data.append(piece.data(), size);
            } while (size > 0);
            str(text(name));
            for (const int32_t what : {SHF_MEMBER_KIND, SHF_MEMBER_MODE, SHF_MEMBER_UID,
                                       SHF_MEMBER_GID, SHF_MEMBER_MTIME})
                u64(shf_members_info(opened, what));
            for (const int32_t what : {SHF_MEMBER_LINK, SHF_MEMBER_USER, SHF_MEMBER_GROUP}) {
                shf_bytes said;
                (void)shf_members_text(opened, what, &said);  // empty when there is none
                str(text(said));
            }
            str(data);
            ++count_;
        }
        if (result != SHF_END) throw Failure{error};
    }

    // ---- Writing ----

    static std::string from_hex(const std::string& digits) {
        std::string bytes;
        for (size_t i = 0; i < digits.size(); i += 2)
            bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
        return bytes;
    }

    static int32_t name_shard(void* ctx, uint64_t number, shf_bytes* out) {
        auto& self = *static_cast<Run*>(ctx);
        self.name_ = self.out_ + "/" + self.case_.at("names").at(number).get<std::string>();
        *out = {reinterpret_cast<const uint8_t*>(self.name_.data()), self.name_.size()};
        return 0;
    }

    void write_sample(shf_writer* writer, const json& sample) {
        shf_error error;
        std::vector<std::string> parts;
        for (const std::string digits : sample) parts.push_back(from_hex(digits));
        int32_t code = shf_writer_begin(writer, parts[0].data(), parts[0].size(), &error);
        for (size_t i = 1; i < parts.size() && code == SHF_OK; i += 2)
            code = shf_writer_field(writer, parts[i].data(), parts[i].size(), parts[i + 1].data(),
                                    parts[i + 1].size(), &error);
        if (code == SHF_OK) code = shf_writer_end(writer, &error);
        if (code != SHF_OK) str(shf_error_name(code));
    }

    void write() {
        namespace fs = std::filesystem;
        std::string folder = (fs::temp_directory_path() / "shardfeed-XXXXXX").string();
        if (!::mkdtemp(folder.data())) throw std::runtime_error("no temporary folder");
        out_ = folder;
        const std::shared_ptr<void> removed(nullptr, [&](void*) { fs::remove_all(folder); });
        const Options set = options(case_);
        std::string pattern;
        if (case_.contains("names"))
            shf_options_set_shard_name(set.get(), name_shard, this);
        else
            pattern = out_ + "/" + case_.at("pattern").get<std::string>();
        shf_error error;
        shf_writer* opened = nullptr;
        check(shf_writer_open(&opened, pattern.empty() ? nullptr : pattern.c_str(), set.get(),
                              &error),
              error);
        const Writer writer(opened);
        for (const json& sample : case_.at("samples")) write_sample(opened, sample);
        check(shf_writer_finish(opened, &error), error);
        std::vector<std::string> urls;
        for (uint64_t i = 0; i < shf_writer_shards(opened); ++i) {
            shf_bytes name;
            check(shf_writer_shard_text(opened, i, SHF_SHARD_URL, &name), error);
            urls.push_back(std::string(text(name)));
            url(urls.back());
            u64(shf_writer_shard_info(opened, i, SHF_SHARD_SAMPLES));
        }
        std::set<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder))
            names.insert(entry.path().filename());
        for (const std::string& name : names) {
            str(name);
            if (!name.ends_with(".tar") && !name.ends_with(".idx")) continue;
            std::ifstream file(folder + "/" + name, std::ios::binary);
            str(std::string(std::istreambuf_iterator<char>(file), {}));
        }
        std::vector<const char*> pointers;
        for (const std::string& url : urls) pointers.push_back(url.c_str());
        shf_stream* stream = nullptr;
        check(shf_stream_open(&stream, pointers.data(), pointers.size(), nullptr, &error), error);
        drain(Stream(stream));
    }

    void dataset() {
        const Options set = options(case_);
        shf_dataset* opened = nullptr;
        shf_error error;
        check(shf_dataset_open(&opened, urls_.pointers.data(), urls_.pointers.size(), set.get(),
                               &error),
              error);
        const Dataset dataset(opened);
        count_ = shf_dataset_sample_count(opened);
        for (const uint64_t number : case_.value("positions", std::vector<uint64_t>{})) {
            shf_sample* taken = nullptr;
            check(shf_dataset_get(opened, number, &taken, &error), error);
            sample(Sample(taken).get());
        }
        for (const std::string& key : names_to_find()) {
            uint64_t number = 0;
            check(shf_dataset_find(opened, key.data(), key.size(), &number, &error), error);
            u64(number);
        }
    }

    void expand() {
        const Options set = options(case_);
        const auto each = [](void* ctx, const char* expanded, size_t size) -> int32_t {
            Run& run = *static_cast<Run*>(ctx);
            run.url({expanded, size});
            ++run.count_;
            return 0;
        };
        shf_error error;
        check(shf_expand_urls(urls_.pointers.data(), urls_.pointers.size(), set.get(), each, this,
                              &error),
              error);
    }

    const json& case_;
    std::string folder_;
    std::string out_;   // where a case writes; empty: nowhere
    std::string name_;  // of the last shard
    Urls urls_;
    XXH64_state_t hash_{};
    uint64_t count_ = 0;
    json stats_;
};

// ---- The program -------------------------------------------------------------------------------

std::string short_text(const json& expect) {
    return expect.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Whether a case passes; the first difference is printed.
bool passes(const json& one, const std::string& folder) {
    const std::string name = one.at("name");
    for (const bool blocks : {false, true}) {
        if (blocks && one.at("kind") != "stream") continue;
        json found;
        try {
            found = Run(one, folder).result(blocks);
        } catch (const std::exception& error) {
            std::printf("%s: %s\n", name.c_str(), error.what());
            return false;
        }
        if (found == one.at("expect")) continue;
        std::printf("%s%s: %s expected, not %s\n", name.c_str(), blocks ? " (in blocks)" : "",
                    short_text(one.at("expect")).c_str(), short_text(found).c_str());
        return false;
    }
    return true;
}

json read_cases(const char* path) {
    std::ifstream file(path);
    json whole = json::parse(file);
    if (whole.at("version") != 1) throw std::runtime_error("cases of another version");
    return whole.at("cases");
}

void make_archives(const std::string& script, const std::string& folder) {
    const std::string command = "python3 '" + script + "' '" + folder + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("no archives: " + command);
}

int run(const std::vector<std::string>& arguments, bool print) {
    std::string folder = arguments.at(0);
    std::unique_ptr<char, decltype(&std::free)> absolute(realpath(folder.c_str(), nullptr),
                                                         &std::free);
    if (absolute) folder = absolute.get();
    const json cases = read_cases(arguments.at(1).c_str());
    const std::set<std::string> wanted(arguments.begin() + 2, arguments.end());
    size_t passed = 0, failed = 0;
    json found = json::object();
    for (const json& one : cases) {
        const std::string name = one.at("name");
        if (!wanted.empty() && !wanted.contains(name)) continue;
        if (print)
            found[name] = Run(one, folder).result(false);
        else
            ++(passes(one, folder) ? passed : failed);
    }
    if (print) {
        std::printf("%s\n", short_text(found).c_str());
        return 0;
    }
    std::printf(failed == 0 ? "%zu cases passed\n" : "%zu cases passed, %zu failed\n", passed,
                failed);
    return failed != 0 || passed == 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::string flag = arguments.empty() ? "" : arguments[0];
    const bool make = flag == "--make" && arguments.size() > 1;
    const std::string script = make ? arguments[1] : "";
    if (make || flag == "--print") arguments.erase(arguments.begin(), arguments.begin() + 1 + make);
    if (arguments.size() < 2) {
        std::fprintf(stderr,
                     "usage: run_conformance [--make MAKE_ARCHIVES.PY | --print] FOLDER "
                     "CASES.JSON [NAME...]\n");
        return 2;
    }
    try {
        if (make) make_archives(script, arguments[0]);
        return run(arguments, flag == "--print");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "run_conformance: %s\n", error.what());
        return 1;
    }
}
