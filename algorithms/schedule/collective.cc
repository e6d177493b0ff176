#include "algorithms/schedule/collective.h"

#include <array>

namespace rankine {
namespace {

constexpr auto kAll = [] {
  using enum Collective;
  return std::array<Collective, kCollectives>{broadcast,  reduce,     all_reduce, reduce_scatter,
                                              all_gather, all_to_all, gather,     scatter,
                                              send_recv,  barrier,    scan,       exscan};
}();
constexpr std::array<std::string_view, kCollectives> kNames = {
    "broadcast", "reduce",  "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
    "gather",    "scatter", "send_recv",  "barrier",        "scan",       "exscan"};

}  // namespace

std::span<const Collective> all_collectives() { return kAll; }

std::string_view name_of(Collective collective) {
  const auto i = static_cast<std::size_t>(collective);
  return i < kNames.size() ? kNames[i] : "unknown";
}

std::optional<Collective> parse_collective(std::string_view name) {
  for (const Collective collective : kAll) {
    if (name_of(collective) == name) return collective;
  }
  return std::nullopt;
}

bool reduces(Collective c) {
  return c == Collective::reduce || c == Collective::all_reduce ||
         c == Collective::reduce_scatter || is_prefix(c);
}

bool all_hear_from_all(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather || collective == Collective::all_to_all;
}

bool is_idempotent(Collective c) { return c == Collective::barrier; }

}  // namespace rankine
