// Measures the staged form among processes and threads against the threads' own form and against a
// copy by the own core: collectives of f32 (reductions are sums), on fresh buffers.
//
//   third_party/bazel run //bench/staged -- --ranks 2
//
// Rows are sizes, times are microseconds: the median over all calls of the slowest rank, from a
// barrier until the result has been read once. Each rank rewrites its input before a call (in a
// broadcast the root alone). Forms take turns, round by round:
//   threads     calls of threads by the costs in force
//   staged      the same threads, with only scratch visible to others (Costs::stage_apart_min_bytes
//   and
//               stage_in_place: for all-reduces and broadcasts)
//   plain       as staged, by plain stores, in one piece
//   processes   a process per rank, calls by the costs in force
//   copy        each rank copies its own input to its output
// `line` is the one-way latency of a cache line between the cores of ranks 0 and 1, beside each
// row. Exit status: 0, 2 usage, 3 a system error.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/rivals/batch.h"
#include "bench/rivals/crew.h"
#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/cli/probe.h"

namespace rankine {
namespace {

using rivals::BatchBarrier;

constexpr std::size_t kMost = std::size_t{8} << 20;

struct Job {
  Collective collective = Collective::all_reduce;
  std::size_t bytes = 0;  // bytes of the longer buffer, input or output
  int calls = 1;          // at most rivals::kMaxCalls
  bool in_place = false;
};

// A rank's memory for all forms.
struct RankMemory {
  rivals::Buffer in{kMost}, out{kMost};
};

// A call of the job on these buffers.
Call call_of(const Job& job, int ranks, const float* in, float* out) {
  const bool is_whole =
      job.collective == Collective::all_reduce || job.collective == Collective::broadcast;
  const std::size_t n = job.bytes / sizeof(float);
  return {.collective = job.collective,
          .in = in,
          .out = out,
          .count = is_whole ? n : n / static_cast<std::size_t>(ranks)};
}

// Makes one timed call.
using Form = std::function<void(const Call& call)>;

// All ranks call it at once. Rank 0 gets the times of the slowest rank, in microseconds.
std::vector<double> play(BatchBarrier& batch_barrier, int rank, RankMemory& memory, const Job& job,
                         const Form& form) {
  const std::size_t n = job.bytes / sizeof(float);
  float* const in = memory.in.data();
  const bool is_broadcast = job.collective == Collective::broadcast;
  float* const out = job.in_place || is_broadcast ? in : memory.out.data();
  const Call call = call_of(job, batch_barrier.ranks, in, out);
  const std::size_t result = job.collective == Collective::reduce_scatter
                                 ? job.bytes / static_cast<std::size_t>(batch_barrier.ranks)
                                 : job.bytes;
  for (int i = 0; i < job.calls; ++i) {
    if (!is_broadcast || rank == call.root) std::fill_n(in, n, static_cast<float>(rank + i % 5));
    batch_barrier.barrier(rank);
    const rivals::Ticks begin = rivals::ticks_now();
    form(call);
    tools::read_result(out, result);
    batch_barrier.seats[rank].calls[i] = rivals::ticks_now() - begin;
  }
  batch_barrier.barrier(rank);
  std::vector<double> times;
  for (int i = 0; rank == 0 && i < job.calls; ++i) {
    rivals::Ticks slowest = 0;
    for (int r = 0; r < batch_barrier.ranks; ++r) {
      slowest = std::max(slowest, batch_barrier.seats[r].calls[i]);
    }
    times.push_back(static_cast<double>(slowest) * rivals::nanoseconds_per_tick() / 1000);
  }
  batch_barrier.barrier(rank);
  return times;
}

Form calls_of(Member& me) {
  return [&me](const Call& call) { me.call(call).throw_if_error(); };
}

void copy(const Call& call) {
  if (call.in != call.out) std::memcpy(call.out, call.in, call.count * sizeof(float));
}

// Writes to or reads from a pipe's end, completely.
template <class T>
void tell(int to, const T* what, std::size_t n = 1) {
  if (write(to, what, n * sizeof(T)) != static_cast<ssize_t>(n * sizeof(T))) _exit(3);
}
template <class T>
bool hear(int from, T* what, std::size_t n = 1) {
  std::size_t got = 0;
  while (got < n * sizeof(T)) {
    const ssize_t more = read(from, reinterpret_cast<char*>(what) + got, n * sizeof(T) - got);
    if (more <= 0) return false;
    got += static_cast<std::size_t>(more);
  }
  return true;
}

// Ranks in processes: each runs the jobs that it reads from its pipe, until the pipe ends.
class Processes {
 public:
  Processes(BatchBarrier& batch_barrier, const std::vector<int>& cpus) {
    if (pipe(answers_) != 0) throw system_error();
    const std::string name = "rankine_bench_" + std::to_string(getpid());
    for (int rank = 0; rank < batch_barrier.ranks; ++rank) {
      int jobs[2];
      if (pipe(jobs) != 0) throw system_error();
      const pid_t child = fork();
      if (child < 0) throw system_error();
      if (child == 0) {
        for (const int other : jobs_) close(other);
        close(jobs[1]);
        rivals::pin_this_thread(cpus[static_cast<std::size_t>(rank) % cpus.size()]);
        live(batch_barrier, rank, name, jobs[0]);
      }
      close(jobs[0]);
      jobs_.push_back(jobs[1]);
      children_.push_back(child);
    }
  }
  ~Processes() {
    for (const int jobs : jobs_) close(jobs);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  std::vector<double> run(const Job& job) {
    for (const int jobs : jobs_) tell(jobs, &job);
    std::vector<double> times(static_cast<std::size_t>(job.calls));
    if (!hear(answers_[0], times.data(), times.size())) throw system_error();
    return times;
  }

 private:
  static Error system_error() { return {Code::system, std::strerror(errno)}; }

  [[noreturn]] void live(BatchBarrier& batch_barrier, int rank, const std::string& name,
                         int jobs) try {
    const auto communicator =
        Communicator::create({.ranks = batch_barrier.ranks, .rank = rank, .name = name}).value();
    const auto me = communicator->join(rank).value();
    RankMemory memory;
    for (Job job; hear(jobs, &job);) {
      const auto times = play(batch_barrier, rank, memory, job, calls_of(*me));
      if (rank == 0) tell(answers_[1], times.data(), times.size());
    }
    _exit(0);
  } catch (const Error& error) {
    std::fprintf(stderr, "staged: rank %d: %s\n", rank, error.what());
    _exit(3);
  }

  int answers_[2] = {};
  std::vector<int> jobs_;
  std::vector<pid_t> children_;
};

// Ranks in threads of this process.
class Threads {
 public:
  Threads(BatchBarrier& batch_barrier, const Costs& costs)
      : batch_barrier_(batch_barrier),
        team_(Team::create({.ranks = batch_barrier.ranks, .costs = costs}).value()),
        memory_(static_cast<std::size_t>(batch_barrier.ranks)) {}

