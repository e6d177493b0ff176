/* Rankine for C, and for whatever calls C: collectives among threads of one process, or among
 * processes, in NCCL's shape.
 *
 *   rkUniqueId id;                           // once
 *   rkGetUniqueId(&id);
 *   rkComm_t comm;                           // on the thread that plays rank r of n
 *   rkCommInitRank(&comm, n, id, r);
 *   rkAllReduce(x, sum, count, rkFloat32, rkSum, comm);
 *   rkCommDestroy(comm);
 *
 * A rkComm_t is one rank's handle. What NCCL's functions of the same name say holds here too, but:
 * there are no streams, so a call is done when it returns, or when its group's request has been
 * waited for; whether ranks are threads or processes, the id says that they meet under; and every
 * call checks its arguments before a byte moves. engine/api/c/NCCL.md has the table.
 *
 * Errors. Every function returns a rkResult_t and throws nothing. rkGetLastError() has the text of
 * this thread's last one: it names the function, the argument, its value and what is allowed. What
 * only the engine can judge goes by the engine's names: row_elements for rowElements. After
 * rkInvalidArgument and rkInvalidUsage nothing has happened and the communicator goes on (but other
 * ranks wait for this call until their deadline). Every other error ends the communicator on all
 * its ranks: each of their calls returns the same result, outputs are undefined, and what is left
 * to do is rkCommDestroy(). Pointers that a function says nothing else of must not be NULL.
 *
 * Buffers belong to the caller, need no alignment and may be in place: with in == out (all-reduce,
 * reduce, broadcast, all-to-all), with in at the rank's own block of out (all-gather, gather), or
 * with out at its own block of in (reduce-scatter, scatter). What a rank gets may overlap with no
 * buffer of another rank.
 *
 * Threads. One rank's handle is used by one thread at a time; a second one is told so
 * (rkInvalidUsage), but for rkCommAbort, rkCommAbortFromSignal, rkCommFail, rkCommGetAsyncError,
 * rkCommCount, rkCommUserRank, rkCommCpu, rkCommPortsInUse and rkCommFlightRecord, which may be
 * called at any time. A handle that has been destroyed, or is none, is an error and never followed.
 *
 * The end of a thread. A rank that cannot go on says so: rkCommFail(), rkCommFinalize() or
 * rkCommDestroy() end the waits of the others at once. Where the thread that has made all calls of a
 * rank just ends, ranks that wait for it get rkRankLost after 50 to 100 ms, if the waiting rank is
 * still played by its own first thread and that thread did not make the other's handle. Else the
 * rank may be another thread's next (threads that are started and joined step by step), and the
 * deadline ends the wait. A rank moves to another thread while threads of other ranks stay: the next
 * thread calls rkCommProgress() before the first one ends.
 *
 * Signal handlers may call rkCommAbortFromSignal() and no other function.
 *
 * Processes. In a forked child all inherited handles give rkForked; rkCommDestroy, rkCommAbort,
 * rkRequestFree, rkBucketsDestroy and rkEpilogueDestroy drop them there and leave the parent's ranks
 * alone. The child may make communicators of its own.
 *
 * Stability. Within librankine.so.1 functions are added and never changed; structs begin with their
 * size and grow at their ends.
 */
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

/* Numbers below 8 are NCCL's for the same. */
enum rkResult_t RK_INT_ENUM {
  rkSuccess = 0,
  rkSystemError = 2,     /* the operating system refused something that is needed; finished */
  rkInternalError = 3,   /* a defect of Rankine */
  rkInvalidArgument = 4, /* nothing has happened; the communicator goes on */
  rkInvalidUsage = 5,    /* likewise: not now, or not on this thread */
  rkRemoteError = 6,     /* another rank failed; finished */
  rkMismatch = 8,        /* ranks called different things; finished */
  rkTimeout = 9,         /* a deadline passed; finished */
  rkRankLost = 10,       /* a rank left while others needed it; finished */
  rkAborted = 11,        /* somebody called rkCommAbort; finished */
  rkOutOfMemory = 12,    /* there was none for what the call needs; finished */
  rkForked = 13          /* this process is a fork of the one whose rank this is */
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
  rkOpaque = 100 /* with an operation of rkRedOpCreate() and nothing else: an element of its own */
};
typedef enum rkDataType_t rkDataType_t;

