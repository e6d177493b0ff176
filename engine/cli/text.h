// The parsers for texts of command lines and requests: numbers, lists, names, collectives,
// algorithms and parameters. units.h has sizes and times.
//
// Every parser takes the name of its argument first and returns an error that names the argument,
// its value and the allowed values.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"  // for did_you_mean

namespace rankine::tools {

// A whole number within lowest .. highest.
Result<int> parse_whole(std::string_view argument, std::string_view text, int lowest, int highest);

// Reads "3", "2,3,8", "1..130", "2..4,8"; the result rises without duplicates, in any order of the
// text.
Result<std::vector<int>> parse_whole_list(std::string_view argument, std::string_view text,
                                          int lowest, int highest);

// Splits at commas. "" has no parts; an empty part between commas is kept.
std::vector<std::string_view> split_list(std::string_view text);
std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

// A user's text for an error on a terminal: shortened to a line, and without control characters,
// because it may come from any file.
std::string legible(std::string_view text);

// "algorithm is 'rnig'; allowed are ring, direct; did you mean 'ring'?"
Status unknown_name(std::string_view argument, std::string_view value,
                    std::span<const std::string_view> allowed);

// "2*(clog2(N)+P-1)" becomes "2(ceil(log2 N)+P-1)", "if(N-1,a,b)" becomes "a if N>1, else b".
// Unknown parts stay unchanged. Requires matching parentheses.
std::string readable_formula(std::string_view formula);

// The ports that a schedule needs and the network's, in words: case A and case B of Lu, "Collective
// Algorithms", 2026, C.4. If a rank has fewer ports than messages in a round, the messages queue.
// "needs 3 ports per rank, the network has 1: rounds serialise (case B of the survey's C.4)".
// needed: the most messages that one rank sends in a round, or receives in a round; the greater of
// the two.
std::string port_budget(int needed, int ports);
// "needs 3 ports per rank", without a network.
std::string port_need(int needed);
inline bool rounds_serialise(int needed, int ports) { return needed > ports; }

// A file built into the program; embed.py writes the functions that return such files.
struct EmbeddedFile {
  std::string name;  // below the folder given to embed.py
  std::string text;
};

// Reads a collective for which the catalogue has an algorithm.
Result<Collective> read_collective(std::string_view argument, std::string_view text);

// Reads "ring,direct" or "all"; returns entries of the catalogue in its order. Each name must be an
// algorithm of `collective`; without a collective, of any collective.
Result<std::vector<const Algorithm*>> read_algorithms(std::string_view argument,
                                                      std::string_view text,
                                                      std::optional<Collective> collective);

// A parameter as the user wrote it; errors show `argument` ("--group") and `shown` ("'4'").
struct GivenParameter {
  const Parameter* parameter = nullptr;
  std::string text;  // input of Parameter::read()
  std::string argument, shown;
};

// The algorithms of a question and their parameters (algorithms/parameters.h), for all subcommands
// and for requests in JSON.
struct AlgorithmArguments {
  std::optional<Collective> collective{};
  // From a file, in place of --algo: none or one; `begin` has its parameters.
  std::vector<GivenAlgorithm> written{};
  std::string algorithms{};             // text of --algo
  std::vector<GivenParameter> given{};  // the last value of a parameter counts
  Params begin{.ranks = 8};             // defaults
  int most_ranks = 1 << 20;

  bool all() const { return algorithms == "all"; }
  const GivenParameter* find(std::string_view parameter) const;  // or nullptr
  std::optional<std::string> take(std::string_view parameter);   // removes it and returns its text
};

Status invalid_value(const GivenParameter& given, std::string_view allowed);

// `begin` with the given parameters. Requires a collective; the default peer of send_recv is the
// rank after the root. Errors name the argument, its value and the allowed values.
Result<Params> read_params(const AlgorithmArguments& arguments);

struct AskedAlgorithm {
  const Algorithm* algorithm = nullptr;
  Params params;  // segments 0: auto
};
// The algorithms of --algo with the parameters of read_params(), which `adjust` may change for each
// algorithm. An algorithm that refuses its parameters is an error; with "all" it is left out with
// the reason in `notes`, and so is one of several algorithms that does not take a given parameter.
// Requires a collective.
using AdjustParams = std::function<Status(const Algorithm&, Params&)>;
Result<std::vector<AskedAlgorithm>> asked_algorithms(const AlgorithmArguments& arguments,
                                                     std::vector<std::string>& notes,
                                                     const AdjustParams& adjust = {});
// The error for several algorithms if only one is allowed.
Status one_algorithm_only(const AlgorithmArguments& arguments);

// Checks that each given parameter is taken by one of `lines`, or by all algorithms of the
// collective, like ranks.
Status check_taken(const AlgorithmArguments& arguments, const std::vector<const Algorithm*>& lines);

using Json = nlohmann::ordered_json;

// Writes the parameters that the algorithm takes, as numbers, lists and texts such as "4x4": some
// are members of the request, the others of its member "params"; `rest` may be `request`.
void write_parameters(const Algorithm& entry, const Params& params, Json& request, Json& rest);

// Reads a member of the request, or of its "params". False: the name is not a parameter there.
bool read_parameter(const std::string& name, const Json& value, bool in_request,
                    AlgorithmArguments& into);
// Reads all members of a request's "params".
Status read_params_member(const Json& params, AlgorithmArguments& into);

// The names of the parameters in a request without the ranks, or in its "params", for error texts:
// "root, segments".
std::string parameter_names(bool in_request);

// "bytes is -1; allowed are ..."
Status bad_member(std::string_view member, const Json& value, std::string_view allowed);

// True for numbers that formulas use; lists differ for every algorithm.
inline bool in_formulas(const Parameter& row) {
  return row.number != nullptr && !row.letter.empty();
}

// All members of the entry, formulas unevaluated.
nlohmann::ordered_json algorithm_json(const Algorithm& entry);
// All members, and in the member `at` the formulas' values, or the reason why the schedule does not
// exist. `params` as made by resolved(); parameters that the entry does not take are ignored.
nlohmann::ordered_json algorithm_json(const Algorithm& entry, const Params& params);

}  // namespace rankine::tools
