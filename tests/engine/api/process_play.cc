// The plays of ranks that are processes: splits, messages, and calls on modelled networks.

#include "tests/engine/api/process_play.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/check.h"
#include "engine/api/network.h"
#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/faults/collective_case.h"
#include "tests/engine/api/simulated_times.h"

namespace rankine::testing_processes {
namespace {

std::int32_t sum_of(Member& group, std::int32_t mine) {
  std::int32_t sum = -1;
  group.all_reduce(std::span<const std::int32_t>(&mine, 1), std::span(&sum, 1)).throw_if_error();
  return sum;
}

Status wrong(const std::string& what) { return {Code::remote_error, "wrong " + what}; }

// Splits by rank modulo `parts`, in reverse order; the last rank joins no group.
Status divide(Member& me, int parts) {
  const bool alone = me.rank() == me.ranks() - 1;
  auto group = me.split(alone ? kNoColor : me.rank() % parts, -me.rank());
  if (!group.ok()) return group.status();
  if (alone) return *group == nullptr ? Status() : wrong("group of a rank in none");
  std::int32_t wanted = 0;
  int members = 0, above = 0;
  for (Rank r = me.rank() % parts; r < me.ranks() - 1; r += parts) {
    wanted += 1 << r;
    ++members;
    if (r > me.rank()) ++above;
  }
  if ((*group)->ranks() != members || (*group)->rank() != above) return wrong("order");
  for (int i = 0; i < 20; ++i) {
    if (sum_of(**group, 1 << me.rank()) != wanted) return wrong("sum of a group");
  }
  return add_up(**group, 100'000, 3);
}

// Uses nested splits together with the whole communicator, with messages and requests in a group.
Status nest(Member& me) {
  auto half = me.split(me.rank() / 2, 0);
  if (!half.ok()) return half.status();
  Member& mine = **half;
  auto alone = mine.split(mine.rank(), 0);
  if (!alone.ok()) return alone.status();
  for (int i = 0; i < 10; ++i) {
    std::int32_t one = 1, sum = 0, got = -1;
    const std::int32_t rank = me.rank();
    auto request = mine.start({.in = &one, .out = &sum, .count = 1, .type = DataType::i32});
    if (!request.ok()) return request.status();
    if (sum_of(me, 1) != me.ranks() || sum_of(**alone, 7) != 7) return wrong("sum");
    if (Status s = request->wait(); !s.ok()) return s;
    if (sum != mine.ranks()) return wrong("sum of a request");
    const Rank right = (mine.rank() + 1) % mine.ranks();
    const Rank left = (mine.rank() + mine.ranks() - 1) % mine.ranks();
    Status s =
        mine.exchange(std::span<const std::int32_t>(&rank, 1), right, std::span(&got, 1), left);
    if (!s.ok()) return s;
    if (got != me.rank() / 2 * 2 + left) return wrong("message in a group");
  }
  return {};
}

Status along_a_grid(Member& me) {
  const int rows = me.ranks() % 2 == 0 ? 2 : 1;
  auto grid = Grid::make(me, {{"row", rows}, {"column", me.ranks() / rows}});
  if (!grid.ok()) return grid.status();
  if (sum_of(grid->axis("row"), 1) != rows) return wrong("sum along rows");
  if (sum_of(grid->axis("column"), 1) != me.ranks() / rows) return wrong("sum along columns");
  return {};
}

int groups(const CallArguments& given) {
  const Joined joined = join(given.options());
  for (const int parts : {1, 2, 3}) {
    if (Status s = divide(*joined.member, parts); !s.ok()) return say(s);
  }
  if (Status s = nest(*joined.member); !s.ok()) return say(s);
  if (Status s = along_a_grid(*joined.member); !s.ok()) return say(s);
  return say(joined.member->barrier());
}

// A group still works after the members of its parent are destroyed.
int group_outlives(const CallArguments& given) {
  std::unique_ptr<Member> group;
  {
    const Joined joined = join(given.options());
    group = joined.member->split(0, 0).value();
  }
  return say(add_up(*group, 1000, 20));
}

// Splits into two groups; the last rank dies and so ends the second group.
int end_a_group(const CallArguments& given, const SplitOptions& options) {
  const Joined joined = join(given.options());
  auto group = joined.member->split(given.rank / 2, 0, options);
  if (!group.ok()) return say(group.status());
  if (Status s = add_up(**group, 100, 3); !s.ok()) return say(s);
  // After this barrier no rank is in split() any more. (The end may come while some ranks are in
  // the barrier.)
  static_cast<void>(joined.member->barrier());
  if (given.is_last()) {
    kill(getpid(), SIGKILL);
  }
  Status status;
  // The first group lives until the whole communicator ends.
  for (int i = 0; status.ok() && (i < 1000 || given.rank >= 2 || options.ends_parent); ++i) {
    status = add_up(**group, 100, 1);
  }
  if (status.ok()) status = Status(Code::aborted, "lived");
  const Status whole = joined.member->barrier();
  return say(std::string(name_of(status.code())) + ": " + status.text() + "; then " +
             std::string(name_of(whole.code())));
}

// The last rank dies after its part of a split, before it has a group.
int leave_before(const CallArguments& given) {
  Joined joined = join(given.options());
  joined.member->barrier().throw_if_error();
  if (given.is_last()) {
    auto split = StartedSplit::prepare(*joined.member, 0, 0);
    if (!split.ok()) return say(split.status());
    if (Status s = split->request().start(); !s.ok()) return say(s);
    if (Status s = split->request().wait(); !s.ok()) return say(s);
    kill(getpid(), SIGKILL);
  }
  return say(joined.member->split(0, 0).status());
}

// All ranks split repeatedly until they are killed, each at a different time.
int killed_dividing(const CallArguments& given) {
  return work_until_killed(given, given.at > 0 ? given.at + 100 * given.rank : 0,
                           [](Member& me, std::size_t) { return divide(me, 2); });
}

}  // namespace

const Plays& group_plays() {
  static const Plays all = {
      {"groups", groups},
      {"group_outlives", group_outlives},
      {"dies_in_a_group", [](const CallArguments& given) { return end_a_group(given, {}); }},
      {"dies_in_a_group_of_all",
       [](const CallArguments& given) { return end_a_group(given, {.ends_parent = true}); }},
      {"dies_before_a_group", leave_before},
      {"groups_killed_at",
       [](const CallArguments& given) {
         CallArguments one = given;
         if (!given.is_last()) one.at = 0;
         return killed_dividing(one);
       }},
      {"groups_all_killed_at", killed_dividing},
  };
  return all;
}

// Messages between two ranks that are processes.

namespace {

using Data = std::vector<std::int32_t>;

Data message(Rank from, Rank to, int number, std::size_t count) {
  Data data(count);
  std::iota(data.begin(), data.end(), from * 1'000'000 + to * 10'000 + number * 100);
  return data;
}

Status wrong_data(const std::string& where) { return {Code::remote_error, "wrong data " + where}; }

// Sends data from rank to rank, from the first to the last.
Status relay(Member& me, std::size_t count) {
  for (int i = 0; i < 20; ++i) {
    Data data(count);
    if (me.rank() == 0) data = message(0, 1, i, count);
    if (me.rank() > 0) {
      if (Status s = me.recv(std::span(data), me.rank() - 1); !s.ok()) return s;
      if (data != message(0, 1, i, count)) return wrong_data("in a relay");
    }
    if (me.rank() + 1 < me.ranks()) {
      if (Status s = me.send(std::span<const std::int32_t>(data), me.rank() + 1); !s.ok()) return s;
    }
  }
  return {};
}

// Messages round a ring, by prepared sends and by exchanges.
Status round_a_ring(Member& me, std::size_t count) {
  const int n = me.ranks();
  const Rank right = (me.rank() + 1) % n, left = (me.rank() + n - 1) % n;
  Data mine(count), theirs(count);
  auto sent = me.prepared().send(mine, right);
  if (!sent.ok()) return sent.status();
  for (int i = 0; i < 5; ++i) {
    const Data next = message(me.rank(), right, i, count);
    std::copy(next.begin(), next.end(), mine.begin());  // a prepared call keeps its address
    const Data wanted = message(left, me.rank(), i, count);
    if (Status s = sent->start(); !s.ok()) return s;
    if (Status s = me.recv(std::span(theirs), left); !s.ok()) return s;
    if (Status s = sent->wait(); !s.ok()) return s;
    if (theirs != wanted) return wrong_data("of a prepared message");
    theirs.assign(count, 0);
    const std::span<const std::int32_t> given(mine);
    if (Status s = me.exchange(given, right, std::span(theirs), left); !s.ok()) return s;
    if (theirs != wanted) return wrong_data("of an exchange");
  }
  return {};
}

// Every rank sends data to every rank, itself included, in random order, with a collective in the
// same group.
Status all_to_all_at_random(Member& me) {
  const int n = me.ranks();
  const auto size = static_cast<std::size_t>(n);
  std::mt19937 own(static_cast<unsigned>(me.rank())), same(3);
  for (int turn = 0; turn < 20; ++turn) {
    const std::size_t count = std::size_t{1} << same() % 17;
    std::vector<Data> sent, got(size, Data(count));
    for (Rank r = 0; r < n; ++r) sent.push_back(message(me.rank(), r, turn, count));
    std::vector<int> order(2 * size + 1);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), own);
    std::int32_t one = 1, sum = 0;
    const Status status = me.group([&] {
      for (const int what : order) {
        const auto peer = static_cast<std::size_t>(what % n);
        if (what == 2 * n) {
          me.all_reduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1))
              .throw_if_error();
        } else if (what < n) {
          me.send(std::span<const std::int32_t>(sent[peer]), what % n).throw_if_error();
        } else {
          me.recv(std::span(got[peer]), what % n).throw_if_error();
        }
      }
    });
    if (!status.ok()) return status;
    if (sum != n) return wrong_data("of a sum");
    for (Rank r = 0; r < n; ++r) {
      if (got[static_cast<std::size_t>(r)] != message(r, me.rank(), turn, count)) {
        return wrong_data("from rank " + std::to_string(r));
      }
    }
  }
  return {};
}

