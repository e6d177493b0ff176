/* Rankine for C and languages that call C: collectives among threads of one process, or among
 * processes, in NCCL's style.
 *
 *   rkUniqueId id;                           // once
 *   rkGetUniqueId(&id);
 *   rkComm_t comm;                           // on the thread that plays rank r of n
 *   rkCommInitRank(&comm, n, id, r);
 *   rkAllReduce(x, sum, count, rkFloat32, rkSum, comm);
 *   rkCommDestroy(comm);
 *
 * A rkComm_t is one rank's handle. Functions behave as NCCL's functions of the corresponding name,
 * with three differences: there are no streams, so a call is over when it returns, or when the
 * request of its group has been waited for; the unique id decides if ranks are threads or
 * processes; and every call checks its arguments before a byte moves. engine/api/c/NCCL.md has the
 * table.
 *
 * Errors. Every function returns a rkResult_t and throws nothing. rkGetLastError() returns the text
 * of the calling thread's last error: it names the function, the argument, its value and the
 * allowed values. Errors found by the engine use the engine's argument names: row_elements for
 * rowElements. After rkInvalidArgument and rkInvalidUsage nothing has happened and the communicator
 * stays usable (but other ranks wait for this call until their deadline). Every other error ends
 * the communicator on all its ranks: each of their calls returns the same result, outputs are
 * undefined, and the ranks can only call rkCommShrink(), rkCommAgree() and rkCommDestroy().
 * Pointers must not be NULL unless a function says otherwise.
 *
 * Buffers belong to the caller and need no alignment. Calls may be in place: with in == out
 * (all-reduce, reduce, broadcast, all-to-all), with in at the rank's own block of out (all-gather,
 * gather), or with out at the rank's own block of in (reduce-scatter, scatter). An output must not
 * overlap with a buffer of another rank.
 *
 * Threads. One rank's handle is used by one thread at a time; a second thread gets rkInvalidUsage.
 * Exceptions, which may be called at any time: rkCommAbort, rkCommAbortFromSignal, rkCommFail,
 * rkCommRevoke, rkCommGetAsyncError, rkCommCount, rkCommUserRank, rkCommCpu, rkCommPortsInUse and
 * rkCommFlightRecord. An invalid or destroyed handle is an error; it is never dereferenced.
 *
 * The end of a thread. A rank that cannot continue must report it: rkCommFail(), rkCommFinalize()
 * or rkCommDestroy() end the waits of the other ranks at once. If a thread that has made all calls
 * of a rank exits, ranks that wait for that rank get rkRankLost after 50 to 100 ms, provided that
 * the waiting rank is still played by its first thread and that this thread did not make the other
 * rank's handle. Otherwise another thread may still take over the rank (threads that are started
 * and joined step by step), and only the deadline ends the wait. To move a rank to another thread
 * while threads of other ranks stay, call rkCommProgress() on the next thread before the first
 * thread ends.
 *
 * Signal handlers may call rkCommAbortFromSignal() and no other function.
 *
 * Processes. In a forked child, calls on inherited handles return rkForked. rkCommDestroy,
 * rkCommAbort, rkRequestFree, rkBucketsDestroy, rkExpertsDestroy, rkActiveDestroy and
 * rkEpilogueDestroy drop such handles and leave the parent's ranks alone. The child may make new
 * communicators.
 *
 * Stability. Within librankine.so.1 functions are added and never changed; structs begin with their
 * size and grow at their ends. */
#ifndef RANKINE_RANKINE_H_
#define RANKINE_RANKINE_H_

#include <stddef.h>
#include <stdint.h>

#define RK_MAJOR 0
#define RK_MINOR 1
#define RK_PATCH 0
#define RK_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define RK_VERSION_CODE RK_VERSION(RK_MAJOR, RK_MINOR, RK_PATCH)

