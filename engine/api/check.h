// Which options of a call are parameters of algorithms (algorithms/parameters.h).
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

// What is wrong with arguments: of communicators and teams, and of a call before any byte moves.
// Every option of every public struct is looked at here, and nowhere else, but for what only
// algorithms know (Algorithm::refusal) and placements (place_ranks). Every text names the argument,
// its value and what is allowed.

struct CommunicatorOptions;
struct TeamOptions;

// What ranks that are processes meet under.
Status check_name(std::string_view name);
Status check_communicator(const CommunicatorOptions& options);
// But for the placement, which depends on the machine, and what check_communicator() sees.
Status check_team(const TeamOptions& options);

// Everything that does not depend on the addresses: root, type and operation, overflow, counts,
// options.
Status check_call(const Call& call, int ranks);
// What no plan depends on, and so is wrong in calls that were made before, too: user_op, which must
// not be null here, and factor.
Status check_user_op(const Call& call);
Status check_factor(const Call& call);
// Likewise of the epilogue, which must not be null here.
Status check_epilogue(const Call& call);
// The one option that no plan depends on, so that it is wrong in calls that were made before, too.
inline bool timeout_fits(const CallOptions& options) noexcept {
  return options.timeout.count() >= 0;
}
Status misfit(const CallOptions& options) noexcept;

// Requires check_call().ok().
inline std::size_t element_bytes(const Call& call) {
  return call.user_op != nullptr ? call.user_op->element_bytes : size_of(call.type);
}

// Elements of each natural block. Requires check_call().ok().
std::vector<std::size_t> natural_counts(const Call& call, int ranks);

// What a rank's buffers must look like for one kind of call.
struct BufferRule {
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;
  bool may_be_in_place = false;
  std::ptrdiff_t in_place_offset = 0;  // in - out, in bytes, when called in place
};
BufferRule buffer_rule(const Layout& layout, const Goal& goal, Rank rank);
// Of all ranks, by rank, in one pass over the blocks.
std::vector<BufferRule> buffer_rules(const Layout& layout, const Goal& goal);

inline RankBuffers buffers_of(const BufferRule& rule, const void* in, const void* out) noexcept {
  return {{static_cast<const std::byte*>(in), rule.input_bytes},
          {static_cast<const std::byte*>(out), rule.output_bytes}};
}
// No null pointer where there are bytes, and no overlap but in place.
inline bool buffers_fit(const BufferRule& rule, const void* in, const void* out) noexcept {
  if ((in == nullptr && rule.input_bytes > 0) || (out == nullptr && rule.output_bytes > 0)) {
    return false;
  }
  const RankBuffers buffers = buffers_of(rule, in, out);
  return !overlap(buffers.in, buffers.out) ||
         (rule.may_be_in_place && buffers.in.begin - buffers.out.begin == rule.in_place_offset);
}
// What is wrong with buffers that do not.
Status misfit(const BufferRule& rule, const void* in, const void* out) noexcept;

}  // namespace rankine
