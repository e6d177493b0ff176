// Two reports of perf, row by row: which times changed, and whether by more than they scatter.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace rankine::tools {

// What is measured of one row in one place.
struct MeasuredTime {
  std::string row;  // "8 f32 sum root -1", and whatever else tells rows apart
  std::size_t bytes = 0;
  std::string algorithm{};         // empty: the report does not say
  double us = 0;                   // the median over cycles, where a row was measured several times
  std::optional<double> spread{};  // relative: half the distance of the quartiles
};

struct PerfFile {
  std::string collective{};  // empty: it does not say, as nccl-tests' do not
  int ranks = 0;             // likewise 0
  std::string started{};
  std::vector<MeasuredTime> times{};  // in the file's order, each row once

  // perf's JSON, or nccl-tests' own. Errors name `file`, and what it lacks.
  static Result<PerfFile> parse(const std::string& file, std::string_view text);
};

struct ComparedRow {
  MeasuredTime a, b;
  double ratio = 1;               // b's time over a's
  std::optional<double> noise{};  // the sum of both spreads; none: neither file has one

  bool slower() const { return ratio > 1 + noise.value_or(0); }
  bool faster() const { return 1 / ratio > 1 + noise.value_or(0); }
};

struct Comparison {
  std::vector<ComparedRow> rows{};  // that both have, in a's order
  std::vector<std::string> only_a{}, only_b{};
  double geometric_mean() const;  // of the ratios
};

// Rows go together that ask for the same; algorithms count where a file has several for a row.
// Errors: other collectives or ranks, and no row in common.
Result<Comparison> compare_files(const PerfFile& a, const PerfFile& b);

}  // namespace rankine::tools
