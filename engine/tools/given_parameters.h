// The algorithms that a question is about, and their parameters: asked for in one grammar by all
// subcommands and by requests in JSON, which algorithms/parameters.h spells out.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
