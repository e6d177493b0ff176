#include "engine/papers/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/papers/claim.h"
#include "engine/papers/figures.h"

namespace rankine::reproduce {
namespace {

constexpr double kKi = 1024, kMi = 1024 * kKi;
constexpr double kEnd = 128 * kMi;
std::vector<std::string_view> words(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + separator.size()));
  }
  return out;
}

std::vector<const Panel*> panels_of(const Statement& statement, std::span<const Panel> all) {
  std::vector<const Panel*> out;
  for (const std::string_view id : words(statement.panels, " ")) {
    const std::size_t before = out.size();
    for (const Panel& panel : all) {
      if (panel.spec.id == id || panel.spec.id.starts_with(std::string(id) + "-")) {
        out.push_back(&panel);
      }
    }
    if (out.size() == before) {
      throw std::logic_error("statement '" + std::string(statement.id) + "': no panel '" +
                             std::string(id) + "'");
    }
  }
  return out;
}

// The statement's other curves in the panel. Throws std::logic_error if the panel has none of them.
std::vector<const Curve*> others_of(const Statement& statement, const Panel& panel) {
  std::vector<const Curve*> out;
  if (statement.others.empty()) {
    for (const Curve& curve : panel.curves) {
      if (&curve != &panel.trivance()) out.push_back(&curve);
    }
  }
  for (const std::string_view name : words(statement.others, ", ")) {
    if (const Curve* curve = panel.find(name)) out.push_back(curve);
  }
  if (out.empty()) {
    throw std::logic_error("statement '" + std::string(statement.id) + "': no such curve in " +
                           std::string(panel.spec.id));
  }
  return out;
}

std::string size_text(double bytes) {
  if (std::isinf(bytes)) return fmt::format("beyond {:.0f} MiB", kEnd / kMi);
  if (bytes < kKi) return fmt::format("{:.0f} B", bytes);
  const bool kilo = bytes < kMi;
  return fmt::format("{:.3g} {}", bytes / (kilo ? kKi : kMi), kilo ? "KiB" : "MiB");
}

std::vector<double> sizes_between(double from, double to) {
  std::vector<double> out;
  for (const std::uint64_t m : figure_sizes()) {
    const auto bytes = static_cast<double>(m);
    if (bytes >= from && bytes <= to) out.push_back(bytes);
  }
  return out;
}

// The found range: the least and the greatest value, and their places.
class Range {
 public:
  void add(double value, const std::string& at) {
    if (empty_ || value < low_.value) low_ = {value, at};
    if (empty_ || value > high_.value) high_ = {value, at};
    empty_ = false;
  }
  const Spot& low() const { return low_; }
  const Spot& high() const { return high_; }

 private:
  Spot low_, high_;
  bool empty_ = true;
};

// Gain in percent.
double gain_over(const Panel& panel, const std::vector<const Curve*>& others, double bytes,
                 bool latency) {
  const std::optional<Form> only = latency ? std::optional(Form::latency) : std::nullopt;
  const Curve* const trivance = &panel.trivance();
  return 100 *
         (panel.least_time(others, bytes, only) / panel.least_time({&trivance, 1}, bytes, only) -
          1);
}

// The size from which one of the first curves is faster than all of the second at all sizes up to
// the largest; infinite if there is no such size.
double faster_from(const Panel& panel, const std::vector<const Curve*>& first,
                   const std::vector<const Curve*>& second) {
  // Carrying is slow, and its times jump with the number of packets: the grid has only the figures'
  // sizes.
  const bool carried = panel.carriage != nullptr;
  const double grid = carried ? 2 : 1.02, near = 1 + (carried ? 1e-2 : 1e-6);
  const auto faster = [&](double m) {
    return panel.least_time(first, m) < panel.least_time(second, m);
  };
  if (!faster(kEnd)) return kNoLimit;
  double above = kEnd, below = kEnd;
  while (below > 1 && faster(below)) {
    above = below;
    below /= grid;
  }
  while (above / below > near) {
    const double middle = (above + below) / 2;
    (faster(middle) ? above : below) = middle;
  }
  return above;
}

double overtaken(const Panel& panel, const std::vector<const Curve*>& others) {
  return faster_from(panel, others, {&panel.trivance()});
}

