// The networks, cases, rows and curves of perf.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "algorithms/catalogue.h"
#include "engine/api/check.h"
#include "engine/api/tuning/choose.h"
#include "engine/cli/machine.h"
#include "engine/cli/perf.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"

namespace rankine::tools {

Result<std::vector<NamedNetwork>> read_call_networks(std::string_view argument,
                                                     std::string_view text) {
  std::vector<NamedNetwork> networks;
  if (text.starts_with('{')) {
    networks.push_back({std::string(text), nullptr});
  } else {
    for (const std::string_view part : split_list(text)) {
      if (networks.empty() || part.find('=') == std::string_view::npos) {
        networks.push_back({std::string(part), nullptr});
      } else {
        networks.back().name += fmt::format(",{}", part);
      }
    }
  }
  if (networks.empty()) {
    return invalid_argument(fmt::format("{} is ''; allowed are names of presets ({}) and files",
                                        argument, regime_names()));
  }
  for (NamedNetwork& one : networks) {
    auto found = find_call_network(one.name, argument);
    if (!found.ok()) {
      const std::string& why = found.status().text();
      return invalid_argument(
          why.starts_with(argument) ? why : fmt::format("{} is '{}': {}", argument, one.name, why));
    }
    one.network = std::move(*found);
    if (text.starts_with('{')) one.name = one.network->fabric.name;
  }
  return networks;
}

namespace {

// Reads a root, or all roots; {0} if the collective has no root.
Result<std::vector<Rank>> roots_of(Collective collective, const std::string& text, int ranks) {
  if (!has_root(collective) && text != "0") {
    return invalid_argument(
        fmt::format("--root is '{}'; {} has no root", text, name_of(collective)));
  }
  if (text == "all" || text == "-1") {
    std::vector<Rank> all(static_cast<std::size_t>(ranks));
    for (Rank r = 0; r < ranks; ++r) all[static_cast<std::size_t>(r)] = r;
    return all;
  }
  const auto root = parse_whole("--root", text, 0, ranks - 1);
  if (root.ok()) return std::vector<Rank>{*root};
  return invalid_argument(root.status().text() + ", or all");
}

// The algorithms to run, or the engine's choice, which has no name and no parameters and takes its
// dims from `on`, a wired network or nullptr.
Result<std::vector<AskedAlgorithm>> algorithms_to_run(AlgorithmArguments a, const Fabric* on,
                                                      std::vector<std::string>& notes,
                                                      const AdjustParams& adjust) {
  if (!a.algorithms.empty()) return asked_algorithms(a, notes, adjust);
  const auto params = read_params(a);
  if (!params.ok()) return params.status();
  if (on != nullptr && on->wiring.has_dims()) static_cast<void>(a.take("dims"));
  if (Status status = check_taken(a, {}); !status.ok()) return status;
  return std::vector<AskedAlgorithm>{{nullptr, *params}};
}

// Checks that a network can carry the algorithm's messages.
Status check_carried(const AskedAlgorithm& asked, const Fabric& fabric) {
  Params params = asked.params;
  params.segments = std::max(1, params.segments);
  const Schedule schedule = asked.algorithm->make(params);
  const CollectiveSpec goal = goal_of(*asked.algorithm, params, schedule);
  const auto empty = simulate(schedule, goal, fabric, 0);
  if (empty.ok()) return {};
  return {empty.status().code(), fmt::format("{} '{}': {}", name_of(asked.algorithm->collective),
                                             asked.algorithm->name, empty.status().text())};
}

// Sets the network of the cases, and leaves out algorithms that the network cannot carry.
Status put_on(const NamedNetwork& named, const Fabric& wired, bool all, PerfCases& cases) {
  CallNetwork network = *named.network;
  network.fabric = wired;
  cases.network = named.name;
  cases.peak = peak_of(wired);
  cases.on = std::make_shared<const CallNetwork>(std::move(network));
  Status refused;
  std::erase_if(cases.algorithms, [&](const AskedAlgorithm& one) {
    if (one.algorithm == nullptr || !refused.ok()) return false;
    Status status = check_carried(one, wired);
    if (status.ok()) return false;
    if (all) {
      cases.notes.push_back("left out: " + status.text());
    } else {
      refused = std::move(status);
    }
    return true;
  });
  return refused;
}

// The workbench for all cases. Errors: insufficient memory.
Result<Workbench::Options> bench_for(const PerfOptions& options, const PerfCases& cases) {
  Workbench::Options bench;
  bench.team = {.ranks = cases.ranks,
                .placement = options.placement,
                .timeout = options.timeout,
                .wait = options.wait,
                .network = cases.on,
                .ports = options.ports};
  bench.off_cache = options.measure.off_cache;
  std::size_t largest = 0;
  for (const PerfCase& one : cases.rows) {
    const BufferBytes bytes = buffer_bytes(one.call, cases.ranks);
    bench.buffers.input = std::max(bench.buffers.input, bytes.input);
    bench.buffers.output = std::max(bench.buffers.output, bytes.output);
    largest = std::max(largest, one.bytes);
  }
  std::size_t shift = 0;
  for (const DataType type : options.types) {
    shift = std::max(shift, size_of(type) * static_cast<std::size_t>(options.measure.unalign));
  }
  bench.buffers.input += shift;
  bench.buffers.output += shift;
  constexpr std::size_t kSpare = std::size_t{64} << 20;  // plans, threads
  Status status = Workbench::check_memory(
      bench,
      fmt::format("--maxbytes is {}: for a size of {}, {} ranks", format_size(*options.max_bytes),
                  format_size(largest), cases.ranks),
      kSpare);
  if (!status.ok()) return status;
  return bench;
}

// Divides all elements of a call's equal blocks by shares, one per rank; a collective with a block
// for each pair of ranks has the share of the rank that gets the block.
std::vector<std::size_t> divided(const Call& call, int ranks, const std::vector<int>& shares) {
  const auto blocks = static_cast<std::size_t>(natural_blocks(call.collective, ranks));
  std::uint64_t all = 0, before = 0;
  for (const int share : shares) all += static_cast<std::uint64_t>(share);
  const std::size_t elements = call.count * shares.size();
  std::vector<std::size_t> counts(blocks);
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t r = b % shares.size();
    if (r == 0) before = 0;
    const std::uint64_t after = before + static_cast<std::uint64_t>(shares[r]);
    counts[b] = static_cast<std::size_t>(elements * after / all - elements * before / all);
    before = after;
  }
  return counts;
}

Status check_counts(const PerfOptions& options, int ranks) {
  if (options.counts.empty()) return {};
  const std::string text = fmt::format("--counts is {}", fmt::join(options.counts, ","));
  if (natural_blocks(options.collective(), ranks) == 1) {
    return invalid_argument(fmt::format(
        "{}, --collective is '{}'; allowed are collectives with a block for each rank, such as "
        "all_gather",
        text, name_of(options.collective())));
  }
  const bool some = std::any_of(options.counts.begin(), options.counts.end(),
                                [](int share) { return share > 0; });
  if (some && options.counts.size() == static_cast<std::size_t>(ranks)) return {};
  return invalid_argument(
      fmt::format("{}; allowed are {} shares, one for each rank, not all of them 0", text, ranks));
}

}  // namespace

