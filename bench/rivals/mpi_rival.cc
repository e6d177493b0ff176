// MPI collectives under the protocol of batch.h. Not built by Bazel: start_mpi compiles it with
// mpicxx and starts it.
//
//   start_mpi openmpi_ucx 2 roomy -b 8 -e 64M          measures all_reduce from 8 B to 64 MiB, one
//   JSON object per line start_mpi mpich 2 roomy --serve                    reads "all_reduce 1024
//   warm 100 10 0 7" (collective, M, protocol,
//                                                      calls, warm-ups, in place, seed), answers
//                                                      one JSON object per line, ends with its
//                                                      input
//
// Ranks sleep between batches, in read() or on a futex, so that other contenders can be measured
// meanwhile.
#include <fcntl.h>
#include <linux/futex.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/buffer.h"
#include "bench/rivals/sizes.h"

namespace rankine::rivals {
namespace {

constexpr unsigned kBatchLimitS =
    120;  // a batch that takes longer hangs; the process is then killed by SIGALRM

// Shared by the ranks. Commands, barriers and times take this way and not MPI's, so that all
// libraries are timed by the same code and nothing polls between batches.
struct Board {
  std::atomic<std::uint32_t> order{0};  // counts batches; a futex
  bool stop = false;
  Batch batch;
  pid_t conductor = 0;
  Meeting meeting;
};

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, kMaxRanks, nullptr, nullptr, 0);
}

// At most a second, so that a rank whose conductor has died finds out.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec limit{1, 0};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

int mpi_int(std::size_t count) { return static_cast<int>(count); }

class Rank {
 public:
  Rank(int rank, int ranks, bool crowded) : rank_(rank) {
    if (ranks > kMaxRanks) fail("too many ranks");
    pid_t conductor = getpid();
    MPI_Bcast(&conductor, sizeof(conductor), MPI_BYTE, 0, MPI_COMM_WORLD);
    const std::string path = "/rankine-rival-" + std::to_string(conductor);
    if (rank == 0) map_board(path, O_CREAT | O_EXCL | O_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) map_board(path, O_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      shm_unlink(path.c_str());
      new (board_) Board;
      board_->conductor = conductor;
      board_->meeting.ranks = ranks;
      board_->meeting.crowded = crowded;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!crowded) pin();
    nanoseconds_per_tick();
  }

  // Rank 0: one batch by all ranks.
  Measured conduct(const Batch& batch) {
    board_->batch = batch;
    board_->order.fetch_add(1);
    wake_all(board_->order);
    take_part();
    return summarise(batch, board_->meeting);
  }

  // Rank 0: the others return from follow().
  void dismiss() {
    board_->stop = true;
    board_->order.fetch_add(1);
    wake_all(board_->order);
  }

  void follow() {
    for (std::uint32_t done = 0;;) {
      while (board_->order.load() == done) {
        sleep_while(board_->order, done);
        if (kill(board_->conductor, 0) != 0) _exit(1);
      }
      ++done;
      if (board_->stop) return;
      take_part();
    }
  }

 private:
  [[noreturn]] void fail(const char* what) {
    std::cerr << "mpi_rival: " << what << ": " << std::strerror(errno) << "\n";
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

  void map_board(const std::string& path, int flags) {
    const int file = shm_open(path.c_str(), flags, 0600);
    if (file < 0) fail("shm_open");
    if (ftruncate(file, sizeof(Board)) != 0) fail("ftruncate");
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) fail("mmap");
    close(file);
    board_ = static_cast<Board*>(memory);
  }

