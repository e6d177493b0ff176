// The outcomes of Trivance's statements on its evaluation. The paper's figures come from a packet
// simulator; figures.h says how they are recomputed here, in several ways. An outcome is the
// distance of the found range from the stated range.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/papers/claim.h"
#include "engine/papers/figures.h"

namespace rankine::reproduce {

std::span<const Statement> statements();  // the rows of trivance.toml

// One end of the found range.
struct Spot {
  double value = 0;
  std::string at;  // "6a, 32 KiB"
};

struct Outcome {
  const Statement* statement = nullptr;
  Spot low, high;
  // Distance from the stated range: percentage points, or a factor (1: inside).
  double distance = 0;
  bool agrees = false;
};

// Ways to compute the figures. The first three carry the same schedules. The tables' formulas have
// no hops; the printed distances of section 4.4 are no all-reduce where n is no power of three, so
// that they stand beside the others and decide nothing.
enum class By : unsigned char { eq_1, flow, packet, formulas, distances };
inline constexpr int kBy = 5;
std::string_view name_of(By by);  // "Eq. (1)", "flows", "packets", ...

// Returns true if no figure can show both statements: a gain above a bound and below it in one cell
// (panel, size, other algorithm), or two sizes at which the same panels change.
bool contradict(const Statement& a, const Statement& b);

// The verdict on a found range. An infinite size is beyond the figures' largest.
Outcome judged(const Statement& statement, Spot low, Spot high);
Outcome outcome_of(const Statement& statement, std::span<const Panel> panels);

// A time on a curve that a statement uses.
struct Point {
  const Panel* panel = nullptr;
  const Curve* curve = nullptr;
  Form form = Form::latency;
  double bytes = 0;

  double seconds() const { return panel->time(*curve, form, bytes); }
};
// The points of a statement by panel, for each curve that it compares: the (L) form at the least of
// the statement's sizes and the (B) form at the greatest.
std::vector<std::vector<Point>> points_of(const Statement& statement,
                                          std::span<const Panel> panels);

// The stated range with the distance allowed, and the found range: "5 to 30 %, within 0.5 points",
// "at least 20 %", "4 MiB, within a factor of 2".
std::string stated_text(const Statement& statement);
std::string found_text(const Outcome& outcome);
std::string verdict_text(const Outcome& outcome);  // "holds", "differs by 3.8 points"

}  // namespace rankine::reproduce
