#include "engine/papers/figures.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>

#include "algorithms/schedule/schedule.h"
#include "engine/network/fabric.h"
#include "engine/papers/tables.h"

namespace rankine::reproduce {
namespace {

constexpr std::uint64_t kSmallest = 32, kLargest = std::uint64_t{128} << 20;

const std::vector<PanelSpec>& specs() {
  static const std::vector<PanelSpec> kSpecs = {
      {"6a", "Figure 6a: ring of 8", {8}},
      {"6b", "Figure 6b: ring of 64", {64}},
      {"7a", "Figure 7a: 8 x 8 torus", {8, 8}},
      {"7b", "Figure 7b: 32 x 32 torus", {32, 32}},
      {"8-200", "Figure 8: 32 x 32 torus, 200 Gb/s", {32, 32}, 200},
      {"8-400", "Figure 8: 32 x 32 torus, 400 Gb/s", {32, 32}, 400},
      {"8-800", "Figure 8: 32 x 32 torus, 800 Gb/s", {32, 32}, 800},
      {"8-1600", "Figure 8: 32 x 32 torus, 1600 Gb/s", {32, 32}, 1600},
      {"8-2400", "Figure 8: 32 x 32 torus, 2400 Gb/s", {32, 32}, 2400},
      {"8-3200", "Figure 8: 32 x 32 torus, 3200 Gb/s", {32, 32}, 3200},
      {"9", "Figure 9: 27 x 27 torus", {27, 27}},
      {"10", "Figure 10: 16 x 16 x 16 torus", {16, 16, 16}},
  };
  return kSpecs;
}

ProfileKey key_of(const Contender& contender, Form form, const std::vector<int>& dims) {
  return {std::string(contender.line(form)), dims, Routing::minimal};
}

// The contender's forms on these sizes. If the paper runs it only on powers of two, there are none
// on other sizes, because the catalogue's folded forms are not the paper's.
std::vector<Form> forms_of(const Contender& contender, const std::vector<int>& dims) {
  if (contender.powers_of_two && !std::all_of(dims.begin(), dims.end(), is_power_of_two)) return {};
  std::vector<Form> forms;
  for (const Form form : {Form::latency, Form::bandwidth}) {
    if (contender.line(form).empty()) continue;
    forms.push_back(form);
  }
  return forms;
}

// The size at which test() changes between two sizes: false below, true above.
double boundary(double below, double above, const std::function<bool(double)>& test) {
  constexpr double kNear = 1e-6;
  while (above / below > 1 + kNear) {
    const double middle = (below + above) / 2;
    (test(middle) ? above : below) = middle;
  }
  return above;
}

}  // namespace

std::span<const PanelSpec> panel_specs() { return specs(); }

std::vector<std::uint64_t> figure_sizes() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t m = kSmallest; m <= kLargest; m *= 2) sizes.push_back(m);
  return sizes;
}

const Curve* Panel::find(std::string_view contender) const {
  for (const Curve& curve : curves) {
    if (curve.contender->name == contender) return &curve;
  }
  return nullptr;
}

double Panel::time(const Curve& curve, Form form, double bytes) const {
  const Profile* profile = form == Form::latency ? curve.latency : curve.bandwidth;
  if (profile == nullptr)
    throw std::logic_error("no such form of " + std::string(curve.contender->name));
  if (carriage != nullptr) return carriage->seconds(*profile, spec.gigabits, bytes);
  static const Fabric& kNetwork = find_regime("torus")->fabric;
  constexpr double kBytesPerGigabit = 1e9 / 8;
  return profile->time(kNetwork.link.alpha.to_double(), kNetwork.alpha_hop.to_double(),
                       1 / (spec.gigabits * kBytesPerGigabit), bytes);
}

Form Panel::form(const Curve& curve, double bytes) const {
  if (curve.latency == nullptr) return Form::bandwidth;
  return time(curve, Form::bandwidth, bytes) < time(curve, Form::latency, bytes) ? Form::bandwidth
                                                                                 : Form::latency;
}

double Panel::time(const Curve& curve, double bytes) const {
  const Curve* const one = &curve;
  return least_time({&one, 1}, bytes);
}

double Panel::least_time(std::span<const Curve* const> among, double bytes,
                         std::optional<Form> only) const {
  struct Candidate {
    double at_least;
    const Curve* curve;
    Form form;
  };
  std::vector<Candidate> candidates;
  for (const Curve* curve : among) {
    for (const Form form : {Form::latency, Form::bandwidth}) {
      const Profile* profile = form == Form::latency ? curve->latency : curve->bandwidth;
      if (profile == nullptr || (only && form != *only)) continue;
      candidates.push_back({carriage == nullptr
                                ? time(*curve, form, bytes)
                                : carriage->at_least(*profile, spec.gigabits, bytes),
                            curve, form});
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.at_least < b.at_least; });
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& each : candidates) {
    if (each.at_least >= least) break;
    least = std::min(least, time(*each.curve, each.form, bytes));
  }
  return least;
}

