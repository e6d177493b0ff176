#include "tests/fuzz/targets.h"

#include <stdlib.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"
#include "algorithms/parameters.h"
#include "engine/api/environment.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/json_text.h"
#include "engine/cli/arguments.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/lab/commands.h"
#include "engine/network/fabric.h"
#include "engine/network/network_file.h"
#include "engine/network/simulate.h"
#include "engine/network/wiring.h"
#include "engine/papers/condition.h"
#include "engine/papers/runs.h"
#include "engine/read/flow.h"
#include "engine/run/kernels/reduce.h"
#include "numa/cpus.h"
#include "numa/placement.h"
#include "numa/topology.h"
#include "tests/numa/fixtures.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace rankine::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"arguments", arguments},
    {"bandwidth", bandwidth},
    {"batch", batch},
    {"cgroup_files", cgroup_files},
    {"command_line", command_line},
    {"cpu_list", cpu_list},
    {"cpu_quota", cpu_quota},
    {"decimal", decimal},
    {"dims", dims},
    {"duration", duration},
    {"environment", environment},
    {"expression", expression},
    {"formula", formula},
    {"names", names},
    {"network", network},
    {"parameter_sets", parameter_sets},
    {"placement", placement},
    {"runs", runs},
    {"seconds", seconds},
    {"size", size},
    {"skips", skips},
    {"synthetic_topology", synthetic_topology},
    {"tuning", tuning},
    {"whole_list", whole_list},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

// Texts of the catalogue and of the claims: a text that cannot be read or computed throws only the
// exceptions named in the headers.

namespace {

template <class Read>
auto read(const Read& evaluate) -> std::optional<decltype(evaluate())> {
  try {
    return evaluate();
  } catch (const std::domain_error&) {    // no value
  } catch (const std::overflow_error&) {  // too large
  } catch (const std::logic_error&) {     // no formula
  }
  return std::nullopt;
}

}  // namespace

void formula(std::string_view input) {
  Params params{.ranks = 12, .segments = 3};
  params.root = 1;
  for (const std::vector<int>& dims : {std::vector<int>{}, std::vector<int>{3, 4}}) {
    params.dims = dims;
    const auto value = read([&] { return evaluate(input, params); });
    if (!value) continue;
    require(value->bottom() > 0, "a fraction's denominator is positive");
    // The text of a formula's value is a formula.
    const auto again = read([&] { return evaluate("0+(" + value->to_string() + ")", params); });
    require(!again || *again == *value, "its own text is worth as much");
  }
}

void expression(std::string_view input) {
  const formulas::Letters letters = {{"N", 6}, {"M", 1000}, {"a.time", formulas::Value::real(1.5)}};
  const auto value = read([&] { return formulas::evaluate(input, letters); });
  if (value) require(!formulas::to_string(*value).empty(), "a value can be said");
}

void parameter_sets(std::string_view input) {
  const auto found = read([&] { return formulas::parameter_sets(input); });
  if (!found) return;
  for (const formulas::Letters& set : found->sets) {
    require(set.size() <= found->order.size(), "letters are those assigned");
  }
}

void runs(std::string_view input) {
  const auto found = read([&] { return claims::read_runs(input, "alpha=1;beta=0"); });
  if (!found) return;
  for (const claims::RunText& run : *found) {
    require(!run.options.empty(), "options that stand before count");
  }
}

// CPUs, quotas and topologies: a limit that was read is valid.

namespace {

// Returns the text before the next line "--", and removes that line too.
std::string take_part(std::string_view& input) {
  constexpr std::string_view kEnd = "\n--\n";
  const std::size_t end = input.find(kEnd);
  const std::string part(input.substr(0, end));
  input.remove_prefix(end == std::string_view::npos ? input.size() : end + kEnd.size());
  return part;
}

void require_cores(double cores) {
  require(std::isfinite(cores) && cores > 0, "a limit is a number of cores");
}

}  // namespace

void cpu_list(std::string_view input) {
  const CpuList list = parse_cpu_list(input);
  if (!list.ok()) return;
  for (const int cpu : list.cpus) require(cpu >= 0 && cpu < kMaxCpus, "a CPU's number");
  require(parse_cpu_list(format_cpu_list(list.cpus)).cpus == list.cpus, "format_cpu_list()");
}

