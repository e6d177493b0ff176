// Contests: all algorithms of a collective at one size, measured in turns.
//
// A round of a contest goes over all its contenders, warm and fresh, apart and in place, one after
// the other: what changes slowly on the machine falls on all of them alike. Rounds of different
// contests take turns, so those of one see the machine at different times.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/tools/regret.h"
#include "engine/tools/workbench.h"

namespace rankine::tools {

enum class Protocol : unsigned char { warm_apart, warm_in_place, fresh_apart, fresh_in_place };
inline constexpr std::size_t kProtocols = 4;
std::string_view name_of(Protocol protocol);
// Whether it has a say in the choice: not how an all-reduce fares in place, where calls follow the
// default and not the table (choose.cc).
bool counts(Protocol protocol, Collective collective);

struct Contest {
  Collective collective = Collective::all_reduce;
  int ranks = 2;
  std::size_t bytes = 0;                        // M, as the call made of it has it
  std::vector<const Algorithm*> contenders{};   // no two with the same schedule
  std::vector<bool> running{};                  // of each: still measured
  std::vector<Context> contexts[kProtocols]{};  // one per round; none where it does not count
  std::size_t standard = 0;                     // the contender that stands for default_algorithm()

  std::size_t rounds() const { return contexts[0].size(); }
  // The contender with the schedule of that algorithm; contenders.size() where it cannot run.
  std::size_t stands_for(const Algorithm& algorithm) const;

  std::vector<std::string> schedules{};  // of each contender, to tell them apart
};

// Contests of a collective for each size, with every algorithm that takes so many ranks; those
// whose schedules are the same transfer by transfer as an earlier one's are left out. f32, sum,
// root 0. `costs` say what the default is. Collectives with one algorithm only give none.
std::vector<Contest> make_contests(Collective collective, int ranks,
                                   const std::vector<std::size_t>& sizes, const Costs& costs = {});
// What the contest measures, without an algorithm.
Call call_of(const Contest& contest);

// After a first, quick round: only the `most` contenders with the least regrets go on, those that
// came within `near` of the best in some protocol; the default and `keep` do in any case. What was
// measured is forgotten.
void keep_the_best(Contest& contest, std::size_t most, double near,
                   const Algorithm* keep = nullptr);

using Clock = std::chrono::steady_clock;

// Measures up to `rounds` rounds of each (quick: with few samples) until `deadline` has passed or a
// signal interrupts it (interrupt.h); a round that was begun then does not count.
// Next is always the contest that has taken the least time so far: short calls get their rounds
// even where long ones would fill the time. progress(contest, round) is called before each round.
// Errors: those of the calls, and wrong results.
Status race(Workbench& workbench, std::vector<Contest>& contests, int rounds, bool quick,
            Clock::time_point deadline, const std::function<void(const Contest&, int)>& progress);

}  // namespace rankine::tools
