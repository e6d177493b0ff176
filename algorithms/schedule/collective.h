// This header defines each collective by the ranks that hold a block before and need it after.
//
// One rule covers them all: a block starts at some ranks, each with a separate contribution; a rank
// that needs the block must end with the contributions of the ranks where it started and which it
// wants, each exactly once. A block that starts at one rank is copied; a block that starts at all
// ranks is reduced. In all collectives but the scans, a rank wants every rank where the block
// started.
//
// Blocks are numbered over all data of the collective, so that a block keeps its number wherever it
// travels: all-to-all has N * N blocks (source major). A schedule may split each of the
// collective's blocks into S = blocks / natural_blocks() equal neighbours.
//
//   collective      natural blocks  starts at     needed by
//   broadcast       1               root          all ranks
//   reduce          1               all ranks     root
//   all_reduce      1               all ranks     all ranks
//   reduce_scatter  N               all ranks     rank b
//   all_gather      N               rank b        all ranks
//   all_to_all      N * N           rank b / N    rank b % N
//   gather          N               rank b        root
//   scatter         N               root          rank b
//   send_recv       1               root          peer
//   barrier         1               all ranks     all ranks (contributions may arrive repeatedly)
//   scan            1               all ranks     all ranks; rank r wants ranks 0 to r
//   exscan          1               all ranks     all but rank 0; rank r wants ranks 0 to r - 1
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "algorithms/schedule/blocks.h"

namespace rankine {

// schedule.h has the TransferKind `reduce` too; the names are never confused, but GCC warns if
// schedule.h comes first.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Collective : unsigned char {
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  gather,
  scatter,
  send_recv,
  barrier,
  scan,
  exscan,
};
#pragma GCC diagnostic pop
inline constexpr int kCollectives = 12;

std::span<const Collective> all_collectives();
std::string_view name_of(Collective collective);
std::optional<Collective> parse_collective(std::string_view name);  // "all_reduce"

// True if the collective takes a root argument.
inline bool has_root(Collective c) {
  using enum Collective;
  return c == broadcast || c == reduce || c == gather || c == scatter || c == send_recv;
}
bool reduces(Collective collective);  // takes a reduction operation
// True if ranks want different ranks: their results are sums over different sets of ranks.
inline bool is_prefix(Collective c) { return c == Collective::scan || c == Collective::exscan; }
// True if every rank's result depends on every rank's data: no result is complete before all data
// have come.
bool all_hear_from_all(Collective collective);
bool is_idempotent(Collective collective);  // barrier: a repeated contribution does no harm

// The result that a schedule must achieve.
struct CollectiveSpec {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int blocks = 1;  // the schedule's; a multiple of natural_blocks()
  Rank root = 0;
  Rank peer = 0;  // send_recv: the receiver
  // all_reduce: every rank's result is added up in equal brackets and order, so that floats have
  // equal bits at all ranks.
  bool same_bits = true;

  bool initially_holds(Rank r, Block b) const;  // r's contribution to block b is there at the start
  bool must_hold(Rank r, Block b) const;        // r must hold block b, complete, at the end
  // The ranks that contribute to block b at rank r when it is complete: neighbours, ascending.
  Run contributors(Rank r, Block b) const;
  // r must have that rank's contribution to block b at the end.
  bool must_include(Rank r, Block b, Rank contributor) const;
  Rank source_of(Block b) const;  // the one rank where it starts, or kEveryone
  Rank target_of(Block b) const;  // the one rank that may need it, or kEveryone

  static constexpr Rank kEveryone = -1;

 private:
  int natural_of(Block b) const;
};

int natural_blocks(Collective collective, int ranks);

// --- Defined in the header, because planning calls these for millions of blocks ---

inline int natural_blocks(Collective collective, int ranks) {
  using enum Collective;
  switch (collective) {
    case broadcast:
    case reduce:
    case all_reduce:
    case send_recv:
    case barrier:
    case scan:
    case exscan:
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

// The natural block that contains b. Dividing takes long, and most blocks are whole.
inline int CollectiveSpec::natural_of(Block b) const {
  const int all = natural_blocks(collective, ranks);
  return blocks == all ? b : b / (blocks / all);
}

inline Rank CollectiveSpec::source_of(Block b) const {
  using enum Collective;
  switch (collective) {
    case broadcast:
    case scatter:
    case send_recv:
      return root;
    case all_gather:
    case gather:
      return natural_of(b);
    case all_to_all:
      return natural_of(b) / ranks;
    case reduce:
    case all_reduce:
    case reduce_scatter:
    case barrier:
    case scan:
    case exscan:
      return kEveryone;
  }
  return kEveryone;
}

inline Rank CollectiveSpec::target_of(Block b) const {
  using enum Collective;
  switch (collective) {
    case reduce:
    case gather:
      return root;
    case send_recv:
      return peer;
    case reduce_scatter:
    case scatter:
      return natural_of(b);
    case all_to_all:
      return natural_of(b) % ranks;
    case broadcast:
    case all_reduce:
    case all_gather:
    case barrier:
    case scan:
    case exscan:
      return kEveryone;
  }
  return kEveryone;
}

inline bool CollectiveSpec::initially_holds(Rank r, Block b) const {
  const Rank source = source_of(b);
  return source == kEveryone || source == r;
}

inline Run CollectiveSpec::contributors(Rank r, Block b) const {
  if (is_prefix(collective)) return {0, collective == Collective::scan ? r + 1 : r};
  const Rank source = source_of(b);
  return source == kEveryone ? Run{0, ranks} : Run{source, 1};
}

inline bool CollectiveSpec::must_hold(Rank r, Block b) const {
  const Rank target = target_of(b);
  return (target == kEveryone || target == r) && contributors(r, b).count > 0;
}

inline bool CollectiveSpec::must_include(Rank r, Block b, Rank contributor) const {
  const Run heard = contributors(r, b);
  return must_hold(r, b) && contributor >= heard.first && contributor < heard.first + heard.count;
}

}  // namespace rankine