void set_ends(PerfOptions& options, int ranks, int cores) {
  if (!options.max_bytes) {
    // If ranks share cores, a call takes proportionally longer.
    const int share = std::max(1, (ranks + cores - 1) / std::max(1, cores));
    std::size_t most = PerfOptions::kMaxBytes;
    for (int i = 1; i < share; i *= 2) most /= 2;
    options.max_bytes = std::max(most, options.min_bytes.value_or(0));
  }
  if (!options.min_bytes) options.min_bytes = std::min(PerfOptions::kMinBytes, *options.max_bytes);
}

Result<std::vector<std::size_t>> sizes_of(const PerfOptions& options) {
  constexpr std::size_t kMostSizes = 100'000;
  const std::size_t first = *options.min_bytes, last = *options.max_bytes;
  if (first > last) {
    return invalid_argument(
        fmt::format("--minbytes is {}; allowed are sizes up to --maxbytes, "
                    "which is {}",
                    format_size(first), format_size(last)));
  }
  if (options.collective() == Collective::barrier) return std::vector<std::size_t>{0};
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size <= last;) {
    if (sizes.size() >= kMostSizes) {
      return invalid_argument(
          fmt::format("--stepbytes is {}; allowed are {} sizes from {} to {}: increase it",
                      format_size(options.step_bytes.value_or(0)), kMostSizes, format_size(first),
                      format_size(last)));
    }
    sizes.push_back(size);
    const std::size_t before = size;  // sizes stay below 2^63, so only the product can overflow
    if (options.step_bytes) {
      size += *options.step_bytes;
    } else if (size == 0) {
      size = PerfOptions::kMinBytes;
    } else {
      const auto factor = static_cast<std::size_t>(options.step_factor);
      if (size > last / factor) break;
      size *= factor;
    }
    if (size <= before) break;
  }
  return sizes;
}

