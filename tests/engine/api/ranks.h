// The caller's own threads as ranks: for tests that need ranks to come late, leave or disagree.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/run/time_slice.h"

namespace rankine {

class Ranks {
 public:
  explicit Ranks(const CommunicatorOptions& options) {
    auto made = Communicator::create(options);
    made.status().throw_if_error();
    communicator_ = std::move(*made);
    for (Rank r = 0; r < options.ranks; ++r) members_.push_back(std::move(*communicator_->join(r)));
  }

  Communicator& communicator() { return *communicator_; }

  ~Ranks() {
    {
      const std::lock_guard lock(mutex_);
      job_ = nullptr;
      ++runs_;
    }
    begun_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Calls f on a thread per rank that has not been dropped, each time on the same one, and returns
  // what each of them returned, by rank. A rank whose f has returned has not left.
  std::vector<Status> run(const std::function<Status(Member&)>& f) {
    // Beside other work, whoever is woken shall not wait for the end of what runs: threads that are
    // begun here have it from us.
    shorten_time_slice_once();
    std::vector<Status> results(members_.size());
    std::unique_lock lock(mutex_);
    while (threads_.size() < members_.size()) {
      threads_.emplace_back([this, r = threads_.size(), seen = runs_] { serve(r, seen); });
    }
    job_ = &f;
    results_ = &results;
    busy_ = threads_.size();
    ++runs_;
    begun_.notify_all();
    ended_.wait(lock, [this] { return busy_ == 0; });
    return results;
  }

  std::vector<std::unique_ptr<Member>>& members() { return members_; }

  // The rank's handle goes: it takes part no more.
  void drop(Rank r) { members_[static_cast<std::size_t>(r)].reset(); }

 private:
  void serve(std::size_t r, std::uint64_t seen) {
    std::unique_lock lock(mutex_);
    for (;;) {
      begun_.wait(lock, [&] { return runs_ != seen; });
      seen = runs_;
      if (job_ == nullptr) return;
      lock.unlock();
      if (members_[r] != nullptr) (*results_)[r] = (*job_)(*members_[r]);
      lock.lock();
      if (--busy_ == 0) ended_.notify_all();
    }
  }

  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  // Guarded by mutex_.
  std::uint64_t runs_ = 0;
  const std::function<Status(Member&)>* job_ = nullptr;  // nullptr in the end
  std::vector<Status>* results_ = nullptr;
  std::size_t busy_ = 0;
};

}  // namespace rankine
