// The C functions of collectives, messages and epilogues: each fills in a Call.

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/c/group.h"
#include "engine/api/c/handles.h"
#include "engine/api/c/last_error.h"
#include "engine/api/c/rankine.h"
#include "engine/api/c/settings.h"
#include "engine/api/environment.h"

namespace rankine {
namespace {

struct Arguments {
  Collective collective;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  int type = rkInt8;
  int op = rkSum;
  int root = 0;
  const std::size_t* counts = nullptr;
  bool has_counts = false;
  const std::size_t* in_displacements = nullptr;  // NULL: contiguous blocks
  const std::size_t* out_displacements = nullptr;
  std::optional<rkEpilogue_t> epilogue{};
};

std::shared_ptr<const CreatedOperation> created_operation(const RankHandle& handle, int op) {
  const auto found = handle.operations.find(op);
  if (found != handle.operations.end()) return found->second;
  throw Refusal{rkInvalidArgument, "op is " + std::to_string(op) + "; allowed are 0 to " +
                                       std::to_string(rkNumOps - 1) +
                                       " and operations that this rank has created"};
}

// Makes a call on its handle, without allocating memory. In a group the call is collected.
[[gnu::noinline]] rkResult_t call(const char* function, rkComm_t comm,
                                  const Arguments& arguments) noexcept {
  const rkResult_t result = guarded(function, [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    handle->check_not_finalized();
    Call call{.collective = arguments.collective,
              .in = arguments.in,
              .out = arguments.out,
              .count = arguments.count,
              .root = arguments.root};
    std::shared_ptr<const CreatedOperation> created;
    if (arguments.op >= rkNumOps) [[unlikely]] {
      created = created_operation(*handle, arguments.op);
    } else {
      call.type = row(kTypes, "type", arguments.type);
      call.op = row(kOps, "op", arguments.op);
    }
    if (arguments.has_counts) {
      if (arguments.counts == nullptr) return is_null("counts");
      const int blocks = natural_blocks(call.collective, handle->member->ranks());
      call.counts = {arguments.counts, static_cast<std::size_t>(blocks)};
    }
    const auto n = static_cast<std::size_t>(handle->member->ranks());
    Displacements displacements;
    if (arguments.in_displacements != nullptr) displacements.in = {arguments.in_displacements, n};
    if (arguments.out_displacements != nullptr) {
      displacements.out = {arguments.out_displacements, n};
    }
    if (!displacements.in.empty() || !displacements.out.empty()) {
      call.displacements = &displacements;
    }
    std::optional<BorrowedEpilogue> epilogue;
    if (arguments.epilogue) epilogue.emplace(*arguments.epilogue, BorrowedEpilogue::As::caller);
    if (in_group()) {
      if (created != nullptr) created->describe(call, arguments.type);
      CollectedCall& one = collect(function, comm);
      one.call = call;
      one.counts.assign(call.counts.begin(), call.counts.end());
      one.in_displacements.assign(displacements.in.begin(), displacements.in.end());
      one.out_displacements.assign(displacements.out.begin(), displacements.out.end());
      one.created = std::move(created);
      if (epilogue) one.epilogue = (*epilogue)->epilogue;
      return {};
    }
    call.options = handle->options();
    if (epilogue) call.options.epilogue = (*epilogue)->epilogue.get();
    if (created != nullptr) created->describe(call, arguments.type);
    return call.collective == Collective::barrier ? handle->member->barrier(call.options)
                                                  : handle->member->call(call);
  });
  if (result != rkSuccess && in_group()) refuse_group(result);
  return result;
}

// Makes or collects a plain call whose rank is in use, or has options, or has ended; or explains
// why not.
[[gnu::noinline]] rkResult_t call_in_full(const char* function, rkComm_t comm, const void* in,
                                          void* out, std::size_t count,
                                          std::uint64_t kinds) noexcept {
  const PlainCall plain{in, out, count, kinds};
  const rkResult_t result = guarded(function, [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    handle->check_not_finalized();
    if (in_group()) {
      collect(function, comm).call = plain.call();
      return {};
    }
    Call call = plain.call();
    call.options = handle->options();
    return handle->member->call(call);
  });
  if (result != rkSuccess && in_group()) refuse_group(result);
  return result;
}

[[gnu::noinline, gnu::cold]] rkResult_t failed(const char* function,
                                               const RankTable::Slot& rank) noexcept {
  return guarded(function, [&] { return failure_of(rank); });
}

// The short way of a call that is not in a group.
[[gnu::always_inline]] inline rkResult_t call_at_once(const char* function, rkComm_t comm,
                                                      const PlainCall& call) noexcept {
  if (const TakenRank rank(comm); rank) [[likely]] {
    return rank.member().try_plain(call.in, call.out, call.count, call.kinds)
               ? rkSuccess
               : failed(function, rank.slot());
  }
  return call_in_full(function, comm, call.in, call.out, call.count, call.kinds);
}

// The short way of a call in a group.
[[gnu::noinline]] rkResult_t collect_plain(const char* function, rkComm_t comm, const void* in,
                                           void* out, std::size_t count,
                                           std::uint64_t kinds) noexcept {
  {
    const TakenRank rank(comm);
    if (rank && rank.slot().home.load(std::memory_order_relaxed).is_this() &&
        collect_again({function, comm, {in, out, count, kinds}})) [[likely]] {
      return rkSuccess;
    }
  }
  return call_in_full(function, comm, in, out, count, kinds);
}

// call() with a created operation, or with a type or operation that does not exist.
[[gnu::noinline]] rkResult_t call_oddly(const char* function, rkComm_t comm, Collective collective,
                                        const void* in, void* out, std::size_t count, int type,
                                        int op, int root) noexcept {
  return call(function, comm, {collective, in, out, count, type, op, root});
}

// PlainCall::kinds of the types and operations, by C number.
struct Kinds {
  std::uint64_t types[kTypes.size()] = {}, ops[kOps.size()] = {};
};
constexpr Kinds kKinds = [] {
  Kinds all;
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    all.types[i] = PlainCall::kinds_of({}, kTypes[i], {}, 0);
  for (std::size_t i = 0; i < kOps.size(); ++i)
    all.ops[i] = PlainCall::kinds_of({}, {}, kOps[i], 0);
  return all;
}();

// call() for a call without lists and epilogues.
[[gnu::always_inline]] inline rkResult_t call(const char* function, rkComm_t comm,
                                              Collective collective, const void* in, void* out,
                                              std::size_t count, int type, int op = rkSum,
                                              int root = 0) noexcept {
  // Negative numbers become large ones.
  if (static_cast<unsigned>(type) < kTypes.size() && static_cast<unsigned>(op) < kOps.size())
      [[likely]] {
    const std::uint64_t kinds = PlainCall::kinds_of(collective, {}, {}, root) |
                                kKinds.types[static_cast<unsigned>(type)] |
                                kKinds.ops[static_cast<unsigned>(op)];
    if (in_group()) [[unlikely]]
      return collect_plain(function, comm, in, out, count, kinds);
    return call_at_once(function, comm, {in, out, count, kinds});
  }
  return call_oddly(function, comm, collective, in, out, count, type, op, root);
}

Status check_peer(const Member& member, int peer) {
  if (peer >= 0 && peer < member.ranks()) return {};
  return invalid_argument("peer is " + std::to_string(peer) + "; allowed are 0 to " +
                          std::to_string(member.ranks() - 1));
}

// Makes or collects a message, as call().
rkResult_t message(const char* function, rkComm_t comm, void* data, std::size_t count, int type,
                   int peer, bool sends) noexcept {
  const rkResult_t result = guarded(function, [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    handle->check_not_finalized();
    const Message message{data, count, row(kTypes, "type", type), peer, sends};
    if (Status status = check_peer(*handle->member, peer); !status.ok()) return status;
    if (count > 0 && data == nullptr) return is_null("data");
    if (in_group()) {
      collect(function, comm).message = message;
      return {};
    }
    return handle->member->submit(message, handle->options());
  });
  if (result != rkSuccess && in_group()) refuse_group(result);
  return result;
}

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkAllReduce(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                       rkComm_t comm) noexcept {
  return call("rkAllReduce", comm, Collective::all_reduce, in, out, count, type, op);
}
rkResult_t rkAllReduceQuantised(const void* in, void* out, size_t count, rkDataType_t type,
                                rkDataType_t as, size_t block, rkComm_t comm) noexcept {
  return guarded("rkAllReduceQuantised", [&]() -> Status {
    const BorrowedRank rank(comm, BorrowedRank::As::caller);
    rank->check_not_finalized();
    if (in_group()) {
      throw Refusal{rkInvalidUsage, "a group is open; make quantised sums outside of groups"};
    }
    const QuantisedSum::Options options{row(kTypes, "as", as), block != 0 ? block : 128};
    if (rank->quantised == nullptr || !(rank->quantised->options() == options)) {
      rank->quantised = std::make_unique<QuantisedSum>(*rank->member, options);
    }
    return rank->quantised->all_reduce(in, count, out, count, row(kTypes, "type", type));
  });
}
rkResult_t rkQuantisedError(rkDataType_t type, rkDataType_t as, const double* peaks, int ranks,
                            double* bound) noexcept {
  return guarded("rkQuantisedError", [&]() -> Status {
    if (bound == nullptr) return is_null("bound");
    if (ranks < 1) {
      return invalid_argument("ranks is " + std::to_string(ranks) + "; allowed are 1 and more");
    }
    if (peaks == nullptr) return is_null("peaks");
    const DataType sent = row(kTypes, "as", as), result = row(kTypes, "type", type);
    if (Status status = QuantisedSum::check({.as = sent}, result); !status.ok()) return status;
    *bound = QuantisedSum::largest_error(sent, result, {peaks, static_cast<std::size_t>(ranks)});
    return {};
  });
}
rkResult_t rkReduce(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                    int root, rkComm_t comm) noexcept {
  return call("rkReduce", comm, Collective::reduce, in, out, count, type, op, root);
}
rkResult_t rkBroadcast(const void* in, void* out, size_t count, rkDataType_t type, int root,
                       rkComm_t comm) noexcept {
  return call("rkBroadcast", comm, Collective::broadcast, in, out, count, type, rkSum, root);
}
rkResult_t rkBcast(void* data, size_t count, rkDataType_t type, int root, rkComm_t comm) noexcept {
  return call("rkBcast", comm, Collective::broadcast, data, data, count, type, rkSum, root);
}
rkResult_t rkAllGather(const void* in, void* out, size_t count, rkDataType_t type,
                       rkComm_t comm) noexcept {
  return call("rkAllGather", comm, Collective::all_gather, in, out, count, type);
}
rkResult_t rkReduceScatter(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                           rkComm_t comm) noexcept {
  return call("rkReduceScatter", comm, Collective::reduce_scatter, in, out, count, type, op);
}
rkResult_t rkScan(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                  rkComm_t comm) noexcept {
  return call("rkScan", comm, Collective::scan, in, out, count, type, op);
}
rkResult_t rkExscan(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                    rkComm_t comm) noexcept {
  return call("rkExscan", comm, Collective::exscan, in, out, count, type, op);
}
rkResult_t rkAllToAll(const void* in, void* out, size_t count, rkDataType_t type,
                      rkComm_t comm) noexcept {
  return call("rkAllToAll", comm, Collective::all_to_all, in, out, count, type);
}
rkResult_t rkGather(const void* in, void* out, size_t count, rkDataType_t type, int root,
                    rkComm_t comm) noexcept {
  return call("rkGather", comm, Collective::gather, in, out, count, type, rkSum, root);
}
rkResult_t rkScatter(const void* in, void* out, size_t count, rkDataType_t type, int root,
                     rkComm_t comm) noexcept {
  return call("rkScatter", comm, Collective::scatter, in, out, count, type, rkSum, root);
}
rkResult_t rkBarrier(rkComm_t comm) noexcept {
  return call("rkBarrier", comm, {Collective::barrier});
}

rkResult_t rkAllReduceThen(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                           rkEpilogue_t epilogue, rkComm_t comm) noexcept {
  return call("rkAllReduceThen", comm,
              {.collective = Collective::all_reduce,
               .in = in,
               .out = out,
               .count = count,
               .type = type,
               .op = op,
               .epilogue = epilogue});
}
rkResult_t rkReduceScatterThen(const void* in, void* out, size_t count, rkDataType_t type,
                               rkRedOp_t op, rkEpilogue_t epilogue, rkComm_t comm) noexcept {
  return call("rkReduceScatterThen", comm,
              {.collective = Collective::reduce_scatter,
               .in = in,
               .out = out,
               .count = count,
               .type = type,
               .op = op,
               .epilogue = epilogue});
}
rkResult_t rkAllGatherThen(const void* in, void* out, size_t count, rkDataType_t type,
                           rkEpilogue_t epilogue, rkComm_t comm) noexcept {
  return call("rkAllGatherThen", comm,
              {.collective = Collective::all_gather,
               .in = in,
               .out = out,
               .count = count,
               .type = type,
               .epilogue = epilogue});
}

rkResult_t rkSend(const void* data, size_t count, rkDataType_t type, int peer,
                  rkComm_t comm) noexcept {
  return message("rkSend", comm, const_cast<void*>(data), count, type, peer, true);
}
rkResult_t rkRecv(void* data, size_t count, rkDataType_t type, int peer, rkComm_t comm) noexcept {
  return message("rkRecv", comm, data, count, type, peer, false);
}

rkResult_t rkHasMessage(int peer, rkComm_t comm, int* has) noexcept {
  return guarded("rkHasMessage", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    handle->check_not_finalized();
    if (Status status = check_peer(*handle->member, peer); !status.ok()) return status;
    if (has == nullptr) return is_null("has");
    const auto found = handle->member->has_message(peer);
    if (found.ok()) *has = *found ? 1 : 0;
    return found.status();
  });
}

rkResult_t rkAllGatherCounts(const void* in, void* out, const size_t* counts, rkDataType_t type,
                             rkComm_t comm) noexcept {
  return call("rkAllGatherCounts", comm,
              {Collective::all_gather, in, out, 0, type, rkSum, 0, counts, true});
}
rkResult_t rkReduceScatterCounts(const void* in, void* out, const size_t* counts, rkDataType_t type,
                                 rkRedOp_t op, rkComm_t comm) noexcept {
  return call("rkReduceScatterCounts", comm,
              {Collective::reduce_scatter, in, out, 0, type, op, 0, counts, true});
}
rkResult_t rkAllToAllCounts(const void* in, void* out, const size_t* counts, rkDataType_t type,
                            rkComm_t comm) noexcept {
  return call("rkAllToAllCounts", comm,
              {Collective::all_to_all, in, out, 0, type, rkSum, 0, counts, true});
}
rkResult_t rkAllToAllDisplaced(const void* in, const size_t* inDisplacements, void* out,
                               const size_t* outDisplacements, const size_t* counts,
                               rkDataType_t type, rkComm_t comm) noexcept {
  return call("rkAllToAllDisplaced", comm,
              {Collective::all_to_all, in, out, 0, type, rkSum, 0, counts, true, inDisplacements,
               outDisplacements});
}
rkResult_t rkGatherCounts(const void* in, void* out, const size_t* counts, rkDataType_t type,
                          int root, rkComm_t comm) noexcept {
  return call("rkGatherCounts", comm,
              {Collective::gather, in, out, 0, type, rkSum, root, counts, true});
}
rkResult_t rkScatterCounts(const void* in, void* out, const size_t* counts, rkDataType_t type,
                           int root, rkComm_t comm) noexcept {
  return call("rkScatterCounts", comm,
              {Collective::scatter, in, out, 0, type, rkSum, root, counts, true});
}

rkResult_t rkCommSetCallOptions(rkComm_t comm, const rkCallOptions_t* given) noexcept {
  return guarded("rkCommSetCallOptions", [&]() -> Status {
    BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (given == nullptr) {
      handle->call_options = nullptr;
      handle.set(RankTable::Slot::kHasOptions, false);
      return {};
    }
    const auto grown = grown_to_this("options", given, kFirstCallOptions,
                                     rkCallOptions_t RK_CALL_OPTIONS_INITIALIZER);
    if (!grown.ok()) return grown.status();
    const rkCallOptions_t* const options = &*grown;
    auto owned = std::make_unique<OwnedCallOptions>();
    const auto timeout = read_timeout(options->timeoutMs);
    if (!timeout.ok()) return timeout.status();
    if (options->algorithm != nullptr) owned->algorithm = options->algorithm;
    if (options->transport != nullptr) {
      const auto transport = parse_forced_transport(options->transport);
      if (!transport.ok()) return transport.status();
      owned->options.transport = *transport;
    }
    const auto order = read_order(options->order);
    if (!order.ok()) return order.status();
    owned->options.order = *order;
    using List = std::vector<int>;
    const struct {
      const char* name;
      const int* from;
      int n;
      List OwnedCallOptions::*to;
      std::span<const int> CallOptions::*view;
    } lists[] = {
        {"dims", options->dims, options->dimCount, &OwnedCallOptions::dims, &CallOptions::dims},
        {"skips", options->skips, options->skipCount, &OwnedCallOptions::skips,
         &CallOptions::skips},
        {"levels", options->levels, options->levelCount, &OwnedCallOptions::levels,
         &CallOptions::levels}};
    for (const auto& list : lists) {
      auto read = read_list(list.name, list.from, list.n);
      if (!read.ok()) return read.status();
      (*owned).*list.to = std::move(*read);
      owned->options.*list.view = (*owned).*list.to;
    }
    if (options->sharedPayloads != 0 && options->sharedPayloads != 1) {
      return invalid_argument("options.sharedPayloads is " +
                              std::to_string(options->sharedPayloads) + "; allowed are 0 and 1");
    }
    owned->options.algorithm = owned->algorithm;
    owned->options.timeout = *timeout;
    owned->options.segments = options->segments;
    owned->options.group = options->group;
    owned->options.aggregation = options->aggregation;
    owned->options.radix = options->radix;
    owned->options.tag = options->tag;
    owned->options.shared_payloads = options->sharedPayloads == 1;
    handle->call_options = std::move(owned);
    handle.set(RankTable::Slot::kHasOptions, true);
    return {};
  });
}

}  // extern "C"

