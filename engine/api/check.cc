#include "engine/api/check.h"

#include <cstdint>
#include <limits>
#include <string>

namespace rankine {
namespace {

std::string hex(const void* address) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (auto value = reinterpret_cast<std::uintptr_t>(address); value != 0; value >>= 4) {
    text.insert(text.begin(), kDigits[value & 15]);
  }
  return "0x" + (text.empty() ? "0" : text);
}

Status check_rank(std::string_view argument, Rank value, int ranks) {
  if (value >= 0 && value < ranks) return {};
  return invalid_argument(std::string(argument) + " is " + std::to_string(value) +
                          "; allowed are 0 to " + std::to_string(ranks - 1));
}

}  // namespace

Status check_call(const Call& call, int ranks) {
  if (static_cast<int>(call.collective) >= kCollectives) {
    return invalid_argument("collective is " + std::to_string(static_cast<int>(call.collective)) +
                            "; allowed are 0 to " + std::to_string(kCollectives - 1));
  }
  if (static_cast<int>(call.type) >= kDataTypes) {
    return invalid_argument("type is " + std::to_string(static_cast<int>(call.type)) +
                            "; allowed are 0 to " + std::to_string(kDataTypes - 1));
  }
  if (static_cast<int>(call.op) >= kReduceOps) {
    return invalid_argument("operation is " + std::to_string(static_cast<int>(call.op)) +
                            "; allowed are 0 to " + std::to_string(kReduceOps - 1));
  }
  if (reduces(call.collective) && !supports(call.type, call.op)) {
    return invalid_argument("operation is " + std::string(name_of(call.op)) + " on type " +
                            std::string(name_of(call.type)) +
                            "; bit operations are allowed on integers only");
  }
  if (has_root(call.collective)) {
    Status status = check_rank("root", call.root, ranks);
    if (!status.ok()) return status;
  }
  if (call.collective == Collective::send_recv) {
    Status status = check_rank("peer", call.peer, ranks);
    if (!status.ok()) return status;
  }
  const auto blocks = static_cast<std::size_t>(natural_blocks(call.collective, ranks));
  if (!call.counts.empty() && call.counts.size() != blocks) {
    return invalid_argument("counts has " + std::to_string(call.counts.size()) + " entries; " +
                            std::string(name_of(call.collective)) + " among " +
                            std::to_string(ranks) + " ranks needs " + std::to_string(blocks));
  }
  // All sizes together must stay below what a pointer difference can say.
  const std::size_t limit =
      static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / size_of(call.type);
  if (call.counts.empty()) {
    if (call.count > limit / blocks) {
      return invalid_argument("count is " + std::to_string(call.count) + "; at most " +
                              std::to_string(limit / blocks) + " elements of " +
                              std::string(name_of(call.type)) + " are allowed here");
    }
  } else {
    std::size_t total = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
      if (call.counts[i] > limit - total) {
        return invalid_argument("counts[" + std::to_string(i) + "] is " +
                                std::to_string(call.counts[i]) +
                                "; all counts together may be at most " + std::to_string(limit));
      }
      total += call.counts[i];
    }
  }
  return {};
}

std::vector<std::size_t> natural_counts(const Call& call, int ranks) {
  if (!call.counts.empty()) return {call.counts.begin(), call.counts.end()};
  return std::vector<std::size_t>(static_cast<std::size_t>(natural_blocks(call.collective, ranks)),
                                  call.count);
}

namespace {

// A block that starts at the rank, or is needed there, or both.
void add_block(BufferRule& rule, const BlockHome& block, bool in, bool out, Collective collective) {
  if (in) rule.input_bytes += block.bytes;
  if (out) rule.output_bytes += block.bytes;
  if (!in || !out || rule.may_be_in_place) return;
  rule.may_be_in_place = true;
  if (collective == Collective::all_to_all) return;
  rule.in_place_offset =
      static_cast<std::ptrdiff_t>(block.output) - static_cast<std::ptrdiff_t>(block.input);
}

}  // namespace

BufferRule buffer_rule(const Layout& layout, const Goal& goal, Rank rank) {
  BufferRule rule;
  for (Block b = 0; b < goal.blocks; ++b) {
    add_block(rule, layout.blocks[static_cast<std::size_t>(b)], goal.starts(rank, b),
              goal.needs(rank, b), goal.collective);
  }
  return rule;
}

std::vector<BufferRule> buffer_rules(const Layout& layout, const Goal& goal) {
  std::vector<BufferRule> rules(static_cast<std::size_t>(goal.ranks));
  for (Block b = 0; b < goal.blocks; ++b) {
    const BlockHome& block = layout.blocks[static_cast<std::size_t>(b)];
    const Rank source = goal.source_of(b), target = goal.target_of(b);
    const auto add = [&](Rank r) {
      add_block(rules[static_cast<std::size_t>(r)], block, source < 0 || source == r,
                target < 0 || target == r, goal.collective);
    };
    if (source < 0 || target < 0) {
      for (Rank r = 0; r < goal.ranks; ++r) add(r);
    } else {
      add(source);
      if (target != source) add(target);
    }
  }
  return rules;
}

Status misfit(const BufferRule& rule, const void* in, const void* out) noexcept {
  const auto is_null = [](const char* name, std::size_t bytes) {
    return make_error(Code::invalid_argument, [&] {
      return std::string(name) + " is null; " + std::to_string(bytes) + " bytes are needed";
    });
  };
  if (in == nullptr && rule.input_bytes > 0) return is_null("in", rule.input_bytes);
  if (out == nullptr && rule.output_bytes > 0) return is_null("out", rule.output_bytes);
  return make_error(Code::invalid_argument, [&] {
    std::string text = "in (" + hex(in) + ", " + std::to_string(rule.input_bytes) +
                       " bytes) and out (" + hex(out) + ", " + std::to_string(rule.output_bytes) +
                       " bytes) overlap; they must lie apart";
    if (rule.may_be_in_place) {
      text += ", or in place with in " + std::to_string(rule.in_place_offset) + " bytes after out";
    }
    return text;
  });
}

}  // namespace rankine
