#include "engine/tools/lesson/check.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/tools/input_stream.h"
#include "engine/tools/lesson/check_function.h"
#include "engine/tools/lesson/formula_tasks.h"
#include "engine/tools/lesson/judge.h"
#include "engine/tools/lesson/judge_order.h"
#include "engine/tools/lesson/judgement_json.h"
#include "engine/tools/lesson/judgement_text.h"
#include "engine/tools/lesson/schedule_function.h"
#include "engine/tools/network.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kUsualRanks = "1..17";

Result<std::vector<int>> read_ranks(std::string_view argument, std::string_view text) {
  return parse_whole_list(argument, text, 1, kMostWrittenRanks);
}

struct CheckArguments {
  std::string file;
  std::vector<int> ranks;             // of a function; empty: kUsualRanks
  std::optional<int> seconds;         // of a function
  std::optional<std::size_t> memory;  // of a function
  std::size_t bytes = std::size_t{1} << 20;
  NetworkArguments network;
  Sync sync = Sync::dataflow;
  std::string task, formula;
  std::optional<std::uint64_t> seed;
  bool tasks = false, json = false;
};

Result<std::size_t> read_memory(std::string_view argument, std::string_view text) {
  constexpr std::size_t kLeast = std::size_t{16} << 20;
  const auto bytes = parse_size(argument, text);
  if (!bytes.ok() || *bytes >= kLeast) return bytes;
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are 16M and more, or no program starts", argument, text));
}

Result<Exit> check_order(std::string_view text, bool json, Console& console) {
  const auto written = read_order(text);
  if (!written.ok()) return written.status();
  const OrderJudgement judged = judge_order(*written);
  console.out << (json ? order_json(*written, judged).dump() + "\n" : order_text(*written, judged));
  return judged.fault ? Exit::wrong : Exit::ok;
}

Result<Exit> check_schedule(const CheckArguments& a, Console& console) {
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  const SimulateOptions options = {.sync = a.sync, .lower = a.network.lower};
  if (ScheduleFunction::is_named(a.file)) {
    const auto ranks = a.ranks.empty() ? read_ranks("--ranks", kUsualRanks) : a.ranks;
    if (!ranks.ok()) return ranks.status();
    FunctionLimits limits;
    if (a.seconds) limits.time = std::chrono::seconds(*a.seconds);
    if (a.memory) limits.memory = *a.memory;
    return check_function({a.file, *ranks, a.bytes, *network, options, limits, a.json}, console);
  }
  for (const auto& [option, is_given] : {std::pair{"--ranks", !a.ranks.empty()},
                                         {"--seconds", a.seconds.has_value()},
                                         {"--memory", a.memory.has_value()}}) {
    if (!is_given) continue;
    return invalid_argument(
        fmt::format("{} belongs to a FILE with a function: .py, .cc, .cpp or .cxx", option));
  }
  const auto text = read_input("FILE", a.file, kMostJsonBytes);
  if (!text.ok()) return text.status();
  if (is_order(*text)) return check_order(*text, a.json, console);
  const auto written = read_schedule(*text);
  if (!written.ok()) return written.status();
  const auto fabric = wired_for(*network, written->goal.ranks);
  if (!fabric.ok()) return fabric.status();
  const auto judged = judge(*written, *fabric, a.bytes, options);
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
    console.out << fmt::format("wrong: {}\n", violation_name(*judged->violation))
                << violation_text(*written, *judged->violation);
  } else {
    console.out << "proved: who needs a block ends with it, each contribution in it once; no "
                   "transfer could be left out\n\n"
                << costs_text(*judged, *fabric, a.bytes, a.sync);
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
      "check",
      "judge a schedule, a pipeline's order or a formula that you wrote: proof, costs, the best");
  add_text(app, "file", a.file, "FILE",
           "the schedule; '-': standard input; .py, .cc: a function that makes it");
  add_argument(app, "-t,--ranks", a.ranks, read_ranks, "LIST",
               fmt::format("of a function: 8, 2,3,8 or 1..130 ({})", kUsualRanks));
  add_argument(
      app, "--seconds", a.seconds, Whole{1, 86'400}, "S",
      fmt::format("of a function: its time for each N ({})", FunctionLimits{}.time.count()));
  add_argument(app, "--memory", a.memory, read_memory, "SIZE",
               fmt::format("of a function: address space of each process ({})",
                           format_size(FunctionLimits{}.memory)));
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
      "s's "
      "block for rank r of all_to_all is s * N + r; of all others there is one, or as many as you "
      "say. All that is read in a round is read before anything of it is written.\n"
      "A pipeline's order is text, too: what each stage does, one after the other:\n"
      "  pipeline 2 micro_batches 3   then forward F, backward B, weights W, hop H (seconds: 1, "
      "2,\n"
      "                               0, 0), keep K (micro-batches at once), within T (seconds)\n"
      "  0: F0 F1 B0 F2 B1..2         forward and backward passes (and W where weights are set)\n"
      "  1: F0 B0 F1 B1 F2 B2\n"
      "A function makes a schedule for any number of ranks, and has to be right for all. In "
      "Python:\n"
      "  collective = \"all_gather\"\n"
      "  def schedule(n):\n"
      "      for k in range(n - 1):\n"
      "          yield [(r, (r + 1) % n, (r - k) % n) for r in range(n)]  # from, to, block\n"
      "In C++, which is compiled with c++:\n"
      "  #include \"schedule_to_check.h\"\n"
      "  Schedule schedule(int n) {\n"
      "    Schedule s{\"all_gather\", n};\n"
      "    for (int k = 0; k + 1 < n; ++k) {\n"
      "      s.round();\n"
      "      for (int r = 0; r < n; ++r) s.copy(r, (r + 1) % n, (r - k + n) % n);\n"
      "    }\n"
      "    return s;\n"
      "  }\n"
      "The folder that 'rankine lesson' writes has both, and says in examples/ what else there "
      "is.\n"
      "WARNING: a function runs as a program with your rights and may do to your files what you "
      "may do. Check other people's files only if you would run them. The program works in a "
      "temporary folder that is removed, has PATH as its only variable, and ends with all of its "
      "processes.\n"
      "Formulas: + - * / ( ) pow min max if floor ceil log2 clog2 flog2 sum, and the task's "
      "letters.\n"
      "Examples:\n"
      "  rankine check mine.txt --bytes 64M --network scale_out\n"
      "  rankine check ring.py --ranks 2..33\n"
      "  awk -f ring.awk | rankine check -\n"
      "  rankine show all_gather --algo ring --ranks 4 --text | rankine check -\n"
      "  rankine check --task ring_bytes --formula '2*(N-1)/N*S'\n"
      "Exit codes: 0 proved or right, 1 wrong, 2 usage or unreadable, 3 no such file.\n"
      "Networks:\n" +
      describe_presets());
  return {app, [owned](Console& console) { return run_check(*owned, console); }};
}

}  // namespace rankine::tools
