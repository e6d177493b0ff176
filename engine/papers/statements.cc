#include "engine/papers/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rankine::reproduce {
namespace {

constexpr double kKi = 1024, kMi = 1024 * kKi;
constexpr double kEnd = 128 * kMi;
// Whole percents; numbers that the paper rounds to fives or calls approximate.
constexpr double kWhole = 0.5, kRough = 2.5;
// Sizes are marks of the figures, which stand a factor of two apart.
constexpr double kMark = 2;
constexpr double kHundredths = 1.05;

constexpr std::string_view kAll = "6a 6b 7a 7b 8 9 10";
constexpr std::string_view kFull = "6a 6b 7a 7b 9 10";  // at 800 Gb/s

constexpr std::string_view kTogether =
    "Eq. (1) ends a round for all ranks at once, with its slowest message; in a network of packets "
    "ranks go on as soon as they can";
constexpr std::string_view kOptimum =
    "by tables 1 and 2 and their sums Swing (B) has the lower delay at every n, so for large "
    "enough vectors it must be faster under Eq. (1)";

// clang-format off
constexpr Statement kStatements[] = {
    {"trivance-0-2d", "Abstract; 1",
     "\"improves the completion time of AllReduce by 5-30% for message sizes up to 8 MiB for 2D tori\"",
     Measure::gain, "7a 7b", "", 32, 8 * kMi, 5, 30, kWhole,
     "overtaken by Swing just before that on the 8 x 8 and 32 x 32 torus; against Recursive doubling and Bucket gains are larger"},
    {"trivance-0-bandwidth", "Abstract; 1",
     "\"in high-bandwidth settings up to 32 MiB\" (2400 and 3200 Gb/s: faster than all others)",
     Measure::overtaken, "8-2400 8-3200", "", 0, 0, 32 * kMi, 32 * kMi, kMark, ""},
    {"trivance-0-3d", "Abstract; 1",
     "\"for 3D tori, Trivance outperforms state-of-the-art algorithms even for AllReduce sizes of 128 MiB\"",
     Measure::gain, "10", "", kEnd, kEnd, 0, kNoLimit, 0, kOptimum},
    {"trivance-0-best-latency", "Abstract; 6; 6.2; 6.4",
     "\"throughout the evaluation, Trivance remains the best-performing latency-optimal algorithm\" (all (L) forms, all sizes)",
     Measure::latency_gain, kAll, "", 32, kEnd, 0, kNoLimit, 0,
     "Swing (L) carries less over the busiest links of a ring (n/3 to n/2), so it is the faster (L) form for large vectors, for which nobody takes an (L) form"},
    {"trivance-6-latency-bound", "6",
     "\"the best performing latency-optimal algorithm in latency-bound scenarios\" ((L) forms, up to 8 KiB)",
     Measure::latency_gain, kAll, "", 32, 8 * kKi, 0, kNoLimit, 0, ""},
    {"trivance-0-congestion", "Abstract; 1; 9",
     "\"reducing congestion compared to Bruck's algorithm by a factor of three\" (with the shortest paths of the evaluation)",
     Measure::delay, kFull, "Bruck", 0, 0, 3, 3, kHundredths,
     "three is right where Bruck sends everything one way round; by shortest paths its costliest round is no worse than Trivance's, and in the (L) form it has 5/3 of the delay in the limit"},
    {"trivance-6-small", "6",
     "\"across all evaluated topologies, Trivance reduces completion time by 5-30%\" (small messages: up to 32 KiB)",
     Measure::gain, kAll, "", 32, 32 * kKi, 5, 30, kWhole,
     "on the ring of 64 Swing (L) is ahead around 32 KiB, as 6.1 says itself"},
    {"trivance-6-rings", "6",
     "\"this advantage persists for message sizes up to 512 KiB in ring networks\"",
     Measure::overtaken, "6a 6b", "", 0, 0, 512 * kKi, 512 * kKi, kMark, ""},
    {"trivance-6-tori", "6",
     "\"and extends to 8 MiB in multidimensional tori\"",
     Measure::latest_overtaken, "7a 7b", "", 0, 0, 8 * kMi, 8 * kMi, kMark, ""},
    {"trivance-6-high-bandwidth", "6",
     "\"while up to 32 MiB in high bandwidth networks\" (2400 and 3200 Gb/s)",
     Measure::overtaken, "8-2400 8-3200", "", 0, 0, 32 * kMi, 32 * kMi, kMark, ""},
    {"trivance-6-3d", "6; 6.3; 6.4",
     "\"for 3D tori Trivance reduces completion time by 5-15% compared to all state-of-the-art approaches up to 128 MiB\"",
     Measure::gain, "10", "", 32, kEnd, 5, 15, kWhole, kOptimum},

    {"trivance-6.1-8-bruck", "6.1",
     "ring of 8: \"slightly reduces completion time compared to Bruck for small message sizes\" (by up to 10 %, up to 8 KiB)",
     Measure::gain, "6a", "Bruck", 32, 8 * kKi, 0, 10, kWhole, ""},
    {"trivance-6.1-8-twenty", "6.1",
     "ring of 8: \"more than a 20% performance advantage over Swing and Recursive Doubling\" (small messages, up to 8 KiB)",
     Measure::gain, "6a", "Swing, Recursive doubling", 32, 8 * kKi, 20, kNoLimit, kWhole, ""},
    {"trivance-6.1-8-fifteen", "6.1",
     "ring of 8: \"improves upon all existing approaches by up to 15% at 128 KiB\"",
     Measure::gain, "6a", "", 128 * kKi, 128 * kKi, 15, 15, kRough, kTogether},
    {"trivance-6.1-8-swing", "6.1",
     "ring of 8: \"the tradeoff point at which Swing matches the performance of Trivance occurs at 512 KiB\"",
     Measure::overtaken, "6a", "Swing", 0, 0, 512 * kKi, 512 * kKi, kMark, ""},
    {"trivance-6.1-8-beyond", "6.1",
     "ring of 8: \"beyond this point, Swing outperforms Trivance\"",
     Measure::gain, "6a", "Swing", kMi, kEnd, -kNoLimit, 0, 0, ""},
    {"trivance-6.1-8-bucket", "6.1",
     "ring of 8: \"starting at 4 MiB, the Bucket algorithm achieves the lowest completion time\"",
     Measure::wins_from, "6a", "Bucket", 0, 0, 4 * kMi, 4 * kMi, kMark, ""},
    {"trivance-6.1-64-bruck", "6.1",
     "ring of 64: \"Bruck performs significantly worse due to inefficient routing\" (by 10 % and more, from 32 KiB)",
     Measure::gain, "6b", "Bruck", 32 * kKi, kEnd, 10, kNoLimit, kWhole, ""},
    {"trivance-6.1-64-ten", "6.1",
     "ring of 64: \"outperforms all competing algorithms by approximately 10% for message sizes between 32 B and 8 KiB\"",
     Measure::gain, "6b", "", 32, 8 * kKi, 10, 10, kRough,
     "Bruck by shortest paths is nearer here: 43 links in a row to Trivance's 39 are all that sets them apart"},
    {"trivance-6.1-64-swing", "6.1",
     "ring of 64: Swing \"delays the transition to its bandwidth-optimal variant\" (to larger sizes than Trivance)",
     Measure::change_of_form, "6b", "Swing", 0, 0, 1, kNoLimit, 1, ""},
    {"trivance-6.1-64-swing-32k", "6.1",
     "ring of 64: \"at 32 KiB, Swing significantly improves\" (and is not behind Trivance)",
     Measure::gain, "6b", "Swing", 32 * kKi, 32 * kKi, -kNoLimit, 0, 0, ""},
    {"trivance-6.1-64-again", "6.1",
     "ring of 64: \"at 128 KiB and 256 KiB, Trivance again outperforms all existing approaches\"",
     Measure::gain, "6b", "", 128 * kKi, 256 * kKi, 0, kNoLimit, 0, ""},

    {"trivance-6.2-similar", "6.2",
     "\"the latency improvement of Trivance for small messages is similar\" on rings and 2D tori (within 5 points, up to 1 KiB)",
     Measure::spread, "6a 6b 7a 7b", "", 32, kKi, 0, 5, kWhole,
     "on the 32 x 32 torus Bruck's ways are longer: 21 links in a row to Trivance's 16 in every dimension"},
    {"trivance-6.2-8x8", "6.2",
     "8 x 8: \"the tradeoff point shifts to higher message sizes, reaching 4 MiB\"",
     Measure::overtaken, "7a", "", 0, 0, 4 * kMi, 4 * kMi, kMark, ""},
    {"trivance-6-2d", "6.2",
     "8 x 8: \"outperforms all existing approaches by up to 25% for message sizes between 32 KiB and 2 MiB\"",
     Measure::greatest_gain, "7a", "", 32 * kKi, 2 * kMi, 25, 25, kRough, ""},
    {"trivance-6.2-8x8-all", "6.2",
     "8 x 8: outperforms all existing approaches at every size between 32 KiB and 2 MiB",
     Measure::gain, "7a", "", 32 * kKi, 2 * kMi, 0, kNoLimit, 0, ""},
    {"trivance-6.2-32x32", "6.2",
     "32 x 32: \"the tradeoff point shifts further to the right, reaching 8 MiB\"",
     Measure::overtaken, "7b", "", 0, 0, 8 * kMi, 8 * kMi, kMark, ""},
    {"trivance-6.2-six", "6.2",
     "32 x 32, 200 to 3200 Gb/s: \"reduces completion time by 6-14% for message sizes up to 2 MiB\"",
     Measure::gain, "8", "", 32, 2 * kMi, 6, 14, kWhole,
     "more around 100 KiB, where all change to their (B) forms; at 200 Gb/s Swing is ahead before 2 MiB"},
    {"trivance-6.2-independent", "6.2",
     "\"the performance improvement for small message sizes is largely independent of bandwidth\" (within 1 point, up to 512 B)",
     Measure::spread, "8", "", 32, 512, 0, 1, kWhole, ""},
    {"trivance-6.2-low", "6.2",
     "\"at lower bandwidths [...] bandwidth optimized approaches surpass Trivance at approximately 4 MiB\" (200 and 400 Gb/s)",
     Measure::overtaken, "8-200 8-400", "", 0, 0, 4 * kMi, 4 * kMi, kMark,
     "under Eq. (1) the size is proportional to the bandwidth, so that of 200 Gb/s is half that of 400"},
    {"trivance-6-bandwidth", "6.2",
     "\"extending up to 64 MiB for networks operating at 2.4 Tb/s and 3.2 Tb/s\"",
     Measure::overtaken, "8-2400 8-3200", "", 0, 0, 64 * kMi, 64 * kMi, kMark,
     "under Eq. (1) the size is proportional to the bandwidth: from 7 MB at 800 Gb/s to four times that; the abstract's 32 MiB fits"},
    {"trivance-6.2-27-bruck", "6.2",
     "27 x 27: \"for small message sizes, the comparison with Bruck matches earlier results of 5% improvement\" (up to 1 KiB)",
     Measure::gain, "9", "Bruck", 32, kKi, 5, 5, kRough,
     "a network of packets starts the next round of a rank as soon as its own messages are there; here the farthest message sets the pace, and Bruck's goes 17 links to Trivance's 13 in every dimension"},
    {"trivance-6.2-27-ten", "6.2",
     "27 x 27: \"a 10% performance gain for messages larger than 32 KiB\" (64 to 512 KiB)",
     Measure::gain, "9", "", 64 * kKi, 512 * kKi, 10, kNoLimit, kWhole, ""},
    {"trivance-6.2-27-fifty", "6.2",
     "27 x 27: \"exceeding 50% for messages larger than 512 KiB\" (1 to 16 MiB)",
     Measure::gain, "9", "", kMi, 16 * kMi, 50, kNoLimit, kWhole,
     "44 % at 1 MiB, beyond 50 % from 2 MiB on"},
    {"trivance-6-27", "6.2",
     "27 x 27: \"even at 32 MiB, Trivance continues to outperform Bucket and Bruck more than 40%\"",
     Measure::gain, "9", "", 32 * kMi, 32 * kMi, 40, kNoLimit, kWhole, ""},
    {"trivance-6.2-27-bucket", "6.2",
     "27 x 27: \"with Bucket only matching the performance of Trivance at 128 MiB\"",
     Measure::overtaken, "9", "Bucket", 0, 0, kEnd, kEnd, kMark, ""},

    {"trivance-6.3-all", "6.3",
     "16 x 16 x 16: \"outperforms all existing approaches across the entire message size spectrum up to 128 MiB\"",
     Measure::gain, "10", "", 32, kEnd, 0, kNoLimit, 0, kOptimum},
    {"trivance-6.3-eight", "6.3",
     "16 x 16 x 16: \"even at 128 MiB, it reduces the total completion time by 8% compared to [...] Swing\"",
     Measure::gain, "10", "Swing", kEnd, kEnd, 8, 8, kWhole, kOptimum},

    {"trivance-6.4-moderate", "6.4",
     "\"an improvement of 5-30% for small and moderate message sizes\" (up to 512 KiB, at 800 Gb/s)",
     Measure::gain, kFull, "", 32, 512 * kKi, 5, 30, kWhole,
     "on the ring of 64 Swing (L) is ahead around 32 KiB, as 6.1 says itself"},
    {"trivance-6.4-dimensions", "6.4",
     "\"the tradeoff point shifting toward larger message sizes in higher-dimensional\" tori (rings, 8 x 8, 32 x 32, 16 x 16 x 16)",
     Measure::shift, "6b 7a 7b 10", "", 0, 0, 1, kNoLimit, 1, ""},
    {"trivance-6.4-bandwidths", "6.4",
     "\"and higher-bandwidth tori\"",
     Measure::shift, "8", "", 0, 0, 1, kNoLimit, 1, ""},
    {"trivance-6.4-27-fifty", "6.4",
     "27 x 27: \"improves over Bruck and Bucket by up to 50%\"",
     Measure::greatest_gain, "9", "", 32, kEnd, 50, 50, kRough,
     "6.2 has more than 50 % itself; where Bruck has become slow and Bucket is not yet fast, both take more than twice the time"},
    {"trivance-6.4-27-best", "6.4",
     "27 x 27: \"remains the best-performing algorithm for message sizes up to 128 MiB\"",
     Measure::gain, "9", "", 32, kEnd, 0, kNoLimit, kRough,
     "Bucket is ahead from 99 MiB on: its delay is the optimum, Trivance's 1.28 of it"},

    {"trivance-9-32m", "9",
     "\"depending on dimensionality, network size and parameter, this holds up to 32 MiB message sizes\" (tori of powers of two)",
     Measure::latest_overtaken, "6a 6b 7a 7b 8 10", "", 0, 0, 32 * kMi, 32 * kMi, kMark, ""},
};
// clang-format on

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

// The others that there are in the panel; throws where there is none.
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

// Of what was found: the least and the greatest, and where.
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

// Percents.
double gain_over(const Panel& panel, const std::vector<const Curve*>& others, double bytes,
                 bool latency) {
  double least = kNoLimit;
  for (const Curve* other : others) {
    if (latency && other->latency == nullptr) continue;
    const double time =
        latency ? panel.time(*other, Form::latency, bytes) : panel.time(*other, bytes);
    const double own = latency ? panel.time(panel.trivance(), Form::latency, bytes)
                               : panel.time(panel.trivance(), bytes);
    least = std::min(least, 100 * (time / own - 1));
  }
  return least;
}

// From where on one of the others is faster at all sizes up to the largest; infinite where none is.
double overtaken(const Panel& panel, const std::vector<const Curve*>& others) {
  constexpr double kGrid = 1.02, kNear = 1 + 1e-6;
  const auto behind = [&](double m) { return gain_over(panel, others, m, false) < 0; };
  if (!behind(kEnd)) return kNoLimit;
  double above = kEnd, below = kEnd;
  while (below > 1 && behind(below)) {
    above = below;
    below /= kGrid;
  }
  while (above / below > kNear) {
    const double middle = (above + below) / 2;
    (behind(middle) ? above : below) = middle;
  }
  return above;
}

double wins_from(const Panel& panel, const Curve& curve) {
  double from = kNoLimit;
  const Curve* leader = &panel.fastest(kEnd);
  if (leader != &curve) return from;
  for (const Crossover& crossover : crossovers(panel)) from = crossover.bytes;
  return from;
}

}  // namespace