/* Numbers below 5 are NCCL's. Bit operations are for integers. Numbers from rkNumOps on are made by
 * rkRedOpCreate() and rkRedOpCreatePreMulSum(), each of one rank. */
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

/* A reduction of the caller's: inout[i] = in[i] op inout[i] for i < count, where `in` holds what
 * lower ranks have brought. It returns 0, or else the call fails on the ranks that need the result,
 * with rkRemoteError. It is called on pieces of a vector, aligned to a cache line, from the threads
 * of the ranks that reduce, several at once; it must be associative, and makes no calls of ranks.
 */
typedef int (*rkRedFunction_t)(const void* in, void* inout, size_t count, void* context);

/* Behind a collective: `count` rows of this rank's output from row `first` on, side by side at
 * `rows`. It returns 0, or else the call fails as where its rank had failed, with rkRemoteError. It
 * is called on the thread of its rank, or on that of a progressCore, on each row once, in no
 * promised order; it leaves the rows as they are and makes no calls of ranks. */
typedef int (*rkRowFunction_t)(const void* rows, size_t first, size_t count, void* context);

typedef struct rkComm* rkComm_t;
#define RK_COMM_NULL NULL

/* Calls that are not waited for. */
typedef struct rkRequest* rkRequest_t;
#define RK_REQUEST_NULL NULL

/* What a rank goes on to do with the rows of its result. */
typedef struct rkEpilogue* rkEpilogue_t;

/* Many small tensors, reduced as few large vectors. */
typedef struct rkBuckets* rkBuckets_t;

#define RK_SPLIT_NOCOLOR (-1)

#define RK_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[RK_UNIQUE_ID_BYTES];
} rkUniqueId;

/* How a communicator is made: `rkConfig_t config = RK_CONFIG_INITIALIZER;`, then what shall differ.
 * All ranks give the same. Nothing is kept of what pointers point to. */
typedef struct rkConfig_t {
  size_t size;         /* sizeof(rkConfig_t) */
  int64_t timeoutMs;   /* a call that takes longer ends the communicator; 0: 30,000; -1: for ever */
  const char* wait;    /* "spin", "yield", "park"; NULL or "auto": as the cores allow */
  const char* network; /* a modelled network for all calls, as RANKINE_NETWORK has it; NULL:
                          RANKINE_NETWORK's, or none */
  const int* nodes; /* the memory node of each rank, -1 for any; NULL: memory lies where it is first
                       touched */
  const int*
      levels; /* sizes of groups of neighbouring ranks, innermost first; NULL with levelCount 0 */
  int levelCount;
  int tuned;        /* 1: this machine's tuning table chooses, where there is one; 0: it does not */
  int recordTimes;  /* 1: flight records have times; 0: not */
  size_t planBytes; /* memory that the planning of one call may take; 0: 1 GiB */
  const char* order; /* what is promised of the last bits of sums: "coherent", "repeatable",
                        "by_rank", "size_invariant", "group_invariant" (engine/api/order.h); NULL:
                        coherent, but for algorithms that are asked for by name */
  int progressCore;  /* the CPU of a thread that moves on what ranks have started while they do
                        other things, and sleeps else; -1: they do so themselves */
  const char* placement; /* where ranks run, each thread pinned to a CPU and its memory on that
                            CPU's node: "compact", "scatter", "one_per_node", CPUs by rank such as
                            "0,2,4-7", or "none": threads run where they are. NULL: compact for
                            rkCommInitAll and rkCommInitAllConfig without nodes, else none. Threads
                            are pinned as "Pinned threads" says, below */
  int ports;             /* at most so many messages of a rank are in flight in each direction, as if
                            it had so many network ports; all calls go through mailboxes then. 0: no
                            budget. Not with a network, which has its own */
} rkConfig_t;
#define RK_CONFIG_INITIALIZER \
  { sizeof(rkConfig_t), 0, NULL, NULL, NULL, NULL, 0, 1, 0, 0, NULL, -1, NULL, 0 }

/* How calls are done, where the engine shall not choose: `rkCallOptions_t options =
 * RK_CALL_OPTIONS_INITIALIZER;`. */
