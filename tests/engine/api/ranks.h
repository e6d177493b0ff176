// Ranks: the caller's threads as ranks, for tests with ranks that come late, leave or disagree; and
// expectations about the results of all ranks.
#pragma once

#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/base/parallel.h"
#include "tests/testing.h"

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

  // Calls f on one thread per rank, except dropped ranks, and returns the results by rank. A rank
  // stays a member after f returns: it has not left.
  std::vector<Status> run(const std::function<Status(Member&)>& f) {
    std::vector<Status> results(members_.size());
    on_threads(communicator_->ranks(), [&](Rank rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (members_[r] != nullptr) results[r] = f(*members_[r]);
    });
    return results;
  }

  std::vector<std::unique_ptr<Member>>& members() { return members_; }

  // Destroys the rank's handle: the rank leaves.
  void drop(Rank r) { members_[static_cast<std::size_t>(r)].reset(); }

 private:
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Member>> members_;
};

// Every rank's result is a success.
void expect_ok(const std::vector<Status>& results, const std::string& what = "");
// Every rank has this code and the same text, which has all these words.
void expect_all(const std::vector<Status>& results, Code code,
                const std::vector<std::string>& words = {});
// The text of the status has all these words.
void expect_words(const Status& status, const std::vector<std::string>& words);
// The status is invalid_argument, and its text has all these words.
void expect_refused(const Status& status, const std::vector<std::string>& words);

// f succeeds on the caller's threads, or on the threads of a team.
void expect_ranks_succeed(const CommunicatorOptions& options,
                          const std::function<Status(Member&)>& f);
void expect_team_succeeds(const TeamOptions& options, const std::function<void(Member&)>& f);

// Returns when rank r waits inside a call, according to the flight record.
void wait_until_waiting(const Communicator& communicator, Rank r);
// Returns the health of the communicator when it is an error.
Status when_over(const Communicator& communicator);

}  // namespace rankine
