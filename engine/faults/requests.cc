// Fault families of requests: started calls, misused requests, messages, groups, and odd wait
// policies.

#include <chrono>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/run/machine.h"

namespace rankine::faults {
namespace {

using std::chrono_literals::operator""ms;

Status poll(Request& request) {
  for (;;) {
    const Result<bool> over = request.test();
    if (!over.ok()) return over.status();
    if (*over) return request.wait();
    yield_cpu();
  }
}

Status wait_by_and_by(Request& request) {
  for (;;) {
    const Result<bool> over = request.wait_for(1ms);
    if (!over.ok()) return over.status();
    if (*over) return {};
  }
}

enum Way { wait, test, wait_for_a_while, prepared, grouped };
constexpr int kWays = 5;

// Makes a call by a request, and a barrier after it if `barrier_behind`.
Status by_request(Member& me, const Call& call, Way way, bool barrier_behind) {
  if (way == grouped) {
    Status first;
    const Status all = me.group([&] {
      first = me.call(call);
      if (first.ok() && barrier_behind) first = me.barrier();
    });
    return first.ok() ? all : first;
  }
  Result<Request> request = way == prepared ? me.prepare(call) : me.start(call);
  if (!request.ok()) return request.status();
  if (way == prepared) {
    if (Status status = request->start(); !status.ok()) return status;
  }
  Result<Request> behind = Request();
  if (barrier_behind) behind = me.async().barrier();
  Status status = way == test               ? poll(*request)
                  : way == wait_for_a_while ? wait_by_and_by(*request)
                                            : request->wait();
  if (!barrier_behind || !behind.ok()) return status.ok() ? behind.status() : status;
  const Status last = behind->wait();
  return status.ok() ? last : status;
}

}  // namespace

void inject_started_calls(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                          Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  enum { leaves, never_calls, differs, throws, goes_with_requests };
  const int kind = dice.below(5);
  const bool barrier_behind = dice.one_in(2), after_good_ones = dice.one_in(2);
  const Promise promises[] = {
      {.at_once = true, .documented = {Code::rank_lost}},
      {.timeout = kShort, .documented = {Code::timeout}},
      {.documented = {Code::mismatch}},
      {.at_once = true, .documented = {Code::remote_error}},
      // The victim's call may have ended at once; then the victim has only left.
      {.at_once = true, .documented = {Code::aborted, Code::rank_lost}},
  };
  RankFixture fixture(test, promises[kind], tally);
  fixture.run([&](Seat& seat) {
    const auto way =
        static_cast<Way>(Dice(test.seed + static_cast<std::uint64_t>(seat.rank())).below(kWays));
    const How how{.make = [&](Member& me, const Call& made) {
      return by_request(me, made, way, barrier_behind);
    }};
    if (after_good_ones && !seat.call(call, how)) return;
    if (seat.rank() != victim) {
      if (seat.call(call, how)) seat.call(call, how);
      return;
    }
    fixture.judge().mark_fault();
    if (kind == leaves) seat.member.reset();
    if (kind == throws) {
      fixture.communicator().abort(Status(Code::remote_error, "a rank threw"));
    }
    if (kind == differs) {
      CollectiveCase odd = call;
      // A barrier has no other argument that could differ.
      if (call.collective == Collective::barrier) {
        odd.collective = Collective::all_reduce;
        odd.options = {};
      }
      odd.count = 5 * call.count + 7;
      if (seat.call(odd, how)) seat.call(call, how);
    }
    if (kind == goes_with_requests) {
      seat.buffers.fill(call, seat.rank());
      const Result<Request> one = seat.member->start(call_of(call, seat.buffers));
      if (!one.ok()) fixture.judge().answer(one.status());
      seat.member.reset();
    }
  });
}

void inject_misused_requests(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                             Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  {
    RankFixture fixture(test, {}, tally);
    const auto refused = [&](const Status& status) {
      if (status.code() != Code::invalid_argument) {
        fixture.judge().blame("misuse of a request returned '" + status.text() + "'");
      }
    };
    const auto misuse = [&](Member& me, const Call& made) -> Status {
      Result<Request> request = me.prepare(made);
      if (!request.ok()) return request.status();
      refused(request->wait());
      refused(request->test().status());
      if (Status status = request->start(); !status.ok()) return status;
      // If the call has ended already, a second start() would be allowed.
      if (const Result<bool> over = request->test(); !over.ok()) return over.status();
      Request moved = std::move(*request);
      refused(request->start());
      refused(request->wait());
      refused(moved.wait_for(-1ms).status());
      const Status status = moved.wait();
      refused(moved.wait());
      return status;
    };
    fixture.run([&](Seat& seat) {
      for (int i = 0; i < 2; ++i) {
        if (!seat.call(call, {.make = misuse})) return;
      }
    });
  }
  {
    RankFixture fixture(test, {.at_once = true, .documented = {Code::aborted}}, tally);
    fixture.run([&](Seat& seat) {
      const How started{
          .make = [&](Member& me, const Call& made) { return by_request(me, made, wait, true); }};
      if (!seat.call(call, started)) return;
      if (seat.rank() != victim) {
        seat.call(call, started);
        return;
      }
      seat.buffers.fill(call, victim);
      Result<Request> request = seat.member->start(call_of(call, seat.buffers));
      // The barrier can start only when all ranks have come to it, and no other rank does.
      Result<Request> behind = seat.member->async().barrier();
      fixture.judge().mark_fault();
      *request = Request();
      *behind = Request();
    });
  }
}

// Messages between two ranks, and groups of ranks.

namespace {

// The message goes to another rank, since a message to oneself cannot fail.
CollectiveCase message_of(const CollectiveCase& good, Dice& dice) {
  CollectiveCase message = good;
  message.in_place = false;
  message.peer = (message.root + 1 + dice.below(good.ranks - 1)) % good.ranks;
  return message;
}

Status send_or_receive(Member& me, const Call& call) {
  if (me.rank() == call.root) {
    return me.submit(Message{const_cast<void*>(call.in), call.count, call.type, call.peer});
  }
  return me.submit(Message{call.out, call.count, call.type, call.root, false});
}

}  // namespace

void inject_messages(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally) {
  const CollectiveCase message = message_of(good, dice);
  const Rank victim = dice.one_in(2) ? message.root : message.peer;
  enum { leaves, never_comes, count_differs, type_differs, both_send_first };
  const int kind = dice.below(5);
  const bool after_a_good_one = dice.one_in(2);
  const Promise promises[] = {
      {.at_once = true, .documented = {Code::rank_lost}, .same_text = false},
      {.timeout = kShort, .documented = {Code::timeout}, .same_text = false},
      {.documented = {Code::mismatch}, .same_text = false},
      {.documented = {Code::mismatch}, .same_text = false},
      {.same_text = false},
  };
  CollectiveCase odd = message;
  if (kind == count_differs) odd.count = message.count + 1;
  if (kind == type_differs) {
    odd.type = message.type == DataType::u8 ? DataType::u32 : DataType::u8;
    odd.op = ReduceOp::bxor;
  }
  CollectiveCase back = message;
  std::swap(back.root, back.peer);
  RankFixture fixture(test, promises[kind], tally);
  std::vector<CaseBuffers> others(static_cast<std::size_t>(test.ranks));
  fixture.run([&](Seat& seat) {
    const Rank rank = seat.rank();
    const bool is_end = rank == message.root || rank == message.peer;
    const How how{.make = send_or_receive};
    if (is_end && after_a_good_one && !seat.call(message, how)) return;
    if (is_end && kind == both_send_first) {
      // Each end sends first, and then receives.
      const CollectiveCase& first = rank == message.root ? message : back;
      const CollectiveCase& then = rank == message.root ? back : message;
      CaseBuffers& received = others[static_cast<std::size_t>(rank)];
      received.fill(then, rank);
      if (!seat.call(first, {.make = [&](Member& me, const Call& sent) {
                       Status got;
                       const Status all = me.group([&] {
                         got = send_or_receive(me, sent);
                         if (got.ok()) got = send_or_receive(me, call_of(then, received));
                       });
                       return got.ok() ? all : got;
                     }})) {
        return;
      }
      if (const std::string fault = received.check(); !fault.empty()) {
        fixture.judge().blame_wrong(fault);
      }
    } else if (rank == victim) {
      if (kind == leaves) {
        fixture.judge().mark_fault();
        return seat.member.reset();
      }
      if (kind == never_comes) return wait_for([&] { return fixture.over(1); });
      if (!seat.call(odd, how)) return;
    } else if (is_end) {
      if (!seat.call(message, how)) return;
    }
    seat.call(meeting(test, test.ranks));
  });
}

namespace {

// Groups of all ranks, as members of one rank. wait_on_all() makes a barrier on each: even ranks in
// one order, odd ranks in the reverse order.
struct Groups {
  std::vector<std::unique_ptr<Member>> members;