  // For launchers that were asked to bind and did not.
  void pin() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) == 1) return;
    int turn = rank_ % std::max(CPU_COUNT(&allowed), 1);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed) || turn-- > 0) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof(one), &one);
      return;
    }
  }

  void take_part() {
    const Batch batch = board_->batch;
    Meeting& meeting = board_->meeting;
    if (in_.capacity() < batch.bytes) in_ = Buffer(batch.bytes);
    if (out_.capacity() < batch.bytes) out_ = Buffer(batch.bytes);
    alarm(kBatchLimitS);
    run(batch, meeting);
    meeting.barrier(rank_);  // all seats are written
    alarm(0);
  }

  void run(const Batch& batch, Meeting& meeting) {
    const MPI_Comm world = MPI_COMM_WORLD;
    const auto with = [&](auto&& call) {
      run_batch(batch, meeting, rank_, in_.data(), out_.data(),
                [&](float* in, float* out, const Shape& s) { call(in, out, mpi_int(s.block)); });
    };
    switch (batch.collective) {
      case Collective::all_reduce:
        if (batch.in_place) {
          with([&](float*, float* out, int n) {
            MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_FLOAT, MPI_SUM, world);
          });
        } else {
          with([&](float* in, float* out, int n) {
            MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, world);
          });
        }
        return;
      case Collective::broadcast:
        with([&](float* in, float* out, int n) {
          MPI_Bcast(rank_ == 0 ? in : out, n, MPI_FLOAT, 0, world);
        });
        return;
      case Collective::all_gather:
        with([&](float* in, float* out, int n) {
          MPI_Allgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world);
        });
        return;
      case Collective::reduce_scatter:
        with([&](float* in, float* out, int n) {
          MPI_Reduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, world);
        });
        return;
      case Collective::all_to_all:
        with([&](float* in, float* out, int n) {
          MPI_Alltoall(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world);
        });
        return;
      case Collective::reduce:
        with([&](float* in, float* out, int n) {
          MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, 0, world);
        });
        return;
    }
  }

  const int rank_;
  Board* board_ = nullptr;
  Buffer in_;
  Buffer out_;
};

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line;
  for (const char c : std::string(text, static_cast<std::size_t>(length))) {
    if (c == '\n' || c == ',') break;
    line += c == '\t' || c == '"' || c == '\\' ? ' ' : c;
  }
  return line;
}

int fail_usage(const std::string& what) {
  std::cerr << "mpi_rival: " << what << "\n";
  return 2;
}

bool parse_collective(const std::string& text, Collective* collective) {
  for (std::size_t i = 0; i < std::size(kCollectiveNames); ++i) {
    if (text == kCollectiveNames[i]) {
      *collective = static_cast<Collective>(i);
      return true;
    }
  }
  return false;
}

bool parse_batch(const std::string& line, Batch* batch) {
  std::istringstream words(line);
  std::string collective;
  std::string protocol;
  if (!(words >> collective >> batch->bytes >> protocol >> batch->calls >> batch->warmups >>
        batch->in_place >> batch->seed)) {
    return false;
  }
  batch->protocol = protocol == "warm" ? Protocol::warm : Protocol::fresh;
  return parse_collective(collective, &batch->collective) &&
         (protocol == "warm" || protocol == "fresh") && batch->calls >= 1 && batch->warmups >= 0 &&
         (protocol == "warm" || batch->calls <= kMaxCalls);
}

void serve(Rank& conductor, int ranks) {
  std::printf("{\"ready\": true, \"library\": \"%s\", \"ranks\": %d}\n", library().c_str(), ranks);
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    Batch batch;
    if (!parse_batch(line, &batch)) {
      std::printf("{\"error\": \"not a batch\"}\n");
    } else {
      const Measured m = conductor.conduct(batch);
      std::printf("{\"us\": %.6f, \"wall_us\": %.6f, \"wrong\": %llu}\n", m.us, m.wall_us,
                  static_cast<unsigned long long>(m.wrong));
    }
    std::fflush(stdout);
  }
}

struct Options {
  bool serve = false;
  bool crowded = false;
  std::vector<std::string> collectives = {"all_reduce"};
  std::size_t first = 8;
  std::size_t last = std::size_t{64} << 20;
  std::size_t factor = 2;
  int calls = 0;     // 0: as many as take target_us
  int warmups = -1;  // -1: an eighth of the calls
  int batches = 9;
  double target_us = 2000;
};

