// Targets for numbers: writing a parsed value and reading it again gives an equal value, and
// decimals agree with the C library.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/circulant.h"
#include "algorithms/torus.h"
#include "engine/base/units.h"
#include "engine/cli/text.h"
#include "engine/network/wiring.h"
#include "tests/fuzz/targets.h"

namespace rankine::fuzz {
namespace {

constexpr std::string_view kArgument = "--argument";

// Every error names the argument.
template <class T>
bool refused(const Result<T>& result) {
  if (result.ok()) return false;
  require(result.status().code() == Code::invalid_argument, "what is wrong is the argument");
  require(result.status().text().find(kArgument) != std::string::npos, "an error names it");
  return true;
}

bool near(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * std::max(std::fabs(a), std::fabs(b));
}

std::string joined(const std::vector<int>& numbers) { return skips_text(numbers); }

}  // namespace

void size(std::string_view input) {
  const auto bytes = parse_size(kArgument, input);
  if (refused(bytes)) return;
  const auto again = parse_size(kArgument, format_size(*bytes));
  require(again.ok() && *again == *bytes, "format_size() writes what parse_size() reads");
  require(!format_bytes(*bytes).empty(), "format_bytes() says it");
}

void duration(std::string_view input) {
  const auto time = parse_duration(kArgument, input);
  if (refused(time)) return;
  require(time->count() >= 1 && *time <= std::chrono::days(1), "above 0 and up to a day");
  const auto again = parse_duration(kArgument, std::to_string(time->count()) + "ms");
  require(again.ok() && *again == *time, "so many ms are as long");
}

void whole_list(std::string_view input) {
  constexpr int kLowest = -3, kHighest = 1024;
  const auto list = tools::parse_whole_list(kArgument, input, kLowest, kHighest);
  if (refused(list)) return;
  require(!list->empty() && std::is_sorted(list->begin(), list->end()), "rising");
  require(std::adjacent_find(list->begin(), list->end()) == list->end(), "each once");
  require(list->front() >= kLowest && list->back() <= kHighest, "within the ends");
  const auto again = tools::parse_whole_list(kArgument, joined(*list), kLowest, kHighest);
  require(again.ok() && *again == *list, "numbers with commas are the same list");
}

void decimal(std::string_view input) {
  const auto value = parse_decimal(kArgument, input);
  if (refused(value)) return;
  const double expected = std::strtod(std::string(input).c_str(), nullptr);
  require(near(value->to_double(), expected, 1e-15), "the C library reads the same number");
  if (std::fabs(expected) > 1e36) return;  // written with more zeros than are read
  const auto shortest = shortest_decimal(kArgument, expected);
  require(shortest.ok() && shortest->to_double() == expected, "doubles survive");
}

void seconds(std::string_view input) {
  const auto time = parse_seconds(kArgument, input);
  if (refused(time)) return;
  require(!(*time < Rational(0)), "no time is negative");
  const double value = time->to_double();
  if (value > 1e36) return;  // written with more zeros than are read
  const auto again = parse_seconds(kArgument, format_duration(value));
  require(again.ok() && near(again->to_double(), value, 1e-3), "format_duration() can be read");
}

void bandwidth(std::string_view input) {
  const auto beta = parse_bandwidth(kArgument, input);
  if (refused(beta)) return;
  require(Rational(0) < *beta, "no bandwidth is infinite");
  const double value = beta->to_double();
  const auto again = parse_bandwidth(kArgument, format_bandwidth(*beta));
  if (!again.ok()) {
    require(value < 1e-18 || value > 1e18, "format_bandwidth() can be read");
    return;
  }
  require(near(again->to_double(), value, 1e-3), "format_bandwidth() says the same");
}

void dims(std::string_view input) {
  const auto sizes = parse_dims(kArgument, input);
  if (refused(sizes)) return;
  require(!sizes->empty() && sizes->size() <= kMostDims, "as many as a torus has");
  require(std::all_of(sizes->begin(), sizes->end(), [](int n) { return n >= 1; }), "sizes");
  const auto again = parse_dims(kArgument, dims_text(*sizes));
  require(again.ok() && *again == *sizes, "dims_text() writes what parse_dims() reads");
}

void skips(std::string_view input) {
  for (const int ranks : {1, 2, 7, 22}) {
    const auto list = read_skips(input, ranks);
    if (!list) return;
    if (!list->empty()) {
      require(read_skips(skips_text(*list), ranks) == list, "skips_text() can be read");
    }
    // The refusal of an algorithm must accept every list that was read.
    Params params{.ranks = ranks, .skips = *list};
    static const Algorithm* const kCirculant =
        find_algorithm(Collective::reduce_scatter, "circulant");
    static_cast<void>(kCirculant->refusal(params));
  }
}

}  // namespace rankine::fuzz
