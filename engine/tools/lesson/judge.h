// What a teacher says of a schedule that somebody wrote: whether it is right, what it costs, and
// how far that is from what the catalogue has.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/status.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"
#include "engine/read/verify.h"
#include "engine/tools/lesson/written_schedule.h"

namespace rankine::tools {

// Beyond, nobody waits for the whole catalogue.
inline constexpr int kMostComparedRanks = 256;

struct Judgement {
  std::size_t transfers = 0;
  std::optional<Violation> violation{};
  // The rest is there where it is proved.
  Counts counts{};
  // In which data of one rank can be everywhere, or data of all at one, where in a round every rank
  // sends and receives as many messages as this one does at most. None: a switch helps.
  std::optional<int> least_rounds{};
  double bytes = 0;        // of the rank that sends or receives most
  double least_bytes = 0;  // what some rank has to move, if no switch adds (bus_factor)
  Simulation simulation{};
  // The catalogue's fastest on the same network; none: nothing of it can run, or too many ranks.
  std::optional<Candidate> best{};
};

// `fabric` as wired_for() gives it for these ranks; `bytes` is M. A pure function. Errors: those of
// simulate() and predict(), and a schedule that is too large to be proved.
Result<Judgement> judge(const WrittenSchedule& written, const Fabric& fabric, std::uint64_t bytes,
                        const SimulateOptions& options);

// The rule that was broken: "nothing is read that is not there".
std::string_view rule_of(ViolationKind kind);

// Which transfers of the violation's round have to do with its rank and block: indices.
std::vector<std::size_t> transfers_at(const WrittenSchedule& written, const Violation& violation);

}  // namespace rankine::tools
