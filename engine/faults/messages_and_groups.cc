// Messages between two ranks, and groups of ranks.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/run/machine.h"

namespace rankine::faults {
namespace {

// A message of a rank to itself is none that can fail.
CollectiveCase message_of(const FaultCase& test, Dice& dice) {
  CollectiveCase message = good_call(test, dice);
  message.in_place = false;
  message.peer = (message.root + 1 + dice.below(test.ranks - 1)) % test.ranks;
  return message;
}

Status send_or_receive(Member& me, const Call& call) {
  if (me.rank() == call.root) {
    return me.submit(Message{const_cast<void*>(call.in), call.count, call.type, call.peer});
  }
  return me.submit(Message{call.out, call.count, call.type, call.root, false});
}

}  // namespace

void play_messages(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase message = message_of(test, dice);
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
  {
    Scene scene(test, promises[kind], tally);
    std::vector<CaseBuffers> others(static_cast<std::size_t>(test.ranks));
    scene.run([&](Seat& seat) {
      const Rank rank = seat.rank();
      const bool is_end = rank == message.root || rank == message.peer;
      const How how{.make = send_or_receive};
      if (is_end && after_a_good_one && !seat.call(message, how)) return;
      if (is_end && kind == both_send_first) {
        // Each sends, and then receives.
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
          scene.judge().blame_wrong(fault);
        }
      } else if (rank == victim) {
        if (kind == leaves) {
          scene.judge().mark_fault();
          return seat.member.reset();
        }
        if (kind == never_comes) return wait_for([&] { return scene.over(1); });
        if (!seat.call(odd, how)) return;
      } else if (is_end) {
        if (!seat.call(message, how)) return;
      }
      seat.call(meeting(test, test.ranks));
    });
  }
  fresh_start(test, message, tally);
}

namespace {

// A rank's members of groups in which all are, and a barrier on each, in an order of its own.
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

void play_groups(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
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
  {
    Scene scene(test, promises[kind], tally);
    std::vector<Groups> groups(static_cast<std::size_t>(test.ranks));
    scene.run(
        [&](Seat& seat) {
          const Rank rank = seat.rank();
          Groups& mine = groups[static_cast<std::size_t>(rank)];
          if (rank == victim && kind == does_not_come) {
            return wait_for([&] { return scene.over(1); });
          }
          if (rank == victim && kind == bad_color) {
            scene.judge().answer(seat.member->split(-2, 0).status(), {{Code::invalid_argument}});
            return wait_for([&] { return scene.over(1); });
          }
          const Status made = mine.make(*seat.member, kGroups, {.ends_parent = kind == group_ends});
          if (!scene.judge().answer(made)) return;
          if (kind == member_goes) {
            if (rank == victim) {
              scene.judge().mark_fault();
              return mine.members.clear();
            }
            seat.call(meeting(test, test.ranks), {.make = [&](Member&, const Call& made_call) {
                        return mine.members.front()->call(made_call);
                      }});
            return;
          }
          scene.arrive();
          // All but one are in the groups when the end comes.
          if (rank == victim) return wait_for([&] { return scene.over(1); });
          seat.call(meeting(test, test.ranks),
                    {.make = [&](Member&, const Call&) { return mine.wait_on_all(rank); }});
        },
        [&] {
          if (kind != whole_ends && kind != group_ends) return;
          wait_for([&] { return scene.arrived() == test.ranks || scene.over(); });
          sleep_ns(2'000'000);
          scene.judge().mark_fault();
          if (kind == whole_ends) {
            scene.communicator().abort("enough");
          } else if (!groups.front().members.empty()) {
            groups.front().members.back()->communicator().abort("enough");
          }
        });
  }
  fresh_start(test, call, tally);
}

void play_group_after_whole(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const Rank victim = dice.below(test.ranks);
  const bool by_handler = dice.one_in(2);
  const int parts = 1 + dice.below(3);
  const int delay_us = dice.below(400);
  {
    Scene scene(test, {.at_once = true, .documented = {Code::aborted}, .same_text = false}, tally,
                {.director_at = victim});
    scene.run(
        [&](Seat& seat) {
          const Rank rank = seat.rank();
          std::vector<std::unique_ptr<Member>> groups;  // each of the one before
          for (int i = 0; i < parts; ++i) {
            auto group =
                (i == 0 ? *seat.member : *groups.back()).split(rank % 2 == 0 ? rank : 1, rank);
            if (!scene.judge().answer(group.status())) return;
            groups.push_back(std::move(*group));
          }
          scene.arrive();
          while (seat.call(call)) {
          }
          // This rank has been told, so no group has a call for it, even one that waits for nobody.
          for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
            if (scene.judge().answer((*group)->barrier())) {
              scene.judge().blame_wrong("rank " + std::to_string(rank) +
                                        " made a call on a group of what has ended");
            }
          }
        },
        [&] {
          wait_for([&] { return scene.arrived() == test.ranks || scene.any_done(); });
          sleep_ns(delay_us * 1'000);
          scene.judge().mark_fault();
          if (by_handler) {
            scene.communicator().abort();
          } else {
            scene.communicator().abort("enough");
          }
        });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
