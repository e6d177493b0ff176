// Runs MPI collectives under the protocol of batch.h. Not built by Bazel: start_mpi compiles it
// with mpicxx and starts it.
//
//   start_mpi mpich 2 roomy      reads "all_reduce 1024 warm 100 10 0 7" (collective, M, protocol,
//                                calls, warm-ups, in place, seed), answers one JSON object per
//                                line, ends with its input
//
// Ranks sleep between batches, in read() or on a futex, so that other contenders can be measured in
// the meantime.
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <sstream>
#include <string>

#include "bench/rivals/batch.h"

#if defined(RANKINE_ONECCL)
#include <oneapi/ccl.hpp>
#endif

namespace rankine::rivals {
namespace {

// The library that is measured: its calls of n floats per block, and its version. oneCCL, whose
// ranks MPI starts, if start_mpi asks for it; else the MPI.
#if defined(RANKINE_ONECCL)

class Library {
 public:
  static constexpr int kThreads = MPI_THREAD_MULTIPLE;  // oneCCL warns of less

  Library(int rank, int ranks) : communicator_(connected(rank, ranks)) {}

  void call(Collective collective, int rank, float* in, float* out, std::size_t n) {
    constexpr auto kSum = ccl::reduction::sum;
    constexpr auto kType = ccl::datatype::float32;
    switch (collective) {
      case Collective::all_reduce:
        return ccl::allreduce(in, out, n, kType, kSum, communicator_).wait();
      case Collective::broadcast:
        return ccl::broadcast(rank == 0 ? in : out, n, kType, 0, communicator_).wait();
      case Collective::all_gather:
        return ccl::allgather(in, out, n, kType, communicator_).wait();
      case Collective::reduce_scatter:
        return ccl::reduce_scatter(in, out, n, kType, kSum, communicator_).wait();
      case Collective::all_to_all:
        return ccl::alltoall(in, out, n, kType, communicator_).wait();
      case Collective::reduce:
        return ccl::reduce(in, out, n, kType, kSum, 0, communicator_).wait();
    }
  }

  static std::string version() {
    const ccl::library_version version = ccl::get_library_version();
    return "oneCCL " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
           std::to_string(version.update);
  }

 private:
  static ccl::communicator connected(int rank, int ranks) {
    ccl::init();
    ccl::kvs::address_type address;
    ccl::shared_ptr_class<ccl::kvs> store;
    if (rank == 0) {
      store = ccl::create_main_kvs();
      address = store->get_address();
    }
    MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank != 0) store = ccl::create_kvs(address);
    return ccl::create_communicator(ranks, rank, store);
  }

  ccl::communicator communicator_;
};

#else

struct Library {
  static constexpr int kThreads = MPI_THREAD_SINGLE;

  Library(int /*rank*/, int /*ranks*/) {}

  void call(Collective collective, int rank, float* in, float* out, std::size_t block) {
    const int n = static_cast<int>(block);
    const MPI_Comm world = MPI_COMM_WORLD;
    switch (collective) {
      case Collective::all_reduce:
        MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, n, MPI_FLOAT, MPI_SUM, world);
        return;
      case Collective::broadcast:
        MPI_Bcast(rank == 0 ? in : out, n, MPI_FLOAT, 0, world);
        return;
      case Collective::all_gather:
        MPI_Allgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world);
        return;
      case Collective::reduce_scatter:
        MPI_Reduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, world);
        return;
      case Collective::all_to_all:
        MPI_Alltoall(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world);
        return;
      case Collective::reduce:
        MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, 0, world);
        return;
    }
  }

  static std::string version() {
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
};

#endif