#ifdef __cplusplus
#define RK_INT_ENUM : int
#define RK_NOEXCEPT noexcept
extern "C" {
#else
#define RK_INT_ENUM
#define RK_NOEXCEPT
#endif
#define RK_API __attribute__((visibility("default")))

/* Numbers below 8 are NCCL's for the same results. */
enum rkResult_t RK_INT_ENUM {
  rkSuccess = 0,
  rkSystemError = 2,     /* the operating system refused a necessary resource; finished */
  rkInternalError = 3,   /* a defect of Rankine */
  rkInvalidArgument = 4, /* nothing has happened; the communicator stays usable */
  rkInvalidUsage = 5,    /* as above: not now, or not on this thread */
  rkRemoteError = 6,     /* another rank failed; finished */
  rkMismatch = 8,        /* ranks made different calls; finished */
  rkTimeout = 9,         /* a deadline passed; finished */
  rkRankLost = 10,       /* a rank left while others needed it; finished */
  rkAborted = 11,        /* rkCommAbort or rkCommRevoke was called; finished */
  rkOutOfMemory = 12,    /* memory for the call is missing; finished */
  rkForked = 13          /* this process was forked from the rank's process */
};
typedef enum rkResult_t rkResult_t;

/* Numbers below 12 are NCCL's. */
enum rkDataType_t RK_INT_ENUM {
  rkInt8 = 0,
  rkChar = 0,
  rkUint8 = 1,
  rkInt32 = 2,
  rkInt = 2,
  rkUint32 = 3,
  rkInt64 = 4,
  rkUint64 = 5,
  rkFloat16 = 6,
  rkHalf = 6,
  rkFloat32 = 7,
  rkFloat = 7,
  rkFloat64 = 8,
  rkDouble = 8,
  rkBfloat16 = 9,
  rkFloat8e4m3 = 10,
  rkFloat8e5m2 = 11,
  rkBool = 12,
  rkComplex64 = 13,
  rkComplex128 = 14,
  rkNumTypes = 15,
  rkOpaque = 100 /* an opaque element; only with operations of rkRedOpCreate() */
};
typedef enum rkDataType_t rkDataType_t;

/* Numbers below 5 are NCCL's. Bit operations take integers only. rkRedOpCreate() and
 * rkRedOpCreatePreMulSum() return numbers from rkNumOps on, each valid for one rank. */
enum rkRedOp_t RK_INT_ENUM {
  rkSum = 0,
  rkProd = 1,
  rkMax = 2,
  rkMin = 3,
  rkAvg = 4,
  rkBitAnd = 5,
  rkBitOr = 6,
  rkBitXor = 7,
  rkNumOps = 8
};
typedef enum rkRedOp_t rkRedOp_t;

/* A reduction function of the caller: inout[i] = in[i] op inout[i] for i < count, where `in` holds
 * the contribution of lower ranks. Returns 0; any other value fails the call with rkRemoteError on
 * the ranks that need the result. It is called on pieces of a vector, aligned to a cache line, from
 * the threads of the ranks that reduce, several at once. It must be associative, and must not make
 * calls of ranks. */
typedef int (*rkRedFunction_t)(const void* in, void* inout, size_t count, void* context);

/* A function that runs after a collective: `count` rows of this rank's output, from row `first` on,
 * contiguous at `rows`. Returns 0; any other value fails the call with rkRemoteError, as a failure
 * of this rank. It is called on the thread of its rank or of a progressCore, once per row, in
 * unspecified order. It must not change the rows, and must not make calls of ranks. */
typedef int (*rkRowFunction_t)(const void* rows, size_t first, size_t count, void* context);

typedef struct rkComm* rkComm_t;
#define RK_COMM_NULL NULL

/* Started calls. */
typedef struct rkRequest* rkRequest_t;
#define RK_REQUEST_NULL NULL

/* Steps on the rows of a rank's result. */
typedef struct rkEpilogue* rkEpilogue_t;

/* Many small tensors, reduced as few large vectors. */
typedef struct rkBuckets* rkBuckets_t;

/* The tokens of a mixture of experts, sent to experts and back. */
typedef struct rkExperts* rkExperts_t;

/* Collectives that go on without late or lost ranks. */
typedef struct rkActive* rkActive_t;

#define RK_SPLIT_NOCOLOR (-1)

#define RK_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[RK_UNIQUE_ID_BYTES];
} rkUniqueId;

/* Options of a new communicator: start with `rkConfig_t config = RK_CONFIG_INITIALIZER;`, then
 * change members. All ranks must give equal options. Memory behind pointers is not used after the
 * call. */
typedef struct rkConfig_t {
  size_t size;         /* sizeof(rkConfig_t) */
  int64_t timeoutMs;   /* a longer call ends the communicator; 0: 30,000; -1: no limit */
  const char* wait;    /* "spin", "yield", "park"; NULL or "auto": depends on the cores */
  const char* network; /* a modelled network for all calls, in the syntax of RANKINE_NETWORK; NULL:
                          RANKINE_NETWORK if set, otherwise none */
  const int* nodes;    /* the memory node of each rank, -1 for any; NULL: first touch decides */
  const int*
      levels; /* sizes of groups of neighbouring ranks, innermost first; NULL with levelCount 0 */
  int levelCount;
  int tuned;         /* 1: this machine's tuning table chooses, if present; 0: it is ignored */
  int recordTimes;   /* 1: flight records contain times, and `rankine top` shows times by call site;
                        0: no times */
  size_t planBytes;  /* most bytes of memory for planning one call; 0: 1 GiB */
  const char* order; /* guarantee for the last bits of sums: "coherent", "repeatable", "by_rank",
                        "size_invariant", "group_invariant", "tp_invariant" (engine/api/call.h);
                        NULL: coherent, except for algorithms that are requested by name */
  int progressCore;  /* the CPU of a thread that makes started calls progress while the ranks do
                        other work, and otherwise sleeps; -1: the ranks' threads make progress */
  const char* placement; /* where ranks run; each thread is pinned to a CPU, with memory on that
                            CPU's node: "compact", "scatter", "one_per_node", a list of CPUs by rank
                            such as "0,2,4-7", or "none" (no pinning). NULL: compact for
                            rkCommInitAll and rkCommInitAllConfig without nodes, otherwise none. See
                            "Pinned threads" below */
  int ports;             /* most messages of a rank in flight in each direction, as if it had this
                            number of network ports; all calls then use mailboxes. 0: no limit. Must
                            be 0 with a network, which has its own */
} rkConfig_t;
#define RK_CONFIG_INITIALIZER \
  { sizeof(rkConfig_t), 0, NULL, NULL, NULL, NULL, 0, 1, 0, 0, NULL, -1, NULL, 0 }

/* Options of calls, for choices that the engine must not make itself: `rkCallOptions_t options =
 * RK_CALL_OPTIONS_INITIALIZER;`. */
typedef struct rkCallOptions_t {
  size_t size;           /* sizeof(rkCallOptions_t) */
  const char* algorithm; /* a name from `rankine list`; it runs, or the call fails; NULL: chosen */
  const char* transport; /* "direct", "mailbox" or "board"; NULL or "auto": chosen */
  int64_t timeoutMs;     /* 0: the communicator's; -1: no limit */
  int segments;          /* for pipelined algorithms; 0: chosen */
  int group;             /* ranks per group, for hierarchical algorithms; 0: the default */
  int aggregation;       /* blocks per message, for PAT; 0: the default */
  const int* dims;       /* sizes of a torus; NULL with dimCount 0 */
  int dimCount;
  const int* skips; /* for circulant graphs, one per round; NULL with skipCount 0 */
  int skipCount;
  const int* levels; /* for trees by levels; NULL with levelCount 0 */
  int levelCount;
  uint64_t tag;       /* a number that must be equal on all ranks, as count and type */
  const char* order;  /* as in rkConfig_t; NULL: the communicator's */
  int radix;          /* for trees, butterflies and Bruck's algorithm; 0: two */
  int sharedPayloads; /* for ranks that are processes. 1: all ranks' buffers come from rkMemAlloc(),
                         and other ranks access them in place; 0: data for other ranks are copied */
} rkCallOptions_t;
#define RK_CALL_OPTIONS_INITIALIZER \
  { sizeof(rkCallOptions_t), NULL, NULL, 0, 0, 0, 0, NULL, 0, NULL, 0, NULL, 0, 0, NULL, 0, 0 }

