// What the model checker explores: small programs of two or three ranks that go through the
// production code of mailboxes, counters, parking, abort and leave. Each has a verdict of its own
// beside those of the explorer (data races, lost wake-ups).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/models/explorer.h"

namespace rankine::model {

struct Scenario {
  std::string name;
  bool may_time_out = false;
  bool is_large = false;  // takes many seconds, and says little that smaller ones do not
  std::function<void(Explorer&)> play;
};

std::vector<Scenario> scenarios();

}  // namespace rankine::model