double wins_from(const Panel& panel, const Curve& curve) {
  std::vector<const Curve*> rest;
  for (const Curve& each : panel.curves) {
    if (&each != &curve) rest.push_back(&each);
  }
  return faster_from(panel, {&curve}, rest);
}

}  // namespace

std::span<const Statement> statements() { return claims::find_paper("trivance")->statements; }

Outcome judged(const Statement& statement, Spot low, Spot high) {
  Outcome out{&statement, std::move(low), std::move(high)};
  if (unit_of(statement.measure) == Unit::percent) {
    out.distance = std::max({0.0, statement.low - out.low.value, out.high.value - statement.high});
  } else {
    out.distance = std::max({1.0, statement.low / out.low.value, out.high.value / statement.high});
  }
  out.agrees = out.distance <= statement.allowed;
  return out;
}

Outcome outcome_of(const Statement& statement, std::span<const Panel> all) {
  Range found;
  const std::vector<const Panel*> chosen = panels_of(statement, all);
  const auto sizes = [&statement] { return sizes_between(statement.from, statement.to); };
  const auto at = [](const Panel& panel) { return std::string(panel.spec.id); };
  switch (statement.measure) {
    case Measure::gain:
    case Measure::latency_gain:
      for (const Panel* panel : chosen) {
        const auto others = others_of(statement, *panel);
        for (const double m : sizes()) {
          found.add(gain_over(*panel, others, m, statement.measure == Measure::latency_gain),
                    at(*panel) + ", " + size_text(m));
        }
      }
      break;
    case Measure::greatest_gain:
      for (const Panel* panel : chosen) {
        const auto others = others_of(statement, *panel);
        Range of_panel;
        for (const double m : sizes()) {
          of_panel.add(gain_over(*panel, others, m, false), at(*panel) + ", " + size_text(m));
        }
        found.add(of_panel.high().value, of_panel.high().at);
      }
      break;
    case Measure::spread:
      for (const double m : sizes()) {
        Range of_size;
        for (const Panel* panel : chosen) {
          of_size.add(gain_over(*panel, others_of(statement, *panel), m, false), at(*panel));
        }
        found.add(of_size.high().value - of_size.low().value,
                  of_size.low().at + " and " + of_size.high().at + ", " + size_text(m));
      }
      break;
    case Measure::overtaken:
    case Measure::latest_overtaken: {
      Range each;
      for (const Panel* panel : chosen) {
        each.add(overtaken(*panel, others_of(statement, *panel)), at(*panel));
      }
      if (statement.measure == Measure::overtaken) found.add(each.low().value, each.low().at);
      found.add(each.high().value, each.high().at);
      break;
    }
    case Measure::shift:
      for (std::size_t i = 1; i < chosen.size(); ++i) {
        const Panel &before = *chosen[i - 1], &after = *chosen[i];
        found.add(overtaken(after, others_of(statement, after)) /
                      overtaken(before, others_of(statement, before)),
                  at(before) + " to " + at(after));
      }
      break;
    case Measure::wins_from:
      for (const Panel* panel : chosen) {
        found.add(wins_from(*panel, *others_of(statement, *panel).front()), at(*panel));
      }
      break;
    case Measure::change_of_form:
      for (const Panel* panel : chosen) {
        const auto other = panel->change_of_form(*others_of(statement, *panel).front());
        const auto own = panel->change_of_form(panel->trivance());
        if (!other || !own) throw std::logic_error("no change of form in " + at(*panel));
        found.add(*other / *own, at(*panel));
      }
      break;
    case Measure::delay:
      for (const Panel* panel : chosen) {
        const Curve& other = *others_of(statement, *panel).front();
        const Curve& own = panel->trivance();
        const auto ratio = [](const Profile* a, const Profile* b) {
          return static_cast<double>(a->total_load()) / static_cast<double>(a->per_m) /
                 (static_cast<double>(b->total_load()) / static_cast<double>(b->per_m));
        };
        found.add(ratio(other.latency, own.latency), at(*panel) + ", L");
        found.add(ratio(other.bandwidth, own.bandwidth), at(*panel) + ", B");
      }
      break;
  }
  return judged(statement, found.low(), found.high());
}

