// A schedule message by message, a run of a claim set up with its letters, and the quantities of a
// simulated run.
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
  std::int64_t weight = 0;  // in units of 1 / Pricing::weight_per_byte() bytes
};

// The messages in the order of the schedule. A multicast is one message to each receiver.
std::vector<Message> messages_of(const Schedule& schedule, const Pricing& pricing);

// Sums of weights (largest_message: the largest weight).
std::int64_t sent_between(const std::vector<Message>& messages, Rank from, Rank to);
std::int64_t sent_between(const std::vector<Message>& messages, int round, Rank from, Rank to);
std::int64_t sent_by(const std::vector<Message>& messages, Rank rank);
std::int64_t largest_message(const std::vector<Message>& messages);
// The sum of the busiest rank in that round.
std::int64_t most_sent_in(const std::vector<Message>& messages, int round);
// The first and the last round in which a rank sends; 0: it sends nothing.
int first_round_of(const std::vector<Message>& messages, Rank rank);
int last_round_of(const std::vector<Message>& messages, Rank rank);

// The sum over the rounds of the busiest link's load on a torus of these sizes. Each message keeps
// to one path: dimension by dimension the shorter way, and up if both ways are equal. If such
// messages are split half and half between both ways, antipodes load the links less (wiring.h).
std::int64_t one_path_load(const std::vector<Message>& messages, const std::vector<int>& dims);

// A run of a claim's text with its letters filled in: an entry of the catalogue on a network.

struct Setup {
  const Algorithm* algorithm = nullptr;
  Params params;
  Fabric fabric;
  std::uint64_t bytes = 0;
  int nodes = 0;
  SimulateOptions options{.sync = Sync::rounds, .ideal_blocks = true};
};

// Throws NotInCatalogue, NotDefined, or std::logic_error for a mistake in the text.
Setup set_up(const RunText& run, const Letters& letters);

// A key of the setup: equal for setups with equal values of all options.
std::string key_of(const RunText& run, const Letters& letters);

// A value as a whole number. If it is not whole, throws std::logic_error, which names `what`.
std::int64_t whole(const Value& value, std::string_view what);

// One setup, simulated; quantities are computed when they are asked for. Throws NotDefined. Not
// thread-safe.
class Played {
 public:
  explicit Played(Setup setup);

  Value time() { return timed(setup_.fabric); }
  // A quantity of runs.h; nullopt: no such quantity, or wrong arguments.
  std::optional<Value> quantity(std::string_view name, std::span<const Value> arguments);
  std::uint64_t moves();  // as Runs::moves_of()
  // Lets live ranks make `made`. Returns their time, and the fault of the time or of the data.
  Executed execute_setup(const Setup& made);

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
  CollectiveSpec goal_;
  std::optional<Simulation> simulation_;
  std::vector<Message> messages_;  // empty: not asked for yet
};

// The least time over all numbers of segments, and the number that reaches it.
std::pair<Value, int> best_of(const Setup& setup);

}  // namespace rankine::claims
