// shf_writer_*.
#include "write/writer.h"

#include "api/handles.h"
#include "core/opening.h"
#include "io/source_context.h"
#include "url/in_shard.h"
#include "write/prepared_shard.h"

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

using shf::Error;
using shf::guard;

struct shf_writer : shf::Exclusive {
    std::unique_ptr<shf::Writer> writer;
};

namespace {

constexpr const char* writer_noun = "writer";

// Runs `body` with the writer, when nothing else has it.
template <typename Body>
int32_t call(shf_writer* writer, shf_error* error, Body body) {
    return guard(error, [&] {
        const shf::ExclusiveCall exclusive(writer, writer_noun);
        const shf::Opening waiting(writer->writer->options(), shf::Opens::nothing);
        body(*writer->writer);
        return SHF_OK;
    });
}

struct GivenField {
    const char* name;
    size_t name_size;
    const void* data;
    size_t size;
};

int32_t add_field(shf_writer* writer, const GivenField& field,
                  void (shf::Writer::*add)(std::string_view, std::span<const uint8_t>),
                  shf_error* error) {
    return call(writer, error, [&](shf::Writer& w) {
        if (!field.name || (!field.data && field.size > 0)) {
            w.drop();
            throw Error(SHF_E_USAGE, "shf_writer_field: name or data is NULL");
        }
        (w.*add)(shf::name_of(field.name, field.name_size),
                 {static_cast<const uint8_t*>(field.data), field.size});
    });
}

std::string_view text_of(const shf::PublishedShard& shard, int32_t what) {
    switch (what) {
        case SHF_SHARD_URL: return shard.url;
        case SHF_SHARD_DIGEST: return shard.digest;
        case SHF_SHARD_INDEX: return shard.index;
        case SHF_SHARD_TOKEN: return shard.token;
        default: return {};
    }
}

// What is published so far; nothing where there is no memory to say it.
std::span<const shf::PublishedShard> shards_of(shf_writer* writer) noexcept {
    if (!writer || writer->forked()) return {};
    try {
        return writer->writer->shards();
    } catch (...) {
        return {};
    }
}

// NULL when there is no such shard.
const shf::PublishedShard* shard_of(shf_writer* writer, uint64_t index) noexcept {
    const auto shards = shards_of(writer);
    return index < shards.size() ? &shards[index] : nullptr;
}

int32_t with_token(const char* function, const char* token, const shf_options* options,
                   shf_error* error,
                   void (*act)(const shf::PreparedShard&, const shf::SourceContext&)) {
    return guard(error, [&] {
        if (!token) throw Error(SHF_E_USAGE, std::string(function) + ": token is NULL");
        const shf::PreparedShard shard = shf::parse_token(token);
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        const shf::Cancel never;
        shf::SourceUse use;
        act(shard, {values, never, use});
        return SHF_OK;
    });
}

}  // namespace

extern "C" {

int32_t shf_writer_open(shf_writer** out, const char* pattern, const shf_options* options,
                        shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_writer_open: out is NULL");
        auto writer = std::make_unique<shf_writer>();
        writer->writer = std::make_unique<shf::Writer>(pattern, shf::values_of(options));
        *out = writer.release();
        return SHF_OK;
    });
}

int32_t shf_writer_begin(shf_writer* writer, const char* key, size_t size, shf_error* error) {
    return call(writer, error, [&](shf::Writer& w) {
        w.drop();
        if (!key) throw Error(SHF_E_USAGE, "shf_writer_begin: key is NULL");
        w.begin(shf::name_of(key, size));
    });
}

int32_t shf_writer_field(shf_writer* writer, const char* name, size_t name_size, const void* data,
                         size_t size, shf_error* error) {
    return add_field(writer, {name, name_size, data, size}, &shf::Writer::field, error);
}

int32_t shf_writer_field_borrowed(shf_writer* writer, const char* name, size_t name_size,
                                  const void* data, size_t size, shf_error* error) {
    return add_field(writer, {name, name_size, data, size}, &shf::Writer::field_borrowed, error);
}