enum rkNorm_t RK_INT_ENUM {
  rkNormNone = 0,
  rkNormRms = 1,  /* x / sqrt(mean(x^2) + epsilon) * weight */
  rkNormLayer = 2 /* (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * weight + shift */
};
typedef enum rkNorm_t rkNorm_t;

enum rkActivation_t RK_INT_ENUM {
  rkActivationNone = 0,
  rkActivationRelu = 1,
  rkActivationGeluTanh = 2,
  rkActivationSilu = 3
};
typedef enum rkActivation_t rkActivation_t;

/* Steps on each row x of a result, in this order, computed in floats: start with `rkRowSteps_t
 * steps = RK_ROW_STEPS_INITIALIZER;`, then set members. Steps that are NULL or none are skipped. */
typedef struct rkRowSteps_t {
  size_t size;       /* sizeof(rkRowSteps_t) */
  rkDataType_t type; /* rkFloat32, rkFloat16 or rkBfloat16: the type of the call, and of bias,
                        residual, weight and shift */
  size_t rowElements;
  const void* bias; /* a row: x += bias */
  void* residual;   /* as many rows as the rank's out: residual += x, then x = residual */
  rkNorm_t norm;
  const void* weight; /* a row; NULL: ones */
  const void* shift;  /* a row, for layer norms; NULL: zeros */
  float epsilon;
  rkActivation_t activation;
  rkDataType_t outType; /* the same three types, or rkInt8 and rkFloat8e4m3, which are scaled per
                           row: the largest |x| becomes 127, or 448 */
  void* out;            /* rows; NULL: only residual is written */
  float* scales;        /* one per row, for rkInt8 and rkFloat8e4m3: x is out times scale */
} rkRowSteps_t;
#define RK_ROW_STEPS_INITIALIZER                                                    \
  {                                                                                 \
    sizeof(rkRowSteps_t), rkBfloat16, 0, NULL, NULL, rkNormNone, NULL, NULL, 1e-5f, \
        rkActivationNone, rkBfloat16, NULL, NULL                                    \
  }

/* The version of the library; RK_VERSION_CODE is the version of the header. */
RK_API rkResult_t rkGetVersion(int* version) RK_NOEXCEPT;
/* Describes a result in a few words. Accepts any number; never returns NULL. */
RK_API const char* rkGetErrorString(rkResult_t result) RK_NOEXCEPT;
/* Returns the text of the calling thread's last error, "" before the first one; valid until its
 * next error. comm is ignored and may be NULL. */
RK_API const char* rkGetLastError(rkComm_t comm) RK_NOEXCEPT;

/* --- Communicators --- */

/* Makes a name for one communicator among threads; valid in this process. */
RK_API rkResult_t rkGetUniqueId(rkUniqueId* id) RK_NOEXCEPT;
/* Makes a name for one communicator among processes of one user on one machine. One process makes
 * it and sends it to the others by any means. */
RK_API rkResult_t rkGetUniqueIdOfProcesses(rkUniqueId* id) RK_NOEXCEPT;
/* As above, without sending: processes that give equal names get equal ids. A name has 1 to 100
 * letters, digits, '.', '-' and '_'. Processes may use it again for a later meeting. */
RK_API rkResult_t rkGetUniqueIdByName(rkUniqueId* id, const char* name) RK_NOEXCEPT;
/* Makes rank `rank` of `ranks` ranks that meet under the id, from any thread. With an id for
 * threads it does not wait: the rank's first call waits. With an id for processes it waits until
 * all ranks have arrived, at most timeoutMs; an error of one rank is the error of all waiting
 * ranks. A process with several ranks makes them in a group; they meet at the group's end, which
 * sets *comm:
 *
 *   rkGroupStart();
 *   rkCommInitRank(&comms[0], 4, id, 2);
 *   rkCommInitRank(&comms[1], 4, id, 3);
 *   rkGroupEnd();
 */
RK_API rkResult_t rkCommInitRank(rkComm_t* comm, int ranks, rkUniqueId id, int rank) RK_NOEXCEPT;
/* config: NULL is RK_CONFIG_INITIALIZER. */
RK_API rkResult_t rkCommInitRankConfig(rkComm_t* comm, int ranks, rkUniqueId id, int rank,
                                       const rkConfig_t* config) RK_NOEXCEPT;
/* Makes all ranks at once: comms has room for `ranks` handles, to be passed to their threads. The
 * threads are pinned (placement of rkConfig_t) unless nodes chooses memory nodes. nodes: as in
 * rkConfig_t, or NULL. */
RK_API rkResult_t rkCommInitAll(rkComm_t* comms, int ranks, const int* nodes) RK_NOEXCEPT;
RK_API rkResult_t rkCommInitAllConfig(rkComm_t* comms, int ranks,
                                      const rkConfig_t* config) RK_NOEXCEPT;

/* Pinned threads. With a placement, rkCommInitRank and rkCommInitRankConfig pin the calling thread,
 * outside of a group. rkCommInitAll, rkCommInitAllConfig and groups with several ranks do not know
 * the rank's thread yet: rkCommPinThread() pins the calling thread; without it the rank's first
 * call outside of a group does. The pin stays when comm ends, and threads that the pinned thread
 * makes later inherit it: make thread pools before, or use "none". If the kernel refuses a pin, a
 * warning is printed to stderr, and rkCommCpu() shows it. */