std::string Panel::trivance_lines() {
  const Contender& of = reproduce::trivance();
  return std::string(of.latency) + " (L), " + std::string(of.bandwidth) + " (B)";
}

double Panel::gain(const Curve& curve, double bytes) const {
  return time(curve, bytes) / time(trivance(), bytes) - 1;
}

const Curve& Panel::rival(double bytes) const {
  return *std::min_element(curves.begin(), curves.end() - 1, [&](const Curve& a, const Curve& b) {
    return time(a, bytes) < time(b, bytes);
  });
}

const Curve& Panel::fastest(double bytes) const {
  const Curve& other = rival(bytes);
  return time(other, bytes) < time(trivance(), bytes) ? other : trivance();
}

std::optional<double> Panel::change_of_form(const Curve& curve) const {
  const auto large = [&](double m) { return form(curve, m) == Form::bandwidth; };
  const auto low = static_cast<double>(kSmallest), high = static_cast<double>(kLargest);
  if (curve.latency == nullptr || large(low) || !large(high)) return std::nullopt;
  // Both times are straight lines as long as the same message is the slowest of its round at all
  // sizes: they cross once.
  return boundary(low, high, large);
}

std::vector<Crossover> crossovers(const Panel& panel) {
  // Searches a fine grid: a very short lead between two of its points may be missed.
  constexpr double kGrid = 1.02;
  std::vector<Crossover> out;
  double at = static_cast<double>(kSmallest);
  const Curve* leader = &panel.fastest(at);
  while (at < static_cast<double>(kLargest)) {
    const double next = std::min(at * kGrid, static_cast<double>(kLargest));
    const Curve* leader_there = &panel.fastest(next);
    if (leader_there != leader) {
      const double where =
          boundary(at, next, [&](double m) { return &panel.fastest(m) != leader; });
      out.push_back({where, leader, leader_there});
      leader = leader_there;
    }
    at = next;
  }
  return out;
}

std::vector<ProfileKey> figure_keys() {
  std::vector<ProfileKey> keys;
  for (const PanelSpec& spec : specs()) {
    for (const Contender& contender : contenders()) {
      for (const Form form : forms_of(contender, spec.dims)) {
        keys.push_back(key_of(contender, form, spec.dims));
      }
    }
  }
  return keys;
}

std::vector<Panel> panels(Profiles& profiles) {
  profiles.work_out(figure_keys());
  std::vector<Panel> out;
  for (const PanelSpec& spec : specs()) {
    Panel panel{.spec = spec};
    for (const Contender& contender : contenders()) {
      Curve curve{.contender = &contender};
      for (const Form form : forms_of(contender, spec.dims)) {
        (form == Form::latency ? curve.latency : curve.bandwidth) =
            &profiles.at(key_of(contender, form, spec.dims));
      }
      if (curve.latency != nullptr || curve.bandwidth != nullptr) panel.curves.push_back(curve);
    }
    out.push_back(std::move(panel));
  }
  return out;
}

namespace {

std::vector<int> printed_distances(int size) {
  std::vector<int> out;
  int power = 1;
  for (; power * 3 <= size; power *= 3) out.push_back(power);
  if (power < size) out.push_back((size - power + 1) / 2);
  return out;
}

}  // namespace

Profile printed_trivance(const std::vector<int>& dims) {
  const auto dimensions = static_cast<std::int64_t>(dims.size());
  Profile profile{.ranks = 1, .per_m = dimensions, .rounds = {}, .sent = {}, .most_messages = 2};
  for (const int size : dims) profile.ranks *= size;
  std::int64_t sent = 0;
  for (const int distance : printed_distances(dims.front())) {
    // Each rank sends this far both ways, so each link carries `distance` messages of M / D. The
    // collectives take the dimensions in turns, so no two of them use a link at once.
    for (std::size_t turn = 0; turn < dims.size(); ++turn) {
      profile.rounds.push_back({{.hops = distance, .load = distance}});
      sent += 2 * dimensions;
    }
  }
  profile.sent.assign(static_cast<std::size_t>(profile.ranks), sent);
  profile.most_messages *= static_cast<int>(dimensions);
  return profile;
}

Panel at_printed_distances(Panel panel) {
  panel.own = std::make_shared<std::deque<Profile>>();
  panel.curves.back().latency = &panel.own->emplace_back(printed_trivance(panel.spec.dims));
  return panel;
}

Panel by_formulas(Panel panel) {
  panel.own = std::make_shared<std::deque<Profile>>();
  for (Curve& curve : panel.curves) {
    for (const Form form : {Form::latency, Form::bandwidth}) {
      const Profile*& profile = form == Form::latency ? curve.latency : curve.bandwidth;
      if (profile == nullptr) continue;
      profile =
          &panel.own->emplace_back(formula_profile(curve.contender->line(form), panel.spec.dims));
    }
  }
  return panel;
}

}  // namespace rankine::reproduce
