#include "bench/rivals/rival.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"

namespace rankine::rivals {
namespace {

// Each rank has a region that all can read: its step and, `gap` bytes from the start, two places
// for pieces of data.
class StagedByAll : public Rival {
 public:
  bool takes(Collective collective, std::size_t /*bytes*/) const override {
    return collective == Collective::all_reduce || collective == Collective::all_gather;
  }

 protected:
  StagedByAll(std::string its_name, const Setup& setup, std::size_t gap, std::size_t piece_bytes)
      : Rival(std::move(its_name), Family::kServer),
        ranks_(setup.ranks),
        gap_(gap / sizeof(float)),
        piece_(piece_bytes / sizeof(float)),
        own_(static_cast<std::size_t>(setup.ranks)) {
    for (int r = 0; r < ranks_; ++r) regions_.emplace_back(gap + 2 * piece_bytes, setup.processes);
  }

  // Gets all ranks' places for this turn of a rank, and returns its own. Others may still read the
  // other places.
  float* places(int rank, const float** all) noexcept {
    const std::size_t at = gap_ + own(rank).turn++ % 2 * piece_;
    for (int r = 0; r < ranks_; ++r) all[r] = region(r) + at;
    return region(rank) + at;
  }

  // Publishes the next step of this rank.
  void publish(int rank) noexcept {
    step_of(rank).store(++own(rank).step, std::memory_order_release);  // pairs with await()
  }

  // Returns when the peer has reached this rank's step.
  template <class Pause>
  void await(int rank, int peer, Pause&& pause) noexcept {
    while (step_of(peer).load(std::memory_order_acquire) < own(rank).step) pause();
  }

  const int ranks_;

 private:
  struct alignas(kLine) Own {  // of one rank, which alone uses it
    std::uint64_t step = 0;
    std::uint64_t turn = 0;
  };
  Own& own(int rank) noexcept { return own_[static_cast<std::size_t>(rank)]; }
  float* region(int rank) noexcept { return regions_[static_cast<std::size_t>(rank)].data(); }
  std::atomic_ref<std::uint64_t> step_of(int rank) noexcept {  // new memory is zero
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(region(rank)));
  }

  const std::size_t gap_;    // floats
  const std::size_t piece_;  // floats
  std::vector<Own> own_;
  std::vector<Buffer> regions_;
};

class InferenceShm final : public StagedByAll {
 public:
  explicit InferenceShm(const Setup& setup)
      : StagedByAll("inference_shm", setup, sizeof(std::uint64_t), kPieceBytes) {}

  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    constexpr std::size_t kPiece = kPieceBytes / sizeof(float);
    for (std::size_t at = 0; at < block; at += kPiece) {
      const std::size_t piece = std::min(kPiece, block - at);
      const float* all[kMaxRanks];
      float* const own = places(rank, all);
      kernels().copy(own, in + at, piece);
      reach(rank);
      if (collective == Collective::all_gather) {
        for (int r = 0; r < ranks_; ++r)
          kernels().copy(out + static_cast<std::size_t>(r) * block + at, all[r], piece);
      } else if (piece * sizeof(float) < kTwoShotBytes) {
        float* const sum = out + at;
        kernels().reduce(&sum, 1, all, ranks_, 0, piece);
      } else {
        two_shot(rank, own, all, out + at, piece);
      }
    }
  }

 private:
  static constexpr std::size_t kTwoShotBytes = std::size_t{1} << 20;
  static constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

  // Publishes the next step; returns when all others have reached it.
  void reach(int rank) noexcept {
    publish(rank);
    for (int peer = 0; peer < ranks_; ++peer) await(rank, peer, [] {});
  }

  void two_shot(int rank, float* own, const float* const* all, float* out,
                std::size_t count) noexcept {
    const std::size_t slice = (count / static_cast<std::size_t>(ranks_) + 15) / 16 * 16;
    const auto border = [&](int r) {
      return r == ranks_ ? count : std::min(count, slice * static_cast<std::size_t>(r));
    };
    kernels().reduce(&own, 1, all, ranks_, border(rank), border(rank + 1));
    reach(rank);
    for (int k = 0; k < ranks_; ++k) {
      const int peer = (rank + k) % ranks_;
      const std::size_t from = border(peer);
      kernels().copy(out + from, all[peer] + from, border(peer + 1) - from);
    }
  }
};

class VllmShm final : public StagedByAll {
 public:
  explicit VllmShm(const Setup& setup) : StagedByAll("vllm_shm", setup, kLine, kPieceBytes) {}

  // A place is rewritten two pieces later, when all ranks have stamped the piece between, and so
  // have read this one.
  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    constexpr std::size_t kPiece = kPieceBytes / sizeof(float);
    for (std::size_t at = 0; at < block; at += kPiece) {
      const std::size_t piece = std::min(kPiece, block - at);
      const float* all[kMaxRanks];
      float* const own = places(rank, all);
      const float* const mine = all[rank] = in + at;
      if (collective == Collective::all_reduce) {
        kernels().reduce_streaming(&own, 1, &mine, 1, 0, piece);
      } else {
        kernels().copy(own, mine, piece);
      }
      publish(rank);
      for (int k = 0; k < ranks_; ++k) {
        const int peer = (rank + k) % ranks_;
        await(rank, peer, pause_cpu);
        if (collective == Collective::all_gather)
          kernels().copy(out + static_cast<std::size_t>(peer) * block + at, all[peer], piece);
      }
      float* const sum = out + at;
      if (collective == Collective::all_reduce) kernels().reduce(&sum, 1, all, ranks_, 0, piece);
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
