// The page that an expert writes for one collective on one machine: a counter per rank, no queue,
// no plan. It takes several forms since none wins everywhere; a comparison should use the best of
// them at each size.
#pragma once

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

// One wait: everybody stages what others need where all can read it, and takes from the stages what
// it needs. Up to 1 MiB. Where data go one way only, the giver may be a call ahead.
std::unique_ptr<Rival> make_expert_one_shot(const Setup& setup);

// Everybody takes what it needs from the others' buffers. All-reduce is two-shot, with three waits:
// a rank sums its slice of all inputs into its output, then copies the others' slices.
std::unique_ptr<Rival> make_expert_pull(const Setup& setup);

// Everybody stores into the others' outputs, two waits. All-reduce, broadcast and reduce share the
// work: a rank moves its slice of the vector, from all inputs into all outputs. No reduce-scatter.
std::unique_ptr<Rival> make_expert_push(const Setup& setup);

// Push with stores that go past the caches, from 1 MiB on; reduce-scatter sums its block so.
std::unique_ptr<Rival> make_expert_stream(const Setup& setup);

}  // namespace rankine::rivals
