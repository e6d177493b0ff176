// What packets.h defines, packet by packet: an event for each packet on each link, times that are
// whole seconds, and every rank for itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "engine/network/wiring.h"

namespace rankine {

// In the order stated.
struct PlainMessage {
  int round = 0;
  Rank from = 0, to = 0;
  std::int64_t bytes = 0;
};

struct PlainNetwork {
  const Routes& routes;
  int ports = 0;           // 0: any number
  bool by_rounds = false;  // else a message waits for all that its sender got in earlier rounds
  std::int64_t alpha = 0, hop = 0, per_half_byte = 1, mtu = 1;
};

class PacketByPacket {
 public:
  PacketByPacket(const PlainNetwork& network, const std::vector<PlainMessage>& messages)
      : network_(network), queues_(static_cast<std::size_t>(network.routes.links())) {
    for (const PlainMessage& m : messages) messages_.push_back({m});
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      send_[messages_[i].what.from].claims.push_back(i);
      receive_[messages_[i].what.to].claims.push_back(i);
    }
  }

  // When each message ends.
  std::vector<std::int64_t> ends() {
    start(0);
    while (!happens_.empty()) {
      const std::int64_t now = *happens_.begin();
      happens_.erase(happens_.begin());
      bool more = true;
      while (more) more = come(now) || start(now);
      for (Queue& queue : queues_) serve(queue, now);
    }
    std::vector<std::int64_t> out;
    for (const Message& m : messages_) out.push_back(m.end);
    return out;
  }

 private:
  struct Packet {
    std::size_t message = 0;
    bool down = false;
    std::int64_t index = 0, halves = 0;
    std::size_t hops = 0;  // behind it
  };
  struct Message {
    PlainMessage what;
    std::vector<int> ways[2] = {};
    int grants = 0;
    bool begun = false;
    std::int64_t left = 0, end = -1;
  };
  struct Ports {
    std::vector<std::size_t> claims;
    std::size_t granted = 0, released = 0;
  };
  // By when it came, then who goes first.
  using Key = std::tuple<std::int64_t, std::int64_t, std::size_t, bool, std::int64_t>;
  struct Queue {
    std::map<Key, Packet> waiting;
    std::int64_t free = 0;
  };

  void at(std::int64_t time, const Packet& packet) {
    coming_.emplace(time, packet);
    happens_.insert(time);
  }

  // Packets that come now. Whether there were any.
  bool come(std::int64_t now) {
    const auto [first, last] = coming_.equal_range(now);
    const std::vector<std::pair<const std::int64_t, Packet>> these(first, last);
    coming_.erase(first, last);
    for (const auto& [time, packet] : these) {
      Message& m = messages_[packet.message];
      const auto& way = m.ways[packet.down ? 1 : 0];
      if (packet.hops == way.size()) {
        if (--m.left > 0) continue;
        m.end = now;
        ++send_[m.what.from].released;
        ++receive_[m.what.to].released;
        continue;
      }
      const Key key{now, -static_cast<std::int64_t>(packet.hops), packet.message, packet.down,
                    packet.index};
      queues_[static_cast<std::size_t>(way[packet.hops])].waiting.emplace(key, packet);
    }
    return !these.empty();
  }

  void serve(Queue& queue, std::int64_t now) {
    if (queue.free > now || queue.waiting.empty()) return;
    Packet packet = queue.waiting.begin()->second;
    queue.waiting.erase(queue.waiting.begin());
    queue.free = now + packet.halves * network_.per_half_byte;
    happens_.insert(queue.free);
    ++packet.hops;
    at(queue.free + network_.hop, packet);
  }

  bool start(std::int64_t now) {
    for (auto* side : {&send_, &receive_}) {
      for (auto& [rank, ports] : *side) {
        const std::size_t most = network_.ports == 0
                                     ? ports.claims.size()
                                     : ports.released + static_cast<std::size_t>(network_.ports);
        for (; ports.granted < std::min(most, ports.claims.size()); ++ports.granted) {
          ++messages_[ports.claims[ports.granted]].grants;
        }
      }
    }
    bool any = false;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      Message& m = messages_[i];
      if (m.begun || m.grants < 2 || waits(m.what)) continue;
      m.begun = any = true;
      set_out(i, now + network_.alpha);
    }
    return any;
  }

  bool waits(const PlainMessage& message) const {
    return std::any_of(messages_.begin(), messages_.end(), [&](const Message& other) {
      return other.end < 0 && other.what.round < message.round &&
             (network_.by_rounds || other.what.to == message.from);
    });
  }

  void set_out(std::size_t i, std::int64_t time) {
    Message& m = messages_[i];
    bool splits = false;
    network_.routes.for_each_link(m.what.from, m.what.to, [&](int link, int halves) {
      splits |= halves == 1;
      if (halves == 2 || Routes::leads_up(link)) m.ways[0].push_back(link);
      if (halves == 2 || !Routes::leads_up(link)) m.ways[1].push_back(link);
    });
    for (const bool down : {false, true}) {
      if (down && !splits) continue;
      std::int64_t halves = splits ? m.what.bytes : 2 * m.what.bytes, index = 0;
      do {
        const std::int64_t size = std::min(halves, 2 * network_.mtu);
        at(time, {i, down, index++, size, 0});
        ++m.left;
        halves -= size;
      } while (halves > 0);
    }
  }

  const PlainNetwork network_;
  std::vector<Message> messages_;
  std::map<Rank, Ports> send_, receive_;
  std::vector<Queue> queues_;
  std::multimap<std::int64_t, Packet> coming_;
  std::set<std::int64_t> happens_;
};

}  // namespace rankine
