#include "engine/api/mpi/member.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/mpi/process.h"
#include "engine/api/mpi/rank_locations.h"
#include "engine/base/numbers.h"
#include "engine/base/statistics.h"
#include "engine/run/machine.h"

namespace rankine::mpi {

Member::State::State(std::shared_ptr<Process> process_, Rank rank_, const JoinOptions& options,
                     const Environment& environment,
                     std::shared_ptr<const WireOptions> wire_options,
                     std::unique_ptr<rankine::Member> member_)
    : process(std::move(process_)),
      rank(rank_),
      thread(process->locations()[rank].thread),
      timeout(options.timeout),
      forced(environment),
      nodes(std::move(wire_options)),
      wire(std::make_unique<Wire>(*process, rank, *nodes, options.most_message_bytes)),
      member(std::move(member_)) {
  process->add(*wire);
  member->run_by(wire.get());
  if (process->calls_mpi(thread)) member->set_yield_callback(wire.get());
}

Member::State::~State() {
  if (!process->reason().ok()) static_cast<void>(member.release());
}

std::string Member::State::ways_in_words() const {
  const auto& node = nodes->node;
  const auto near = std::count(node.begin(), node.end(), node[static_cast<std::size_t>(rank)]) - 1;
  const auto far = static_cast<std::ptrdiff_t>(node.size()) - 1 - near;
  return far == 0 && near > 0 ? "memory" : near == 0 ? "MPI" : "memory and MPI";
}

Result<Call> Member::State::on_nodes(const Call& given) const {
  if (given.options.transport.value_or(Transport::mailbox) != Transport::mailbox) {
    return invalid_argument("transport is " + std::string(name_of(*given.options.transport)) +
                            "; allowed over MPI are mailbox and none");
  }
  Call call = given;
  call.options.shared_payloads = false;
  if (process->locations().nodes() == 1) return call;
  const Algorithm* line = call.options.algorithm.empty()
                              ? forced.algorithm[static_cast<std::size_t>(call.collective)]
                              : find_algorithm(call.collective, call.options.algorithm);
  if (line == nullptr) return call;
  Status status = process->locations().take_nodes(*line, call.options);
  if (!status.ok()) return status;
  return call;
}

Status Member::State::call(const Call& given) {
  Status status = process->heard(thread);
  if (status.ok()) {
    const auto call = on_nodes(given);
    status = call.ok() ? member->call(*call) : call.status();
    if (status.code() == Code::timeout && wire->other_caller() >= 0) {
      status =
          Status(Code::mismatch, status.text() + "; rank " + std::to_string(wire->other_caller()) +
                                     " has sent a message of another call");
    }
    if (!goes_on(status.code())) status = process->end(thread, status);
  }
  process->end_call(thread);
  if (process->leads(thread)) {
    if (status.ok()) status = wait_for_others(given);
    process->move(thread);
  }
  return status;
}

Status Member::State::wait_for_others(const Call& call) {
  const std::uint32_t calls = process->calls_ended(thread);
  const std::int64_t limit =
      saturated_ns(call.options.timeout.count() > 0 ? call.options.timeout : timeout);
  std::int64_t deadline = 0;
  for (Idling idling(process->policy()); !process->others_have_ended(calls);) {
    process->move(thread);
    if (!idling.once()) continue;
    if (Status over = process->heard(thread); !over.ok()) return over;
    const std::int64_t now = now_ns();
    if (deadline == 0) deadline = deadline_after(now, limit);
    if (now < deadline) continue;
    return process->end(thread, make_error(Code::timeout, [&] {
                          return no_answer_within(limit, "rank " + std::to_string(rank)) +
                                 " calls MPI for other ranks of its process, which have not ended "
                                 "their calls";
                        }));
  }
  return {};
}

Member::Member(ProcessOwned<State> state) : state_(std::move(state)) {}

Member::~Member() {
  // In a forked process, or after MPI_Finalize, the state cannot be destroyed.
  if (!state_.get_deleter().home.is_this() || mpi_is_over()) static_cast<void>(state_.release());
}

Rank Member::rank() const { return state_->rank; }
int Member::ranks() const { return state_->process->locations().ranks(); }
const RankLocations& Member::locations() const { return state_->process->locations(); }
Sent Member::sent() const { return state_->wire->sent(); }

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
  return state_->call(call);
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

Result<std::string> Member::plan_of(const Call& given) {
  if (Status status = usable(state_); !status.ok()) return status;
  const auto call = state_->on_nodes(given);
  if (!call.ok()) return call.status();
  auto plan = state_->member->plan_of(*call);
  if (!plan.ok()) return plan;
  constexpr std::string_view kTransport = "mailbox transport";
  return plan->replace(plan->find(kTransport), kTransport.size(), state_->ways_in_words());
}

Result<OrderSet> Member::orders_of(const Call& given) {
  if (Status status = usable(state_); !status.ok()) return status;
  const auto call = state_->on_nodes(given);
  return call.ok() ? state_->member->orders_of(*call) : call.status();
}

void Member::abort(std::string_view why) {
  if (!usable(state_).ok()) return;
  static_cast<void>(state_->process->end(state_->thread, Status(Code::aborted, std::string(why))));
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
// Other ranks make the calls of the first pair, which move nothing there. One way: all messages of
// a turn follow one another. To and fro: each message waits for the message before it.
Result<double> time_of(Member& me, Rank other, int pairs, std::size_t bytes, Ways ways) {
  std::vector<std::byte> buffer(bytes);
  const int trips = bytes <= kShort ? 16 : 2;
  const int pair = me.rank() < pairs ? me.rank() : me.rank() - other;
  const bool takes_part = pair >= 0 && pair < pairs;
  const Rank one = takes_part ? pair : 0;
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
    for (int trip = 0; trip < trips; ++trip) {
      if (Status status = send(one, one + other); !status.ok()) return status;
      if (ways == Ways::one) continue;
      if (Status status = send(one + other, one); !status.ok()) return status;
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
  const RankLocations& locations = me.locations();
  if (locations.nodes() > 1 && locations.group() == 0) {
    return invalid_argument("the nodes are " + locations.in_words() +
                            "; allowed are nodes of equally many neighbouring ranks");
  }
  Fabric fabric;
  fabric.name = "measured";
  if (me.ranks() == 1) return invalid_argument("ranks is 1; allowed are 2 and more");
  const bool several = locations.nodes() > 1;
  const int group = several ? locations.group() : me.ranks();
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
