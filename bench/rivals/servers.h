// What CPU inference servers do to sum over the ranks of a machine, each written anew from its
// description. Ranks are threads or processes; all data go through memory that all can map.
#pragma once

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

// DeepSpeed's and SGLang's: a region per rank with a state beside it. Up to 1 MiB one-shot: each
// rank copies its input to one of its two places in turn, says so, and sums all ranks' places.
// Above, in pieces of 32 MiB, two-shot: each sums its slice in the region, and copies everybody's
// slices out. They spin without PAUSE and without end, so with more ranks than cores a wait costs
// time slices. All-reduce only.
std::unique_ptr<Rival> make_inference_shm(const Setup& setup);

// vLLM's: pieces of at most 2 MiB go by stores past the caches to one of a rank's two places in
// turn; a stamp says so, and everybody sums (all-gather: copies) all ranks' places into its own
// output. Its threads of a rank divide a vector among themselves; here a rank is one thread.
// All-reduce and all-gather.
std::unique_ptr<Rival> make_vllm_shm(const Setup& setup);

}  // namespace rankine::rivals
