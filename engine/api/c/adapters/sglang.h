/* An all-reduce and an all-gather for SGLang's CPU backend, among the ranks of one node (the ops
 * initialize, shm_allreduce and shm_allgather of sgl-kernel).
 *
 *   #include <rankine/adapters/sglang.h>
 *
 *   void initialize(int64_t size, int64_t rank) {
 *     TORCH_CHECK(rankine_sglang_initialize(&store, size, rank) == 0, rkGetLastError(nullptr));
 *   }
 *   void shm_allreduce(torch::Tensor& data, int64_t op) {
 *     TORCH_CHECK(rankine_sglang_allreduce(data.data_ptr(), data.numel(),
 *                                          static_cast<int>(data.scalar_type()), op) == 0, ...);
 *   }
 *   torch::Tensor shm_allgather(torch::Tensor& data, int64_t dim) {
 *     auto sizes = data.sizes().vec();
 *     auto out_sizes = sizes;
 *     out_sizes[dim] *= ranks;
 *     auto out = torch::empty(out_sizes, data.options());
 *     TORCH_CHECK(rankine_sglang_allgather(data.data_ptr(), out.data_ptr(), sizes.data(),
 *                                          sizes.size(), dim, data.element_size()) == 0, ...);
 *     return out;
 *   }
 *
 * Tensors are contiguous. In SGLang ranks are processes. Here they are threads of one process; each
 * thread initialises its rank, and the state is thread-local. store.h makes the ranks meet.
 *
 * C99 with GNU's __thread, and C++. Everything here is static: include it in one source file. */
#ifndef RANKINE_ADAPTERS_SGLANG_H
#define RANKINE_ADAPTERS_SGLANG_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rankine/adapters/store.h>

static __thread rkComm_t rankine_sglang_comm;

/* Returns 0, also if this thread has initialised before; otherwise a rkResult_t. */
static int rankine_sglang_initialize(const struct rankine_store* store, int64_t size,
                                     int64_t rank) {
  if (rankine_sglang_comm != NULL) return 0;
  return rankine_store_meet(store, "sglang", (int)size, (int)rank, &rankine_sglang_comm);
}

/* Call before the thread ends. The thread may initialise again, together with all others. */
static void rankine_sglang_finalize(void) {
  rkCommDestroy(rankine_sglang_comm);
  rankine_sglang_comm = NULL;
}

/* data = the sum of all ranks' data. Returns 0 on success. Returns -1, with no effect, if the call
 * is not supported (no communicator, an op other than SUM, which is 0, another type, no data).
 * Otherwise returns a rkResult_t: the ranks' data may be partly added up, and the communicator has
 * ended. */
static int rankine_sglang_allreduce(void* data, size_t count, int scalar_type, int64_t op) {
  rkDataType_t type;
  if (rankine_sglang_comm == NULL || op != 0 || !rankine_scalar_type(scalar_type, &type) ||
      (data == NULL && count > 0)) {
    return -1;
  }
  return rkAllReduce(data, data, count, type, rkSum, rankine_sglang_comm);
}

/* out = the ranks' data, concatenated in rank order along dimension `dim` of `dims` (negative:
 * counted from the last dimension), with elements of element_bytes bytes. sizes are the dimensions
 * of data, equal on all ranks; out has room for `ranks` times the bytes of data. Results as above.
 */
static int rankine_sglang_allgather(const void* data, void* out, const int64_t* sizes, size_t dims,
                                    int64_t dim, size_t element_bytes) {
  size_t rows = 1, row_bytes = element_bytes, row, i;
  int ranks = 0, r;
  char* gathered;
  rkResult_t result;
  if (dim < 0) dim += (int64_t)dims;
  if (rankine_sglang_comm == NULL || dim < 0 || (size_t)dim >= dims) return -1;
  for (i = 0; i < dims; ++i) {
    if (i < (size_t)dim) rows *= (size_t)sizes[i];
    if (i >= (size_t)dim) row_bytes *= (size_t)sizes[i];
  }
  if (rows * row_bytes > 0 && (data == NULL || out == NULL)) return -1;
  if (rows <= 1) return rkAllGather(data, out, rows * row_bytes, rkUint8, rankine_sglang_comm);
  result = rkCommCount(rankine_sglang_comm, &ranks);
  if (result != rkSuccess) return result;
  /* The all-gather gives each rank's data as one block; out needs them row by row. */
  gathered = (char*)malloc((size_t)ranks * rows * row_bytes + 1);
  if (gathered == NULL) return -1;
  result = rkAllGather(data, gathered, rows * row_bytes, rkUint8, rankine_sglang_comm);
  for (row = 0; result == rkSuccess && row < rows; ++row) {
    for (r = 0; r < ranks; ++r) {
      memcpy((char*)out + (row * (size_t)ranks + (size_t)r) * row_bytes,
             gathered + ((size_t)r * rows + row) * row_bytes, row_bytes);
    }
  }
  free(gathered);
  return result;
}

#endif
