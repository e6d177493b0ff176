// The measuring parts of tune: regrets, the fit of the cost model, the search for costs, and
// contests.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <span>

#include "engine/api/tuning/choose.h"
#include "engine/base/statistics.h"
#include "engine/cli/console.h"
#include "engine/cli/machine.h"
#include "engine/cli/question.h"
#include "engine/cli/tune.h"
#include "engine/cli/workbench.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/types.h"
#include "numa/cpus.h"

namespace rankine::tools {

double regret_in(const Context& times, std::size_t contender) {
  return times[contender] / *std::min_element(times.begin(), times.end());
}

double lasting_regret(const std::vector<Context>& rounds, std::size_t contender) {
  std::vector<double> regrets;
  for (const Context& times : rounds) regrets.push_back(regret_in(times, contender));
  if (regrets.empty()) return 1;
  std::sort(regrets.begin(), regrets.end(), std::greater<>());
  return regrets[regrets.size() < kFewestRounds ? 0 : std::max<std::size_t>(1, regrets.size() / 4)];
}

Choice robust_choice(std::span<const std::vector<Context>> protocols, std::size_t contenders,
                     std::size_t standard, double margin) {
  const auto worst = [&](std::size_t contender) {
    double most = 1;
    for (const auto& rounds : protocols) most = std::max(most, lasting_regret(rounds, contender));
    return most;
  };
  const Choice own{standard, worst(standard)};
  Choice best = own;
  for (const auto& rounds : protocols) {
    if (rounds.size() < kFewestRounds) return own;
  }
  for (std::size_t i = 0; i < contenders; ++i) {
    const double regret = worst(i);
    if (regret < best.regret) best = {i, regret};
  }
  if (own.regret <= margin * best.regret) return own;
  for (const auto& rounds : protocols) {
    if (lasting_regret(rounds, standard) < own.regret) continue;
    std::vector<double> ratios;
    for (const Context& times : rounds) ratios.push_back(times[standard] / times[best.contender]);
    if (median(std::move(ratios)) > margin) return best;
  }
  return own;
}

Context median_over(const std::vector<Context>& contexts) {
  Context out;
  for (std::size_t i = 0; !contexts.empty() && i < contexts.front().size(); ++i) {
    std::vector<double> times;
    for (const Context& each : contexts) {
      if (each[i] != kNotTimed) times.push_back(each[i]);
    }
    out.push_back(times.empty() ? kNotTimed : median(std::move(times)));
  }
  return out;
}

RegretSummary summarise_regrets(const std::vector<double>& regrets) {
  RegretSummary out{.samples = regrets.size()};
  double logs = 0;
  for (std::size_t i = 0; i < regrets.size(); ++i) {
    logs += std::log(regrets[i]) / static_cast<double>(regrets.size());
    if (regrets[i] > out.max) {
      out.max = regrets[i];
      out.worst = i;
    }
  }
  out.geometric_mean = std::exp(logs);
  return out;
}

namespace {

constexpr std::size_t kUnknowns = 3;
using Row = std::array<double, kUnknowns>;

// Solves a x = b by elimination with pivots; false if a is singular.
bool solve(std::array<Row, kUnknowns> a, Row b, Row& x) {
  constexpr double kTiny = 1e-9;  // for a column scaled to 1
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < kUnknowns; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    if (std::abs(a[pivot][i]) < kTiny) return false;
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    for (std::size_t r = i + 1; r < kUnknowns; ++r) {
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c < kUnknowns; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  for (std::size_t i = kUnknowns; i-- > 0;) {
    double rest = b[i];
    for (std::size_t c = i + 1; c < kUnknowns; ++c) rest -= a[i][c] * x[c];
    x[i] = rest / a[i][i];
  }
  return true;
}

}  // namespace

Result<CostFit> fit_costs(const std::vector<CostPoint>& points) {
  std::vector<Row> rows;  // each row is divided by its seconds, so that the right-hand side is 1
  Row scale{};
  for (const CostPoint& point : points) {
    if (!(point.seconds > 0)) {
      return invalid_argument("point '" + point.what + "' of " + std::to_string(point.bytes) +
                              " bytes took " + std::to_string(point.seconds) + " seconds");
    }
    rows.push_back(
        {point.hops / point.seconds, point.moved / point.seconds, point.added / point.seconds});
    for (std::size_t i = 0; i < kUnknowns; ++i) scale[i] += rows.back()[i] * rows.back()[i];
  }
  std::array<Row, kUnknowns> normal{};
  Row right{}, x{};
  for (std::size_t i = 0; i < kUnknowns; ++i) scale[i] = scale[i] > 0 ? std::sqrt(scale[i]) : 1;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      right[i] += row[i] / scale[i];
      for (std::size_t j = 0; j < kUnknowns; ++j) {
        normal[i][j] += row[i] / scale[i] * row[j] / scale[j];
      }
    }
  }
  if (!solve(normal, right, x)) {
    return invalid_argument(std::to_string(points.size()) +
                            " points do not tell hops, bytes moved and bytes added apart");
  }
  CostFit fit;
  fit.model = {.alpha = x[0] / scale[0], .beta = x[1] / scale[1], .gamma = x[2] / scale[2]};
  double squares = 0;
  for (const Row& row : rows) {
    fit.residuals.push_back(row[0] * fit.model.alpha + row[1] * fit.model.beta +
                            row[2] * fit.model.gamma - 1);
    squares += fit.residuals.back() * fit.residuals.back();
  }
  fit.rms = std::sqrt(squares / static_cast<double>(rows.size()));
  return fit;
}

