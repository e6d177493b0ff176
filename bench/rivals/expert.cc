#include "bench/rivals/rival.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"

namespace rankine::rivals {
namespace {

constexpr std::size_t kOneShotBytes = std::size_t{1} << 20;

// One line per rank; only this rank writes it. The counter never decreases. It starts at 2, so that
// the first call can look two calls back.
struct alignas(kLine) Line {
  std::atomic<std::uint64_t> count{2};
  const float* in = nullptr;  // `in` and `out` belong to the call of `count`
  float* out = nullptr;
};

class Expert : public Rival {
 protected:
  Expert(std::string its_name, const Setup& setup)
      : Rival(std::move(its_name), Family::kExpert),
        ranks_(setup.ranks),
        crowded_(setup.crowded),
        lines_(static_cast<std::size_t>(setup.ranks)) {}

  Line& line(int rank) noexcept { return lines_[static_cast<std::size_t>(rank)]; }

  std::uint64_t count(int rank) noexcept {
    return line(rank).count.load(std::memory_order_relaxed);
  }

  void publish(int rank, std::uint64_t value) noexcept {
    line(rank).count.store(value, std::memory_order_release);  // pairs with wait_for()
  }

  void wait_for(int rank, std::uint64_t value) noexcept {
    tools::SpinBudget patience = patience_of(crowded_);
    while (line(rank).count.load(std::memory_order_acquire) < value)
      patience.wait();  // pairs with publish()
  }

  void wait_for_all(std::uint64_t value) noexcept {
    for (int rank = 0; rank < ranks_; ++rank) wait_for(rank, value);
  }

  const int ranks_;
  const bool crowded_;

 private:
  SharedArray<Line> lines_;
};

class OneShot final : public Expert {
 public:
  explicit OneShot(const Setup& setup) : Expert("expert_one_shot", setup) {
    const std::size_t bytes = std::min(kOneShotBytes, setup.max_bytes);
    for (int i = 0; i < 2 * ranks_; ++i) stages_.emplace_back(bytes, setup.processes);
  }

  bool takes(Collective /*any*/, std::size_t bytes) const override {
    return bytes <= kOneShotBytes;
  }

  // Two stages in turn. If all ranks read from all, a rank that rewrites a stage has heard of call
  // n - 1 from all, so all have finished reading call n - 2. If data go one way only, readers
  // publish that they have finished, and the writer checks that.
  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    const std::uint64_t call = count(rank) + 1;
    const bool root = rank == 0;
    const auto mine = static_cast<std::size_t>(rank) * block;
    const auto all = static_cast<std::size_t>(ranks_) * block;
    switch (collective) {
      case Collective::all_reduce:
        share(rank, call, in, block);
        wait_for_all(call);
        return sum(rank, call, in, out, 0, block);
      case Collective::reduce_scatter:
        share(rank, call, in, all);
        wait_for_all(call);
        return sum(rank, call, in, out, mine, block);
      case Collective::all_gather:
        share(rank, call, in, block);
        return collect(rank, call, in, out, 0, block);
      case Collective::all_to_all:
        share(rank, call, in, all);
        return collect(rank, call, in, out, mine, block);
      case Collective::broadcast:
        if (root) {
          wait_for_all(call - 2);
          share(rank, call, in, block);
        } else {
          wait_for(0, call);
          kernels().copy(out, stage(0, call), block);
          publish(rank, call);
        }
        return;
      case Collective::reduce:
        if (root) {
          for (int peer = 1; peer < ranks_; ++peer) wait_for(peer, call);
          sum(rank, call, in, out, 0, block);
          publish(rank, call);
        } else {
          wait_for(0, call - 2);
          share(rank, call, in, block);
        }
        return;
    }
  }

 private:
  float* stage(int rank, std::uint64_t call) const noexcept {
    return stages_[2 * static_cast<std::size_t>(rank) + call % 2].data();
  }

  void share(int rank, std::uint64_t call, const float* in, std::size_t floats) noexcept {
    kernels().copy(stage(rank, call), in, floats);
    publish(rank, call);
  }

  // out = the sum of all ranks' floats from `from` on.
  void sum(int rank, std::uint64_t call, const float* in, float* out, std::size_t from,
           std::size_t floats) noexcept {
    const float* ins[kMaxRanks];
    for (int r = 0; r < ranks_; ++r) ins[r] = (r == rank ? in : stage(r, call)) + from;
    kernels().reduce(&out, 1, ins, ranks_, 0, floats);
  }