  std::vector<double> run(const Job& job, bool copies) {
    std::vector<double> times;
    team_
        ->run([&](Member& me) {
          const Form form = copies ? Form(copy) : calls_of(me);
          const auto mine = play(batch_barrier_, me.rank(),
                                 memory_[static_cast<std::size_t>(me.rank())], job, form);
          if (me.rank() == 0) times = mine;
        })
        .throw_if_error();
    return times;
  }

 private:
  BatchBarrier& batch_barrier_;
  const std::unique_ptr<Team> team_;
  std::vector<RankMemory> memory_;
};

BatchBarrier& shared_batch_barrier(int ranks, bool crowded) {
  void* const memory = mmap(nullptr, sizeof(BatchBarrier), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto& batch_barrier = *new (memory) BatchBarrier;
  batch_barrier.ranks = ranks;
  batch_barrier.crowded = crowded;
  return batch_barrier;
}

Costs staged(Costs costs, bool plain) {
  costs.stage_apart_min_bytes = costs.stage_in_place_min_bytes = 1;
  if (plain)
    costs.stage_stream_min_bytes = costs.stage_piece_max_bytes =
        field_of(&Costs::stage_stream_min_bytes).most;
  return costs;
}

void measure(Collective collective, int ranks, int rounds, bool in_place) {
  const std::vector<int> cpus = rivals::allowed_cpus();
  const bool crowded = static_cast<std::size_t>(ranks) > cpus.size();
  Processes processes(shared_batch_barrier(ranks, crowded),
                      cpus);  // forked before there are threads
  BatchBarrier& batch_barrier = shared_batch_barrier(ranks, crowded);
  const Costs costs = machine_costs();
  Threads threads(batch_barrier, costs), scratch(batch_barrier, staged(costs, false)),
      plain(batch_barrier, staged(costs, true));
  rivals::Crew crew(ranks, cpus);
  const std::pair<const char*, std::function<std::vector<double>(const Job&)>> forms[] = {
      {"threads", [&](const Job& job) { return threads.run(job, false); }},
      {"staged", [&](const Job& job) { return scratch.run(job, false); }},
      {"plain", [&](const Job& job) { return plain.run(job, false); }},
      {"processes", [&](const Job& job) { return processes.run(job); }},
      {"copy", [&](const Job& job) { return threads.run(job, true); }},
  };
  std::printf("# %s f32, %d ranks on %zu cores, %s, fresh; us\n",
              std::string(name_of(collective)).c_str(), ranks, cpus.size(),
              in_place ? "in place" : "apart");
  std::printf("%10s %8s", "size", "line ns");
  for (const auto& [name, form] : forms) std::printf(" %10s", name);
  std::printf("\n");
  for (std::size_t bytes = 32; bytes <= kMost; bytes *= bytes < 2048 ? 16 : 4) {
    std::vector<double> line, times[std::size(forms)];
    for (int round = 0; round < rounds; ++round) {
      line.push_back(crew.ping_pong_ns());
      for (std::size_t f = 0; f < std::size(forms); ++f) {
        const auto more = forms[f].second(
            {collective, bytes, bytes <= (std::size_t{256} << 10) ? 40 : 5, in_place});
        times[f].insert(times[f].end(), more.begin(), more.end());
      }
    }
    std::printf("%10s %8.0f", format_bytes(bytes).c_str(), median(line));
    for (const auto& of_form : times) std::printf(" %10.2f", median(of_form));
    std::printf("\n");
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  int ranks = 2, rounds = 15;
  bool in_place = false;
  std::string collective = "all_reduce";
  CLI::App app("The staged form among processes and threads, against the threads' own form.");
  app.add_option("--collective", collective, "the collective")
      ->check(
          CLI::IsMember({"all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"}))
      ->capture_default_str();
  app.add_option("--ranks", ranks, "processes, and threads")
      ->check(CLI::Range(2, rivals::kMaxRanks))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "rounds; all forms take turns")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_flag("--in-place", in_place, "input and output are one buffer: all_reduce, all_to_all");
  app.footer("Example:\n  staged --collective broadcast --ranks 4");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const bool takes_in_place = collective == "all_reduce" || collective == "all_to_all";
  if (in_place && !takes_in_place) {
    std::fprintf(stderr,
                 "staged: --in-place is given with %s; allowed are all_reduce and all_to_all\n",
                 collective.c_str());
    return 2;
  }
  try {
    measure(*parse_collective(collective), ranks, rounds, in_place);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "staged: %s\n", error.what());
    return 3;
  }
  return 0;
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) { return rankine::run(argc, argv); }
