#include "cli/verb_list.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace cli {

namespace {

constexpr std::array table = {
    VerbEntry{"ls", "", "lists members or samples", make_ls},
    VerbEntry{"show", "tarshow", "prints samples for people to read", make_show},
    VerbEntry{"first", "tarfirst", "writes a field of the first sample", make_first},
    VerbEntry{"get", "", "writes one sample, or one field of it", make_get},
    VerbEntry{"info", "", "says what shards consist of, and what is suspicious", make_info},
    VerbEntry{"verify", "", "checks every byte of shards and their indexes", make_verify},
    VerbEntry{"repair", "", "writes a new shard of what is whole in a damaged one", make_repair},
    VerbEntry{"create", "tarcreate", "makes shards of files", make_create},
    VerbEntry{"cat", "tarcats tarpcat", "joins shards, picks samples and fields, shuffles",
              make_cat},
    VerbEntry{"split", "tarsplit", "cuts shards into others by samples, bytes or shares",
              make_split},
    VerbEntry{"sort", "tarsort", "orders samples by key, by a field, or at random", make_sort},
    VerbEntry{"map", "proc tarproc", "changes samples by a command or a function of Python",
              make_map},
    VerbEntry{"reshard", "", "makes shards of equal size of all inputs, also shuffled as a whole",
              make_reshard},
    VerbEntry{"convert", "", "writes shards as other formats, and these as shards", make_convert},
    VerbEntry{"tsv", "tar2tsv", "prints a table of chosen fields", make_tsv},
    VerbEntry{"json", "tar2json", "prints samples as lines of JSON", make_json},
    VerbEntry{"index", "", "makes indexes of shards, also for other tools", make_index},
    VerbEntry{"plan", "", "says what each rank and worker will read, and warns", make_plan},
    VerbEntry{"merge-states", "", "makes one saved state of those of all ranks and workers",
              make_merge_states},
    VerbEntry{"cache", "", "lists, verifies or clears a cache of shards", make_cache},
    VerbEntry{"feed", "", "reads and decodes shards for streams on other machines", make_feed},
    VerbEntry{"bench", "", "measures how fast this machine reads shards", make_bench},
    VerbEntry{"doctor", "", "says what this build and this machine can do", make_doctor},
};

}  // namespace

std::span<const VerbEntry> verbs() {
    return table;
}

int run_as(const char* name, std::vector<std::string> words, const LibraryOptions& options) {
    const std::unique_ptr<Verb> verb = find_verb(name)->make();
    Arguments arguments;
    verb->declare(arguments);
    if (!arguments.parse(std::move(words), name)) return done;
    return verb->run(options);
}

const VerbEntry* find_verb(std::string_view name) {
    for (const VerbEntry& entry : table) {
        if (entry.name == name) return &entry;
        std::istringstream others(entry.also);
        std::string other;
        while (others >> other)
            if (other == name) return &entry;
    }
    return nullptr;
}

}  // namespace cli
