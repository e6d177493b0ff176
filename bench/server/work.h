// What a rank of a server does all day.
#pragma once

#include "bench/server/decoder.h"
#include "bench/server/exchange.h"
#include "bench/server/line.h"

namespace rankine::server {

// Rank 0 hears requests, tells the others each step's batch, and says what came of it; the others
// follow, and use no line. A call of all ranks, which returns when the clients have hung up, and
// throws what the exchange throws. Where nobody wants anything, ranks still meet ten times in a
// second, so that one that is lost is missed soon.
void work(Decoder& decoder, Exchange& ranks, const Line& clients);

}  // namespace rankine::server
