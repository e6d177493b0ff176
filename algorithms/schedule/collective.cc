#include "algorithms/schedule/collective.h"

#include <array>

namespace rankine {
namespace {

using enum Collective;

constexpr Rank kEveryone = -1;
constexpr std::array<Collective, kCollectives> kAll = {
    broadcast,  reduce, all_reduce, reduce_scatter, all_gather,
    all_to_all, gather, scatter,    send_recv,      barrier};
constexpr std::array<std::string_view, kCollectives> kNames = {
    "broadcast",  "reduce", "all_reduce", "reduce_scatter", "all_gather",
    "all_to_all", "gather", "scatter",    "send_recv",      "barrier"};

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

bool reduces(Collective c) { return c == reduce || c == all_reduce || c == reduce_scatter; }

bool all_hear_from_all(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather || collective == Collective::all_to_all;
}

bool is_idempotent(Collective c) { return c == barrier; }

int natural_blocks(Collective collective, int ranks) {
  switch (collective) {
    case broadcast:
    case reduce:
    case all_reduce:
    case send_recv:
    case barrier:
      return 1;
    case reduce_scatter:
    case all_gather:
    case gather:
    case scatter:
      return ranks;
    case all_to_all:
      return ranks * ranks;
  }
  return 1;
}

namespace {

// The natural block of which b is a part. Dividing takes long, and most blocks are whole.
int natural_of(const Goal& goal, Block b) {
  const int all = natural_blocks(goal.collective, goal.ranks);
  return goal.blocks == all ? b : b / (goal.blocks / all);
}

}  // namespace

Rank Goal::source_of(Block b) const {
  const int natural = natural_of(*this, b);
  switch (collective) {
    case broadcast:
    case scatter:
    case send_recv:
      return root;
    case all_gather:
    case gather:
      return natural;
    case all_to_all:
      return natural / ranks;
    case reduce:
    case all_reduce:
    case reduce_scatter:
    case barrier:
      return kEveryone;
  }
  return kEveryone;
}

Rank Goal::target_of(Block b) const {
  const int natural = natural_of(*this, b);
  switch (collective) {
    case reduce:
    case gather:
      return root;
    case send_recv:
      return peer;
    case reduce_scatter:
    case scatter:
      return natural;
    case all_to_all:
      return natural % ranks;
    case broadcast:
    case all_reduce:
    case all_gather:
    case barrier:
      return kEveryone;
  }
  return kEveryone;
}

bool Goal::starts(Rank r, Block b) const {
  const Rank source = source_of(b);
  return source == kEveryone || source == r;
}

bool Goal::needs(Rank r, Block b) const {
  const Rank target = target_of(b);
  return target == kEveryone || target == r;
}

}  // namespace rankine
