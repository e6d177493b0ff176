#include "engine/tools/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <ostream>
#include <set>
#include <string_view>

#include "algorithms/torus.h"
#include "engine/read/sweep.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"
#include "numa/cpus.h"

namespace rankine::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What a parameter's texts are in a sweep: of a number a list of it, else the one that was given.
Result<std::vector<std::string>> values_of(const GivenParameter& given) {
  const Parameter& row = *given.parameter;
  if (row.number == nullptr) {
    Params params;
    if (!row.read(given.text, params)) return invalid_value(given, row.allowed());
    return std::vector<std::string>{given.text};
  }
  const auto numbers = parse_whole_list(given.argument, given.text, row.least, row.most);
  if (!numbers.ok()) return numbers.status();
  std::vector<std::string> texts;
  for (const int number : *numbers) texts.push_back(std::to_string(number));
  return texts;
}

// The sweeps that make up what was asked for: one per run of neighbouring N and named algorithm.
struct Sweeps {
  std::vector<int> ranks;
  std::vector<SweepOptions> sweeps;
};
Result<Sweeps> sweeps_of(const VerifyArguments& arguments) {
  const AlgorithmArguments& a = arguments.algorithm;
  const auto lines =
      read_algorithms("--algo", a.algorithms.empty() ? "all" : a.algorithms, a.collective);
  if (!lines.ok()) return lines.status();
  SweepOptions options;
  options.collective = a.collective;
  options.threads = arguments.threads;
  if (arguments.all_roots_up_to) options.all_roots_up_to = *arguments.all_roots_up_to;
  Sweeps out;
  for (const GivenParameter& given : a.given) {
    const auto values = values_of(given);
    if (!values.ok()) return values.status();
    options.values.insert_or_assign(std::string(given.parameter->name), *values);
  }
  if (Status status = check_taken(a, *lines); !status.ok()) return status;
  if (const auto ranks = options.values.find("ranks"); ranks != options.values.end()) {
    for (const std::string& text : ranks->second) out.ranks.push_back(std::stoi(text));
  } else if (const GivenParameter* dims = a.find("dims")) {  // a torus has its own number of them
    std::int64_t product = 1;
    const auto sizes = read_dims(dims->text);
    for (const int size : *sizes) {
      product = std::min<std::int64_t>(product * size, VerifyArguments::kMostRanks);
    }
    out.ranks = {static_cast<int>(product)};
  } else {
    out.ranks.resize(VerifyArguments::kDefaultRanksTo);
    std::iota(out.ranks.begin(), out.ranks.end(), 1);
  }
  std::set<std::string> names = {""};
  if (!a.algorithms.empty() && !a.all()) {
    names.clear();
    for (const Algorithm* line : *lines) names.insert(std::string(line->name));
  }
  for (std::size_t first = 0, last = 0; first < out.ranks.size(); first = last + 1) {
    last = first;
    while (last + 1 < out.ranks.size() && out.ranks[last + 1] == out.ranks[last] + 1) ++last;
    options.ranks_from = out.ranks[first];
    options.ranks_to = out.ranks[last];
    for (const std::string& name : names) {
      options.algorithm = name;
      out.sweeps.push_back(options);
    }
  }
  return out;
}

// Cases too large for any memory prove nothing and fail nothing: they are set apart.
std::vector<SweepResult> take_too_large(std::vector<SweepResult>& results) {
  const auto first =
      std::stable_partition(results.begin(), results.end(), [](const SweepResult& result) {
        return !result.failure.starts_with(name_of(ViolationKind::too_large));
      });
  std::vector<SweepResult> taken(first, results.end());
  results.erase(first, results.end());
  return taken;
}

struct Tally {
  Collective collective;
  std::set<std::string_view> algorithms{};
  std::size_t cases = 0, failed = 0;
};

std::vector<Tally> tallies_of(const std::vector<SweepResult>& results) {
  std::vector<Tally> tallies;
  for (const Collective collective : all_collectives()) {
    Tally tally{.collective = collective};
    for (const SweepResult& result : results) {
      if (result.algorithm->collective != collective) continue;
      tally.algorithms.insert(result.algorithm->name);
      ++tally.cases;
      tally.failed += result.ok() ? 0 : 1;
    }
    if (tally.cases > 0) tallies.push_back(std::move(tally));
  }
  return tallies;
}

void print(const std::string& ranks, const std::vector<SweepResult>& results,
           const std::vector<SweepResult>& too_large, double seconds, bool csv, Console& console) {
  const std::vector<Tally> tallies = tallies_of(results);
  Table table(as::text("collective"), "algorithms", "cases", "proved", "failed");
  std::size_t failed = 0;
  for (const Tally& tally : tallies) {
    failed += tally.failed;
    table.add(name_of(tally.collective), tally.algorithms.size(), tally.cases,
              tally.cases - tally.failed, tally.failed);
  }
  console.out << (csv ? to_csv(table) : to_text(table));
  if (csv) return;
  if (failed > 0) {
    constexpr std::size_t kShown = 40;
    Table failures(as::text("failed"), as::text("why"));
    for (const SweepResult& result : results) {
      if (!result.ok() && failures.rows.size() < kShown) {
        failures.add(result.name(), result.failure);
      }
    }
    console.out << "\n" << to_text(failures);
    if (failed > kShown) {
      console.out << fmt::format("and {} more; --json has all\n", failed - kShown);
    }
  }
  for (const SweepResult& result : too_large) {
    console.out << fmt::format("left out: {}: {}\n", result.name(), result.failure);
  }
  console.out << fmt::format("\n{} of {} proved, N = {}, in {}\n", results.size() - failed,
                             counted(results.size(), "case"), ranks, format_seconds(seconds));
}

