#include "engine/tools/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/api/tuning/choose.h"
#include "engine/base/units.h"
#include "engine/run/kernels/types.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/metrics.h"

namespace rankine::tools {
namespace {

constexpr DataType kType = DataType::f32;

// Every transfer of every round, as text: equal texts, equal schedules.
std::string text_of(const Schedule& schedule) {
  std::string text = fmt::format("{}", schedule.blocks);
  std::vector<std::string> transfers;
  for (int k = 0; k < schedule.rounds; ++k) {
    transfers.clear();
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      std::string line;
      for (const IndexList* list : {&t.from, &t.to, &t.what.list, &t.where.list}) {
        list->for_each([&line](int i) { line += fmt::format("{},", i); });
        line += ';';
      }
      transfers.push_back(
          fmt::format("{}{} {}{}", line, t.what.plane, t.where.plane, t.act == Act::reduce));
    });
    std::sort(transfers.begin(), transfers.end());
    text += '|';
    for (const std::string& line : transfers) text += line;
  }
  return text;
}

std::string schedule_of(const Algorithm& line, int ranks, std::size_t bytes) {
  Params params;
  params.ranks = ranks;
  params.segments = choose_segments(line, ranks, bytes);
  return line.refusal(params) ? std::string() : text_of(line.make(params));
}

// Many short batches where calls are short, a few where one call takes milliseconds.
MeasureOptions options_for(std::size_t bytes, bool fresh, bool quick) {
  constexpr std::size_t kSmall = 64 * 1024, kLarge = 4 * 1024 * 1024;
  MeasureOptions options{.warmups = bytes > kLarge ? 1 : 2, .checks = 0, .fresh = fresh};
  options.batches = bytes <= kSmall ? (fresh ? 40 : 15) : bytes <= kLarge ? 8 : 2;
  if (bytes > kLarge) options.calls = 1;
  if (quick) options.batches = (options.batches + 2) / 3;
  return options;
}

// Every contender that is still running once by each protocol.
Status measure_round(Workbench& workbench, Contest& contest, bool quick) {
  std::array<Context, kProtocols> times;
  for (Context& each : times) each.assign(contest.contenders.size(), kNotTimed);
  for (const bool fresh : {false, true}) {
    for (std::size_t i = 0; i < contest.contenders.size(); ++i) {
      if (!contest.running[i]) continue;
      Call call = call_of(contest);
      call.options.algorithm = contest.contenders[i]->name;
      MeasureOptions options = options_for(contest.bytes, fresh, quick);
      // Checking costs as much as a call; one of the kind is enough.
      constexpr std::size_t kMostChecked = std::size_t{1} << 20;
      if (quick && !fresh && contest.bytes <= kMostChecked) options.checks = 1;
      auto measured = workbench.measure(call, options);
      if (!measured.ok()) return measured.status();
      const auto wrong =
          std::max<std::int64_t>(measured->out_of_place.wrong, measured->in_place.wrong);
      if (wrong > 0) {
        return {Code::system,
                fmt::format("{} '{}' of {}: {} wrong", name_of(contest.collective),
                            contest.contenders[i]->name, counted(contest.bytes, "byte"),
                            counted(wrong, "element"))};
      }
      const std::size_t first = fresh ? 2 : 0;
      times[first][i] = quiet_time(std::move(measured->out_of_place.samples));
      times[first + 1][i] = quiet_time(std::move(measured->in_place.samples));
    }
  }
  for (std::size_t p = 0; p < kProtocols; ++p) {
    if (counts(static_cast<Protocol>(p), contest.collective)) {
      contest.contexts[p].push_back(std::move(times[p]));
    }
  }
  return {};
}

}  // namespace

bool counts(Protocol protocol, Collective collective) {
  return collective != Collective::all_reduce || protocol == Protocol::warm_apart ||
         protocol == Protocol::fresh_apart;
}

std::string_view name_of(Protocol protocol) {
  constexpr std::array<std::string_view, kProtocols> kNames = {"warm", "warm in place", "fresh",
                                                               "fresh in place"};
  return kNames[static_cast<std::size_t>(protocol)];
}

