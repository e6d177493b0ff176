// What somebody probably meant who wrote a name that there is not.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rankine {

// How many letters must be inserted, removed, replaced or swapped with their neighbour to make b of
// a (Damerau's distance, restricted). Takes time in proportion to a.size() * b.size().
std::size_t edit_distance(std::string_view a, std::string_view b);

// The one of `names` that was probably meant, or "".
std::string_view closest(std::string_view name, std::span<const std::string_view> names);

// "; did you mean 'ring'?", for the end of an error, or "".
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);

}  // namespace rankine
