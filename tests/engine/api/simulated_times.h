// SimulatedTimes simulates the calls that a test makes on a modelled network, and keeps the end
// times of all ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/network/predict.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"

namespace rankine {

class SimulatedTimes {
 public:
  SimulatedTimes(CallNetwork network, int ranks)
      : network_(std::move(network)), ends_(static_cast<std::size_t>(ranks), 0) {
    network_.fabric.size = network_.fabric.places_among(ranks);
  }

  // Parameters for a call among `members`, in this order, with three segments; std::nullopt if the
  // network or the number of ranks rules it out.
  std::optional<Params> params_for(const Algorithm& entry, const std::vector<Rank>& members,
                                   Rank root) const {
    const auto n = static_cast<int>(members.size());
    Params params{.ranks = n, .root = root, .peer = (root + 1) % n, .segments = 3};
    const Fabric fabric = among(members);
    if (!wire(fabric, entry, params).ok()) return std::nullopt;
    params = entry.only_taken(params);
    if (entry.refusal(params)) return std::nullopt;
    const Schedule schedule = entry.make(params);
    bool able = true;
    for (int k = 0; k < schedule.rounds; ++k) {
      for_each_transfer(schedule, k,
                        [&](const Transfer& t) { able = able && check_ability(t, fabric).ok(); });
    }
    return able ? std::optional(params) : std::nullopt;
  }

  Result<Simulation> call(const Algorithm& entry, const Params& params,
                          const std::vector<Rank>& members, std::size_t bytes) {
    SimulateOptions options{.sync = network_.sync};
    for (const Rank r : members) options.starts.push_back(ends_[static_cast<std::size_t>(r)]);
    const Schedule schedule = entry.make(params);
    auto simulated =
        simulate(schedule, goal_of(entry, params, schedule), among(members), bytes, options);
    if (!simulated.ok()) return simulated;
    for (std::size_t i = 0; i < members.size(); ++i) {
      ends_[static_cast<std::size_t>(members[i])] = simulated->rank_end[i];
    }
    ticks_per_second_ = simulated->ticks_per_second;
    return simulated;
  }

  double in_seconds(Ticks ticks) const { return nearest_double(ticks, ticks_per_second_); }
  double seconds(Rank r) const { return in_seconds(ends_[static_cast<std::size_t>(r)]); }
  // The rank works for a while.
  void compute(Rank r, double seconds) {
    ends_[static_cast<std::size_t>(r)] +=
        static_cast<Ticks>(seconds * static_cast<double>(ticks_per_second_) + 0.5);
  }
  // A test may set end times that come from another communicator with the same places.
  std::vector<Ticks>& ends() { return ends_; }

 private:
  Fabric among(const std::vector<Rank>& members) const {
    Fabric fabric = network_.fabric;
    fabric.places.clear();
    for (const Rank r : members) fabric.places.push_back(network_.fabric.place_of(r));
    return fabric;
  }

  CallNetwork network_;
  std::vector<Ticks> ends_;
  Ticks ticks_per_second_ = 1;
};

}  // namespace rankine
