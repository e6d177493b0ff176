// Both ends copy: a pass over programs for the direct transport.
//
// In shared memory either end of a message can move it. The reader does, unless that leaves its
// owner idle: the root of a broadcast, the senders of a gather. Then the owner stores a part of the
// message where it is wanted, while the reader fetches the rest, in as much time as makes both end
// together:
//
//   rank 0, the root:  store first half at rank 1
//   rank 1:            fetch second half
//
// (Measured, a broadcast between two ranks, 1 MiB: 15 us, 24 us if all is fetched.) Results that no
// cache can hold are stored by their owners even if these have as much to fetch: storing past the
// caches what one has takes 0.5 to 0.8 of the time of fetching it from a far core's.
#pragma once

#include <cstddef>

#include "engine/compile/program.h"

namespace rankine {

struct ShareOptions {
  std::size_t from = Costs{}.share_copies;      // bytes that are worth a wait more
  std::size_t readers = Costs{}.share_readers;  // of one owner: more are faster than it by far
  bool streams = false;                         // the results are more than the caches hold
  std::size_t stream_from = Costs{}.stream;
  PlanMeter* meter = nullptr;  // what the making is counted on
};

// Where all that happens is that inputs are fetched, to places where nothing was before, and every
// reader has an owner that helps; any other program stays as it is. Stores wait for entries alone,
// so nothing can deadlock; and no rank leaves a call while others use its memory, so readers find
// what was stored.
Program share_copies(Program program, const ShareOptions& options = {});

}  // namespace rankine
