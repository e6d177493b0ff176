#include "engine/run/policy.h"

namespace rankine {

std::string_view name_of(Transport transport) {
  constexpr std::string_view kNames[kTransports] = {"direct", "mailbox", "board"};
  const auto i = static_cast<std::size_t>(transport);
  return i < kTransports ? kNames[i] : "unknown";
}

}  // namespace rankine
