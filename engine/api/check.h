// check.h validates the arguments of communicators, teams and calls, before any byte moves. It also
// maps the options of a call to the parameters of algorithms (algorithms/parameters.h).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/parameters.h"
#include "engine/api/call.h"
#include "engine/base/status.h"
#include "engine/run/fingerprint.h"
#include "engine/run/plan.h"

namespace rankine {

struct CallParameter {
  std::string_view name;  // names both the parameter and the option
  int CallOptions::*number = nullptr;
  std::span<const int> CallOptions::*list = nullptr;
};
inline constexpr CallParameter kCallParameters[] = {
    {"segments", &CallOptions::segments},       {"group", &CallOptions::group},
    {"aggregation", &CallOptions::aggregation}, {"radix", &CallOptions::radix},
    {"dims", nullptr, &CallOptions::dims},      {"skips", nullptr, &CallOptions::skips},
    {"levels", nullptr, &CallOptions::levels}};

// The parameters that the options give; segments are 0 if the options leave them open.
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

// Copies parameters into options. The lists refer to `params`.
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

// The functions below check every option of every public struct; no other code does. Exceptions:
// rules that only algorithms know (Algorithm::refusal), and placements (place_ranks). Every error
// text names the argument, its value and the allowed values.

struct CommunicatorOptions;
struct TeamOptions;

// Checks the name under which processes meet.
Status check_name(std::string_view name);
Status check_communicator(const CommunicatorOptions& options);
// Does not check the placement, which depends on the machine, or options that check_communicator()
// checks.
Status check_team(const TeamOptions& options);

// Checks all arguments except addresses: root, type and operation, overflow, counts, options.
Status check_call(const Call& call, int ranks);
// No plan depends on user_op and factor, so these two must be checked in every call, also in a call
// with a known plan. user_op must not be null here.
Status check_user_op(const Call& call);
Status check_factor(const Call& call);
// Must be checked in every call, as above. The epilogue must not be null here.
Status check_epilogue(const Call& call);
// The timeout is the only other option without influence on plans: check it in every call.
inline bool timeout_fits(const CallOptions& options) noexcept {
  return options.timeout.count() >= 0;
}
Status misfit(const CallOptions& options) noexcept;

// Requires check_call().ok().
inline std::size_t element_bytes(const Call& call) {
  return call.user_op != nullptr ? call.user_op->element_bytes : size_of(call.type);
}

// The number of elements of each natural block. Requires check_call().ok().
std::vector<std::size_t> natural_counts(const Call& call, int ranks);

// The sizes and the overlap that a rank's buffers may have in one kind of call.
struct BufferRule {
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;
  bool may_be_in_place = false;
  std::ptrdiff_t in_place_offset = 0;  // in - out, in bytes, when called in place
};
BufferRule buffer_rule(const Layout& layout, const CollectiveSpec& goal, Rank rank);
// The rules of all ranks, by rank, in one pass over the blocks.
std::vector<BufferRule> buffer_rules(const Layout& layout, const CollectiveSpec& goal);

inline RankBuffers buffers_of(const BufferRule& rule, const void* in, const void* out) noexcept {
  return {{static_cast<const std::byte*>(in), rule.input_bytes},
          {static_cast<const std::byte*>(out), rule.output_bytes}};
}
// True if no buffer with bytes is null and the buffers overlap only in place.
inline bool buffers_fit(const BufferRule& rule, const void* in, const void* out) noexcept {
  if ((in == nullptr && rule.input_bytes > 0) || (out == nullptr && rule.output_bytes > 0)) {
    return false;
  }
  const RankBuffers buffers = buffers_of(rule, in, out);
  return !overlap(buffers.in, buffers.out) ||
         (rule.may_be_in_place && buffers.in.begin - buffers.out.begin == rule.in_place_offset);
}
// The error for buffers that do not fit.
Status misfit(const BufferRule& rule, const void* in, const void* out) noexcept;

}  // namespace rankine
