// What Trivance's text says of its evaluation, number by number, and what comes out here.
//
// A statement is data: what is measured, where, and the range in which the paper says it lies. The
// verdict is the distance of what is found from that range. The paper's figures come from a
// simulator of packets; figures.h says what is computed here instead.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/figures.h"

namespace rankine::reproduce {

enum class Measure : unsigned char {
  // By how much Trivance is faster than the fastest of the others, T / T of Trivance - 1, at every
  // size of the figures between `from` and `to`.
  gain,
  greatest_gain,     // the largest of these in each panel
  latency_gain,      // like gain, (L) forms among themselves
  spread,            // the most that gains at one size differ from panel to panel
  overtaken,         // the size from which on one of the others is faster for good, in every panel
  latest_overtaken,  // the largest of these
  shift,             // overtaken, each panel over the one before
  wins_from,         // the size from which on the one other is the fastest of all
  change_of_form,  // the size where the one other goes over from (L) to (B), over that of Trivance
  delay,           // Theta of the one other, each form, over that of Trivance
};
std::string_view name_of(Measure measure);

enum class Unit : unsigned char { percent, bytes, factor };
std::string_view name_of(Unit unit);
Unit unit_of(Measure measure);

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Statement {
  std::string_view id;  // never changes
  std::string_view where;
  std::string_view text;  // quoted or in short; in brackets how it is taken
  Measure measure;
  std::string_view panels;  // "6a 6b"; "8" stands for all of figure 8
  std::string_view others;  // "Swing, Bruck"; empty: all
  double from = 0, to = 0;  // bytes; of gains
  // The paper's range. kNoLimit where it has no end, percents as percents.
  double low = 0, high = kNoLimit;
  // How far outside is still agreement: percentage points, or the larger over the smaller.
  double allowed = 0;
  std::string_view why{};  // for people, where it is known
};
std::span<const Statement> statements();

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

// "5 to 30 %", "at least 20 %", "4 MiB"; and of what was found.
std::string stated_text(const Statement& statement);
std::string found_text(const Outcome& outcome);
std::string verdict_text(const Outcome& outcome);  // "agrees", "differs by 3.8 points"

}  // namespace rankine::reproduce
