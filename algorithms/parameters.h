// Lists of whole numbers as people write them: "4x4" of a torus, "11,6,3,2,1" of skips.
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

// Numbers from 0 with `between` between them; nullopt where the text is something else, or empty.
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

// What schedules are made from. One row of parameters() says all there is to say of a parameter:
// the flags of command lines and their help, the members of JSON, the options of the runs that
// papers' claims name, the letters of formulas, what is printed and what is refused all come from
// it. A new parameter is a member of Params and its row.

struct Params {
  int ranks = 1;  // N
  Rank root = 0;
  Rank peer = 0;              // send_recv: the receiver
  int segments = 1;           // P, of pipelined algorithms
  int group = 0;              // G, ranks per group of hierarchical algorithms; 0: the default
  int aggregation = 0;        // A, blocks per message of PAT at most; 0: the default
  int radix = 0;              // K, of trees, butterflies and Bruck's; 0: the default
  std::vector<int> dims{};    // sizes of a torus (torus.h), N ranks together; empty: a ring of N
  std::vector<int> skips{};   // of a circulant graph (skips.h), round by round; empty: the default
  std::vector<int> levels{};  // sizes of groups, innermost first (levels.h); empty: the default
};

struct Parameter {
  enum class Kind : unsigned char { number, sizes, skips, torus };

  // As in Algorithm::parameters, in formulas' refusals and in the runs of claims; its flag is
  // "--name".
  std::string_view name;
  Kind kind = Kind::number;
  int Params::*number = nullptr;             // where a number is
  std::vector<int> Params::*list = nullptr;  // or a list of the other kinds
  // In formulas: the number, or how many the list has; empty: none.
  std::string_view letter = {};
  bool in_request = false;  // in JSON a member of the request itself, else of its "params"
  char short_flag = 0;
  std::string_view argument;  // what help calls its value
  std::string_view help;
  int least = 0, most = 0;     // of a number as it is given, whatever the other parameters
  std::string_view zero = {};  // what 0 is called where it stands for a choice of the reader's
  int (*most_among)(int ranks) = nullptr;  // of a number
  // In place of 0, and of an empty list.
  int (*default_number)(int ranks) = nullptr;
  std::vector<int> (*default_list)(int ranks) = nullptr;
  // Why a list is none for so many ranks, as text that says what is needed.
  std::optional<std::string> (*list_refusal)(const std::vector<int>& list, int ranks) = nullptr;
  std::string_view tried = {};  // what a sweep over the catalogue tries: texts between semicolons

  bool has_default() const { return default_number != nullptr || default_list != nullptr; }
  // Nothing was asked for: what Params begins with, or 0.
  bool open(const Params& params) const;
  // The number, or how many the list has; a default in place of what is left open.
  int count(const Params& params) const;
  // "8", "4x4", "11,6,3,2,1".
  std::string text(const Params& params) const;
  // The same as a value; skips may be the name of a scheme, which needs params.ranks. False: it is
  // none that allowed() tells of, and params are as they were.
  bool read(std::string_view text, Params& params) const;
  std::string allowed() const;                  // "whole numbers from 1 to 16384, and auto"
  std::vector<std::string_view> names() const;  // texts of allowed() that are words
};

// In the order in which they are read: the ranks first.
std::span<const Parameter> parameters();
const Parameter* find_parameter(std::string_view name);  // or nullptr

// The same with the defaults in place of zeros. G: the divisor of N nearest to its square root. A:
// as many blocks per message as any message could have, 2^(ceil(log2 N) - 1), or 1 for N = 1. K:
// two. The torus: one dimension of N. Skips: repeated halving with rounding up. Levels: groups of
// G. Every function that takes Params does this by itself; tools call it to show what will run.
Params resolved(Params params);

// Closed forms: the catalogue states what a paper prints (formula.h), and this computes it.
//
//   letters     N P G A of Params (see catalogue.h), D how many dims and S how many skips there are
//   dimensions  each() and most() go over the sizes a of a torus
//   and         Q the largest power of two up to N   H 1 where root and peer differ, else 0
//   groups      groups of G ranks, the last one as well that may have fewer: last of them
//   levels      L how many sizes of groups there are from 2 to N, with N itself
//   what Params leaves open: the default, as catalogue.h's resolved() gives it

struct Params;

// Errors: those of formulas::evaluate(); std::overflow_error where the value leaves 128 bits.
Rational evaluate(std::string_view formula, const Params& params);

}  // namespace rankine
