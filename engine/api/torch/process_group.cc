#include "engine/api/torch/process_group.h"

#include <fmt/format.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/processes/identity.h"
#include "engine/api/torch/tensors.h"

namespace rankine::torch_backend {
namespace {

constexpr std::string_view kName = "name ";  // prefix of an answer that is a communicator name

std::string machine_key(Rank rank) { return fmt::format("rankine/machine/{}", rank); }
constexpr const char* kAnswerKey = "rankine/answer";

void put(c10d::Store& store, const std::string& key, std::string_view text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string get(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout) {
  store.wait({key}, timeout);
  const std::vector<std::uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

std::string describe(const ThisMachine& machine) {
  return fmt::format("host {}, boot {}, pid namespace {}", machine.host, machine.boot,
                     machine.pid_namespace);
}

// Runs on rank 0: returns a new communicator name, or an error text if the ranks are on several
// machines.
std::string answer(c10d::Store& store, int ranks, const std::string& here,
                   std::chrono::milliseconds timeout) {
  for (Rank r = 1; r < ranks; ++r) {
    const std::string there = get(store, machine_key(r), timeout);
    if (there == here) continue;
    return fmt::format("rank 0 is on {} and rank {} on {}; allowed are ranks on one machine", here,
                       r, there);
  }
  std::random_device random;
  return fmt::format("{}torch.{}.{:08x}{:08x}", kName, getpid(), random(), random());
}

}  // namespace

Result<std::unique_ptr<Communicator>> meet(c10d::Store& store, Rank rank, int ranks,
                                           std::chrono::milliseconds timeout) {
  const auto machine = this_machine();
  if (!machine.ok()) return machine.status();
  const std::string here = describe(*machine);
  std::string said;
  if (rank == 0) {
    said = answer(store, ranks, here, timeout);
    put(store, kAnswerKey, said);
  } else {
    put(store, machine_key(rank), here);
    said = get(store, kAnswerKey, timeout);
  }
  if (!said.starts_with(kName)) return Status(Code::mismatch, said);
  return Communicator::create({.ranks = ranks,
                               .timeout = timeout,
                               .rank = rank,
                               .name = std::string_view(said).substr(kName.size())});
}

namespace {

using c10d::OpType;

CallOptions within(std::chrono::milliseconds timeout) {
  if (timeout == c10d::kUnsetTimeout) return {};
  TORCH_CHECK(timeout.count() > 0, "timeout is ", timeout.count(), " ms; allowed are 1 and more");
  return {.timeout = timeout};
}

Rank rank_of(std::int64_t rank, std::string_view argument, int ranks) {
  TORCH_CHECK(rank >= 0 && rank < ranks, argument, " is ", rank, "; allowed are 0 to ", ranks - 1);
  return static_cast<Rank>(rank);
}

Rank root_of(std::int64_t root, int ranks) { return rank_of(root, "the root", ranks); }

// Throws before the call is submitted if types.h does not support `op` on `type`.
void check_operation(DataType type, ReduceOp op) {
  TORCH_CHECK(supports(type, op), "op is ", name_of(op), " on type ", name_of(type), "; ",
              supported_ops(type));
}

Call reduction(Collective collective, const Elements& in, const c10d::ReduceOp& op,
               std::chrono::milliseconds timeout) {
  const Call call{.collective = collective,
                  .in = in.data,
                  .out = in.data,
                  .count = in.count,
                  .type = in.type,
                  .op = operation_of(op),
                  .options = within(timeout)};
  check_operation(call.type, call.op);
  return call;
}

Call movement(Collective collective, const Elements& data, std::chrono::milliseconds timeout) {
  return {.collective = collective,
          .in = data.data,
          .out = data.data,
          .count = data.count,
          .type = data.type,
          .options = within(timeout)};
}

void check_same_type(const at::Tensor& output, const at::Tensor& input) {
  TORCH_CHECK(output.scalar_type() == input.scalar_type(), "output is of ", output.scalar_type(),
              ", input of ", input.scalar_type(), "; allowed is one type");
}

// Checks that `of_all` has `ranks` times as many elements as `of_one`.
void check_sizes(const at::Tensor& of_all, std::string_view what_of_all, const at::Tensor& of_one,
                 std::string_view what_of_one, std::size_t ranks) {
  check_same_type(of_all, of_one);
  TORCH_CHECK(
      static_cast<std::size_t>(of_all.numel()) == static_cast<std::size_t>(of_one.numel()) * ranks,
      what_of_all, " has ", of_all.numel(), " elements; ", what_of_one, " has ", of_one.numel(),
      "; allowed is one part for each of ", ranks, " ranks");
}

void check_own(const Row& row, std::size_t own, std::size_t rank, std::string_view argument) {
  TORCH_CHECK(row.counts()[rank] == own, argument, "[", rank, "] has ", row.counts()[rank],
              " elements of this rank's; its own tensor has ", own);
}

void check_even(const Row& row, std::string_view argument) {
  TORCH_CHECK(row.is_even(), argument, " has tensors of several sizes; allowed is one size");
}

// Returns the number of elements of each block of a tensor that is divided along dimension 0.
std::vector<std::size_t> blocks_of(const at::Tensor& tensor, const std::vector<std::int64_t>& sizes,
                                   std::size_t ranks, std::size_t elements,
                                   std::string_view argument) {
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (sizes.empty()) {
    TORCH_CHECK(rows % static_cast<std::int64_t>(ranks) == 0, argument, " has ", rows,
                " rows and no sizes; allowed are multiples of ", ranks, " (ranks)");
    return std::vector<std::size_t>(ranks, elements / ranks);
  }
  TORCH_CHECK(sizes.size() == ranks, argument, " has ", sizes.size(), " sizes; allowed are ", ranks,
              ", one per rank");
  std::int64_t all = 0;
  std::vector<std::size_t> blocks;
  const std::size_t row = rows == 0 ? 0 : elements / static_cast<std::size_t>(rows);
  for (const std::int64_t size : sizes) {
    TORCH_CHECK(size >= 0, argument, " has a size of ", size, "; allowed are 0 and more");
    blocks.push_back(static_cast<std::size_t>(size) * row);
    all += size;
  }
  TORCH_CHECK(all == rows, argument, " has ", rows, " rows and sizes of ", all, " in all");
  return blocks;
}

}  // namespace

ProcessGroup::ProcessGroup(c10d::Store& store, int rank, int size,
                           std::chrono::milliseconds timeout)
    : GroupBase(rank, size) {
  auto communicator = meet(store, rank, size, timeout);
  communicator.status().throw_if_error();
  auto member = (*communicator)->join(rank);
  member.status().throw_if_error();
  queue_ = make_shared_at_home<CallQueue>(std::move(*communicator), std::move(*member));
}

ProcessGroup::~ProcessGroup() {
  // Calls that end now may call Python functions, which need the interpreter lock.
  std::optional<pybind11::gil_scoped_release> released;
  if (Py_IsInitialized() != 0 && PyGILState_Check() == 1) released.emplace();
  queue_->close();
}

ProcessGroup::Work ProcessGroup::submit(const GroupCall::Kind& kind, Tensors results,
                                        GroupCall::Run run) {
  auto call = c10::make_intrusive<GroupCall>(queue_, kind, std::move(results), std::move(run));
  ++submitted_;
  queue_->submit(call);
  return call;
}

ProcessGroup::Work ProcessGroup::submit(const GroupCall::Kind& kind, Tensors results,
                                        const Call& call) {
  return submit(kind, std::move(results), [call](Member& me) { me.call(call).throw_if_error(); });
}

// --- Results on all ranks ---

ProcessGroup::Work ProcessGroup::sum_all(const GroupCall::Kind& kind, Tensors tensors,
                                         const c10d::AllreduceOptions& options) {
  std::vector<Call> calls;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    calls.push_back(reduction(Collective::all_reduce,
                              summands_of(tensors[i], c10::str("tensors[", i, "]")),
                              options.reduceOp, options.timeout));
  }
  if (calls.size() == 1) return submit(kind, std::move(tensors), calls.front());
  return submit(kind, std::move(tensors), [calls = std::move(calls)](Member& me) {
    for (const Call& call : calls) me.call(call).throw_if_error();
  });
}

ProcessGroup::Work ProcessGroup::allreduce(Tensors& tensors,
                                           const c10d::AllreduceOptions& options) {
  only(tensors, "tensors");
  return sum_all({OpType::ALLREDUCE, "rankine:all_reduce"}, tensors, options);
}

ProcessGroup::Work ProcessGroup::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK(!tensors.empty(), "tensors is empty; allowed are one and more");
  return sum_all({OpType::ALLREDUCE_COALESCED, "rankine:all_reduce"}, tensors, options);
}

ProcessGroup::Work ProcessGroup::broadcast(Tensors& tensors,
                                           const c10d::BroadcastOptions& options) {
  Call call = movement(Collective::broadcast, elements_of(only(tensors, "tensors"), "tensors[0]"),
                       options.timeout);
  call.root = root_of(options.rootRank, size_);
  return submit({OpType::BROADCAST, "rankine:broadcast"}, tensors, call);
}

ProcessGroup::Work ProcessGroup::barrier(const c10d::BarrierOptions& options) {
  return submit({OpType::BARRIER, "rankine:barrier"}, Tensors(),
                [own = within(options.timeout)](Member& me) { me.barrier(own).throw_if_error(); });
}

void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions& options,
                                    bool /* wait_all_ranks: the engine names one of them */) {
  barrier(options)->wait();
}

