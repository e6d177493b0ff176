#include "engine/tools/cost_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "engine/base/statistics.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/workbench.h"
#include "numa/cpus.h"

namespace rankine::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct Trial {
  std::size_t Costs::*field;
  Collective collective;
  bool in_place = false;
  bool from_here_on = false;  // the field is where the second form begins, not where the first ends
  int fewest_ranks = 2, most_ranks = 2;
  enum class Cores : std::uint8_t { any, own, shared } cores = Cores::any;
  std::size_t least_bytes, most_bytes;  // M
  // What of M is compared with the field, among so many ranks.
  std::size_t (*compared)(std::size_t bytes, std::size_t ranks);
  // What else must be so for the field to decide.
  void (*given)(Costs& costs) = [](Costs&) {};
};

constexpr std::size_t kKiB = 1024;

std::size_t all_of_it(std::size_t bytes, std::size_t) { return bytes; }
std::size_t a_share(std::size_t bytes, std::size_t ranks) { return bytes / ranks; }
std::size_t all_vectors(std::size_t bytes, std::size_t ranks) { return bytes * ranks; }
std::size_t squared(std::size_t bytes, std::size_t ranks) { return bytes * ranks * ranks; }

constexpr int kMany = 64;
const Trial kTrials[] = {
    {.field = &Costs::push_plain,
     .collective = Collective::all_reduce,
     .least_bytes = kKiB,
     .most_bytes = 256 * kKiB,
     .compared = all_of_it,
     .given = [](Costs& costs) { costs.board_pair_read = 0; }},
    {.field = &Costs::board_pair_read,
     .collective = Collective::all_reduce,
     .in_place = true,
     .least_bytes = 128,
     .most_bytes = 64 * kKiB,
     .compared = all_of_it},
    {.field = &Costs::one_shot,
     .collective = Collective::all_reduce,
     .fewest_ranks = 3,
     .most_ranks = kMany,
     .cores = Trial::Cores::own,
     .least_bytes = 256,
     .most_bytes = 8 * kKiB,
     .compared = all_vectors},
    {.field = &Costs::one_shot_read,
     .collective = Collective::all_reduce,
     .fewest_ranks = 3,
     .most_ranks = kMany,
     .cores = Trial::Cores::own,
     .least_bytes = 2 * kKiB,
     .most_bytes = 64 * kKiB,
     .compared = all_vectors,
     .given = [](Costs& costs) { costs.one_shot = 0; }},
    {.field = &Costs::crowded_one_shot,
     .collective = Collective::all_reduce,
     .fewest_ranks = 3,
     .most_ranks = kMany,
     .cores = Trial::Cores::shared,
     .least_bytes = 512,
     .most_bytes = 32 * kKiB,
     .compared = all_vectors,
     .given = [](Costs& costs) { costs.board_few = std::size_t{64} << 10; }},
    {.field = &Costs::stage_stream,
     .collective = Collective::all_reduce,
     .from_here_on = true,
     .most_ranks = kMany,
     .least_bytes = 2 * kKiB,
     .most_bytes = 512 * kKiB,
     .compared = a_share,
     .given = [](Costs& costs) { costs.stage_apart = 1; }},
    {.field = &Costs::stage_apart,
     .collective = Collective::all_reduce,
     .from_here_on = true,
     .most_ranks = kMany,
     .least_bytes = 4 * kKiB,
     .most_bytes = 4 * kKiB * kKiB,
     .compared = all_of_it},
    {.field = &Costs::stage_in_place,
     .collective = Collective::all_reduce,
     .in_place = true,
     .from_here_on = true,
     .most_ranks = kMany,
     .least_bytes = 4 * kKiB,
     .most_bytes = 4 * kKiB * kKiB,
     .compared = all_of_it},
    {.field = &Costs::one_round,
     .collective = Collective::reduce,
     .least_bytes = 8 * kKiB,
     .most_bytes = kKiB * kKiB,
     .compared = all_of_it},
    {.field = &Costs::one_reader,
     .collective = Collective::reduce,
     .fewest_ranks = 3,
     .most_ranks = kMany,
     .cores = Trial::Cores::own,
     .least_bytes = 256,
     .most_bytes = 64 * kKiB,
     .compared = squared},
    {.field = &Costs::fetch_to,
     .collective = Collective::all_reduce,
     .fewest_ranks = 3,
     .most_ranks = kMany,
     .cores = Trial::Cores::own,
     .least_bytes = 16 * kKiB,
     .most_bytes = 4 * kKiB * kKiB,
     .compared = all_of_it,
     .given = [](Costs& costs) { costs.push_ranks = 1; }},
    {.field = &Costs::board_read,
     .collective = Collective::all_gather,
     .fewest_ranks = 3,
     .most_ranks = kMany,
     .cores = Trial::Cores::own,
     .least_bytes = kKiB,
     .most_bytes = 32 * kKiB,
     .compared = a_share},
    {.field = &Costs::share_copies,
     .collective = Collective::broadcast,
     .from_here_on = true,
     .least_bytes = 4 * kKiB,
     .most_bytes = kKiB * kKiB,
     .compared = a_share},
    {.field = &Costs::claim,
     .collective = Collective::broadcast,
     .from_here_on = true,
     .least_bytes = 16 * kKiB,
     .most_bytes = kKiB * kKiB,
     .compared = a_share},
    {.field = &Costs::string_copy,
     .collective = Collective::all_gather,
     .from_here_on = true,
     .least_bytes = 16 * kKiB,
     .most_bytes = 4 * kKiB * kKiB,
     .compared = a_share},
};