void print_json(const std::string& ranks, const std::vector<SweepResult>& results,
                const std::vector<SweepResult>& too_large, double seconds, Console& console) {
  Json json;
  std::size_t failed = 0;
  for (const SweepResult& result : results) failed += result.ok() ? 0 : 1;
  json["ranks"] = ranks;
  json["cases"] = results.size();
  json["proved"] = results.size() - failed;
  json["failed"] = failed;
  json["seconds"] = seconds;
  Json& collectives = json["collectives"] = Json::array();
  for (const Tally& tally : tallies_of(results)) {
    collectives.push_back({{"collective", name_of(tally.collective)},
                           {"algorithms", tally.algorithms},
                           {"cases", tally.cases},
                           {"failed", tally.failed}});
  }
  Json& failures = json["failures"] = Json::array();
  for (const SweepResult& result : results) {
    if (result.ok()) continue;
    Json& failure =
        failures.emplace_back(Json{{"case", result.name()},
                                   {"collective", name_of(result.algorithm->collective)},
                                   {"algorithm", result.algorithm->name}});
    write_parameters(*result.algorithm, result.params, failure, failure);
    failure["failure"] = result.failure;
  }
  Json& left_out = json["left_out"] = Json::array();
  for (const SweepResult& result : too_large) {
    left_out.push_back({{"case", result.name()}, {"why", result.failure}});
  }
  console.out << json.dump(2) << "\n";
}

// "all", or the largest N up to which every root is tried.
Result<int> read_roots(std::string_view argument, std::string_view text) {
  if (text == "all") return VerifyArguments::kMostRanks;
  auto limit = parse_whole(argument, text, 0, VerifyArguments::kMostRanks);
  if (!limit.ok()) return invalid_argument(limit.status().text() + ", or all");
  return limit;
}

}  // namespace

Result<Exit> verify_catalogue(const VerifyArguments& arguments, Console& console) {
  const auto found = sweeps_of(arguments);
  if (!found.ok()) return found.status();
  const std::vector<SweepOptions>& sweeps = found->sweeps;
  const std::string ranks = format_cpu_list(found->ranks);  // the same notation
  std::size_t all = 0;
  for (const SweepOptions& options : sweeps) all += sweep_cases(options).size();
  if (all == 0) {
    std::string asked = "--ranks is " + ranks;
    for (const GivenParameter& given : arguments.algorithm.given) {
      if (given.parameter->name != "ranks") {
        asked += fmt::format(", {} is {}", given.argument, given.shown);
      }
    }
    return invalid_argument(fmt::format(
        "{}: --algo {} has no such case; 'rankine list' shows what each needs", asked,
        arguments.algorithm.algorithms.empty() ? "all" : arguments.algorithm.algorithms));
  }
  const auto begin = Clock::now();
  std::vector<SweepResult> results;
  {
    Progress progress(console);
    auto shown = begin;
    for (const SweepOptions& options : sweeps) {
      const std::size_t before = results.size();
      const SweepProgress report = [&](std::size_t done, std::size_t) {
        constexpr auto kOften = std::chrono::milliseconds(100);
        if (Clock::now() - shown < kOften) return;
        shown = Clock::now();
        progress.show(fmt::format("{} of {} cases, {}{}", before + done, all,
                                  format_seconds(seconds_since(begin)),
                                  time_left(before + done, all, seconds_since(begin))));
      };
      for (SweepResult& result : sweep(options, report)) results.push_back(std::move(result));
    }
  }
  const double seconds = seconds_since(begin);
  const std::vector<SweepResult> too_large = take_too_large(results);
  if (results.empty()) {
    return Status(Code::out_of_memory,
                  fmt::format("--ranks is {}: {}", ranks, too_large.front().failure));
  }
  if (arguments.json) {
    print_json(ranks, results, too_large, seconds, console);
  } else {
    print(ranks, results, too_large, seconds, arguments.csv, console);
  }
  const bool proved = std::all_of(results.begin(), results.end(),
                                  [](const SweepResult& result) { return result.ok(); });
  return proved ? Exit::ok : Exit::wrong;
}

Subcommand add_verify(Command tool) {
  auto owned = std::make_shared<VerifyArguments>();
  VerifyArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "verify",
      "prove that schedules do what their collectives ask, and that the catalogue is right");
  add_algorithm_arguments(app, a.algorithm,
                          {.collective = "collective,--collective",
                           .algorithms = "names of the catalogue, or all (all)",
                           .ranks = "8, 2,3,8 or 1..130; so may be other numbers (1..130)"});
  add_argument(app, "--roots", a.all_roots_up_to, read_roots, "N",
               "all, or up to which N every root is tried; beyond, 0, N/2 and N-1 (9)");
  add_argument(app, "--threads", a.threads, Whole{1, 1024}, "N", "cores to use (all)");
  add_formats(app, a.json, a.csv, "counts and every failure as JSON");
  app.footer(
      "Examples:\n"
      "  rankine verify                                 the whole catalogue, N = 1..130\n"
      "  rankine verify broadcast --roots all --ranks 1..33 --segments 1,2,3,7\n"
      "  rankine verify --algo ring --ranks 4096\n"
      "Exit codes: 0 proved, 1 a case failed, 2 usage.");
  return {app, [owned](Console& console) { return verify_catalogue(*owned, console); }};
}

}  // namespace rankine::tools
