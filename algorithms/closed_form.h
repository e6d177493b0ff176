// Closed forms: the catalogue states what a paper prints (formula.h), and this computes it.
//
//   letters     N P G A of Params (see catalogue.h), D how many dims and S how many skips there are
//   dimensions  each() and most() go over the sizes a of a torus
//   and         Q the largest power of two up to N   H 1 where root and peer differ, else 0
//   groups      groups of G ranks, the last one as well that may have fewer: last of them
//   levels      L how many sizes of groups there are from 2 to N, with N itself
//   what Params leaves open: the default, as catalogue.h's resolved() gives it
#pragma once

#include <string_view>

#include "algorithms/rational.h"

namespace rankine {

struct Params;

// Errors: those of formulas::evaluate(); std::overflow_error where the value leaves 128 bits.
Rational evaluate(std::string_view formula, const Params& params);

}  // namespace rankine