// Empty, or what is wrong.
std::string parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--serve") {
      options->serve = true;
      continue;
    }
    if (flag == "--crowded") {
      options->crowded = true;
      continue;
    }
    if (i + 1 == argc) return flag + " is not a flag, or lacks its value";
    const std::string value = argv[++i];
    const auto size = parse_size(value);
    if (flag == "--collectives") {
      options->collectives.clear();
      std::istringstream names(value);
      Collective ignored;
      for (std::string name; std::getline(names, name, ',');) {
        if (!parse_collective(name, &ignored)) return name + " is not a collective";
        options->collectives.push_back(name);
      }
    } else if (!size) {
      return flag + " wants a number, got " + value;
    } else if (flag == "-b") {
      options->first = *size;
    } else if (flag == "-e") {
      options->last = *size;
    } else if (flag == "-f") {
      options->factor = *size;
    } else if (flag == "-n") {
      options->calls = static_cast<int>(*size);
    } else if (flag == "-w") {
      options->warmups = static_cast<int>(*size);
    } else if (flag == "--batches") {
      options->batches = static_cast<int>(*size);
    } else {
      return flag + " is not a flag";
    }
  }
  if (options->factor < 2) return "-f must be at least 2";
  if (options->last > (std::size_t{1} << 32)) return "-e must be at most 4G";
  if (options->calls > kMaxCalls) return "-n must be at most " + std::to_string(kMaxCalls);
  return "";
}

bool measure_all(Rank& conductor, const Options& options) {
  bool all_right = true;
  for (const std::string& collective : options.collectives) {
    for (const std::size_t bytes : size_range(options.first, options.last, options.factor)) {
      for (const Protocol protocol : {Protocol::warm, Protocol::fresh}) {
        Batch batch;
        parse_collective(collective, &batch.collective);
        batch.bytes = bytes;
        batch.protocol = protocol;
        const auto run = [&](const Batch& b) { return conductor.conduct(b); };
        batch.calls =
            options.calls > 0 ? options.calls : calibrated_calls(batch, options.target_us, run);
        batch.warmups = options.warmups >= 0 ? options.warmups : planned_warmups(batch.calls);
        std::vector<double> us;
        std::uint64_t wrong = 0;
        for (int i = 0; i < options.batches; ++i) {
          ++batch.seed;
          const Measured m = conductor.conduct(batch);
          us.push_back(m.us);
          wrong += m.wrong;
        }
        std::printf(
            "{\"collective\": \"%s\", \"size\": %zu, \"protocol\": \"%s\", \"median_us\": %.4f, "
            "\"min_us\": %.4f, \"p99_us\": %.4f, \"max_us\": %.4f, \"batches\": %d, "
            "\"iterations\": %d, "
            "\"wrong\": %llu}\n",
            collective.c_str(), bytes, kProtocolNames[static_cast<int>(protocol)].data(),
            median(us), quantile(us, 0), percentile_99(us), quantile(us, 1), options.batches,
            batch.calls, static_cast<unsigned long long>(wrong));
        std::fflush(stdout);
        all_right = all_right && wrong == 0;
      }
    }
  }
  return all_right;
}

int run(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options;
  const std::string error = parse(argc, argv, &options);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int result = 0;
  if (!error.empty()) {
    result = rank == 0 ? fail_usage(error) : 2;
  } else {
    Rank self(rank, ranks, options.crowded);
    if (rank != 0) {
      self.follow();
    } else {
      if (options.serve) {
        serve(self, ranks);
      } else {
        result = measure_all(self, options) ? 0 : 1;
      }
      self.dismiss();
    }
  }
  MPI_Finalize();
  return result;
}

}  // namespace
}  // namespace rankine::rivals

int main(int argc, char** argv) { return rankine::rivals::run(argc, argv); }