Result<std::vector<CostPoint>> measure_costs(double seconds) {
  constexpr std::size_t kSizes[] = {8, 64, 512, 4096, 32768, 262144, 1048576};
  constexpr std::size_t kLeastAdded = 4096;  // below, the call of the kernel dominates the time
  constexpr double kEnough = 5e-3;           // seconds for a point

  const std::size_t most = *std::rbegin(kSizes);
  auto workbench =
      Workbench::create({.team = {.ranks = 2, .tuned = false}, .buffers = {most, most}});
  if (!workbench.ok()) return workbench.status();
  auto alone = machine_team({.ranks = 1, .tuned = false});
  if (!alone.ok()) return alone.status();
  MeasureOptions options{.warmups = 4, .checks = 0, .to_and_fro = true, .in_place = false};
  options.seconds = std::min(kEnough, seconds / static_cast<double>(3 * std::size(kSizes)));
  const ReduceKernel add = find_reduce(DataType::f32, ReduceOp::sum);
  std::vector<float> data(most / sizeof(float)), other(data);  // sums of zeroes stay zeroes
  std::vector<CostPoint> points;
  for (const std::size_t bytes : kSizes) {
    const std::size_t count = bytes / sizeof(float);
    const auto m = static_cast<double>(bytes);
    const Call message{.collective = Collective::send_recv, .count = count, .peer = 1};
    // One hop: the root reads and adds the other rank's whole vector.
    const Call reduce{
        .collective = Collective::reduce, .count = count, .options = {.algorithm = "linear"}};
    for (const Call* call : {&message, &reduce}) {
      auto measured = (*workbench)->measure(*call, options);
      if (!measured.ok()) return measured.status();
      const bool adds = call == &reduce;
      points.push_back({adds ? "reduce to and fro" : "to and fro", bytes, 1, m, adds ? m : 0,
                        lower_quartile(std::move(measured->out_of_place.samples))});
    }
    if (bytes < kLeastAdded) continue;
    points.push_back({"add", bytes, 0, 0, m});
    Status run = (*alone)->run([&](Member&) {
      const auto call = [&] {
        const void* const sources[] = {data.data(), other.data()};
        add(data.data(), sources, 2, count, 0);
      };
      BatchSize size{.calls = 4};
      std::vector<double> samples;
      while (samples.size() < 12) {
        const double each = *time_warm(seconds_now, seconds_now, size.calls, call) / size.calls;
        if (size.settled) samples.push_back(each);
        if (!size.settled) size.learn(each, 200e-6, 4, 4096);
      }
      points.back().seconds = lower_quartile(std::move(samples));
    });
    if (!run.ok()) return run;
  }
  return points;
}

