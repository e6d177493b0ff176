// An MPI program that runs every algorithm of the catalogue among the started processes, with
// awkward counts, types and operations, in place and apart. It checks the results, equal bits of
// floats on all ranks, and that the messages over the wire and through memory are those of the
// schedule.
//
//   sweep [threads=2] [carriers=leader] [lean]
//
// lean: runs one in seven of the combinations of count and in place.
// RANKINE_MPI_NODES defines made-up nodes; messages within a node go through memory. Without the
// variable all processes are one node, and all messages go over MPI except messages between threads
// of a process.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/check.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/rank_locations.h"
#include "engine/base/numbers.h"
#include "engine/base/parallel.h"
#include "engine/compile/compile.h"
#include "engine/faults/collective_case.h"
#include "tests/engine/api/mpi/mpi_program.h"

namespace rankine::mpi {
namespace {

// The locations of all ranks, and the objects of this thread.
struct Place {
  const RankLocations& locations;
  Member& me;
  Checks& checks;
  ThreadsHere& threads;
  int thread = 0;
  bool lean = false;

  void check(const std::string& name, const std::string& wrong) const {
    checks.check(threads, thread, name, wrong);
  }
  bool memory() const { return locations.nodes() > 1; }
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

// The expected messages of all ranks: one message per round and per pair that exchanges data, and
// the bytes of the transfers.
Sent stated(const CollectiveCase& test, const Algorithm& algorithm, Params params, const Call& call,
            const Place& at) {
  if (has_root(test.collective)) params.root = test.root;
  if (test.collective == Collective::send_recv) params.peer = test.peer;
  CompileRequest request;
  request.algorithm = &algorithm;
  request.params = params;
  request.counts = natural_counts(call, test.ranks);
  request.type = test.type;
  request.op = test.op;
  request.rounds_once = true;
  const auto compiled = compile(request).value();
  const Layout& moved = compiled.in_f32 ? *compiled.in_f32 : compiled.layout;
  const Schedule schedule = algorithm.make(params);
  const auto is_within = [&at](Rank from, Rank to) {
    return at.locations[from].process == at.locations[to].process ||
           (at.memory() && at.locations[from].node == at.locations[to].node);
  };
  Sent all;
  for (int k = 0; k < schedule.rounds; ++k) {
    std::set<std::pair<Rank, Rank>> pairs;
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      std::uint64_t bytes = 0;
      t.what.list.for_each(
          [&](Block b) { bytes += moved.blocks[static_cast<std::size_t>(b)].bytes; });
      t.from.for_each([&](Rank from) {
        t.to.for_each([&](Rank to) {
          if (from == to || bytes == 0) return;
          pairs.emplace(from, to);
          (is_within(from, to) ? all.bytes_within : all.bytes) += bytes;
        });
      });
    });
    for (const auto& [from, to] : pairs) {
      ++(is_within(from, to) ? all.messages_within : all.messages);
    }
  }
  return all;
}

// The sum over all ranks of the messages since `before`.
Sent sent_since(const Sent& before, const Place& at) {
  const Sent now = at.me.sent();
  std::uint64_t all[] = {now.messages - before.messages, now.bytes - before.bytes,
                         now.messages_within - before.messages_within,
                         now.bytes_within - before.bytes_within};
  at.threads.add_up(at.thread, all, 4);
  return {all[0], all[1], all[2], all[3]};
}

std::string in_words(const Sent& sent) {
  return std::to_string(sent.messages) + " messages of " + std::to_string(sent.bytes) +
         " bytes, within nodes " + std::to_string(sent.messages_within) + " of " +
         std::to_string(sent.bytes_within);
}

bool operator==(const Sent& a, const Sent& b) { return in_words(a) == in_words(b); }

std::string run(const Place& at, const CollectiveCase& test, const Algorithm& algorithm,
                const Params& params, CaseBuffers& buffers) {
  buffers.fill(test, at.me.rank());
  const Call call = call_of(test, buffers);
  const Sent before = at.me.sent();
  const WireCount wire_before = wire_count();
  const Status status = at.me.call(call);
  const WireCount wire_after = wire_count();
  std::string wrong = status.ok() ? buffers.check() : status.text();
  const Sent sent = sent_since(before, at);
  const Sent wanted = stated(test, algorithm, params, call, at);
  if (wrong.empty() && sent != wanted) {
    wrong = "sent " + in_words(sent) + "; the schedule states " + in_words(wanted);
  }
  // The messages that MPI was told of, if this process has one rank only. Most begin with the
  // fingerprint of the call.
  const Sent mine = at.me.sent();
  const std::uint64_t messages = mine.messages - before.messages;
  const std::uint64_t bytes = mine.bytes - before.bytes;
  const std::uint64_t told = wire_after.bytes - wire_before.bytes;
  if (wrong.empty() && at.locations.most_threads() == 1 &&
      (wire_after.messages - wire_before.messages != messages || told < bytes ||
       told > bytes + messages * sizeof(std::uint64_t))) {
    wrong = "MPI was told to send other messages than were counted";
  }
  return wrong.empty() ? wrong : to_string(test) + ": " + wrong;
}

// An algorithm that does not suit the nodes is refused by name; nothing else happens.
std::string expect_refusal(const Place& at, const CallOptions& options,
                           const Algorithm& algorithm) {
  std::vector<float> x(100, 1.0F), y(x.size());
  const Call call{.collective = algorithm.collective,
                  .in = x.data(),
                  .out = y.data(),
                  .count = 1,
                  .options = options};
  const Status status = at.me.call(call);
  if (status.code() == Code::invalid_argument &&
      status.text().find(algorithm.name) != std::string::npos) {
    return {};
  }
  return "is not refused by its name: " + status.text();
}

// One check per algorithm.
void sweep(const Place& at) {
  const int ranks = at.me.ranks();
  const auto n = static_cast<std::size_t>(ranks);
  CaseBuffers buffers;
  std::size_t number = 0, turn = 0;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective == Collective::barrier) continue;
    std::string wrong;
    bool runs = false;
    for (const CallOptions& options : variants_of(algorithm)) {
      if (algorithm.refusal(params_for(options, at.me))) continue;
      runs = true;
      CallOptions filled = options;
      const Status taken = at.locations.take_nodes(algorithm, filled);
      const Params params = params_for(filled, at.me);
      if (!taken.ok() || algorithm.refusal(params)) {
        if (std::string found = expect_refusal(at, options, algorithm); wrong.empty()) {
          wrong = found;
        }
        continue;
      }
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n + 1, 13 * n + 5}) {
        for (const bool in_place : {false, true}) {
          if (at.lean && turn++ % 7 != 0) continue;
          const CollectiveCase test =
              numbered_case(algorithm, ranks, count, number++, in_place, options);
          if (std::string found = run(at, test, algorithm, params, buffers); wrong.empty()) {
            wrong = found;
          }
        }
      }
    }
    if (runs) {
      at.check(std::string(name_of(algorithm.collective)) + " " + std::string(algorithm.name),
               wrong);
    }
  }
}

