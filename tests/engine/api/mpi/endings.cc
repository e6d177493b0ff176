// An MPI program that tests refusals, ends of communicators, and the error texts. Every scene has a
// separate communicator.
//
//   endings           all scenes but the next one
//   endings dies      rank 1 kills itself in the middle: the job must end with a failure
#include <mpi.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/mpi/member.h"
#include "engine/base/child_process.h"
#include "tests/engine/api/mpi/mpi_program.h"

namespace rankine::mpi {
namespace {

using std::chrono::milliseconds;

// The Within option of the scenes with a timeout.
std::optional<Within> scene_within;

JoinOptions with_timeout(int ms) {
  JoinOptions options;
  options.timeout = milliseconds(ms);
  options.within = scene_within;
  return options;
}

std::string expect(const Status& status, Code code, const std::string& part = "") {
  if (status.code() == code && status.text().find(part) != std::string::npos) return {};
  return "is '" + std::string(name_of(status.code())) + ": " + status.text() + "', should be " +
         std::string(name_of(code)) + " with '" + part + "'";
}

std::string works(Member& me) {
  std::vector<float> x(100, 1.0F);
  const Status status = me.all_reduce(std::span<float>(x));
  if (!status.ok()) return status.text();
  return x[99] == static_cast<float>(me.ranks()) ? "" : "a sum is wrong";
}

void joins(Checks& checks) {
  checks.check("null",
               expect(join(MPI_COMM_NULL).status(), Code::invalid_argument, "MPI_COMM_NULL"));
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) {
    MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
    checks.check("inter", expect(join(inter).status(), Code::invalid_argument, "intercomm"));
    auto in_half = join(half);
    checks.check("half", in_half.ok() ? works(**in_half) : in_half.status().text());
    in_half = Status(Code::aborted, "");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    // All ranks are told of an error that one rank has.
    JoinOptions options;
    if (rank == 0) options.order = Order::by_rank;
    checks.check("options that differ",
                 expect(join(MPI_COMM_WORLD, options).status(), Code::invalid_argument, "order"));
    options = {};
    if (rank == ranks - 1) options.most_message_bytes = 0;
    checks.check("one that is wrong",
                 expect(join(MPI_COMM_WORLD, options).status(), Code::invalid_argument,
                        rank == ranks - 1 ? "most_message_bytes is 0" : "another rank"));
  }
  setenv("RANKINE_TRANSPORT", "direct", 1);
  checks.check("RANKINE_TRANSPORT",
               expect(join(MPI_COMM_WORLD).status(), Code::invalid_argument, "RANKINE_TRANSPORT"));
  unsetenv("RANKINE_TRANSPORT");
}

void wrong_arguments(Checks& checks) {
  auto joined = join(MPI_COMM_WORLD);
  Member& me = **joined;
  float x = 1, y = 0;
  const auto refused = [&](const char* name, const Call& call, const char* part) {
    checks.check(name, expect(me.call(call), Code::invalid_argument, part));
  };
  const std::size_t huge = std::numeric_limits<std::size_t>::max() / 2;
  refused("null in", {.out = &y, .count = 1}, "in is null");
  refused("null out", {.in = &x, .count = 1}, "out is null");
  refused("count", {.in = &x, .out = &y, .count = huge}, "count");
  refused("root", {.collective = Collective::reduce, .in = &x, .out = &y, .count = 1, .root = 4000},
          "root is 4000");
  refused("operation", {.in = &x, .out = &y, .count = 1, .op = ReduceOp::bxor}, "bxor");
  refused("type", {.in = &x, .out = &y, .count = 1, .type = static_cast<DataType>(99)}, "type");
  refused("algorithm", {.in = &x, .out = &y, .count = 1, .options = {.algorithm = "none"}}, "none");
  refused("transport",
          {.in = &x, .out = &y, .count = 1, .options = {.transport = Transport::board}}, "board");
  refused("timeout", {.in = &x, .out = &y, .count = 1, .options = {.timeout = milliseconds(-1)}},
          "timeout");
  std::vector<float> both(8, 1.0F);
  refused("overlap", {.in = both.data(), .out = both.data() + 1, .count = 4}, "overlap");
  checks.check("and it goes on", works(me));
}

void what_calls_have(Checks& checks) {
  JoinOptions options;
  options.most_message_bytes = 1000;  // longer messages go in parts
  auto joined = join(MPI_COMM_WORLD, options);
  Member& me = **joined;
  const auto n = static_cast<std::size_t>(me.ranks());
  std::vector<std::int64_t> x(10'007), sum(x.size());
  std::iota(x.begin(), x.end(), me.rank());
  std::string wrong;
  for (const char* algorithm : {"ring", "recursive_doubling", "direct_one_shot"}) {
    const Status status =
        me.all_reduce(std::span<const std::int64_t>(x), std::span<std::int64_t>(sum), ReduceOp::sum,
                      {.algorithm = algorithm});
    if (!status.ok()) wrong = status.text();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (sum[i] != static_cast<std::int64_t>(i * n + n * (n - 1) / 2)) wrong = "a wrong sum";
    }
  }
  checks.check("messages in parts", wrong);

  // Composition of affine maps is an operation that does not commute.
  struct Affine {
    std::int64_t a, b;
  };
  const auto compose = [](std::span<const Affine> in, std::span<Affine> inout) {
    for (std::size_t i = 0; i < inout.size(); ++i) {
      inout[i] = {(in[i].a * inout[i].a) % 1009, (in[i].a * inout[i].b + in[i].b) % 1009};
    }
  };
  const auto of_rank = [](int r) { return Affine{r + 2, 3 * r + 1}; };
  std::vector<Affine> maps(17, of_rank(me.rank()));
  Status status = me.all_reduce(std::span<Affine>(maps), user_op<Affine>(compose, Commutes::no));
  Affine wanted = of_rank(0);
  for (int r = 1; r < me.ranks(); ++r) {
    Affine next = of_rank(r);
    compose(std::span<const Affine>(&wanted, 1), std::span<Affine>(&next, 1));
    wanted = next;
  }
  checks.check("an operation of the user's", !status.ok() ? status.text()
                                             : maps[16].a == wanted.a && maps[16].b == wanted.b
                                                 ? ""
                                                 : "another product");

  std::vector<float> ones(33, 1.0F);
  status = me.all_reduce(std::span<float>(ones), PreMulSum{static_cast<float>(me.rank())});
  checks.check("factors", !status.ok()                                      ? status.text()
                          : ones[32] == static_cast<float>(n * (n - 1) / 2) ? ""
                                                                            : "a wrong sum");

  std::vector<float> rows(24, 1.0F);
  std::vector<int> finished(8, 0);
  struct Seen {
    std::vector<int>& finished;
    float wanted;
    bool right = true;
  } seen{finished, static_cast<float>(n)};
  const Epilogue epilogue{
      [](const void* data, std::size_t first, std::size_t count, void* context) {
        auto& mine = *static_cast<Seen*>(context);
        for (std::size_t i = 0; i < count; ++i) ++mine.finished[first + i];
        for (std::size_t i = 0; i < 3 * count; ++i) {
          if (static_cast<const float*>(data)[i] != mine.wanted) mine.right = false;
        }
      },
      &seen, 3};
  status = me.all_reduce(std::span<float>(rows), {.epilogue = &epilogue});
  wrong = status.text();
  if (!seen.right) wrong = "rows that are not final";
  for (const int times : finished) {
    if (times != 1) wrong = "a row is finished " + std::to_string(times) + " times";
  }
  checks.check("an epilogue", wrong);

  // The last block comes first, with gaps.
  std::vector<std::int32_t> in(2 * n), out(2 * n, -1);
  std::vector<std::size_t> places(n);
  for (std::size_t r = 0; r < n; ++r) {
    places[r] = 8 * (n - 1 - r);
    in[places[r] / 4] = static_cast<int>(100 * static_cast<std::size_t>(me.rank()) + r);
  }
  const Displacements displacements{places, places};
  status = me.call({.collective = Collective::all_to_all,
                    .in = in.data(),
                    .out = out.data(),
                    .count = 1,
                    .type = DataType::i32,
                    .displacements = &displacements});
  wrong = status.text();
  for (std::size_t r = 0; r < n; ++r) {
    if (out[places[r] / 4] != static_cast<int>(100 * r) + me.rank()) wrong = "a wrong block";
    if (out[places[r] / 4 + 1] != -1) wrong = "a gap was written to";
  }
  checks.check("displacements", wrong);

  wrong = "";
  for (const Order order : {Order::coherent, Order::repeatable, Order::by_rank,
                            Order::size_invariant, Order::group_invariant}) {
    std::vector<float> values(40, 0.1F + static_cast<float>(me.rank()));
    const Call call{
        .in = values.data(), .out = values.data(), .count = 40, .options = {.order = order}};
    const auto kept = me.orders_of(call);
    if (!kept.ok() || !kept->has(order)) wrong = "no plan has " + std::string(name_of(order));
    if (status = me.call(call); !status.ok()) wrong = status.text();
    float serial = 0.1F;
    for (int r = 1; r < me.ranks(); ++r) serial += 0.1F + static_cast<float>(r);
    if (order == Order::by_rank && std::memcmp(&serial, &values[7], 4) != 0) {
      wrong = "by_rank has other bits than a loop";
    }
  }
  checks.check("orders", wrong);
}

// Rank 1 does not come: the other ranks time out, and rank 1 gets the error when it comes.
void nobody_comes(Checks& checks) {
  auto joined = join(MPI_COMM_WORLD, with_timeout(300));
  Member& me = **joined;
  std::vector<float> x(10, 1.0F);
  const auto call = [&] {
    return me.all_reduce(std::span<float>(x), ReduceOp::sum, {.algorithm = "direct_one_shot"});
  };
  int word = 0;
  // Rank 1 waits for all other ranks: a rank that has told rank 0 may not have told rank 1 yet, and
  // all messages for rank 1 are ready.
  for (int r = 0; me.rank() == 1 && r < me.ranks(); ++r) {
    if (r != 1) MPI_Recv(&word, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  const Status status = call();
  if (me.rank() != 1) MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  std::string wrong = expect(status, Code::timeout, "no answer within 300 ms: rank ");
  if (wrong.empty()) wrong = expect(call(), Code::timeout, status.text());
  if (wrong.empty()) wrong = expect(me.health(), Code::timeout, status.text());
  checks.check("nobody comes", wrong);
}

void counts_differ(Checks& checks) {
  auto joined = join(MPI_COMM_WORLD, with_timeout(300));
  Member& me = **joined;
  std::vector<float> x(me.rank() == 0 ? 20 : 10, 1.0F);
  const Status status =
      me.all_reduce(std::span<float>(x), ReduceOp::sum, {.algorithm = "direct_one_shot"});
  // A rank that is first told by another rank returns the other rank's text.
  checks.check("counts differ", status.code() == Code::mismatch || status.code() == Code::timeout
                                    ? ""
                                    : "is " + std::string(name_of(status.code())));
  int mismatches = status.code() == Code::mismatch ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &mismatches, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  checks.check("and somebody sees it", mismatches > 0 ? "" : "nobody calls it a mismatch");
}

void one_aborts(Checks& checks) {
  auto joined = join(MPI_COMM_WORLD, with_timeout(60'000));
  Member& me = **joined;
  std::vector<float> x(10, 1.0F);
  Status status;
  if (me.rank() == 1) {
    std::this_thread::sleep_for(milliseconds(100));
    me.abort("enough of it");
    status = me.all_reduce(std::span<float>(x));
  } else {
    status = me.all_reduce(std::span<float>(x), ReduceOp::sum, {.algorithm = "direct_one_shot"});
  }
  checks.check("one aborts", expect(status, Code::aborted, "enough of it"));
}

void one_throws(Checks& checks) {
  auto joined = join(MPI_COMM_WORLD, with_timeout(60'000));
  Member& me = **joined;
  const int rank = me.rank();
  const auto op = [rank](std::span<const float> a, std::span<float> b) {
    if (rank == 1) throw std::runtime_error("not with me");
    for (std::size_t i = 0; i < b.size(); ++i) b[i] += a[i];
  };
  std::vector<float> x(1000, 1.0F);
  // In a ring every rank needs rank 1's data.
  const Status status =
      me.all_reduce(std::span<float>(x), user_op<float>(op), {.algorithm = "ring"});
  checks.check("one throws", expect(status, Code::remote_error, "rank 1 threw: not with me"));
}

void forks(Checks& checks) {
  auto joined = join(MPI_COMM_WORLD);
  Member& me = **joined;
  ChildProcess child([&] {
    float x = 1;
    const bool right = me.all_reduce(std::span<float>(&x, 1)).code() == Code::forked &&
                       me.health().code() == Code::forked;
    joined = Status(Code::forked, "");  // destroyed without any MPI call
    return right ? 0 : 1;
  });
  checks.check("a forked child is told", child.wait() == 0 ? "" : "it was not");
  checks.check("and its parent goes on", works(me));
}

void many_buffers(Checks& checks) {
  auto joined = join(MPI_COMM_WORLD);
  Member& me = **joined;
  std::vector<std::vector<float>> all(20, std::vector<float>(1000));
  std::string wrong;
  for (int i = 0; i < 60; ++i) {
    std::vector<float>& x = all[static_cast<std::size_t>(i * 7 % 20)];
    std::fill(x.begin(), x.end(), 1.0F);
    const Status status = me.all_reduce(std::span<float>(x));
    if (!status.ok() || x[999] != static_cast<float>(me.ranks()))
      wrong = "call " + std::to_string(i);
  }
  checks.check("other buffers every time", wrong);
}

// Alternating nodes are no groups of neighbours: two_level refuses them, and other algorithms still
// work.
void nodes_in_turns(Checks& checks) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  JoinOptions options;
  options.node = rank % 2;
  auto joined = join(MPI_COMM_WORLD, options);
  Member& me = **joined;
  std::vector<float> x(1000, 1.0F);
  const Call call{
      .in = x.data(), .out = x.data(), .count = 1000, .options = {.algorithm = "two_level"}};
  const bool groups = ranks == 2;  // one rank per group
  checks.check("nodes in turns", groups ? works(me)
                                        : expect(me.call(call), Code::invalid_argument,
                                                 "two_level takes its groups from the nodes"));
  checks.check("and it goes on", works(me));
  options.node = -1;
  checks.check("no node", expect(join(MPI_COMM_WORLD, options).status(), Code::invalid_argument,
                                 "node is -1"));
  options.node = 0;
  checks.check("threads", expect(join_threads(MPI_COMM_WORLD, 0, options).status(),
                                 Code::invalid_argument, "threads is 0"));
}

int run_all() {
  Checks checks;
  joins(checks);
  wrong_arguments(checks);
  what_calls_have(checks);
  many_buffers(checks);
  forks(checks);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) {
    nodes_in_turns(checks);
    for (const Within within : {Within::messages, Within::memory}) {
      scene_within = within;
      one_aborts(checks);
      one_throws(checks);
      nobody_comes(checks);
      counts_differ(checks);
    }
  }
  return checks.end();
}

int die() {
  auto me = join(MPI_COMM_WORLD, with_timeout(20'000));
  std::vector<float> x(10, 1.0F);
  for (int i = 0;; ++i) {
    if (i == 10 && (*me)->rank() == 1) raise(SIGKILL);
    if (!(*me)->all_reduce(std::span<float>(x)).ok()) return 1;
  }
}

}  // namespace
}  // namespace rankine::mpi

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const bool dies = argc > 1 && std::strcmp(argv[1], "dies") == 0;
  const int result = dies ? rankine::mpi::die() : rankine::mpi::run_all();
  MPI_Finalize();
  return result;
}