namespace {

using Clock = std::chrono::steady_clock;

struct CostTrial {
  std::size_t Costs::*field;
  Collective collective;
  bool in_place = false;
  bool from_here_on = false;  // true: the second form begins at the field; false: the first form
                              // ends at it
  int fewest_ranks = 2, most_ranks = 2;
  enum class Cores : std::uint8_t { any, own, shared } cores = Cores::any;
  std::size_t least_bytes, most_bytes;  // M
  // The number derived from M and the ranks that is compared with the field.
  std::size_t (*compared)(std::size_t bytes, std::size_t ranks);
  // Sets further costs so that the field decides.
  void (*given)(Costs& costs) = [](Costs&) {};
};

constexpr std::size_t kKiB = 1024;

std::size_t all_bytes(std::size_t bytes, std::size_t) { return bytes; }
std::size_t a_share(std::size_t bytes, std::size_t ranks) { return bytes / ranks; }
std::size_t all_vectors(std::size_t bytes, std::size_t ranks) { return bytes * ranks; }
std::size_t squared(std::size_t bytes, std::size_t ranks) { return bytes * ranks * ranks; }

constexpr int kMany = 64;
// clang-format off
const CostTrial kTrials[] = {
    {.field = &Costs::plain_push_max_bytes, .collective = Collective::all_reduce, .least_bytes = kKiB,
     .most_bytes = 256 * kKiB, .compared = all_bytes,
     .given = [](Costs& costs) { costs.pair_board_call_max_bytes = 0; }},
    {.field = &Costs::pair_board_call_max_bytes, .collective = Collective::all_reduce, .in_place = true,
     .least_bytes = 128, .most_bytes = 64 * kKiB, .compared = all_bytes},
    {.field = &Costs::one_shot_max_total_bytes, .collective = Collective::all_reduce, .fewest_ranks = 3,
     .most_ranks = kMany, .cores = CostTrial::Cores::own, .least_bytes = 256, .most_bytes = 8 * kKiB,
     .compared = all_vectors},
    {.field = &Costs::one_shot_read_max_total_bytes, .collective = Collective::all_reduce, .fewest_ranks = 3,
     .most_ranks = kMany, .cores = CostTrial::Cores::own, .least_bytes = 2 * kKiB, .most_bytes = 64 * kKiB,
     .compared = all_vectors, .given = [](Costs& costs) { costs.one_shot_max_total_bytes = 0; }},
    {.field = &Costs::crowded_one_shot_max_total_bytes, .collective = Collective::all_reduce, .fewest_ranks = 3,
     .most_ranks = kMany, .cores = CostTrial::Cores::shared, .least_bytes = 512, .most_bytes = 32 * kKiB,
     .compared = all_vectors, .given = [](Costs& costs) { costs.fixed_board_bytes = std::size_t{64} << 10; }},
    {.field = &Costs::stage_stream_min_bytes, .collective = Collective::all_reduce, .from_here_on = true,
     .most_ranks = kMany, .least_bytes = 2 * kKiB, .most_bytes = 512 * kKiB, .compared = a_share,
     .given = [](Costs& costs) { costs.stage_apart_min_bytes = 1; }},
    {.field = &Costs::stage_apart_min_bytes, .collective = Collective::all_reduce, .from_here_on = true,
     .most_ranks = kMany, .least_bytes = 4 * kKiB, .most_bytes = 4 * kKiB * kKiB, .compared = all_bytes},
    {.field = &Costs::stage_in_place_min_bytes, .collective = Collective::all_reduce, .in_place = true,
     .from_here_on = true, .most_ranks = kMany, .least_bytes = 4 * kKiB, .most_bytes = 4 * kKiB * kKiB,
     .compared = all_bytes},
    {.field = &Costs::one_round_max_bytes, .collective = Collective::reduce, .least_bytes = 8 * kKiB,
     .most_bytes = kKiB * kKiB, .compared = all_bytes},
    {.field = &Costs::root_reduce_max_bytes_n2, .collective = Collective::reduce, .fewest_ranks = 3,
     .most_ranks = kMany, .cores = CostTrial::Cores::own, .least_bytes = 256, .most_bytes = 64 * kKiB,
     .compared = squared},
    {.field = &Costs::fetch_max_bytes, .collective = Collective::all_reduce, .fewest_ranks = 3, .most_ranks = kMany,
     .cores = CostTrial::Cores::own, .least_bytes = 16 * kKiB, .most_bytes = 4 * kKiB * kKiB, .compared = all_bytes,
     .given = [](Costs& costs) { costs.push_max_ranks = 1; }},
    {.field = &Costs::board_read_max_bytes, .collective = Collective::all_gather, .fewest_ranks = 3,
     .most_ranks = kMany, .cores = CostTrial::Cores::own, .least_bytes = kKiB, .most_bytes = 32 * kKiB,
     .compared = a_share},
    {.field = &Costs::split_copies_min_bytes, .collective = Collective::broadcast, .from_here_on = true,
     .least_bytes = 4 * kKiB, .most_bytes = kKiB * kKiB, .compared = a_share},
    {.field = &Costs::claim_copy_min_bytes, .collective = Collective::broadcast, .from_here_on = true,
     .least_bytes = 16 * kKiB, .most_bytes = kKiB * kKiB, .compared = a_share},
    {.field = &Costs::string_copy_min_bytes, .collective = Collective::all_gather, .from_here_on = true,
     .least_bytes = 16 * kKiB, .most_bytes = 4 * kKiB * kKiB, .compared = a_share},
};
// clang-format on

// Teams of the two forms; one of them works at a time.
using Forms = std::array<std::unique_ptr<Workbench>, 2>;

Call call_of(const CostTrial& trial, std::size_t bytes, int ranks) {
  const bool by_rank = trial.collective == Collective::all_gather;
  const std::size_t parts = by_rank ? static_cast<std::size_t>(ranks) : 1;
  return {.collective = trial.collective, .count = bytes / parts / sizeof(float)};
}

Result<Forms> forms_of(const CostTrial& trial, const Costs& costs, int ranks) {
  const CostField& field = field_of(trial.field);
  Forms forms;
  for (const bool first : {true, false}) {
    Costs extreme = costs;
    trial.given(extreme);
    // With from_here_on and the greatest value, all sizes take the first form.
    extreme.*trial.field = first ? field.most : field.least;
    extreme.trial_max_bytes = 0;
    auto bench = Workbench::create(
        {.team = {.ranks = ranks, .tuned = false, .costs = extreme},
         .buffers = buffer_bytes(call_of(trial, trial.most_bytes, ranks), ranks)});
    if (!bench.ok()) return bench.status();
    forms[first ? 0 : 1] = std::move(*bench);
  }
  return forms;
}

// Many short batches for short calls, a few batches for calls of milliseconds.
MeasureOptions options_for(std::size_t bytes, bool fresh, bool quick) {
  constexpr std::size_t kSmall = 64 * 1024, kLarge = 4 * 1024 * 1024;
  MeasureOptions options{.warmups = bytes > kLarge ? 1 : 2, .checks = 0, .fresh = fresh};
  options.batches = bytes <= kSmall ? (fresh ? 40 : 15) : bytes <= kLarge ? 8 : 2;
  if (bytes > kLarge) options.calls = 1;
  if (quick) options.batches = (options.batches + 2) / 3;
  return options;
}

Result<double> time_of(Workbench& bench, const CostTrial& trial, std::size_t bytes, int ranks,
                       bool fresh) {
  auto measured = bench.measure(call_of(trial, bytes, ranks), options_for(bytes, fresh, false));
  if (!measured.ok()) return measured.status();
  return (trial.in_place ? measured->in_place : measured->out_of_place).seconds.median;
}

// Times each form at each size by either protocol, in several rounds; empty if the time was up.
Result<std::vector<FormTimes>> times_of(const CostTrial& trial, Forms& forms, int ranks,
                                        const CostSearch& search) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<FormTimes> out;
  for (std::size_t bytes = trial.least_bytes; bytes <= trial.most_bytes; bytes *= 2) {
    const std::size_t compared = trial.compared(bytes, n);
    std::array<double, 2> log_time{};
    for (const bool fresh : {false, true}) {
      std::array<std::vector<double>, 2> samples;
      for (int round = 0; round < search.rounds; ++round) {
        for (const std::size_t form : {0, 1}) {
          if (interruption() != 0 || Clock::now() > search.deadline)
            return std::vector<FormTimes>();
          const auto time = time_of(*forms[form], trial, bytes, ranks, fresh);
          const bool stopped = time.status().code() == Code::aborted && interruption() != 0;
          if (stopped) return std::vector<FormTimes>();
          if (!time.ok()) return time.status();
          samples[form].push_back(*time);
        }
      }
      for (const std::size_t form : {0, 1}) {
        log_time[form] += std::log(summarise(samples[form]).median) / 2;
      }
    }
    out.push_back(
        {compared + (trial.from_here_on ? 1 : 0), std::exp(log_time[0]), std::exp(log_time[1])});
  }
  return out;
}