int messages(const CallArguments& given) {
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  // Counts that fit in a line, in a slot, and in neither, so scratch must grow and move.
  for (const std::size_t count : {0u, 1u, 12u, 500u, 5'000u, 300'000u}) {
    if (Status s = relay(me, count); !s.ok()) return say(s);
    if (Status s = round_a_ring(me, count); !s.ok()) return say(s);
  }
  if (Status s = all_to_all_at_random(me); !s.ok()) return say(s);
  return say(me.barrier());
}

// A message in flight arrives after the end of its sender; the next receive fails.
int message_outlives(const CallArguments& given) {
  const Joined joined = join(given.options());
  const Data data = message(0, 1, 0, 10);
  if (given.rank == 0) return say(joined.member->send(std::span<const std::int32_t>(data), 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Data got(10);
  if (Status s = joined.member->recv(std::span(got), 0); !s.ok()) return say(s);
  if (got != data) return say(wrong_data("of one that has ended"));
  return say(joined.member->recv(std::span(got), 0));
}

int messages_until_killed(const CallArguments& given) {
  return work_until_killed(given, given.is_last() ? given.at : 0, round_a_ring);
}

}  // namespace

const Plays& message_plays() {
  static const Plays all = {
      {"messages", messages},
      {"message_outlives", message_outlives},
      {"messages_killed_at", messages_until_killed},
  };
  return all;
}

// Ranks that are processes, on modelled networks: after every call each rank's time must equal the
// simulator's to the last digit, and the data must be right.

namespace {

// Calls every algorithm that the network can carry; returns the number of calls.
int call_all(Member& me, Rank of_all, const std::vector<Rank>& members, SimulatedTimes& told) {
  const auto n = static_cast<int>(members.size());
  CaseBuffers buffers;
  int made = 0;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective == Collective::barrier) continue;
    const auto params = told.params_for(entry, members, n / 2);
    if (!params) continue;
    const std::size_t count = 250 + static_cast<std::size_t>(made);
    CollectiveCase test{.collective = entry.collective,
                        .ranks = n,
                        .count = count,
                        .type = DataType::u32,
                        .root = params->root,
                        .peer = entry.takes("peer") ? params->peer : (params->root + 1) % n,
                        .seed = static_cast<std::uint64_t>(made),
                        .options = {.algorithm = entry.name}};
    set_parameters(*params, test.options);
    if (const std::string fault = run_case(me, test, buffers); !fault.empty()) {
      throw Error(Code::remote_error, std::string(entry.name) + ": " + fault);
    }
    const std::size_t blocks =
        static_cast<std::size_t>(natural_blocks(entry.collective, n)) /
        (entry.collective == Collective::all_to_all ? static_cast<std::size_t>(n) : 1);
    told.call(entry, *params, members, count * blocks * 4).status().throw_if_error();
    if (me.model_time() != told.seconds(of_all)) {
      throw Error(Code::remote_error, std::string(entry.name) + ": the model's time is " +
                                          std::to_string(me.model_time() * 1e6) + " us, not " +
                                          std::to_string(told.seconds(of_all) * 1e6));
    }
    ++made;
  }
  return made;
}

