#include "engine/tools/given_parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/tools/catalogue_names.h"
#include "engine/tools/text.h"

namespace rankine::tools {

const GivenParameter* AlgorithmArguments::find(std::string_view parameter) const {
  const auto found = std::find_if(given.rbegin(), given.rend(), [parameter](const auto& each) {
    return each.parameter->name == parameter;
  });
  return found == given.rend() ? nullptr : &*found;
}

std::optional<std::string> AlgorithmArguments::take(std::string_view parameter) {
  const GivenParameter* found = find(parameter);
  if (found == nullptr) return std::nullopt;
  std::string text = found->text;
  std::erase_if(given, [&](const auto& each) { return each.parameter->name == parameter; });
  return text;
}

Status invalid_value(const GivenParameter& given, std::string_view allowed) {
  return invalid_argument(fmt::format("{} is {}; allowed are {}{}", given.argument, given.shown,
                                      allowed, did_you_mean(given.text, given.parameter->names())));
}

Result<Params> read_params(const AlgorithmArguments& a) {
  Params params = a.begin;
  for (const Parameter& row : parameters()) {
    const GivenParameter* given = a.find(row.name);
    if (given == nullptr || (row.read(given->text, params) && params.ranks <= a.most_ranks)) {
      continue;
    }
    return invalid_value(*given, row.name == "ranks"
                                     ? fmt::format("whole numbers from 1 to {}", a.most_ranks)
                                     : row.allowed());
  }
  if (a.collective == Collective::send_recv && a.find("peer") == nullptr) {
    params.peer = (params.root + 1) % params.ranks;
  }
  return params;
}

Result<std::vector<AskedAlgorithm>> asked_algorithms(const AlgorithmArguments& a,
                                                     std::vector<std::string>& notes,
                                                     const AdjustParams& adjust) {
  if (a.algorithms.empty()) {
    return invalid_argument(fmt::format("--algo is needed; {} has {}", name_of(*a.collective),
                                        algorithm_names(*a.collective)));
  }
  const auto lines = read_algorithms("--algo", a.algorithms, a.collective);
  if (!lines.ok()) return lines.status();
  const auto params = read_params(a);
  if (!params.ok()) return params.status();
  std::vector<AskedAlgorithm> asked;
  std::string refused;
  for (const Algorithm* line : *lines) {
    AskedAlgorithm one{line, *params};
    if (adjust) {
      if (Status status = adjust(*line, one.params); !status.ok()) return status;
    }
    Params checked = one.params;
    if (checked.segments == 0) checked.segments = 1;
    if (const auto refusal = line->refusal(checked)) {
      refused = *refusal;
      const bool others = a.all() || (lines->size() > 1 && line->untaken(checked));
      if (!others) return invalid_argument(refused);
      notes.push_back("left out: " + refused);
    } else {
      asked.push_back(std::move(one));
    }
  }
  if (asked.empty()) return invalid_argument(refused);
  return asked;
}

Status one_algorithm_only(const AlgorithmArguments& a) {
  return invalid_argument(fmt::format("--algo is '{}'; one algorithm is allowed, of {}",
                                      a.algorithms, algorithm_names(*a.collective)));
}

Status check_taken(const AlgorithmArguments& a, const std::vector<const Algorithm*>& lines) {
  for (const GivenParameter& given : a.given) {
    const Parameter& row = *given.parameter;
    const auto takes = [&row](const Algorithm* line) { return line->takes(row.name); };
    Params params;
    const bool asks = !row.read(given.text, params) || !row.open(params);
    if (!asks || std::any_of(lines.begin(), lines.end(), takes)) continue;
    const auto other = [&](const Algorithm& line) {
      return (!a.collective || line.collective == *a.collective) && !takes(&line);
    };
    if (std::none_of(catalogue().begin(), catalogue().end(), other)) continue;
    return invalid_argument(fmt::format(
        "{} is {}; no algorithm named by --algo takes it; 'rankine list' shows which ones do",
        given.argument, given.shown));
  }
  return {};
}

}  // namespace rankine::tools