typedef struct rkCallOptions_t {
  size_t size;           /* sizeof(rkCallOptions_t) */
  const char* algorithm; /* a name of `rankine list`; it runs, or the call fails; NULL: chosen */
  const char* transport; /* "direct", "mailbox" or "board"; NULL or "auto": chosen */
  int64_t timeoutMs;     /* 0: the communicator's; -1: for ever */
  int segments;          /* of pipelined algorithms; 0: chosen */
  int group;             /* ranks per group of hierarchical ones; 0: the default */
  int aggregation;       /* blocks per message of PAT; 0: the default */
  const int* dims;       /* sizes of a torus; NULL with dimCount 0 */
  int dimCount;
  const int* skips; /* of circulant graphs, round by round; NULL with skipCount 0 */
  int skipCount;
  const int* levels; /* of trees by levels; NULL with levelCount 0 */
  int levelCount;
  uint64_t tag;       /* what ranks must agree on beside count and type, as a number */
  const char* order;  /* as rkConfig_t's; NULL: the communicator's */
  int radix;          /* of trees, butterflies and Bruck's; 0: two */
  int sharedPayloads; /* where ranks are processes, 1: all ranks' buffers are of rkMemAlloc(), and
                         the others read and write them in place; 0: what others read is copied */
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

/* What becomes of each row x of a result, in this order, in floats: `rkRowSteps_t steps =
 * RK_ROW_STEPS_INITIALIZER;`, then what shall be done. What is NULL or none is left out. */
typedef struct rkRowSteps_t {
  size_t size;       /* sizeof(rkRowSteps_t) */
  rkDataType_t type; /* rkFloat32, rkFloat16 or rkBfloat16: of the call, and of bias to shift */
  size_t rowElements;
  const void* bias; /* a row: x += bias */
  void* residual;   /* as many rows as the call's out has here: residual += x, and x = residual */
  rkNorm_t norm;
  const void* weight; /* a row; NULL: ones */
  const void* shift;  /* a row, of layer norms; NULL: zeros */
  float epsilon;
  rkActivation_t activation;
  rkDataType_t outType; /* the same three, or rkInt8 and rkFloat8e4m3, which are scaled by row: the
                           largest |x| becomes 127, or 448 */
  void* out;            /* rows; NULL: only the residual is wanted */
  float* scales;        /* one a row, of rkInt8 and rkFloat8e4m3: x is out times scale */
} rkRowSteps_t;
#define RK_ROW_STEPS_INITIALIZER                                                    \
  {                                                                                 \
    sizeof(rkRowSteps_t), rkBfloat16, 0, NULL, NULL, rkNormNone, NULL, NULL, 1e-5f, \
        rkActivationNone, rkBfloat16, NULL, NULL                                    \
  }

/* The library's, as RK_VERSION_CODE is the header's. */
RK_API rkResult_t rkGetVersion(int* version) RK_NOEXCEPT;
/* What a result means, in a few words; of any number, never NULL. */
RK_API const char* rkGetErrorString(rkResult_t result) RK_NOEXCEPT;
/* The text of this thread's last error, "" before the first; until its next one. comm is not looked
 * at and may be NULL. */
RK_API const char* rkGetLastError(rkComm_t comm) RK_NOEXCEPT;

/* --- Communicators --- */

/* A name for a communicator to be made of threads, valid in this process, for one communicator. */
RK_API rkResult_t rkGetUniqueId(rkUniqueId* id) RK_NOEXCEPT;
/* The same of processes of one user on one machine: made by one of them and sent to the others, by
 * whatever means there are. */
RK_API rkResult_t rkGetUniqueIdOfProcesses(rkUniqueId* id) RK_NOEXCEPT;
/* Likewise, without sending: processes that give the same name have the same id, of 1 to 100
 * letters, digits, '.', '-' and '_'. They may meet under it again. */
RK_API rkResult_t rkGetUniqueIdByName(rkUniqueId* id, const char* name) RK_NOEXCEPT;
/* Rank `rank` of the `ranks` that meet under that id, from any thread. Of threads, it waits for
 * nobody: the first call does. Of processes, until all have come, no longer than timeoutMs: what
 * goes wrong for one is the error of all who are waiting. A process that plays several ranks makes
 * them in a group, at whose end they come together, and *comm is set:
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
/* All ranks at once: comms has room for `ranks` handles, to be handed to their threads, which are
 * pinned (see rkConfig_t's placement) unless nodes says where memory lies. nodes: as rkConfig_t's,
 * or NULL. */
RK_API rkResult_t rkCommInitAll(rkComm_t* comms, int ranks, const int* nodes) RK_NOEXCEPT;
RK_API rkResult_t rkCommInitAllConfig(rkComm_t* comms, int ranks,
                                      const rkConfig_t* config) RK_NOEXCEPT;

/* Pinned threads. With a placement, rkCommInitRank and rkCommInitRankConfig pin the thread that
 * calls them, outside of a group. A rank of rkCommInitAll, of rkCommInitAllConfig or of a group that
 * makes several is played by a thread that is not known yet: rkCommPinThread() pins the one that
 * calls it, and without that the rank's first call outside of a group does. The pin stays when comm
 * ends, and threads that the pinned thread makes later inherit it: make pools of threads before, or
 * ask for "none". What the kernel refuses is a warning on stderr, and rkCommCpu() tells. */
/* Pins the calling thread, which is to play this rank; without a placement it does nothing. */
RK_API rkResult_t rkCommPinThread(rkComm_t comm) RK_NOEXCEPT;
/* *cpu: the CPU that this rank runs on, by the operating system's number; -1 where the thread that
 * makes its calls may run on several, or none has made a call or been pinned yet. */
RK_API rkResult_t rkCommCpu(rkComm_t comm, int* cpu) RK_NOEXCEPT;
/* The most messages that this rank has had in flight at once so far, its own and those to it: with
 * rkConfig_t's ports or on a modelled network; else 0. */
RK_API rkResult_t rkCommPortsInUse(rkComm_t comm, int* mostSent, int* mostReceived) RK_NOEXCEPT;

/* The ranks that say the same color become a communicator of their own, ordered by key, and by rank
 * where keys are equal: a call of all ranks. *part is RK_COMM_NULL for RK_SPLIT_NOCOLOR; in a group
 * it is that until the group's end, or its request, has been waited for. Its timeouts are comm's. It
 * ends when comm does: a rank that has been told of comm's end, by a call or by
 * rkCommGetAsyncError(), can make no call on the part. It is destroyed separately. */
RK_API rkResult_t rkCommSplit(rkComm_t comm, int color, int key, rkComm_t* part) RK_NOEXCEPT;

/* The rank makes no more calls; what is left to do is rkCommDestroy(). Ranks that still need it, now
 * or later, get rkRankLost; what they need of its calls so far stays. Requests that are under way on
 * it go on and are waited for first. Communicators that were split from comm are not concerned. */
RK_API rkResult_t rkCommFinalize(rkComm_t comm) RK_NOEXCEPT;
/* The rank leaves, and its handle and the memory of rkMemAlloc() go. Ranks that still need it get
 * rkRankLost. Requests that are under way on it end comm on all ranks first. NULL is nothing. */
RK_API rkResult_t rkCommDestroy(rkComm_t comm) RK_NOEXCEPT;
/* Ends all calls of all ranks with rkAborted, from any thread, and destroys this rank's handle; a
 * call in progress on it comes back first. NULL is nothing. Not in a signal handler: it frees memory
 * and waits. */
RK_API rkResult_t rkCommAbort(rkComm_t comm) RK_NOEXCEPT;
/* The same for signal handlers: async-signal-safe, whatever the thread that it interrupts is doing.
 * The handle stays, for rkCommDestroy() or rkCommAbort(). No text: rkGetLastError() stays as it is.
 * errno too. */
RK_API rkResult_t rkCommAbortFromSignal(rkComm_t comm) RK_NOEXCEPT;
/* This rank cannot go on: ends all calls of all ranks with rkRemoteError and the text "rank R
 * failed: WHY", from any thread. The handle stays. */
RK_API rkResult_t rkCommFail(rkComm_t comm, const char* why) RK_NOEXCEPT;
/* While the calling thread waits for longer than 50 ms, in a call or for a communicator to be made,
 * check() is called on it every 50 ms or so; where it returns not 0, the communicator ends with
 * rkAborted on all ranks. NULL: none, as at first. For languages that run signal handlers between
 * two of their own instructions. check() makes no calls of ranks. */
RK_API rkResult_t rkSetInterruptCheck(int (*check)(void)) RK_NOEXCEPT;

RK_API rkResult_t rkCommCount(rkComm_t comm, int* ranks) RK_NOEXCEPT;
RK_API rkResult_t rkCommUserRank(rkComm_t comm, int* rank) RK_NOEXCEPT;
/* What was asked for as rkConfig_t's order, "" for nothing; valid for ever. */
RK_API rkResult_t rkCommGetOrder(rkComm_t comm, const char** order) RK_NOEXCEPT;
/* *result: rkSuccess while the communicator works, else why it ended, with the text in
 * rkGetLastError(). */
RK_API rkResult_t rkCommGetAsyncError(rkComm_t comm, rkResult_t* result) RK_NOEXCEPT;

/* --- Collectives: every rank makes the same calls in the same order --- */

/* out[i] = in of all ranks, reduced; the same bits on every rank, but for a result that is NaN:
 * each rank has a NaN there, of any sign and payload (min and max: the same one). Sums, products
 * and averages of rkFloat16, rkBfloat16, rkFloat8e4m3 and rkFloat8e5m2 are computed in float and
 * rounded once, by each function that reduces, unless an order of group_invariant is asked for. */
RK_API rkResult_t rkAllReduce(const void* in, void* out, size_t count, rkDataType_t type,
                              rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;
/* The same at the root; elsewhere out is not used. */
RK_API rkResult_t rkReduce(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                           int root, rkComm_t comm) RK_NOEXCEPT;
/* out = the root's in, which is not used elsewhere. */
RK_API rkResult_t rkBroadcast(const void* in, void* out, size_t count, rkDataType_t type, int root,
                              rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkBcast(void* data, size_t count, rkDataType_t type, int root,
                          rkComm_t comm) RK_NOEXCEPT;
/* out = the ranks' inputs of `count` elements, one after the other. */
RK_API rkResult_t rkAllGather(const void* in, void* out, size_t count, rkDataType_t type,
                              rkComm_t comm) RK_NOEXCEPT;
/* out = this rank's block, of `count` elements, of the reduced inputs. */
RK_API rkResult_t rkReduceScatter(const void* in, void* out, size_t count, rkDataType_t type,
                                  rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;
/* out at rank r = in of ranks 0 to r, reduced in their order; may be in place, on each rank as it
 * likes. No rkAvg. */
RK_API rkResult_t rkScan(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                         rkComm_t comm) RK_NOEXCEPT;
/* Of ranks 0 to r - 1. Rank 0 hears nobody: its out is left as it is, and may be NULL. */
RK_API rkResult_t rkExscan(const void* in, void* out, size_t count, rkDataType_t type, rkRedOp_t op,
                           rkComm_t comm) RK_NOEXCEPT;
/* Block d of in, of `count` elements, goes to rank d, which puts it at the place of the sender. */
RK_API rkResult_t rkAllToAll(const void* in, void* out, size_t count, rkDataType_t type,
                             rkComm_t comm) RK_NOEXCEPT;
/* out at the root = the ranks' inputs of `count` elements, one after the other; elsewhere it is not
 * used. */
RK_API rkResult_t rkGather(const void* in, void* out, size_t count, rkDataType_t type, int root,
                           rkComm_t comm) RK_NOEXCEPT;
/* out = this rank's block, of `count` elements, of the root's in, which is not used elsewhere. */
RK_API rkResult_t rkScatter(const void* in, void* out, size_t count, rkDataType_t type, int root,
                            rkComm_t comm) RK_NOEXCEPT;
/* Returns when all ranks have called it. */
RK_API rkResult_t rkBarrier(rkComm_t comm) RK_NOEXCEPT;

/* With a count per rank, `ranks` of them, zeros included, the same on all ranks; all-to-all: per
 * pair, [from * ranks + to]. Buffers hold what the rank gives and gets, without gaps. */
RK_API rkResult_t rkAllGatherCounts(const void* in, void* out, const size_t* counts,
                                    rkDataType_t type, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkReduceScatterCounts(const void* in, void* out, const size_t* counts,
                                        rkDataType_t type, rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkAllToAllCounts(const void* in, void* out, const size_t* counts,
                                   rkDataType_t type, rkComm_t comm) RK_NOEXCEPT;
/* The same with blocks that lie where this rank says: in bytes from the beginning of in and out, by
 * the rank that a block goes to or comes from; NULL: one after the other. Gaps are left as they
 * are; what is received may not overlap. Lists may differ from rank to rank and are copied by
 * groups. */
RK_API rkResult_t rkAllToAllDisplaced(const void* in, const size_t* inDisplacements, void* out,
                                      const size_t* outDisplacements, const size_t* counts,
                                      rkDataType_t type, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkGatherCounts(const void* in, void* out, const size_t* counts, rkDataType_t type,
                                 int root, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkScatterCounts(const void* in, void* out, const size_t* counts,
                                  rkDataType_t type, int root, rkComm_t comm) RK_NOEXCEPT;

/* --- Operations of the caller's: of one rank, until rkRedOpDestroy() or the handle's end --- */

/* The sum of what each rank brings times its own factor; ranks may have different ones, and all
 * bring one. *factor is copied: an element of that type, of 8- and 16-bit floats a float. For calls
 * of that type, which must not be rkBool. */
RK_API rkResult_t rkRedOpCreatePreMulSum(rkRedOp_t* op, const void* factor, rkDataType_t type,
                                         rkComm_t comm) RK_NOEXCEPT;
/* Reduces by `function` on elements of 1 to 4,096 bytes, in calls of type rkOpaque. commutative is
 * 1 or 0: then contributions meet in the order of the ranks. All ranks use the same function, size
 * and commutative, which is checked as a hash of 20 bits (but for the function where ranks are
 * processes); `context` is each rank's own. */
RK_API rkResult_t rkRedOpCreate(rkRedOp_t* op, rkRedFunction_t function, size_t elementBytes,
                                int commutative, void* context, rkComm_t comm) RK_NOEXCEPT;
/* The number is not given again. Calls that a group has collected keep what they need. */
RK_API rkResult_t rkRedOpDestroy(rkRedOp_t op, rkComm_t comm) RK_NOEXCEPT;

/* --- Epilogues: what a rank goes on to do with rows of its result while they are in its cache ---
 */

/* The steps' buffers stay the caller's until the epilogue is destroyed, and overlap neither each
 * other nor a buffer of the call. An epilogue is used by one thread, in one call at a time. */
RK_API rkResult_t rkEpilogueCreate(rkEpilogue_t* epilogue, const rkRowSteps_t* steps) RK_NOEXCEPT;
/* A function of the caller's on rows of `rowElements` elements. */
RK_API rkResult_t rkEpilogueCreateFunction(rkEpilogue_t* epilogue, size_t rowElements,
                                           rkRowFunction_t function, void* context) RK_NOEXCEPT;
/* The pass over `count` rows by itself, with the same bits. */
RK_API rkResult_t rkEpilogueApply(rkEpilogue_t epilogue, const void* rows,
                                  size_t count) RK_NOEXCEPT;
/* Requests keep what they need. NULL is nothing. */
RK_API rkResult_t rkEpilogueDestroy(rkEpilogue_t epilogue) RK_NOEXCEPT;

/* The collective of the same name, and the epilogue on what this rank gets, which is whole rows.
 * All ranks call with one, of rows of the same size; what it does is each rank's own affair. The
 * result's bits are those of the call without. */
RK_API rkResult_t rkAllReduceThen(const void* in, void* out, size_t count, rkDataType_t type,
                                  rkRedOp_t op, rkEpilogue_t epilogue, rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkReduceScatterThen(const void* in, void* out, size_t count, rkDataType_t type,
                                      rkRedOp_t op, rkEpilogue_t epilogue,
                                      rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkAllGatherThen(const void* in, void* out, size_t count, rkDataType_t type,
                                  rkEpilogue_t epilogue, rkComm_t comm) RK_NOEXCEPT;

/* --- Messages from one rank to one rank: the call of these two alone --- */

/* Messages from a rank to another one are received in the order in which they are sent; count and
 * type must agree. */
RK_API rkResult_t rkSend(const void* data, size_t count, rkDataType_t type, int peer,
                         rkComm_t comm) RK_NOEXCEPT;
RK_API rkResult_t rkRecv(void* data, size_t count, rkDataType_t type, int peer,
                         rkComm_t comm) RK_NOEXCEPT;

/* --- Groups --- */

/* Calls of this thread between the two are collected, and started together when the outermost group
 * ends, which returns when all are done. So one thread can make the calls of several ranks, and a
 * rank several calls. Where one of them is refused, none is made and rkGroupEnd() says why. On a
 * modelled network every rank needs a thread of its own. */
RK_API rkResult_t rkGroupStart(void) RK_NOEXCEPT;
RK_API rkResult_t rkGroupEnd(void) RK_NOEXCEPT;

/* --- Requests: calls that are not waited for, once or again and again --- */

/* In the place of rkGroupEnd() for an outermost group: its calls, of any kind and number, are
 * started, and *request stands for all of them.
 *
 *   rkGroupStart();
 *   rkAllReduce(x, x, count, rkFloat32, rkSum, comm);
 *   rkRequest_t request;
 *   rkGroupEndAsync(&request);
 *   ... work that does not touch x ...
 *   rkRequestWait(request);
 *   rkRequestFree(request);
 *
 * Started calls are calls like any other: all ranks make them in the same order, counted by when
 * they are started. Buffers belong to them until rkRequestTest() has said that they are over, or
 * rkRequestWait() has returned. They move on while a thread that plays their ranks is in a call of
 * this library, or on rkConfig_t's progressCore. A call fails as if it were waited for; the text
 * names function and rank. Where it is refused *request is not touched, and but for a NULL and for
 * a group inside another one, which both stay open, the group has ended and made no call. A request
 * is used by one thread at a time, and its ranks' handles are in use meanwhile. */
RK_API rkResult_t rkGroupEndAsync(rkRequest_t* request) RK_NOEXCEPT;
/* The same, but the calls are only made ready, which is no call: rkRequestStart() makes them, with
 * the same buffers every time, and checks nothing any more. */
RK_API rkResult_t rkGroupEndPrepare(rkRequest_t* request) RK_NOEXCEPT;
/* Of a request that was prepared, or has been waited for. */
RK_API rkResult_t rkRequestStart(rkRequest_t request) RK_NOEXCEPT;
/* *over: 1 where all its calls are over; it waits for nobody. rkRequestWait() then returns at once.
 */
RK_API rkResult_t rkRequestTest(rkRequest_t request, int* over) RK_NOEXCEPT;
/* Until they are over; then the request may be started again, or freed. */
RK_API rkResult_t rkRequestWait(rkRequest_t request) RK_NOEXCEPT;
/* The same for no longer than that; *over is 1 where they were over, and have been waited for. */
RK_API rkResult_t rkRequestWaitFor(rkRequest_t request, int64_t milliseconds,
                                   int* over) RK_NOEXCEPT;
/* Until all of them are over, of whichever ranks this thread plays. The first error, if any: all
 * have been waited for then. */
RK_API rkResult_t rkRequestWaitAll(size_t count, const rkRequest_t* requests) RK_NOEXCEPT;
/* Not while it is under way (rkInvalidUsage): wait for it, after rkCommAbort() if need be. NULL is
 * nothing. */
RK_API rkResult_t rkRequestFree(rkRequest_t request) RK_NOEXCEPT;
/* The levels of order that all its calls keep beyond what was asked for: "coherent, by_rank"; valid
 * until it is asked again, or freed. */
RK_API rkResult_t rkRequestGetOrders(rkRequest_t request, const char** orders) RK_NOEXCEPT;
/* Moves on what this thread has started on comm, and on what comm shares a thread with, without
 * waiting. */
RK_API rkResult_t rkCommProgress(rkComm_t comm) RK_NOEXCEPT;

/* --- Buckets: many small tensors as few large all-reduces, as data-parallel training does --- */

/* Tensors are reduced in place, packed into buckets of at most bucketBytes (0: 25,000,000) in the
 * order in which they are added; a larger tensor is reduced where it is. All ranks add the same
 * sizes in the same order and flush at the same places. Buckets are used by the thread of their
 * rank, make calls of its handle like any other, and go before it. Operations are those below
 * rkNumOps. Not in a group.
 *
 *   rkBucketsCreate(&buckets, 0, comm);                        // once
 *   for (...) rkBucketsAdd(buckets, gradient, count, rkFloat32, rkAvg);  // as they become ready
 *   rkBucketsWait(buckets);                                    // all are averages now
 */
RK_API rkResult_t rkBucketsCreate(rkBuckets_t* buckets, size_t bucketBytes,
                                  rkComm_t comm) RK_NOEXCEPT;
/* The tensor belongs to buckets until rkBucketsWait(). A bucket starts when the next tensor does not
 * fit or has another type or operation, and goes on beside this thread's work. */
RK_API rkResult_t rkBucketsAdd(rkBuckets_t buckets, void* tensor, size_t count, rkDataType_t type,
                               rkRedOp_t op) RK_NOEXCEPT;
/* A tensor that this rank has nothing for: it brings zeros, and gets what the others bring. rkSum
 * and rkAvg. */
RK_API rkResult_t rkBucketsAddUnused(rkBuckets_t buckets, void* tensor, size_t count,
                                     rkDataType_t type, rkRedOp_t op) RK_NOEXCEPT;
/* Starts the bucket that is not full. */
RK_API rkResult_t rkBucketsFlush(rkBuckets_t buckets) RK_NOEXCEPT;
/* Flushes, and waits until every tensor added is reduced. The first error. */
RK_API rkResult_t rkBucketsWait(rkBuckets_t buckets) RK_NOEXCEPT;
/* All at once, and waited for: tensors[i] has counts[i] elements. */
RK_API rkResult_t rkBucketsAllReduce(rkBuckets_t buckets, size_t tensorCount, void* const* tensors,
                                     const size_t* counts, rkDataType_t type,
                                     rkRedOp_t op) RK_NOEXCEPT;
/* All-reduces made so far. */
RK_API rkResult_t rkBucketsGetCalls(rkBuckets_t buckets, size_t* calls) RK_NOEXCEPT;
/* Not while tensors wait (rkInvalidUsage): rkBucketsWait() first, after rkCommAbortFromSignal() or
 * rkCommFail() if need be. NULL is nothing. */
RK_API rkResult_t rkBucketsDestroy(rkBuckets_t buckets) RK_NOEXCEPT;

/* --- What NCCL lacks --- */

/* How this rank's calls are done from here on; NULL: as the engine chooses. All ranks say the same.
 * A transport, an order, a time, a flag or a list that there cannot be is refused here; names of
 * algorithms and their numbers are refused by the calls that they do not suit. */
RK_API rkResult_t rkCommSetCallOptions(rkComm_t comm, const rkCallOptions_t* options) RK_NOEXCEPT;

/* Zeroes near this rank, in whole pages; *memory is valid until rkMemFree() or the handle's end.
 * Where ranks are processes, all of them share it (rkCallOptions_t's sharedPayloads).
 * What is refused, for want of memory too, leaves the communicator as it is. */
RK_API rkResult_t rkMemAlloc(rkComm_t comm, void** memory, size_t bytes) RK_NOEXCEPT;
/* NULL is nothing. */
RK_API rkResult_t rkMemFree(rkComm_t comm, void* memory) RK_NOEXCEPT;

/* What every rank did last, as JSON. At most `size` bytes are written, the last one 0; *needed,
 * where not NULL, is the size that takes all of it. text may be NULL where size is 0. */
RK_API rkResult_t rkCommFlightRecord(rkComm_t comm, char* text, size_t size,
                                     size_t* needed) RK_NOEXCEPT;

/* On a modelled network: seconds of the model at which this rank's last call had ended (0 without a
 * network), and work of its own that takes so long. */
RK_API rkResult_t rkCommModelTime(rkComm_t comm, double* seconds) RK_NOEXCEPT;
RK_API rkResult_t rkCommCompute(rkComm_t comm, double seconds) RK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* RANKINE_RANKINE_H_ */
