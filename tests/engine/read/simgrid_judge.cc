// The only file that uses SimGrid, because names in its interface changed with 3.36 and 4.0.
#include "tests/engine/read/simgrid_judge.h"

#ifdef RANKINE_HAS_SIMGRID
#include <xbt/base.h>  // needed by the next one

#include <simgrid/version.h>
#if SIMGRID_VERSION >= 33200 && SIMGRID_VERSION < 33600
#define RANKINE_HAS_JUDGE 1
#endif
#endif

#ifdef RANKINE_HAS_JUDGE

#include <simgrid/s4u.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <stdexcept>

#include "engine/base/child_process.h"

namespace rankine {
namespace {

namespace s4u = simgrid::s4u;

// Plain max-min sharing: no latency, because SimGrid would weigh flows by it (a pause stands for
// alpha); no factors of a protocol; and no acknowledgements on the way back.
constexpr const char* kSettings[] = {
    "--cfg=network/model:CM02",  "--cfg=network/crosstraffic:0",  "--cfg=maxmin/precision:1e-9",
    "--cfg=surf/precision:1e-9", "--cfg=contexts/factory:thread", "--log=root.thres:warning"};

class Judge {
 public:
  explicit Judge(const JudgedNetwork& network) : network_(network) {
    ranks_ = 1;
    for (const int size : network.dims) ranks_ *= size;
    build();
  }

  double seconds(const std::vector<std::vector<JudgedMessage>>& rounds) {
    s4u::Actor::create("rounds", half(0, true), [this, &rounds] {
      for (const auto& round : rounds) play(round);
    });
    s4u::Engine::get_instance()->run();
    return s4u::Engine::get_clock();
  }

 private:
  std::vector<int> coordinates(int rank) const {
    std::vector<int> out(network_.dims.size());
    for (std::size_t d = out.size(); d-- > 0; rank /= network_.dims[d]) {
      out[d] = rank % network_.dims[d];
    }
    return out;
  }
  int rank_at(const std::vector<int>& at) const {
    int rank = 0;
    for (std::size_t d = 0; d < at.size(); ++d) rank = rank * network_.dims[d] + at[d];
    return rank;
  }
  // The steps along dimension d by the shorter way: positive numbers go up. `ties_up` decides the
  // direction if both ways round a ring are equally long.
  int way(int from, int to, std::size_t d, bool ties_up) const {
    if (!network_.closed) return to - from;
    const int size = network_.dims[d], up = (to - from + size) % size;
    if (2 * up == size) return ties_up ? up : -up;
    return 2 * up < size ? up : up - size;
  }
  bool is_tree() const { return network_.spines > 0; }
  bool near(int from, int to) const { return from / network_.leaf == to / network_.leaf; }
  int hops(int from, int to) const {
    if (is_tree()) return near(from, to) ? 1 : 2;
    const auto a = coordinates(from), b = coordinates(to);
    int total = 0;
    for (std::size_t d = 0; d < a.size(); ++d) total += std::abs(way(a[d], b[d], d, true));
    return total;
  }

  // Every rank is two hosts: one sends and receives the halves that go up at ties, the other the
  // halves that go down. So each half has a separate route.
  s4u::Host* half(int rank, bool ties_up) const {
    return hosts_[static_cast<std::size_t>(2 * rank + (ties_up ? 1 : 0))];
  }
  s4u::Link* wire(int rank, std::size_t d, bool up) const {
    return wires_[(static_cast<std::size_t>(rank) * network_.dims.size() + d) * 2 + (up ? 1 : 0)];
  }

  // Bytes are counted in halves.
  s4u::Link* link(s4u::NetZone* zone, const std::string& name) const {
    return zone->create_link(name, 2 * network_.bandwidth)
        ->set_latency(0)
        ->set_sharing_policy(s4u::Link::SharingPolicy::SHARED);
  }

  // Every half flows at the full rate of a message: no two messages share the link.
  s4u::Link* own_link(s4u::NetZone* zone, int pair) const {
    return zone->create_link("own" + std::to_string(pair), network_.bandwidth)
        ->set_latency(0)
        ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
  }

