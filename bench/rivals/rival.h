// What a contender implements whose ranks this program plays, as threads or as processes. One file
// each, plus its line in line_up.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/rivals/batch.h"

namespace rankine::rivals {

// Sets of families are written as sums of these.
enum Family : unsigned {
  kRankine = 1,
  kExpert = 2,
  kMpi = 4,
  kServer = 8,      // the design of inference servers
  kReference = 16,  // nothing that anybody would use: a yardstick
  kOther = 32,
  kExchange = 64,     // likewise, for ranks with a core each
  kRegistered = 128,  // Rankine on buffers of its own, which no MPI program has
};

struct Setup {
  int ranks = 0;
  std::size_t max_bytes = 0;  // no call is longer
  bool crowded = false;       // ranks share cores
  std::vector<int> cpus;      // rank r runs on cpus[r % cpus.size()]
  // Ranks are processes, forked after a rival has been made: what they share must lie in shared
  // memory (buffer.h).
  bool processes = false;
};

struct Rival {
  Rival(std::string its_name, Family its_family) : name(std::move(its_name)), family(its_family) {}
  virtual ~Rival() = default;
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

  // One call of a collective that takes() admits, by every rank's own thread with its own buffers:
  // shape() says how many floats they have and what block is; reductions are sums, the root is
  // rank 0. in == out on all ranks or on none, and only in all_reduce. Afterwards out is complete
  // and both buffers are the caller's again. Buffers are page-aligned and those of other ranks can
  // be reached, but their addresses are not known in advance. All ranks meet between calls of
  // different collectives.
  virtual void call(Collective collective, int rank, const float* in, float* out,
                    std::size_t block) noexcept = 0;

  // False: this is not for this form, the table shows a dash.
  virtual bool takes(Collective collective, std::size_t /*bytes*/) const {
    return collective == Collective::all_reduce;
  }

  // Where ranks are processes, each calls this once in its own, before it is pinned to its core.
  // What it throws is why the contender is missing.
  virtual void start(int /*rank*/) {}

  // Where ranks are processes, after start(): memory of so many bytes for one of a rank's two
  // buffers, there as long as the rival. nullptr: any memory will do.
  virtual float* allocate(int /*rank*/, std::size_t /*bytes*/) { return nullptr; }

  // A contender whose calls only work in threads that it starts itself runs body(rank) in each,
  // returns when all have ended, and says true; its threads are pinned by the body. Others leave
  // this alone and get the driver's threads.
  virtual bool run_ranks(const std::function<void(int)>& /*body*/) { return false; }

  // False: a yardstick that moves no data, so that there is no result to be looked at.
  virtual bool has_result() const { return true; }

  const std::string name;
  const Family family;
  std::string missing;  // why it cannot run here; empty when it can
};

// In the place of one that this program was built without. `what` is to be installed.
struct NotInstalled final : Rival {
  NotInstalled(std::string its_name, const std::string& what)
      : Rival(std::move(its_name), Family::kOther) {
    missing = "not installed: " + what;
  }
  bool takes(Collective, std::size_t) const override { return false; }
  void call(Collective, int, const float*, float*, std::size_t) noexcept override {}
};

// The page that an expert writes for one collective on one machine: a counter per rank, no queue,
// no plan. It takes several forms since none wins everywhere; a comparison should use the best of
// them at each size.

// One wait: everybody stages what others need where all can read it, and takes from the stages what
// it needs. Up to 1 MiB. Where data go one way only, the giver may be a call ahead.
std::unique_ptr<Rival> make_expert_one_shot(const Setup& setup);

// Everybody takes what it needs from the others' buffers. All-reduce is two-shot, with three waits:
// a rank sums its slice of all inputs into its output, then copies the others' slices.
std::unique_ptr<Rival> make_expert_pull(const Setup& setup);

// Everybody stores into the others' outputs, two waits. All-reduce, broadcast and reduce share the
// work: a rank moves its slice of the vector, from all inputs into all outputs. No reduce-scatter.
std::unique_ptr<Rival> make_expert_push(const Setup& setup);

// Push with stores that go past the caches, from 1 MiB on; reduce-scatter sums its block so.
std::unique_ptr<Rival> make_expert_stream(const Setup& setup);

// Two more ways in use today to sum vectors over the threads of one machine, each written from
// its description, and two yardsticks. All of them know all_reduce only.

// What a reader of a C++20 book writes: std::barrier before and after, each thread sums its slice
// into every output.
std::unique_ptr<Rival> make_std_barrier(const Setup& setup);

// The same between barriers of GCC's OpenMP runtime, inside one parallel region.
std::unique_ptr<Rival> make_openmp(const Setup& setup);

// The sum goes up the ranks and the result down again, by futex alone: 2 (N - 1) hand-offs between
// threads that sleep. Only where ranks share cores, up to 4 KiB.
std::unique_ptr<Rival> make_futex_chain(const Setup& setup);

// Each rank stores a line of its own and spins until it sees those of all others; nothing is summed
// and nothing moved. What is left of a small call when all data are thought away: under the
// protocol `fresh` ranks leave the barrier up to a latency apart, and then one line is the least
// that they can hear from each other. Only where each rank has a core, up to 1 KiB.
std::unique_ptr<Rival> make_flag_exchange(const Setup& setup);

// What CPU inference servers do to sum over the ranks of a machine, each written anew from its
// description. Ranks are threads or processes; all data go through memory that all can map.

// DeepSpeed's and SGLang's: a region per rank with a state beside it. Up to 1 MiB one-shot: each
// rank copies its input to one of its two places in turn, says so, and sums all ranks' places.
// Above, in pieces of 32 MiB, two-shot: each sums its slice in the region, and copies everybody's
// slices out. They spin without PAUSE and without end, so with more ranks than cores a wait costs
// time slices. All-reduce only.
std::unique_ptr<Rival> make_inference_shm(const Setup& setup);

// vLLM's: pieces of at most 2 MiB go by stores past the caches to one of a rank's two places in
// turn; a stamp says so, and everybody sums (all-gather: copies) all ranks' places into its own
// output. Its threads of a rank divide a vector among themselves; here a rank is one thread.
// All-reduce and all-gather.
std::unique_ptr<Rival> make_vllm_shm(const Setup& setup);

// Rankine itself as a contender, with everything left to the engine's choice.

// A communicator that the driver's own pinned threads have joined.
std::unique_ptr<Rival> make_rankine(const Setup& setup);

// Each rank is a process with a communicator of its own, on buffers of any kind.
std::unique_ptr<Rival> make_rankine_processes(const Setup& setup);

// The same on memory of Member::allocate, which the calls say: nothing is copied on its way.
std::unique_ptr<Rival> make_rankine_shared(const Setup& setup);

// Gloo as a contender: what PyTorch moves and sums between processes with, where no other backend
// is asked for. Its ranks are processes; it is optional, and missing where it is not installed.

// A full mesh over TCP on the loopback interface, which is all the transport that Gloo has within a
// machine; its collectives choose their algorithms themselves. No reduce-scatter.
std::unique_ptr<Rival> make_gloo(const Setup& setup);

// UCC as a contender: the collectives over UCX that Open MPI and PyTorch can be told to call. Its
// ranks are processes; it is optional, and missing where it is not installed.

// UCX's transports for one machine; UCC chooses its algorithms itself.
std::unique_ptr<Rival> make_ucc(const Setup& setup);

}  // namespace rankine::rivals
