// An MPI program: every line of the catalogue among the processes that there are, awkward counts,
// types and operations, in place and apart. Results are right, those of floats have the same bits
// everywhere, and what goes over the wire is what the schedule states.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/call_parameters.h"
#include "engine/api/check.h"
#include "engine/api/mpi/member.h"
#include "engine/base/splitmix.h"
#include "engine/compile/compile.h"
#include "engine/faults/collective_case.h"
#include "tests/engine/api/mpi/mpi_program.h"
#include "tests/engine/api/mpi/wire_count.h"

namespace rankine::mpi {
namespace {

struct Kind {
  DataType type;
  ReduceOp op;
};
constexpr Kind kKinds[] = {
    {DataType::f32, ReduceOp::sum}, {DataType::u32, ReduceOp::sum}, {DataType::bf16, ReduceOp::avg},
    {DataType::u8, ReduceOp::bxor}, {DataType::f64, ReduceOp::avg}, {DataType::i64, ReduceOp::prod},
    {DataType::f16, ReduceOp::max}, {DataType::i32, ReduceOp::min}, {DataType::c64, ReduceOp::sum},
};

std::vector<CallOptions> variants_of(const Algorithm& algorithm) {
  std::vector<CallOptions> all = {{.algorithm = algorithm.name, .segments = 1}};
  if (algorithm.takes("segments")) all.push_back({.algorithm = algorithm.name, .segments = 3});
  if (algorithm.takes("group")) {
    all.push_back({.algorithm = algorithm.name, .segments = 1, .group = 2});
  }
  if (!algorithm.takes("segments")) {
    for (CallOptions& one : all) one.segments = 0;
  }
  return all;
}

Params params_for(const CallOptions& options, const Member& me) {
  Params params = params_of(options, me.ranks());
  params.segments = std::max(1, params.segments);
  return params;
}

// What all ranks together send: a message per round and pair that anything goes between, and the
// bytes of the transfers.
WireCount stated(const CollectiveCase& test, const Algorithm& algorithm, Params params,
                 const Call& call) {
  if (has_root(test.collective)) params.root = test.root;
  if (test.collective == Collective::send_recv) params.peer = test.peer;
  CompileRequest request;
  request.algorithm = &algorithm;
  request.params = params;
  request.counts = natural_counts(call, test.ranks);
  request.type = test.type;
  request.op = test.op;
  const auto compiled = compile(request).value();
  const Schedule schedule = algorithm.make(params);
  WireCount all;
  for (int k = 0; k < schedule.rounds; ++k) {
    std::set<std::pair<Rank, Rank>> pairs;
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      std::uint64_t bytes = 0;
      t.what.list.for_each(
          [&](Block b) { bytes += compiled.layout.blocks[static_cast<std::size_t>(b)].bytes; });
      t.from.for_each([&](Rank from) {
        t.to.for_each([&](Rank to) {
          if (from == to || bytes == 0) return;
          pairs.emplace(from, to);
          all.bytes += bytes;
        });
      });
    });
    all.messages += pairs.size();
  }
  return all;
}

WireCount of_all_ranks(const WireCount& mine) {
  std::uint64_t all[2] = {mine.messages, mine.bytes};
  add_up(all, 2);
  return {all[0], all[1]};
}

std::string run(Member& me, const CollectiveCase& test, const Algorithm& algorithm,
                CaseBuffers& buffers) {
  buffers.fill(test, me.rank());
  const Call call = call_of(test, buffers);
  wire_count = {};
  const Status status = me.call(call);
  std::string wrong = status.ok() ? buffers.check() : status.text();
  const WireCount sent = of_all_ranks(wire_count);
  const WireCount wanted = stated(test, algorithm, params_for(test.options, me), call);
  if (wrong.empty() && (sent.messages != wanted.messages || sent.bytes != wanted.bytes)) {
    wrong = "sent " + std::to_string(sent.messages) + " messages, " + std::to_string(sent.bytes) +
            " bytes; the schedule states " + std::to_string(wanted.messages) + ", " +
            std::to_string(wanted.bytes);
  }
  return wrong.empty() ? wrong : to_string(test) + ": " + wrong;
}

// One check per algorithm.
void sweep(Member& me, Checks& checks) {
  const auto n = static_cast<std::size_t>(me.ranks());
  CaseBuffers buffers;
  std::size_t number = 0;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective == Collective::barrier) continue;
    std::string wrong;
    bool runs = false;
    for (const CallOptions& options : variants_of(algorithm)) {
      if (algorithm.refusal(params_for(options, me))) continue;
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n + 1, 13 * n + 5}) {
        for (const bool in_place : {false, true}) {
          Kind kind = kKinds[number * 7 % std::size(kKinds)];
          if (!takes(algorithm.collective, kind.type, kind.op)) kind.op = ReduceOp::sum;
          const auto root = static_cast<Rank>(has_root(algorithm.collective) ? number % n : 0);
          const CollectiveCase test{algorithm.collective,
                                    me.ranks(),
                                    count,
                                    kind.type,
                                    kind.op,
                                    root,
                                    static_cast<Rank>(number * 5 % n),
                                    in_place,
                                    number % 3 == 0 ? 0 : number % 61,
                                    number,
                                    options};
          runs = true;
          ++number;
          if (std::string found = run(me, test, algorithm, buffers); wrong.empty()) wrong = found;
        }
      }
    }
    if (runs) {
      checks.check(std::string(name_of(algorithm.collective)) + " " + std::string(algorithm.name),
                   wrong);
    }
  }
}

