// Which tokens of which requests the ranks compute in the next step: continuous batching (Yu et
// al., Orca, 2022). Every request that answers has its next token in each step; what room is left
// goes to prompts, the earliest first, in pieces as large as fit (Agrawal et al., Sarathi, 2023).
// A request that is through makes room in the very next step. A value: it knows no time and no
// rank.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "bench/server/batch.h"
#include "bench/server/request.h"

namespace rankine::server {

class Scheduler {
 public:
  // At most so many requests at work and tokens in a step; tokens >= sequences.
  explicit Scheduler(int sequences = kMostSequences, int tokens = kMostTokens);

  void add(const Request& request);  // it waits until there is a place
  bool is_idle() const { return waiting_.empty() && running_.empty(); }

  // The next step; no pieces where there is nothing to do.
  Batch next();
  // The tokens that the step of next() gave, one for each piece that wanted one, in their order.
  // Returns what to tell the clients.
  std::vector<Event> take(std::span<const int> tokens);

 private:
  struct Running {
    int id, place, wanted;
    std::vector<int> tokens;  // of the prompt, and of the answer so far
    int done = 0;             // of these computed
    bool wants_next = false;  // in the step under way
  };

  int most_tokens_;
  std::vector<int> places_;  // that are free
  std::deque<Request> waiting_;
  std::vector<Running> running_;  // the earliest first
};

}  // namespace rankine::server
