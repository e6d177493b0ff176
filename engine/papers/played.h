// One setup, simulated: what can be read off it, each worked out when it is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/papers/messages.h"
#include "engine/papers/runs.h"
#include "engine/papers/setup.h"

namespace rankine::claims {

// Throws NotDefined. Not thread-safe.
class Played {
 public:
  explicit Played(Setup setup);

  Value time() { return timed(setup_.fabric); }
  // Those of runs.h; nullopt: there is no such one, or it has other arguments.
  std::optional<Value> quantity(std::string_view name, std::span<const Value> arguments);
  std::uint64_t moves();  // as Runs::moves_of()
  // The time of ranks that make `made`, and what is wrong with it or with their data.
  Executed execute_it(const Setup& made);

 private:
  std::optional<Value> quantity(std::string_view name);
  Value time_with(int alpha, bool beta);
  Value timed(const Fabric& fabric) const;
  Value crossing(bool of_nodes);
  Value delay(const Wiring& wiring) const;
  Value one_path_delay();
  Value bytes_of(std::int64_t weight) const;
  Pricing priced(const Fabric& fabric) const;
  Simulation simulate_on(const Fabric& fabric) const;
  const Simulation& simulated();
  const std::vector<Message>& messages();

  Setup setup_;
  Schedule schedule_;
  Goal goal_;
  std::optional<Simulation> simulation_;
  std::vector<Message> messages_;  // none: not asked for yet
};

// The least time over all numbers of segments, and with how many.
std::pair<Value, int> best_of(const Setup& setup);

}  // namespace rankine::claims