Result<PerfCases> cases_of(PerfOptions& options, int cores, const NamedNetwork* network) {
  const Collective collective = options.collective();
  AlgorithmArguments arguments = options.algorithm;
  constexpr int kRanksOnNetwork = 8;
  arguments.begin.ranks = network != nullptr ? kRanksOnNetwork : std::max(2, cores);
  const std::string root_text = arguments.take("root").value_or("0");
  PerfCases cases;
  std::optional<Fabric> wired;  // one for all algorithms
  AdjustParams adjust;
  if (network != nullptr) {
    adjust = [&](const Algorithm& entry, Params& params) -> Status {
      const auto found = wire(network->network->fabric, entry, params);
      if (found.ok()) wired = *found;
      return found.status();
    };
  }
  const Fabric* const on = network != nullptr ? &network->network->fabric : nullptr;
  auto algorithms = algorithms_to_run(arguments, on, cases.notes, adjust);
  if (!algorithms.ok()) return algorithms.status();
  cases.algorithms = std::move(*algorithms);
  const Params params = cases.algorithms.front().params;
  const int ranks = cases.ranks = params.ranks;
  if (network != nullptr) {
    if (!wired) {
      const auto dims = std::exchange(cases.algorithms.front().params.dims, {});
      const auto found = wired_for(network->network->fabric, ranks, dims);
      if (!found.ok()) return found.status();
      wired = *found;
    }
    Status status = put_on(*network, *wired, arguments.all(), cases);
    if (!status.ok()) return status;
    if (cases.algorithms.empty()) return invalid_argument(cases.notes.back());
  }
  if (options.peak) cases.peak = options.peak;
  const auto roots = roots_of(collective, root_text, ranks);
  if (!roots.ok()) return roots.status();
  set_ends(options, ranks, cores);
  const auto sizes = sizes_of(options);
  if (!sizes.ok()) return sizes.status();
  if (Status status = check_counts(options, ranks); !status.ok()) return status;
  const bool reducing = reduces(collective);
  std::vector<ReduceOp> ops = options.ops;
  if (!reducing) ops.resize(1);

  for (const DataType type : options.types) {
    for (const ReduceOp op : ops) {
      if (!takes(collective, type, op) && options.skip_unsupported) continue;
      for (const Rank root : *roots) {
        std::optional<std::size_t> last;
        for (const std::size_t size : *sizes) {
          PerfCase one;
          one.call = {.collective = collective, .type = type, .op = op, .root = root};
          one.call.peer = arguments.find("peer") ? params.peer : (root + 1) % ranks;
          one.call.count = count_for(collective, ranks, size, size_of(type));
          if (last == one.call.count) continue;  // rounding made it the same row
          last = one.call.count;
          if (reducing && !supports(type, op)) {
            return invalid_argument(fmt::format("--op is '{}' with --datatype '{}'; {}",
                                                name_of(op), name_of(type), supported_ops(type)));
          }
          if (!options.counts.empty()) {
            one.call.counts = cases.counts.emplace_back(divided(one.call, ranks, options.counts));
          }
          if (Status status = check_call(one.call, ranks); !status.ok()) {
            return invalid_argument(
                fmt::format("size is {}: {}", format_size(size), status.text()));
          }
          one.bytes = one.call.count * counts_per_size(collective, ranks) * size_of(type);
          for (const AskedAlgorithm& each : cases.algorithms) {
            one.call.options = {.transport = options.transport,
                                .order = options.order,
                                .shared_payloads = options.shared_payloads};
            if (each.algorithm != nullptr) one.call.options.algorithm = each.algorithm->name;
            set_parameters(each.params, one.call.options);
            if (cases.on != nullptr && each.algorithm != nullptr &&
                each.algorithm->takes("segments") && each.params.segments == 0) {
              const auto best = best_segments(*each.algorithm, each.params, cases.on->fabric,
                                              one.bytes, {.sync = cases.on->sync});
              if (!best.ok()) return best.status();
              one.call.options.segments = *best;
            }
            cases.rows.push_back(one);
          }
        }
      }
    }
  }
  if (cases.rows.empty()) {
    return invalid_argument(
        "--op and --datatype leave no case; allowed are operations that one of these types has");
  }
  auto bench = bench_for(options, cases);
  if (!bench.ok()) return bench.status();
  cases.bench = std::move(*bench);
  return cases;
}

