// What Trivance's text says of its evaluation, and what comes out here. The paper's figures come
// from a simulator of packets; figures.h says what is computed here instead. The verdict is the
// distance of what is found from the range that the paper states.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/papers/claim.h"
#include "engine/papers/figures.h"

namespace rankine::reproduce {

std::span<const Statement> statements();  // those of trivance.toml

// One end of what was found.
struct Spot {
  double value = 0;
  std::string at;  // "6a, 32 KiB"
};

struct Outcome {
  const Statement* statement = nullptr;
  Spot low, high;
  // How far outside of the stated range: percentage points, or a factor (1: inside).
  double distance = 0;
  bool agrees = false;
};

// The verdict on a range that was found. Sizes of infinity are beyond the figures' largest.
Outcome judged(const Statement& statement, Spot low, Spot high);
Outcome outcome_of(const Statement& statement, std::span<const Panel> panels);
std::vector<Outcome> outcomes(std::span<const Panel> panels);

// A time that a statement is about.
struct Point {
  const Panel* panel = nullptr;
  const Curve* curve = nullptr;
  Form form = Form::latency;
  double bytes = 0;

  double seconds() const { return panel->time(*curve, form, bytes); }
};
// By panel, of every curve that it compares: the (L) form at the least of its sizes and the (B)
// form at the greatest, of what it looks at. Without what is of no schedule (as_printed).
std::vector<std::vector<Point>> points_of(const Statement& statement,
                                          std::span<const Panel> panels);

// "5 to 30 %", "at least 20 %", "4 MiB"; and of what was found.
std::string stated_text(const Statement& statement);
std::string found_text(const Outcome& outcome);
std::string verdict_text(const Outcome& outcome);  // "agrees", "differs by 3.8 points"

}  // namespace rankine::reproduce