std::string_view name_of(Measure measure) {
  constexpr std::string_view kNames[] = {
      "gain",  "greatest_gain", "latency_gain",   "spread", "overtaken", "latest_overtaken",
      "shift", "wins_from",     "change_of_form", "delay"};
  return kNames[static_cast<std::size_t>(measure)];
}

std::string_view name_of(Unit unit) {
  constexpr std::string_view kNames[] = {"percent", "bytes", "factor"};
  return kNames[static_cast<std::size_t>(unit)];
}

Unit unit_of(Measure measure) {
  switch (measure) {
    case Measure::gain:
    case Measure::greatest_gain:
    case Measure::latency_gain:
    case Measure::spread:
      return Unit::percent;
    case Measure::overtaken:
    case Measure::latest_overtaken:
    case Measure::wins_from:
      return Unit::bytes;
    case Measure::shift:
    case Measure::change_of_form:
    case Measure::delay:
      return Unit::factor;
  }
  return Unit::factor;
}

std::span<const Statement> statements() { return kStatements; }

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
  const auto sizes = [&statement] {
    std::vector<double> out;
    for (const std::uint64_t m : figure_sizes()) {
      const auto bytes = static_cast<double>(m);
      if (bytes >= statement.from && bytes <= statement.to) out.push_back(bytes);
    }
    return out;
  };
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

std::vector<Outcome> outcomes(std::span<const Panel> panels) {
  std::vector<Outcome> out;
  for (const Statement& statement : kStatements) out.push_back(outcome_of(statement, panels));
  return out;
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
  return range_text(statement.low, statement.high, unit_of(statement.measure));
}

std::string found_text(const Outcome& outcome) {
  const std::string range =
      range_text(outcome.low.value, outcome.high.value, unit_of(outcome.statement->measure));
  if (outcome.low.at == outcome.high.at) return fmt::format("{} ({})", range, outcome.low.at);
  return fmt::format("{} ({}; {})", range, outcome.low.at, outcome.high.at);
}

std::string verdict_text(const Outcome& outcome) {
  if (outcome.agrees) return "agrees";
  if (unit_of(outcome.statement->measure) == Unit::percent) {
    return fmt::format("differs by {:.3g} points", outcome.distance);
  }
  return fmt::format("differs by a factor of {:.3g}", outcome.distance);
}

}  // namespace rankine::reproduce