Result<std::vector<PerfCases>> all_cases_of(PerfOptions& options, int cores) {
  std::vector<const NamedNetwork*> networks;
  for (const NamedNetwork& one : options.networks) networks.push_back(&one);
  if (networks.empty()) networks.push_back(nullptr);
  std::vector<PerfCases> all;
  for (const NamedNetwork* network : networks) {
    auto cases = cases_of(options, cores, network);
    if (!cases.ok()) return cases.status();
    all.push_back(std::move(*cases));
  }
  return all;
}

namespace {

// The segments of a call that left their number to the engine.
Result<int> chosen_segments(const Algorithm& entry, const PerfCase& one, const PerfCases& cases) {
  if (cases.on == nullptr) return choose_segments(entry, cases.ranks, one.bytes);
  const auto all = predict(entry.collective, params_of(one.call.options, cases.ranks), one.bytes,
                           cases.on->fabric, {.sync = cases.on->sync});
  if (!all.ok()) return all.status();
  return std::find_if(all->begin(), all->end(),
                      [&](const Candidate& each) { return each.algorithm == &entry; })
      ->params.segments;
}

Result<int> segments_of(const PerfCase& one, const Measured& measured, const PerfCases& cases) {
  const Algorithm* entry = find_algorithm(one.call.collective, measured.first().algorithm);
  if (entry == nullptr || !entry->takes("segments")) return 0;
  if (one.call.options.segments > 0) return one.call.options.segments;
  return chosen_segments(*entry, one, cases);
}

}  // namespace

double seconds_of(const Series& series) {
  return series.model_seconds.value_or(series.seconds.median);
}

std::vector<double> slowest_of(const Series& series) {
  if (series.of_rank.empty()) return series.samples;
  std::vector<double> slowest = series.of_rank.front();
  for (const std::vector<double>& rank : series.of_rank) {
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rank[i]);
  }
  return slowest;
}

std::vector<double> shown_batches(const Series& series, const PerfOptions& options) {
  std::vector<double> times = slowest_of(series);
  const std::size_t skipped =
      std::min(times.size(), static_cast<std::size_t>(options.skip_batches));
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(skipped));
  return times;
}

double algbw(const PerfRow& row, const Series& series) {
  const double seconds = seconds_of(series);
  return seconds > 0 ? static_cast<double>(row.bytes) / seconds / kGiga : 0;
}

double busbw(const PerfRow& row, const Series& series) {
  return algbw(row, series) * row.bus_factor;
}

std::optional<double> eta(const PerfRow& row, const Series& series) {
  return eta_of(busbw(row, series) * kGiga, row.peak);
}

Result<PerfRow> measure_row(Workbench& workbench, const PerfCase& one, const PerfCases& cases,
                            const PerfOptions& options) {
  const Call& call = one.call;
  std::optional<LatencyBracket> probe;
  auto measured = options.probe ? workbench.measure_steady(call, options.measure, probe.emplace())
                                : workbench.measure(call, options.measure);
  if (!measured.ok()) return measured.status();
  const auto segments = segments_of(one, *measured, cases);
  if (!segments.ok()) return segments.status();
  return PerfRow{.bytes = one.bytes,
                 .count = call.count,
                 .type = call.type,
                 .op = std::string(reduces(call.collective) ? name_of(call.op) : "none"),
                 .root = has_root(call.collective) ? call.root : -1,
                 .segments = *segments,
                 .bus_factor = bus_factor(call.collective, cases.ranks),
                 .measured = std::move(*measured),
                 .probe = probe,
                 .network = cases.network,
                 .peak = cases.peak,
                 .done = local_now()};
}