std::vector<std::vector<Point>> points_of(const Statement& statement,
                                          std::span<const Panel> panels) {
  // Measures other than gains use all sizes.
  const std::vector<double> sizes =
      statement.to > 0 ? sizes_between(statement.from, statement.to) : sizes_between(0, kEnd);
  std::vector<std::vector<Point>> out;
  for (const Panel* panel : panels_of(statement, panels)) {
    std::vector<const Curve*> curves = others_of(statement, *panel);
    curves.push_back(&panel->trivance());
    out.emplace_back();
    for (const Curve* curve : curves) {
      if (curve->latency != nullptr) {
        out.back().push_back({panel, curve, Form::latency, sizes.front()});
      }
      if (curve->bandwidth != nullptr && statement.measure != Measure::latency_gain) {
        out.back().push_back({panel, curve, Form::bandwidth, sizes.back()});
      }
    }
  }
  return out;
}

std::string_view name_of(By by) {
  constexpr std::string_view kNames[kBy] = {"Eq. (1)", "flows", "packets",
                                            "the formulas of tables 1 and 2",
                                            "Eq. (1) at the distances of 4.4"};
  return kNames[static_cast<std::size_t>(by)];
}

bool contradict(const Statement& a, const Statement& b) {
  const auto among = [](std::string_view text, std::string_view separator) {
    return [words = words(text, separator)](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
  };
  const bool sizes = unit_of(a.measure) == Unit::bytes;
  if (sizes) {
    return a.measure == b.measure && a.panels == b.panels && a.others == b.others &&
           (a.high < b.low || b.high < a.low);
  }
  const auto excludes = [&](const Statement& above, const Statement& below) {
    if (above.measure != Measure::gain || above.low <= below.high) return false;
    if (below.measure != Measure::gain && below.measure != Measure::greatest_gain) return false;
    if (sizes_between(std::max(above.from, below.from), std::min(above.to, below.to)).empty()) {
      return false;
    }
    const auto panels = words(below.panels, " "), others = words(below.others, ", ");
    // A gain over some algorithms is at least that over more of them.
    const bool all =
        above.others.empty() ||
        (!others.empty() && std::all_of(others.begin(), others.end(), among(above.others, ", ")));
    return all && std::any_of(panels.begin(), panels.end(), among(above.panels, " "));
  };
  return excludes(a, b) || excludes(b, a);
}

namespace {

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::percent:
      return fmt::format("{:.3g}", value);
    case Unit::bytes:
      return size_text(value);
    case Unit::factor:
      return fmt::format("{:.3g}", value);
  }
  return {};
}

std::string range_text(double low, double high, Unit unit) {
  const std::string_view end = unit == Unit::percent ? " %" : "";
  const auto text = [unit](double value) { return value_text(value, unit); };
  if (low == high || text(low) == text(high)) return text(low) + std::string(end);
  if (low == -kNoLimit) return fmt::format("at most {}{}", text(high), end);
  if (high == kNoLimit && unit != Unit::bytes) return fmt::format("at least {}{}", text(low), end);
  return fmt::format("{} to {}{}", text(low), text(high), end);
}

}  // namespace

std::string stated_text(const Statement& statement) {
  const Unit unit = unit_of(statement.measure);
  const std::string range = range_text(statement.low, statement.high, unit);
  if (unit == Unit::percent) {
    return statement.allowed == 0
               ? range
               : fmt::format("{}, within {:.3g} points", range, statement.allowed);
  }
  return statement.allowed == 1
             ? range
             : fmt::format("{}, within a factor of {:.3g}", range, statement.allowed);
}

std::string found_text(const Outcome& outcome) {
  const std::string range =
      range_text(outcome.low.value, outcome.high.value, unit_of(outcome.statement->measure));
  if (outcome.low.at == outcome.high.at) return fmt::format("{} ({})", range, outcome.low.at);
  return fmt::format("{} ({}; {})", range, outcome.low.at, outcome.high.at);
}

std::string verdict_text(const Outcome& outcome) {
  if (outcome.agrees) return "holds";
  if (unit_of(outcome.statement->measure) == Unit::percent) {
    return fmt::format("differs by {:.3g} points", outcome.distance);
  }
  return fmt::format("differs by a factor of {:.3g}", outcome.distance);
}

}  // namespace rankine::reproduce
