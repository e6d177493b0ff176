#include "engine/api/mpi/member.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/mpi/homes.h"
#include "engine/api/mpi/member_state.h"
#include "engine/base/statistics.h"
#include "engine/run/machine.h"

namespace rankine::mpi {

Member::State::State(const JoinOptions& options_, const Environment& environment,
                     std::shared_ptr<const CallClock> network_, const WaitPolicy& waits,
                     std::shared_ptr<Process> process_, Rank rank_, Within within, int tag_bases_)
    : process(std::move(process_)),
      rank(rank_),
      thread(process->homes()[rank].thread),
      options(options_),
      forced(environment),
      network(std::move(network_)),
      policy(waits),
      ways(process->homes().ways_of(rank, within == Within::memory)),
      tag_bases(tag_bases_),
      mail_numbers_(ways.size(), -1) {
  const std::vector<Rank>& others = process->mail_ranks();
  for (std::size_t i = 0; i < others.size(); ++i) {
    mail_numbers_[static_cast<std::size_t>(others[i])] = static_cast<int>(i);
  }
  mail_self_ = on_mail(rank);
  if (others.size() > 1)
    mail_.emplace(process->mail(), static_cast<int>(others.size()), mail_self_);
}

Member::State::~State() = default;

Member::Member(ProcessOwned<State> state) : state_(std::move(state)) {}

Member::~Member() {
  // In a forked process, or after MPI_Finalize, the state cannot be destroyed.
  if (!state_.get_deleter().home.is_this() || mpi_is_over()) static_cast<void>(state_.release());
}

Rank Member::rank() const { return state_->rank; }
int Member::ranks() const { return state_->process->homes().ranks(); }
const Homes& Member::homes() const { return state_->process->homes(); }
Sent Member::sent() const { return state_->sent; }

namespace {

// Error for a handle that was inherited by fork, or that has outlived MPI.
Status usable(const ProcessOwned<Member::State>& state) noexcept {
  if (!state.get_deleter().home.is_this()) {
    return make_error(Code::forked, [] {
      return "this process was forked from the process of this rank, and cannot use its MPI";
    });
  }
  if (mpi_is_over()) return make_error(Code::system, [] { return "MPI has been finalized"; });
  return {};
}

}  // namespace

Status Member::call(const Call& call) try {
  if (Status status = usable(state_); !status.ok()) return status;
  return state_->whole_call(call);
} catch (const std::bad_alloc&) {
  abort("no memory");
  return make_error(Code::out_of_memory, [&] {
    return "rank " + std::to_string(rank()) + " has no memory for " +
           std::string(name_of(call.collective));
  });
}

Status Member::barrier(const CallOptions& options) {
  return call(barrier_of(state_->barrier_in, state_->barrier_out, options));
}

Result<std::string> Member::plan_of(const Call& call) {
  if (Status status = usable(state_); !status.ok()) return status;
  state_->begin_waiting(call.options);
  const auto found = state_->find(call);
  if (!found.ok()) return found.status();
  if (Status status = state_->make_room(**found); !status.ok()) return status;
  const CachedPlan& prepared = *(*found)->prepared;
  return std::string(prepared.algorithm) +
         (prepared.parameters.empty() ? "" : ", " + prepared.parameters) + ", " +
         state_->ways_in_words();
}

Result<OrderSet> Member::orders_of(const Call& call) {
  if (Status status = usable(state_); !status.ok()) return status;
  state_->begin_waiting(call.options);
  const auto found = state_->find(call);
  if (!found.ok()) return found.status();
  return (*found)->prepared->orders;
}

void Member::abort(std::string_view why) {
  if (!usable(state_).ok()) return;
  static_cast<void>(state_->end_with(Status(Code::aborted, std::string(why))));
}

Status Member::health() const {
  Status status = usable(state_);
  return status.ok() ? state_->process->reason() : status;
}

namespace {

// The first length determines alpha.
constexpr std::size_t kLengths[] = {8, std::size_t{16} << 10, std::size_t{64} << 10,
                                    std::size_t{256} << 10, std::size_t{1} << 20};
constexpr std::size_t kShort = std::size_t{4} << 10;  // up to here a turn has many trips
constexpr std::size_t kAtOnce = std::size_t{256} << 10;
constexpr int kMostTurns = 200, kLeastTurns = 7;
constexpr std::int64_t kMostNs = 250'000'000;  // per length
constexpr int kMostTries = 8;

enum class Ways : std::uint8_t { one, to_and_fro };

// Returns the seconds per message between rank 0 and `other`, or between `pairs` such pairs at
// once, equal on all ranks: the median over turns, where a turn lasts until its last pair is done.
// Other ranks wait. One way: all messages of a turn follow one another. To and fro: each message
// waits for the message before it.
Result<double> time_of(Member& me, Rank other, int pairs, std::size_t bytes, Ways ways) {
  std::vector<std::byte> buffer(bytes);
  const int trips = bytes <= kShort ? 16 : 2;
  const int pair = me.rank() < pairs ? me.rank() : me.rank() - other;
  const bool takes_part = pair >= 0 && pair < pairs;
  const auto send = [&](Rank from, Rank to) {
    return me.call({.collective = Collective::send_recv,
                    .in = buffer.data(),
                    .out = buffer.data(),
                    .count = bytes,
                    .type = DataType::u8,
                    .root = from,
                    .peer = to});
  };
  std::vector<double> times;
  const std::int64_t began = now_ns();
  for (int turn = -1; turn < kMostTurns; ++turn) {
    if (Status status = me.barrier(); !status.ok()) return status;
    const std::int64_t start = now_ns();
    for (int trip = 0; trip < trips && takes_part; ++trip) {
      if (Status status = send(pair, pair + other); !status.ok()) return status;
      if (ways == Ways::one) continue;
      if (Status status = send(pair + other, pair); !status.ok()) return status;
    }
    const int messages = ways == Ways::one ? trips : 2 * trips;
    const double took = static_cast<double>(now_ns() - start) * 1e-9 / messages;
    // The time of the slowest pair, and 1 if rank 0 continues.
    double of_all[] = {
        takes_part ? took : 0,
        me.rank() == 0 && (turn < kLeastTurns || now_ns() - began < kMostNs) ? 1. : 0.};
    Status status = me.all_reduce(std::span<double>(of_all), ReduceOp::max);
    if (!status.ok()) return status;
    if (turn >= 0) times.push_back(of_all[0]);  // the first turn also makes plans
    if (of_all[1] == 0) break;
  }
  return median(std::move(times));
}

// On a busy machine the times may be invalid; then measure again.
Result<Link> link_between(Member& me, Rank other) {
  for (int attempt = 1;; ++attempt) {
    std::vector<TimedMessage> messages;
    for (const std::size_t bytes : kLengths) {
      const auto seconds = time_of(me, other, 1, bytes, Ways::to_and_fro);
      if (!seconds.ok()) return seconds.status();
      messages.push_back({bytes, *seconds});
    }
    const auto link = line_through(messages);
    if (link.ok()) return *link;
    if (attempt < kMostTries) continue;
    return invalid_argument("between ranks 0 and " + std::to_string(other) + ", measured " +
                            std::to_string(kMostTries) + " times: " + link.status().text());
  }
}

// Returns true if the ranks of a node slow each other down when all of them send to another node:
// together they take about `group` times as long as one rank alone, instead of about as long.
// Messages go one way, because to and fro one pair's arrivals can overlap another pair's
// departures.
Result<bool> nodes_share_a_link(Member& me, int group) {
  const auto alone = time_of(me, group, 1, kAtOnce, Ways::one);
  if (!alone.ok()) return alone.status();
  const auto together = time_of(me, group, group, kAtOnce, Ways::one);
  if (!together.ok()) return together.status();
  return *together > *alone * 0.5 * (1 + group);
}

}  // namespace

Result<Fabric> measure_network(Member& me) {
  const Homes& homes = me.homes();
  if (homes.nodes() > 1 && homes.group() == 0) {
    return invalid_argument("the nodes are " + homes.in_words() +
                            "; allowed are nodes of equally many neighbouring ranks");
  }
  Fabric fabric;
  fabric.name = "measured";
  if (me.ranks() == 1) return invalid_argument("ranks is 1; allowed are 2 and more");
  const bool several = homes.nodes() > 1;
  const int group = several ? homes.group() : me.ranks();
  if (group > 1) {
    const auto link = link_between(me, 1);
    if (!link.ok()) return link.status();
    fabric.link = *link;
  }
  if (!several) return fabric;
  const auto between = link_between(me, group);
  if (!between.ok()) return between.status();
  if (group == 1) {
    fabric.link = *between;
  } else {
    fabric.group = group;
    fabric.between = *between;
    // Only the first two nodes are measured; the last node may have fewer ranks.
    const bool full = me.ranks() >= 2 * group;
    const auto shared = full ? nodes_share_a_link(me, group) : Result<bool>(false);
    if (!shared.ok()) return shared.status();
    if (*shared) fabric.wiring.kind = WiringKind::two_level;
  }
  return fabric;
}

}  // namespace rankine::mpi