  Status make(Member& me, int n, const SplitOptions& options) {
    for (int i = 0; i < n; ++i) {
      auto group = me.split(0, 0, options);
      if (!group.ok()) return group.status();
      members.push_back(std::move(*group));
    }
    return {};
  }
  Status wait_on_all(Rank rank) {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t which = rank % 2 == 0 ? i : members.size() - 1 - i;
      auto request = members[which]->async().barrier();
      if (!request.ok()) return request.status();
      requests.push_back(std::move(*request));
    }
    return wait_all(requests);
  }
};

}  // namespace

void inject_groups(const FaultCase& test, Dice& dice, const CollectiveCase&, Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  enum { bad_color, does_not_come, whole_ends, group_ends, member_goes };
  const int kind = dice.below(5);
  constexpr int kGroups = 4;
  const Promise promises[] = {
      {.timeout = kShort, .documented = {Code::timeout}},
      {.timeout = kShort, .documented = {Code::timeout}},
      {.at_once = true, .documented = {Code::aborted}, .same_text = false},
      {.at_once = true, .documented = {Code::aborted}, .same_text = false},
      {.at_once = true, .documented = {Code::rank_lost}, .same_text = false},
  };
  RankFixture fixture(test, promises[kind], tally);
  std::vector<Groups> groups(static_cast<std::size_t>(test.ranks));
  fixture.run(
      [&](Seat& seat) {
        const Rank rank = seat.rank();
        Groups& mine = groups[static_cast<std::size_t>(rank)];
        if (rank == victim && kind == does_not_come) {
          return wait_for([&] { return fixture.over(1); });
        }
        if (rank == victim && kind == bad_color) {
          fixture.judge().answer(seat.member->split(-2, 0).status(), {{Code::invalid_argument}});
          return wait_for([&] { return fixture.over(1); });
        }
        const Status made = mine.make(*seat.member, kGroups, {.ends_parent = kind == group_ends});
        if (!fixture.judge().answer(made)) return;
        if (kind == member_goes) {
          if (rank == victim) {
            fixture.judge().mark_fault();
            return mine.members.clear();
          }
          seat.call(meeting(test, test.ranks), {.make = [&](Member&, const Call& made_call) {
                      return mine.members.front()->call(made_call);
                    }});
          return;
        }
        fixture.arrive();
        // All ranks but one are in the groups' barriers when the end comes.
        if (rank == victim) return wait_for([&] { return fixture.over(1); });
        seat.call(meeting(test, test.ranks),
                  {.make = [&](Member&, const Call&) { return mine.wait_on_all(rank); }});
      },
      [&] {
        if (kind != whole_ends && kind != group_ends) return;
        wait_for([&] { return fixture.arrived() == test.ranks || fixture.over(); });
        sleep_ns(2'000'000);
        fixture.judge().mark_fault();
        if (kind == whole_ends) {
          fixture.communicator().abort("enough");
        } else if (!groups.front().members.empty()) {
          groups.front().members.back()->communicator().abort("enough");
        }
      });
}