// Teams of the two forms, of which one is at work at a time.
using Forms = std::array<std::unique_ptr<Workbench>, 2>;

Call call_of(const Trial& trial, std::size_t bytes, int ranks) {
  const bool by_rank = trial.collective == Collective::all_gather;
  const std::size_t parts = by_rank ? static_cast<std::size_t>(ranks) : 1;
  return {.collective = trial.collective, .count = bytes / parts / sizeof(float)};
}

Result<Forms> forms_of(const Trial& trial, const Costs& costs, int ranks) {
  const CostField& field = field_of(trial.field);
  Forms forms;
  for (const bool first : {true, false}) {
    Costs extreme = costs;
    trial.given(extreme);
    // "From here on": with the greatest value no size is beyond it.
    extreme.*trial.field = first ? field.most : field.least;
    auto bench = Workbench::create(
        {.team = {.ranks = ranks, .tuned = false, .costs = extreme},
         .buffers = buffer_bytes(call_of(trial, trial.most_bytes, ranks), ranks)});
    if (!bench.ok()) return bench.status();
    forms[first ? 0 : 1] = std::move(*bench);
  }
  return forms;
}

Result<double> time_of(Workbench& bench, const Trial& trial, std::size_t bytes, int ranks,
                       bool fresh) {
  const bool small = bytes <= 64 * kKiB;
  auto measured = bench.measure(
      call_of(trial, bytes, ranks),
      {.warmups = 2, .batches = small ? (fresh ? 40 : 12) : 8, .checks = 0, .fresh = fresh});
  if (!measured.ok()) return measured.status();
  return (trial.in_place ? measured->in_place : measured->out_of_place).seconds.median;
}

// Each form at each size by either protocol, in several rounds; an empty list: time was up.
Result<std::vector<FormTimes>> times_of(const Trial& trial, Forms& forms, int ranks,
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

// Of all sizes with that value: the sum of the logarithms of their times.
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
  const auto cores = ranks > cpu_budget().cpus ? Trial::Cores::shared : Trial::Cores::own;
  for (const Trial& trial : kTrials) {
    if (ranks < trial.fewest_ranks || ranks > trial.most_ranks) continue;
    if (trial.cores != Trial::Cores::any && trial.cores != cores) continue;
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

}  // namespace rankine::tools
