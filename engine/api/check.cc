#include "engine/api/check.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/levels.h"
#include "engine/api/call.h"
#include "engine/api/communicator.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

// Returns the first error.
Status first_of(std::initializer_list<Status> all) {
  for (const Status& status : all) {
    if (!status.ok()) return status;
  }
  return {};
}

Status check_range(std::string_view argument, std::int64_t value, std::int64_t first,
                   std::int64_t last) {
  if (value >= first && value <= last) return {};
  return invalid_argument(std::string(argument) + " is " + std::to_string(value) +
                          "; allowed are " + std::to_string(first) + " to " + std::to_string(last));
}

Status check_least(std::string_view argument, std::int64_t value, std::int64_t least,
                   std::string_view meaning) {
  if (value >= least) return {};
  return invalid_argument(std::string(argument) + " is " + std::to_string(value) +
                          "; allowed are " + std::to_string(least) + std::string(meaning) +
                          " and more");
}

// Checks an enum with the values 0 to kinds - 1; each value has a name.
template <class Enum>
Status check_enum(std::string_view argument, Enum value, int kinds) {
  return check_range(argument, static_cast<int>(value), 0, kinds - 1);
}

Status check_sizes(std::string_view argument, std::span<const int> sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Status status =
        check_least(std::string(argument) + "[" + std::to_string(i) + "]", sizes[i], 1, "");
    if (!status.ok()) return status;
  }
  return {};
}

Status check_options(const CallOptions& options) {
  for (const CallParameter& option : kCallParameters) {
    Status status = option.number != nullptr
                        ? check_least(option.name, options.*option.number, 0, " (the default)")
                        : check_sizes(option.name, options.*option.list);
    if (!status.ok()) return status;
  }
  return first_of(
      {check_enum("transport", options.transport.value_or(Transport::direct), kTransports),
       check_enum("order", options.order.value_or(Order::coherent), kOrders),
       timeout_fits(options) ? Status() : misfit(options)});
}

// The checks that communicators and teams share.
Status check_common(int ranks, int most_ranks, std::chrono::milliseconds timeout,
                    const std::optional<WaitPolicy>& wait) {
  const WaitPolicy policy = wait.value_or(WaitPolicy());
  return first_of({check_range("ranks", ranks, 1, most_ranks),
                   timeout.count() > 0
                       ? Status()
                       : invalid_argument("timeout is " + std::to_string(timeout.count()) +
                                          " ms; allowed are 1 and more"),
                   check_enum("wait.mode", policy.mode, kWaitModes),
                   check_least("wait.yield_ns", policy.yield_ns, 0, ""),
                   check_least("wait.spin_ns", policy.spin_ns, 0, "")});
}

Status check_processes(const CommunicatorOptions& options) {
  if (options.name.empty() && !options.rank && options.more_ranks.empty()) return {};
  if (Status status = check_name(options.name); !status.ok()) return status;
  if (!options.rank)
    return invalid_argument("name is '" + std::string(options.name) +
                            "', rank is not set; set the rank of this process");
  if (!options.algorithms.empty()) {
    return invalid_argument("algorithms has " + std::to_string(options.algorithms.size()) +
                            " entries; allowed among processes are none: use the catalogue");
  }
  if (options.network != nullptr && options.network->seats != nullptr) {
    return invalid_argument(
        "network: seats are given; allowed among processes are none: groups that are split from "
        "the communicator share its seats");
  }
  Status status = first_of({check_range("ranks", options.ranks, 1, Communicator::kMaxProcesses),
                            check_range("rank", *options.rank, 0, options.ranks - 1)});
  for (std::size_t i = 0; status.ok() && i < options.more_ranks.size(); ++i) {
    const Rank one = options.more_ranks[i];
    const auto before = options.more_ranks.first(i);
    status = check_range("more_ranks", one, 0, options.ranks - 1);
    if (status.ok() && (one == *options.rank || std::count(before.begin(), before.end(), one) > 0))
      return invalid_argument("more_ranks has " + std::to_string(one) +
                              " a second time; allowed is each rank of this process once");
  }
  return status;
}

}  // namespace