// --- Gather ---

ProcessGroup::Work ProcessGroup::gather_all(const GroupCall::Kind& kind, Tensors outputs,
                                            Tensors inputs, std::chrono::milliseconds timeout) {
  TORCH_CHECK(outputs.size() == inputs.size(), "outputs has ", outputs.size(),
              " tensors, inputs has ", inputs.size(), "; allowed are equal numbers");
  std::vector<Call> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_sizes(outputs[i], "output", inputs[i], "input", ranks());
    calls.push_back(movement(Collective::all_gather, elements_of(inputs[i], "input"), timeout));
    calls.back().out = elements_of(outputs[i], "output").data;
  }
  return submit(kind, std::move(outputs),
                [calls = std::move(calls), inputs = std::move(inputs)](Member& me) {
                  for (const Call& call : calls) me.call(call).throw_if_error();
                });
}

ProcessGroup::Work ProcessGroup::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions& options) {
  return gather_all({OpType::_ALLGATHER_BASE, "rankine:_all_gather_base"}, {output}, {input},
                    options.timeout);
}

ProcessGroup::Work ProcessGroup::allgather(TensorLists& outputs, Tensors& inputs,
                                           const c10d::AllgatherOptions& options) {
  const at::Tensor& input = only(inputs, "inputs");
  const Elements in = elements_of(input, "inputs[0]");
  Row row(only(outputs, "outputs"), ranks(), input, "outputs[0]");
  check_own(row, in.count, static_cast<std::size_t>(rank_), "outputs[0]");
  Call call = movement(Collective::all_gather, in, options.timeout);
  call.out = row.data();
  return submit({OpType::ALLGATHER, "rankine:all_gather"}, outputs.front(),
                [call, input, row = std::move(row)](Member& me) mutable {
                  if (!row.is_even()) call.counts = row.counts();
                  me.call(call).throw_if_error();
                  row.unpack_rows();
                });
}

