// What somebody probably meant who wrote a name that there is not.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rankine {

// The one of `names` that was probably meant, or "".
std::string_view closest(std::string_view name, std::span<const std::string_view> names);

// "; did you mean 'ring'?", for the end of an error, or "".
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);

}  // namespace rankine
