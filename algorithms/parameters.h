// Params holds the values of an algorithm's parameters, parameters() is the table of all
// parameters, and evaluate() computes the closed forms of the catalogue. list_text() and
// read_list() convert lists of whole numbers: "4x4" for a torus, "11,6,3,2,1" for skips.
#pragma once

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/rational.h"
#include "algorithms/schedule/blocks.h"

namespace rankine {

inline std::string list_text(const std::vector<int>& list, char between) {
  std::string text;
  for (const int number : list)
    text += (text.empty() ? "" : std::string(1, between)) + std::to_string(number);
  return text;
}

// Numbers >= 0 with `between` between them; nullopt if the text has another form, or is empty.
inline std::optional<std::vector<int>> read_list(std::string_view text, char between) {
  std::vector<int> list;
  const char *at = text.data(), *const end = at + text.size();
  for (;; ++at) {
    const auto [behind, error] = std::from_chars(at, end, list.emplace_back());
    if (error != std::errc() || *at == '-') return std::nullopt;
    if (behind == end) return list;
    if (*behind != between) return std::nullopt;
    at = behind;
  }
}

// The inputs of schedules. Each row of parameters() holds everything about one parameter: the flags
// of command lines and their help, the members of JSON, the options of the runs that papers' claims
// name, the letters of formulas, the output and the error texts use it. A new parameter is a member
// of Params and its row.

struct Params {
  int ranks = 1;  // N
  Rank root = 0;
  Rank peer = 0;            // send_recv: the receiver
  int segments = 1;         // P, of pipelined algorithms
  int group = 0;            // G, ranks per group of hierarchical algorithms; 0: the default
  int aggregation = 0;      // A, blocks per message of PAT at most; 0: the default
  int radix = 0;            // K, of trees, butterflies and Bruck's; 0: the default
  std::vector<int> dims{};  // sizes of a torus (torus.h), N ranks together; empty: a ring of N
  // skips of a circulant graph (circulant.h), round by round; empty: the default
  std::vector<int> skips{};
  std::vector<int> levels{};  // sizes of groups, innermost first (levels.h); empty: the default
};

struct Parameter {
  enum class Kind : unsigned char { number, sizes, skips, torus };

  // Used in Algorithm::parameters, formulas' error texts and the runs of claims; its flag is
  // "--name".
  std::string_view name;
  Kind kind = Kind::number;
  int Params::*number = nullptr;             // the member, of a number
  std::vector<int> Params::*list = nullptr;  // the member, of a list of the other kinds
  // In formulas: the number, or the size of the list; empty: no letter.
  std::string_view letter = {};
  bool in_request = false;  // in JSON a member of the request itself, else of its "params"
  char short_flag = 0;
  std::string_view argument;  // name of its value in help
  std::string_view help;
  int least = 0, most = 0;                 // range of a number, independent of the other parameters
  std::string_view zero = {};              // text for 0, if it leaves the choice to the reader
  int (*most_among)(int ranks) = nullptr;  // greatest number among `ranks` ranks
  // Replaces 0, or an empty list.
  int (*default_number)(int ranks) = nullptr;
  std::vector<int> (*default_list)(int ranks) = nullptr;
  // The reason why `ranks` ranks cannot have this list, as an error text; nullopt if they can.
  std::optional<std::string> (*list_refusal)(const std::vector<int>& list, int ranks) = nullptr;
  std::string_view tried = {};  // texts that a sweep over the catalogue tries, between semicolons

  bool has_default() const { return default_number != nullptr || default_list != nullptr; }
  // True if the parameter has its initial value in Params, or 0.
  bool open(const Params& params) const;
  // The number, or the size of the list; the default if open.
  int count(const Params& params) const;
  // "8", "4x4", "11,6,3,2,1".
  std::string text(const Params& params) const;
  // Reads a text as a value; skips may be the name of a scheme, which needs params.ranks. Returns
  // false, and leaves params, if allowed() excludes the text.
  bool read(std::string_view text, Params& params) const;
  std::string allowed() const;                  // "whole numbers from 1 to 16384, and auto"
  std::vector<std::string_view> names() const;  // texts of allowed() that are words
};

// In the order of reading: the ranks first.
std::span<const Parameter> parameters();
const Parameter* find_parameter(std::string_view name);  // or nullptr

// Replaces zeros by defaults. G: the divisor of N nearest to its square root. A: the greatest
// number of blocks that a message can have, 2^(ceil(log2 N) - 1), or 1 for N = 1. K: two. The
// torus: one dimension of N. Skips: repeated halving with rounding up. Levels: groups of G. Every
// function that takes Params calls this; tools call it to show the values that will run.
Params resolved(Params params);

// Closed forms: the catalogue states a paper's formula (formula.h), and evaluate() computes it.
//
//   letters     N P G A of Params (see catalogue.h), D the number of dims and S the number of skips
//   dimensions  each() and most() go over the sizes a of a torus
//   and         Q the largest power of K up to N   H 1 if root and peer differ, else 0
//   groups      number of groups of G ranks, with a last one that may have fewer: last of them
//   levels      L the number of sizes of groups from 2 to N, with N itself
//   open members of Params: the default, as in resolved()

struct Params;

// Errors: those of formulas::evaluate(); std::overflow_error if the value exceeds 128 bits.
Rational evaluate(std::string_view formula, const Params& params);

}  // namespace rankine
