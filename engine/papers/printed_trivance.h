// Trivance (L) as section 4.4 describes it in words, for its time alone: distances 1, 3, 9 ... and
// last ceil((a - 3^floor(log3 a)) / 2), which is 19 in a line of 64, with the whole vector in every
// message. At sizes that are no powers of three its sums of neighbourhoods count some contributions
// twice, so no schedule of the catalogue is this one; trivance_latency takes other ways there.
//   D dimensions    a size of each
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "engine/papers/figures.h"
#include "engine/read/profile.h"

namespace rankine::reproduce {

// One collective per dimension, each on 1/D of the vector. Precondition: all sizes are equal.
Profile printed_trivance(const std::vector<int>& dims);

// The panels, with that in the place of Trivance's (L) form.
class PrintedPanels {
 public:
  explicit PrintedPanels(std::span<const Panel> panels);
  PrintedPanels(const PrintedPanels&) = delete;
  PrintedPanels& operator=(const PrintedPanels&) = delete;

  std::span<const Panel> panels() const { return panels_; }

 private:
  std::deque<Profile> profiles_;  // the panels point into it
  std::vector<Panel> panels_;
};

}  // namespace rankine::reproduce
