// The catalogue lists every algorithm, one entry each, with its constraints, closed forms and
// source. It is plain data in an array; every reader and every tool finds algorithms here and
// nowhere else.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "algorithms/parameters.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// Replaces a formula if no closed form holds for every parameter: readers count the number in the
// schedule, and nothing is compared.
inline constexpr std::string_view kComputed = "computed";

// A schedule from outside the catalogue, with the only goal that it has.
struct GivenSchedule {
  CollectiveSpec goal;
  Schedule schedule;
};

// Makes the schedule of an algorithm: by a function of its parameters, or as a copy of a given
// schedule, which must outlive the maker.
class ScheduleMaker {
 public:
  template <class Function>
  requires std::is_convertible_v<Function, Schedule (*)(const Params&)>
  constexpr ScheduleMaker(Function function) : function_(function) {}
  constexpr ScheduleMaker(const GivenSchedule& given) : given_(&given) {}

  Schedule operator()(const Params& params) const {
    return given_ != nullptr ? given_->schedule : function_(params);
  }
  const GivenSchedule* given() const { return given_; }  // or nullptr

 private:
  Schedule (*function_)(const Params&) = nullptr;
  const GivenSchedule* given_ = nullptr;
};

// Formulas are text in N (ranks), P (segments), G (group), A (aggregation), K (radix), D
// (dimensions), a (the size of one of them), S (skips) and L (levels); evaluate() in parameters.h
// computes them. People read them, a test compares them with the schedules, and no executor uses
// them.
struct Algorithm {
  Collective collective;
  std::string_view name;
  ScheduleMaker make;
  // a formula, non-zero if make() may be called (after refusal()'s general checks)
  std::string_view allowed_when = "1";
  std::string_view needs = {};       // allowed_when in words: "the number of ranks must be even"
  std::string_view parameters = {};  // names of parameters(), with commas between
  // From here to the ports: a formula or kComputed.
  std::string_view rounds;
  std::string_view sent;      // by the busiest rank, in units of M (see blocks_per_m)
  std::string_view received;  // by the busiest rank, in units of M
  std::string_view send_ports, receive_ports;  // concurrent messages of the busiest rank in a round
  std::string_view summary;
  std::string_view citation;
  // all_reduce: the reason why ranks' results may differ in the last bits of a float; empty: they
  // never do. It runs only if a caller names it, and is never chosen.
  std::string_view other_bits = {};

  // True if the algorithm uses that parameter: one of `parameters`, the ranks, and the root and
  // peer of collectives that have them.
  bool takes(std::string_view parameter) const;
  // Returns `params` without the members that it does not take, for one question to many
  // algorithms.
  Params only_taken(Params params) const;
  // The first member of `params` that it does not take, as an error text with the members that it
  // takes.
  std::optional<std::string> untaken(const Params& params) const;
  // nullopt if make(params) may be called; otherwise the reason as an error text: a parameter is
  // not taken, or outside its range, or allowed_when is 0, or a given schedule has another goal.
  std::optional<std::string> refusal(const Params& params) const;
  // "P = 4, skips 4,2,1": the parameters it takes, except a root and a peer of 0; empty if it takes
  // none.
  std::string text_of(const Params& params) const;
};

std::span<const Algorithm> catalogue();

// An algorithm that owns its name and its schedule, for ranks, root and peer of `goal` only.
using GivenAlgorithm = std::shared_ptr<const Algorithm>;
GivenAlgorithm given_algorithm(std::string name, const CollectiveSpec& goal, Schedule schedule);

// The entry of the catalogue, or of `more`, with that collective and name, or nullptr.
const Algorithm* find_algorithm(Collective collective, std::string_view name,
                                std::span<const GivenAlgorithm> more = {});

// The names of a collective's algorithms, for messages: "ring, direct".
std::string algorithm_names(Collective collective);

// The result that a schedule of this algorithm must achieve.
CollectiveSpec goal_of(const Algorithm& algorithm, const Params& params, const Schedule& schedule);

// The number of blocks in M, the size that users state: the vector; for all_to_all one rank's send
// buffer, with the block that stays.
int blocks_per_m(const CollectiveSpec& goal);

// Spellings of collectives and algorithms that people type: Ring, AllReduce, all-reduce; and NCCL's
// tree and nvls for double_tree and switch. Environment variables, command lines and requests
// accept these; calls and the engine's files need exact names.

std::optional<Collective> find_typed_collective(std::string_view typed);

// Finds the algorithm of this collective with that name; otherwise the algorithm that an alias
// names; nullptr if both fail.
const Algorithm* find_typed_algorithm(Collective collective, std::string_view typed);

// Finds the algorithm of that name for every collective that has it, in the catalogue's order.
std::vector<const Algorithm*> find_typed_algorithms(std::string_view typed);

}  // namespace rankine
