// Gradient buckets on threads: what bucket_times.h says, played.
#pragma once

#include "engine/tools/plan/bucket_times.h"

namespace rankine::tools {

// Real tensors through Buckets of that row's size, on the question's network: seconds of the model.
// Tensors are thinned (play_step.h) to what keeps whole bytes in every rank's block. Errors: those
// of Team, memory that cannot be had, and sums or numbers of calls that are not right (mismatch).
Result<double> play_buckets(const BucketQuestion& question, const BucketRow& row);

}  // namespace rankine::tools
