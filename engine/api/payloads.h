// The payloads of one rank that are in use: the owner behind the handles of payload.h.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "engine/api/communicator.h"
#include "engine/api/payload.h"
#include "engine/api/processes/ranks.h"
#include "engine/run/process_owned.h"
#include "numa/arena.h"

namespace rankine {

// Its member holds it, and handles know it weakly: what is left goes with the member. Thread-safe.
class Payloads : public std::enable_shared_from_this<Payloads> {
 public:
  // `n` elements of so many bytes each for that rank. Errors: those of Member::allocate().
  Result<PayloadMemory> allocate(const ArenaOptions& near, Rank rank, std::size_t n,
                                 std::size_t element_bytes);

  // The same where other processes reach it: with what they share.
  Result<PayloadMemory> allocate_shared(const std::shared_ptr<ProcessRanks>& processes, Rank rank,
                                        std::size_t n, std::size_t element_bytes);
  ~Payloads();

  // Of what either gave, once. In a forked child nothing happens: the lock may be held for
  // ever.
  void free(const void* base) noexcept;

  // What is in use, and what of it could not be enforced.
  void add_to(RankMemory& memory) const;

 private:
  const HomeProcess home_{};
  mutable std::mutex mutex_;  // guards what follows
  std::map<const void*, Arena> in_use_;
  std::shared_ptr<ProcessRanks> processes_;  // of what is shared; nullptr: nothing is
  Rank rank_ = 0;                            // there
  std::set<const void*> shared_;
};

}  // namespace rankine
