// Max-min fair shares: how flows divide the links that they cross.
//
// A flow crosses a set of links and has a weight; its level is its rate per unit of weight. The
// allocation is max-min fair when every flow has a bottleneck: a link that is full and on which
// nobody has a higher level. It is unique, and found by progressive filling: raise all levels
// together, freeze the flows of each link that fills up, go on with the others.
//   Bertsekas & Gallager, Data Networks, 2nd edition, section 6.5.2
//
// Flows come and go; only those that share links with them, directly or through others, are looked
// at again. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rankine {

class MaxMin {
 public:
  // Links 0 .. links - 1, each of capacity 1.
  explicit MaxMin(int links);
  int add_link();  // one more, of capacity 1: its number
  // More than 0; while nobody crosses the link.
  void set_capacity(int link, double capacity) { this->link(link).capacity = capacity; }

  // A flow that crosses these links, at least one, each once. Its rate is 0 until settle(). Returns
  // its number; numbers of flows that have stopped are used again.
  int start(int weight, std::span<const int> links);
  void stop(int flow);

  // Shares the links anew after flows have started or stopped. Returns the flows whose rates have
  // changed, each once; valid until the next call of any member.
  std::span<const int> settle();

  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }

 private:
  struct Hop {
    int link = 0;
    int at = 0;  // where the flow stands among the link's
  };
  struct Flow {
    int weight = 0;
    double rate = 0;
    std::uint64_t seen = 0, frozen = 0;  // turns of settle()
    std::vector<Hop> hops{};
  };
  struct Passage {
    int flow = 0;
    int hop = 0;  // which of the flow's
  };
  struct Link {
    std::vector<Passage> passages{};
    double capacity = 1;
    double left = 1;  // capacity that frozen flows leave
    int open = 0;     // weight of the others
    std::uint64_t seen = 0;
  };

  Flow& flow(int f) { return flows_[static_cast<std::size_t>(f)]; }
  Link& link(int l) { return links_[static_cast<std::size_t>(l)]; }
  void touch(int l);
  void gather();
  void freeze(Flow& flow, int f, double level);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<int> unused_;  // numbers of flows that have stopped
  std::uint64_t turn_ = 1;
  std::vector<int> touched_;  // links that changed, then all that these may affect
  std::vector<int> changed_;
  std::vector<std::pair<double, int>> fullest_;  // a heap: the level at which a link is full
};

}  // namespace rankine
