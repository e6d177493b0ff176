// What is found out about the research papers, and how that is told: as text, JSON and pictures.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/papers/figures.h"
#include "engine/papers/statements.h"
#include "engine/papers/tables.h"
#include "engine/papers/traff_tables.h"

namespace rankine::reproduce {

inline constexpr std::string_view kTrivanceKey = "trivance", kTraffKey = "traff";
inline constexpr std::string_view kTrivanceTitle =
    "Juerss, Addanki & Schmid, Trivance: Latency-Optimal AllReduce by Shortcutting Multiport "
    "Networks";
inline constexpr std::string_view kTraffTitle =
    "J. L. Traff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2025";

// All that is computed about Trivance.
struct Trivance {
  Profiles profiles;
  std::vector<TableRow> rows;
  std::vector<Panel> panels;
  std::vector<Outcome> outcomes;
};

template <class Outcomes>
std::size_t agreeing(const Outcomes& outcomes) {
  return static_cast<std::size_t>(
      std::count_if(outcomes.begin(), outcomes.end(), [](const auto& outcome) {
        return std::invoke(&std::decay_t<decltype(outcome)>::agrees, outcome);
      }));
}

void print(std::ostream& out, const Trivance& trivance);
void print(std::ostream& out, const std::vector<TraffOutcome>& outcomes);

nlohmann::ordered_json to_json(const Trivance& trivance);
nlohmann::ordered_json to_json(const std::vector<TraffOutcome>& outcomes);

struct Picture {
  std::string name, svg;
};
std::vector<Picture> pictures_of(const std::vector<Panel>& panels);

}  // namespace rankine::reproduce
