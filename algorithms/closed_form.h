// Closed forms: the catalogue states what a paper prints (formula.h), and this computes it.
//
//   letters     N P G A of Params (see catalogue.h), D how many dims and S how many skips there are
//   dimensions  each() and most() go over the sizes a of a torus
//               T the most messages of one rank at once where trivance_plan()s run along all
//               dimensions side by side
//               messages(a) of one rank in trivance_plan(a): 2 clog3(a), fewer where one is enough
//   and         Q the largest power of two up to N   H 1 where root and peer differ, else 0
//   skips       W V C: the hops(), most_through_one() and most_added_to_one() of skips.h
//   levels      L the rounds of level_tree(), J its most_neighbours(); children(a) its
//               most_children() in a rounds (levels.h)
//   what Params leaves open: the default, as catalogue.h's resolved() gives it
#pragma once

#include <string_view>

#include "algorithms/rational.h"

namespace rankine {

struct Params;

// Errors: those of formulas::evaluate(); std::overflow_error where the value leaves 128 bits.
Rational evaluate(std::string_view formula, const Params& params);

}  // namespace rankine
