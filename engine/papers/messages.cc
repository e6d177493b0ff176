#include "engine/papers/messages.h"

#include <algorithm>
#include <cstddef>

#include "algorithms/torus.h"

namespace rankine::claims {
namespace {

// The sum of the weights of those that pass the test.
template <class Test>
std::int64_t sum_of(const std::vector<Message>& messages, const Test& test) {
  std::int64_t sum = 0;
  for (const Message& each : messages) sum += test(each) ? each.weight : 0;
  return sum;
}

// Loads of the links of a torus in one round: a link up and one down per rank and dimension.
class LinkLoads {
 public:
  explicit LinkLoads(const std::vector<int>& dims)
      : torus_(dims), loads_(2 * dims.size() * static_cast<std::size_t>(torus_.ranks())) {}

  void add(const Message& message) {
    Rank at = message.from;
    for (int d = 0; d < torus_.dimensions(); ++d) {
      const int size = torus_.size(d);
      const int up = (torus_.coordinate(message.to, d) - torus_.coordinate(at, d) + size) % size;
      const bool rises = up <= size - up;
      for (int hop = 0; hop < (rises ? up : size - up); ++hop) {
        loads_[link(at, d, rises)] += message.weight;
        at = neighbour(at, d, rises);
      }
    }
  }
  std::int64_t most() const { return *std::max_element(loads_.begin(), loads_.end()); }
  void clear() { std::fill(loads_.begin(), loads_.end(), 0); }

 private:
  Rank neighbour(Rank rank, int dimension, bool rises) const {
    const int size = torus_.size(dimension), x = torus_.coordinate(rank, dimension);
    return rank + ((x + (rises ? 1 : size - 1)) % size - x) * torus_.stride(dimension);
  }
  std::size_t link(Rank rank, int dimension, bool rises) const {
    const int number = (rank * torus_.dimensions() + dimension) * 2 + (rises ? 1 : 0);
    return static_cast<std::size_t>(number);
  }

  Torus torus_;
  std::vector<std::int64_t> loads_;
};

}  // namespace

std::vector<Message> messages_of(const Schedule& schedule, const Pricing& pricing) {
  std::vector<Message> out;
  int round = 0;
  for (int k = 0; k < schedule.rounds; ++k) {
    const std::size_t before = out.size();
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const std::int64_t weight = pricing.weight(t.what.list);
      t.from.for_each([&](Rank from) {
        t.to.for_each([&](Rank to) {
          if (from != to) out.push_back({round + 1, from, to, weight});
        });
      });
    });
    if (out.size() > before) ++round;
  }
  return out;
}

std::int64_t sent_between(const std::vector<Message>& messages, Rank from, Rank to) {
  return sum_of(messages, [&](const Message& m) { return m.from == from && m.to == to; });
}

std::int64_t sent_between(const std::vector<Message>& messages, int round, Rank from, Rank to) {
  return sum_of(messages,
                [&](const Message& m) { return m.round == round && m.from == from && m.to == to; });
}

std::int64_t sent_by(const std::vector<Message>& messages, Rank rank) {
  return sum_of(messages, [&](const Message& m) { return m.from == rank; });
}

std::int64_t largest_message(const std::vector<Message>& messages) {
  std::int64_t most = 0;
  for (const Message& each : messages) most = std::max(most, each.weight);
  return most;
}

std::int64_t most_sent_in(const std::vector<Message>& messages, int round) {
  std::vector<std::int64_t> sent;
  for (const Message& each : messages) {
    if (each.round != round) continue;
    const auto from = static_cast<std::size_t>(each.from);
    if (sent.size() <= from) sent.resize(from + 1);
    sent[from] += each.weight;
  }
  return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
}

int first_round_of(const std::vector<Message>& messages, Rank rank) {
  for (const Message& each : messages) {
    if (each.from == rank) return each.round;
  }
  return 0;
}

int last_round_of(const std::vector<Message>& messages, Rank rank) {
  int last = 0;
  for (const Message& each : messages) {
    if (each.from == rank) last = each.round;
  }
  return last;
}

std::int64_t one_path_load(const std::vector<Message>& messages, const std::vector<int>& dims) {
  LinkLoads loads(dims);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    loads.add(messages[i]);
    if (i + 1 < messages.size() && messages[i + 1].round == messages[i].round) continue;
    total += loads.most();
    loads.clear();
  }
  return total;
}

}  // namespace rankine::claims
