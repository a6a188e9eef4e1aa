#include "write/writer.h"

#include "core/opening.h"
#include "io/sink.h"
#include "io/sources.h"
#include "sample/name.h"
#include "url/redact.h"
#include "url/scheme.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>
#include <utility>

namespace shf {

namespace {

// A file up to this size is read when it is added: what is wrong with it then costs nothing. In a
// ZIP file also larger ones, since only what is in memory is compressed there.
constexpr uint64_t read_at_once = uint64_t{1} << 20, read_at_once_zip = uint64_t{64} << 20;
// Kinds of samples whose list of names is not made again.
constexpr size_t most_schemas = 8;
// A large sample is not a reason to keep its memory.
constexpr size_t kept_memory = size_t{16} << 20;

bool is_messages(std::string_view url, const Options& options) {
    const Scheme* const scheme = Sources::scheme_for(url, options);
    return scheme && scheme->is_messages;
}

bool is_stream(std::string_view url, const Options& options) {
    const std::string scheme = scheme_of(url);
    return scheme == "-" || scheme == "pipe" || is_messages(url, options);
}

bool is_slow(std::string_view url) {
    const std::string scheme = scheme_of(url);
    return !scheme.empty() && scheme != "file";
}

// A writer has no time limit: what a timeout leaves half-written cannot be called again.
Options without_timeout(Options options) {
    options.timeout = 0;
    return options;
}

// The same name from any working directory.
std::string absolute(const std::string& url, const std::string& folder) {
    return is_local_path(url) && !url.starts_with('/') ? folder + "/" + url : url;
}

bool is_zip(const std::string& name, const Options& options) {
    return options.format == ShardKind::zip ||
           (options.format == ShardKind::automatic && !is_stream(name, options) &&
            name.ends_with(".zip"));
}

Compression compression_for(const std::string& name, const Options& options, bool zip) {
    Compression chosen = options.compression;
    if (chosen == Compression::automatic)
        chosen = zip || is_stream(name, options) ? Compression::none : compression_of(name);
    if (is_messages(name, options) && (zip || chosen != Compression::none))
        throw Error(SHF_E_USAGE,
                    "samples are sent as messages, and not as a file that has a format",
                    "remove the options format and compression");
    if (zip && chosen != Compression::none)
        throw Error(SHF_E_USAGE, "a ZIP file is not compressed as a whole",
                    "zip_method=deflate compresses its members");
    if (chosen != Compression::none) (void)make_encoder(chosen, options.level);
    return chosen;
}

}  // namespace

struct Writer::Shard {
    std::string url, target;
    std::string wids_url;  // empty: there is no index of wids
    ShardOutput output;
    std::unique_ptr<Container> container;
    std::optional<IndexRows> rows;
    std::optional<TarFiles> files;  // for indexes of other tools
    KeySet keys;
    std::unordered_set<uint64_t> dropped;  // hashes of keys whose samples failed
    std::string last_key;
    uint64_t samples = 0, payload = 0;
};

Writer::Writer(const char* pattern, const Options& options)
    : options_(without_timeout(options)),
      folder_(std::filesystem::current_path().string()),
      names_(pattern, options_),
      zip_(is_zip(names_.first(), options)),
      compression_(compression_for(names_.first(), options, zip_)),
      messages_(is_messages(names_.first(), options_)),
      stream_(is_stream(names_.first(), options_)),
      slow_(is_slow(names_.first())),
      owner_(::getpid()),
      member_names_(options_),
      foreign_(options_, folder_),
      publisher_(options_, cancel_) {
    if (!names_.many() && (options_.max_samples != 0 || options_.max_bytes != 0))
        throw Error(SHF_E_USAGE, "the pattern has no number, but shards are to be cut",
                    "put a number into it, as in train-%06d.tar");
    if (options_.write_index && options_.unsafe_names == Leniency::allow)
        throw Error(
            SHF_E_USAGE, "write_index: an index has keys as readers find them",
            "do not set unsafe_names=allow, or open the shards as a dataset, which makes it");
    if (options_.write_index && stream_)
        throw Error(SHF_E_USAGE, "write_index: what is written to a pipe has no index",
                    "write files, or none");
    foreign_.check(names_.first(), zip_, compression_ != Compression::none || stream_);
    if (options_.prepare) check_prepare();
}

void Writer::check_prepare() const {
    if (stream_)
        throw Error(SHF_E_USAGE, "prepare: what is written to a pipe cannot wait to appear",
                    "write to a path or to a store");
    if (!options_.index_for.empty() || !options_.wids_index.empty() || !options_.index_dir.empty())
        throw Error(
            SHF_E_USAGE,
            "prepare: the index of a shard that has not appeared waits beside it, and those "
            "of other tools are not made",
            "leave out index_for, wids_index and index_dir");
}

Writer::~Writer() {
    // Who closes a writer does not wait for a command or a server. In a forked child the shards are
    // the parent's.
    if (slow_ && ::getpid() == owner_) cancel_.request();
}

// An error that is not one of the sample repeats.
template <typename Work>
void Writer::work(Work body) {
    if (failure_) throw Error(*failure_);
    if (finished_) throw Error(SHF_E_USAGE, "the writer is finished", "open another one");
    try {
        cancel_.check();
        body();
    } catch (...) {
        failure_ = describe_exception();
        if (failure_->shard.empty() && shard_) failure_->shard = redact(shard_->url);
        throw Error(*failure_);
    }
}

void Writer::drop() {
    in_sample_ = false;
    fields_.clear();
    copied_.clear();
    if (copied_.capacity() > kept_memory) copied_.shrink_to_fit();
}

void Writer::require_sample() const {
    if (failure_) throw Error(*failure_);
    cancel_.check();
    if (!in_sample_)
        throw Error(SHF_E_USAGE, "no sample has been begun",
                    "begin one, or begin it again after "
                    "an error");
}

void Writer::begin(std::string_view key) {
    if (failure_) throw Error(*failure_);
    if (finished_) throw Error(SHF_E_USAGE, "the writer is finished", "open another one");
    drop();
    cancel_.check();
    member_names_.begin(key);
    key_ = key;
    in_sample_ = true;
}

void Writer::field(std::string_view name, std::span<const uint8_t> data) {
    require_sample();
    try {
        fields_.push_back({.name = member_names_.name(name),
                           .suffix = static_cast<uint32_t>(key_.size() + 1),
                           .data = {},
                           .copied = true,
                           .start = copied_.size(),
                           .size = data.size(),
                           .file = {}});
        copied_.insert(copied_.end(), data.begin(), data.end());
    } catch (...) {
        drop();
        throw;
    }
}

void Writer::field_borrowed(std::string_view name, std::span<const uint8_t> data) {
    require_sample();
    try {
        fields_.push_back(borrowed_field(name, data));
    } catch (...) {
        drop();
        throw;
    }
}

Writer::Field Writer::borrowed_field(std::string_view name, std::span<const uint8_t> data) {
    return {.name = member_names_.name(name),
            .suffix = static_cast<uint32_t>(key_.size() + 1),
            .data = data,
            .size = data.size(),
            .file = {}};
}

void Writer::field_file(std::string_view name, const std::string& path) {
    require_sample();
    try {
        std::string member = member_names_.name(name);
        FieldFile file = open_field(path);
        const size_t start = copied_.size();
        if (file.size <= (zip_ ? read_at_once_zip : read_at_once)) {
            read_field(file, copied_);
            file.file.reset();
        }
        fields_.push_back({.name = std::move(member),
                           .suffix = static_cast<uint32_t>(key_.size() + 1),
                           .data = {},
                           .copied = true,
                           .start = start,
                           .size = copied_.size() - start,
                           .file = std::move(file)});
    } catch (...) {
        drop();
        throw;
    }
}

void Writer::field_url(std::string_view name, const std::string& url) {
    require_sample();
    try {
        std::string member = member_names_.name(name);
        const size_t start = copied_.size();
        try {
            const Sources sources(options_, cancel_);
            const std::unique_ptr<Source> source = sources.open(url);
            read_source(*source, options_, copied_);
        } catch (const Error& error) {
            Fault fault = error.fault();
            fault.cause = redact(url) + ": " + fault.cause;
            throw Error(std::move(fault));
        }
        fields_.push_back({.name = std::move(member),
                           .suffix = static_cast<uint32_t>(key_.size() + 1),
                           .data = {},
                           .copied = true,
                           .start = start,
                           .size = copied_.size() - start,
                           .file = {}});
    } catch (...) {
        drop();
        throw;
    }
}

void Writer::end() {
    require_sample();
    for (Field& field : fields_)
        if (field.copied) field.data = std::span(copied_).subspan(field.start, field.size);
    try {
        write_sample();
    } catch (...) {
        drop();
        throw;
    }
    drop();
}

void Writer::write(std::string_view key, std::span<const FieldView> fields) {
    begin(key);
    try {
        for (const FieldView& field : fields)
            fields_.push_back(borrowed_field(field.name, {field.data, field.size}));
        write_sample();
    } catch (...) {
        drop();
        throw;
    }
    drop();
}

NewMember Writer::member_of(const Field& field) {
    return {.name = field.name,
            .data = field.data,
            .file = field.file.file.get() >= 0 ? &field.file : nullptr,
            .key_size = field.suffix - 1};
}

// Whether the sample does not fit into the shard any more.
bool Writer::is_full() const {
    const Shard& shard = *shard_;
    if (shard.samples == 0) return false;
    if (options_.max_samples != 0 && shard.samples >= options_.max_samples) return true;
    if (options_.max_bytes == 0) return false;
    uint64_t position = shard.output.position();
    for (const Field& field : fields_)
        if (__builtin_add_overflow(position, shard.container->room(member_of(field)), &position))
            return true;
    return position > options_.max_bytes ||
           shard.container->end_room(position) > options_.max_bytes - position;
}

void Writer::write_sample() {
    if (fields_.empty())
        throw Error(SHF_E_USAGE,
                    "sample " + escape(key_) + " has no fields: a shard cannot hold it",
                    "add a field, if only an empty one");
    for (const Field& field : fields_) foreign_.check_member(field.name);
    if (shard_ && is_full()) next_shard();
    if (!shard_) {
        if (!failure_) names_.prepare();
        work([&] { open_shard(); });
    }
    Shard& shard = *shard_;
    const uint64_t hash = new_key();
    try {
        add_members();
    } catch (...) {
        shard.dropped.insert(hash);
        throw;
    }
    shard.last_key = key_;
    ++shard.samples;
}

// Refuses a key that the shard has, and returns its hash.
uint64_t Writer::new_key() {
    Shard& shard = *shard_;
    if (shard.samples > 0 && shard.last_key == key_)
        throw Error(SHF_E_USAGE, "key " + escape(key_) + " is that of the sample before",
                    "give every sample a key of its own: readers would make one sample of two");
    if (options_.duplicate_keys == DuplicateKeys::accept) return 0;
    uint64_t hash = 0;
    bool fresh = false;
    work([&] {
        hash = shard.keys.prepare(key_, shard.last_key < key_);
        fresh = shard.keys.insert(hash);
    });
    // The set has the keys of samples that failed too, which may come again once.
    const bool was_dropped = shard.dropped.erase(hash) != 0;
    if (!fresh && !was_dropped)
        throw Error(SHF_E_USAGE, "key " + escape(key_) + " is in the shard already",
                    "give every sample a key of its own, or set duplicate_keys=accept");
    return hash;
}

// One writer makes one kind of shard. Of a pattern all names are alike.
void Writer::check_name(const std::string& name) const {
    if (is_stream(name, options_) != stream_ || is_messages(name, options_) != messages_ ||
        is_slow(name) != slow_ || is_zip(name, options_) != zip_ ||
        compression_for(name, options_, zip_) != compression_)
        throw Error(SHF_E_USAGE,
                    "its name says another format or target than that of the first shard",
                    "use a writer for each, or set format and compression");
    foreign_.check(name, zip_, compression_ != Compression::none || stream_);
}

void Writer::open_shard() {
    std::string url = names_.take(folder_);
    try {
        check_name(url);
        const std::string target = absolute(url, folder_);
        std::string wids_url = foreign_.prepare(target);
        auto sink = open_sink(target, {options_, cancel_, use_});
        shard_.reset(new Shard{
            .url = url,
            .target = target,
            .wids_url = std::move(wids_url),
            .output =
                ShardOutput(std::move(sink), compression_, options_.level,
                            options_.compress_threads, cancel_, options_.write_index && !zip_),
            .container = messages_ ? message_container()
                         : zip_    ? zip_container(options_.zip_method)
                                   : tar_container(options_.tar_headers),
            .rows = {},
            .files = {},
            .keys = {},
            .dropped = {},
            .last_key = {},
        });
    } catch (...) {
        Fault fault = describe_exception();
        fault.shard = redact(url);
        throw Error(fault);
    }
    if (options_.write_index && !zip_) shard_->rows.emplace();
    if (options_.prepare && shard_->rows && slow_) shard_->output.keep_ends();
    if (foreign_.wanted() && !zip_) shard_->files.emplace();
}

// Files are read while the sample is written: when one of them fails, the shard becomes what it was
// before, where it can.
void Writer::add_members() {
    Shard& shard = *shard_;
    const bool reads = std::any_of(fields_.begin(), fields_.end(),
                                   [](const Field& f) { return f.file.file.get() >= 0; });
    const size_t members = shard.container->count();
    bool marked = false;
    if (reads && !messages_) work([&] { marked = shard.output.mark(); });
    std::vector<uint64_t> headers, starts;
    uint64_t payload = 0;
    for (const Field& field : fields_) {
        const NewMember member = member_of(field);
        payload += member.size();
        const auto add = [&] {
            headers.push_back(shard.output.position());
            starts.push_back(shard.container->add(member, shard.output));
        };
        if (!marked && !messages_) {
            work(add);
            continue;
        }
        try {
            add();
        } catch (const FieldFileError&) {
            if (marked) work([&] { shard.output.cut(); });
            shard.container->forget(members);
            throw;
        } catch (...) {
            work([] { throw; });
        }
    }
    work([&] { shard.container->end_sample(shard.output); });
    shard.payload += payload;
    if (shard.rows) work([&] { index_sample(headers[0], starts); });
    if (shard.files)
        work([&] {
            for (size_t i = 0; i < fields_.size(); ++i)
                shard.files->add(fields_[i].name, {.header = headers[i],
                                                   .data = starts[i],
                                                   .size = member_of(fields_[i]).size()});
        });
}

void Writer::index_sample(uint64_t header, std::span<const uint64_t> starts) {
    std::string names;
    std::vector<uint32_t> ends;
    std::vector<LooseField> places;
    for (size_t i = 0; i < fields_.size(); ++i) {
        append_lowered(names, std::string_view(fields_[i].name).substr(fields_[i].suffix));
        ends.push_back(static_cast<uint32_t>(names.size()));
        names += '/';
        places.push_back({nullptr, member_of(fields_[i]).size(), nullptr, starts[i]});
    }
    auto found = std::find_if(schemas_.begin(), schemas_.end(),
                              [&](const auto& schema) { return schema->names == names; });
    if (found == schemas_.end()) {
        if (schemas_.size() == most_schemas) schemas_.erase(schemas_.begin());
        schemas_.push_back(std::make_shared<const Schema>(Schema{names, ends}));
        found = schemas_.end() - 1;
    }
    shard_->rows->add({key_, header, *found, places});
}

void Writer::next_shard() {
    work([&] {
        if (!shard_) return;
        if (shard_->samples == 0) {  // its first sample failed
            shard_.reset();
            names_.put_back();
            return;
        }
        Shard& shard = *shard_;
        const uint64_t end = shard.output.position();
        shard.container->finish(shard.output);
        auto sink = shard.output.finish();
        if (shard.files) shard.files->end_at(end);
        ForeignIndexes indexes = foreign_.of_shard(shard.target, shard.files, shard.samples);
        WholeShard whole{.target = shard.target,
                         .sink = std::move(sink),
                         .rows = std::move(shard.rows),
                         .end = end,
                         .points = shard.output.take_points(),
                         .indexes = std::move(indexes),
                         .identity = shard.output.identity(),
                         .shard = {.url = shard.url,
                                   .digest = shard.output.digest(),
                                   .index = {},
                                   .samples = shard.samples,
                                   .bytes = shard.output.size(),
                                   .payload = shard.payload}};
        foreign_.note(shard.wids_url, whole.indexes.wids_samples, whole.shard.bytes);
        shard_.reset();
        publisher_.add(std::move(whole));
    });
}

void Writer::flush(bool durable) {
    work([&] {
        if (shard_) {
            shard_->output.flush();
            if (durable) shard_->output.sink().sync();
        }
        if (durable) publisher_.wait();
    });
}

void Writer::finish() {
    drop();
    // What was ended before the failure is whole: it is published all the same.
    if (failure_) {
        try {
            publisher_.wait();
        } catch (const Error&) {
            // The failure is what the writer has to say, and it was first.
        }
    }
    next_shard();
    work([&] {
        publisher_.wait();
        foreign_.publish(cancel_);
    });
    finished_ = true;
}

const std::vector<PublishedShard>& Writer::shards() {
    shards_.reserve(shards_.size() + 8);  // before they are taken, so that none is lost
    for (PublishedShard& shard : publisher_.take()) shards_.push_back(std::move(shard));
    return shards_;
}

}  // namespace shf
