// What each collective function of MPI does with its buffers, in whichever form it is called: the
// engine's call of the same.
#pragma once

#include <mpi.h>

#include "engine/api/mpi/preload_functions.h"
#include "engine/api/mpi/preload_parameters.h"
#include "engine/api/mpi/preload_taking.h"

namespace rankine::mpi {

// int allreduce(Taking& call, const void* in, ...), and so on: an error of MPI's.
#define RANKINE_COLLECTIVE(Name, name, PARAMETERS) \
  int name(Taking& call PARAMETERS(RANKINE_ALSO_DECLARED));
RANKINE_FUNCTIONS(RANKINE_COLLECTIVE, RANKINE_COLLECTIVE)
#undef RANKINE_COLLECTIVE

}  // namespace rankine::mpi