/* Pins the calling thread, which plays this rank; no effect without a placement. */
RK_API rkResult_t rkCommPinThread(rkComm_t comm) RK_NOEXCEPT;
/* *cpu: the CPU that this rank runs on, in the operating system's numbering; -1 if the rank's
 * thread may run on several CPUs, or if no thread has made a call or been pinned yet. */
RK_API rkResult_t rkCommCpu(rkComm_t comm, int* cpu) RK_NOEXCEPT;
/* The largest numbers of messages in flight at once so far, from this rank and to this rank, with
 * rkConfig_t's ports or on a modelled network; otherwise 0. */
RK_API rkResult_t rkCommPortsInUse(rkComm_t comm, int* mostSent, int* mostReceived) RK_NOEXCEPT;

/* Collective: ranks with equal colors form a new communicator, ordered by key, and by rank for
 * equal keys. *part is RK_COMM_NULL for RK_SPLIT_NOCOLOR; in a group it stays RK_COMM_NULL
 * until the group's end, or its request, has been waited for. The part has comm's timeouts. It ends
 * when comm ends: a rank that has learned of comm's end, by a call or by rkCommGetAsyncError(), can
 * make no call on the part. It is destroyed separately. Another thread may use the part: calls
 * started on the part make progress in calls of the part and in waits for its requests, not in
 * calls of comm. */
RK_API rkResult_t rkCommSplit(rkComm_t comm, int color, int key, rkComm_t* part) RK_NOEXCEPT;

/* Ranks that go on after others are lost, as in MPI's ULFM. rkCommShrink() and rkCommAgree() work
 * before and after the end of comm; all surviving ranks call them in the same order, outside of
 * groups. They wait for each rank that is neither lost nor finalized, at most for comm's timeout: a
 * rank that has not come then counts as lost. rkRankLost: the others have gone on without this
 * rank; its process should end. rkMismatch: some ranks called the other function. */
/* *part: a new communicator of the survivors, in the order of their ranks and with comm's timeouts.
 * It does not end with comm, and comm may be destroyed. */
RK_API rkResult_t rkCommShrink(rkComm_t comm, rkComm_t* part) RK_NOEXCEPT;
/* *all: the bitwise AND of the survivors' values, the same on all of them. */
RK_API rkResult_t rkCommAgree(rkComm_t comm, unsigned int value, unsigned int* all) RK_NOEXCEPT;
/* Ends comm on all ranks, from any thread: each wait returns rkAborted at once. The handle stays,
 * for rkCommShrink(). */
RK_API rkResult_t rkCommRevoke(rkComm_t comm) RK_NOEXCEPT;
/* *larger: a new communicator of `ranks` ranks, for processes: comm's ranks keep their numbers, and
 * new processes follow. All ranks of comm call it with equal arguments, outside of groups, and each
 * new process calls rkCommInitRankConfig() with the id, `ranks`, a free rank and an equal config,
 * before or after. They wait for each other at most for the config's timeout. A new process
 * succeeds only when all of comm's ranks have. comm stays as it is. A failure has one result on all
 * of comm's ranks. Only if a rank of comm is lost (rkRankLost) comm has ended, and
 * rkCommGetAsyncError() says so: call rkCommShrink() first. After all other failures, such as
 * rkTimeout (a new process did not come) or rkRankLost (a new process ended), comm works, and
 * rkCommGrow() may be called again. config: NULL is RK_CONFIG_INITIALIZER. */
RK_API rkResult_t rkCommGrow(rkComm_t comm, int ranks, rkUniqueId id, const rkConfig_t* config,
                             rkComm_t* larger) RK_NOEXCEPT;

/* Declares that the rank makes no more calls; afterwards only rkCommDestroy() is allowed. Ranks
 * that still need it, now or later, get rkRankLost; data of its earlier calls stay available.
 * Requests in flight continue and are waited for first. Communicators split from comm are not
 * affected. */
RK_API rkResult_t rkCommFinalize(rkComm_t comm) RK_NOEXCEPT;
/* The rank leaves; its handle and the memory of rkMemAlloc() are freed. Ranks that still need it
 * get rkRankLost. Requests in flight first end comm on all ranks. NULL has no effect. */
RK_API rkResult_t rkCommDestroy(rkComm_t comm) RK_NOEXCEPT;
/* Ends all calls of all ranks with rkAborted, from any thread, and destroys this rank's handle
 * after a call in progress on it has returned. NULL has no effect. Not for signal handlers: it
 * frees memory and waits. */
RK_API rkResult_t rkCommAbort(rkComm_t comm) RK_NOEXCEPT;
/* As rkCommAbort(), for signal handlers: async-signal-safe in any interrupted code. The handle
 * stays, for rkCommDestroy() or rkCommAbort(). The text of rkGetLastError() and errno do not
 * change. */
RK_API rkResult_t rkCommAbortFromSignal(rkComm_t comm) RK_NOEXCEPT;
/* Reports that this rank cannot continue: ends all calls of all ranks with rkRemoteError and the
 * text "rank R failed: WHY", from any thread. The handle stays. */
RK_API rkResult_t rkCommFail(rkComm_t comm, const char* why) RK_NOEXCEPT;
/* The calling thread calls check() when a wait gets longer than some microseconds, before it plans
 * a call, and then about every 50 ms while it waits, in a call or for a new communicator; if
 * check() returns a value other than 0, the communicator ends with rkAborted on all ranks. NULL
 * (the initial state): no check. For languages that run signal handlers between their own
 * instructions, or whose threads share a lock that check() can release until the call returns.
 * check() must not make calls of ranks. */
RK_API rkResult_t rkSetInterruptCheck(int (*check)(void)) RK_NOEXCEPT;

