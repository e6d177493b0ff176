// One collective with real data on pinned threads, played as often as one likes, at full speed or
// on a modelled network.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/team.h"
#include "engine/network/wall.h"
#include "engine/run/plan.h"
#include "numa/memory.h"

namespace rankine::tools {

class Stage {
 public:
  // The call says collective, count, type, op, root, peer and options; the buffers are ours. The
  // network, where there is one, is that of `options`, and never RANKINE_NETWORK's.
  // Errors: those of Team, and memory that cannot be had.
  static Result<std::unique_ptr<Stage>> create(const TeamOptions& options, const Call& call);
  // Whether the machine has memory for the buffers; out_of_memory says how much is needed.
  static Status check_memory(const Call& call, int ranks);

  // One call on all ranks, at the beginning of the model's time. Every element of every output is
  // checked, and each call has other data.
  struct Played {
    double seconds = 0;  // until the last rank is done, from when the first one began
    std::int64_t wrong = 0;
  };
  Result<Played> play();

  // From now on ranks are delayed at random (perturb.h).
  void perturb(std::uint64_t seed);
  std::int64_t delays() const;  // how often, so far

  // Of a stage at full speed: what a wall clock has to cope with here. All ranks' threads sleep at
  // once, and the call is played a few times. Both arguments are the model's, in seconds.
  Result<WallDemands> demands(double total, double least);

  Team& team() { return *team_; }

 private:
  struct alignas(64) Seat {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::size_t input_bytes = 0, output_bytes = 0;
    std::int64_t begin_ns = 0, end_ns = 0, wrong = 0;
    Status status;
    std::unique_ptr<Perturbation> perturbation{};
  };

  Stage(std::unique_ptr<Team> team, const Call& call);
  Status allocate();
  Result<std::vector<double>> wake_ups();  // how late, in seconds

  std::unique_ptr<Team> team_;
  const Call call_;
  const Goal goal_;
  const Layout layout_;
  std::vector<Arena> arenas_;
  std::vector<Seat> seats_;
  std::uint64_t seed_ = 1;
};

}  // namespace rankine::tools
