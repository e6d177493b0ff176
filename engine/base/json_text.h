// read_json() is the only reader of JSON written by others: it is bounded and returns errors as
// values.
//
// Documents are copied, written and destroyed by recursion, so a text of brackets alone would
// overflow the stack. A text that nests too deep is refused before a document is made of it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine {

// Limits: nesting levels of arrays and objects, and bytes of one text.
inline constexpr std::size_t kMostJsonLevels = 64;
inline constexpr std::size_t kMostJsonBytes = std::size_t{16} << 20;

// Returns the document; `what` names the text in errors: "the network". Errors: invalid_argument if
// the text is beyond the limits, is no JSON, has a number beyond a double, or has an object with a
// duplicate member, of which a parser would drop all but the last (names are compared as written).
// An error for invalid JSON gives line and column and quotes nothing: the text may be a secret file
// that a privileged program was made to open. Takes time proportional to the text (times the
// logarithm of an object's members).
template <class Json = nlohmann::json>
Result<Json> read_json(std::string_view what, std::string_view text);

}  // namespace rankine
