// The profile of a schedule: what it takes to know its time for every size and every network of one
// wiring, from one pass over its transfers.
//
// By rounds (Sync::rounds of simulate.h) and with blocks of exactly M / B bytes, a message takes
//
//   alpha + hops * alpha_hop + beta * M * load
//
// where load is what its busiest link carries in the round, in units of M: Eq. (1) of Trivance. The
// time of a round is that of its slowest message, and for whatever alpha, alpha_hop, beta and M
// that is one whose (hops, load) no other message reaches in both. Only those are kept. Rounds of
// local work have none and take no time.
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
  std::int64_t load = 0;  // of its busiest link, in units of M / Profile::per_m
  bool operator==(const SlowMessage&) const = default;
};

struct Profile {
  int ranks = 1;
  std::int64_t per_m = 1;  // units that M has: loads and bytes sent are whole numbers of them
  // Of every round with messages: hops rise and loads fall. Never empty.
  std::vector<std::vector<SlowMessage>> rounds;
  std::vector<std::int64_t> sent;  // by rank, in the same units
  int most_messages = 0;  // that one rank sends, or receives, in a round: ports that are needed

  int round_count() const { return static_cast<int>(rounds.size()); }
  std::int64_t most_sent() const;
  // Sum over the rounds of the load of the busiest link.
  std::int64_t total_load() const;

  // Seconds. As many ports as `most_messages` are assumed.
  double time(double alpha, double alpha_hop, double beta, double bytes) const;
  // With a fabric's alpha, alpha_hop and beta; its wiring is the caller's business.
  double time(const Fabric& fabric, double bytes) const;
};

// `wiring` has all messages on one kind of link: no leaves. Rounds are worked on by all cores.
// Errors: those of Routes::make(), two_level or fat_tree wiring, a multicast or ALU transfer. What
// a schedule throws comes through.
Result<Profile> profile(const Schedule& schedule, const Goal& goal, const Wiring& wiring);

// Which skips suit a network: the open question of Traff, "Optimal, Non-pipelined Reduce-scatter
// and Allreduce Algorithms", 2024/2025, corollary 2. The skips of a reduce-scatter are searched;
// its all-gather is the same in reverse.
//
// With a barrier between rounds and blocks of equal size, a round's time depends on its skip and on
// how many blocks travel, not on what was before: all ranks do the same. So the best of all
// sequences of Algorithm 1 (windows, see circulant_rounds.h) is a shortest path from window p to window 1, and
// it is found exactly, for any p. Sequences of other shape, nearest first among them, are tried one
// by one: every order of every valid set of up to m skips, with the largest m that the budget
// allows; then the best so far and the schemes, nearest first, are improved by one skip more, less,
// other or elsewhere, as long as that helps and the budget allows.

struct RatedSkips {
  std::vector<int> skips;
  Ticks time = 0;  // of a reduce-scatter, with a barrier between rounds
  double seconds = 0;
};

struct SkipSearchOptions {
  int best = 10;                         // sequences to return
  std::uint64_t most_tried = 1'000'000;  // sequences that are not windows, in every order of sets
  // Sequences near to the fastest that are looked at, times ranks. With this a search among 1,024
  // ranks takes half a minute or less; searches among up to 256 come to their own end before.
  std::uint64_t most_work = std::uint64_t{1} << 28;
  // Called with a part done and all parts, now and then.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress{};
};

struct SkipSearch {
  std::vector<RatedSkips> best;  // the fastest first; of equals, that with fewer rounds
  RatedSkips best_windows;       // the best of Algorithm 1, of all that there are
  RatedSkips halving;            // the paper's, to compare with
  double windows = 0;            // how many sequences of Algorithm 1 there are
  std::uint64_t others = 0;      // other sequences tried
  int all_up_to = 0;             // every order of every valid set of at most so many skips is there
  bool all = false;              // all sequences that there are
  bool stopped = false;          // before all near to the fastest were looked at
};

// `bytes` is M, in p blocks of exactly M / p. Times are simulate()'s of one round each, and the
// sums are compared with simulate()'s of the whole; a difference is a mistake of our own and throws
// std::logic_error. Errors: ranks outside of 1 .. kMostSearchedRanks, those of simulate().
inline constexpr int kMostSearchedRanks = 1024;
Result<SkipSearch> search_skips(int ranks, const Fabric& fabric, std::uint64_t bytes,
                                const SkipSearchOptions& options = {});

// The sweep: the whole catalogue, every N, verified and compared with what its lines state.

struct SweepOptions {
  int ranks_from = 1, ranks_to = 64;     // N, both included
  std::optional<Collective> collective;  // only this one
  std::string algorithm;                 // only lines of this name; empty: all
  // Texts to try of parameters, by name; of the others what their rows say
  // (algorithms/parameters.h), and the most even tori of one to three dimensions.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  int all_roots_up_to = 9;  // up to this N every root is tried (and for send_recv every peer);
                            // beyond, roots 0, N / 2 and N - 1
  int threads = 0;          // at most as many as there are cores; 0: all
  VerifyOptions verify;
};

// One case and what came of it.
struct SweepResult {
  const Algorithm* algorithm = nullptr;
  Params params;
  std::string failure;  // empty: proved, and the catalogue's line is right
  int rounds = 0;       // derived
  bool ok() const { return failure.empty(); }
  std::string name() const;  // "all_reduce ring N=8", "broadcast chain N=8 root=3 P=2"
};

// Called with the number of cases done and of all; from any thread, one call at a time.
using SweepProgress = std::function<void(std::size_t done, std::size_t all)>;

// The cases that the options ask for, without those that an algorithm refuses. Catalogue order,
// then N, then the other parameters in their order. Texts that a parameter cannot have throw
// std::invalid_argument.
std::vector<SweepResult> sweep_cases(const SweepOptions& options);

// The same list, worked off by all cores. The result does not depend on the number of threads. An
// exception that a schedule throws is that case's failure.
std::vector<SweepResult> sweep(const SweepOptions& options, const SweepProgress& progress = {});

}  // namespace rankine
