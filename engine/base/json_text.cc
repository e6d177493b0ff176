#include "engine/base/json_text.h"

#include <algorithm>
#include <set>
#include <vector>

namespace rankine {
namespace {

// Returns the deepest nesting of brackets outside strings. If the text is not JSON, the parser
// stops at the error and has nested no deeper than this.
std::size_t levels_of(std::string_view text) {
  std::size_t level = 0, most = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      most = std::max(most, ++level);
    } else if ((c == ']' || c == '}') && level > 0) {
      --level;
    }
  }
  return most;
}

// The end of the string that begins at text[at], a quotation mark: behind its last mark, or the
// end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// The first duplicate member of an object, with its quotation marks; empty: none. Requires a
// nesting within the limit.
std::string_view member_twice(std::string_view text) {
  std::vector<std::set<std::string_view>> objects;  // names so far; empty for arrays
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '[' || c == '{') objects.emplace_back();
    if ((c == ']' || c == '}') && !objects.empty()) objects.pop_back();
    if (c != '"') {
      ++i;
      continue;
    }
    const std::size_t end = end_of_string(text, i);
    const std::size_t next = text.find_first_not_of(" \t\r\n", end);
    const bool is_name = next != std::string_view::npos && text[next] == ':' && !objects.empty();
    const std::string_view name = text.substr(i, end - i);
    if (is_name && !objects.back().insert(name).second) return name;
    i = end;
  }
  return {};
}

// "line 2, column 7", of the character before the byte at which a parser stopped, counted from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::max<std::size_t>(byte, 1) - 1);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;  // 0 if there is no line before
  return "line " + std::to_string(lines + 1) + ", column " +
         std::to_string(before.size() - begin + 1);
}

// The parser's reason, without its own place and without the text that it read last.
std::string reason_of(std::string_view text) {
  text = text.substr(0, text.find("; last read: "));
  const std::size_t place = text.find(" at line ");
  const std::size_t colon = text.find(": ", place == std::string_view::npos ? 0 : place);
  return colon == std::string_view::npos ? "" : std::string(text.substr(colon));
}

Status check_json_bounds(std::string_view what, std::string_view text) {
  if (text.size() > kMostJsonBytes) {
    return invalid_argument(std::string(what) + " has more than " + std::to_string(kMostJsonBytes) +
                            " bytes, the allowed size");
  }
  const std::size_t levels = levels_of(text);
  if (levels > kMostJsonLevels) {
    return invalid_argument(std::string(what) + " nests " + std::to_string(levels) +
                            " levels deep; allowed are up to " + std::to_string(kMostJsonLevels));
  }
  return {};
}

}  // namespace

template <class Json>
Result<Json> read_json(std::string_view what, std::string_view text) {
  if (Status status = check_json_bounds(what, text); !status.ok()) return status;
  const auto wrong = [&](const std::string& why) {
    return invalid_argument(std::string(what) + why);
  };
  try {
    Json json = Json::parse(text);
    // The text is JSON here, so the name may be quoted.
    const std::string_view twice = member_twice(text);
    if (twice.empty()) return json;
    return wrong(" has the member " + std::string(twice) + " twice in one object; allowed is once");
  } catch (const typename Json::parse_error& error) {
    return wrong(" is not JSON: " + place_of(text, error.byte) + reason_of(error.what()));
  } catch (const typename Json::exception&) {
    return wrong(" is not JSON: it has a number beyond the largest double");
  }
}

template Result<nlohmann::json> read_json(std::string_view what, std::string_view text);
template Result<nlohmann::ordered_json> read_json(std::string_view what, std::string_view text);

}  // namespace rankine
