// What a contender inside this process implements. One file each, plus its line in rivals.cc.
#ifndef RANKINE_BENCH_RIVALS_RIVAL_H_
#define RANKINE_BENCH_RIVALS_RIVAL_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rankine::rivals {

enum class Family { kRankine, kExpert, kMpi, kOther };

struct Setup {
  int ranks = 0;
  std::size_t max_bytes = 0;  // no call is longer
  bool crowded = false;       // ranks share cores
  std::vector<int> cpus;      // rank r runs on cpus[r % cpus.size()]
};

struct Rival {
  Rival(std::string its_name, Family its_family) : name(std::move(its_name)), family(its_family) {}
  virtual ~Rival() = default;
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

  // Called by every rank's own thread with its own buffers of count floats: out = sum over ranks of
  // in. in == out on all ranks or on none. Afterwards out is complete and both buffers are the
  // caller's again. Buffers are page-aligned and those of other ranks can be reached, but their
  // addresses are not known in advance.
  virtual void all_reduce(int rank, const float* in, float* out, std::size_t count) noexcept = 0;

  // False: this size is not for this form, the table shows a dash.
  virtual bool takes(std::size_t /*bytes*/) const { return true; }

  // A contender whose calls only work in threads that it starts itself runs body(rank) in each,
  // returns when all have ended, and says true; its threads are pinned by the body. Others leave
  // this alone and get the driver's threads.
  virtual bool run_ranks(const std::function<void(int)>& /*body*/) { return false; }

  const std::string name;
  const Family family;
  std::string missing;  // why it cannot run here; empty when it can
};

}  // namespace rankine::rivals

#endif  // RANKINE_BENCH_RIVALS_RIVAL_H_