// Calls of all ranks, of groups with separate times, and messages between ranks.
int keep_simulated_time(const CallArguments& given) {
  const auto network = find_call_network(std::getenv("RANKINE_NETWORK")).value();
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  SimulatedTimes told(*network, given.ranks);
  std::vector<Rank> all, halves[2];
  for (Rank r = 0; r < given.ranks; ++r) {
    all.push_back(r);
    halves[r % 2].push_back(r);
  }
  int made = call_all(me, given.rank, all, told);
  // A split uses an all-gather of any algorithm, so the time restarts after it.
  const auto group = me.split(given.rank % 2, given.rank).value();
  me.barrier().throw_if_error();
  joined.communicator->restart_model_time();
  SimulatedTimes of_groups(*network, given.ranks);
  made += call_all(*group, given.rank, halves[given.rank % 2], of_groups);
  std::vector<std::int32_t> data(1000, given.rank);
  if (given.rank == 0) me.send(std::span<const std::int32_t>(data), 1).throw_if_error();
  const double before = me.model_time();
  if (given.rank == 1) {
    me.recv(std::span(data), 0).throw_if_error();
    if (data[999] != 0) return say("wrong message");
    if (me.model_time() <= before) return say("a message takes no time");
  }
  me.barrier().throw_if_error();
  return say(made > 60 ? "ok" : "only " + std::to_string(made) + " calls");
}

// The processes agree on one dilation of their wall clocks, and keep deadlines.
int keep_wall_time(const CallArguments& given) {
  const Joined joined = join(given.options());
  if (Status status = add_up(*joined.member, 1000, 5); !status.ok()) return say(status);
  joined.communicator->restart_model_time();
  if (Status status = add_up(*joined.member, 1000, 5); !status.ok()) return say(status);
  const NetworkReport report = joined.communicator->network_report();
  if (report.lateness.deadlines == 0) return say("no deadlines");
  const double least = report.seconds * report.dilate;  // real seconds
  if (report.elapsed < least) return say("time runs too fast");
  return say("dilated " + std::to_string(report.dilate));
}

}  // namespace

const Plays& network_plays() {
  static const Plays all = {{"keeps_simulated_time", keep_simulated_time},
                            {"keeps_wall_time", keep_wall_time}};
  return all;
}

}  // namespace rankine::testing_processes
