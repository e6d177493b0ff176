#include "engine/papers/played.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/network/ticks.h"
#include "engine/papers/execute.h"
#include "engine/read/profile.h"

namespace rankine::claims {

Played::Played(Setup setup)
    : setup_(std::move(setup)),
      schedule_(setup_.algorithm->make(setup_.params)),
      goal_(goal_of(*setup_.algorithm, setup_.params, schedule_)) {}

Value Played::time_with(int alpha, bool beta) {
  Fabric fabric = setup_.fabric;
  const Rational per_byte =
      beta ? Rational(1, static_cast<Int128>(std::max<std::uint64_t>(1, setup_.bytes)))
           : Rational(0);
  fabric.link = fabric.between = {alpha, per_byte};
  fabric.alpha_switch = alpha;
  fabric.alpha_hop = fabric.gamma = 0;
  return timed(fabric);
}

std::optional<Value> Played::quantity(std::string_view name) {
  if (name == "time") return time();
  if (name == "n_alpha") return time_with(1, false);
  if (name == "n_beta") return time_with(0, true);
  if (name == "crossing") return crossing(true);
  if (name == "rank_crossing") return crossing(false);
  if (name == "delay") return delay(setup_.fabric.wiring);
  if (name == "ring_load") return delay({.kind = WiringKind::ring});
  if (name == "one_path_delay") return one_path_delay();
  if (name == "largest") return bytes_of(largest_message(messages()));
  const Simulation& s = simulated();
  const auto most = [&s](const std::vector<std::int64_t>& weights) {
    return Rational(std::ranges::max(weights), s.weight_per_byte);
  };
  const auto least = [&s](const std::vector<std::int64_t>& weights) {
    return Rational(std::ranges::min(weights), s.weight_per_byte);
  };
  if (name == "send_ports") return s.send_ports_needed;
  if (name == "receive_ports") return s.receive_ports_needed;
  if (name == "rounds") return s.rounds;
  if (name == "messages") return static_cast<long long>(s.messages);
  if (name == "sent") return most(s.sent);
  if (name == "received") return most(s.received);
  if (name == "reduced") return most(s.reduced);
  if (name == "least_sent") return least(s.sent);
  if (name == "least_received") return least(s.received);
  if (name == "ports") return s.ports_needed();
  if (name == "partners") return s.partners_max;
  return std::nullopt;
}

std::optional<Value> Played::quantity(std::string_view name, std::span<const Value> arguments) {
  if (arguments.empty()) return quantity(name);
  std::vector<int> a;
  for (const Value& value : arguments) a.push_back(static_cast<int>(whole(value, name)));
  const std::vector<Message>& all = messages();
  if (name == "sends" && a.size() == 2) return bytes_of(sent_between(all, a[0], a[1]));
  if (name == "sends" && a.size() == 3) return bytes_of(sent_between(all, a[0], a[1], a[2]));
  if (a.size() != 1) return std::nullopt;
  if (name == "sent_by") return bytes_of(sent_by(all, a[0]));
  if (name == "sent_in") return bytes_of(most_sent_in(all, a[0]));
  if (name == "first_round") return first_round_of(all, a[0]);
  if (name == "last_round") return last_round_of(all, a[0]);
  return std::nullopt;
}

std::uint64_t Played::moves() {
  const Simulation& s = simulated();
  std::int64_t received = 0;
  for (const std::int64_t weight : s.received) received += weight;
  const std::int64_t block =
      s.weight_per_byte * static_cast<std::int64_t>(setup_.bytes) / blocks_per_m(goal_);
  const auto blocks = static_cast<std::uint64_t>(block == 0 ? 0 : received / block);
  return std::max(blocks, s.messages);
}

Executed Played::execute_it(const Setup& made) {
  const auto seconds = execute(*made.algorithm, made.params, made.fabric, made.bytes,
                               made.options.sync, made.options.lower);
  if (!seconds.ok()) return {.fault = std::string(seconds.status().text())};
  if (*seconds == simulated().seconds) return {.seconds = *seconds};
  return {.fault = "executed in " + std::to_string(*seconds) + " s, simulated " +
                   to_string(time()) + " s",
          .seconds = *seconds};
}

Pricing Played::priced(const Fabric& fabric) const {
  auto pricing = Pricing::make(fabric, goal_, setup_.bytes, true);
  if (!pricing.ok()) throw std::logic_error(pricing.status().text());
  return *pricing;
}

Simulation Played::simulate_on(const Fabric& fabric) const {
  auto result = simulate(schedule_, goal_, fabric, setup_.bytes, setup_.options);
  if (!result.ok()) throw NotDefined(result.status().text());
  return std::move(*result);
}

Value Played::timed(const Fabric& fabric) const {
  return Rational(simulate_on(fabric).end, priced(fabric).ticks_per_second());
}

const Simulation& Played::simulated() {
  if (!simulation_) simulation_ = simulate_on(setup_.fabric);
  return *simulation_;
}

const std::vector<Message>& Played::messages() {
  if (messages_.empty()) messages_ = messages_of(schedule_, priced(setup_.fabric));
  return messages_;
}

Value Played::bytes_of(std::int64_t weight) const {
  return Rational(weight, priced(setup_.fabric).weight_per_byte());
}

Value Played::crossing(bool of_nodes) {
  if (setup_.nodes == 0) throw std::logic_error("crossing asks for the option nodes");
  std::vector<std::int64_t> out(static_cast<std::size_t>(setup_.params.ranks), 0);
  for (const Message& m : messages()) {
    if (m.from / setup_.nodes == m.to / setup_.nodes) continue;
    out[static_cast<std::size_t>(of_nodes ? m.from / setup_.nodes : m.from)] += m.weight;
  }
  return bytes_of(*std::max_element(out.begin(), out.end()));
}

// Against the ideal of one vector over the dimensions of the network.
Value Played::delay(const Wiring& wiring) const {
  const auto found = profile(schedule_, goal_, wiring);
  if (!found.ok()) throw std::logic_error(found.status().text());
  const Value dimensions(static_cast<long long>(std::max<std::size_t>(1, wiring.dims.size())));
  return Value(Rational(found->total_load(), found->per_m)) * dimensions;
}

Value Played::one_path_delay() {
  std::vector<int> dims = setup_.fabric.wiring.dims;
  if (dims.empty()) dims = {setup_.params.ranks};
  return bytes_of(one_path_load(messages(), dims)) *
         Rational(static_cast<Int128>(dims.size()), static_cast<Int128>(setup_.bytes));
}

// The time falls, then rises: thirds close in on it.
std::pair<Value, int> best_of(const Setup& setup) {
  std::map<int, Value> known;
  const auto time_at = [&](int segments) {
    const auto found = known.find(segments);
    if (found != known.end()) return found->second;
    Setup tried = setup;
    tried.params.segments = segments;
    return known.emplace(segments, Played(tried).time()).first->second;
  };
  int low = 1, high = kMostSegments;
  while (high - low > 4) {
    const int a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (less(time_at(b), time_at(a))) {
      low = a;
    } else {
      high = b;
    }
  }
  int best = low;
  for (int s = low; s <= high; ++s) {
    if (less(time_at(s), time_at(best))) best = s;
  }
  return {time_at(best), best};
}

}  // namespace rankine::claims