RK_API rkResult_t rkCommCount(rkComm_t comm, int* ranks) RK_NOEXCEPT;
RK_API rkResult_t rkCommUserRank(rkComm_t comm, int* rank) RK_NOEXCEPT;
/* The order requested in rkConfig_t, "" for none; valid forever. */
RK_API rkResult_t rkCommGetOrder(rkComm_t comm, const char** order) RK_NOEXCEPT;
/* Names the place in the program that makes this rank's next calls; "" or NULL for none. Errors
 * name it, and with recordTimes `rankine top` shows times by site. At most 63 bytes count. Requests
 * keep their first site; communicators split from comm have separate sites. */
RK_API rkResult_t rkCommSetCallSite(rkComm_t comm, const char* site) RK_NOEXCEPT;
/* *result: rkSuccess while the communicator works, otherwise the reason of its end, with its text
 * in rkGetLastError(). */
RK_API rkResult_t rkCommGetAsyncError(rkComm_t comm, rkResult_t* result) RK_NOEXCEPT;

/* --- Collectives: every rank makes the same calls in the same order --- */

/* out[i] = in[i] of all ranks, reduced; the same bits on every rank, except NaN results: each rank
 * has a NaN there, with any sign and payload (min and max: the same one). Sums, products and
 * averages of rkFloat16, rkBfloat16, rkFloat8e4m3 and rkFloat8e5m2 are computed in float and
 * rounded once, in each reducing function, unless an order of group_invariant is requested. */
