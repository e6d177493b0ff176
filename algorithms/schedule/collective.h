// The collectives, as who holds which block before and who needs which after.
//
// One rule covers them all: a block starts at some ranks, each with its own contribution; a rank
// that needs the block must end with the contributions of the ranks where it started and that it
// wants to hear, each exactly once. Where it starts at one rank only, that is a copy; where at all,
// a reduction. All but the scans want to hear every rank where the block started.
//
// Blocks are numbered over the whole of what the collective moves, so that a block keeps its number
// wherever it travels: all-to-all has N * N blocks (source major). A schedule may split each of the
// collective's blocks into S = blocks / natural_blocks() equal neighbours.
//
//   collective      natural blocks  starts at     needed by
//   broadcast       1               root          everyone
//   reduce          1               everyone      root
//   all_reduce      1               everyone      everyone
//   reduce_scatter  N               everyone      rank b
//   all_gather      N               rank b        everyone
//   all_to_all      N * N           rank b / N    rank b % N
//   gather          N               rank b        root
//   scatter         N               root          rank b
//   send_recv       1               root          peer
//   barrier         1               everyone      everyone (contributions may arrive repeatedly)
//   scan            1               everyone      everyone; rank r wants ranks 0 to r
//   exscan          1               everyone      all but rank 0; rank r wants ranks 0 to r - 1
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "algorithms/schedule/blocks.h"

namespace rankine {

// Whoever includes schedule.h first has the Act `reduce` too; the names are never confused, but GCC
// warns.
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

// Whether it takes a root argument.
inline bool has_root(Collective c) {
  using enum Collective;
  return c == broadcast || c == reduce || c == gather || c == scatter || c == send_recv;
}
bool reduces(Collective collective);  // takes a reduction operation
// Ranks hear different ranks: their results are different sums, of different numbers of ranks.
inline bool is_prefix(Collective c) { return c == Collective::scan || c == Collective::exscan; }
// Every rank's result has something of every rank's data: none is there before all have come.
bool all_hear_from_all(Collective collective);
bool is_idempotent(Collective collective);  // barrier: hearing from a rank twice does no harm

// What a schedule must achieve.
struct Goal {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int blocks = 1;  // the schedule's; a multiple of natural_blocks()
  Rank root = 0;
  Rank peer = 0;  // send_recv: the receiver
  // all_reduce: every rank's result is added up in the same brackets and the same order, so that
  // floats have the same bits everywhere.
  bool same_bits = true;

  bool starts(Rank r, Block b) const;  // r's own contribution to block b is there before
  bool needs(Rank r, Block b) const;   // r must hold block b, complete, after
  // The ranks whose contributions make block b complete where r holds it, ascending: neighbours.
  Run heard_by(Rank r, Block b) const;
  // r must have heard that rank's contribution to block b, after.
  bool wants(Rank r, Block b, Rank contributor) const;
  Rank source_of(Block b) const;  // the one rank where it starts, or kEveryone
  Rank target_of(Block b) const;  // the one rank that may need it, or kEveryone

  static constexpr Rank kEveryone = -1;

 private:
  int natural_of(Block b) const;
};

int natural_blocks(Collective collective, int ranks);

// --- In the header, because planning asks these of millions of blocks ---

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

// The natural block of which b is a part. Dividing takes long, and most blocks are whole.
inline int Goal::natural_of(Block b) const {
  const int all = natural_blocks(collective, ranks);
  return blocks == all ? b : b / (blocks / all);
}

inline Rank Goal::source_of(Block b) const {
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

inline Rank Goal::target_of(Block b) const {
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

inline bool Goal::starts(Rank r, Block b) const {
  const Rank source = source_of(b);
  return source == kEveryone || source == r;
}

inline Run Goal::heard_by(Rank r, Block b) const {
  if (is_prefix(collective)) return {0, collective == Collective::scan ? r + 1 : r};
  const Rank source = source_of(b);
  return source == kEveryone ? Run{0, ranks} : Run{source, 1};
}

inline bool Goal::needs(Rank r, Block b) const {
  const Rank target = target_of(b);
  return (target == kEveryone || target == r) && heard_by(r, b).count > 0;
}

inline bool Goal::wants(Rank r, Block b, Rank contributor) const {
  const Run heard = heard_by(r, b);
  return needs(r, b) && contributor >= heard.first && contributor < heard.first + heard.count;
}

}  // namespace rankine
