// SlowWaits records the last kWaits waits of one rank that were long enough to park: call, round,
// peer, begin, end and outcome. It is for flight records.
//
// It also has the figures of the rank's last trials (form_trials.h), and its call site.
//
// Only the rank writes it, on the slow side of waiting, where it is about to sleep anyway. Any
// thread may read it, and may find a half-written wait while the rank is at work. Plain
// std::atomic: no decision depends on these values, so the model checker has nothing to explore.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/run/call_sites.h"
#include "engine/run/form_trials.h"

namespace rankine {

struct SlowWait {
  enum class End : std::uint8_t {
    none,      // the wait goes on
    came,      // the word reached its value
    deadline,  // the deadline passed
    lost,      // the peer had left, or its thread had ended
    mismatch,  // the peer made a different call
    aborted,   // the communicator was aborted
  };
  std::uint64_t call = 0;  // as in CallRecord
  Rank peer = 0;
  int round = 0;                          // as in Op
  std::int64_t begin_ns = 0, end_ns = 0;  // monotonic clock; end_ns 0: the wait goes on
  End end = End::none;
};

constexpr std::string_view name_of(SlowWait::End end) {
  constexpr std::string_view kNames[] = {"none", "came", "deadline", "lost", "mismatch", "aborted"};
  const auto i = static_cast<std::size_t>(end);
  return i < std::size(kNames) ? kNames[i] : "?";  // shared memory may hold any value
}

class alignas(64) SlowWaits {
 public:
  static constexpr std::uint64_t kWaits = 64;

  void begin(std::uint64_t call, Rank peer, int round, std::int64_t now) noexcept {
    const std::uint64_t n = begun_.load(std::memory_order_relaxed);
    Cell& cell = cells_[n % kWaits];
    cell.call.store(call, std::memory_order_relaxed);
    cell.peer.store(peer, std::memory_order_relaxed);
    cell.round.store(round, std::memory_order_relaxed);
    cell.begin_ns.store(now, std::memory_order_relaxed);
    cell.end_ns.store(0, std::memory_order_relaxed);
    cell.end.store(SlowWait::End::none, std::memory_order_relaxed);
    begun_.store(n + 1, std::memory_order_release);  // pairs with last()
  }
  // Ends the wait that began last.
  void end(SlowWait::End how, std::int64_t now) noexcept {
    Cell& cell = cells_[(begun_.load(std::memory_order_relaxed) - 1) % kWaits];
    cell.end_ns.store(now, std::memory_order_relaxed);
    cell.end.store(how, std::memory_order_relaxed);
  }

  // Oldest first.
  std::vector<SlowWait> last() const {
    const std::uint64_t begun = begun_.load(std::memory_order_acquire);  // pairs with begin()
    std::vector<SlowWait> out;
    for (std::uint64_t n = begun < kWaits ? 0 : begun - kWaits; n != begun; ++n) {
      const Cell& cell = cells_[n % kWaits];
      out.push_back(
          {cell.call.load(std::memory_order_relaxed), cell.peer.load(std::memory_order_relaxed),
           cell.round.load(std::memory_order_relaxed),
           cell.begin_ns.load(std::memory_order_relaxed),
           cell.end_ns.load(std::memory_order_relaxed), cell.end.load(std::memory_order_relaxed)});
    }
    return out;
  }

  // FormFigures by class; relaxed.
  struct Trial {
    std::atomic<std::uint32_t> took_ns[kForms]{};
    std::atomic<Form> form{};

    void store(const FormFigures& figures) noexcept {
      for (std::size_t i = 0; i < kForms; ++i)
        took_ns[i].store(figures.took_ns[i], std::memory_order_relaxed);
      form.store(figures.form, std::memory_order_relaxed);
    }
    FormFigures load() const noexcept {
      FormFigures out;
      for (std::size_t i = 0; i < kForms; ++i)
        out.took_ns[i] = took_ns[i].load(std::memory_order_relaxed);
      out.form = form.load(std::memory_order_relaxed);
      return out;
    }
  };
  Trial trials[kTrialClasses];
  SharedText site;  // where the rank makes its calls now; empty: the program names no site

 private:
  struct Cell {
    std::atomic<std::uint64_t> call{0};
    std::atomic<std::int64_t> begin_ns{0}, end_ns{0};
    std::atomic<Rank> peer{0};
    std::atomic<int> round{0};
    std::atomic<SlowWait::End> end{SlowWait::End::none};
  };
  std::atomic<std::uint64_t> begun_{0};
  Cell cells_[kWaits];
};

}  // namespace rankine
