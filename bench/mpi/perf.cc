// Measures a collective by every algorithm over MPI's messages, beside the MPI's own call.
// third_party/mpi --perf builds and starts it.
//
//   mpirun -n 8 perf all_reduce --algo all --bytes 8,4K,256K
//
// --network measures the network of the processes instead, within nodes and between them, and
// prints it as a network file (third_party/mpi --tune).
//
// --lines prints for programs: a line for each time, with name, bytes and seconds between tabs;
// cluster.py reads them. --moment MICROSECONDS, for processes of one machine: calls begin this
// time after all have agreed on the moment, by the machine's clock. If processes share cores, they
// leave a barrier one by one, and times from a barrier on would measure the scheduler's turns.
//
// A time is the slowest rank's, from a barrier on; the median over some calls. M as in nccl-tests;
// f32 sums. Buffers stay in place.
#include <mpi.h>
#include <sched.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/mpi/member.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/network/network_members.h"
#include "engine/run/machine.h"

namespace rankine::mpi {
namespace {

// The greatest and least number of calls of each; between them, calls stop after kSeconds.
constexpr int kMostCalls = 200, kLeastCalls = 5;
constexpr double kSeconds = 0.3;

struct Asked {
  Collective collective = Collective::all_reduce;
  std::vector<std::string> algorithms;  // or "all"
  std::vector<std::size_t> sizes;
  int segments = 0;  // as in CallOptions
  bool lines = false;
  int moment_us = 0;  // 0: calls begin at a barrier

  bool wants(const Algorithm& entry) const {
    const auto has = [this](std::string_view name) {
      return std::find(algorithms.begin(), algorithms.end(), name) != algorithms.end();
    };
    return entry.collective == collective && (has("all") || has(entry.name));
  }
};

struct Question {
  Collective collective = Collective::all_reduce;
  std::size_t bytes = 0;  // M
};

// A rank's buffers for a question, and the count of the calls.
struct Buffers {
  std::vector<float> in, out;
  std::size_t count = 0;

