// Runs: catalogue entries on a network, as a claim's text names them, and their quantities.
//
//   runs      run | run ...
//   run       [name:] collective algorithm [; option=expression ...]
//   options   the parameters of algorithms (algorithms/parameters.h): segments=4, skips=4,2,1; a
//             parameter that the algorithm does not take is a mistake, except dims with a wiring
//             bytes alpha beta gamma ports
//             nodes (ranks per node; links between nodes have far_alpha and far_beta)
//             slow=c (messages of rank 0 take c times the beta)
//             switch_alpha (the network then multicasts and adds up; adds=0: multicasts only)
//             lower=1 (a transfer that the network cannot do becomes several messages)
//             permute=1 (all messages of a round are one operation of the switch)
//             sync=dataflow (default: rounds)
//             dimensions=2 (sets dims to the most even torus with 2 dimensions)
//             wiring=torus, or ring: messages share links, a port for each (fabric.h);
//             routing=one_way (default: minimal); hop (alpha_hop)
//
// Blocks have exactly M / B bytes, as in the papers' formulas. Quantities of the run `a` are the
// letters a.time and so on; of a run without a name, just time:
//
//   time                     simulated, seconds
//   n_alpha n_beta           time with alpha = 1 and beta = 0; with alpha = 0 and M beta = 1
//   rounds messages          messages of all ranks
//   sent received reduced    bytes of the busiest rank; least_sent least_received: idlest rank
//   ports send_ports receive_ports   most messages of one rank in a round, one direction
//   partners                 most partners of one rank
//   crossing rank_crossing   bytes that leave the busiest node; bytes to other nodes from one rank
//   delay                    sum over the rounds of the bytes on the busiest link, over M / D; the
//                            wiring has D dimensions (profile() in engine/read/sweep.h)
//   ring_load                delay with the ranks wired as a ring
//   one_path_delay           delay without splitting a message between two ways (played.h)
//   largest                  bytes of the largest message
//   best best_segments       the least time over all numbers of segments up to kMostSegments
//
// Quantities of single messages, with rounds from 1 and ranks from 0:
//
//   sends(i,j) sends(k,i,j)  bytes that i sends to j, in all and in round k
//   sent_by(i) sent_in(k)    bytes that i sends; that the busiest rank sends in round k
//   first_round(i) last_round(i)     the first and last round in which i sends
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/condition.h"
#include "engine/read/flow.h"

namespace rankine::reproduce {
struct Outcome;
struct Panel;
enum class By : unsigned char;
}  // namespace rankine::reproduce

namespace rankine::claims {

using formulas::Letters;
using formulas::Value;

inline constexpr int kMostSegments = 256;

// The algorithm does not exist for these parameters: the case is skipped.
struct NotDefined : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The catalogue has no such line: the claim cannot be checked.
struct NotInCatalogue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct RunText {
  std::string name;  // empty: quantities have no prefix
  std::string collective, algorithm;
  std::vector<std::pair<std::string, std::string>> options;  // no option twice: the last one counts
};

// Reads a claim's runs. `before`: options before each run's own. Throws std::logic_error for a
// mistake.
std::vector<RunText> read_runs(std::string_view runs, std::string_view before);

// A run for live ranks of a communicator on the network, under the virtual clock.
struct LiveRun {
  RunText run;
  Letters letters{};
  // For tests: the ranks make this run, and its time is compared with that of `run`, which must be
  // found as a fault.
  std::optional<RunText> made{};
};

// Result of a live run.
struct Executed {
  std::string fault{};  // empty: right data, and the simulated time to the last tick
  double seconds = 0;
  bool first = false;  // the first request for this run
};

// Simulates runs and caches the results. Not thread-safe.
class Runs {
 public:
  Runs();
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  // A quantity of one of the runs; nullopt: no run of that name, or no such quantity. Throws
  // NotDefined, NotInCatalogue.
  std::optional<Value> quantity(const std::vector<RunText>& runs, const Letters& letters,
                                std::string_view name, std::span<const Value> arguments = {});

  // The outcome of a statement. An unknown id throws std::logic_error.
  const reproduce::Outcome& reproduced(std::string_view id, reproduce::By by);

  // The figures; valid as long as this object lives.
  std::span<const reproduce::Panel> panels(reproduce::By by);

  // The number of ranks of a run, and the number of blocks in its messages (a block counts once per
  // message): they determine the time and memory of live ranks.
  int ranks_of(const RunText& run, const Letters& letters) const;
  std::uint64_t moves_of(const RunText& run, const Letters& letters);

  // Lets live ranks make all runs (execute.h), each run only once ever, on all cores; results in
  // the order of `runs`. `progress` is called with the number of finished runs and the total, from
  // any thread, one call at a time.
  std::vector<Executed> execute(
      std::span<const LiveRun> runs,
      const std::function<void(std::size_t done, std::size_t all)>& progress = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankine::claims
