#include "engine/tools/lesson/check.h"

#include <fmt/format.h>

#include <array>
#include <iostream>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>

#include "engine/base/json_text.h"
#include "engine/base/small_file.h"
#include "engine/tools/lesson/formula_tasks.h"
#include "engine/tools/lesson/judge.h"
#include "engine/tools/lesson/judgement_json.h"
#include "engine/tools/network.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct CheckArguments {
  std::string file;
  std::size_t bytes = std::size_t{1} << 20;
  NetworkArguments network;
  Sync sync = Sync::dataflow;
  std::string task, formula;
  std::optional<std::uint64_t> seed;
  bool tasks = false, json = false;
};

Result<std::string> text_of(const std::string& path) {
  constexpr std::size_t kMostBytes = kMostJsonBytes;
  if (path != "-") {
    SmallFile file = read_small_file(path, kMostBytes);
    if (file.ok()) return std::move(file.text);
    return Status(Code::system,
                  fmt::format("FILE is '{}', which cannot be read: {}", path, file.error));
  }
  std::string text;
  std::array<char, 1 << 16> part;
  while (std::cin.read(part.data(), part.size()), std::cin.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > kMostBytes) {
      return invalid_argument(
          fmt::format("standard input has more than {} bytes; no more are read", kMostBytes));
    }
  }
  return text;
}

// "round 2, rank 1, block 3"
std::string place_text(const Violation& violation) {
  std::string out;
  for (const auto& [name, at] :
       {std::pair("round", violation.round), std::pair("rank", violation.rank),
        std::pair("block", violation.block)}) {
    if (at >= 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, at);
  }
  return out;
}

void print_violation(const WrittenSchedule& written, const Violation& violation,
                     std::ostream& out) {
  const std::string place = place_text(violation);
  out << fmt::format("wrong: {}{}{}\n", name_of(violation.kind), place.empty() ? "" : " at ", place)
      << fmt::format("  the rule: {}\n  here: {}\n", rule_of(violation.kind), violation.text);
  constexpr std::size_t kMostShown = 8;
  const std::vector<std::size_t> found = transfers_at(written, violation);
  for (std::size_t i = 0; i < found.size() && i < kMostShown; ++i) {
    const WrittenTransfer& one =
        written.rounds[static_cast<std::size_t>(violation.round)][found[i]];
    const std::string where = one.line > 0
                                  ? fmt::format("line {}", one.line)
                                  : fmt::format("round {}, transfer {}", violation.round, found[i]);
    out << fmt::format("  {}: {}\n", where, transfer_text(one.transfer));
  }
  if (found.size() > kMostShown) out << fmt::format("  and {} more\n", found.size() - kMostShown);
}

// "1.02 x", of what is not zero.
std::string times_text(double value, double least) {
  return least > 0 ? fmt::format("{:.2f} x", value / least) : "-";
}

void print_costs(const Judgement& judged, const Fabric& fabric, const CheckArguments& a,
                 std::ostream& out) {
  const RankCounts& busiest = judged.counts.busiest;
  const Simulation& simulated = judged.simulation;
  std::vector<std::vector<std::string>> rows = {{"rounds", std::to_string(judged.counts.rounds), "",
                                                 "a switch helps, so nothing to compare"}};
  if (judged.least_rounds) {
    rows.back()[2] = times_text(judged.counts.rounds, *judged.least_rounds);
    rows.back()[3] = fmt::format("the least with as many ports: {}", *judged.least_rounds);
  }
  rows.push_back({"bytes", format_bytes(judged.bytes), times_text(judged.bytes, judged.least_bytes),
                  fmt::format("some rank has to move {} of M, which is {}",
                              format_bytes(judged.least_bytes), format_bytes(a.bytes))});
  rows.push_back({"ports", std::to_string(std::max(busiest.send_ports, busiest.receive_ports)), "",
                  fmt::format("sends {} and receives {} in a round at most; the network has {}",
                              busiest.send_ports, busiest.receive_ports, fabric.ports)});
  rows.push_back({"time", format_duration(simulated.seconds), "", "nothing to compare with"});
  if (judged.best) {
    rows.back()[2] = times_text(simulated.seconds, judged.best->seconds);
    rows.back()[3] = fmt::format("the catalogue's best: {}, {}", judged.best->algorithm->name,
                                 format_duration(judged.best->seconds));
  }
  out << "proved: who needs a block ends with it, each contribution in it once; no transfer could "
         "be left out\n\n"
      << columns(rows, "lrrl", "  ")
      << fmt::format("\nBytes and ports of the busiest rank; time on {}, {}.\n", describe(fabric),
                     name_of(a.sync));
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Result<Exit> check_schedule(const CheckArguments& a, Console& console) {
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  const auto text = text_of(a.file);
  if (!text.ok()) return text.status();
  const auto written = read_schedule(*text);
  if (!written.ok()) return written.status();
  const auto fabric = wired_for(*network, written->goal.ranks);
  if (!fabric.ok()) return fabric.status();
  const auto judged = judge(*written, *fabric, a.bytes, {.sync = a.sync, .lower = a.network.lower});
  if (!judged.ok()) return judged.status();
  const Exit exit = judged->violation ? Exit::wrong : Exit::ok;
  if (a.json) {
    console.out << judgement_json(*written, *judged, *fabric, a.sync).dump() << '\n';
    return exit;
  }
  console.out << fmt::format("{} among {}: {}, {}\n", name_of(written->goal.collective),
                             counted(static_cast<std::size_t>(written->goal.ranks), "rank"),
                             counted(written->rounds.size(), "round"),
                             counted(judged->transfers, "transfer"));
  if (judged->violation) {
    print_violation(*written, *judged->violation, console.out);
  } else {
    print_costs(*judged, *fabric, a, console.out);
  }
  return exit;
}

void print_task(const FormulaTask& task, Console& console) {
  console.out << fmt::format("{}\n\n", task.question);
  for (const TaskLetter& one : task.letters) {
    console.out << fmt::format("  {}  {}, from {} to {}\n", one.letter, one.meaning,
                               formulas::to_string(Rational(one.lowest) * one.unit),
                               formulas::to_string(Rational(one.highest) * one.unit));
  }
}

Result<Exit> check_formula(const CheckArguments& a, Console& console) {
  const auto task = find_formula_task("--task", a.task);
  if (!task.ok()) return task.status();
  if (a.formula.empty()) {
    print_task(**task, console);
    return Exit::ok;
  }
  const std::uint64_t seed = a.seed.value_or(1);
  const auto miss = judge_formula(**task, a.formula, seed);
  if (!miss.ok()) return of_option("--formula", miss.status());
  const bool right = !miss->has_value();
  if (a.json) {
    console.out << formula_json(**task, a.formula, seed, *miss).dump() << '\n';
  } else if (right) {
    console.out << fmt::format("right: what the engine says, at {} inputs drawn by seed {}\n",
                               kFormulaTrials, seed);
  } else {
    console.out << fmt::format("wrong at {}:\n  the formula says {}, the engine {}\n",
                               letters_text(**task, (*miss)->letters),
                               formulas::to_string((*miss)->said),
                               formulas::to_string((*miss)->right));
  }
  return right ? Exit::ok : Exit::wrong;
}

Result<Exit> list_tasks(bool json, Console& console) {
  for (const FormulaTask& task : formula_tasks()) {
    if (json) {
      console.out << Json{{"task", task.name}, {"question", task.question}}.dump() << '\n';
    } else {
      console.out << fmt::format("{:<19} {}\n", task.name, task.question);
    }
  }
  return Exit::ok;
}

Result<Exit> run_check(const CheckArguments& a, Console& console) {
  const int asked = (a.file.empty() ? 0 : 1) + (a.task.empty() ? 0 : 1) + (a.tasks ? 1 : 0);
  if (asked != 1) {
    return invalid_argument("FILE, --task or --tasks is needed, and one of them only");
  }
  if (a.task.empty() && (!a.formula.empty() || a.seed)) {
    return invalid_argument("--formula and --seed belong to a --task");
  }
  if (a.tasks) return list_tasks(a.json, console);
  return a.task.empty() ? check_schedule(a, console) : check_formula(a, console);
}

}  // namespace

