#include "bench/rivals/rival.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"

namespace rankine::rivals {
namespace {

// A rank's two places in the region that all can read, and its progress.
class StagedByAll : public Rival {
 protected:
  StagedByAll(std::string its_name, const Setup& setup, std::size_t piece_bytes)
      : Rival(std::move(its_name), Family::kServer),
        ranks_(setup.ranks),
        states_(static_cast<std::size_t>(setup.ranks)) {
    for (int i = 0; i < 2 * ranks_; ++i)
      region_.emplace_back(std::min(piece_bytes, setup.max_bytes), setup.processes);
  }

  // Gets all ranks' places for this turn of a rank. Others may still read the other places.
  void places(int rank, float** all) noexcept {
    const std::uint64_t turn = state(rank).turn++ % 2;
    for (int r = 0; r < ranks_; ++r)
      all[r] = region_[2 * static_cast<std::size_t>(r) + turn].data();
  }

  // Publishes the next step of this rank; returns when all others have reached it.
  template <class Pause>
  void reach(int rank, Pause&& pause) noexcept {
    const std::uint64_t step = state(rank).reached.load(std::memory_order_relaxed) + 1;
    state(rank).reached.store(step, std::memory_order_release);  // pairs with the acquire below
    for (State& peer : states_) {
      while (peer.reached.load(std::memory_order_acquire) < step) pause();
    }
  }

  const int ranks_;

 private:
  // Written by its own rank only.
  struct alignas(kLine) State {
    std::atomic<std::uint64_t> reached{0};
    std::uint64_t turn = 0;
  };
  State& state(int rank) noexcept { return states_[static_cast<std::size_t>(rank)]; }

  SharedArray<State> states_;
  std::vector<Buffer> region_;
};

class InferenceShm final : public StagedByAll {
 public:
  explicit InferenceShm(const Setup& setup) : StagedByAll("inference_shm", setup, kPieceBytes) {}

  void call(Collective /*all_reduce*/, int rank, const float* in, float* out,
            std::size_t count) noexcept override {
    constexpr std::size_t kPiece = kPieceBytes / sizeof(float);
    for (std::size_t at = 0; at < count; at += kPiece) {
      const std::size_t piece = std::min(kPiece, count - at);
      float* all[kMaxRanks];
      places(rank, all);
      kernels().copy(all[rank], in + at, piece);
      reach_bare(rank);
      if (piece * sizeof(float) <= kOneShotBytes) {
        float* const sum = out + at;
        kernels().reduce(&sum, 1, all, ranks_, 0, piece);
      } else {
        two_shot(rank, all, out + at, piece);
      }
    }
  }

 private:
  static constexpr std::size_t kOneShotBytes = std::size_t{1} << 20;
  static constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

  void reach_bare(int rank) noexcept {
    reach(rank, [] {});
  }

  void two_shot(int rank, float** all, float* out, std::size_t count) noexcept {
    const std::size_t slice = (count / static_cast<std::size_t>(ranks_) + 15) / 16 * 16;
    const auto border = [&](int r) {
      return r == ranks_ ? count : std::min(count, slice * static_cast<std::size_t>(r));
    };
    kernels().reduce(&all[rank], 1, all, ranks_, border(rank), border(rank + 1));
    reach_bare(rank);
    for (int k = 0; k < ranks_; ++k) {
      const int peer = (rank + k) % ranks_;
      const std::size_t from = border(peer);
      kernels().copy(out + from, all[peer] + from, border(peer + 1) - from);
    }
  }
};

class VllmShm final : public StagedByAll {
 public:
  explicit VllmShm(const Setup& setup) : StagedByAll("vllm_shm", setup, kPieceBytes) {}

  bool takes(Collective collective, std::size_t /*bytes*/) const override {
    return collective == Collective::all_reduce || collective == Collective::all_gather;
  }

  // A place is rewritten two pieces later, when all ranks have stamped the piece between, and so
  // have read this one.
  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    constexpr std::size_t kPiece = kPieceBytes / sizeof(float);
    for (std::size_t at = 0; at < block; at += kPiece) {
      const std::size_t piece = std::min(kPiece, block - at);
      float* all[kMaxRanks];
      places(rank, all);
      const float* const mine = in + at;
      kernels().reduce_streaming(&all[rank], 1, &mine, 1, 0, piece);
      reach(rank, pause_cpu);
      if (collective == Collective::all_reduce) {
        float* const sum = out + at;
        kernels().reduce(&sum, 1, all, ranks_, 0, piece);
        continue;
      }
      for (int r = 0; r < ranks_; ++r)
        kernels().copy(out + static_cast<std::size_t>(r) * block + at, all[r], piece);
    }
  }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
};

}  // namespace

std::unique_ptr<Rival> make_inference_shm(const Setup& setup) {
  return std::make_unique<InferenceShm>(setup);
}

std::unique_ptr<Rival> make_vllm_shm(const Setup& setup) {
  return std::make_unique<VllmShm>(setup);
}

}  // namespace rankine::rivals