  Buffers(const Question& question, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    const std::size_t all = std::max<std::size_t>(question.bytes / sizeof(float), 1);
    const bool by_rank = natural_blocks(question.collective, ranks) > 1;
    count = by_rank ? std::max<std::size_t>(all / n, 1) : all;
    const std::size_t elements = by_rank ? count * n : count;
    in.assign(elements, 1.0F);
    out.assign(elements, 0.0F);
  }
};

int mpis_own(const Question& question, Buffers& at) {
  const int count = static_cast<int>(at.count);
  const float* in = at.in.data();
  float* out = at.out.data();
  switch (question.collective) {
    case Collective::all_reduce:
      return MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case Collective::broadcast:
      return MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    case Collective::reduce:
      return MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    case Collective::all_gather:
      return MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
    case Collective::reduce_scatter:
      return MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case Collective::all_to_all:
      return MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
    case Collective::gather:
      return MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    case Collective::scatter:
      return MPI_Scatter(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    case Collective::scan:
      return MPI_Scan(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case Collective::exscan:
      return MPI_Exscan(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case Collective::barrier:
      return MPI_Barrier(MPI_COMM_WORLD);
    case Collective::send_recv:
      break;  // MPI has no such collective; main() refuses it
  }
  return MPI_ERR_OTHER;
}

Call call_of(const Question& question, Buffers& at, std::string_view algorithm, int segments) {
  Call call{.collective = question.collective,
            .in = at.in.data(),
            .out = at.out.data(),
            .count = at.count,
            .options = {.algorithm = algorithm, .segments = segments}};
  if (question.collective == Collective::barrier) {
    call.count = 1;
    call.type = DataType::u32;
    call.op = ReduceOp::bor;
  }
  return call;
}

// Returns the time of now_ns() at which calls begin. While a rank waits for a moment, it leaves the
// cores to others until shortly before it.
std::int64_t begin_together(int moment_us) {
  constexpr std::int64_t kNear = 200'000;
  if (moment_us == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    return now_ns();
  }
  std::int64_t moment = now_ns() + std::int64_t{moment_us} * 1000;
  MPI_Allreduce(MPI_IN_PLACE, &moment, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  if (const std::int64_t left = moment - now_ns() - kNear; left > 0) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(left));
  }
  while (now_ns() < moment) sched_yield();
  return moment;
}

// Seconds; below 0 if a call failed on any rank.
double time_of(int moment_us, const std::function<bool()>& call) {
  std::vector<double> times;
  double total = 0;
  for (int i = -1; i < kMostCalls && (i < kLeastCalls || total < kSeconds); ++i) {
    const std::int64_t began = begin_together(moment_us);
    const bool good = call();
    double took = good ? static_cast<double>(now_ns() - began) * 1e-9 : -1e9;
    double worst[2] = {took, -took};
    MPI_Allreduce(MPI_IN_PLACE, worst, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (worst[1] > 0) return -1;
    if (i < 0) continue;  // the first call makes plans
    times.push_back(worst[0]);
    total += worst[0];
  }
  return median(times);
}

void print_row(const Asked& asked, const std::string& name, const std::vector<double>& times) {
  if (asked.lines) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i] >= 0) std::printf("%s\t%zu\t%.9g\n", name.c_str(), asked.sizes[i], times[i]);
    }
  } else {
    std::printf("%-28s", name.c_str());
    for (const double t : times) {
      std::printf(" %12s", t < 0 ? "-" : format_seconds(t).c_str());
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

int run(const Asked& asked) {
  auto joined = join(MPI_COMM_WORLD);
  if (!joined.ok()) {
    std::fprintf(stderr, "perf: %s\n", joined.status().text().c_str());
    return 1;
  }
  Member& me = **joined;
  std::vector<std::string> names;
  for (const Algorithm& entry : catalogue()) {
    Params params;
    params.ranks = me.ranks();
    if (asked.wants(entry) && !entry.refusal(params)) names.emplace_back(entry.name);
  }
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(library, &length);
  const std::string version(library, static_cast<std::size_t>(length));
  if (me.rank() == 0 && !asked.lines) {
    std::printf("%s among %d processes, f32, median time of the slowest rank\n%-28s",
                std::string(name_of(asked.collective)).c_str(), me.ranks(), "");
    for (const std::size_t bytes : asked.sizes) std::printf(" %12s", format_size(bytes).c_str());
    std::printf("\n");
  }
  std::vector<Question> questions;
  for (const std::size_t bytes : asked.sizes) questions.push_back({asked.collective, bytes});
  const auto row = [&](const std::string& name, const auto& make) {
    std::vector<double> times;
    for (const Question& question : questions) {
      Buffers at(question, me.ranks());
      times.push_back(time_of(asked.moment_us, [&] { return make(question, at); }));
    }
    if (me.rank() == 0) print_row(asked, name, times);
  };
  row(version.substr(0, version.find_first_of(",\n\t")),
      [](const Question& question, Buffers& at) { return mpis_own(question, at) == MPI_SUCCESS; });
  row("rankine, its choice", [&](const Question& question, Buffers& at) {
    return me.call(call_of(question, at, "", asked.segments)).ok();
  });
  for (const std::string& name : names) {
    row(name, [&](const Question& question, Buffers& at) {
      return me.call(call_of(question, at, name, asked.segments)).ok();
    });
  }
  return me.health().ok() ? 0 : 1;
}

int print_network() {
  auto joined = join(MPI_COMM_WORLD);
  const auto fabric = joined.ok() ? measure_network(**joined) : Result<Fabric>(joined.status());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto file = fabric.ok() ? write_network(*fabric) : Result<std::string>(fabric.status());
  if (rank == 0 && file.ok()) std::printf("%s", file->c_str());
  if (rank == 0 && !file.ok()) std::fprintf(stderr, "perf: %s\n", file.status().text().c_str());
  return file.ok() ? 0 : 1;
}

}  // namespace
}  // namespace rankine::mpi

int main(int argc, char** argv) {
  CLI::App app("A collective by every algorithm over MPI's messages, beside the MPI's own call");
  rankine::mpi::Asked asked;
  std::string collective = "all_reduce";
  asked.algorithms = {"all"};
  std::vector<std::string> bytes = {"8", "4K", "256K"};
  app.add_option("collective", collective, "all_reduce, broadcast, ...");
  app.add_option("--algo", asked.algorithms, "names of algorithms, or all")->delimiter(',');
  app.add_option("--bytes", bytes, "M: 8, 4K, 1M, ...")->delimiter(',');
  app.add_option("--segments", asked.segments, "segments of pipelines; 0: chosen by size")
      ->check(CLI::Range(0, 1 << 16));
  app.add_option("--moment", asked.moment_us, "for processes of one machine: us until calls begin")
      ->check(CLI::Range(0, 1'000'000));
  app.add_flag("--lines", asked.lines, "a line for each time: name, bytes, seconds");
  bool network = false;
  app.add_flag("--network", network, "measure the network and print it as a network file");
  CLI11_PARSE(app, argc, argv);
  const auto known = rankine::parse_collective(collective);
  if (!known || *known == rankine::Collective::send_recv) {
    std::fprintf(stderr, "perf: collective is '%s'; allowed are MPI's, such as all_reduce\n",
                 collective.c_str());
    return 2;
  }
  asked.collective = *known;
  for (const std::string& name : asked.algorithms) {
    if (name == "all" || rankine::find_algorithm(*known, name) != nullptr) continue;
    std::fprintf(stderr, "perf: --algo is '%s'; allowed are all, %s\n", name.c_str(),
                 rankine::algorithm_names(*known).c_str());
    return 2;
  }
  for (const std::string& text : bytes) {
    const auto size = rankine::parse_size("--bytes", text);
    if (!size.ok()) {
      std::fprintf(stderr, "perf: %s\n", size.status().text().c_str());
      return 2;
    }
    asked.sizes.push_back(*size);
  }
  MPI_Init(&argc, &argv);
  const int result = network ? rankine::mpi::print_network() : rankine::mpi::run(asked);
  MPI_Finalize();
  return result;
}
