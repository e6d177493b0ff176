// Numbers, lists and names that people write on a command line; units.h has sizes and times.
//
// Every parser takes the name of its argument first and returns an error that names the argument,
// its value and what is allowed.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"  // who refuses a name says what was meant
#include "engine/base/units.h"

namespace rankine::tools {

// A whole number within lowest .. highest.
Result<int> parse_whole(std::string_view argument, std::string_view text, int lowest, int highest);

// "3", "2,3,8", "1..130", "2..4,8": rising and each once, whatever the order written.
Result<std::vector<int>> parse_whole_list(std::string_view argument, std::string_view text,
                                          int lowest, int highest);

// Parts between commas. "" is no part; an empty part between commas stays one.
std::vector<std::string_view> split_list(std::string_view text);
std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

// What somebody wrote, as errors show it on a terminal: no longer than a line, and without control
// characters, since it may be any file.
std::string legible(std::string_view text);

// "algorithm is 'rnig'; allowed are ring, direct; did you mean 'ring'?"
Status unknown_name(std::string_view argument, std::string_view value,
                    std::span<const std::string_view> allowed);

// Numbers that need not be whole, as people write them on a command line.

// The whole text as a number that is finite, or nullopt.
std::optional<double> parse_real(std::string_view text);

// The catalogue's formulas as people write them.

// "2*(clog2(N)+P-1)" is "2(ceil(log2 N)+P-1)", "if(N-1,a,b)" is "a if N>1, else b". What it does
// not know stays as it is. Requires parentheses that match.
std::string readable_formula(std::string_view formula);

// The ports that a schedule wants and those that a network has, in words: case A and case B of Lu,
// "Collective Algorithms", 2026, C.4. Where a rank has fewer ports than it has messages in a round,
// these queue, and what was to overlap becomes serial.

// "needs 3 ports per rank, the network has 1: rounds serialise (case B of the survey's C.4)".
// needed: most messages that one rank sends, or receives, in a round; the greater of the two.
std::string port_budget(int needed, int ports);
// "needs 3 ports per rank", where no network is given.
std::string port_need(int needed);
inline bool rounds_serialise(int needed, int ports) { return needed > ports; }

// Files that a build has in it; embed.py writes the functions that hand them out.

struct EmbeddedFile {
  std::string name;  // below the folder that embed.py was told
  std::string text;
};

// Collectives and algorithms by the names that people type (engine/api/typed_names.h), for command
// lines and requests alike.

// A collective for which the catalogue has an algorithm.
Result<Collective> read_collective(std::string_view argument, std::string_view text);

// "ring,direct" or "all", as lines of the catalogue in its order. Each name must be an algorithm of
// `collective`; without a collective, of any.
Result<std::vector<const Algorithm*>> read_algorithms(std::string_view argument,
                                                      std::string_view text,
                                                      std::optional<Collective> collective);

// The algorithms that a question is about, and their parameters: asked for in one grammar by all
// subcommands and by requests in JSON, which algorithms/parameters.h spells out.

// A parameter as somebody wrote it; errors show `argument` ("--group") and `shown` ("'4'").
struct GivenParameter {
  const Parameter* parameter = nullptr;
  std::string text;  // as Parameter::read() takes it
  std::string argument, shown;
};

struct AlgorithmArguments {
  std::optional<Collective> collective{};
  std::string algorithms{};             // of --algo
  std::vector<GivenParameter> given{};  // the last of a parameter counts
  Params begin{.ranks = 8};             // what nobody gives
  int most_ranks = 1 << 20;

  bool all() const { return algorithms == "all"; }
  const GivenParameter* find(std::string_view parameter) const;  // or nullptr
  std::optional<std::string> take(std::string_view parameter);   // its text, and it is gone
};

Status invalid_value(const GivenParameter& given, std::string_view allowed);

// `begin` and what was given. Requires a collective; send_recv goes to the rank after the root
// where nobody says to whom. Errors name the argument, its value and what is allowed.
Result<Params> read_params(const AlgorithmArguments& arguments);

struct AskedAlgorithm {
  const Algorithm* algorithm = nullptr;
  Params params;  // segments 0: auto
};
// The algorithms of --algo with read_params(), of which `adjust` may change some for each. One that
// refuses its parameters is an error; where all are asked for it is left out with the reason in
// `notes`, and so is one of several that does not take what others may. Requires a collective.
using AdjustParams = std::function<Status(const Algorithm&, Params&)>;
Result<std::vector<AskedAlgorithm>> asked_algorithms(const AlgorithmArguments& arguments,
                                                     std::vector<std::string>& notes,
                                                     const AdjustParams& adjust = {});
// The error where several are asked for and one only is allowed.
Status one_algorithm_only(const AlgorithmArguments& arguments);

// Whether each parameter that was given is taken by one of `lines`, or by all algorithms of the
// collective, as ranks are.
Status check_taken(const AlgorithmArguments& arguments, const std::vector<const Algorithm*>& lines);

// Parameters of algorithms in JSON, in and out, as algorithms/parameters.h names them: some are
// members of a request itself, the others of its member "params".

using Json = nlohmann::ordered_json;

// What the algorithm takes, as numbers, lists and texts such as "4x4"; `rest` may be `request`.
void write_parameters(const Algorithm& line, const Params& params, Json& request, Json& rest);

// A member of the request, or of its "params". False: it is no parameter there.
bool read_parameter(const std::string& name, const Json& value, bool in_request,
                    AlgorithmArguments& into);
// All members of a request's "params".
Status read_params_member(const Json& params, AlgorithmArguments& into);

// Those of the request but for the ranks, or of its "params", for messages: "root, segments".
std::string parameter_names(bool in_request);

// "bytes is -1; allowed are ..."
Status bad_member(std::string_view member, const Json& value, std::string_view allowed);

// A line of the catalogue as JSON.

// Numbers that formulas know; lists are different for every algorithm.
inline bool in_formulas(const Parameter& row) {
  return row.number != nullptr && !row.letter.empty();
}

// All of its members, formulas as they are written there.
nlohmann::ordered_json algorithm_json(const Algorithm& line);
// The same, and in its member `at` what the formulas come to, or why there is no such schedule.
// `params` as resolved() gives them; what the line does not take makes no difference.
nlohmann::ordered_json algorithm_json(const Algorithm& line, const Params& params);

}  // namespace rankine::tools
