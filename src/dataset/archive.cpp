#include "dataset/archive.h"

#include "codec/filter.h"
#include "core/parallel.h"
#include "io/sources.h"
#include "sample/shard_format.h"
#include "url/in_shard.h"
#include "url/scheme.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shf {

Archive::Archive(const std::string& url, const Options& options)
    : options_(options), url_(from_home(url)) {
    in_shard(url_, [&] {
        source_ = Sources(options_, cancel_, source_use_).open(url_);
        if (!source_->seekable() || !source_->size()) {
            const auto input = source_->open_sequential(0);
            take_into_memory(*input, "raise memory, or copy it to a file");
            input->finish();
        }
        mapping_ = source_->mapping();
        list(mapping_ ? mapping_->bytes() : whole_.bytes());
    });
}

Archive::Archive(std::span<const uint8_t> file, const Options& options)
    : options_(options), url_("memory") {
    in_shard(url_, [&] {
        source_ = memory_source(file);
        list(file);
    });
}

// `memory` is the whole file where it is in memory.
void Archive::list(std::span<const uint8_t> memory) {
    const ShardFormat format = shard_format(*source_, url_, options_);
    if (format == ShardFormat::zip) {
        members_ = zip_members(*source_, memory, options_);
    } else if (format == ShardFormat::other) {
        members_ = libarchive_members(*source_, options_, cancel_);
        mapping_.reset();
    } else {
        if (format == ShardFormat::compressed_tar) {
            FilterReport report;
            const auto input = open_filter(source_->open_sequential(0), options_, report);
            take_into_memory(*input,
                             "raise memory, or decompress the file: members of a compressed tar "
                             "cannot be read in place, those of a plain tar or a ZIP can");
            input->finish();
            memory = whole_.bytes();
        }
        members_ = tar_members(*source_, memory, options_, cancel_);
    }
    names_.emplace(*members_, member_words);
}

// Reads all of `input`, which then is the archive.
void Archive::take_into_memory(Sequential& input, const char* help) {
    WholeFile whole;
    whole.take(input, options_.memory, help);
    whole_ = std::move(whole);
    source_ = memory_source(whole_.bytes());
    mapping_.reset();
}

size_t Archive::find(std::string_view name) const {
    return in_shard(url_, [&] { return names_->find(name); });
}

void Archive::check(size_t position) const {
    in_shard(url_, [&] { members_->check(position); });
}

void Archive::read(size_t position, std::span<uint8_t> out) const {
    in_shard(url_, [&] {
        const ScratchPool::Lease scratch(scratches_);
        members_->read(position, out, *scratch);
    });
}

std::span<const uint8_t> Archive::view(size_t position) const {
    return in_shard(url_, [&] {
        if (mapping_) expect(members_->info(position));
        return members_->view(position);
    });
}

// A member that will be looked at in the mapping, with its headers.
void Archive::expect(const MemberInfo& member) const {
    constexpr uint64_t headers = 64 * 1024;
    const uint64_t size = mapping_->bytes().size();
    const uint64_t from = std::min(member.offset, size);
    const uint64_t most = size - from;
    const uint64_t wanted = member.stored_size < most ? member.stored_size + headers : most;
    mapping_->expect({.offset = from, .size = std::min(wanted, most)}, false);
}

void Archive::read_many(std::span<const uint64_t> positions,
                        std::span<uint8_t* const> outputs) const {
    // In the order of the file: neighbours share pages, and disks seek less.
    std::vector<std::pair<uint64_t, size_t>> order;
    order.reserve(positions.size());
    uint64_t bytes = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
        const MemberInfo info = members_->info(static_cast<size_t>(positions[i]));
        order.emplace_back(info.offset, i);
        bytes += std::min<uint64_t>(info.size, uint64_t{1} << 40);
    }
    std::sort(order.begin(), order.end());
    const auto read_one = [&](size_t i) {
        const auto position = static_cast<size_t>(positions[order[i].second]);
        const auto size = static_cast<size_t>(members_->info(position).size);
        const ScratchPool::Lease scratch(scratches_);
        members_->read(position, {outputs[order[i].second], size}, *scratch);
    };
    // Where each read is a request to a server, they wait together.
    const uint64_t together = source_->read_cost().parallel;
    const bool far = together > 1;
    if (far) bytes = UINT64_MAX;
    in_shard(url_, [&] {
        run_jobs(order.size(), far ? 1 : usual_run, std::max(options_.threads, far ? together : 0),
                 bytes, read_one, [&order](size_t i) { return order[i].second; });
    });
}

}  // namespace shf