  // out = one block of each rank, from `from` on.
  void collect(int rank, std::uint64_t call, const float* in, float* out, std::size_t from,
               std::size_t block) noexcept {
    for (int k = 0; k < ranks_; ++k) {
      const int peer = (rank + k) % ranks_;
      wait_for(peer, call);
      const float* const data = peer == rank ? in : stage(peer, call);
      kernels().copy(out + static_cast<std::size_t>(peer) * block, data + from, block);
    }
  }

  std::vector<Buffer> stages_;
};

// The stages of OneShot, with the number of the call in each line: a reader waits for the data, not
// for a counter and then the data.
class Ll final : public Expert {
 public:
  explicit Ll(const Setup& setup)
      : Expert("expert_ll", setup), stages_(2 * static_cast<std::size_t>(setup.ranks) * kLines) {}

  bool takes(Collective collective, std::size_t bytes) const override {
    return collective == Collective::all_reduce && bytes > 0 && bytes <= kBytes;
  }

  void call(Collective /*all_reduce*/, int rank, const float* in, float* out,
            std::size_t count) noexcept override {
    const std::uint64_t call = this->count(rank) + 1;
    publish(rank, call);  // for this rank's next call
    for (std::size_t at = 0; at < count; at += kFloats) {
      Stamped& line = stage(rank, call)[at / kFloats];
      std::copy_n(in + at, std::min(kFloats, count - at), line.data);
      line.call.store(call, std::memory_order_release);  // pairs with the acquire below
    }
    for (std::size_t at = 0; at < count; at += kFloats) {
      float sum[kFloats] = {};
      for (int r = 0; r < ranks_; ++r) {
        const Stamped& line = stage(r, call)[at / kFloats];
        tools::SpinBudget patience = patience_of(crowded_);
        while (line.call.load(std::memory_order_acquire) != call) patience.wait();
        for (std::size_t i = 0; i < kFloats; ++i) sum[i] += line.data[i];
      }
      std::copy_n(sum, std::min(kFloats, count - at), out + at);
    }
  }

 private:
  static constexpr std::size_t kFloats = 14;  // in a line of 64 bytes
  static constexpr std::size_t kBytes = std::size_t{8} << 10;
  static constexpr std::size_t kLines = (kBytes / sizeof(float) + kFloats - 1) / kFloats;
  struct alignas(64) Stamped {
    float data[kFloats] = {};
    std::atomic<std::uint64_t> call{0};
  };

  Stamped* stage(int rank, std::uint64_t call) const noexcept {
    return &stages_[(2 * static_cast<std::size_t>(rank) + call % 2) * kLines];
  }

  SharedArray<Stamped> stages_;
};

// No stages: the ranks publish the addresses of their buffers and move the data from there.
class Direct final : public Expert {
 public:
  enum class Form { pull, push, stream };

  Direct(const char* its_name, Form form, const Setup& setup)
      : Expert(its_name, setup), form_(form) {}

  bool takes(Collective collective, std::size_t bytes) const override {
    // In every form the rank that needs a block sums it.
    if (form_ == Form::push && collective == Collective::reduce_scatter) return false;
    return form_ != Form::stream || bytes >= kOneShotBytes;
  }

  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    const bool pull = form_ == Form::pull;
    if (pull && (collective == Collective::broadcast || collective == Collective::reduce))
      return pull_rooted(collective, rank, in, out, block);
    const std::uint64_t entered = enter(rank, in, out);
    std::uint64_t done = entered + 1;
    wait_for_all(entered);
    const float* ins[kMaxRanks];
    float* outs[kMaxRanks];
    for (int r = 0; r < ranks_; ++r) {
      ins[r] = line(r).in;
      outs[r] = line(r).out;
    }
    const auto mine = static_cast<std::size_t>(rank) * block;
    const std::size_t begin = border(rank, block);
    const std::size_t end = border(rank + 1, block);
    switch (collective) {
      case Collective::all_reduce:
        if (!pull) {
          move(outs, ranks_, ins, ranks_, begin, end);
          break;
        }
        move(&out, 1, ins, ranks_, begin, end);
        publish(rank, done);  // others may read my slice
        wait_for_all(done++);
        for (int k = 1; k < ranks_; ++k) {
          const int peer = (rank + k) % ranks_;
          const std::size_t from = border(peer, block);
          kernels().copy(out + from, outs[peer] + from, border(peer + 1, block) - from);
        }
        break;
      case Collective::reduce_scatter:
        for (int r = 0; r < ranks_; ++r) ins[r] += mine;
        move(&out, 1, ins, ranks_, 0, block);
        break;
      case Collective::all_gather:
        if (pull) {
          each_peer(rank, block,
                    [&](int peer, std::size_t to) { copy(out + to, ins[peer], block); });
        } else {
          for (int r = 0; r < ranks_; ++r) outs[r] += mine;
          move(outs, ranks_, &in, 1, 0, block);
        }
        break;
      case Collective::all_to_all:
        each_peer(rank, block, [&](int peer, std::size_t at) {
          if (pull) {
            copy(out + at, ins[peer] + mine, block);
          } else {
            copy(outs[peer] + mine, in + at, block);
          }
        });
        break;
      case Collective::broadcast:
        move(outs + 1, ranks_ - 1, ins, 1, begin, end);
        break;
      case Collective::reduce:
        move(outs, 1, ins, ranks_, begin, end);
        break;
    }
    publish(rank, done);  // I have finished with the others' buffers
    wait_for_all(done);
  }