// Floats whose sum depends on the order in which they are added.
void same_bits(Member& me, Checks& checks) {
  std::vector<float> in(1009), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::uint64_t bits = splitmix(i * 64 + static_cast<std::uint64_t>(me.rank()) + 1);
    in[i] = static_cast<float>(bits % 1000003) * (bits & 64 ? 1e-3F : 1e3F);
  }
  for (const Algorithm& algorithm : catalogue()) {
    Params params;
    params.ranks = me.ranks();
    if (algorithm.collective != Collective::all_reduce || algorithm.refusal(params)) continue;
    if (!algorithm.other_bits.empty()) continue;
    const Status status = me.all_reduce(std::span<const float>(in), std::span<float>(out),
                                        ReduceOp::sum, {.algorithm = algorithm.name});
    std::uint64_t hash = 0;
    for (const float x : out) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof(bits));
      hash = mixed(hash, bits);
    }
    std::uint64_t of_zero = hash;
    MPI_Bcast(&of_zero, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    checks.check("the same bits by " + std::string(algorithm.name),
                 !status.ok()      ? status.text()
                 : hash == of_zero ? ""
                                   : "other bits than rank 0's");
  }
}

// Nobody leaves before all have come: each says so in memory that all see.
void barriers(Member& me, Checks& checks) {
  int* flags = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(me.rank() == 0 ? me.ranks() * static_cast<int>(sizeof(int)) : 0,
                          sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &flags, &window);
  MPI_Aint bytes = 0;
  int unit = 0;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &flags);
  int call = 0;
  for (const Algorithm& algorithm : catalogue()) {
    Params params;
    params.ranks = me.ranks();
    if (algorithm.collective != Collective::barrier || algorithm.refusal(params)) continue;
    std::string wrong;
    for (int i = 0; i < 20; ++i) {
      ++call;
      __atomic_store_n(&flags[me.rank()], call, __ATOMIC_RELEASE);
      const Status status = me.barrier({.algorithm = algorithm.name});
      if (!status.ok()) wrong = status.text();
      for (int r = 0; r < me.ranks(); ++r) {
        if (__atomic_load_n(&flags[r], __ATOMIC_ACQUIRE) < call) wrong = "left before all came";
      }
    }
    checks.check("barrier " + std::string(algorithm.name), wrong);
  }
  MPI_Win_free(&window);
}

// Counts that differ from rank to rank, 0 among them.
void counts(Member& me, Checks& checks) {
  const auto n = static_cast<std::size_t>(me.ranks());
  const auto self = static_cast<std::size_t>(me.rank());
  std::vector<std::size_t> sizes(n), begins(n + 1, 0);
  for (std::size_t r = 0; r < n; ++r) {
    sizes[r] = r * 7 % 5;
    begins[r + 1] = begins[r] + sizes[r];
  }
  for (const Algorithm& algorithm : catalogue()) {
    Params params;
    params.ranks = me.ranks();
    if (algorithm.refusal(params)) continue;
    if (algorithm.collective == Collective::all_gather) {
      std::vector<std::int32_t> in(sizes[self]), out(begins[n], -1);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(begins[self] + i);
      const Status status = me.with_counts(
          Collective::all_gather, std::span<const std::int32_t>(in), std::span<std::int32_t>(out),
          sizes, 0, ReduceOp::sum, {.algorithm = algorithm.name});
      std::string wrong = status.ok() ? "" : status.text();
      for (std::size_t i = 0; i < out.size() && wrong.empty(); ++i) {
        if (out[i] != static_cast<int>(i)) wrong = "element " + std::to_string(i);
      }
      checks.check("counts of all_gather " + std::string(algorithm.name), wrong);
    } else if (algorithm.collective == Collective::reduce_scatter) {
      std::vector<std::int32_t> in(begins[n]), out(sizes[self], -1);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i) + me.rank();
      const Status status = me.with_counts(
          Collective::reduce_scatter, std::span<const std::int32_t>(in),
          std::span<std::int32_t>(out), sizes, 0, ReduceOp::sum, {.algorithm = algorithm.name});
      std::string wrong = status.ok() ? "" : status.text();
      const int ranks_added = me.ranks() * (me.ranks() - 1) / 2;
      for (std::size_t i = 0; i < out.size() && wrong.empty(); ++i) {
        const int wanted = static_cast<int>(begins[self] + i) * me.ranks() + ranks_added;
        if (out[i] != wanted) wrong = "element " + std::to_string(i);
      }
      checks.check("counts of reduce_scatter " + std::string(algorithm.name), wrong);
    }
  }
}

int run_all() {
  Checks checks;
  const auto network = find_call_network("scale_out");
  auto me = join(MPI_COMM_WORLD, {.timeout = std::chrono::minutes(5), .network = *network});
  checks.check("join", me.ok() ? "" : me.status().text());
  if (me.ok()) {
    sweep(**me, checks);
    same_bits(**me, checks);
    counts(**me, checks);
    barriers(**me, checks);
    checks.check("health", (*me)->health().text());
  }
  return checks.end();
}

}  // namespace
}  // namespace rankine::mpi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int result = rankine::mpi::run_all();
  MPI_Finalize();
  return result;
}
