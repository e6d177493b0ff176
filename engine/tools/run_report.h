// What run is asked, what comes of it, and how that is told.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/api/communicator.h"
#include "engine/network/fabric.h"
#include "engine/network/wall.h"
#include "engine/tools/console.h"
#include "engine/tools/question_arguments.h"
#include "engine/tools/table.h"

namespace rankine::tools {

struct RunArguments {
  QuestionArguments question;
  ClockMode clock = ClockMode::virtual_time;
  double dilate = 0;  // 0: fitting_dilation()
  int repeat = 0;     // 0: 10, or 1 of a virtual clock
  std::optional<std::uint64_t> perturb;
  bool rounds = false, json = false, csv = false;
  PlacementPolicy placement{};
  std::optional<WaitPolicy> wait;
  std::chrono::milliseconds timeout{30'000};
};

struct RunOutcome {
  Question question;
  Prepared prepared;
  Simulation predicted;
  std::vector<double> seconds;              // measured, real, one per run
  std::vector<std::vector<double>> rounds;  // wall: likewise per run and round
  std::vector<Lateness> lateness;           // wall: per run
  std::int64_t wrong = 0;
  bool equal = true;  // virtual: the same as predicted, to the last tick, in every round
  double dilate = 1;
  WallDemands demands;
  std::int64_t delays = 0;  // by --perturb, over all runs
  std::string waiting;
  std::vector<PortsInUse> ports_in_use;  // by rank; empty: at full speed without --ports

  double asked() const { return predicted.seconds * dilate; }
  double seconds_of(Ticks ticks) const { return nearest_double(ticks, predicted.ticks_per_second); }
};

void print(const RunArguments& a, const RunOutcome& o, Console& console);
Table rounds_of(const RunArguments& a, const RunOutcome& o);  // when each round ends
nlohmann::ordered_json to_json(const RunArguments& a, const RunOutcome& o);

}  // namespace rankine::tools