 private:
  // Publishes the buffers. Returns the count from which other ranks may use them.
  std::uint64_t enter(int rank, const float* in, float* out) noexcept {
    const std::uint64_t entered = count(rank) + 1;
    line(rank).in = in;
    line(rank).out = out;
    publish(rank, entered);
    return entered;
  }

  // Each other rank exchanges with the root only.
  void pull_rooted(Collective collective, int rank, const float* in, float* out,
                   std::size_t block) noexcept {
    const std::uint64_t entered = enter(rank, in, out);
    const bool root = rank == 0;
    const bool broadcast = collective == Collective::broadcast;
    if (broadcast && !root) {
      wait_for(0, entered);
      copy(out, line(0).in, block);
    } else if (!broadcast && root) {
      wait_for_all(entered);
      const float* ins[kMaxRanks];
      for (int r = 0; r < ranks_; ++r) ins[r] = line(r).in;
      move(&out, 1, ins, ranks_, 0, block);
    }
    publish(rank, entered + 1);
    if (broadcast && root) {
      wait_for_all(entered + 1);
    } else if (!broadcast && !root) {
      wait_for(0, entered + 1);
    }
  }

  // Slices begin on cache lines, so no line has two writers.
  std::size_t border(int rank, std::size_t count) const noexcept {
    const std::size_t lines = (count + 15) / 16;
    const auto ranks = static_cast<std::size_t>(ranks_);
    return std::min(count, (lines * static_cast<std::size_t>(rank) + ranks - 1) / ranks * 16);
  }

  // Calls move_block(peer, begin of the peer's block), from the own block on, so that ranks start
  // at different peers.
  template <class MoveBlock>
  void each_peer(int rank, std::size_t block, MoveBlock&& move_block) {
    for (int k = 0; k < ranks_; ++k) {
      const int peer = (rank + k) % ranks_;
      move_block(peer, static_cast<std::size_t>(peer) * block);
    }
  }

  void copy(float* to, const float* from, std::size_t count) noexcept {
    move(&to, 1, &from, 1, 0, count);
  }

  // All outs = the sum of all ins.
  void move(float* const* outs, int out_count, const float* const* ins, int in_count,
            std::size_t begin, std::size_t end) noexcept {
    if (out_count == 0) return;
    if (form_ == Form::stream) {
      kernels().reduce_streaming(outs, out_count, ins, in_count, begin, end);
    } else if (in_count == 1) {
      for (int k = 0; k < out_count; ++k)
        kernels().copy(outs[k] + begin, ins[0] + begin, end - begin);
    } else {
      kernels().reduce(outs, out_count, ins, in_count, begin, end);
    }
  }

  const Form form_;
};

}  // namespace

std::unique_ptr<Rival> make_expert_one_shot(const Setup& setup) {
  return std::make_unique<OneShot>(setup);
}

std::unique_ptr<Rival> make_expert_ll(const Setup& setup) { return std::make_unique<Ll>(setup); }

std::unique_ptr<Rival> make_expert_pull(const Setup& setup) {
  return std::make_unique<Direct>("expert_pull", Direct::Form::pull, setup);
}

std::unique_ptr<Rival> make_expert_push(const Setup& setup) {
  return std::make_unique<Direct>("expert_push", Direct::Form::push, setup);
}

std::unique_ptr<Rival> make_expert_stream(const Setup& setup) {
  return std::make_unique<Direct>("expert_stream", Direct::Form::stream, setup);
}

}  // namespace rankine::rivals
