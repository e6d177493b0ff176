// What trials say of c_real: the times of contests, over what the model says of their calls.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/api/tuning/tuning.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/tools/contest.h"

namespace rankine::tools {

// For one thread.
class CRealTrials {
 public:
  // Times are seconds on `machine` (machine_fabric()); calls have as many segments as `costs` say.
  CRealTrials(Fabric machine, const Costs& costs) : machine_(std::move(machine)), costs_(costs) {}

  // All rounds that a contest has now. May be called again with later rounds of it.
  void add(const Contest& contest);

  // Of every algorithm that was timed both where alphas make up half of the model's time or more
  // and where they make up less: the medians over the sizes and protocols of either regime, of the
  // medians over the rounds. What the model has no time for, and what is beyond CReal's bounds, is
  // left out. Errors: those of predict_on_threads().
  Result<std::vector<MeasuredCReal>> measured() const;

 private:
  using Question = std::tuple<Collective, int, std::size_t, const Algorithm*>;  // ranks, bytes

  Fabric machine_;
  Costs costs_;
  std::map<Question, std::vector<double>[kProtocols]> seconds_;
};

// A line per algorithm, under one that names the columns; nothing where there are none.
std::string table_of(const std::vector<MeasuredCReal>& measured);

}  // namespace rankine::tools
