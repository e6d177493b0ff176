// A name that is read is the name of what was read.
#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/parameters.h"
#include "engine/api/environment.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"
#include "engine/run/kernels/reduce.h"
#include "engine/tools/arguments.h"
#include "engine/tools/text.h"
#include "engine/tools/tool.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/targets.h"

namespace rankine::fuzz {
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
    for (const Algorithm* line : *lines) {
      require(!of || line->collective == *of, "of the collective asked for");
    }
  }
  const auto seed = read_seed(kArgument, input);
  if (!refused(seed)) {
    const auto again = read_seed(kArgument, std::to_string(**seed));
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
    for (const Algorithm* line : *forced) {
      if (line != nullptr) {
        text += std::string(name_of(line->collective)) + ":" + std::string(line->name) + ";";
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

// Every option of every subcommand reads its value; --help, right after the subcommand, sees to it
// that nothing is done with them.
void command_line(std::string_view input) {
  if (input.find('\0') != std::string_view::npos) return;  // no word has one
  if (input.find('/') != std::string_view::npos) return;   // no files of this machine
  std::vector<std::string> words;
  std::istringstream lines{std::string(input)};
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  if (words.empty()) return;
  words.insert(words.begin() + 1, "--help");
  std::ostringstream out, err;
  tools::Console console{.out = out, .err = err};
  const tools::Exit exit = tools::run_tool(words, console);
  require(exit == tools::Exit::ok || exit == tools::Exit::usage, "nothing was done");
  require(!(out.str().empty() && err.str().empty()), "something was said");
}

}  // namespace rankine::fuzz