Subcommand add_check(Command tool) {
  auto owned = std::make_shared<CheckArguments>();
  CheckArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "check", "judge a schedule that you wrote, or a formula of yours: proof, costs, the best");
  add_text(app, "file", a.file, "FILE", "the schedule; '-': standard input");
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE",
               "M: the vector, or one rank's send buffer of all_to_all (1M)");
  add_argument(app, "--sync", a.sync, read_sync, "NAME", "dataflow or rounds (dataflow)");
  add_network_arguments(app, a.network);
  add_text(app, "--task", a.task, "NAME", "show this task, or judge a formula for it");
  add_text(app, "--formula", a.formula, "TEXT", "your answer: '2*(N-1)/N*S'");
  add_argument(app, "--seed", a.seed, read_seed, "N", "which inputs the formula is tried at (1)");
  app.add_flag("--tasks", a.tasks, "list the tasks that have a formula as their answer");
  app.add_flag("--json", a.json, "one line of JSON");
  app.footer(
      "A schedule is text:\n"
      "  all_gather 4            collective and ranks; then root R, peer R, blocks B, planes P,\n"
      "                          other_bits (an all_reduce whose ranks may add in other orders)\n"
      "  round                   begins a round\n"
      "  0 -> 1: 0               rank 0 sends block 0 to rank 1, which keeps it\n"
      "  2 -> 3: 2 +             rank 3 adds it to its own\n"
      "  0 <-> 1: 0..3,6 +       both ways; several blocks in one message\n"
      "  1 -> 1: 2 on 1 to 0 +   reads plane 1, adds on plane 0 (local work)\n"
      "# begins a remark. 'rankine show ... --text' writes any algorithm so. Or it is JSON:\n"
      "  {\"collective\": \"all_gather\", \"ranks\": 2, \"transfers\": [[{\"from\": 0, \"to\": 1,\n"
      "   \"what\": [0], \"act\": \"copy\"}, {\"from\": 1, \"to\": 0, \"what\": [1]}]]}\n"
      "Blocks of all_gather, reduce_scatter, gather and scatter have their rank's number; rank "
      "s's\n"
      "block for rank r of all_to_all is s * N + r; of all others there is one, or as many as you\n"
      "say. All that is read in a round is read before anything of it is written.\n"
      "Formulas: + - * / ( ) pow min max if floor ceil log2 clog2 flog2 sum, and the task's "
      "letters.\n"
      "Examples:\n"
      "  rankine check mine.txt --bytes 64M --network scale_out\n"
      "  python3 ring.py 8 | rankine check -\n"
      "  rankine show all_gather --algo ring --ranks 4 --text | rankine check -\n"
      "  rankine check --task ring_bytes --formula '2*(N-1)/N*S'\n"
      "Exit codes: 0 proved or right, 1 wrong, 2 usage or unreadable, 3 no such file.\n"
      "Networks:\n" +
      describe_presets());
  return {app, [owned](Console& console) { return run_check(*owned, console); }};
}

}  // namespace rankine::tools
