// A schedule message by message, as papers print it: lists of edges, traces, what goes when.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/schedule.h"
#include "engine/network/ticks.h"

namespace rankine::claims {

struct Message {
  int round = 1;  // rounds without a message are not counted
  Rank from = 0, to = 0;
  std::int64_t weight = 0;  // of Pricing::weight_per_byte() each
};

// In the order of the schedule; a multicast is a message to each of those who hear it.
std::vector<Message> messages_of(const Schedule& schedule, const Pricing& pricing);

// Weights that are largest where nothing else is said.
std::int64_t sent_between(const std::vector<Message>& messages, Rank from, Rank to);
std::int64_t sent_between(const std::vector<Message>& messages, int round, Rank from, Rank to);
std::int64_t sent_by(const std::vector<Message>& messages, Rank rank);
std::int64_t largest_message(const std::vector<Message>& messages);
// Of the busiest rank of the round.
std::int64_t most_sent_in(const std::vector<Message>& messages, int round);
// The first and the last round in which a rank sends; 0: it never does.
int first_round_of(const std::vector<Message>& messages, Rank rank);
int last_round_of(const std::vector<Message>& messages, Rank rank);

// Sum over the rounds of the busiest link's load on a torus of these sizes, where every message
// keeps to one path: dimension by dimension, in each the shorter way, and up where both are as
// long. Shared half and half between both ways, antipodes load the links less (wiring.h).
std::int64_t one_path_load(const std::vector<Message>& messages, const std::vector<int>& dims);

}  // namespace rankine::claims