Status check_name(std::string_view name) {
  constexpr std::size_t kMostLetters = 100;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (!name.empty() && name.size() <= kMostLetters &&
      name.find_first_not_of(kLetters) == std::string_view::npos) {
    return {};
  }
  return invalid_argument("name is '" + std::string(name) + "'; allowed are 1 to " +
                          std::to_string(kMostLetters) + " letters, digits, '.', '-' and '_'");
}

Status check_communicator(const CommunicatorOptions& options) {
  const int most_ranks =
      options.network != nullptr ? Communicator::kMaxOnNetwork : Communicator::kMaxRanks;
  Status status = check_common(options.ranks, most_ranks, options.timeout, options.wait);
  if (!status.ok()) return status;
  if (const CostField* field = options.costs ? misfit(*options.costs) : nullptr) {
    return invalid_argument("costs." + std::string(field->name) + " is " +
                            std::to_string(*options.costs.*field->value) + "; allowed are " +
                            allowed(*field));
  }
  status = check_processes(options);
  if (!status.ok()) return status;
  status = check_enum("order", options.order.value_or(Order::coherent), kOrders);
  if (!status.ok()) return status;
  status = check_least("progress_core", options.progress_core.value_or(0), 0, "");
  if (!status.ok()) return status;
  status = check_least("ports", options.ports, 0, " (no budget)");
  if (!status.ok()) return status;
  if (options.ports > 0 && options.network != nullptr) {
    return invalid_argument("ports is " + std::to_string(options.ports) +
                            ", and network has its own ports; leave out one of the two");
  }
  if (options.plan_bytes == 0) return invalid_argument("plan_bytes is 0; allowed are 1 and more");
  if (!options.arenas.empty() && options.arenas.size() != static_cast<std::size_t>(options.ranks)) {
    return invalid_argument("arenas has " + std::to_string(options.arenas.size()) +
                            " entries; allowed are none or " + std::to_string(options.ranks));
  }
  for (std::size_t i = 0; i < options.arenas.size(); ++i) {
    status = check_least("arenas[" + std::to_string(i) + "].node", options.arenas[i].node, kAnyNode,
                         " (any)");
    if (!status.ok()) return status;
  }
  if (const auto why =
          levels_refusal({options.levels.begin(), options.levels.end()}, options.ranks)) {
    return invalid_argument(*why);
  }
  return {};
}

Status check_team(const TeamOptions& options) {
  return check_common(options.ranks, Communicator::kMaxRanks, options.timeout, options.wait);
}

Status misfit(const CallOptions& options) noexcept {
  return make_error(Code::invalid_argument, [&] {
    return "timeout is " + std::to_string(options.timeout.count()) +
           " ms; allowed are 0 (the communicator's) and more";
  });
}

Status check_user_op(const Call& call) {
  const UserOp& op = *call.user_op;
  if (!reduces(call.collective)) {
    return invalid_argument("user_op is given to " + std::string(name_of(call.collective)) +
                            "; allowed are collectives that reduce");
  }
  if (op.apply == nullptr) return invalid_argument("user_op.apply is null; allowed are functions");
  if (op.element_bytes < 1 || op.element_bytes > kMostElementBytes) {
    return invalid_argument("user_op.element_bytes is " + std::to_string(op.element_bytes) +
                            "; allowed are 1 to " + std::to_string(kMostElementBytes));
  }
  if (call.op == ReduceOp::user && call.type == DataType::raw) return {};
  return invalid_argument("user_op is given, type is " + std::string(name_of(call.type)) +
                          ", operation is " + std::string(name_of(call.op)) +
                          "; allowed are raw and user");
}

