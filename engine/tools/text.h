// What people write on a command line, as values, and values as people read them.
//
// Every parser takes the name of its argument first and returns an error that names the argument,
// its value and what is allowed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace rankine::tools {

// "8", "4K", "1.5M", "64MiB", "2 GB": suffixes K M G T, any case, with or without iB or B, all of
// them binary (32M = 33554432), as nccl-tests has it. The result is a whole number of bytes.
Result<std::size_t> parse_size(std::string_view argument, std::string_view text);

// The shortest exact form that parse_size() reads: "8", "4K", "64M", "1000".
std::string format_size(std::size_t bytes);
// For sentences: "64 MiB", "1.5 GiB", "12 B"; rounded.
std::string format_bytes(double bytes);

// A whole number within lowest .. highest.
Result<int> parse_whole(std::string_view argument, std::string_view text, int lowest, int highest);

// "3", "2,3,8", "1..130", "2..4,8": rising and each once, whatever the order written.
Result<std::vector<int>> parse_whole_list(std::string_view argument, std::string_view text,
                                          int lowest, int highest);

// "30", "0.5" (seconds), "500ms", "2s", "3min"; positive, rounded up to milliseconds, up to a day.
Result<std::chrono::milliseconds> parse_duration(std::string_view argument, std::string_view text);

// "120 ns", "12.3 us", "4.56 ms", "7.8 s".
std::string format_seconds(double seconds);

// Parts between commas. "" is no part; an empty part between commas stays one.
std::vector<std::string_view> split_list(std::string_view text);
std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

// "algorithm is 'rnig'; allowed are ring, direct; did you mean 'ring'?"
Status unknown_name(std::string_view argument, std::string_view value,
                    std::span<const std::string_view> allowed);

// The one of `names` that was probably meant, or "".
std::string_view closest(std::string_view name, std::span<const std::string_view> names);

}  // namespace rankine::tools
