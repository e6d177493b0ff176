// Groups of ranks that are processes.
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/split.h"
#include "tests/engine/api/process_play.h"

namespace rankine::testing_processes {
namespace {

std::int32_t sum_of(Member& group, std::int32_t mine) {
  std::int32_t sum = -1;
  group.all_reduce(std::span<const std::int32_t>(&mine, 1), std::span(&sum, 1)).throw_if_error();
  return sum;
}

Status wrong(const std::string& what) { return {Code::remote_error, "wrong " + what}; }

// Ranks whose number has the same rest, backwards; the last rank in none.
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

// Beside the whole, with messages and requests inside.
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

int groups(const Given& given) {
  const Joined joined = join(given.options());
  for (const int parts : {1, 2, 3}) {
    if (Status s = divide(*joined.member, parts); !s.ok()) return say(s);
  }
  if (Status s = nest(*joined.member); !s.ok()) return say(s);
  if (Status s = along_a_grid(*joined.member); !s.ok()) return say(s);
  return say(joined.member->barrier());
}

// A group goes on where the members that it comes from are gone.
int group_outlives(const Given& given) {
  std::unique_ptr<Member> group;
  {
    const Joined joined = join(given.options());
    group = joined.member->split(0, 0).value();
  }
  return say(add_up(*group, 1000, 20));
}

// Two groups, of which the last rank ends the second one.
int end_a_group(const Given& given, const SplitOptions& options) {
  const Joined joined = join(given.options());
  auto group = joined.member->split(given.rank / 2, 0, options);
  if (!group.ok()) return say(group.status());
  if (Status s = add_up(**group, 100, 3); !s.ok()) return say(s);
  // Nobody is still dividing what is about to end. (The end may come while some are in here.)
  static_cast<void>(joined.member->barrier());
  if (given.is_last()) {
    kill(getpid(), SIGKILL);
  }
  Status status;
  // The first group lives as long as nothing else ends it.
  for (int i = 0; status.ok() && (i < 1000 || given.rank >= 2 || options.ends_parent); ++i) {
    status = add_up(**group, 100, 1);
  }
  if (status.ok()) status = Status(Code::aborted, "lived");
  const Status whole = joined.member->barrier();
  return say(std::string(name_of(status.code())) + ": " + status.text() + "; then " +
             std::string(name_of(whole.code())));
}

// The last rank ends all, and the groups of the others hear of it.
int abort_above(const Given& given) {
  const Joined joined = join(given.options());
  auto group = joined.member->split(given.is_last() ? 1 : 0, 0);
  if (!group.ok()) return say(group.status());
  static_cast<void>(joined.member->barrier());  // which may be ended, too
  if (given.is_last()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // most are out of it
    joined.communicator->abort("enough");
  }
  Status status;
  while (status.ok()) status = add_up(**group, 100, 1);
  return say(status);
}

// Who does not come to a group.
int leave_before(const Given& given) {
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

// All are killed, each at a time of its own, as long as they divide themselves.
int killed_dividing(const Given& given) {
  if (given.at > 0) be_killed_after(given.at + 100 * given.rank, given.signal);
  auto made = meet(given.options());
  if (!made.ok()) return say(made.status());
  const auto member = (*made)->join(given.rank).value();
  Status status;
  while (status.ok()) status = divide(*member, 2);
  return say(status);
}

}  // namespace

const Plays& group_plays() {
  static const Plays all = {
      {"groups", groups},
      {"group_outlives", group_outlives},
      {"dies_in_a_group", [](const Given& given) { return end_a_group(given, {}); }},
      {"dies_in_a_group_of_all",
       [](const Given& given) { return end_a_group(given, {.ends_parent = true}); }},
      {"aborts_above_a_group", abort_above},
      {"dies_before_a_group", leave_before},
      {"groups_killed_at",
       [](const Given& given) {
         Given one = given;
         if (!given.is_last()) one.at = 0;
         return killed_dividing(one);
       }},
      {"groups_all_killed_at", killed_dividing},
  };
  return all;
}

}  // namespace rankine::testing_processes