class Rank {
 public:
  Rank(int rank, int ranks, bool crowded) : rank_(rank), library_(rank, ranks) {
    if (ranks > kMaxRanks) fail("too many ranks");
    pid_t conductor = getpid();
    MPI_Bcast(&conductor, sizeof(conductor), MPI_BYTE, 0, MPI_COMM_WORLD);
    const std::string path = "/rankine-rival-" + std::to_string(conductor);
    if (rank == 0) map_job(path, O_CREAT | O_EXCL | O_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) map_job(path, O_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      shm_unlink(path.c_str());
      new (job_) Job;
      job_->conductor = conductor;
      job_->batch_barrier.ranks = ranks;
      job_->batch_barrier.crowded = crowded;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!crowded) pin();
    nanoseconds_per_tick();
  }

  // Rank 0: runs one batch on all ranks.
  Measured conduct(const Batch& batch) {
    job_->announce(batch);
    make_announced();
    return summarise(batch, job_->batch_barrier);
  }

  // Rank 0: makes the other ranks return from follow().
  void dismiss() { job_->dismiss(); }

  void follow() {
    rivals::follow(*job_, rank_, [this](const Batch& batch) { make(batch); });
  }

 private:
  [[noreturn]] void fail(const char* what) {
    std::cerr << "mpi_rival: " << what << ": " << std::strerror(errno) << "\n";
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

  void map_job(const std::string& path, int flags) {
    const int file = shm_open(path.c_str(), flags, 0600);
    if (file < 0) fail("shm_open");
    if (ftruncate(file, sizeof(Job)) != 0) fail("ftruncate");
    void* memory = mmap(nullptr, sizeof(Job), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) fail("mmap");
    close(file);
    job_ = static_cast<Job*>(memory);
  }

  // Pins ranks that the launcher was asked to bind but did not.
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

  void make_announced() {
    take_part(*job_, rank_, [this](const Batch& batch) { make(batch); });
  }

  void make(const Batch& batch) {
    if (in_.capacity() < batch.bytes) in_ = Buffer(batch.bytes);
    if (out_.capacity() < batch.bytes) out_ = Buffer(batch.bytes);
    run(batch, job_->batch_barrier);
  }

  void run(const Batch& batch, BatchBarrier& batch_barrier) {
    run_batch(batch, batch_barrier, rank_, in_.data(), out_.data(),
              [&](float* in, float* out, const Shape& s) {
                library_.call(batch.collective, rank_, in, out, s.block);
              });
  }

  const int rank_;
  Library library_;
  Job* job_ = nullptr;
  Buffer in_;
  Buffer out_;
};

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

// Answers go to `answers`.
void serve(Rank& conductor, int ranks, std::FILE* answers) {
  const char* const settings = std::getenv("RIVAL_SETTINGS");
  std::fprintf(answers,
               "{\"ready\": true, \"library\": \"%s\", \"settings\": \"%s\", \"ranks\": %d}\n",
               Library::version().c_str(), settings == nullptr ? "" : settings, ranks);
  std::fflush(answers);
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    Batch batch;
    if (!parse_batch(line, &batch)) {
      std::fprintf(answers, "{\"error\": \"not a batch\"}\n");
    } else {
      const Measured m = conductor.conduct(batch);
      std::fprintf(answers, "{\"us\": %.6f, \"wall_us\": %.6f, \"wrong\": %llu, \"percentiles\": [",
                   m.us, m.wall_us, static_cast<unsigned long long>(m.wrong));
      for (std::size_t i = 0; i < m.percentiles.size(); ++i) {
        std::fprintf(answers, "%s%.6f", i > 0 ? ", " : "", m.percentiles[i]);
      }
      std::fprintf(answers, "]}\n");
    }
    std::fflush(answers);
  }
}

int run(int argc, char** argv) {
  // Libraries print warnings on the standard output, among the answers; now they are errors' lines.
  std::FILE* const answers = fdopen(dup(STDOUT_FILENO), "w");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  int threads = 0;
  MPI_Init_thread(&argc, &argv, Library::kThreads, &threads);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Rank self(rank, ranks, argc > 1 && std::string(argv[1]) == "--crowded");
  if (rank != 0) {
    self.follow();
  } else {
    serve(self, ranks, answers);
    self.dismiss();
  }
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace rankine::rivals

int main(int argc, char** argv) { return rankine::rivals::run(argc, argv); }
