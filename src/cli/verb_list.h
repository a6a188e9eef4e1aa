// The verbs, each in a file of its own.
#pragma once

#include "cli/verb.h"

#include <memory>
#include <string>
#include <vector>

namespace cli {

std::unique_ptr<Verb> make_bench();
std::unique_ptr<Verb> make_cache();
std::unique_ptr<Verb> make_cat();
std::unique_ptr<Verb> make_convert();
std::unique_ptr<Verb> make_create();
std::unique_ptr<Verb> make_doctor();
std::unique_ptr<Verb> make_feed();
std::unique_ptr<Verb> make_first();
std::unique_ptr<Verb> make_get();
std::unique_ptr<Verb> make_index();
std::unique_ptr<Verb> make_info();
std::unique_ptr<Verb> make_json();
std::unique_ptr<Verb> make_ls();
std::unique_ptr<Verb> make_map();
std::unique_ptr<Verb> make_merge_states();
std::unique_ptr<Verb> make_plan();
std::unique_ptr<Verb> make_repair();
std::unique_ptr<Verb> make_reshard();
std::unique_ptr<Verb> make_show();
std::unique_ptr<Verb> make_sort();
std::unique_ptr<Verb> make_split();
std::unique_ptr<Verb> make_tsv();
std::unique_ptr<Verb> make_verify();

// Runs the verb `name` as another one's part, with words of its command line and the options that
// are set.
int run_as(const char* name, std::vector<std::string> words, const LibraryOptions& options);

}  // namespace cli