// The sum of the logarithms of all sizes' times with that value of the field.
double log_time(std::span<const FormTimes> sizes, std::size_t value) {
  double sum = 0;
  for (const FormTimes& size : sizes) {
    sum += std::log(size.border <= value ? size.first : size.second);
  }
  return sum;
}

}  // namespace

Border best_border(std::span<const FormTimes> sizes, std::size_t before) {
  const double now = log_time(sizes, before);
  Border best{before, 1};
  double least = now;
  const auto consider = [&](std::size_t value) {
    const double time = log_time(sizes, value);
    if (time >= least) return;
    least = time;
    best.value = value;
  };
  consider(sizes.front().border - 1);
  for (const FormTimes& size : sizes) consider(size.border);
  best.gain = std::exp((now - least) / static_cast<double>(sizes.size()));
  return best;
}

Result<std::vector<CostFinding>> search_costs(const Costs& costs, int ranks,
                                              const CostSearch& search) {
  std::vector<CostFinding> findings;
  const auto cores = ranks > cpu_budget().cpus ? CostTrial::Cores::shared : CostTrial::Cores::own;
  for (const CostTrial& trial : kTrials) {
    if (ranks < trial.fewest_ranks || ranks > trial.most_ranks) continue;
    if (trial.cores != CostTrial::Cores::any && trial.cores != cores) continue;
    const auto asked = search.collectives;
    if (!asked.empty() && std::find(asked.begin(), asked.end(), trial.collective) == asked.end()) {
      continue;
    }
    if (interruption() != 0 || Clock::now() > search.deadline) break;
    CostFinding finding;
    finding.field = &field_of(trial.field);
    search.progress(finding.field->name);
    auto forms = forms_of(trial, settled(costs, findings), ranks);
    if (!forms.ok()) return forms.status();
    auto sizes = times_of(trial, *forms, ranks, search);
    if (!sizes.ok()) return sizes.status();
    if (sizes->empty()) break;
    finding.sizes = std::move(*sizes);
    finding.before = finding.after = costs.*trial.field;
    const Border border = best_border(finding.sizes, finding.before);
    if (border.gain >= kWorthIt) {
      finding.after = std::clamp(border.value, finding.field->least, finding.field->most);
      finding.gain = border.gain;
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

Costs settled(Costs costs, std::span<const CostFinding> findings) {
  for (const CostFinding& finding : findings) costs.*finding.field->value = finding.after;
  return costs;
}

namespace {

constexpr DataType kContestType = DataType::f32;

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
      transfers.push_back(fmt::format("{}{} {}{}", line, t.what.plane, t.where.plane,
                                      t.kind == TransferKind::reduce));
    });
    std::sort(transfers.begin(), transfers.end());
    text += '|';
    for (const std::string& line : transfers) text += line;
  }
  return text;
}

