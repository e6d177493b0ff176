// The caller's own threads as ranks: for tests that need ranks to come late, leave or disagree.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/communicator.h"

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

  // Calls f on a thread per rank that has not been dropped, and returns what each of them returned,
  // by rank. A rank whose f has returned stays a member: it has not left.
  std::vector<Status> run(const std::function<Status(Member&)>& f) {
    std::vector<Status> results(members_.size());
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < members_.size(); ++r) {
      if (members_[r] == nullptr) continue;
      threads.emplace_back([&, r] { results[r] = f(*members_[r]); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  std::vector<std::unique_ptr<Member>>& members() { return members_; }

  // The rank's handle goes: it takes part no more.
  void drop(Rank r) { members_[static_cast<std::size_t>(r)].reset(); }

 private:
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Member>> members_;
};

// For tests that need a rank to be inside a call, and waiting, before they go on.

// Returns when rank r waits inside a call, as its record says.
void until_it_waits(const Communicator& communicator, Rank r);

}  // namespace rankine
