/* How ranks that know nothing of each other but a key-value store, such as torch's c10d::Store, come
 * together: the first one makes a unique id and puts it under a key, where the others find it.
 *
 * Ranks are threads of one process: an id that another process has put there is refused
 * (rkInvalidArgument, with a text that says so). Ranks that are processes meet without it, by
 * rkGetUniqueIdByName().
 *
 * C99 and C++. Everything here is static. */
#ifndef RANKINE_ADAPTERS_STORE_H
#define RANKINE_ADAPTERS_STORE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rankine/rankine.h>

/* The caller's store, as four functions; `context` is handed to each. All but add() return 0, or
 * what else they like for a failure. Thread-safe, and in place as long as a meeting lasts. */
struct rankine_store {
  void* context;
  int (*set)(void* context, const char* key, const void* value, size_t size);
  /* The value must have that size. */
  int (*get)(void* context, const char* key, void* value, size_t size);
  /* The sum so far, this one included; a key that is not there counts as 0. Negative: a failure. */
  int64_t (*add)(void* context, const char* key, int64_t amount);
  /* Until the key has been set. */
  int (*wait)(void* context, const char* key);
};

/* Rank `rank` of `size` ranks that all call this with the same name, of up to 64 characters, on a
 * thread each; they may meet again under it, all of them each time. It waits for the first one to
 * come. rkSystemError: the store has failed, and *comm is as it was; else as rkCommInitRank. */
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