RK_API rkResult_t rkAllReduce(const void* in, void* out, size_t count, rkDataType_t type,
                              rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;
/* As rkAllReduce() at the root; other ranks do not use out. */
RK_API rkResult_t rkReduce(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                           int root, rkComm_t comm) RK_NOEXCEPT;
/* out = the root's in; other ranks do not use in. */
RK_API rkResult_t rkBroadcast(const void* in, void* out, size_t count, rkDataType_t type, int root,
                              rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkBcast(void* data, size_t count, rkDataType_t type, int root,
                          rkComm_t comm) RK_NOEXCEPT;
/* out = the ranks' inputs of `count` elements, in rank order. */
RK_API rkResult_t rkAllGather(const void* in, void* out, size_t count, rkDataType_t type,
                              rkComm_t comm) RK_NOEXCEPT;
/* The sum of all ranks' inputs, with 8 bits per element on the way and a float per `block` elements
 * (1 to 65536; 0: 128): a quarter of the bytes of rkFloat32, and less accurate; the same bits on
 * every rank. type: rkFloat32, rkFloat16 or rkBfloat16; as: rkInt8 or rkFloat8e4m3. All ranks must
 * pass equal options. The rank keeps two bytes per element of its longest call. Not in a group;
 * options of rkCommSetCallOptions() do not apply. */
RK_API rkResult_t rkAllReduceQuantised(const void* in, void* out, size_t count, rkDataType_t type,
                                       rkDataType_t as, size_t block, rkComm_t comm) RK_NOEXCEPT;
/* *bound = the largest error of an element of a result of rkAllReduceQuantised(). peaks: by rank,
 * the largest magnitude in the element's block. */
RK_API rkResult_t rkQuantisedError(rkDataType_t type, rkDataType_t as, const double* peaks,
                                   int ranks, double* bound) RK_NOEXCEPT;
/* out = this rank's block, of `count` elements, of the reduced inputs. */
RK_API rkResult_t rkReduceScatter(const void* in, void* out, size_t count, rkDataType_t type,
                                  rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;
/* out at rank r = in of ranks 0 to r, reduced in rank order. Each rank may choose in place or not.
 * No rkAvg. */
RK_API rkResult_t rkScan(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                         rkComm_t comm) RK_NOEXCEPT;
/* As rkScan() over ranks 0 to r - 1. Rank 0 receives nothing: its out is unchanged and may be NULL.
 */
RK_API rkResult_t rkExscan(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                           rkComm_t comm) RK_NOEXCEPT;
/* Block d of in, of `count` elements, goes to rank d, which stores it at the sender's block of out.
 */
RK_API rkResult_t rkAllToAll(const void* in, void* out, size_t count, rkDataType_t type,
                             rkComm_t comm) RK_NOEXCEPT;
/* out at the root = the ranks' inputs of `count` elements, in rank order; other ranks do not use
 * out. */
RK_API rkResult_t rkGather(const void* in, void* out, size_t count, rkDataType_t type, int root,
                           rkComm_t comm) RK_NOEXCEPT;
/* out = this rank's block, of `count` elements, of the root's in; other ranks do not use in. */
RK_API rkResult_t rkScatter(const void* in, void* out, size_t count, rkDataType_t type, int root,
                            rkComm_t comm) RK_NOEXCEPT;
/* Returns when all ranks have called it. */
RK_API rkResult_t rkBarrier(rkComm_t comm) RK_NOEXCEPT;

/* With `ranks` counts, one per rank, zeros included, equal on all ranks; all-to-all: one per pair,
 * at [from * ranks + to]. Buffers hold the rank's input and output without gaps. */
RK_API rkResult_t rkAllGatherCounts(const void* in, void* out, const size_t* counts,
                                    rkDataType_t type, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkReduceScatterCounts(const void* in, void* out, const size_t* counts,
                                        rkDataType_t type, rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkAllToAllCounts(const void* in, void* out, const size_t* counts,
                                   rkDataType_t type, rkComm_t comm) RK_NOEXCEPT;
/* As rkAllToAllCounts(), with blocks at places that this rank chooses: displacements in bytes from
 * the beginning of in and out, one per peer rank; NULL: blocks are contiguous. Gaps are
 * unchanged; received blocks must not overlap. The lists may differ between ranks; groups copy
 * them. */
RK_API rkResult_t rkAllToAllDisplaced(const void* in, const size_t* inDisplacements, void* out,
                                      const size_t* outDisplacements, const size_t* counts,
                                      rkDataType_t type, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkGatherCounts(const void* in, void* out, const size_t* counts, rkDataType_t type,
                                 int root, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkScatterCounts(const void* in, void* out, const size_t* counts,
                                  rkDataType_t type, int root, rkComm_t comm) RK_NOEXCEPT;

/* --- Operations of the caller: for one rank, until rkRedOpDestroy() or the handle's end --- */

/* The sum of each rank's input times the rank's factor. All ranks must use such an operation; the
 * factors may differ. *factor is copied: one element of `type`, or a float for 8- and 16-bit
 * floats. Only for calls of `type`, which must not be rkBool. */
RK_API rkResult_t rkRedOpCreatePreMulSum(rkRedOp_t* op, const void* factor, rkDataType_t type,
                                         rkComm_t comm) RK_NOEXCEPT;
/* Reduces by `function` on elements of 1 to 4,096 bytes, in calls of type rkOpaque. commutative is
 * 1 or 0; with 0, contributions are combined in rank order. All ranks must use equal functions,
 * sizes and commutative, which is checked by a hash of 20 bits (without the function if ranks are
 * processes); `context` may differ between ranks. */
RK_API rkResult_t rkRedOpCreate(rkRedOp_t* op, rkRedFunction_t function, size_t elementBytes,
                                int commutative, void* context, rkComm_t comm) RK_NOEXCEPT;
/* The number is not reused. Calls that a group has collected keep the operation. */
RK_API rkResult_t rkRedOpDestroy(rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;

/* --- Epilogues: steps on the rows of a rank's result while the rows are in its cache --- */

/* The caller keeps the steps' buffers until the epilogue is destroyed; they must not overlap each
 * other or a buffer of the call. An epilogue is used by one thread, in one call at a time. */
RK_API rkResult_t rkEpilogueCreate(rkEpilogue_t* epilogue, const rkRowSteps_t* steps) RK_NOEXCEPT;
/* A function of the caller on rows of `rowElements` elements. */
RK_API rkResult_t rkEpilogueCreateFunction(rkEpilogue_t* epilogue, size_t rowElements,
                                           rkRowFunction_t function, void* context) RK_NOEXCEPT;
/* Applies the epilogue to `count` rows without a collective, with the same bits. */
RK_API rkResult_t rkEpilogueApply(rkEpilogue_t epilogue, const void* rows,
                                  size_t count) RK_NOEXCEPT;
/* Requests keep the epilogue alive. NULL has no effect. */
RK_API rkResult_t rkEpilogueDestroy(rkEpilogue_t epilogue) RK_NOEXCEPT;

/* The collective without "Then", followed by the epilogue on this rank's result, which must consist
 * of whole rows. All ranks pass an epilogue with rows of equal size; the steps may differ between
 * ranks. The result has the same bits as without an epilogue. */
RK_API rkResult_t rkAllReduceThen(const void* in, void* out, size_t count, rkDataType_t type,
                                  rkRedOp_t op, rkEpilogue_t epilogue, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkReduceScatterThen(const void* in, void* out, size_t count, rkDataType_t type,
                                      rkRedOp_t op, rkEpilogue_t epilogue,
                                      rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkAllGatherThen(const void* in, void* out, size_t count, rkDataType_t type,
                                  rkEpilogue_t epilogue, rkComm_t comm) RK_NOEXCEPT;

/* --- Messages between two ranks: only these two ranks make the call --- */

/* Messages from one rank to another are received in the order in which they were sent; count and
 * type must agree. */
RK_API rkResult_t rkSend(const void* data, size_t count, rkDataType_t type, int peer,
                         rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkRecv(void* data, size_t count, rkDataType_t type, int peer,
                         rkComm_t comm) RK_NOEXCEPT;
/* Sets *has to 1 if rank `peer` has begun a message to this rank, and no rkRecv() from it is in
 * flight here, otherwise to 0; does not wait. To receive from any rank, ask for each rank, then
 * call rkRecv(). rkRankLost without the end of the communicator: `peer` has left. */
RK_API rkResult_t rkHasMessage(int peer, rkComm_t comm, int* has) RK_NOEXCEPT;

/* --- Groups --- */

/* Calls of this thread between the two are collected, and started together when the outermost group
 * ends; rkGroupEnd() returns when all are over. So one thread can make the calls of several ranks,
 * and a rank several calls. If one call is refused, none is made, and rkGroupEnd() returns the
 * error. On a modelled network every rank needs a separate thread. */
RK_API rkResult_t rkGroupStart(void) RK_NOEXCEPT;
RK_API rkResult_t rkGroupEnd(void) RK_NOEXCEPT;

/* --- Requests: started calls, used once or repeatedly --- */

/* Ends an outermost group in place of rkGroupEnd(): its calls, of any kind and number, are started,
 * and *request represents all of them.
 *
 *   rkGroupStart();
 *   rkAllReduce(x, x, count, rkFloat32, rkSum, comm);
 *   rkRequest_t request;
 *   rkGroupEndAsync(&request);
 *   ... work that does not touch x ...
 *   rkRequestWait(request);
 *   rkRequestFree(request);
 *
 * Started calls follow the rules of all calls: all ranks start them in the same order. Buffers
 * belong to them until rkRequestTest() has reported that they are over, or rkRequestWait() has
 * returned. They make progress while a thread that plays their ranks is in a call of this library,
 * or on rkConfig_t's progressCore. Errors are those of a blocking call; the text names function and
 * rank. If a call is refused, *request is unchanged and the group has ended without a call, except
 * in two cases that leave the group open: request is NULL, or the group is inside another group. A
 * request is used by one thread at a time, and its ranks' handles are in use meanwhile. */
RK_API rkResult_t rkGroupEndAsync(rkRequest_t* request) RK_NOEXCEPT;
/* As rkGroupEndAsync(), but the calls are only prepared, not started: rkRequestStart() starts them,
 * with the same buffers every time, and without further checks. */
RK_API rkResult_t rkGroupEndPrepare(rkRequest_t* request) RK_NOEXCEPT;
/* Starts a request that was prepared, or has been waited for. */
RK_API rkResult_t rkRequestStart(rkRequest_t request) RK_NOEXCEPT;
/* *over: 1 if all its calls are over; does not wait. After 1 rkRequestWait() returns at once. */
RK_API rkResult_t rkRequestTest(rkRequest_t request, int* over) RK_NOEXCEPT;
/* Waits until the calls are over; afterwards the request may be started again, or freed. */
RK_API rkResult_t rkRequestWait(rkRequest_t request) RK_NOEXCEPT;
/* As rkRequestWait(), for at most `milliseconds`. *over is 1 if the calls are over and have been
 * waited for. */
RK_API rkResult_t rkRequestWaitFor(rkRequest_t request, int64_t milliseconds,
                                   int* over) RK_NOEXCEPT;
/* Waits until all requests are over, of any ranks that this thread plays. Returns the first error;
 * also then all requests have been waited for. */
RK_API rkResult_t rkRequestWaitAll(size_t count, const rkRequest_t* requests) RK_NOEXCEPT;
/* A request in flight is refused (rkInvalidUsage): wait for it first, if necessary after
 * rkCommAbort(). NULL has no effect. */
RK_API rkResult_t rkRequestFree(rkRequest_t request) RK_NOEXCEPT;
/* The levels of order that all its calls keep, including levels that were not requested: "coherent,
 * by_rank"; valid until the next call of this function, or rkRequestFree(). */
RK_API rkResult_t rkRequestGetOrders(rkRequest_t request, const char** orders) RK_NOEXCEPT;
/* Makes calls progress that this thread has started on comm, and on communicators that share a
 * thread with comm. Does not wait. */
RK_API rkResult_t rkCommProgress(rkComm_t comm) RK_NOEXCEPT;

/* --- Buckets: many small tensors as few large all-reduces, as in data-parallel training --- */

/* Tensors are reduced in place, packed into buckets of at most bucketBytes (0: 25,000,000) in the
 * order in which they are added; a larger tensor is reduced at its own place. All ranks add equal
 * sizes in the same order and flush at the same positions. Buckets are used by the thread of their
 * rank, make calls of its handle as any other code, and must be destroyed before the handle.
 * Operations must be below rkNumOps. Not in a group.
 *
 *   rkBucketsCreate(&buckets, 0, comm);                        // once
 *   for (...) rkBucketsAdd(buckets, gradient, count, rkFloat32, rkAvg);  // as they become ready
 *   rkBucketsWait(buckets);                                    // all are averages now
 */
RK_API rkResult_t rkBucketsCreate(rkBuckets_t* buckets, size_t bucketBytes,
                                  rkComm_t comm) RK_NOEXCEPT;
/* The tensor belongs to buckets until rkBucketsWait(). A bucket starts when it is full, or when the
 * next tensor does not fit or has another type or operation; its reduction overlaps with this
 * thread's work. */
RK_API rkResult_t rkBucketsAdd(rkBuckets_t buckets, void* tensor, size_t count, rkDataType_t type,
                               rkRedOp_t op) RK_NOEXCEPT;
/* For a tensor without data on this rank: the rank contributes zeros and receives the result. rkSum
 * and rkAvg only. */
RK_API rkResult_t rkBucketsAddUnused(rkBuckets_t buckets, void* tensor, size_t count,
                                     rkDataType_t type, rkRedOp_t op) RK_NOEXCEPT;
/* Starts the bucket that is not full. */
RK_API rkResult_t rkBucketsFlush(rkBuckets_t buckets) RK_NOEXCEPT;
/* Flushes, and waits until every added tensor is reduced. Returns the first error. */
RK_API rkResult_t rkBucketsWait(rkBuckets_t buckets) RK_NOEXCEPT;
/* Waits for the first `tensors` tensors added since the last rkBucketsWait(); the others continue.
 * Flushes first if one of them is in a bucket that is not full. With bucketBytes 1 each tensor is
 * a call: for blocks of rows that are multiplied, summed and used one after the other. */
RK_API rkResult_t rkBucketsWaitFor(rkBuckets_t buckets, size_t tensors) RK_NOEXCEPT;
/* Adds and waits for all tensors: tensors[i] has counts[i] elements. */
RK_API rkResult_t rkBucketsAllReduce(rkBuckets_t buckets, size_t tensorCount, void* const* tensors,
                                     const size_t* counts, rkDataType_t type,
                                     rkRedOp_t op) RK_NOEXCEPT;
/* The number of all-reduces so far. */
RK_API rkResult_t rkBucketsGetCalls(rkBuckets_t buckets, size_t* calls) RK_NOEXCEPT;
/* Refused while tensors are pending (rkInvalidUsage): call rkBucketsWait() first, if necessary
 * after rkCommAbortFromSignal() or rkCommFail(). NULL has no effect. */
RK_API rkResult_t rkBucketsDestroy(rkBuckets_t buckets) RK_NOEXCEPT;

/* --- Experts: each token's row goes to the experts that a router chose, on any rank, and back ---
 */

/* Rank r has expertCount / ranks neighbouring experts. `choices`: experts per token. `type`, of
 * tokens, and resultType, of results and out: floats of at most 32 bits. `capacity`: the most rows
 * of an expert, from all ranks; rows beyond it are dropped, of the highest ranks and there of the
 * last tokens; 0: no limit. All but `choices` must be equal on all ranks. Experts are used by the
 * thread of their rank, and must be destroyed before the handle. Options of rkCommSetCallOptions()
 * do not apply. Not in a group.
 *
 *   rkExpertsDispatch(experts, tokens, indices, tokenCount, rows, room);
 *   rkExpertsGetCounts(experts, &counts, &count);
 *   ... each expert works on its rows, in place or apart ...
 *   rkExpertsCombine(experts, rows, weights, out);
 */
RK_API rkResult_t rkExpertsCreate(rkExperts_t* experts, int expertCount, int choices,
                                  size_t rowElements, rkDataType_t type, rkDataType_t resultType,
                                  size_t capacity, rkComm_t comm) RK_NOEXCEPT;
/* tokens: tokenCount rows. indices[t * choices + c]: the expert of choice c of token t; -1: none.
 * rows: room for `room` rows. Arriving rows lie without gaps in the order of this rank's experts,
 * for one expert in the order of ranks, tokens and choices. If the room of a rank is too small, or
 * an index is invalid, all ranks get rkInvalidArgument and no row moves. */
RK_API rkResult_t rkExpertsDispatch(rkExperts_t experts, const void* tokens, const int32_t* indices,
                                    size_t tokenCount, void* rows, size_t room) RK_NOEXCEPT;
/* Once after each dispatch. results: a row for each row that has arrived, at its place. Row t of
 * out = the sum over c of weights[t * choices + c] (NULL: 1) times the result of choice c of token
 * t, in float, rounded once; choices without expert and dropped choices add nothing. */
RK_API rkResult_t rkExpertsCombine(rkExperts_t experts, const void* results, const float* weights,
                                   void* out) RK_NOEXCEPT;
/* Of the latest dispatch, valid until the next one: the rows of each of this rank's experts; and
 * the positions in indices whose rows were dropped, ascending. */
RK_API rkResult_t rkExpertsGetCounts(rkExperts_t experts, const size_t** counts,
                                     size_t* count) RK_NOEXCEPT;
RK_API rkResult_t rkExpertsGetDropped(rkExperts_t experts, const size_t** dropped,
                                      size_t* count) RK_NOEXCEPT;
/* NULL has no effect. */
RK_API rkResult_t rkExpertsDestroy(rkExperts_t experts) RK_NOEXCEPT;

/* --- Active ranks: collectives that go on without late or lost ranks --- */

enum rkCollective_t RK_INT_ENUM {
  rkCollAllReduce = 0,
  rkCollBroadcast = 1,
  rkCollAllGather = 2,
  rkCollReduceScatter = 3,
  rkCollAllToAll = 4,
  rkCollReduce = 5,
  rkCollGather = 6,
  rkCollScatter = 7,
  rkCollScan = 8,
  rkCollExscan = 9
};
typedef enum rkCollective_t rkCollective_t;

/* All ranks of comm call it, as rkCommShrink(); comm may then end or be destroyed. waitUs: the
 * longest time, in microseconds, that a call waits for other ranks; 0 and more. bytes: the largest
 * input of a rank, equal on all ranks. One thread at a time uses *active. */
RK_API rkResult_t rkActiveCreate(rkActive_t* active, int64_t waitUs, size_t bytes,
                                 rkComm_t comm) RK_NOEXCEPT;
/* This rank and the number of ranks: those of comm, unless ranks were lost before. */
RK_API rkResult_t rkActiveGetRank(rkActive_t active, int* rank, int* ranks) RK_NOEXCEPT;
/* From now on this rank's calls wait for these ranks only; at first for all. Others contribute if
 * they have come by then. */
RK_API rkResult_t rkActiveWaitFor(rkActive_t active, const int* ranks, size_t count) RK_NOEXCEPT;
/* Makes the collective among the ranks that come in time; arguments and buffers are those of its
 * function above, and in and out may overlap. op counts in reductions; root where it has one.
 * *ranks: the ranks that have contributed, ascending, the same on each rank with a result; valid
 * until the next call. rankCount 0: the others have gone on without this rank, and it has no
 * result. Blocks of other ranks in out stay as they are, and averages divide by the number of ranks
 * listed. Calls are matched by their number: a late rank makes the missed calls too, which return
 * at once. No error ends *active; a refused call must be made again. engine/api/active.h has the
 * contract. */
RK_API rkResult_t rkActiveCall(rkActive_t active, rkCollective_t collective, const void* in,
                               void* out, size_t count, rkDataType_t type, rkRedOp_t op, int root,
                               const int** ranks, size_t* rankCount) RK_NOEXCEPT;
/* The rank is lost for the others. NULL has no effect. */
RK_API rkResult_t rkActiveDestroy(rkActive_t active) RK_NOEXCEPT;

/* --- Functions without a counterpart in NCCL --- */

/* Sets the options of this rank's later calls; NULL: the engine chooses. All ranks must set equal
 * options. An invalid transport, order, time, flag or list is refused here; algorithm names and
 * their parameters are refused by the calls that they do not suit. */
RK_API rkResult_t rkCommSetCallOptions(rkComm_t comm, const rkCallOptions_t* options) RK_NOEXCEPT;

/* Allocates zeroed memory near this rank, in whole pages; *memory is valid until rkMemFree() or the
 * handle's end. If ranks are processes, all of them share it (sharedPayloads of rkCallOptions_t).
 * Errors, including rkOutOfMemory, leave the communicator usable. */
RK_API rkResult_t rkMemAlloc(rkComm_t comm, void** memory, size_t bytes) RK_NOEXCEPT;
/* NULL has no effect. */
RK_API rkResult_t rkMemFree(rkComm_t comm, void* memory) RK_NOEXCEPT;

/* The last actions of every rank, as JSON. Writes at most `size` bytes, with a final 0; *needed, if
 * not NULL, is the size of the complete text. text may be NULL if size is 0. */
RK_API rkResult_t rkCommFlightRecord(rkComm_t comm, char* text, size_t size,
                                     size_t* needed) RK_NOEXCEPT;

/* On a modelled network: the model's time in seconds at which this rank's last call ended (0
 * without a network), and local work of the given length. */
RK_API rkResult_t rkCommModelTime(rkComm_t comm, double* seconds) RK_NOEXCEPT;
RK_API rkResult_t rkCommCompute(rkComm_t comm, double seconds) RK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* RANKINE_RANKINE_H_ */
