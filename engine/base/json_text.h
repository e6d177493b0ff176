// JSON that others wrote is read here and nowhere else: in bounds, and with errors as values.
//
// Documents are copied, written and destroyed by recursion, so a text of brackets only would end
// the process on its stack. What nests too deep is refused before a document is made of it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine {

// The most that is read: levels of arrays and objects within each other, and bytes of one text.
inline constexpr std::size_t kMostJsonLevels = 64;
inline constexpr std::size_t kMostJsonBytes = std::size_t{16} << 20;

// The document; `what` says in errors what the text is: "the network". Errors: invalid_argument if
// the text is beyond the bounds, is no JSON, has a number beyond a double, or has an object with
// one member twice, of which a parser would take the last and drop the others (names are compared
// as they are written). An error names line and column of a text that is no JSON and quotes nothing
// of it: the text may be a secret file that a privileged program was made to open. Takes time in
// proportion to the text (times the logarithm of an object's members).
template <class Json = nlohmann::json>
Result<Json> read_json(std::string_view what, std::string_view text);

}  // namespace rankine