void placement(std::string_view input) {
  const PolicyResult read = parse_placement_policy(input);
  if (!read.ok()) return;
  const PolicyResult again = parse_placement_policy(to_string(read.policy));
  require(again.ok() && again.policy == read.policy, "to_string() writes what is read");
  static const Topology machine = Topology::flat({0, 1, 5}, false);
  const Placement placed = place_ranks(machine, 4, read.policy);
  require(placed.ok() == (placed.ranks.size() == 4),
          "all ranks have a place, or there is an error");
}

void synthetic_topology(std::string_view input) {
  if (input.find('\0') != std::string_view::npos) return;  // hwloc's texts end there
  static const int quiet = setenv("HWLOC_HIDE_ERRORS", "2", 1);
  static_cast<void>(quiet);
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler hwloc_loses_32_bytes_of_a_description_that_it_refuses;
#endif
  const TopologyResult read = Topology::synthetic(input);
  require(read.ok() == read.topology.has_value(), "a topology or an error");
  if (!read.ok()) return;
  const Topology& topology = *read.topology;
  require(!topology.cpus().empty() && !topology.nodes().empty(), "CPUs and nodes");
  require(topology.cpus().size() <= kMaxCpus, "no more CPUs than a machine has");
  require(!topology.is_this_system(), "a description is no evidence");
  for (const Cpu& cpu : topology.cpus()) {
    require(topology.find_node(cpu.numa_node) != nullptr, "every CPU's node is there");
  }
  for (const auto kind : {PlacementPolicy::Kind::compact, PlacementPolicy::Kind::scatter}) {
    require(place_ranks(topology, 5, {kind, {}}).ok(), "ranks can be placed on it");
  }
}

void cpu_quota(std::string_view input) {
  const std::string first = take_part(input), second = take_part(input);
  if (const auto cores = parse_cpu_max(first)) require_cores(*cores);
  if (const auto cores = parse_cfs_quota(first, second)) require_cores(*cores);
}

void cgroup_files(std::string_view input) {
  static const TempTree tree;
  tree.write("/proc/self/cgroup", take_part(input));
  tree.write("/proc/self/mountinfo", take_part(input));
  const std::string limit = take_part(input);
  for (const char* folder : {"/cg", "/cg/inner"}) {
    tree.write(std::string(folder) + "/cpu.max", limit);
    tree.write(std::string(folder) + "/cpu.cfs_quota_us", limit);
  }
  const auto quota = read_cpu_quota(tree.root());
  if (quota) require_cores(quota->cores);
  const CpuBudget budget = combine_cpu_budget({.cores = 4, .cpus = 4}, quota);
  require(budget.cores >= 1 && budget.cores <= 4, "at least one core, and no more than allowed");
  require(!budget.why.empty(), "and why");
}

// Parsing a value, writing its name and parsing that gives an equal value.

namespace {

constexpr std::string_view kArgument = "--argument";

template <class T>
void survives(std::string_view input, std::optional<T> (*parse)(std::string_view)) {
  const std::optional<T> value = parse(input);
  if (value) require(parse(name_of(*value)) == value, "name_of() writes what is read");
}

template <class T>
bool refused(const Result<T>& result) {
  if (result.ok()) return false;
  require(!result.status().text().empty(), "an error says something");
  return true;
}

}  // namespace

void names(std::string_view input) {
  survives(input, parse_collective);
  survives(input, parse_data_type);
  survives(input, parse_reduce_op);
  survives(input, parse_isa);
  survives(input, parse_wiring);
  survives(input, parse_routing);
  survives(input, parse_fidelity);
  survives(input, parse_sync);
  survives(input, parse_clock_mode);
}

