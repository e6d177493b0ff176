// One measurement of the workbench: what the ranks share while they are in it. Ranks that are
// processes share nothing: each has one of its own, tells the others what it has measured whenever
// they meet, and comes to what they all come to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/network/wall.h"
#include "engine/run/plan.h"
#include "engine/tools/meeting.h"
#include "engine/tools/test_data.h"
#include "engine/tools/workbench.h"

namespace rankine::tools {

// To whole cache lines.
inline std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

// A rank's, on its node.
struct BufferPair {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

// `buffers` are of `region` bytes each, one pair per rank that is played here, and outlive it.
// `apart`: ranks are processes. `on_network`: of a team that is on a modelled one, and a new one
// for each play().
class Trial {
 public:
  Trial(const Call& call, const MeasureOptions& options, const Communicator& ranks, bool apart,
        bool on_network, const std::vector<BufferPair>& buffers, BufferBytes region);

  // On every rank's thread: out of place first, then in place.
  void play(Member& me, bool in_place);

  // After play(): why it was stopped.
  Status status() const;
  Measured result();

 private:
  // What a rank tells the others when they meet.
  struct Told {
    double seconds = 0;
    double model_seconds = 0;
    double now = 0;
    std::int64_t wrong = 0;
    bool interrupted = false;
  };
  // A rank's own, on lines of its own.
  struct alignas(64) Slot {
    Told told;
    std::uint64_t sink = 0;  // keeps reads of results
    Status status;
    std::optional<Perturbation> perturbation{};
  };
  // The ranks meet; the last one does that, or where they are processes, each for itself. False:
  // stopped.
  template <class Last>
  bool arrive(Member& me, const Last& last);
  bool arrive(Member& me);
  // What rank r's call number `turn` gets.
  BufferPair ends(Rank r, std::size_t turn, bool in_place) const;
  Status make_call(Member& me, const BufferPair& e);
  Status play_one(Member& me, Slot& slot, bool in_place);
  Status check(Member& me, Slot& slot, bool in_place, std::size_t turn);
  double time_of_batch() const;  // of all ranks' slots, as options_.of_ranks says
  void after_batch(Series& series);

  const Call call_;
  const MeasureOptions options_;
  const std::vector<BufferPair>& buffers_;
  const int ranks_;
  const bool apart_, on_network_;
  const Goal goal_;
  const Layout layout_;
  std::vector<BufferRule> rules_;
  std::vector<TestData> data_;  // one per check, at least one
  BufferBytes stride_;          // of a copy
  std::size_t shift_ = 0;       // bytes, of all copies
  std::size_t copies_ = 1, step_ = 1;
  Meeting meeting_;
  std::vector<Slot> slots_;

  // Written by the last rank at a meeting, read by all.
  int calls_ = 1;
  bool done_ = false;
  bool calibrated_ = false;
  bool interrupted_ = false;
  int calibrations_ = 0;
  double begun_ = 0;
  Measured measured_;
};

}  // namespace rankine::tools
