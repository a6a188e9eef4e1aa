// Which kind of data set a path is, for conversion.
#pragma once

#include <string>
#include <vector>

namespace cli {

// "shards", "folder", "parquet" and so on.
const std::vector<std::string>& dataset_kinds();

// By what is there, else by the name.
std::string kind_of_input(const std::string& url);
// By the name: a slash at its end is a folder.
std::string kind_of_output(const std::string& url);

}  // namespace cli
