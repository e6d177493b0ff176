// Twin makes calls on a modelled network and simulates the same calls; StandingThreads keeps
// threads between runs. Starting threads would take longer than the calls, and on a loaded machine
// a kernel tick each time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/check.h"
#include "engine/api/network.h"
#include "engine/run/process.h"
#include "tests/engine/api/ranks.h"
#include "tests/engine/api/simulated_times.h"

namespace rankine {

class StandingThreads {
 public:
  explicit StandingThreads(int count) {
    shorten_time_slice_once();  // the threads inherit it from the waiting thread
    for (int i = 0; i < count; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~StandingThreads() {
    {
      const std::lock_guard lock(mutex_);
      job_ = nullptr;
      ++runs_;
    }
    begun_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  StandingThreads(const StandingThreads&) = delete;
  StandingThreads& operator=(const StandingThreads&) = delete;

  // Calls f(i) on thread i, on all threads at once; returns after all calls. Only one run at a
  // time.
  void run(const std::function<void(int)>& f) {
    std::unique_lock lock(mutex_);
    job_ = &f;
    busy_ = threads_.size();
    ++runs_;
    begun_.notify_all();
    ended_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void serve(int i) {
    std::unique_lock lock(mutex_);
    for (std::uint64_t seen = 0;;) {
      begun_.wait(lock, [&] { return runs_ != seen; });
      seen = runs_;
      if (job_ == nullptr) return;
      lock.unlock();
      (*job_)(i);
      lock.lock();
      if (--busy_ == 0) ended_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  // Guarded by mutex_.
  std::uint64_t runs_ = 0;
  const std::function<void(int)>* job_ = nullptr;  // nullptr: the threads end
  std::size_t busy_ = 0;                           // threads that still run the job
  std::vector<std::thread> threads_;
};

// Ranks that call on a modelled network, and a simulator of the same calls: after every call each
// rank's time and the time of every round must equal the simulator's to the last digit, and the
// data must be right.

inline std::shared_ptr<const CallNetwork> network(std::string_view text) {
  auto found = find_call_network(text);
  EXPECT_TRUE(found.ok()) << found.status().text();
  return found.ok() ? *found : nullptr;
}

// Groups of three ranks, unlike links, and a switch with all abilities; no number is a multiple of
// another.
inline Fabric uneven_fabric(int ports) {
  Fabric fabric;
  fabric.ports = ports;
  fabric.link = {Rational(7, 10'000'000), Rational(1, 70'000'000'000)};
  fabric.group = 3;
  fabric.between = {Rational(23, 10'000'000), Rational(1, 11'000'000'000)};
  fabric.multicast = fabric.alu = true;
  fabric.alpha_switch = Rational(13, 100'000'000);
  return fabric;
}

class Twin {
 public:
  Twin(int ranks, std::shared_ptr<const CallNetwork> on)
      : network_(std::move(on)),
        all_({.ranks = ranks, .network = network_}),
        threads_(ranks),
        times_(*network_, ranks),
        members_(static_cast<std::size_t>(ranks)) {
    std::iota(members_.begin(), members_.end(), 0);
  }

  int ranks() const { return static_cast<int>(members_.size()); }

  std::optional<Params> params_for(const Algorithm& entry, Rank root = 0) const {
    return times_.params_for(entry, members_, root);
  }

  // Makes one call with u32 sums, checks an all-reduce's result, and simulates the call.
  void call(const Algorithm& entry, const Params& params, std::size_t count, bool in_place) {
    const int n = ranks();
    Call call{.collective = entry.collective,
              .count = count,
              .type = DataType::u32,
              .op = entry.collective == Collective::barrier ? ReduceOp::bor : ReduceOp::sum,
              .root = params.root,
              .peer = entry.takes("peer") ? params.peer : (params.root + 1) % n,
              .options = {.algorithm = entry.name}};
    set_parameters(params, call.options);
    // The largest number of blocks on one rank: for an all-to-all one row of blocks.
    const std::size_t blocks =
        static_cast<std::size_t>(natural_blocks(entry.collective, n)) /
        (entry.collective == Collective::all_to_all ? static_cast<std::size_t>(n) : 1);
    in_.resize(static_cast<std::size_t>(n));
    out_.resize(in_.size());
    for (std::size_t r = 0; r < in_.size(); ++r) {
      in_[r].resize(count * blocks);
      std::iota(in_[r].begin(), in_[r].end(), static_cast<std::uint32_t>(r));
      out_[r].assign(count * blocks, 0);
    }
    std::vector<Status> results(in_.size());
    threads_.run([&](Rank rank) {
      const auto r = static_cast<std::size_t>(rank);
      Call mine = call;
      mine.in = in_[r].data();
      mine.out = in_place ? in_[r].data() : out_[r].data();
      results[r] = member(rank).call(mine);
    });
    for (const Status& status : results) ASSERT_TRUE(status.ok()) << status.text();
    if (entry.collective == Collective::all_reduce) {
      const auto base = static_cast<std::uint32_t>(n * (n - 1) / 2);
      for (Rank r = 0; r < n; ++r) {
        const auto& result = (in_place ? in_ : out_)[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(result[i], base + static_cast<std::uint32_t>(i) * static_cast<std::uint32_t>(n))
              << entry.name << ", rank " << r << ", element " << i;
        }
      }
    }
    simulate_too(entry, params, count * blocks * 4);
  }

  void compute(Rank r, double seconds) {
    member(r).compute(seconds).throw_if_error();
    times_.compute(r, seconds);
  }

  void expect_same_times(const std::string& after) {
    for (const Rank r : members_) {
      EXPECT_EQ(member(r).model_time(), times_.seconds(r)) << after << ": rank " << r;
    }
  }

  Member& member(Rank r) { return *all_.members()[static_cast<std::size_t>(r)]; }
  NetworkReport report() { return all_.communicator().network_report(); }
  std::vector<Ticks>& ends() { return times_.ends(); }
  Ticks end() { return *std::max_element(ends().begin(), ends().end()); }

 private:
  void simulate_too(const Algorithm& entry, const Params& params, std::size_t bytes) {
    const auto simulated = times_.call(entry, params, members_, bytes).value();
    const std::string what =
        std::string(name_of(entry.collective)) + " " + std::string(entry.name) + ", " +
        std::to_string(ranks()) + " ranks on " + network_->fabric.name + ", " +
        std::to_string(network_->fabric.ports) + " ports, " + std::string(name_of(network_->sync));
    expect_same_times(what);
    std::vector<double> rounds;
    for (const Ticks end : simulated.round_end) rounds.push_back(times_.in_seconds(end));
    EXPECT_EQ(report().rounds, rounds) << what;
  }

  const std::shared_ptr<const CallNetwork> network_;
  Ranks all_;
  StandingThreads threads_;
  SimulatedTimes times_;
  std::vector<Rank> members_;
  std::vector<std::vector<std::uint32_t>> in_, out_;  // buffers of the latest call, by rank
};

}  // namespace rankine
