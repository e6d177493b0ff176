#include "algorithms/schedule/lower.h"

#include "algorithms/schedule/everyone.h"

namespace rankine {

Schedule lower(Schedule schedule, Abilities abilities) {
  if (abilities.multicast && abilities.alu) return schedule;
  if (everyone_in(schedule) != nullptr) return schedule;  // from one rank to one
  Schedule out = schedule;
  out.round = [schedule = std::move(schedule), abilities](int k, Send send) {
    take_each_transfer(schedule, k, [&](Transfer&& t) {
      const bool many_to = t.to.size() > 1 && !abilities.multicast;
      const bool many_from = t.from.size() > 1 && !abilities.alu;
      if (!many_to && !many_from) {
        send.exactly(std::move(t));
        return;
      }
      // One side that the network can do stays whole.
      const std::vector<int> from = t.from.to_vector(), to = t.to.to_vector();
      if (!many_from) {
        for (const Rank r : to) send.exactly({t.from, r, t.what, t.where, t.act});
      } else if (!many_to) {
        for (const Rank r : from) send.exactly({r, t.to, t.what, t.where, t.act});
      } else {
        for (const Rank r : to) {
          for (const Rank s : from) send.exactly({s, r, t.what, t.where, t.act});
        }
      }
    });
  };
  return out;
}

}  // namespace rankine
