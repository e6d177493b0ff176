/* Parts that adapters share. rankine_scalar_type() converts torch's element types, as numbers
 * (at::ScalarType), to Rankine's. rankine_store_meet() makes ranks meet that share only a key-value
 * store, such as torch's c10d::Store: the first rank makes a unique id and stores it under a key,
 * and the other ranks read it.
 *
 * Ranks are threads of one process: an id stored by another process is refused (rkInvalidArgument,
 * with a text). Ranks that are processes do not need it; they meet by rkGetUniqueIdByName().
 *
 * C99 and C++. Everything here is static. */
#ifndef RANKINE_ADAPTERS_STORE_H
#define RANKINE_ADAPTERS_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rankine/rankine.h>

/* scalar_type is static_cast<int>(tensor.scalar_type()). Returns false for types that inference
 * does not add up. */
static inline bool rankine_scalar_type(int scalar_type, rkDataType_t* ours) {
  switch (scalar_type) {
    case 5: /* Half */
      *ours = rkFloat16;
      return true;
    case 6: /* Float */
      *ours = rkFloat32;
      return true;
    case 15: /* BFloat16 */
      *ours = rkBfloat16;
      return true;
    default:
      return false;
  }
}

/* The caller's store, as four functions; `context` is passed to each. All except add() return 0, or
 * any other value for a failure. Thread-safe; must exist during the whole meeting. */
struct rankine_store {
  void* context;
  int (*set)(void* context, const char* key, const void* value, size_t size);
  /* The value must have exactly this size. */
  int (*get)(void* context, const char* key, void* value, size_t size);
  /* Returns the sum so far, including amount; an absent key counts as 0. Negative: a failure. */
  int64_t (*add)(void* context, const char* key, int64_t amount);
  /* Waits until the key has been set. */
  int (*wait)(void* context, const char* key);
};

/* Makes rank `rank` of `size` ranks, which all call this with the same name, of up to 64
 * characters, each on a thread. The ranks may meet again under the name, all of them each time.
 * Waits until the first rank has arrived. rkSystemError: the store has failed, and *comm is
 * unchanged; otherwise as rkCommInitRank. */
static rkResult_t rankine_store_meet(const struct rankine_store* store, const char* name, int size,
                                     int rank, rkComm_t* comm) {
  char key[128];
  rkUniqueId id;
  int64_t came;
  rkResult_t result;
  if (store == NULL || name == NULL || strlen(name) > 64 || size < 1) return rkInvalidArgument;
  snprintf(key, sizeof(key), "rankine/%s/ranks", name);
  came = store->add(store->context, key, 1);
  if (came < 1) return rkSystemError;
  snprintf(key, sizeof(key), "rankine/%s/%lld", name, (long long)((came - 1) / size));
  if ((came - 1) % size == 0) {
    result = rkGetUniqueId(&id);
    if (result != rkSuccess) return result;
    if (store->set(store->context, key, &id, sizeof(id)) != 0) return rkSystemError;
  } else if (store->wait(store->context, key) != 0 ||
             store->get(store->context, key, &id, sizeof(id)) != 0) {
    return rkSystemError;
  }
  return rkCommInitRank(comm, size, id, rank);
}

#endif
