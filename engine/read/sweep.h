// This header answers questions over many cases: profile() for every size and network of one
// wiring, search_skips() for the skips of circulant algorithms, and sweep() for the whole
// catalogue.
//
// A Profile gives a schedule's time for all sizes and all networks of one wiring after one pass
// over its transfers. In rounds (Sync::rounds of fabric.h) and with blocks of exactly M / B bytes,
// a message takes
//
//   alpha + hops * alpha_hop + beta * M * load
//
// with load the load of its busiest link in the round, in units of M: Eq. (1) of Trivance. The time
// of a round is that of its slowest message. For any alpha, alpha_hop, beta and M, the slowest is a
// message for which no other message has both at least as many hops and at least as much load. Only
// these are kept. Rounds of local work have none and take no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/prices.h"
#include "engine/network/wiring.h"
#include "engine/read/verify.h"

namespace rankine {

// A message that is the slowest of its round on some network.
struct SlowMessage {
  int hops = 0;
  std::int64_t load = 0;  // load of its busiest link, in units of M / Profile::per_m
  bool operator==(const SlowMessage&) const = default;
};

struct Profile {
  int ranks = 1;
  std::int64_t per_m = 1;  // units in M: loads and bytes sent are whole numbers of units
  // By round with messages: hops rise and loads fall. Never empty.
  std::vector<std::vector<SlowMessage>> rounds;
  std::vector<std::int64_t> sent;  // by rank, in units
  // most messages that one rank sends, or receives, in a round: the ports needed
  int most_messages = 0;

  int round_count() const { return static_cast<int>(rounds.size()); }
  std::int64_t most_sent() const;
  // Sum over the rounds of the load of the busiest link.
  std::int64_t total_load() const;

  // In seconds. Assumes `most_messages` ports.
  double time(double alpha, double alpha_hop, double beta, double bytes) const;
  // With a fabric's alpha, alpha_hop and beta; the caller must check its wiring.
  double time(const Fabric& fabric, double bytes) const;
};

// `wiring` must have one kind of link for all messages: no leaves. Uses all cores. Errors: those of
// Routes::make(), two_level or fat_tree wiring, a multicast or ALU transfer. Exceptions of the
// schedule pass through.
Result<Profile> profile(const Schedule& schedule, const CollectiveSpec& goal, const Wiring& wiring);

// Searches the skips that suit a network: the open question of Traff, "Optimal, Non-pipelined
// Reduce-scatter and Allreduce Algorithms", 2024/2025, corollary 2. The skips are those of a
// reduce-scatter; its all-gather uses them in reverse.
//
// With a barrier between rounds and blocks of equal size, a round's time depends on its skip and on
// the number of blocks that travel, not on earlier rounds: all ranks do equal work. So the best
// sequence of Algorithm 1 (windows, see circulant.h) is a shortest path from window p to window 1,
// and it is found exactly, for any p. Sequences of other shape, nearest first among them, are tried
// one by one: every order of every valid set of up to m skips, with the largest m that the budget
// allows; then the best so far and the schemes, nearest first, are improved by adding, removing,
// changing or moving one skip, as long as that helps and the budget allows.

struct RatedSkips {
  std::vector<int> skips;
  Ticks time = 0;  // of a reduce-scatter, with a barrier between rounds
  double seconds = 0;
};

struct SkipSearchOptions {
  int best = 10;  // sequences to return
  // sequences other than windows to try, in every order of sets
  std::uint64_t most_tried = 1'000'000;
  // The number of sequences near to the fastest to examine, times ranks. With this a search among
  // 1,024 ranks takes half a minute or less; searches among up to 256 end before they reach the
  // limit.
  std::uint64_t most_work = std::uint64_t{1} << 28;
  // Called from time to time with the number of parts done, and of all parts.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress{};
};

struct SkipSearch {
  std::vector<RatedSkips> best;  // the fastest first; among equals, fewer rounds first
  RatedSkips best_windows;       // the best sequence of Algorithm 1
  RatedSkips halving;            // the paper's scheme, for comparison
  double windows = 0;            // number of sequences of Algorithm 1
  std::uint64_t others = 0;      // other sequences tried
  // every order of every valid set of at most this number of skips was tried
  int all_up_to = 0;
  bool all = false;  // all possible sequences were tried
  // true if the limit was reached before all sequences near to the fastest were examined
  bool stopped = false;
};

// `bytes` is M, in p blocks of exactly M / p. A round's time is simulate()'s of that round alone,
// and the sums are compared with simulate()'s of the whole; a difference is a bug here and throws
// std::logic_error. Errors: ranks outside of 1 .. kMostSearchedRanks, those of simulate().
inline constexpr int kMostSearchedRanks = 1024;
Result<SkipSearch> search_skips(int ranks, const Fabric& fabric, std::uint64_t bytes,
                                const SkipSearchOptions& options = {});

// The sweep verifies the whole catalogue for every N and compares it with its stated formulas.

struct SweepOptions {
  int ranks_from = 1, ranks_to = 64;     // N, both included
  std::optional<Collective> collective;  // only this one
  std::string algorithm;                 // only lines of this name; empty: all
  // Texts to try for parameters, by name; other parameters take the values of their rows
  // (algorithms/parameters.h), and the most even tori of one to three dimensions.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  // Up to this N every root is tried (and for send_recv every peer); beyond, roots 0, N / 2 and N -
  // 1.
  int all_roots_up_to = 9;
  int threads = 0;  // at most as many as there are cores; 0: all
  VerifyOptions verify;
};

// One case and its result.
struct SweepResult {
  const Algorithm* algorithm = nullptr;
  Params params;
  std::string failure;  // empty: proved, and the catalogue's entry is right
  int rounds = 0;       // derived
  bool ok() const { return failure.empty(); }
  std::string name() const;  // "all_reduce ring N=8", "broadcast chain N=8 root=3 P=2"
};

// Called with the number of cases done and of all; from any thread, one call at a time.
using SweepProgress = std::function<void(std::size_t done, std::size_t all)>;

// The cases of these options, without cases that an algorithm refuses. Catalogue order, then N,
// then the other parameters in their order. Throws std::invalid_argument for texts that a parameter
// cannot have.
std::vector<SweepResult> sweep_cases(const SweepOptions& options);

// Runs these cases on all cores. The result is independent of the number of threads. An exception
// of a schedule is a failure of that case.
std::vector<SweepResult> sweep(const SweepOptions& options, const SweepProgress& progress = {});

}  // namespace rankine
