#include "engine/api/network.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

#include "engine/api/plans.h"
#include "engine/base/numbers.h"
#include "engine/base/units.h"
#include "engine/network/network_file.h"
#include "engine/network/wall.h"
#include "numa/cpus.h"

namespace rankine {
namespace {

Status set(CallNetwork& network, std::string_view part) {
  const std::size_t equals = part.find('=');
  const std::string_view name = part.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
  if (name == "sync") {
    const auto sync = parse_sync(value);
    if (!sync) {
      return invalid_argument("sync is '" + std::string(value) + "'; allowed are dataflow, rounds");
    }
    network.sync = *sync;
    return {};
  }
  if (name == "clock") {
    const auto clock = parse_clock_mode(value);
    if (!clock || *clock == ClockMode::none) {
      return invalid_argument("clock is '" + std::string(value) + "'; allowed are virtual, wall");
    }
    network.clock = *clock;
    return {};
  }
  if (name == "lower") {
    if (value != "yes" && value != "no") {
      return invalid_argument("lower is '" + std::string(value) + "'; allowed are yes, no");
    }
    network.lower = value == "yes";
    return {};
  }
  if (name == "dilate") {
    const auto dilate = parse_dilation(name, value);
    if (dilate.ok()) network.dilate = *dilate;
    return dilate.status();
  }
  return invalid_argument("'" + std::string(part) +
                          "' is unknown; allowed are sync=, lower=, clock=, dilate=");
}

}  // namespace

Result<std::shared_ptr<const CallNetwork>> find_call_network(std::string_view text,
                                                             std::string_view argument) {
  auto network = std::make_shared<CallNetwork>();
  const bool content = text.starts_with('{');
  const std::size_t end = content ? std::string_view::npos : text.find(',');
  auto fabric = content ? parse_network(text, "custom")
                        : find_network(argument, std::string(text.substr(0, end)));
  if (!fabric.ok()) return fabric.status();
  network->fabric = *fabric;
  for (std::string_view rest = end == std::string_view::npos ? "" : text.substr(end + 1);
       !rest.empty();) {
    const std::size_t comma = rest.find(',');
    Status status = set(*network, rest.substr(0, comma));
    if (!status.ok()) return status;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return std::shared_ptr<const CallNetwork>(std::move(network));
}

namespace {

Status of_network(const Status& status) { return {status.code(), "network: " + status.text()}; }

}  // namespace

CallClock::CallClock(Fabric fabric, bool lower, const NetworkClockOptions& options,
                     std::shared_ptr<RankClocks> seats, const std::vector<int>& places,
                     std::byte* channels)
    : fabric_(std::move(fabric)),
      lower_(lower),
      clock_(options, std::move(seats), places, channels) {}

Result<std::unique_ptr<CallClock>> CallClock::make(const CallNetwork& network, int ranks,
                                                   const WaitPolicy& policy,
                                                   const SharedClock& shared) {
  auto fabric = wired_for(network.fabric, ranks);
  if (!fabric.ok()) return of_network(fabric.status());
  // For whole bytes the time unit depends only on the fabric.
  const auto pricing =
      Pricing::make(*fabric, {.collective = Collective::broadcast, .ranks = ranks}, 0, false);
  if (!pricing.ok()) return of_network(pricing.status());
  std::vector<int> places = fabric->places;
  if (places.empty()) {
    places.resize(static_cast<std::size_t>(ranks));
    std::iota(places.begin(), places.end(), 0);
  }
  const int size = fabric->places_among(ranks);
  if (network.seats != nullptr && network.seats->size() != size) {
    return invalid_argument("network: seats has " + std::to_string(network.seats->size()) +
                            " places; allowed are " + std::to_string(size) +
                            ", as many as the network has");
  }
  NetworkClockOptions options{
      .sync = network.sync, .mode = network.clock, .ticks_per_second = pricing->ticks_per_second()};
  if (network.clock == ClockMode::wall) {
    options.dilate = network.dilate > 0
                         ? network.dilate
                         : machine_dilation(*fabric, ranks, cpu_budget().cpus, policy);
    // A rank that is late by half a message catches up before the next message ends.
    const double alpha = fabric->least_latency().to_double();
    if (network.tolerance_ns != 0) {
      options.tolerance_ns = network.tolerance_ns;
    } else if (alpha > 0) {
      options.tolerance_ns = saturated_ns(alpha * options.dilate / 2 * 1e9);
    }
  }
  auto seats = network.seats != nullptr ? network.seats
                                        : std::make_shared<RankClocks>(size, shared.origin_ns);
  return std::unique_ptr<CallClock>(new CallClock(std::move(*fabric), network.lower, options,
                                                  std::move(seats), places, shared.channels));
}

CallNetwork CallClock::among(const std::vector<Rank>& ranks) const {
  const NetworkClockOptions& options = clock_.options();
  CallNetwork network{.fabric = fabric_,
                      .sync = options.sync,
                      .lower = lower_,
                      .clock = options.mode,
                      .dilate = options.dilate,
                      .tolerance_ns = options.tolerance_ns,
                      .seats = clock_.shared_seats()};
  network.fabric.size = fabric_.places_among(clock_.ranks());
  network.fabric.places.clear();
  for (const Rank r : ranks) network.fabric.places.push_back(fabric_.place_of(r));
  return network;
}

Result<std::vector<Candidate>> CallClock::candidates(
    Collective collective, const Params& params, std::uint64_t m,
    const std::function<Status()>& may_go_on) const {
  auto all = predict(collective, params, m, fabric_,
                     {.sync = clock_.options().sync, .lower = lower_}, may_go_on);
  if (!all.ok()) return all;
  std::erase_if(
      *all, [](const Candidate& one) { return !one.ok() || !one.algorithm->other_bits.empty(); });
  return all;
}

Result<Candidate> CallClock::cheapest(Collective collective, const Algorithm* asked,
                                      const Params& params, std::uint64_t m,
                                      const std::function<Status()>& may_go_on) const {
  if (asked != nullptr) {
    auto one = predict_one(*asked, params, m, fabric_,
                           {.sync = clock_.options().sync, .lower = lower_}, may_go_on);
    if (one.ok() && !one->ok()) return invalid_argument(one->refusal);
    return one;
  }
  const auto all = candidates(collective, params, m, may_go_on);
  if (!all.ok()) return all.status();
  if (!all->empty()) return all->front();
  return invalid_argument("network: no algorithm of " + std::string(name_of(collective)) +
                          " can run on " + fabric_.name);
}

std::string CallClock::timing_report() const {
  if (clock_.options().mode != ClockMode::wall) return {};
  const NetworkReport kept = report();
  const Lateness& late = kept.lateness;
  return fmt::format(
      "{} on a wall clock, dilated {:g} times: {} of the model took {}; "
      "{} of {} deadlines missed by more than {}, the worst by {}",
      fabric_.name, kept.dilate, format_duration(kept.seconds), format_seconds(kept.elapsed),
      late.missed, late.deadlines,
      format_seconds(static_cast<double>(clock_.options().tolerance_ns) * 1e-9),
      format_seconds(static_cast<double>(late.worst_ns) * 1e-9));
}

NetworkReport CallClock::report() const {
  NetworkReport out;
  out.seconds = seconds(clock_.now());
  for (const Ticks end : clock_.round_end()) out.rounds.push_back(seconds(end));
  for (Rank r = 0; r < clock_.ranks(); ++r) {
    out.most_sent.push_back(clock_.sending(r).most());
    out.most_received.push_back(clock_.receiving(r).most());
  }
  if (clock_.options().mode != ClockMode::wall) return out;
  constexpr double kNs = 1e-9;
  out.dilate = clock_.options().dilate;
  out.elapsed = static_cast<double>(clock_.elapsed_ns()) * kNs;
  for (const std::int64_t ns : clock_.round_elapsed_ns()) {
    out.rounds_elapsed.push_back(static_cast<double>(ns) * kNs);
  }
  out.lateness = clock_.lateness();
  return out;
}

}  // namespace rankine
