// What rivals prints while it measures: a header that says who takes part and what the machine can
// do, and a line per row.
#pragma once

#include <vector>

#include "bench/rivals/document.h"
#include "bench/rivals/limits.h"
#include "bench/rivals/protocol.h"

namespace rankine::rivals {

void print_header(const Plan& plan, const Setup& setup, const Contenders& contenders,
                  const std::vector<LevelRates>& levels);
void print_row(const Row& row, const Contenders& contenders);

}  // namespace rankine::rivals