ProcessGroup::Work ProcessGroup::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                     const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == ranks(), "outputs has ", outputs.size(), " lists; allowed are ",
              ranks(), ", one per rank");
  struct One {
    Call call;
    Row row;
  };
  std::vector<One> all;
  Tensors results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors from_each;
    for (std::size_t r = 0; r < ranks(); ++r) {
      TORCH_CHECK(outputs[r].size() == inputs.size(), "outputs[", r, "] has ", outputs[r].size(),
                  " tensors; inputs has ", inputs.size());
      from_each.push_back(outputs[r][i]);
    }
    results.insert(results.end(), from_each.begin(), from_each.end());
    const Elements in = elements_of(inputs[i], c10::str("inputs[", i, "]"));
    Row row(std::move(from_each), ranks(), inputs[i], "outputs");
    check_own(row, in.count, static_cast<std::size_t>(rank_), "outputs");
    check_even(row, "outputs");
    Call call = movement(Collective::all_gather, in, options.timeout);
    call.out = row.data();
    all.push_back({call, std::move(row)});
  }
  return submit({OpType::ALLGATHER_COALESCED, "rankine:all_gather"}, std::move(results),
                [all = std::move(all), inputs](Member& me) {
                  for (const One& one : all) {
                    me.call(one.call).throw_if_error();
                    one.row.unpack_rows();
                  }
                });
}

