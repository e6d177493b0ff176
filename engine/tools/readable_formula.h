// The catalogue's formulas as people write them.
#pragma once

#include <string>
#include <string_view>

namespace rankine::tools {

// "2*(clog2(N)+P-1)" is "2(ceil(log2 N)+P-1)", "if(N-1,a,b)" is "a if N>1, else b". What it does
// not know stays as it is. Requires parentheses that match.
std::string readable_formula(std::string_view formula);

}  // namespace rankine::tools
