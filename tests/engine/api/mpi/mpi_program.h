// For tests that are MPI programs: what any rank finds wrong is said, and rank 0 ends with
// "N passed, M failed".
#pragma once

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

namespace rankine::mpi {

// Of all ranks. MPICH's own waits keep a core busy, and there are fewer of these than processes.
inline void add_up(std::uint64_t* numbers, int count) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, numbers, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; sched_yield()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

// The threads of this process that play ranks, the first of which calls MPI for them.
class ThreadsHere {
 public:
  explicit ThreadsHere(int threads = 1) : barrier_(threads) {}

  // Over all ranks: a call of all threads of all processes.
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
  // One check of all ranks: passed where no rank has anything to say against it.
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
  // The same of the ranks of all threads; one object for those of a process.
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

}  // namespace rankine::mpi
