// The ranks of a process group find each other through PyTorch's store, which all of them reach.
//
// Each says on which machine it is. Rank 0 hears all, and answers with the name of a communicator
// that no other has, or with why there can be none; so ranks on two machines, which would wait for
// each other in two folders /dev/shm, are told at once, all of them.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>

#include "engine/api/communicator.h"

namespace rankine::torch_backend {

// The communicator of that group, whose store it is alone; its calls have that timeout, and so has
// the meeting. Errors: those of Communicator::create, ranks on several machines (mismatch), and
// whatever the store throws.
Result<std::unique_ptr<Communicator>> meet(c10d::Store& store, Rank rank, int ranks,
                                           std::chrono::milliseconds timeout);

}  // namespace rankine::torch_backend
