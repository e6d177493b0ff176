// Catalogue lines under a network, as a claim's text asks for them, and what can be read off them.
//
//   runs      run | run ...
//   run       [name:] collective algorithm [; option=expression ...]
//   options   the parameters of algorithms (algorithms/parameters.h): segments=4, skips=4,2,1; one
//             that the algorithm does not take is a mistake, but for the dims of a network
//             bytes alpha beta gamma ports
//             nodes (ranks per node; links between nodes have far_alpha and far_beta)
//             switch_alpha (the network then multicasts and adds up; adds=0: multicasts only)
//             lower=1 (what it cannot do with one transfer is many messages)
//             permute=1 (all messages of a round are one operation of the switch)
//             sync=dataflow (else rounds)
//             dimensions=2, the dims of the most even torus of so many dimensions
//             wiring=torus, or ring: messages share links, a port for each (fabric.h);
//             routing=one_way (else minimal); hop (alpha_hop)
//
// Blocks have exactly M / B bytes, as in the papers' formulas. Quantities of the run `a` are the
// letters a.time and so on, without a name just time:
//
//   time                     simulated, seconds
//   n_alpha n_beta           the same with alpha = 1 and beta = 0; with alpha = 0 and M beta = 1
//   rounds messages          messages of all ranks
//   sent received reduced    bytes of the busiest rank; least_sent least_received: of the idlest
//   ports send_ports receive_ports   most messages of one rank in a round, one direction
//   partners                 most ranks that one rank exchanges messages with
//   crossing rank_crossing   bytes that leave the busiest node; that one rank sends to other nodes
//   delay                    sum over the rounds of the bytes on the busiest link, over M / D where
//                            the wiring has D dimensions (profile.h)
//   ring_load                the same as if ranks were wired as a ring
//   one_path_delay           the same where no message is split between two ways (messages.h)
//   largest                  bytes of the largest message
//   best best_segments       the least time over all numbers of segments up to kMostSegments
//
// and, of single messages, with rounds from 1 and ranks from 0:
//
//   sends(i,j) sends(k,i,j)  bytes that i sends to j, in all and in round k
//   sent_by(i) sent_in(k)    bytes that i sends; that the busiest rank sends in round k
//   first_round(i) last_round(i)     in which i sends
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
}  // namespace rankine::reproduce

namespace rankine::claims {

using formulas::Letters;
using formulas::Value;

inline constexpr int kMostSegments = 256;

// The algorithm does not exist for these parameters; the case does not count.
struct NotDefined : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The catalogue has no such line: the claim cannot be checked.
struct NotInCatalogue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct RunText {
  std::string name;  // empty: quantities go without
  std::string collective, algorithm;
  std::vector<std::pair<std::string, std::string>> options;  // later ones count
};

// `before` are options that stand before each run's own. Mistakes throw std::logic_error.
std::vector<RunText> read_runs(std::string_view runs, std::string_view before);

// A run for live ranks: those of a communicator that is on the network, under the virtual clock.
struct LiveRun {
  RunText run;
  Letters letters{};
  // What the ranks call in its place, while its time is still what theirs is compared with. For
  // tests: that shall be a fault.
  std::optional<RunText> made{};
};

// What came of it.
struct Executed {
  std::string fault{};  // empty: data right and time equal to the simulated one, to the last tick
  double seconds = 0;
  bool first = false;  // nobody had asked for it before
};

// Simulates, and remembers. Not thread-safe.
class Runs {
 public:
  Runs();
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  // nullopt: no run of that name, or no such quantity. Throws NotDefined, NotInCatalogue.
  std::optional<Value> quantity(const std::vector<RunText>& runs, const Letters& letters,
                                std::string_view name, std::span<const Value> arguments = {});

  // What a statement of engine/papers comes to; the first call works all of them out. An unknown
  // id throws std::logic_error.
  const reproduce::Outcome& reproduced(std::string_view id);
  // The same by flow or packet; each by itself.
  const reproduce::Outcome& reproduced(std::string_view id, Fidelity fidelity);

  // The figures by Eq. (1), for as long as this lives.
  std::span<const reproduce::Panel> panels();

  // How many ranks make a run, and how many blocks its messages carry, each one counted by every
  // message that carries it: what live ranks need time and memory for.
  int ranks_of(const RunText& run, const Letters& letters) const;
  std::uint64_t moves_of(const RunText& run, const Letters& letters);

  // All of them by live ranks (execute.h), each once ever, on all cores; results in their order.
  // `progress` is called with how many have been made and how many are to be: from any thread, one
  // call at a time.
  std::vector<Executed> execute(
      std::span<const LiveRun> runs,
      const std::function<void(std::size_t done, std::size_t all)>& progress = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankine::claims