ProcessGroup::Work ProcessGroup::gather(TensorLists& outputs, Tensors& inputs,
                                        const c10d::GatherOptions& options) {
  const at::Tensor& input = only(inputs, "inputs");
  const Elements in = elements_of(input, "inputs[0]");
  Call call = movement(Collective::gather, in, options.timeout);
  call.root = root_of(options.rootRank, size_);
  const GroupCall::Kind kind{OpType::GATHER, "rankine:gather"};
  if (call.root != rank_) {
    none_away_from_root(outputs.empty(), "outputs");
    call.out = nullptr;
    return submit(kind, Tensors(), [call, input](Member& me) { me.call(call).throw_if_error(); });
  }
  Row row(only(outputs, "outputs"), ranks(), input, "outputs[0]");
  check_even(row, "outputs[0]");
  check_own(row, in.count, static_cast<std::size_t>(rank_), "outputs[0]");
  call.out = row.data();
  return submit(kind, outputs.front(), [call, input, row = std::move(row)](Member& me) {
    me.call(call).throw_if_error();
    row.unpack_rows();
  });
}

// --- Reduce and scatter ---

ProcessGroup::Work ProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  Call call = reduction(Collective::reduce, summands_of(only(tensors, "tensors"), "tensors[0]"),
                        options.reduceOp, options.timeout);
  call.root = root_of(options.rootRank, size_);
  return submit({OpType::REDUCE, "rankine:reduce"}, tensors, call);
}

ProcessGroup::Work ProcessGroup::scatter_sums(const GroupCall::Kind& kind, Tensors outputs,
                                              Tensors inputs,
                                              const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK(outputs.size() == inputs.size(), "outputs has ", outputs.size(),
              " tensors, inputs has ", inputs.size(), "; allowed are equal numbers");
  std::vector<Call> calls;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_sizes(inputs[i], "input", outputs[i], "output", ranks());
    const Elements out = summands_of(outputs[i], "output");
    calls.push_back(reduction(Collective::reduce_scatter, out, options.reduceOp, options.timeout));
    calls.back().in = summands_of(inputs[i], "input").data;
  }
  return submit(kind, std::move(outputs),
                [calls = std::move(calls), inputs = std::move(inputs)](Member& me) {
                  for (const Call& call : calls) me.call(call).throw_if_error();
                });
}

ProcessGroup::Work ProcessGroup::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::ReduceScatterOptions& options) {
  return scatter_sums({OpType::_REDUCE_SCATTER_BASE, "rankine:_reduce_scatter_base"}, {output},
                      {input}, options);
}

ProcessGroup::Work ProcessGroup::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only(outputs, "outputs");
  const Elements out = summands_of(output, "outputs[0]");
  Row row(only(inputs, "inputs"), ranks(), output, "inputs[0]");
  check_own(row, out.count, static_cast<std::size_t>(rank_), "inputs[0]");
  Call call = reduction(Collective::reduce_scatter, out, options.reduceOp, options.timeout);
  call.in = row.data();
  return submit({OpType::REDUCE_SCATTER, "rankine:reduce_scatter"}, outputs,
                [call, row = std::move(row)](Member& me) mutable {
                  if (!row.is_even()) call.counts = row.counts();
                  row.pack_rows();
                  me.call(call).throw_if_error();
                });
}

#if TORCH_VERSION_MAJOR >= 2
ProcessGroup::Work ProcessGroup::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return gather_all({OpType::COALESCED, "rankine:all_gather_into_tensor"}, outputs, inputs,
                    options.timeout);
}

