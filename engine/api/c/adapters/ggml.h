/* An all-reduce for ggml's tensor parallelism, among CPU tensors of one process. ggml's meta
 * backend looks up these three functions by name through ggml_backend_reg_get_proc_address(). One
 * caller passes the tensors of all ranks at once.
 *
 *   #include "ggml.h"
 *   #include "ggml-backend.h"
 *   #include <rankine/adapters/ggml.h>
 *
 *   in the backend's get_proc_address():
 *     if (strcmp(name, "ggml_backend_comm_init") == 0) return (void*)rankine_ggml_comm_init;
 *     if (strcmp(name, "ggml_backend_comm_free") == 0) return (void*)rankine_ggml_comm_free;
 *     if (strcmp(name, "ggml_backend_comm_allreduce_tensor") == 0)
 *       return (void*)rankine_ggml_comm_allreduce_tensor;
 *
 * C99 and C++. Everything here is static: include it in one source file. */
#ifndef RANKINE_ADAPTERS_GGML_H
#define RANKINE_ADAPTERS_GGML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rankine/rankine.h>

struct rankine_ggml_comm {
  size_t ranks;
  rkComm_t* comms; /* by rank */
};

static void rankine_ggml_comm_free(void* context) {
  struct rankine_ggml_comm* all = (struct rankine_ggml_comm*)context;
  if (all == NULL) return;
  for (size_t r = 0; r < all->ranks; ++r) rkCommDestroy(all->comms[r]);
  free(all->comms);
  free(all);
}

/* Returns NULL on failure (rkGetLastError(NULL) explains it); ggml then works without these
 * functions. The backends are ignored: only the tensors' places matter. */
static void* rankine_ggml_comm_init(ggml_backend_t* backends, size_t n_backends) {
  struct rankine_ggml_comm* all;
  (void)backends;
  all = (struct rankine_ggml_comm*)calloc(1, sizeof(*all));
  if (all == NULL) return NULL;
  all->comms = (rkComm_t*)calloc(n_backends > 0 ? n_backends : 1, sizeof(rkComm_t));
  if (all->comms == NULL || rkCommInitAll(all->comms, (int)n_backends, NULL) != rkSuccess) {
    free(all->comms);
    free(all);
    return NULL;
  }
  all->ranks = n_backends;
  return all;
}

static bool rankine_ggml_type(enum ggml_type type, rkDataType_t* ours) {
  switch (type) {
    case GGML_TYPE_F32:
      *ours = rkFloat32;
      return true;
    case GGML_TYPE_F16:
      *ours = rkFloat16;
      return true;
    case GGML_TYPE_BF16:
      *ours = rkBfloat16;
      return true;
    case GGML_TYPE_F64:
      *ours = rkFloat64;
      return true;
    case GGML_TYPE_I8:
      *ours = rkInt8;
      return true;
    case GGML_TYPE_I32:
      *ours = rkInt32;
      return true;
    case GGML_TYPE_I64:
      *ours = rkInt64;
      return true;
    default:
      return false;
  }
}

/* Sets every tensor to the sum of all; a tensor that is not computed in this graph counts as zeros.
 * Returns false, with no effect, unless the tensors are contiguous and have one shape and a
 * supported type; ggml then uses its own implementation. */
static bool rankine_ggml_comm_allreduce_tensor(void* context, struct ggml_tensor** tensors) {
  struct rankine_ggml_comm* all = (struct rankine_ggml_comm*)context;
  const size_t count = (size_t)ggml_nelements(tensors[0]);
  rkDataType_t type;
  if (!rankine_ggml_type(tensors[0]->type, &type)) return false;
  for (size_t r = 0; r < all->ranks; ++r) {
    const struct ggml_tensor* t = tensors[r];
    if (t->type != tensors[0]->type || (size_t)ggml_nelements(t) != count ||
        !ggml_is_contiguous(t) || (t->data == NULL && count > 0)) {
      return false;
    }
  }
  for (size_t r = 0; r < all->ranks; ++r) {
    if ((tensors[r]->flags & GGML_TENSOR_FLAG_COMPUTE) == 0 && count > 0) {
      memset(tensors[r]->data, 0, ggml_nbytes(tensors[r]));
    }
  }
  rkGroupStart();
  for (size_t r = 0; r < all->ranks; ++r) {
    rkAllReduce(tensors[r]->data, tensors[r]->data, count, type, rkSum, all->comms[r]);
  }
  if (rkGroupEnd() != rkSuccess) {
    /* Tensors may be partly added up, and the caller would use them again. */
    fprintf(stderr, "rankine: %s\n", rkGetLastError(NULL));
    abort();
  }
  return true;
}

#endif
