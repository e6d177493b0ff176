// A schedule message by message, a run of a claim set up with its letters, the quantities of a
// simulated run, and its execution by live ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/fibers.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"
#include "engine/papers/runs.h"
#include "engine/run/wait.h"

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
  Rational slow{1};  // rank 0's seconds per byte, over those of the others
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

// Live ranks on one thread: Turns runs the ranks of a communicator as fibers, and execute() lets
// them make one call on a modelled network. A rank runs until it has to wait, then the next ready
// rank runs. Many ranks cost one core no more than few ranks do, in any order of their waits, and
// the order of running is deterministic.

// The scheduler that waiting ranks yield to (Member::set_yield_callback). For one thread.
class Turns : public YieldCallback {
 public:
  Turns() : fibers_(kStackBytes) {}

  // Runs part(r) of each rank, in turns; returns when all have ended. A part must not throw, and
  // may wait only in calls of a member that gives way to this object. `stuck` is called once if
  // every remaining rank waits and has looked in vain since the last progress: then only `stuck`,
  // for example by an abort of the communicator, can end their waits.
  void run(int ranks, const std::function<void(Rank)>& part, const std::function<void()>& stuck);

  void wait_for(const WaitTarget& awaited) noexcept override;
  void give_way(int turn) noexcept override;

 private:
  // Enough for planning a call.
  static constexpr std::size_t kStackBytes = std::size_t{1} << 20;

  // The next rank after the current one that can go on, or else the next one that waits (it looks
  // whether the communicator has ended). -1: all have ended.
  int next() const;

  Fibers fibers_;
  std::vector<bool> ended_;
  std::vector<WaitTarget> awaited_;               // by rank: its latest wait
  int left_ = 0;                                  // ranks that have not ended
  int in_vain_ = 0;                               // looks since the last progress
  const std::function<void()>* stuck_ = nullptr;  // nullptr: has been called
};

// An entry of the catalogue, called by the ranks of a communicator on a modelled network. All ranks
// take turns on the calling thread.

// Returns the end of the last message in seconds of the model, if blocks have exactly `bytes` / B
// bytes. The real data are a cache line per block, and each real byte stands for its share of
// `bytes`; the outputs are checked completely. Errors: the communicator's; wrong data
// (remote_error); all ranks wait for each other (aborted). `lower`: a transfer that the network
// cannot do becomes several messages.
Result<double> execute(const Algorithm& algorithm, const Params& params, const Fabric& fabric,
                       std::uint64_t bytes, Sync sync, bool lower);

}  // namespace rankine::claims
