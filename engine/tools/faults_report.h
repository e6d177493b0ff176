// What faults prints: a row per fault, what was broken and how to play it again; or what faults
// there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/faults/fault.h"
#include "engine/tools/console.h"

namespace rankine::tools {

struct FaultsReport {
  struct Row {
    const faults::Fault* fault;
    faults::Tally tally{};
    double seconds = 0;  // of all processes
  };
  std::vector<Row> rows{};
  faults::Tally total{};
  std::vector<std::string> again{};  // commands that play broken cases
  std::uint64_t seed = 1;
  double seconds = 0;
  bool processes = false;                          // ranks were processes
  int cycles = 0;                                  // that were asked for
  std::vector<const faults::Fault*> not_played{};  // of those asked for, where ranks are such
};

// The rows and the total.
FaultsReport report_of(const std::vector<faults::CaseResult>& results);

void print(const FaultsReport& report, bool csv, Console& console);
nlohmann::ordered_json to_json(const FaultsReport& report);
void print_list(const std::vector<const faults::Fault*>& chosen, bool csv, Console& console);

}  // namespace rankine::tools
