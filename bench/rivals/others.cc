#include "bench/rivals/others.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <vector>

#include "bench/rivals/buffer.h"
#include "bench/rivals/kernels.h"
#include "bench/rivals/meeting.h"

namespace rankine::rivals {
namespace {

// Sums slices between two barriers of whatever kind.
class Slices : public Rival {
 protected:
  Slices(std::string its_name, const Setup& setup)
      : Rival(std::move(its_name), Family::kOther),
        ranks_(setup.ranks),
        ins_(static_cast<std::size_t>(setup.ranks)),
        outs_(static_cast<std::size_t>(setup.ranks)) {}

  template <class Barrier>
  void reduce_between(Barrier&& barrier, int rank, const float* in, float* out,
                      std::size_t count) noexcept {
    ins_[static_cast<std::size_t>(rank)] = in;
    outs_[static_cast<std::size_t>(rank)] = out;
    barrier();
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::size_t slice = ((count + ranks - 1) / ranks + 15) / 16 * 16;
    const std::size_t begin = std::min(count, slice * static_cast<std::size_t>(rank));
    kernels().reduce(outs_.data(), ranks_, ins_.data(), ranks_, begin,
                     std::min(count, begin + slice));
    barrier();
  }

  const int ranks_;

 private:
  std::vector<const float*> ins_;
  std::vector<float*> outs_;
};

class StdBarrier final : public Slices {
 public:
  explicit StdBarrier(const Setup& setup) : Slices("std_barrier", setup), barrier_(setup.ranks) {}

  void all_reduce(int rank, const float* in, float* out, std::size_t count) noexcept override {
    reduce_between([this] { barrier_.arrive_and_wait(); }, rank, in, out, count);
  }

 private:
  std::barrier<> barrier_;
};

// Calls what GCC makes of `#pragma omp parallel` and `#pragma omp barrier`. Loading the runtime
// instead of compiling with -fopenmp keeps it optional and gives the same code under every
// compiler.
class OpenMp final : public Slices {
 public:
  explicit OpenMp(const Setup& setup) : Slices("openmp", setup) {
    void* const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      missing = "not installed: libgomp1";
      return;
    }
    parallel_ = reinterpret_cast<Parallel>(dlsym(library, "GOMP_parallel"));
    barrier_ = reinterpret_cast<void (*)()>(dlsym(library, "GOMP_barrier"));
    rank_ = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_thread_num"));
    team_size_ = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_num_threads"));
    stop_ = reinterpret_cast<int (*)(int)>(dlsym(library, "omp_pause_resource_all"));
    if (parallel_ == nullptr || barrier_ == nullptr || rank_ == nullptr || team_size_ == nullptr ||
        stop_ == nullptr) {
      missing = "libgomp.so.1 is not the OpenMP 5.0 runtime that was expected";
    }
  }

  void all_reduce(int rank, const float* in, float* out, std::size_t count) noexcept override {
    reduce_between(barrier_, rank, in, out, count);
  }

  bool run_ranks(const std::function<void(int)>& body) override {
    struct Job {
      OpenMp* self;
      const std::function<void(int)>* body;
    } job{this, &body};
    parallel_(
        [](void* data) {
          const Job& its = *static_cast<Job*>(data);
          OpenMp& self = *its.self;
          // Fewer threads than asked (OMP_THREAD_LIMIT) would wait for ranks that do not exist.
          if (self.team_size_() == self.ranks_) {
            (*its.body)(self.rank_());
          } else {
            self.short_of_threads_ = true;
          }
        },
        &job, static_cast<unsigned>(ranks_), 0);
    if (short_of_threads_) missing = "OpenMP gave fewer threads than ranks";
    // Idle threads of a team spin for milliseconds, which the next contender would pay for: end
    // them.
    constexpr int kPauseHard = 2;
    stop_(kPauseHard);
    return true;
  }

 private:
  using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
  Parallel parallel_ = nullptr;
  void (*barrier_)() = nullptr;
  int (*rank_)() = nullptr;
  int (*team_size_)() = nullptr;
  int (*stop_)(int) = nullptr;
  std::atomic<bool> short_of_threads_{false};
};

class InferenceShm final : public Rival {
 public:
  explicit InferenceShm(const Setup& setup)
      : Rival("inference_shm", Family::kOther),
        ranks_(setup.ranks),
        states_(static_cast<std::size_t>(setup.ranks)) {
    for (int i = 0; i < 2 * ranks_; ++i)
      region_.emplace_back(std::min(kPieceBytes, setup.max_bytes));
  }

  void all_reduce(int rank, const float* in, float* out, std::size_t count) noexcept override {
    constexpr std::size_t kPiece = kPieceBytes / sizeof(float);
    for (std::size_t at = 0; at < count; at += kPiece) {
      const std::size_t piece = std::min(kPiece, count - at);
      if (piece * sizeof(float) <= kOneShotBytes) {
        one_shot(rank, in + at, out + at, piece);
      } else {
        two_shot(rank, in + at, out + at, piece);
      }
    }
  }

 private:
  static constexpr std::size_t kOneShotBytes = std::size_t{1} << 20;
  static constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

  // Written by its own rank only. `turn` picks one of the rank's two places in the region; the
  // other may still be read.
  struct alignas(kLine) State {
    std::atomic<std::uint64_t> reached{0};
    std::uint64_t turn = 0;
  };

  State& state(int rank) noexcept { return states_[static_cast<std::size_t>(rank)]; }

  void reach(int rank) noexcept {
    const std::uint64_t step = state(rank).reached.load(std::memory_order_relaxed) + 1;
    state(rank).reached.store(step, std::memory_order_release);  // pairs with the acquire below
    for (State& peer : states_) {
      while (peer.reached.load(std::memory_order_acquire) < step) {
      }
    }
  }

  void places(int rank, float** all) noexcept {
    const std::uint64_t turn = state(rank).turn++ % 2;
    for (int r = 0; r < ranks_; ++r)
      all[r] = region_[2 * static_cast<std::size_t>(r) + turn].data();
  }

  void one_shot(int rank, const float* in, float* out, std::size_t count) noexcept {
    float* all[kMaxRanks];
    places(rank, all);
    kernels().copy(all[rank], in, count);
    reach(rank);
    kernels().reduce(&out, 1, all, ranks_, 0, count);
  }

  void two_shot(int rank, const float* in, float* out, std::size_t count) noexcept {
    float* all[kMaxRanks];
    places(rank, all);
    kernels().copy(all[rank], in, count);
    reach(rank);
    const std::size_t slice = (count / static_cast<std::size_t>(ranks_) + 15) / 16 * 16;
    const auto border = [&](int r) {
      return r == ranks_ ? count : std::min(count, slice * static_cast<std::size_t>(r));
    };
    kernels().reduce(&all[rank], 1, all, ranks_, border(rank), border(rank + 1));
    reach(rank);
    for (int k = 0; k < ranks_; ++k) {
      const int peer = (rank + k) % ranks_;
      const std::size_t from = border(peer);
      kernels().copy(out + from, all[peer] + from, border(peer + 1) - from);
    }
  }

  const int ranks_;
  std::vector<State> states_;
  std::vector<Buffer> region_;
};

}  // namespace

std::unique_ptr<Rival> make_std_barrier(const Setup& setup) {
  return std::make_unique<StdBarrier>(setup);
}

std::unique_ptr<Rival> make_openmp(const Setup& setup) { return std::make_unique<OpenMp>(setup); }

std::unique_ptr<Rival> make_inference_shm(const Setup& setup) {
  return std::make_unique<InferenceShm>(setup);
}

}  // namespace rankine::rivals
