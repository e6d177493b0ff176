// A Rival implements the collective calls of a contender; this program runs its ranks as threads or
// processes. This header declares all rivals; their functions are listed in rivals.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/rivals/batch.h"

namespace rankine::rivals {

// Sets of families are sums of these.
enum Family : unsigned {
  kRankine = 1,
  kExpert = 2,
  kMpi = 4,
  kServer = 8,      // the design of inference servers
  kReference = 16,  // a yardstick that no program would use
  kOther = 32,
  kExchange = 64,     // a yardstick for ranks with a core each
  kRegistered = 128,  // Rankine on its registered buffers, which no MPI program has
};

struct Setup {
  int ranks = 0;
  std::size_t max_bytes = 0;  // the greatest size of a call
  bool crowded = false;       // ranks share cores
  std::vector<int> cpus;      // rank r runs on cpus[r % cpus.size()]
  // Ranks are processes, forked after a rival is created; they share data only through shared
  // memory (Buffer with `shared`).
  bool processes = false;
};

struct Rival {
  Rival(std::string its_name, Family its_family) : name(std::move(its_name)), family(its_family) {}
  virtual ~Rival() = default;
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

  // One call of a collective that takes() accepts. Every rank's thread calls it with its own
  // buffers; shape() defines their lengths and `block`. Reductions are sums; the root is rank 0. in
  // == out on all ranks or on none, and only in all_reduce. On return, out is complete and the
  // caller owns both buffers again. Buffers are page-aligned and other ranks can reach them, but
  // their addresses are not known before the call. All ranks meet between calls of different
  // collectives.
  virtual void call(Collective collective, int rank, const float* in, float* out,
                    std::size_t block) noexcept = 0;

  // False: not for this collective and size; the table shows a dash.
  virtual bool takes(Collective collective, std::size_t /*bytes*/) const {
    return collective == Collective::all_reduce;
  }

  // If ranks are processes, each rank calls this once in its own process, before it is pinned to
  // its core. The text of an exception becomes `missing`.
  virtual void start(int /*rank*/) {}

  // If ranks are processes, called after start(). Returns memory of this size for one of a rank's
  // two buffers; the rival owns it. nullptr: any memory will do.
  virtual float* allocate(int /*rank*/, std::size_t /*bytes*/) { return nullptr; }

  // If a rival's calls only work in its own threads: runs body(rank) in each thread, and returns
  // true when all have ended; the body pins the threads. Other rivals return false and run on the
  // driver's threads.
  virtual bool run_ranks(const std::function<void(int)>& /*body*/) { return false; }

  // False: a yardstick that moves no data and has no result to check.
  virtual bool has_result() const { return true; }

