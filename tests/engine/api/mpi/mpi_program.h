// Helpers for tests that are MPI programs: they print each rank's faults, and rank 0 ends with "N
// passed, M failed". WireCount counts sends.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

namespace rankine::mpi {

// Sums over all ranks. MPICH's own waits keep a core busy, and there are fewer cores than
// processes.
inline void add_up(std::uint64_t* numbers, int count) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, numbers, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; sched_yield()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

// The threads of this process that play ranks; the first thread calls MPI for them.
class ThreadsHere {
 public:
  explicit ThreadsHere(int threads = 1) : barrier_(threads) {}

  // Sums over all ranks: all threads of all processes must call it.
  void add_up(int thread, std::uint64_t* numbers, int count) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sums_.resize(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += numbers[i];
    }
    barrier_.arrive_and_wait();
    if (thread == 0) mpi::add_up(sums_.data(), count);
    barrier_.arrive_and_wait();
    std::copy(sums_.begin(), sums_.end(), numbers);
    barrier_.arrive_and_wait();
    if (thread == 0) sums_.clear();
    barrier_.arrive_and_wait();
  }

 private:
  std::barrier<> barrier_;
  std::mutex mutex_;
  std::vector<std::uint64_t> sums_;
};

class Checks {
 public:
  // One check of all ranks; passes if `wrong` is empty on every rank.
  void check(const std::string& name, const std::string& wrong) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::uint64_t bad = wrong.empty() ? 0 : 1;
    add_up(&bad, 1);
    if (!wrong.empty()) {
      std::printf("%s, rank %d: %s\n", name.c_str(), rank, wrong.c_str());
      std::fflush(stdout);
    }
    ++(bad != 0 ? failed_ : passed_);
  }
  // The check with ranks on threads; one Checks object per process.
  void check(ThreadsHere& threads, int thread, const std::string& name, const std::string& wrong) {
    int process = 0;
    if (thread == 0) MPI_Comm_rank(MPI_COMM_WORLD, &process);
    std::uint64_t bad = wrong.empty() ? 0 : 1;
    threads.add_up(thread, &bad, 1);
    if (!wrong.empty()) {
      std::printf("%s, thread %d of process %d: %s\n", name.c_str(), thread, process,
                  wrong.c_str());
      std::fflush(stdout);
    }
    if (thread == 0) ++(bad != 0 ? failed_ : passed_);
  }
  int end() const {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::printf("%d passed, %d failed\n", passed_, failed_);
    return failed_ == 0 && passed_ > 0 ? 0 : 1;
  }

 private:
  int passed_ = 0, failed_ = 0;
};

// Counts the messages and bytes that this process passes to MPI_Isend. The function replaces MPI's
// function (the profiling interface). Include it in one source file of a program.

struct WireCount {
  std::uint64_t messages = 0, bytes = 0;
};
inline std::atomic<std::uint64_t> wire_messages{0}, wire_bytes{0};
inline WireCount wire_count() { return {wire_messages.load(), wire_bytes.load()}; }

}  // namespace rankine::mpi

extern "C" int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  int bytes = 0;
  PMPI_Type_size(type, &bytes);
  ++rankine::mpi::wire_messages;
  rankine::mpi::wire_bytes += static_cast<std::uint64_t>(bytes) * static_cast<std::uint64_t>(count);
  return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}