ProcessGroup::Work ProcessGroup::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return scatter_sums({OpType::COALESCED, "rankine:reduce_scatter_tensor"}, outputs, inputs,
                      options);
}
#endif

ProcessGroup::Work ProcessGroup::scatter(Tensors& outputs, TensorLists& inputs,
                                         const c10d::ScatterOptions& options) {
  const at::Tensor& output = only(outputs, "outputs");
  const Elements out = elements_of(output, "outputs[0]");
  Call call = movement(Collective::scatter, out, options.timeout);
  call.root = root_of(options.rootRank, size_);
  const GroupCall::Kind kind{OpType::SCATTER, "rankine:scatter"};
  if (call.root != rank_) {
    none_away_from_root(inputs.empty(), "inputs");
    call.in = nullptr;
    return submit(kind, outputs, call);
  }
  Row row(only(inputs, "inputs"), ranks(), output, "inputs[0]");
  check_even(row, "inputs[0]");
  check_own(row, out.count, static_cast<std::size_t>(rank_), "inputs[0]");
  call.in = row.data();
  return submit(kind, outputs, [call, row = std::move(row)](Member& me) {
    row.pack_rows();
    me.call(call).throw_if_error();
  });
}

// --- All to all ---

ProcessGroup::Work ProcessGroup::alltoall_base(at::Tensor& output, at::Tensor& input,
                                               std::vector<std::int64_t>& output_sizes,
                                               std::vector<std::int64_t>& input_sizes,
                                               const c10d::AllToAllOptions& options) {
  check_same_type(output, input);
  const Elements in = elements_of(input, "input"), out = elements_of(output, "output");
  OwnCounts own{blocks_of(input, input_sizes, ranks(), in.count, "input"),
                blocks_of(output, output_sizes, ranks(), out.count, "output")};
  Call call = movement(Collective::all_to_all, in, options.timeout);
  call.out = out.data;
  return submit({OpType::ALLTOALL_BASE, "rankine:all_to_all"}, {output},
                [call, input, own = std::move(own)](Member& me) { all_to_all(me, call, own); });
}

ProcessGroup::Work ProcessGroup::alltoall(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllToAllOptions& options) {
  TORCH_CHECK(!inputs.empty(), "inputs has 0 tensors; allowed are ", ranks(), ", one per rank");
  const at::Tensor& like = inputs.front();
  const Elements first = elements_of(like, "inputs[0]");
  Row in(inputs, ranks(), like, "inputs"), out(outputs, ranks(), like, "outputs");
  Call call = movement(Collective::all_to_all, {in.data(), 0, first.type}, options.timeout);
  call.out = out.data();
  return submit({OpType::ALLTOALL, "rankine:all_to_all"}, outputs,
                [call, in = std::move(in), out = std::move(out)](Member& me) {
                  in.pack_rows();
                  all_to_all(me, call, {in.counts(), out.counts()});
                  out.unpack_rows();
                });
}

// --- Messages ---

ProcessGroup::Work ProcessGroup::submit(const GroupCall::Kind& kind, at::Tensor& tensor, int peer,
                                        int tag, bool sends) {
  const Elements elements = elements_of(tensor, "tensors[0]");
  const Rank other = rank_of(peer, sends ? "dst" : "src", size_);
  const Message message{elements.data, elements.count, elements.type, other, sends};
  auto call = c10::make_intrusive<GroupCall>(
      queue_, kind, Tensors{tensor}, message,
      CallOptions{.tag = static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag))});
  queue_->submit(call);
  return call;
}

ProcessGroup::Work ProcessGroup::send(Tensors& tensors, int to, int tag) {
  at::Tensor tensor = only(tensors, "tensors");
  return submit({OpType::SEND, "rankine:send"}, tensor, to, tag, true);
}

ProcessGroup::Work ProcessGroup::recv(Tensors& tensors, int from, int tag) {
  at::Tensor tensor = only(tensors, "tensors");
  return submit({OpType::RECV, "rankine:recv"}, tensor, from, tag, false);
}

}  // namespace rankine::torch_backend
