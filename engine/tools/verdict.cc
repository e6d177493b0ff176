#include "engine/tools/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "engine/base/units.h"
#include "engine/tools/memory.h"

namespace rankine::tools {
namespace {

// Of the time for so many ranks: until when there is looking and choosing; the rest is for
// measuring what was chosen.
constexpr double kForLooking = 0.2, kForChoosing = 0.65;
constexpr std::size_t kGoOn = 4;  // contenders after the first round, and the default
constexpr double kNear = 2;       // who is never so near to the best in that round gives up

// All contests for so many ranks, small sizes first.
std::vector<Contest> contests_for(const TunePlan& plan, int ranks) {
  std::vector<Contest> contests;
  for (const Collective collective : plan.collectives) {
    for (Contest& one : make_contests(collective, ranks, plan.sizes, plan.costs)) {
      contests.push_back(std::move(one));
    }
  }
  std::stable_sort(contests.begin(), contests.end(),
                   [](const Contest& a, const Contest& b) { return a.bytes < b.bytes; });
  return contests;
}

Result<std::unique_ptr<Workbench>> workbench_for(const std::vector<Contest>& contests, int ranks,
                                                 const Costs& costs) {
  Workbench::Options options;
  options.team = {.ranks = ranks, .tuned = false, .costs = costs};
  for (const Contest& contest : contests) {
    const BufferBytes bytes = buffer_bytes(call_of(contest), ranks);
    options.buffers.input = std::max(options.buffers.input, bytes.input);
    options.buffers.output = std::max(options.buffers.output, bytes.output);
  }
  Status status = check_memory(Workbench::memory_needed(options), "buffers and scratch",
                               "--maxbytes: " + counted(ranks, "rank"));
  if (!status.ok()) return status;
  return Workbench::create(options);
}

// The protocols' medians, and what was taken against the best of each.
void judge(Verdict& verdict) {
  const Contest& contest = verdict.contest;
  if (contest.rounds() == 0) return;
  const auto regrets = [&](const Algorithm& algorithm) {
    std::vector<double> out;
    const std::size_t i = contest.stands_for(algorithm);
    for (const Context& times : verdict.medians) {
      out.push_back(times.empty() ? 1 : regret_in(times, i));  // empty: of no account here
    }
    return out;
  };
  for (const auto& contexts : contest.contexts) verdict.medians.push_back(median_over(contexts));
  verdict.standard_regrets = regrets(*verdict.standard);
  verdict.table_regrets = regrets(verdict.table != nullptr ? *verdict.table : *verdict.standard);
}

}  // namespace

Status reach_verdicts(const TunePlan& plan, int ranks, const TuningTable* table, double seconds,
                      Progress& progress, std::vector<Verdict>& verdicts, CRealTrials* trials) {
  std::vector<Contest> contests = contests_for(plan, ranks);
  if (contests.empty()) return {};
  auto workbench = workbench_for(contests, ranks, plan.costs);
  if (!workbench.ok()) return workbench.status();
  const auto begin = Clock::now();
  const auto after = [&](double part) {
    if (!plan.until_budget) return Clock::time_point::max();
    return begin + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(seconds * part));
  };
  const auto show = [&](const char* what) {
    return [&progress, what, begin](const Contest& contest, int round) {
      progress.show(
          fmt::format("{}, round {}: {} of {} among {} ranks, {}", what, round + 1,
                      name_of(contest.collective), format_bytes(contest.bytes), contest.ranks,
                      format_seconds(std::chrono::duration<double>(Clock::now() - begin).count())));
    };
  };
  const auto asked = [&](const Contest& contest) -> const Algorithm* {
    if (table == nullptr) return nullptr;
    const TuningRow* row = table->find(contest.collective, ranks, contest.bytes);
    return row != nullptr ? row->algorithm : nullptr;
  };

  const auto add_trials = [trials](const std::vector<Contest>& timed) {
    for (const Contest& contest : timed) {
      if (trials != nullptr) trials->add(contest);
    }
  };

  Status status = race(**workbench, contests, 1, true, after(kForLooking), show("looking"));
  if (!status.ok()) return status;
  add_trials(contests);
  std::erase_if(contests, [](const Contest& contest) { return contest.rounds() == 0; });
  for (Contest& contest : contests) keep_the_best(contest, kGoOn, kNear, asked(contest));
  if (table == nullptr) {
    status = race(**workbench, contests, plan.rounds, false, after(kForChoosing), show("choosing"));
    if (!status.ok()) return status;
    add_trials(contests);
  }
  const std::size_t first = verdicts.size();
  for (Contest& contest : contests) {
    Verdict verdict{.standard = contest.contenders[contest.standard], .table = asked(contest)};
    // Where there was not enough time to choose, the table stays silent.
    if (table == nullptr && contest.rounds() >= kFewestRounds) {
      const Choice choice =
          robust_choice(contest.contexts, contest.contenders.size(), contest.standard);
      verdict.table = contest.contenders[choice.contender];
      verdict.chosen_with = choice.regret;
    }
    verdict.contest = std::move(contest);
    // What a choice is worth is measured apart from what it was made from.
    for (auto& rounds : verdict.contest.contexts) rounds.clear();
    verdicts.push_back(std::move(verdict));
  }
  std::vector<Contest> again;
  for (std::size_t i = first; i < verdicts.size(); ++i) {
    again.push_back(std::move(verdicts[i].contest));
  }
  status = race(**workbench, again, plan.rounds, false, after(1), show("judging"));
  if (!status.ok()) return status;
  add_trials(again);
  for (std::size_t i = first; i < verdicts.size(); ++i) {
    verdicts[i].contest = std::move(again[i - first]);
    judge(verdicts[i]);
  }
  return {};
}

}  // namespace rankine::tools
