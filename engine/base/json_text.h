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

// invalid_argument where `text` has more bytes or levels than that, or an object with a member
// twice, of which a parser would take the last and drop the others. Names are compared as they are
// written. Whether it is JSON at all is not looked at. Takes time in proportion to the text (times
// the logarithm of an object's members), and memory for references to the names.
Status check_json_bounds(std::string_view what, std::string_view text);

// The document; `what` says in errors what the text is: "the network". Errors: invalid_argument
// where the text is beyond the bounds, is no JSON, or has a number beyond a double.
template <class Json = nlohmann::json>
Result<Json> read_json(std::string_view what, std::string_view text) {
  if (Status status = check_json_bounds(what, text); !status.ok()) return status;
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {
    return invalid_argument(std::string(what) + " is not JSON: " + error.what());
  }
}
// Compiled once: a parser takes longer to compile than most files that read JSON.
extern template Result<nlohmann::json> read_json(std::string_view what, std::string_view text);
extern template Result<nlohmann::ordered_json> read_json(std::string_view what,
                                                         std::string_view text);

}  // namespace rankine
