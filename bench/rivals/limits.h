// What this machine cannot beat: a lower bound for a call, from rates measured in the same run.
//
// A collective can be divided among the ranks in one or two ways (ways()). In each, a rank adds
// `ins` vectors and stores the sum into `outs` vectors of `floats` floats; `crossing` bytes of
// inputs reach it from other cores; of its result, the part `remote` was stored last by another
// core. With
//
//   latency    one way of a cache line between two cores (the ping-pong)
//   motion     all cores doing that adding and storing at once, each on memory of its own in the
//              cache level where the working set fits, with no synchronisation; the best of plain
//              stores, streaming ones and, for copies, the string instruction
//   cross      reading a byte that another core has just written, all cores doing so at once that
//              must: in a broadcast all but the root, from the root; in a reduce the root alone
//   read       reading a byte of the result from the core's own caches
//   stream     storing a byte past the caches, all cores at once
//   memory     reading a byte that another core has stored past the caches
//
// A byte comes from another core the quicker of two paths: out of that core's caches (cross), or
// through memory (stream and memory, which may overlap: the greater of the two; of a result, memory
// alone, since its storing is motion). Between cores that are far from each other the second may
// be the quicker one.
//
// the bound is the least over the ways of
//
//   warm       max(latency, motion)
//   fresh      latency + max(crossing * min(cross, max(stream, memory)), motion)
//              + result * (remote * min(cross, memory) + (1 - remote) * read) + stamps
//
// Warm buffers stay untouched, so nothing but the news must cross: and not even the news has to be
// waited for where data go one way only (broadcast, reduce), since a root may be calls ahead; there
// one line at the rate of `cross` takes the place of the latency. Fresh inputs were written by
// their owners, so they must cross; the protocol times one read of the result, and a pair of
// stamps, which is part of every figure that it prints. Where ranks share cores, a core does the
// work of its ranks one after the other; what switching between them costs is not counted.
//
// It is a bound for these ways of dividing the work and leaves out what storing into lines costs
// that another core has cached, so real programs are slower.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/buffer.h"
#include "bench/rivals/crew.h"

namespace rankine::rivals {

struct Way {
  const char* name;
  int ins;
  int outs;
  std::size_t floats;    // of each of them
  std::size_t crossing;  // bytes
  double remote;         // 0 to 1
};

// One-shot ways, whose memory grows with the square of the ranks, only up to this many bytes.
inline constexpr std::size_t kOneShotLimit = std::size_t{4} << 20;

std::vector<Way> ways(const Batch& batch, int ranks);

struct Rates {
  double latency_us = 0;
  double cross_us_per_byte = 0;
  double read_us_per_byte = 0;
  // Past the caches; infinite where it is not measured: the protocol is warm.
  double stream_us_per_byte = std::numeric_limits<double>::infinity();
  double memory_us_per_byte = std::numeric_limits<double>::infinity();
  double stamps_us = 0;
  std::vector<double> motion_us;  // as ways()
};

struct Limit {
  const char* way = "";
  const char* path = "cache";  // or "memory": that of the bytes that cross
  double us = 0;
  double latency_us = 0;  // the parts; crossing and reading are 0 where the protocol is warm
  double crossing_us = 0;
  double motion_us = 0;
  double reading_us = 0;
};

// share: ranks per core, at least 1.
Limit limit_of(const Batch& batch, int ranks, int share, const Rates& rates);

// A level of the caches, or the memory, with all cores at work at once. GB/s of one core; bytes
// read and bytes written count alike.
struct LevelRates {
  std::string level;
  std::size_t bytes = 0;  // what one core works on
  double copy = 0;
  double add = 0;
  double read = 0;
  double cross_read = 0;  // of what another core has just written
};

// Measures on the crew's threads, one per core. Not thread-safe.
class LimitProbe {
 public:
  explicit LimitProbe(Crew& crew);

  // Takes well under a batch's time. latency_us is for the caller to fill in.
  Rates measure(const Batch& batch);

  int share() const { return share_; }

  // level: its name; bytes: its size per core. Half of it is used.
  LevelRates measure_level(const std::string& level, std::size_t bytes);

 private:
  struct alignas(kLine) Bench {
    Buffer memory;
    double us = 0;
    double store_us = 0;
  };

  // body(worker, bench) on every core at once, where bench.us receives a time; the greatest of
  // them.
  template <class Body>
  double slowest(std::size_t bytes, Body&& body);
  double motion(const Way& way, bool in_place);
  enum class Readers { all, all_but_root, root };
  struct Crossed {
    double store_us = 0;
    double read_us = 0;
  };
  // Stored by each core, by plain stores or past the caches, and then read by others.
  Crossed cross_read(std::size_t bytes, Readers readers, bool past_caches = false);
  double own_read(std::size_t bytes);  // us

  Crew& crew_;
  const int workers_;
  const int share_;
  const double stamps_us_;
  std::unique_ptr<Meeting> meeting_;
  std::vector<Bench> benches_;
};

}  // namespace rankine::rivals