std::size_t Contest::stands_for(const Algorithm& algorithm) const {
  const std::string schedule = schedule_of(algorithm, ranks, bytes);
  return static_cast<std::size_t>(std::find(schedules.begin(), schedules.end(), schedule) -
                                  schedules.begin());
}

std::vector<Contest> make_contests(Collective collective, int ranks,
                                   const std::vector<std::size_t>& sizes, const Costs& costs) {
  std::vector<Contest> contests;
  for (const std::size_t size : sizes) {
    Contest contest{.collective = collective, .ranks = ranks};
    contest.bytes = count_for(collective, ranks, size, size_of(kType)) *
                    counts_per_size(collective, ranks) * size_of(kType);
    if (!contests.empty() && contests.back().bytes == contest.bytes)
      continue;  // by rounding, or of a barrier
    const auto enter = [&contest](const Algorithm& line) {
      std::string schedule = schedule_of(line, contest.ranks, contest.bytes);
      if (schedule.empty() || std::find(contest.schedules.begin(), contest.schedules.end(),
                                        schedule) != contest.schedules.end()) {
        return;
      }
      contest.contenders.push_back(&line);
      contest.schedules.push_back(std::move(schedule));
    };
    // What the default takes somewhere first, so that it bears its own name among equals.
    const auto standard = [&](std::size_t bytes) -> const Algorithm& {
      return default_algorithm(collective, ranks, bytes, Buffers::apart, costs);
    };
    enter(standard(contest.bytes));
    for (const std::size_t other : sizes) enter(standard(other));
    for (const Algorithm& line : catalogue()) {
      if (line.collective == collective && line.other_bits.empty()) enter(line);
    }
    contest.running.assign(contest.contenders.size(), true);
    if (contest.contenders.size() > 1) contests.push_back(std::move(contest));
  }
  return contests;
}

Call call_of(const Contest& contest) {
  return {
      .collective = contest.collective,
      .count = contest.bytes / counts_per_size(contest.collective, contest.ranks) / size_of(kType),
      .type = kType,
      .peer = 1 % contest.ranks};
}

void keep_the_best(Contest& contest, std::size_t most, double near, const Algorithm* keep) {
  // The contender's best regret over the protocols, and its worst.
  struct Entry {
    std::size_t contender;
    double best, worst;
  };
  std::vector<Entry> order;
  for (std::size_t i = 0; i < contest.contenders.size(); ++i) {
    Entry entry{i, kNotTimed, 1};
    for (const auto& rounds : contest.contexts) {
      const double regret = lasting_regret(rounds, i);
      entry.best = std::min(entry.best, regret);
      entry.worst = std::max(entry.worst, regret);
    }
    order.push_back(entry);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Entry& a, const Entry& b) { return a.worst < b.worst; });
  const std::size_t kept = keep != nullptr ? contest.stands_for(*keep) : contest.contenders.size();
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Entry& entry = order[place];
    contest.running[entry.contender] = (place < most && entry.best <= near) ||
                                       entry.contender == contest.standard ||
                                       entry.contender == kept;
  }
  for (auto& rounds : contest.contexts) rounds.clear();
}

Status race(Workbench& workbench, std::vector<Contest>& contests, int rounds, bool quick,
            Clock::time_point deadline, const std::function<void(const Contest&, int)>& progress) {
  struct Turn {
    int rounds = 0;
    Clock::duration spent{};
  };
  std::vector<Turn> turns(contests.size());
  for (;;) {
    const auto begin = Clock::now();
    if (begin >= deadline || interruption() != 0) return {};
    std::size_t next = contests.size();
    for (std::size_t i = 0; i < contests.size(); ++i) {
      if (turns[i].rounds == rounds) continue;
      if (next == contests.size() || turns[i].spent < turns[next].spent) next = i;
    }
    if (next == contests.size()) return {};
    progress(contests[next], turns[next].rounds);
    Status status = measure_round(workbench, contests[next], quick);
    if (status.code() == Code::aborted && interruption() != 0) return {};
    if (!status.ok()) return status;
    ++turns[next].rounds;
    turns[next].spent += Clock::now() - begin;
  }
}

}  // namespace rankine::tools