// True if the algorithm runs without parameters in the call.
bool can_run(const Place& at, const Algorithm& algorithm) {
  CallOptions options;
  return at.locations.take_nodes(algorithm, options).ok() &&
         !algorithm.refusal(params_for(options, at.me));
}

// The sum of these floats depends on the order of additions.
void same_bits(const Place& at) {
  Member& me = at.me;
  std::vector<float> in(1009), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::uint64_t bits = splitmix(i * 64 + static_cast<std::uint64_t>(me.rank()) + 1);
    in[i] = static_cast<float>(bits % 1000003) * (bits & 64 ? 1e-3F : 1e3F);
  }
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective != Collective::all_reduce || !can_run(at, algorithm)) continue;
    if (!algorithm.other_bits.empty()) continue;
    const Status status = me.all_reduce(std::span<const float>(in), std::span<float>(out),
                                        ReduceOp::sum, {.algorithm = algorithm.name});
    std::uint64_t hash = 0;
    for (const float x : out) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof(bits));
      hash = mixed(hash, bits);
    }
    // The hash of rank 0 only.
    std::uint64_t of_zero = me.rank() == 0 ? hash : 0;
    at.threads.add_up(at.thread, &of_zero, 1);
    at.check("the same bits by " + std::string(algorithm.name), !status.ok() ? status.text()
                                                                : hash == of_zero
                                                                    ? ""
                                                                    : "other bits than rank 0's");
  }
}

