#include "bench/rivals/expert.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "bench/rivals/buffer.h"
#include "bench/rivals/kernels.h"
#include "bench/rivals/meeting.h"

namespace rankine::rivals {
namespace {

constexpr std::size_t kOneShotBytes = std::size_t{1} << 20;

// One line per rank, written by that rank only. The counter never goes back.
struct alignas(kLine) Line {
  std::atomic<std::uint64_t> count{0};
  const float* in = nullptr;  // both belong to the call that count stands for
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
    line(rank).count.store(value, std::memory_order_release);  // pairs with wait_for_all()
  }

  void wait_for_all(std::uint64_t value) noexcept {
    for (Line& peer : lines_) {
      Patience patience(crowded_);
      while (peer.count.load(std::memory_order_acquire) < value)
        patience.wait();  // pairs with publish()
    }
  }

  const int ranks_;
  const bool crowded_;

 private:
  std::vector<Line> lines_;
};

class OneShot final : public Expert {
 public:
  explicit OneShot(const Setup& setup) : Expert("expert_one_shot", setup) {
    const std::size_t bytes = std::min(kOneShotBytes, setup.max_bytes);
    for (int i = 0; i < 2 * ranks_; ++i) stages_.emplace_back(bytes);
  }

  bool takes(std::size_t bytes) const override { return bytes <= kOneShotBytes; }

  // Two stages in turn: whoever writes a stage again has heard of call n - 1 from all, so all are
  // done reading call n - 2.
  void all_reduce(int rank, const float* in, float* out, std::size_t count) noexcept override {
    const std::uint64_t call = this->count(rank) + 1;
    const auto stage = [&](int r) {
      return stages_[2 * static_cast<std::size_t>(r) + call % 2].data();
    };
    kernels().copy(stage(rank), in, count);
    publish(rank, call);
    const float* ins[kMaxRanks];
    for (int r = 0; r < ranks_; ++r) ins[r] = r == rank ? in : stage(r);
    wait_for_all(call);
    kernels().reduce(&out, 1, ins, ranks_, 0, count);
  }

 private:
  std::vector<Buffer> stages_;
};

class TwoShot final : public Expert {
 public:
  enum class Form { kPull, kPush, kStream };

  TwoShot(const char* its_name, Form form, const Setup& setup)
      : Expert(its_name, setup), form_(form) {}

  bool takes(std::size_t bytes) const override {
    return form_ != Form::kStream || bytes >= kOneShotBytes;
  }

  void all_reduce(int rank, const float* in, float* out, std::size_t count) noexcept override {
    const std::uint64_t call = this->count(rank);
    line(rank).in = in;
    line(rank).out = out;
    publish(rank, call + 1);  // my buffers may be used
    wait_for_all(call + 1);
    const float* ins[kMaxRanks];
    float* outs[kMaxRanks];
    for (int r = 0; r < ranks_; ++r) {
      ins[r] = line(r).in;
      outs[r] = line(r).out;
    }
    const std::size_t begin = border(rank, count);
    const std::size_t end = border(rank + 1, count);
    if (form_ == Form::kPull) {
      kernels().reduce(&out, 1, ins, ranks_, begin, end);
      publish(rank, call + 2);  // my slice may be read
      wait_for_all(call + 2);
      for (int k = 1; k < ranks_; ++k) {
        const int peer = (rank + k) % ranks_;
        const std::size_t from = border(peer, count);
        kernels().copy(out + from, outs[peer] + from, border(peer + 1, count) - from);
      }
    } else if (form_ == Form::kPush) {
      kernels().reduce(outs, ranks_, ins, ranks_, begin, end);
    } else {
      kernels().reduce_streaming(outs, ranks_, ins, ranks_, begin, end);
    }
    const std::uint64_t done = call + (form_ == Form::kPull ? 3 : 2);
    publish(rank, done);  // I need nobody's buffers any more
    wait_for_all(done);
  }

 private:
  // Slices begin on cache lines, so that no line has two writers.
  std::size_t border(int rank, std::size_t count) const noexcept {
    const std::size_t lines = (count + 15) / 16;
    const auto ranks = static_cast<std::size_t>(ranks_);
    return std::min(count, (lines * static_cast<std::size_t>(rank) + ranks - 1) / ranks * 16);
  }

  const Form form_;
};

}  // namespace

std::unique_ptr<Rival> make_expert_one_shot(const Setup& setup) {
  return std::make_unique<OneShot>(setup);
}

std::unique_ptr<Rival> make_expert_pull(const Setup& setup) {
  return std::make_unique<TwoShot>("expert_pull", TwoShot::Form::kPull, setup);
}

std::unique_ptr<Rival> make_expert_push(const Setup& setup) {
  return std::make_unique<TwoShot>("expert_push", TwoShot::Form::kPush, setup);
}

std::unique_ptr<Rival> make_expert_stream(const Setup& setup) {
  return std::make_unique<TwoShot>("expert_stream", TwoShot::Form::kStream, setup);
}

}  // namespace rankine::rivals
