// Memory that is refused: the k-th operator new, the k-th mmap.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "engine/api/team.h"
#include "engine/faults/failing_new.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "numa/system_calls.h"

namespace rankine::faults {
namespace {

// Which of n allocations fail, one attempt each: all of them where that is affordable, else the
// first, the last and some between.
std::vector<std::int64_t> to_fail(std::int64_t n, bool all, Dice& dice) {
  std::set<std::int64_t> chosen;
  constexpr std::int64_t kEnds = 8, kBetween = 16;
  for (std::int64_t k = 1; k <= n; ++k) {
    if (all || k <= kEnds || k > n - kEnds) chosen.insert(k);
  }
  for (int i = 0; n > 0 && i < kBetween; ++i) {
    chosen.insert(1 + static_cast<std::int64_t>(dice.next() % static_cast<std::uint64_t>(n)));
  }
  return {chosen.begin(), chosen.end()};
}

// A communicator made, used once and destroyed; every allocation of it counts.
void attempt(const FaultCase& test, const CollectiveCase& call, Tally& tally) {
  Judge judge(test, {.documented = {Code::out_of_memory}, .same_text = false}, tally);
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<Member>> members(static_cast<std::size_t>(test.ranks));
  Status status;
  {
    const AllocationsCount counts;
    auto made = Communicator::create(communicator_options(test));
    status = made.status();
    if (made.ok()) communicator = std::move(*made);
    for (Rank r = 0; r < test.ranks && status.ok(); ++r) {
      auto member = communicator->join(r);
      status = member.status();
      if (member.ok()) members[static_cast<std::size_t>(r)] = std::move(*member);
    }
  }
  if (judge.answer(status)) {
    std::vector<CaseBuffers> buffers(static_cast<std::size_t>(test.ranks));
    on_threads(test.ranks, [&](Rank r) {
      const auto i = static_cast<std::size_t>(r);
      judge.call(*members[i], buffers[i], call, {.allocations_count = true});
    });
  }
  const AllocationsCount counts;  // what needs memory in order to go would say so
  members.clear();
  communicator.reset();
}

void attempt_team(const FaultCase& test, Tally& tally) {
  Judge judge(test, {.documented = {Code::out_of_memory}, .same_text = false}, tally);
  std::unique_ptr<Team> team;
  Status status;
  {
    const AllocationsCount counts;
    auto made = Team::create(team_options(test));
    status = made.status();
    if (made.ok()) team = std::move(*made);
  }
  if (!judge.answer(status)) return;
  const std::function<void(Member&)> f = [](Member& me) { me.barrier().throw_if_error(); };
  {
    const AllocationsCount counts;
    status = team->run(f);
  }
  judge.answer(status);
}

// Fails each of the allocations of one attempt in turn, and looks that nothing stays behind.
template <class Attempt>
void fail_each(const FaultCase& test, bool all, Dice& dice, Tally& tally, const Attempt& once) {
  once();  // what is made once per process
  fail_allocation(0, false);
  once();
  const std::int64_t n = allocations_counted();
  for (const std::int64_t k : to_fail(n, all, dice)) {
    // Alone, or with all that come after: then errors must do without a text.
    const bool all_later = (static_cast<std::uint64_t>(k) + test.seed) % 2 == 0;
    watch_blocks(true);
    const std::int64_t before = blocks_alive();
    const std::size_t remarks = tally.remarks.size();
    fail_allocation(k, all_later);
    once();
    fail_allocation(0, false);
    const std::int64_t leaked = blocks_alive() - before;
    watch_blocks(false);
    if (leaked != 0 && tally.remarks.size() == remarks) {
      ++tally.undocumented;
      tally.remark(to_string(test) + ": allocation " + std::to_string(k) + " of " +
                   std::to_string(n) + (all_later ? " and all later" : "") + " failed, and " +
                   std::to_string(leaked) + " blocks stay behind");
    }
  }
}

std::atomic<int> maps_left{0};  // until one fails

void* failing_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                   off_t offset) {
  if (maps_left.fetch_sub(1) == 1) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real_system_calls().mmap(address, bytes, protection, flags, file, offset);
}

// Of ranks that are processes one has no memory left: where it meets the others, or makes its call.
// Those that it has not met yet wait until their deadline.
void refuse_a_process(const FaultCase& test, const CollectiveCase& call, Dice& dice, Tally& tally) {
  Judge judge(test, {}, tally);
  if (!new_can_fail()) return judge.excuse("operator new is the sanitizer's");
  const Rank victim = dice.below(test.ranks);
  // Up to about as many as there are, and more of the first.
  const std::int64_t k = 1 + dice.below(1 + dice.below(400));
  const bool all_later = dice.one_in(2);
  const auto meets = [&](Rank rank) {
    if (rank == victim) fail_allocation(k, all_later);
  };
  Scene scene(
      test,
      {.timeout = kShort, .documented = {Code::out_of_memory, Code::timeout}, .same_text = false},
      tally, {.before_they_meet = meets, .allocations_count = true});
  scene.run([&](Seat& seat) { seat.call(call, {.allocations_count = true}); });
}

}  // namespace

void play_allocation(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  if (test.processes) return refuse_a_process(test, call, dice, tally);
  constexpr int kAllUpTo = 4;  // ranks
  if (new_can_fail()) {
    fail_each(test, test.ranks <= kAllUpTo, dice, tally, [&] { attempt(test, call, tally); });
    // Of the engine's own threads, which ask the machine for its topology first: some.
    if (test.collective == Collective::all_reduce && test.ranks <= kAllUpTo) {
      fail_each(test, false, dice, tally, [&] { attempt_team(test, tally); });
    }
  }
  SystemCalls calls = real_system_calls();
  calls.mmap = failing_mmap;
  {
    const ScopedSystemCalls scope(calls);
    for (int k = 1; k <= std::min(2 * test.ranks, 16); ++k) {
      maps_left.store(k);
      attempt(test, call, tally);
    }
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