int32_t shf_writer_field_file(shf_writer* writer, const char* name, size_t name_size,
                              const char* path, shf_error* error) {
    return call(writer, error, [&](shf::Writer& w) {
        if (!name || !path) {
            w.drop();
            throw Error(SHF_E_USAGE, "shf_writer_field_file: name or path is NULL");
        }
        w.field_file(shf::name_of(name, name_size), path);
    });
}

int32_t shf_writer_field_url(shf_writer* writer, const char* name, size_t name_size,
                             const char* url, shf_error* error) {
    return call(writer, error, [&](shf::Writer& w) {
        if (!name || !url) {
            w.drop();
            throw Error(SHF_E_USAGE, "shf_writer_field_url: name or url is NULL");
        }
        w.field_url(shf::name_of(name, name_size), url);
    });
}

int32_t shf_writer_end(shf_writer* writer, shf_error* error) {
    return call(writer, error, [](shf::Writer& w) { w.end(); });
}

int32_t shf_writer_write(shf_writer* writer, const shf_sample* sample, shf_error* error) {
    return call(writer, error, [&](shf::Writer& w) {
        if (!sample) throw Error(SHF_E_USAGE, "shf_writer_write: sample is NULL");
        const shf::Sample& from = *shf::sample_of(sample);
        const shf::Block& block = *from.block;
        std::vector<shf::FieldView> fields;
        for (uint64_t row = block.first_field[from.index]; row < block.first_field[from.index + 1];
             ++row)
            fields.push_back(block.field_of(from.index, row - block.first_field[from.index]));
        w.write(block.key_of(from.index), fields);
    });
}

int32_t shf_writer_next_shard(shf_writer* writer, shf_error* error) {
    return call(writer, error, [](shf::Writer& w) { w.next_shard(); });
}

int32_t shf_writer_flush(shf_writer* writer, int32_t durable, shf_error* error) {
    return call(writer, error, [&](shf::Writer& w) { w.flush(durable != 0); });
}

int32_t shf_writer_finish(shf_writer* writer, shf_error* error) {
    return call(writer, error, [](shf::Writer& w) { w.finish(); });
}

uint64_t shf_writer_shards(shf_writer* writer) {
    return shards_of(writer).size();
}

uint64_t shf_writer_shard_info(shf_writer* writer, uint64_t index, int32_t what) {
    if (const auto* shard = shard_of(writer, index)) {
        if (what == SHF_SHARD_SAMPLES) return shard->samples;
        if (what == SHF_SHARD_BYTES) return shard->bytes;
        if (what == SHF_SHARD_PAYLOAD) return shard->payload;
    }
    return std::numeric_limits<uint64_t>::max();
}

int32_t shf_writer_shard_text(shf_writer* writer, uint64_t index, int32_t what, shf_bytes* out) {
    if (out) *out = {nullptr, 0};
    if (!writer || !out) return SHF_E_USAGE;
    const auto* shard = shard_of(writer, index);
    const std::string_view text = shard ? text_of(*shard, what) : std::string_view();
    if (text.empty()) return SHF_E_NOT_FOUND;
    *out = shf::borrowed(text);
    return SHF_OK;
}

int32_t shf_publish_prepared(const char* token, const shf_options* options, shf_error* error) {
    return with_token("shf_publish_prepared", token, options, error, &shf::publish_shard);
}

int32_t shf_discard_prepared(const char* token, const shf_options* options, shf_error* error) {
    return with_token("shf_discard_prepared", token, options, error, &shf::discard_shard);
}

int32_t shf_discard_left(const char* pattern, const shf_options* options, shf_error* error) {
    return guard(error, [&] {
        if (!pattern) throw Error(SHF_E_USAGE, "shf_discard_left: pattern is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        const shf::Cancel never;
        shf::SourceUse use;
        shf::in_shard(pattern, [&] {
            for (const char* const end : {"", ".sfidx"})
                shf::discard_left(std::string(pattern) + end, {values, never, use});
        });
        return SHF_OK;
    });
}

void shf_writer_cancel(shf_writer* writer) {
    if (writer && !writer->forked()) writer->writer->cancel();
}

void shf_writer_close(shf_writer* writer) {
    if (!writer) return;
    // In a forked child files and threads are the parent's.
    if (writer->forked()) (void)writer->writer.release();
    delete writer;
}
}