namespace {

bool takes_epilogue(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather;
}

// Checks that every rank's output is whole rows. Requires valid counts and a valid epilogue.
Status check_rows(const Call& call, int ranks) {
  const std::size_t row = call.options.epilogue->row_elements;
  const auto check = [row](const std::string& what, std::size_t elements) -> Status {
    if (elements % row == 0) return {};
    return invalid_argument("epilogue.row_elements is " + std::to_string(row) + ", " + what +
                            " is " + std::to_string(elements) +
                            "; allowed are whole rows: multiples of row_elements");
  };
  if (call.collective == Collective::all_gather) {
    std::size_t all = call.count * static_cast<std::size_t>(ranks);
    if (!call.counts.empty())
      all = std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
    return check("the gathered total", all);
  }
  if (call.counts.empty()) return check("count", call.count);
  for (std::size_t i = 0; i < call.counts.size(); ++i) {
    Status status = check("counts[" + std::to_string(i) + "]", call.counts[i]);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Status check_epilogue(const Call& call) {
  const Epilogue& epilogue = *call.options.epilogue;
  if (!takes_epilogue(call.collective)) {
    return invalid_argument("epilogue is given to " + std::string(name_of(call.collective)) +
                            "; allowed are all_reduce, reduce_scatter and all_gather");
  }
  if (epilogue.finish == nullptr)
    return invalid_argument("epilogue.finish is null; allowed are functions");
  if (epilogue.row_elements == 0) {
    return invalid_argument("epilogue.row_elements is 0; allowed are 1 and more");
  }
  if (epilogue.type && *epilogue.type != call.type) {
    return invalid_argument("type is " + std::string(name_of(call.type)) + "; allowed is " +
                            std::string(name_of(*epilogue.type)) +
                            ", the type of the epilogue's rows");
  }
  return {};
}

Status check_factor(const Call& call) {
  if (call.factor == nullptr) return {};
  if (reduces(call.collective) && call.op == ReduceOp::sum && call.type != DataType::b8) return {};
  return invalid_argument("factor is given to " + std::string(name_of(call.collective)) + " " +
                          std::string(name_of(call.op)) + " of " + std::string(name_of(call.type)) +
                          "; allowed are sums of all types but b8");
}

Status check_call(const Call& call, int ranks) {
  Status status = check_enum("collective", call.collective, kCollectives);
  if (!status.ok()) return status;
  const bool users = call.user_op != nullptr;
  if (!users && call.op == ReduceOp::user) {
    return invalid_argument("user_op is null, operation is user; set user_op to the operation");
  }
  status = users ? check_user_op(call)
                 : first_of({check_enum("type", call.type, kDataTypes),
                             check_enum("operation", call.op, kReduceOps)});
  if (!status.ok()) return status;
  status = check_options(call.options);
  if (!status.ok()) return status;
  if (reduces(call.collective) && !users && !supports(call.type, call.op)) {
    return invalid_argument("operation is " + std::string(name_of(call.op)) + " on type " +
                            std::string(name_of(call.type)) + "; " + supported_ops(call.type));
  }
  if (!users && !takes(call.collective, call.type, call.op)) {
    return invalid_argument("operation is avg; " + std::string(name_of(call.collective)) +
                            " adds up another number of contributions on every rank; use sum, "
                            "and divide");
  }
  if (has_root(call.collective)) {
    status = check_range("root", call.root, 0, ranks - 1);
    if (!status.ok()) return status;
  }
  if (call.collective == Collective::send_recv) {
    status = check_range("peer", call.peer, 0, ranks - 1);
    if (!status.ok()) return status;
  }
  const auto blocks = static_cast<std::size_t>(natural_blocks(call.collective, ranks));
  if (!call.counts.empty() && call.counts.size() != blocks) {
    return invalid_argument("counts has " + std::to_string(call.counts.size()) +
                            " entries; allowed for " + std::string(name_of(call.collective)) +
                            " among " + std::to_string(ranks) + " ranks are " +
                            std::to_string(blocks));
  }
  // All sizes together must fit in a pointer difference.
  const std::size_t limit =
      static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / element_bytes(call);
  if (call.counts.empty()) {
    if (call.count > limit / blocks) {
      return invalid_argument("count is " + std::to_string(call.count) + "; allowed are 0 to " +
                              std::to_string(limit / blocks) + " elements of " +
                              std::string(name_of(call.type)));
    }
  } else {
    std::size_t total = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
      if (call.counts[i] > limit - total) {
        return invalid_argument("counts[" + std::to_string(i) + "] is " +
                                std::to_string(call.counts[i]) + "; allowed are " +
                                std::to_string(limit) + " elements in all counts together");
      }
      total += call.counts[i];
    }
  }
  if (call.options.epilogue == nullptr) return {};
  status = check_epilogue(call);
  return status.ok() ? check_rows(call, ranks) : status;
}

std::vector<std::size_t> natural_counts(const Call& call, int ranks) {
  if (!call.counts.empty()) return {call.counts.begin(), call.counts.end()};
  return std::vector<std::size_t>(static_cast<std::size_t>(natural_blocks(call.collective, ranks)),
                                  call.count);
}

namespace {

// Adds a block that starts at the rank, or that the rank needs, or both.
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

BufferRule buffer_rule(const Layout& layout, const CollectiveSpec& goal, Rank rank) {
  BufferRule rule;
  for (Block b = 0; b < goal.blocks; ++b) {
    add_block(rule, layout.blocks[static_cast<std::size_t>(b)], goal.initially_holds(rank, b),
              goal.must_hold(rank, b), goal.collective);
  }
  return rule;
}

std::vector<BufferRule> buffer_rules(const Layout& layout, const CollectiveSpec& goal) {
  std::vector<BufferRule> rules(static_cast<std::size_t>(goal.ranks));
  for (Block b = 0; b < goal.blocks; ++b) {
    const BlockHome& block = layout.blocks[static_cast<std::size_t>(b)];
    const Rank source = goal.source_of(b), target = goal.target_of(b);
    const auto add = [&](Rank r) {
      add_block(rules[static_cast<std::size_t>(r)], block, goal.initially_holds(r, b),
                goal.must_hold(r, b), goal.collective);
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
    const RankBuffers buffers = buffers_of(rule, in, out);
    std::string text = "in " + to_string(buffers.in) + " and out " + to_string(buffers.out) +
                       " overlap; allowed are separate buffers";
    if (rule.may_be_in_place) {
      text += ", or in place with in " + std::to_string(rule.in_place_offset) + " bytes after out";
    }
    return text;
  });
}

namespace {

constexpr std::string_view kNames[kOrders] = {"coherent",       "repeatable",      "by_rank",
                                              "size_invariant", "group_invariant", "tp_invariant"};

}  // namespace

std::string_view name_of(Order order) {
  const auto i = static_cast<std::size_t>(order);
  return i < kOrders ? kNames[i] : "unknown";
}

std::optional<Order> parse_order(std::string_view text) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), text);
  if (found == std::end(kNames)) return {};
  return static_cast<Order>(found - std::begin(kNames));
}

std::string to_string(const OrderSet& orders) {
  std::string text;
  for (int i = 0; i < kOrders; ++i) {
    const auto order = static_cast<Order>(i);
    if (!orders.has(order)) continue;
    if (!text.empty()) text += ", ";
    text += name_of(order);
  }
  return text;
}

Status reduce_group(DataType type, ReduceOp op, std::span<const void* const> srcs, void* dst,
                    std::size_t count) {
  if (srcs.empty()) return invalid_argument("srcs is empty; allowed are 1 contribution and more");
  if (Status status = check_call({.count = count, .type = type, .op = op}, 1); !status.ok()) {
    return status;
  }
  if (op == ReduceOp::avg) {
    return invalid_argument("operation is avg; the order group_invariant has sums, not averages");
  }
  const bool is_null =
      count > 0 && (dst == nullptr || std::find(srcs.begin(), srcs.end(), nullptr) != srcs.end());
  if (is_null)
    return invalid_argument("dst or one of srcs is null; allowed are addresses of count elements");
  find_tree_reduce(type, op)(dst, srcs.data(), static_cast<int>(srcs.size()), count, 0);
  return {};
}

}  // namespace rankine