  void build() {
    s4u::NetZone* zone = s4u::create_full_zone("ranks");
    for (int r = 0; r < ranks_; ++r) {
      const std::string name = std::to_string(r);
      for (const char* way : {"_down", "_up"}) hosts_.push_back(zone->create_host(name + way, 1));
      for (std::size_t d = 0; !is_tree() && d < network_.dims.size(); ++d) {
        for (const char* way : {"_down_", "_up_"}) {
          wires_.push_back(link(zone, name + way + std::to_string(d)));
        }
      }
    }
    const int leaves = is_tree() ? (ranks_ - 1) / network_.leaf + 1 : 0;
    for (int i = 0; i < leaves * network_.spines; ++i) {
      ups_.push_back(link(zone, "up" + std::to_string(i)));
      downs_.push_back(link(zone, "down" + std::to_string(i)));
    }
    for (int i = 0; is_tree() && i < ranks_ * ranks_; ++i) {
      own_.push_back(near(i / ranks_, i % ranks_) ? own_link(zone, i) : nullptr);
    }
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to) {
        if (from == to) continue;
        for (const bool ties_up : {false, true}) {
          zone->add_route(half(from, ties_up)->get_netpoint(), half(to, ties_up)->get_netpoint(),
                          nullptr, nullptr, route(from, to, ties_up), false);
        }
      }
    }
    zone->seal();
  }

  std::vector<s4u::LinkInRoute> route(int from, int to, bool ties_up) const {
    std::vector<s4u::LinkInRoute> links;
    if (is_tree()) {
      if (near(from, to)) {
        links.emplace_back(own_[static_cast<std::size_t>(from * ranks_ + to)]);
        return links;
      }
      const int spine = to % network_.spines;
      const auto at_spine = [this, spine](int rank) {
        return static_cast<std::size_t>(rank / network_.leaf * network_.spines + spine);
      };
      links.emplace_back(ups_[at_spine(from)]);
      links.emplace_back(downs_[at_spine(to)]);
      return links;
    }
    auto at = coordinates(from);
    const auto end = coordinates(to);
    for (std::size_t d = 0; d < at.size(); ++d) {
      while (at[d] != end[d]) {
        const bool up = way(at[d], end[d], d, ties_up) > 0;
        links.emplace_back(wire(rank_at(at), d, up));
        at[d] = (at[d] + (up ? 1 : network_.dims[d] - 1)) % network_.dims[d];
      }
    }
    return links;
  }

  void play(const std::vector<JudgedMessage>& round) const {
    const double begun = s4u::Engine::get_clock();
    auto by_hops = round;
    std::stable_sort(by_hops.begin(), by_hops.end(),
                     [this](const JudgedMessage& a, const JudgedMessage& b) {
                       return hops(a.from, a.to) < hops(b.from, b.to);
                     });
    std::vector<s4u::CommPtr> halves;
    for (const JudgedMessage& m : by_hops) {
      const double flows = begun + network_.alpha + hops(m.from, m.to) * network_.alpha_hop;
      const double wait = flows - s4u::Engine::get_clock();
      if (wait > 0) s4u::this_actor::sleep_for(wait);
      for (const bool up : {false, true}) {
        halves.push_back(s4u::Comm::sendto_async(half(m.from, up), half(m.to, up),
                                                 static_cast<std::uint64_t>(m.bytes)));
      }
    }
    s4u::Comm::wait_all(halves);
  }

  const JudgedNetwork& network_;
  int ranks_ = 1;
  std::vector<s4u::Host*> hosts_;
  std::vector<s4u::Link*> wires_;              // of a grid
  std::vector<s4u::Link*> ups_, downs_, own_;  // of a tree; own_ by pairs of ranks in one leaf
};

using Rounds = std::vector<std::vector<JudgedMessage>>;

[[noreturn]] void judge_in_child(const JudgedNetwork& network, const Rounds& rounds, int out) {
  std::vector<std::string> words = {"simgrid_judge"};
  words.insert(words.end(), std::begin(kSettings), std::end(kSettings));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  s4u::Engine engine(&count, arguments.data());
  const double seconds = Judge(network).seconds(rounds);
  const bool written = write(out, &seconds, sizeof seconds) == sizeof seconds;
  _exit(written ? 0 : 1);
}

}  // namespace

std::optional<std::string> simgrid_is_missing() { return std::nullopt; }

double simgrid_seconds(const JudgedNetwork& network, const Rounds& rounds) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe to SimGrid's process");
  ChildProcess child([&]() -> int { judge_in_child(network, rounds, ends[1]); });
  close(ends[1]);
  double seconds = 0;
  const bool told = read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  close(ends[0]);
  if (child.wait() != 0 || !told) throw std::runtime_error("SimGrid's process gave no time");
  return seconds;
}

}  // namespace rankine

#else

#include <stdexcept>

namespace rankine {

std::optional<std::string> simgrid_is_missing() {
#ifdef RANKINE_HAS_SIMGRID
  return "SimGrid is " SIMGRID_VERSION_STRING
         "; this test needs 3.32 to 3.35 (Debian 12 has 3.32: apt install libsimgrid-dev)";
#else
  return "SimGrid is not installed: apt install libsimgrid-dev";
#endif
}

double simgrid_seconds(const JudgedNetwork&, const std::vector<std::vector<JudgedMessage>>&) {
  throw std::logic_error(*simgrid_is_missing());
}

}  // namespace rankine

#endif
