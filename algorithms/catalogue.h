// The catalogue: every algorithm, one line each, with its constraints, closed forms and source.
// Plain data in a plain array; every reader and every tool finds algorithms here and nowhere else.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/parameters.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// What a line says of a number for which there is no closed form that holds for every parameter:
// readers count it in the schedule, and nothing is compared.
inline constexpr std::string_view kComputed = "computed";

// Formulas are text in N (ranks), P (segments), G (group), A (aggregation), K (radix), D
// (dimensions), a (the size of one of them), S (skips) and L (levels); closed_form.h evaluates
// them. They are read by people, compared with the schedules by a test, and used by no executor.
struct Algorithm {
  Collective collective;
  std::string_view name;
  Schedule (*make)(const Params&);
  std::string_view allowed_when = "1";  // formula, non-zero where make() may be called (and what
                                        // refusal() checks for all)
  std::string_view needs = {};          // the same in words: "the number of ranks must be even"
  std::string_view parameters = {};     // names of parameters(), with commas between
  // From here to the ports: a formula or kComputed.
  std::string_view rounds;
  std::string_view sent;      // by the busiest rank, in units of M (see blocks_per_m)
  std::string_view received;  // likewise
  std::string_view send_ports, receive_ports;  // concurrent messages of the busiest rank in a round
  std::string_view summary;
  std::string_view citation;
  // all_reduce: why ranks' results may differ in the last bits of a float; empty: they never do.
  // Such an algorithm runs where it is asked for by name, and is never chosen.
  std::string_view other_bits = {};

  // Whether that parameter makes a difference: one of `parameters`, the ranks, the root and the
  // peer of collectives that have them.
  bool takes(std::string_view parameter) const;
  // The same without what it does not take, for who asks many algorithms one question.
  Params only_taken(Params params) const;
  // What of `params` it does not take, as text that says what it takes.
  std::optional<std::string> untaken(const Params& params) const;
  // Whether make(params) may be called; if not, why not, as text that says what is needed: a
  // parameter is not taken, or outside its range, or allowed_when is 0.
  std::optional<std::string> refusal(const Params& params) const;
  // "P = 4, skips 4,2,1": what it takes, but a root and a peer of 0; nothing where it takes none.
  std::string text_of(const Params& params) const;
};

std::span<const Algorithm> catalogue();

// The line with that collective and name, or nullptr.
const Algorithm* find_algorithm(Collective collective, std::string_view name);

// The names of a collective's algorithms, for messages: "ring, direct".
std::string algorithm_names(Collective collective);

// What a schedule of this algorithm must achieve.
Goal goal_of(const Algorithm& algorithm, const Params& params, const Schedule& schedule);

// How many of a schedule's blocks make up M, the size that users state: the vector; for all_to_all
// one rank's send buffer, with the block that stays.
int blocks_per_m(const Goal& goal);

}  // namespace rankine