// No rank leaves a barrier before all ranks have entered it: each rank sets a flag in shared
// memory.
class Flags {
 public:
  Flags(int processes, int threads) {
    int number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    MPI_Win_allocate_shared(number == 0 ? processes * threads * static_cast<int>(sizeof(int)) : 0,
                            sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &flags_, &window_);
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, 0, &bytes, &unit, &flags_);
  }
  ~Flags() { MPI_Win_free(&window_); }
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;
  int& operator[](Rank r) const { return flags_[r]; }

 private:
  int* flags_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

void barriers(const Place& at, const Flags& flags) {
  Member& me = at.me;
  int call = 0;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective != Collective::barrier || !can_run(at, algorithm)) continue;
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
    at.check("barrier " + std::string(algorithm.name), wrong);
  }
}

// The counts differ between ranks, and some are 0.
void counts(const Place& at) {
  Member& me = at.me;
  const auto n = static_cast<std::size_t>(me.ranks());
  const auto self = static_cast<std::size_t>(me.rank());
  std::vector<std::size_t> sizes(n), begins(n + 1, 0);
  for (std::size_t r = 0; r < n; ++r) {
    sizes[r] = r * 7 % 5;
    begins[r + 1] = begins[r] + sizes[r];
  }
  for (const Algorithm& algorithm : catalogue()) {
    if (!can_run(at, algorithm)) continue;
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
      at.check("counts of all_gather " + std::string(algorithm.name), wrong);
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
      at.check("counts of reduce_scatter " + std::string(algorithm.name), wrong);
    }
  }
}

struct Arguments {
  int threads = 1;
  std::optional<Carriers> carriers{};
  bool lean = false;
};

int run_all(const Arguments& arguments) {
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const auto sizes = read_made_up_nodes().value();
  std::vector<ProcessLocation> places;
  for (int p = 0; p < processes; ++p) {
    places.push_back({sizes.empty() ? 0 : made_up_node(sizes, p), arguments.threads});
  }
  const RankLocations locations(places);
  Checks checks;
  JoinOptions options{.timeout = std::chrono::minutes(5), .carriers = arguments.carriers};
  // Without made-up nodes the network is scale_out; with them it is the nodes' network.
  if (locations.nodes() == 1) options.network = *find_call_network("scale_out");
  auto joined = join_threads(MPI_COMM_WORLD, arguments.threads, options);
  checks.check("join", joined.ok() ? "" : joined.status().text());
  if (!joined.ok()) return checks.end();
  {
    const Flags flags(processes, arguments.threads);
    ThreadsHere here(arguments.threads);
    const auto play = [&](int thread) {
      Member& me = *(*joined)[static_cast<std::size_t>(thread)];
      const Place at{locations, me, checks, here, thread, arguments.lean};
      sweep(at);
      same_bits(at);
      counts(at);
      barriers(at, flags);
      at.check("health", me.health().text());
    };
    on_threads(
        arguments.threads - 1, [&](int t) { play(t + 1); }, [&] { play(0); });
  }
  joined = Status(Code::aborted, "");
  return checks.end();
}

}  // namespace
}  // namespace rankine::mpi

int main(int argc, char** argv) {
  rankine::mpi::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text.starts_with("threads=")) arguments.threads = std::atoi(argv[i] + 8);
    if (text == "lean") arguments.lean = true;
    if (text == "carriers=leader") arguments.carriers = rankine::mpi::Carriers::leader;
  }
  const bool funneled = arguments.carriers == rankine::mpi::Carriers::leader;
  int level = 0;
  MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
  const int result = rankine::mpi::run_all(arguments);
  MPI_Finalize();
  return result;
}