// The C functions of epilogues.

namespace rankine {

CreatedEpilogue::CreatedEpilogue(RowEpilogue steps)
    : steps_(std::make_unique<RowEpilogue>(std::move(steps))) {
  static_cast<Epilogue&>(*this) = *steps_;
}

CreatedEpilogue::CreatedEpilogue(rkRowFunction_t function, std::size_t elements,
                                 void* function_context)
    : function_(function), function_context_(function_context) {
  row_elements = elements;
  context = this;
  // C functions cannot throw, so they return an error number.
  finish = [](const void* rows, std::size_t first, std::size_t count, void* self) {
    const auto& me = *static_cast<const CreatedEpilogue*>(self);
    const int result = me.function_(rows, first, count, me.function_context_);
    if (result != 0) {
      throw std::runtime_error("the epilogue returned " + std::to_string(result) +
                               "; allowed is 0");
    }
  };
}

namespace {

constexpr std::array kNormsByNumber = {Norm::none, Norm::rms, Norm::layer};
constexpr std::array kActivationsByNumber = {Activation::none, Activation::relu,
                                             Activation::gelu_tanh, Activation::silu};
static_assert(kNormsByNumber.size() == kNorms && kActivationsByNumber.size() == kActivations);

// Error texts use the names of the C struct. Throws a Refusal for a number without a meaning.
RowSteps read_steps(const rkRowSteps_t& steps) {
  return {.type = row(kTypes, "type", steps.type),
          .row_elements = steps.rowElements,
          .bias = steps.bias,
          .residual = steps.residual,
          .norm = row(kNormsByNumber, "norm", steps.norm),
          .weight = steps.weight,
          .shift = steps.shift,
          .epsilon = steps.epsilon,
          .activation = row(kActivationsByNumber, "activation", steps.activation),
          .out_type = row(kTypes, "outType", steps.outType),
          .out = steps.out,
          .scales = steps.scales};
}

rkEpilogue_t add_epilogue(std::shared_ptr<const CreatedEpilogue> epilogue) {
  return HandleTable<EpilogueHandle>::add(
      std::make_unique<EpilogueHandle>(EpilogueHandle{std::move(epilogue)}));
}

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkEpilogueCreate(rkEpilogue_t* epilogue, const rkRowSteps_t* steps) noexcept {
  return guarded("rkEpilogueCreate", [&]() -> Status {
    if (epilogue == nullptr) return is_null("epilogue");
    if (steps == nullptr) return is_null("steps");
    if (Status size = check_size("steps", steps->size, sizeof *steps, sizeof *steps); !size.ok()) {
      return size;
    }
    auto made = RowEpilogue::make(read_steps(*steps));
    if (!made.ok()) return made.status();
    *epilogue = add_epilogue(std::make_shared<CreatedEpilogue>(std::move(*made)));
    return {};
  });
}

rkResult_t rkEpilogueCreateFunction(rkEpilogue_t* epilogue, size_t rowElements,
                                    rkRowFunction_t function, void* context) noexcept {
  return guarded("rkEpilogueCreateFunction", [&]() -> Status {
    if (epilogue == nullptr) return is_null("epilogue");
    if (rowElements == 0) return invalid_argument("rowElements is 0; allowed are 1 and more");
    if (function == nullptr) return is_null("function");
    *epilogue = add_epilogue(std::make_shared<CreatedEpilogue>(function, rowElements, context));
    return {};
  });
}

rkResult_t rkEpilogueApply(rkEpilogue_t epilogue, const void* rows, size_t count) noexcept {
  return guarded("rkEpilogueApply", [&]() -> Status {
    const BorrowedEpilogue handle(epilogue, BorrowedEpilogue::As::caller);
    if (rows == nullptr && count > 0) return is_null("rows");
    std::string why;
    if (count > 0 && !finish_rows(*handle->epilogue, rows, 0, count, why)) {
      throw Refusal{rkRemoteError, std::move(why)};
    }
    return {};
  });
}

rkResult_t rkEpilogueDestroy(rkEpilogue_t epilogue) noexcept {
  return guarded("rkEpilogueDestroy", [&]() -> Status {
    if (epilogue == nullptr || forget_inherited<EpilogueHandle>(epilogue)) return {};
    BorrowedEpilogue handle(epilogue, BorrowedEpilogue::As::caller);
    handle.doom();
    return {};
  });
}

}  // extern "C"
