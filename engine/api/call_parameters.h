// Which options of a call are parameters of algorithms (algorithms/parameters.h).
#pragma once

#include <span>
#include <string_view>

#include "algorithms/parameters.h"
#include "engine/api/call.h"

namespace rankine {

struct CallParameter {
  std::string_view name;  // of the parameter and of the option
  int CallOptions::*number = nullptr;
  std::span<const int> CallOptions::*list = nullptr;
};
inline constexpr CallParameter kCallParameters[] = {
    {"segments", &CallOptions::segments},       {"group", &CallOptions::group},
    {"aggregation", &CallOptions::aggregation}, {"radix", &CallOptions::radix},
    {"dims", nullptr, &CallOptions::dims},      {"skips", nullptr, &CallOptions::skips},
    {"levels", nullptr, &CallOptions::levels}};

// What the options say; segments are 0 where they leave them open.
inline Params params_of(const CallOptions& options, int ranks) {
  Params params;
  params.ranks = ranks;
  for (const CallParameter& option : kCallParameters) {
    const Parameter& row = *find_parameter(option.name);
    if (option.number != nullptr) {
      params.*row.number = options.*option.number;
    } else {
      (params.*row.list).assign((options.*option.list).begin(), (options.*option.list).end());
    }
  }
  return params;
}

// The other way round; lists stay those of `params`.
inline void set_parameters(const Params& params, CallOptions& options) {
  for (const CallParameter& option : kCallParameters) {
    const Parameter& row = *find_parameter(option.name);
    if (option.number != nullptr) {
      options.*option.number = params.*row.number;
    } else {
      options.*option.list = params.*row.list;
    }
  }
}

}  // namespace rankine