void inject_group_after_whole(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                              Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  const bool by_handler = dice.one_in(2);
  const int parts = 1 + dice.below(3);
  const int delay_us = dice.below(400);
  RankFixture fixture(test, {.at_once = true, .documented = {Code::aborted}, .same_text = false},
                      tally, {.director_at = victim});
  fixture.run(
      [&](Seat& seat) {
        const Rank rank = seat.rank();
        std::vector<std::unique_ptr<Member>> groups;  // each is a group of the one before
        for (int i = 0; i < parts; ++i) {
          auto group =
              (i == 0 ? *seat.member : *groups.back()).split(rank % 2 == 0 ? rank : 1, rank);
          if (!fixture.judge().answer(group.status())) return;
          groups.push_back(std::move(*group));
        }
        fixture.arrive();
        while (seat.call(call)) {
        }
        // This rank has been told, so each group must refuse its calls, even a group of one rank.
        for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
          if (fixture.judge().answer((*group)->barrier())) {
            fixture.judge().blame_wrong("rank " + std::to_string(rank) +
                                        " made a call on a group of an ended communicator");
          }
        }
      },
      [&] {
        wait_for([&] { return fixture.arrived() == test.ranks || fixture.any_done(); });
        sleep_ns(delay_us * 1'000);
        fixture.judge().mark_fault();
        if (by_handler) {
          fixture.communicator().abort();
        } else {
          fixture.communicator().abort("enough");
        }
      });
}

// Wait policies that keep ranks awake for ever, and deadlines that never come.

namespace {

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max();

constexpr WaitPolicy kPolicies[] = {
    {.mode = WaitPolicy::Mode::spin, .spin_ns = 100'000'000'000},
    {.mode = WaitPolicy::Mode::spin, .probes = 0, .spin_ns = kMostNs},
    {.mode = WaitPolicy::Mode::spin, .probes = kMost, .spin_ns = 0},
    {.mode = WaitPolicy::Mode::yield, .yield_ns = 100'000'000'000},
    {.mode = WaitPolicy::Mode::yield, .probes = kMost, .yield_ns = 0},
    {.mode = WaitPolicy::Mode::yield, .probes = 0, .yield_ns = kMostNs},
    {.mode = WaitPolicy::Mode::park, .probes = kMost},
};

}  // namespace

void inject_absurd_waits(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                         Tally& tally) {
  const Rank victim = dice.below(test.ranks);  // never calls
  const WaitPolicy policy = kPolicies[dice.below(static_cast<int>(std::size(kPolicies)))];
  {
    RankFixture fixture(test, {.timeout = kShort, .documented = {Code::timeout}}, tally,
                        {.wait = policy});
    fixture.run([&](Seat& seat) {
      if (seat.rank() != victim) seat.call(call);
    });
  }
  {
    RankFixture fixture(test,
                        {.timeout = std::chrono::milliseconds::max(),
                         .at_once = true,
                         .documented = {Code::aborted}},
                        tally, {.wait = policy});
    fixture.run(
        [&](Seat& seat) {
          if (seat.rank() != victim) seat.call(call);
        },
        [&] {
          wait_for([&] { return fixture.started() == test.ranks; });
          sleep_ns(5'000'000);
          fixture.judge().mark_fault();
          fixture.communicator().abort("the wait is given up");
        });
  }
}

}  // namespace rankine::faults
