// ActiveRanks makes collectives that go on without late or lost ranks. Each call returns the ranks
// that have contributed, exactly.
//
//   auto active = ActiveRanks::create(me, {.wait = 2ms, .bytes = 1 << 20}).value();
//   ...
//   const std::vector<Rank> ranks = active.all_reduce(x, sum).value();
//   if (ranks.empty()) continue;                // this rank came too late: it has no result
//   log(text_of_set(ranks));                    // "{0..2, 5}"
//
// A call: each rank copies its input into memory that all ranks read, and comes. Ranks wait for the
// others at most for `wait`, and then agree on the ranks that have come (Agreement in
// engine/run/rank_control.h). Each of these computes the result from their inputs, without any
// further wait. So a rank that dies after it has come contributes its whole input, and one that
// dies before contributes nothing.
//
// Contract:
//   - All ranks that get a result of a call get the same list of ranks, in order, and are in it,
//     except in calls from a root, which list the root if it has come. Sums follow the listed ranks
//     (the bits of Order::by_rank among them); avg divides by their number. So bits depend on the
//     inputs and the list only.
//   - Blocks keep the places that they have among all ranks; the blocks of other ranks in out stay
//     as they are.
//   - An empty list: the others have gone on without this rank. Its out is as before if it came too
//     late, and undefined if it was too slow after it came: ranks that come to the next call wait
//     for it no longer than `wait` either.
//   - Calls are matched by their number, as in all collectives: a late rank makes the missed calls
//     too. They return an empty list at once until the rank has caught up. A rank that knows that
//     it is behind may skip the work between them.
//   - A rank is lost if its process has ended or its ActiveRanks is destroyed: it contributes to no
//     later call, and no call waits for it. The others go on, even alone.
//   - No error ends the ActiveRanks. After invalid_argument (this rank) nothing has happened: make
//     the call again. mismatch (all listed ranks): they made different calls, by collective, type,
//     operation, count, root or tag.
//
// One thread at a time uses it. The caller owns all buffers; in and out of a rank may overlap in
// any way. A call does not advance started calls, and is no part of a group().
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/api/member.h"
#include "engine/api/typed_calls.h"
#include "engine/base/status.h"

namespace rankine {

struct ActiveRanksOptions {
  // The time that a call waits for ranks that have not come, from its begin on. May differ between
  // ranks: the shortest one counts. 0: a call takes the ranks that are there.
  std::chrono::microseconds wait{2'000};
  std::size_t bytes = std::size_t{64} << 10;  // the largest input of a rank; equal on all ranks
};

// calls (typed_calls.h): all collectives, without counts, factors, operations of the user, and
// options other than `tag` and an `order` up to size_invariant.
class ActiveRanks : public TypedCalls<ActiveRanks, Result<std::vector<Rank>>> {
 public:
  // All ranks call it, as shrink(): its ranks are the survivors, in order, and it does not end with
  // the communicator of `me`, nor need `me`. It keeps two inputs of `bytes` per rank. Errors: those
  // of shrink(); invalid_argument for an option, a modelled network, ports, or a communicator's
  // order beyond size_invariant.
  static Result<ActiveRanks> create(Member& me, const ActiveRanksOptions& options = {});

  ~ActiveRanks();  // this rank is lost for the others
  ActiveRanks(ActiveRanks&&) noexcept;
  ActiveRanks& operator=(ActiveRanks&&) noexcept;

  // This rank, and the number of ranks, as create() found them.
  Rank rank() const;
  int ranks() const;

  // From now on this rank's calls wait for these ranks only; at first for all. Others contribute if
  // they have come by then. For ranks that are known to be away: without it each call waits for
  // them. invalid_argument: an invalid rank.
  Status wait_for(std::span<const Rank> ranks);

  // Any collective, untyped. Errors also: rank_lost if the others have found this rank lost;
  // aborted if an interrupt check (wait.h) ended the wait, which counts as its deadline;
  // out_of_memory; forked.
  Result<std::vector<Rank>> call(const Call& call);

 private:
  friend class TypedCalls<ActiveRanks, Result<std::vector<Rank>>>;
  struct Inside;
  explicit ActiveRanks(std::unique_ptr<Inside> inside);
  Result<std::vector<Rank>> submit(const Call& call) { return this->call(call); }

  std::unique_ptr<Inside> inside_;
};

}  // namespace rankine
