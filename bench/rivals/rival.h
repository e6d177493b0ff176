// What a contender implements whose ranks this program plays, as threads or as processes. One file
// each, plus its line in line_up.cc.
#pragma once

#include <cstddef>
#include <functional>
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

}  // namespace rankine::rivals