void arguments(std::string_view input) {
  using namespace tools;
  static_cast<void>(argument_name(std::string(input)));
  const auto collective = read_collective(kArgument, input);
  if (!refused(collective)) {
    require(read_collective(kArgument, name_of(*collective)).ok(), "a collective's name is one");
  }
  for (const std::optional<Collective> of :
       {std::optional<Collective>(), std::optional(Collective::all_reduce)}) {
    const auto lines = read_algorithms(kArgument, input, of);
    if (refused(lines)) continue;
    require(!lines->empty(), "some algorithm is meant");
    for (const Algorithm* entry : *lines) {
      require(!of || entry->collective == *of, "of the collective asked for");
    }
  }
  const auto seed = read_seed(kArgument, input);
  if (!refused(seed)) {
    const auto again = read_seed(kArgument, std::to_string(*seed));
    require(again.ok() && *again == *seed, "a seed is a number");
  }
  const auto placement = read_placement(kArgument, input);
  if (!refused(placement)) {
    const auto again = read_placement(kArgument, to_string(*placement));
    require(again.ok() && *again == *placement, "to_string() writes what is read");
  }
  static_cast<void>(refused(read_wait(kArgument, input)));
  for (const Parameter& row : parameters()) {
    Params params{.ranks = 22};
    if (!row.read(input, params)) continue;
    Params again{.ranks = 22};
    require(row.read(row.text(params), again) && row.text(again) == row.text(params),
            "text() writes what read() reads");
  }
}

void environment(std::string_view input) {
  const auto forced = parse_forced_algorithms(input);
  if (!refused(forced)) {
    std::string text;
    for (const Algorithm* entry : *forced) {
      if (entry != nullptr) {
        text += std::string(name_of(entry->collective)) + ":" + std::string(entry->name) + ";";
      }
    }
    const auto again = parse_forced_algorithms(text);
    require(again.ok() && *again == *forced, "algorithms that are forced, by name");
  }
  const auto transport = parse_forced_transport(input);
  if (!refused(transport) && *transport) {
    require(parse_forced_transport(name_of(**transport)).ok(), "a transport's name is one");
  }
  static_cast<void>(refused(parse_wait_mode(input)));
}

// Every option of every subcommand reads its value. --help, right after the subcommand, prevents
// execution.
void command_line(std::string_view input) {
  if (input.find('\0') != std::string_view::npos) return;  // no argument has one
  if (input.find('/') != std::string_view::npos) return;   // no files of this machine
  std::vector<std::string> words;
  std::istringstream lines{std::string(input)};
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  if (words.empty()) return;
  words.insert(words.begin() + 1, "--help");
  std::ostringstream out, err;
  tools::Console console{.out = out, .err = err};
  const tools::Exit exit = tools::run_lab(words, console);
  require(exit == tools::Exit::ok || exit == tools::Exit::usage, "nothing was done");
  require(!(out.str().empty() && err.str().empty()), "something was said");
}

// Networks and tables that were read are valid; every request gets one line of JSON.

namespace {

using Json = nlohmann::json;

// True if the answer would take long, or the request names a file.
bool is_large(const Json& request) {
  constexpr int kMostRanks = 12, kMostSegments = 64;
  const auto number = [&](const char* member) {
    const auto found = request.find(member);
    return found != request.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  if (number("ranks") > kMostRanks || number("segments") > kMostSegments) return true;
  const auto network = request.find("network");
  return network != request.end() && network->is_string() &&
         find_regime(network->get<std::string>()) == nullptr;
}

}  // namespace

void network(std::string_view input) {
  const auto fabric = parse_network(input, "fuzz");
  if (!fabric.ok()) {
    require(!fabric.status().text().empty(), "an error says something");
    return;
  }
  require(check_fabric(*fabric).ok(), "a network that is read can be used");
  static_cast<void>(wired_for(*fabric, 6));
}

void tuning(std::string_view input) {
  const auto table = parse_tuning(input);
  if (!table.ok()) {
    require(!table.status().text().empty(), "an error says something");
    return;
  }
  const std::string text = to_json(*table);
  const auto again = parse_tuning(text);
  require(again.ok() && to_json(*again) == text, "a table that is read can be written and read");
}

void batch(std::string_view input) {
  const auto request = read_json("it", input);
  if (request.ok() && request->is_object() && is_large(*request)) return;
  const tools::BatchAnswer answer = tools::answer_request(input, 1);
  require(answer.line.find('\n') == std::string::npos, "an answer is one line");
  const Json line = Json::parse(answer.line, nullptr, false);
  require(line.is_object(), "an answer is an object");
  require(answer.ok ? line.contains("time") : line.contains("error"), "a time, or an error");
}

}  // namespace rankine::fuzz
