// The page that an expert writes for one all-reduce on one machine: a counter per rank, no queue,
// no plan. It takes several forms since none wins everywhere; a comparison should use the best of
// them at each size.
#ifndef RANKINE_BENCH_RIVALS_EXPERT_H_
#define RANKINE_BENCH_RIVALS_EXPERT_H_

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

// One wait: everybody stages its vector where all can read it, and sums all of them. Up to 1 MiB.
std::unique_ptr<Rival> make_expert_one_shot(const Setup& setup);

// Two-shot, three waits: a rank sums its slice of all inputs into its output, then copies the
// others' slices.
std::unique_ptr<Rival> make_expert_pull(const Setup& setup);

// Two-shot, two waits: a rank sums its slice of all inputs and stores it into every output.
std::unique_ptr<Rival> make_expert_push(const Setup& setup);

// Push with stores that go past the caches. From 1 MiB on.
std::unique_ptr<Rival> make_expert_stream(const Setup& setup);

}  // namespace rankine::rivals

#endif  // RANKINE_BENCH_RIVALS_EXPERT_H_
