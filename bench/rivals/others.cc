#include "bench/rivals/rival.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"

namespace rankine::rivals {
namespace {

// Sums slices between two barriers of any kind.
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

  void call(Collective /*all_reduce*/, int rank, const float* in, float* out,
            std::size_t count) noexcept override {
    reduce_between([this] { barrier_.arrive_and_wait(); }, rank, in, out, count);
  }

 private:
  std::barrier<> barrier_;
};

// Makes the calls that GCC compiles `#pragma omp parallel` and `#pragma omp barrier` to. Loading
// the runtime, instead of compiling with -fopenmp, keeps it optional and gives the same code under
// every compiler.
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
      missing = "libgomp.so.1 lacks functions of the OpenMP 5.0 runtime";
    }
  }

  void call(Collective /*all_reduce*/, int rank, const float* in, float* out,
            std::size_t count) noexcept override {
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
          // With fewer threads than asked (OMP_THREAD_LIMIT), ranks would wait for ranks that do
          // not run.
          if (self.team_size_() == self.ranks_) {
            (*its.body)(self.rank_());
          } else {
            self.short_of_threads_ = true;
          }
        },
        &job, static_cast<unsigned>(ranks_), 0);
    if (short_of_threads_) missing = "OpenMP gave fewer threads than ranks";
    // Idle threads of a team spin for milliseconds, which would slow the next contender down: end
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

// The sum goes up the ranks and the result goes down. A rank without work sleeps on a futex,
// without a probe before: this measures the cost of 2 (N - 1) hand-offs alone.
class FutexChain final : public Rival {
 public:
  explicit FutexChain(const Setup& setup)
      : Rival("futex_chain", Family::kReference),
        crowded_(setup.crowded),
        last_(setup.ranks - 1),
        baskets_(static_cast<std::size_t>(setup.ranks)) {}

  bool takes(Collective collective, std::size_t bytes) const override {
    return collective == Collective::all_reduce && crowded_ && bytes <= sizeof(Basket::data);
  }

  // Basket r goes to rank r. A rank fills its next basket only after it knows that the call before
  // is over, so at most one hand-off is in flight, and none is overwritten.
  void call(Collective /*all_reduce*/, int rank, const float* in, float* out,
            std::size_t count) noexcept override {
    const float* sum = in;
    if (rank > 0) {
      Basket& mine = take(rank);
      kernels().reduce(&out, 1, Terms{in, mine.data}.both, 2, 0, count);
      sum = out;
    }
    if (rank < last_) {
      give(rank + 1, sum, count);
      kernels().copy(out, take(rank).data, count);
    }
    if (rank > 0) give(rank - 1, out, count);
  }

 private:
  struct alignas(kLine) Basket {
    std::atomic<std::uint32_t> full{0};
    float data[1024];
  };
  struct Terms {
    const float* both[2];
  };

  Basket& take(int rank) noexcept {
    Basket& basket = baskets_[static_cast<std::size_t>(rank)];
    while (basket.full.load(std::memory_order_acquire) == 0) {  // pairs with give()
      syscall(SYS_futex, &basket.full, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
    basket.full.store(0, std::memory_order_relaxed);  // no other rank writes before we hand on
    return basket;
  }

  void give(int rank, const float* data, std::size_t count) noexcept {
    Basket& basket = baskets_[static_cast<std::size_t>(rank)];
    kernels().copy(basket.data, data, count);
    basket.full.store(1, std::memory_order_release);  // pairs with take()
    syscall(SYS_futex, &basket.full, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  const bool crowded_;
  const int last_;
  std::vector<Basket> baskets_;
};

class FlagExchange final : public Rival {
 public:
  explicit FlagExchange(const Setup& setup)
      : Rival("flag_exchange", Family::kExchange),
        crowded_(setup.crowded),
        flags_(static_cast<std::size_t>(setup.ranks)) {}

  bool takes(Collective collective, std::size_t bytes) const override {
    return collective == Collective::all_reduce && !crowded_ && flags_.size() > 1 && bytes <= 1024;
  }
  bool has_result() const override { return false; }

  void call(Collective /*all_reduce*/, int rank, const float* /*in*/, float* /*out*/,
            std::size_t /*count*/) noexcept override {
    Flags& mine = flags_[static_cast<std::size_t>(rank)];
    const std::uint64_t call = ++mine.calls;
    mine.line[call % 2].seen.store(call,
                                   std::memory_order_release);  // pairs with the acquire below
    for (const Flags& flags : flags_) {
      while (flags.line[call % 2].seen.load(std::memory_order_acquire) < call) pause_cpu();
    }
  }

 private:
  // Two lines in turn, with PAUSE: the fastest of the forms tried on two cores 220 ns apart (245 ns
  // warm, 590 fresh). One line takes 315 and 630, sixteen in turn 275 and 640, one without PAUSE
  // 490 and 930.
  struct alignas(kLine) Line {
    std::atomic<std::uint64_t> seen{0};
  };
  struct Flags {
    Line line[2];
    alignas(kLine) std::uint64_t calls = 0;  // used by its rank only
  };
  const bool crowded_;
  std::vector<Flags> flags_;
};

class Copy final : public Rival {
 public:
  explicit Copy(const Setup& setup)
      : Rival("copy", Family::kOther), ranks_(static_cast<std::size_t>(setup.ranks)) {}

  bool takes(Collective collective, std::size_t) const override {
    return collective == Collective::all_reduce || collective == Collective::all_to_all;
  }
  bool has_result() const override { return false; }
  void call(Collective collective, int, const float* in, float* out,
            std::size_t block) noexcept override {
    if (in != out)
      kernels().copy(out, in, block * (collective == Collective::all_to_all ? ranks_ : 1));
  }

 private:
  const std::size_t ranks_;
};

}  // namespace

std::unique_ptr<Rival> make_std_barrier(const Setup& setup) {
  return std::make_unique<StdBarrier>(setup);
}

std::unique_ptr<Rival> make_openmp(const Setup& setup) { return std::make_unique<OpenMp>(setup); }

std::unique_ptr<Rival> make_futex_chain(const Setup& setup) {
  return std::make_unique<FutexChain>(setup);
}

std::unique_ptr<Rival> make_flag_exchange(const Setup& setup) {
  return std::make_unique<FlagExchange>(setup);
}

std::unique_ptr<Rival> make_copy(const Setup& setup) { return std::make_unique<Copy>(setup); }

}  // namespace rankine::rivals
