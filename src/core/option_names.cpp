#include "core/option_names.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace shf {

namespace {

// None of these is an option. Those of torch and tf.data are methods and arguments alike.
constexpr NameElsewhere names[] = {
    // webdataset and its relatives
    {"shardshuffle", "shuffle_shards"},
    {"shard_shuffle", "shuffle_shards"},
    {"shuffle_shard", "shuffle_shards"},
    {"handler", "on_error"},
    {"warn_and_continue", "on_error"},
    {"ignore_and_continue", "on_error"},
    {"nodesplitter", "world_size"},
    {"split_by_node", "world_size"},
    {"workersplitter", "num_workers"},
    {"split_by_worker", "num_workers"},
    {"resampled", "resample"},
    {"with_replacement", "resample"},
    {"repeat", "epochs"},
    {"repeats", "epochs"},
    {"num_epochs", "epochs"},
    {"nepochs", "epochs"},
    {"with_epoch", "epoch_samples"},
    {"epoch_size", "epoch_samples"},
    {"epoch_length", "epoch_samples"},
    {"samples_per_epoch", "epoch_samples"},
    {"empty_check", "allow_empty"},
    {"check_empty", "allow_empty"},
    {"select_files", "fields"},
    {"keys", "fields"},
    {"columns", "fields"},
    {"to_tuple", "fields"},
    {"cache_dir", "cache"},
    {"handle_duplicates", "duplicate_keys"},
    {"maxcount", "max_samples"},
    {"max_count", "max_samples"},
    {"samples_per_shard", "max_samples"},
    {"maxsize", "max_bytes"},
    {"max_size", "max_bytes"},
    {"shard_size", "max_bytes"},
    {"start_shard", "first_shard"},
    {"compress", "compression"},
    {"compression_level", "level"},
    {"compresslevel", "level"},
    // torch
    {"batch_size", "batch"},
    {"batchsize", "batch"},
    {"batched", "batch"},
    {"drop_last", "last"},
    {"partial", "last"},
    {"workers", "threads"},
    {"nworkers", "threads"},
    {"n_workers", "threads"},
    {"num_threads", "threads"},
    {"nthreads", "threads"},
    {"n_threads", "threads"},
    {"n_jobs", "threads"},
    {"worker_id", "worker"},
    {"prefetch", "memory"},
    {"prefetch_factor", "memory"},
    {"generator", "seed"},
    {"rng", "seed"},
    {"random_seed", "seed"},
    {"shuffle_seed", "seed"},
    {"num_replicas", "world_size"},
    {"global_rank", "rank"},
    {"transform", "decode"},
    {"transforms", "decode"},
    {"collate_fn", "ragged"},
    {"num_samples", "limit"},
    // tf.data, DALI, grain and others
    {"buffer_size", "shuffle"},
    {"bufsize", "shuffle"},
    {"shuffle_buffer", "shuffle"},
    {"shuffle_buffer_size", "shuffle"},
    {"shuffle_size", "shuffle"},
    {"shuffle_block_size", "shuffle"},
    {"initial_fill", "shuffle"},
    {"random_shuffle", "shuffle"},
    {"shuffle_files", "shuffle_shards"},
    {"drop_remainder", "last"},
    {"take", "limit"},
    {"skip", "slice"},
    {"cycle_length", "lanes"},
    {"interleave", "lanes"},
    {"num_parallel_reads", "threads"},
    {"num_parallel_calls", "decode_threads"},
    {"ignore_errors", "on_error"},
    {"skip_errors", "on_error"},
    {"num_shards", "world_size"},
    {"shard_count", "world_size"},
    {"process_count", "world_size"},
    {"shard_id", "rank"},
    {"shard_index", "rank"},
    {"process_index", "rank"},
    {"index_path", "index_dir"},
    {"index_paths", "index_dir"},
};

}  // namespace

std::span<const NameElsewhere> names_elsewhere() {
    return names;
}

std::string_view option_called(std::string_view name) {
    const NameElsewhere* found =
        std::find_if(std::begin(names), std::end(names),
                     [&](const NameElsewhere& one) { return one.name == name; });
    return found == std::end(names) ? std::string_view() : found->option;
}

// Levenshtein 1966.
size_t name_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
        }
    }
    return row[b.size()];
}

}  // namespace shf
