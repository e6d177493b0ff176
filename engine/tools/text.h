// Numbers, lists and names that people write on a command line; units.h has sizes and times.
//
// Every parser takes the name of its argument first and returns an error that names the argument,
// its value and what is allowed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"  // who refuses a name says what was meant
#include "engine/base/units.h"

namespace rankine::tools {

// A whole number within lowest .. highest.
Result<int> parse_whole(std::string_view argument, std::string_view text, int lowest, int highest);

// "3", "2,3,8", "1..130", "2..4,8": rising and each once, whatever the order written.
Result<std::vector<int>> parse_whole_list(std::string_view argument, std::string_view text,
                                          int lowest, int highest);

// Parts between commas. "" is no part; an empty part between commas stays one.
std::vector<std::string_view> split_list(std::string_view text);
std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

// What somebody wrote, as errors show it on a terminal: no longer than a line, and without control
// characters, since it may be any file.
std::string legible(std::string_view text);

// "algorithm is 'rnig'; allowed are ring, direct; did you mean 'ring'?"
Status unknown_name(std::string_view argument, std::string_view value,
                    std::span<const std::string_view> allowed);

}  // namespace rankine::tools
