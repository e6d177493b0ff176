// The ops of a plan in words: `rankine show --plan` prints them, and tests compare them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/run/plan.h"

namespace rankine {

// An op of one rank, with the members that the op uses. plan.h explains the codes.
struct OpView {
  std::string_view code;       // "send", "wait_message"; "publish": a fold without operands
  std::optional<int> round{};  // of the schedule
  std::optional<Rank> peer{};  // the rank that the op sends to or waits for
  std::optional<std::uint32_t> number{};  // of a message, of a progress, or of published progress
  std::size_t bytes = 0;
  std::vector<std::string> to{};        // places that the op writes: "output+64", "2: output+64"
  std::vector<std::string> from{};      // places that the op reads: "input+0", "message 3 of 1"
  std::vector<std::string_view> how{};  // "by address", "divides", "streams" ...
};

std::vector<OpView> view_ops(const Plan& plan, Rank rank);

// The ops in short: "send* 1:0 wait_message 1:0 fold end". A pair is a peer and a number, an
// asterisk means `by address`, an ampersand `more to post`, and a post has its offset and bytes.
std::string ops_text(const Plan& plan, Rank rank);

}  // namespace rankine
