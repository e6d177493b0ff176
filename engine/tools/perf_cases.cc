#include "engine/tools/perf_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/levels.h"
#include "algorithms/torus.h"
#include "engine/api/check.h"
#include "engine/tools/memory.h"
#include "engine/tools/metrics.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

Result<std::vector<Rank>> read_roots(const PerfOptions& options, int ranks) {
  if (!has_root(options.collective)) return std::vector<Rank>{0};
  if (options.roots == "all" || options.roots == "-1") {
    std::vector<Rank> all(static_cast<std::size_t>(ranks));
    for (Rank r = 0; r < ranks; ++r) all[static_cast<std::size_t>(r)] = r;
    return all;
  }
  const auto root = parse_whole("--root", options.roots, 0, ranks - 1);
  if (root.ok()) return std::vector<Rank>{*root};
  return invalid_argument(root.status().text() + ", or all");
}

// What is asked for must be taken by somebody.
Status check_taken(std::string_view option, std::string_view parameter, const std::string& value,
                   const std::vector<const Algorithm*>& lines, Collective collective) {
  std::string takers;
  for (const Algorithm* line : lines) {
    if (line != nullptr && line->takes(parameter)) return {};
  }
  for (const Algorithm& line : catalogue()) {
    if (line.collective != collective || !line.takes(parameter)) continue;
    takers += (takers.empty() ? "" : ", ") + std::string(line.name);
  }
  return invalid_argument(fmt::format("{} is {}; no algorithm named by --algo takes it; {} do{}",
                                      option, value, takers.empty() ? "none" : takers,
                                      takers.find(',') == std::string::npos ? "es" : ""));
}

// Algorithms to run; a null pointer: the engine's choice. Those that refuse this many ranks are
// left out and noted where all were asked for, and an error where they were named.
Result<std::vector<const Algorithm*>> algorithms_to_run(const PerfOptions& options, int ranks,
                                                        const std::vector<int>& skips,
                                                        std::vector<std::string>& notes) {
  if (options.algorithms.empty()) return std::vector<const Algorithm*>{nullptr};
  auto lines = read_algorithms("--algo", options.algorithms, options.collective);
  if (!lines.ok()) return lines;
  const bool all = options.algorithms == "all";
  std::vector<const Algorithm*> out;
  Params params;
  params.ranks = ranks;
  params.group = options.group;
  params.segments = std::max(1, options.segments);
  params.dims = options.dims;
  params.skips = skips;
  params.levels = options.levels;
  for (const Algorithm* line : *lines) {
    const auto refusal = line->refusal(params);
    if (!refusal) {
      out.push_back(line);
    } else if (all) {
      notes.push_back("left out: " + *refusal);
    } else {
      return invalid_argument("--algo: " + *refusal);
    }
  }
  if (out.empty()) {
    return invalid_argument(fmt::format("--ranks is {}; no algorithm of {} allows it", ranks,
                                        name_of(options.collective)));
  }
  return out;
}

}  // namespace

void set_ends(PerfOptions& options, int cores) {
  if (!options.max_bytes) {
    // Where ranks share cores, a call takes that much longer.
    const int share = std::max(1, (options.ranks + cores - 1) / std::max(1, cores));
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
  if (options.collective == Collective::barrier) return std::vector<std::size_t>{0};
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size <= last;) {
    if (sizes.size() >= kMostSizes) {
      return invalid_argument(fmt::format("--stepbytes is {}: more than {} sizes from {} to {}",
                                          format_size(options.step_bytes.value_or(0)), kMostSizes,
                                          format_size(first), format_size(last)));
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

Result<std::vector<PerfCase>> cases_of(const PerfOptions& options, const std::vector<int>& skips,
                                       std::vector<std::string>& notes) {
  const int ranks = options.ranks;
  const auto sizes = sizes_of(options);
  if (!sizes.ok()) return sizes.status();
  const auto roots = read_roots(options, ranks);
  if (!roots.ok()) return roots.status();
  const auto lines = algorithms_to_run(options, ranks, skips, notes);
  if (!lines.ok()) return lines.status();
  const struct {
    std::string_view option, parameter;
    std::string value;
  } asked[] = {{"--dims", "dims", options.dims.empty() ? "" : dims_text(options.dims)},
               {"--skips", "skips", skips.empty() ? "" : options.skips},
               {"--levels", "levels", options.levels.empty() ? "" : levels_text(options.levels)}};
  for (const auto& [option, parameter, value] : asked) {
    if (value.empty()) continue;
    Status status = check_taken(option, parameter, value, *lines, options.collective);
    if (!status.ok()) return status;
  }
  const bool reducing = reduces(options.collective);
  std::vector<ReduceOp> ops = options.ops;
  if (!reducing) ops.resize(1);

  std::vector<PerfCase> cases;
  for (const DataType type : options.types) {
    for (const ReduceOp op : ops) {
      if (reducing && !supports(type, op) && options.skip_unsupported) continue;
      for (const Rank root : *roots) {
        std::optional<std::size_t> last;
        for (const std::size_t size : *sizes) {
          PerfCase one;
          one.call = {.collective = options.collective, .type = type, .op = op, .root = root};
          one.call.peer = (root + 1) % ranks;
          one.call.count = count_for(options.collective, ranks, size, size_of(type));
          if (last == one.call.count) continue;  // rounding made it the same row
          last = one.call.count;
          if (reducing && !supports(type, op)) {
            return invalid_argument(fmt::format(
                "--op is '{}' with --datatype '{}'; bit operations are allowed on integers only",
                name_of(op), name_of(type)));
          }
          if (Status status = check_call(one.call, ranks); !status.ok()) {
            return invalid_argument(
                fmt::format("size is {}: {}", format_size(size), status.text()));
          }
          one.bytes = one.call.count * counts_per_size(options.collective, ranks) * size_of(type);
          for (const Algorithm* line : *lines) {
            one.call.options = {.algorithm = line != nullptr ? line->name : std::string_view(),
                                .segments = options.segments,
                                .group = options.group,
                                .transport = options.transport,
                                .dims = options.dims,
                                .skips = skips,
                                .levels = options.levels};
            cases.push_back(one);
          }
        }
      }
    }
  }
  if (cases.empty()) {
    return invalid_argument(
        "--op and --datatype leave nothing: bit operations are allowed on "
        "integers only");
  }
  return cases;
}

Result<Workbench::Options> bench_for(const PerfOptions& options,
                                     const std::vector<PerfCase>& cases) {
  Workbench::Options bench;
  bench.team = {.ranks = options.ranks,
                .placement = options.placement,
                .timeout = options.timeout,
                .wait = options.wait};
  bench.off_cache = options.measure.off_cache;
  std::size_t largest = 0;
  for (const PerfCase& one : cases) {
    const BufferBytes bytes = buffer_bytes(one.call, options.ranks);
    bench.buffers.input = std::max(bench.buffers.input, bytes.input);
    bench.buffers.output = std::max(bench.buffers.output, bytes.output);
    largest = std::max(largest, one.bytes);
  }
  constexpr std::size_t kSpare = std::size_t{64} << 20;  // plans, threads
  Status status = check_memory(
      Workbench::memory_needed(bench), "buffers and scratch",
      fmt::format("--maxbytes is {}: for a size of {}, {} ranks", format_size(*options.max_bytes),
                  format_size(largest), options.ranks),
      kSpare);
  if (!status.ok()) return status;
  return bench;
}

}  // namespace rankine::tools
