// Lists of whole numbers as people write them: "4x4" of a torus, "11,6,3,2,1" of skips.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankine {

std::string list_text(const std::vector<int>& list, char between);

// Numbers from 0 with `between` between them; nullopt where the text is something else, or empty.
std::optional<std::vector<int>> read_list(std::string_view text, char between);

}  // namespace rankine