  const std::string name;
  const Family family;
  std::string missing;  // the reason why it cannot run here; else empty
};

// Takes the place of a rival that this program was built without. `what`: the package to install.
struct NotInstalled final : Rival {
  NotInstalled(std::string its_name, const std::string& what)
      : Rival(std::move(its_name), Family::kOther) {
    missing = "not installed: " + what;
  }
  bool takes(Collective, std::size_t) const override { return false; }
  void call(Collective, int, const float*, float*, std::size_t) noexcept override {}
};

// The expert: code as an expert writes it for one collective on one machine, with a counter per
// rank, without queue and plan. No form wins at all sizes; a comparison should use the best form at
// each size.

// One wait: all ranks stage the data that others need in memory that all can read, and read from
// the stages of others. Up to 1 MiB. If data go one way only, the sender may be a call ahead.
std::unique_ptr<Rival> make_expert_one_shot(const Setup& setup);

// As one-shot, with a stamp in each line of data and no counter, up to 8 KiB: the protocol LL of
// NCCL's symmetric memory (2.30, AGxLL_R), whose ranks store into every peer's stage. All-reduce
// only.
std::unique_ptr<Rival> make_expert_ll(const Setup& setup);

// Each rank reads from the others' buffers. All-reduce is two-shot, with three waits: a rank sums
// its slice of all inputs into its output, then copies the others' slices.
std::unique_ptr<Rival> make_expert_pull(const Setup& setup);

// Each rank stores into the others' outputs, with two waits. All-reduce, broadcast and reduce
// divide the work: a rank moves its slice of the vector, from all inputs into all outputs, as in
// NCCL's symmetric memory (RSxLD_AGxST). No reduce-scatter.
std::unique_ptr<Rival> make_expert_push(const Setup& setup);

// Push with stores that go past the caches, from 1 MiB on; reduce-scatter sums its block with them.
std::unique_ptr<Rival> make_expert_stream(const Setup& setup);

// Two more methods that programs use today to sum vectors over the threads of one machine, each
// written from its description, and two yardsticks. All of them implement all_reduce only.

// Textbook C++20: std::barrier before and after; each thread sums its slice into every output.
std::unique_ptr<Rival> make_std_barrier(const Setup& setup);

// As std_barrier, with barriers of GCC's OpenMP runtime, inside one parallel region.
std::unique_ptr<Rival> make_openmp(const Setup& setup);

// The sum goes up the ranks and the result goes down, by futex alone: 2 (N - 1) hand-offs between
// sleeping threads. Only if ranks share cores, up to 4 KiB.
std::unique_ptr<Rival> make_futex_chain(const Setup& setup);

// Each rank stores its own line and spins until it sees the lines of all others; it sums and moves
// nothing. This is the cost of a small call without data: under the protocol `fresh` ranks leave
// the barrier up to a latency apart, and one line is the least that they can hear from each other.
// Only if each rank has a core, up to 1 KiB.
std::unique_ptr<Rival> make_flag_exchange(const Setup& setup);

// Each rank copies its own input to its output, and waits for no other. All-reduce and all-to-all.
std::unique_ptr<Rival> make_copy(const Setup& setup);

// Methods of CPU inference servers to sum over the ranks of a machine, each written anew from its
// description. Ranks are threads or processes; all data go through memory that all can map.

// The method of DeepSpeed 0.19.8 and SGLang: a region per rank, the state directly before the data.
// Below 1 MiB one-shot: each rank copies its input to one of its two places in turn, publishes its
// state, and sums all ranks' places. From 1 MiB two-shot, in pieces of 32 MiB: each rank sums its
// slice in the region, and copies the slices of all ranks out. Waits spin without PAUSE and without
// limit, so with more ranks than cores a wait costs time slices. All-reduce, and SGLang's
// all-gather: each rank copies all ranks' places.
std::unique_ptr<Rival> make_inference_shm(const Setup& setup);

// The method of vLLM 0.33: pieces of at most 2 MiB go to one of a rank's two places in turn, by
// stores past the caches (all-gather: plain stores); a stamp publishes the piece, and each rank
// sums (copies) its input and the others' places into its output. In vLLM the threads of a rank
// divide a vector among themselves; here a rank is one thread. All-reduce and all-gather.
std::unique_ptr<Rival> make_vllm_shm(const Setup& setup);

// Rankine as a contender; the engine chooses everything. The driver's pinned threads join one
// communicator.
std::unique_ptr<Rival> make_rankine(const Setup& setup);

// As rankine, with only scratch visible to other ranks (all-reduces and broadcasts); plain: by
// plain stores, in one piece.
std::unique_ptr<Rival> make_rankine_staged(const Setup& setup);
std::unique_ptr<Rival> make_rankine_plain(const Setup& setup);

// Each rank is a process with its own communicator, on buffers of any kind.
std::unique_ptr<Rival> make_rankine_processes(const Setup& setup);

// As rankine_processes, on memory of Member::allocate(), which the calls declare: no data are
// copied.
std::unique_ptr<Rival> make_rankine_shared(const Setup& setup);

// Gloo as a contender: the default backend of PyTorch for messages and sums between processes. Its
// ranks are processes. It is optional; if it is not installed, the contender is missing.
//
// A full mesh over TCP on the loopback interface, Gloo's only transport within a machine; its
// collectives choose their algorithms themselves. No reduce-scatter.
std::unique_ptr<Rival> make_gloo(const Setup& setup);

// UCC as a contender: collectives over UCX that Open MPI and PyTorch can be configured to call. Its
// ranks are processes. It is optional; if it is not installed, the contender is missing.
//
// Uses UCX's transports for one machine; UCC chooses its algorithms itself.
std::unique_ptr<Rival> make_ucc(const Setup& setup);

}  // namespace rankine::rivals