namespace {

// All algorithms, in the catalogue's order; nullptr for the engine's choice comes first.
std::vector<const Algorithm*> algorithms_of(const std::vector<PerfCases>& all) {
  std::vector<const Algorithm*> found;
  for (const PerfCases& cases : all) {
    for (const AskedAlgorithm& one : cases.algorithms) found.push_back(one.algorithm);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::string algorithm_of(const PerfCase& asked) {
  return asked.call.options.algorithm.empty() ? "the engine's choice"
                                              : std::string(asked.call.options.algorithm);
}

bool two_sizes(const PerfCases& cases) {
  std::vector<std::size_t> sizes;
  for (const PerfCase& row : cases.rows) {
    if (row.bytes > 0) sizes.push_back(row.bytes);
  }
  return !sizes.empty() &&
         std::any_of(sizes.begin(), sizes.end(), [&](auto each) { return each != sizes.front(); });
}

constexpr char kTwoSizes[] = "sizes from 1 byte, two of them, are needed";

}  // namespace

std::string plot_refusal(const PerfOptions& options, const PerfCases& cases) {
  if (options.cycles != 1) return "one cycle is needed, which is the default of --run_cycles";
  if (!options.networks.empty()) return curves_refusal(cases);
  return two_sizes(cases) ? "" : kTwoSizes;
}

std::string curves_refusal(const PerfCases& cases) {
  if (cases.ranks < 2) return "2 ranks and more are needed";
  const Call& first = cases.rows.front().call;
  for (const PerfCase& row : cases.rows) {
    const bool same =
        row.call.type == first.type && row.call.op == first.op && row.call.root == first.root;
    if (!same) return "one --datatype, one --op and one --root are needed";
  }
  return two_sizes(cases) ? "" : kTwoSizes;
}

std::vector<NetworkCurves> curves_of(const std::vector<PerfCases>& all,
                                     std::span<const PerfRow> rows) {
  const std::vector<const Algorithm*> algorithms = algorithms_of(all);
  std::vector<NetworkCurves> networks;
  std::size_t next = 0;
  for (const PerfCases& cases : all) {
    NetworkCurves network{cases.network, {}};
    for (const Algorithm* one : algorithms) {
      network.curves.push_back(
          {one == nullptr ? "the engine's choice" : std::string(one->name), {}});
    }
    for (const PerfCase& asked : cases.rows) {
      const PerfRow& row = rows[next++];
      const Algorithm* entry =
          asked.call.options.algorithm.empty()
              ? nullptr
              : find_algorithm(asked.call.collective, asked.call.options.algorithm);
      const auto at = std::find(algorithms.begin(), algorithms.end(), entry) - algorithms.begin();
      if (row.bytes == 0) continue;
      network.curves[static_cast<std::size_t>(at)].points.push_back(
          {static_cast<double>(row.bytes), seconds_of(row.measured.first()) * kMicro});
    }
    networks.push_back(std::move(network));
  }
  return networks;
}

std::string machine_svg(std::string_view what, const PerfCases& cases,
                        std::span<const PerfRow> rows) {
  const Call& first = cases.rows.front().call;
  bool types = false, ops = false, roots = false;
  for (const PerfCase& one : cases.rows) {
    types |= one.call.type != first.type;
    ops |= one.call.op != first.op;
    roots |= one.call.root != first.root;
  }
  Plot time{.title = fmt::format("{}: time", what),
            .y_label = "us, out of place",
            .log_y = true,
            .baseline = {}};
  Plot busbw{.title = fmt::format("{}: busbw", what), .y_label = "GB/s, out of place"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PerfRow& row = rows[i];
    if (row.bytes == 0) continue;
    std::string name = algorithm_of(cases.rows[i]);
    if (types) name += fmt::format(" {}", name_of(row.type));
    if (ops) name += fmt::format(" {}", row.op);
    if (roots) name += fmt::format(" root {}", row.root);
    const Series& series = row.measured.first();
    const auto add = [&](Plot& plot, double y) {
      auto curve = std::find_if(plot.curves.begin(), plot.curves.end(),
                                [&](const PlotCurve& each) { return each.name == name; });
      if (curve == plot.curves.end()) {
        curve = plot.curves.insert(curve, {.name = name});
      }
      curve->points.push_back({static_cast<double>(row.bytes), y});
    };
    add(time, seconds_of(series) * kMicro);
    add(busbw, tools::busbw(row, series));
  }
  fade_all_but(busbw, fade_all_but_least(time));
  std::vector<std::vector<Plot>> panels;
  for (Plot* plot : {&time, &busbw}) {
    fit_axes(*plot);
    // With one rank the bus carries nothing.
    if (plot->y_high > plot->y_low) panels.push_back({std::move(*plot)});
  }
  return grid_to_svg(panels);
}

}  // namespace rankine::tools
