// A schedule message by message, as papers print it: lists of edges, traces, what goes when.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/network/fabric.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"
#include "engine/papers/runs.h"

namespace rankine::claims {

struct Message {
  int round = 1;  // rounds without a message are not counted
  Rank from = 0, to = 0;
  std::int64_t weight = 0;  // of Pricing::weight_per_byte() each
};

// In the order of the schedule; a multicast is a message to each of those who hear it.
std::vector<Message> messages_of(const Schedule& schedule, const Pricing& pricing);

// Weights that are largest where nothing else is said.
std::int64_t sent_between(const std::vector<Message>& messages, Rank from, Rank to);
std::int64_t sent_between(const std::vector<Message>& messages, int round, Rank from, Rank to);
std::int64_t sent_by(const std::vector<Message>& messages, Rank rank);
std::int64_t largest_message(const std::vector<Message>& messages);
// Of the busiest rank of the round.
std::int64_t most_sent_in(const std::vector<Message>& messages, int round);
// The first and the last round in which a rank sends; 0: it never does.
int first_round_of(const std::vector<Message>& messages, Rank rank);
int last_round_of(const std::vector<Message>& messages, Rank rank);

// Sum over the rounds of the busiest link's load on a torus of these sizes, where every message
// keeps to one path: dimension by dimension, in each the shorter way, and up where both are as
// long. Shared half and half between both ways, antipodes load the links less (wiring.h).
std::int64_t one_path_load(const std::vector<Message>& messages, const std::vector<int>& dims);

// A run of a claim's text with its letters filled in: a line of the catalogue under a network.

struct Setup {
  const Algorithm* algorithm = nullptr;
  Params params;
  Fabric fabric;
  std::uint64_t bytes = 0;
  int nodes = 0;
  SimulateOptions options{.sync = Sync::rounds, .ideal_blocks = true};
};

// Mistakes throw std::logic_error, or NotInCatalogue or NotDefined.
Setup set_up(const RunText& run, const Letters& letters);

// Two setups are the same where their options' values are.
std::string key_of(const RunText& run, const Letters& letters);

// A value that is to be a whole number; else `what` it is is in the error.
std::int64_t whole(const Value& value, std::string_view what);

// One setup, simulated: what can be read off it, each worked out when it is asked for.

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
