/* An all-reduce for DeepSpeed's CPU accelerator in inference, in place and among the ranks of one
 * node (its op "deepspeed_shm_comm"). The functions correspond to shm_initialize() and
 * all_reduce_outer_loop(), which implement DeepSpeed's Python functions of similar names.
 *
 *   #include <rankine/adapters/deepspeed.h>
 *
 *   void initialize(int size, int rank) {
 *     TORCH_CHECK(rankine_deepspeed_initialize(&store, size, rank) == 0, rkGetLastError(nullptr));
 *   }
 *   int inference_all_reduce(torch::Tensor& data, int op) {
 *     const int result = rankine_deepspeed_all_reduce(
 *         data.is_contiguous() ? data.data_ptr() : nullptr, data.numel(),
 *         static_cast<int>(data.scalar_type()), op);
 *     TORCH_CHECK(result <= 0, rkGetLastError(nullptr));
 *     return result;  // -1: DeepSpeed uses its other implementation
 *   }
 *
 * In DeepSpeed ranks are processes. Here they are threads of one process; each thread initialises
 * its rank, and the state is thread-local. store.h makes the ranks meet.
 *
 * C99 with GNU's __thread, and C++. Everything here is static: include it in one source file. */
#ifndef RANKINE_ADAPTERS_DEEPSPEED_H
#define RANKINE_ADAPTERS_DEEPSPEED_H

#include <stddef.h>

#include <rankine/adapters/store.h>

static __thread rkComm_t rankine_deepspeed_comm;

/* Returns 0, also if this thread has initialised before; otherwise a rkResult_t. */
static int rankine_deepspeed_initialize(const struct rankine_store* store, int size, int rank) {
  if (rankine_deepspeed_comm != NULL) return 0;
  return rankine_store_meet(store, "deepspeed", size, rank, &rankine_deepspeed_comm);
}

/* Call before the thread ends. The thread may initialise again, together with all others. */
static void rankine_deepspeed_finalize(void) {
  rkCommDestroy(rankine_deepspeed_comm);
  rankine_deepspeed_comm = NULL;
}

/* data = the sum of all ranks' data. Returns 0 on success. Returns -1, with no effect, if the call
 * is not supported (no communicator, an op other than SUM, which is 0, another type, no data).
 * Otherwise returns a rkResult_t: the ranks' data may be partly added up, and the communicator has
 * ended. */
static int rankine_deepspeed_all_reduce(void* data, size_t count, int scalar_type, int op) {
  rkDataType_t type;
  rkResult_t result;
  if (rankine_deepspeed_comm == NULL || op != 0 || !rankine_scalar_type(scalar_type, &type) ||
      (data == NULL && count > 0)) {
    return -1;
  }
  result = rkAllReduce(data, data, count, type, rkSum, rankine_deepspeed_comm);
  return result;
}

#endif
