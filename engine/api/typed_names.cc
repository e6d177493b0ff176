#include "engine/api/typed_names.h"

#include <algorithm>
#include <string>

namespace rankine {
namespace {

// NCCL's names for algorithms.
struct Alias {
  std::string_view typed, name;
};
constexpr Alias kAliases[] = {{"tree", "double_tree"}, {"nvls", "switch"}};

// Removes upper case and separators, so that spellings compare equal.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

std::optional<Collective> find_typed_collective(std::string_view typed) {
  const std::string wanted = plain(typed);
  for (const Collective collective : all_collectives()) {
    if (plain(name_of(collective)) == wanted) return collective;
  }
  return std::nullopt;
}

const Algorithm* find_typed_algorithm(Collective collective, std::string_view typed) {
  const std::string wanted = plain(typed);
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective == collective && plain(entry.name) == wanted) return &entry;
  }
  for (const Alias& alias : kAliases) {
    if (wanted == alias.typed) return find_algorithm(collective, alias.name);
  }
  return nullptr;
}

std::vector<const Algorithm*> find_typed_algorithms(std::string_view typed) {
  std::vector<const Algorithm*> entries;
  for (const Collective collective : all_collectives()) {
    if (const Algorithm* entry = find_typed_algorithm(collective, typed)) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());  // they lie in one array
  return entries;
}

}  // namespace rankine