std::string schedule_of(const Algorithm& entry, int ranks, std::size_t bytes) {
  Params params;
  params.ranks = ranks;
  params.segments = choose_segments(entry, ranks, bytes);
  return entry.refusal(params) ? std::string() : text_of(entry.make(params));
}

// Times every running contender once by each protocol.
Status measure_round(Workbench& workbench, Contest& contest, bool quick) {
  std::array<Context, kProtocols> times;
  for (Context& each : times) each.assign(contest.contenders.size(), kNotTimed);
  for (const bool fresh : {false, true}) {
    for (std::size_t i = 0; i < contest.contenders.size(); ++i) {
      if (!contest.running[i]) continue;
      Call call = call_of(contest);
      call.options.algorithm = contest.contenders[i]->name;
      MeasureOptions options = options_for(contest.bytes, fresh, quick);
      // A check costs as much as a call; one check per contender is enough.
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
      times[first][i] = lower_quartile(std::move(measured->out_of_place.samples));
      times[first + 1][i] = lower_quartile(std::move(measured->in_place.samples));
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
    contest.bytes = count_for(collective, ranks, size, size_of(kContestType)) *
                    counts_per_size(collective, ranks) * size_of(kContestType);
    if (!contests.empty() && contests.back().bytes == contest.bytes)
      continue;  // equal bytes by rounding, or of a barrier
    const auto enter = [&contest](const Algorithm& entry) {
      std::string schedule = schedule_of(entry, contest.ranks, contest.bytes);
      if (schedule.empty() || std::find(contest.schedules.begin(), contest.schedules.end(),
                                        schedule) != contest.schedules.end()) {
        return;
      }
      contest.contenders.push_back(&entry);
      contest.schedules.push_back(std::move(schedule));
    };
    // The default's choices enter first, so that they keep their names among equal schedules.
    const auto standard = [&](std::size_t bytes) -> const Algorithm& {
      return default_algorithm(collective, ranks, bytes, Buffers::apart, costs);
    };
    enter(standard(contest.bytes));
    for (const std::size_t other : sizes) enter(standard(other));
    for (const Algorithm& entry : catalogue()) {
      if (entry.collective == collective && entry.other_bits.empty()) enter(entry);
    }
    contest.running.assign(contest.contenders.size(), true);
    if (contest.contenders.size() > 1) contests.push_back(std::move(contest));
  }
  return contests;
}

Call call_of(const Contest& contest) {
  return {.collective = contest.collective,
          .count = contest.bytes / counts_per_size(contest.collective, contest.ranks) /
                   size_of(kContestType),
          .type = kContestType,
          .peer = 1 % contest.ranks};
}

void keep_the_best(Contest& contest, std::size_t most, double near, const Algorithm* keep) {
  // The contender's best and worst regret over the protocols.
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
