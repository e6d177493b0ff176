#include "engine/read/max_min.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace rankine {

MaxMin::MaxMin(int links) : links_(static_cast<std::size_t>(links)) {}

int MaxMin::add_link() {
  links_.emplace_back();
  return static_cast<int>(links_.size()) - 1;
}

int MaxMin::start(int weight, std::span<const int> links) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int f = unused_.back();
  unused_.pop_back();
  Flow& started = flow(f);
  started.weight = weight;
  started.rate = 0;
  for (const int l : links) {
    auto& passages = link(l).passages;
    passages.push_back({f, static_cast<int>(started.hops.size())});
    started.hops.push_back({l, static_cast<int>(passages.size()) - 1});
    touch(l);
  }
  return f;
}

void MaxMin::stop(int f) {
  for (const Hop& hop : flow(f).hops) {
    // The link's last passage takes the free place.
    auto& passages = link(hop.link).passages;
    const Passage last = passages.back();
    passages[static_cast<std::size_t>(hop.at)] = last;
    flow(last.flow).hops[static_cast<std::size_t>(last.hop)].at = hop.at;
    passages.pop_back();
    touch(hop.link);
  }
  flow(f).hops.clear();
  flow(f).rate = 0;
  unused_.push_back(f);
}

void MaxMin::touch(int l) {
  if (link(l).seen == turn_) return;
  link(l).seen = turn_;
  touched_.push_back(l);
}

// All links that those touched so far may affect, with nothing frozen yet.
void MaxMin::gather() {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    Link& l = link(touched_[i]);
    l.left = l.capacity;
    l.open = 0;
    for (const Passage& passage : l.passages) {
      Flow& crossing = flow(passage.flow);
      l.open += crossing.weight;
      if (crossing.seen == turn_) continue;
      crossing.seen = turn_;
      for (const Hop& hop : crossing.hops) touch(hop.link);
    }
  }
}

std::span<const int> MaxMin::settle() {
  gather();
  changed_.clear();
  fullest_.clear();
  for (const int l : touched_) {
    if (link(l).open > 0) fullest_.emplace_back(link(l).capacity / link(l).open, l);
  }
  std::make_heap(fullest_.begin(), fullest_.end(), std::greater<>());
  while (!fullest_.empty()) {
    std::pop_heap(fullest_.begin(), fullest_.end(), std::greater<>());
    const auto [noted, l] = fullest_.back();
    fullest_.pop_back();
    Link& full = link(l);
    if (full.open == 0) continue;
    // Freezing a flow at a lower level than this link's can only raise this link's.
    const double level = full.left / full.open;
    if (level > noted) {
      fullest_.emplace_back(level, l);
      std::push_heap(fullest_.begin(), fullest_.end(), std::greater<>());
      continue;
    }
    for (const Passage& passage : full.passages) {
      Flow& crossing = flow(passage.flow);
      if (crossing.frozen != turn_) freeze(crossing, passage.flow, level);
    }
  }
  touched_.clear();
  ++turn_;
  return changed_;
}

void MaxMin::freeze(Flow& crossing, int f, double level) {
  // Differences of rounding are no changes: who counts on the old rate need not count again.
  constexpr double kRounding = 1e-14;
  crossing.frozen = turn_;
  const double rate = crossing.weight * level;
  if (std::abs(rate - crossing.rate) > kRounding * rate) {
    crossing.rate = rate;
    changed_.push_back(f);
  }
  for (const Hop& hop : crossing.hops) {
    Link& l = link(hop.link);
    l.left = std::max(0.0, l.left - rate);
    l.open -= crossing.weight;
  }
}

}  // namespace rankine
