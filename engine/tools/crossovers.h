// At which sizes the cheapest algorithm changes, of measured or modelled times: as data, as text
// and as a picture.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tools/svg_plot.h"
#include "engine/tools/table.h"

namespace rankine::tools {

// One network: a curve per algorithm, times in us over bytes, all of the same sizes; a curve
// without a point is of an algorithm that does not run there.
struct NetworkCurves {
  std::string network;
  std::vector<PlotCurve> curves;
};

struct Crossover {
  double bytes = 0;        // from here on
  std::size_t winner = 0;  // the cheapest is this curve
  double us = 0;           // its time here
};

// The first of the sizes, and where another curve takes over: between two neighbouring sizes, where
// straight lines through both curves' times meet (times of the model are straight lines in the
// bytes, but for blocks of whole bytes and numbers of segments that change). Whoever is within a
// thousandth of the cheapest is as cheap: among those the first curve, and whoever is ahead stays.
// Of several that take over between two sizes only the last is seen.
std::vector<Crossover> crossovers(const NetworkCurves& network);

// A table of them; for terminals, each line with "# " before it.
Table crossovers_table(const std::vector<NetworkCurves>& networks);
std::string crossovers_text(const std::vector<NetworkCurves>& networks);

// A panel per network: time over bytes, both logarithmic, and the crossovers marked. Sizes are
// positive, and at least two. `what` begins each title: "all_reduce among 8 ranks".
std::string crossovers_svg(std::string_view what, const std::vector<NetworkCurves>& networks);

}  // namespace rankine::tools
