// The measuring protocol: all contenders take turns, batch by batch, in one run on one machine
// state.
//
// A row is one size under one of the two protocols of batch.h. It has several rounds; in each,
// every contender runs one batch, in an order that changes from round to round. A contender's
// figure is the median of its batches. Before each round and after the last a probe measures the
// latency of a cache line between two cores: where that has changed by more than tools::kSteady
// within a row, the machine has changed under the contenders and the row is repeated. Each round
// also measures what this machine cannot beat (limits.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/buffer.h"
#include "bench/rivals/crew.h"
#include "bench/rivals/job.h"
#include "bench/rivals/limits.h"
#include "bench/rivals/rival.h"
#include "engine/tools/latency_probe.h"

namespace rankine::rivals {

class Contender {
 public:
  Contender(std::string its_name, Family its_family)
      : name(std::move(its_name)), family(its_family) {}
  virtual ~Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  virtual bool takes(Collective collective, std::size_t bytes) const = 0;

  // Not called once `missing` says something; a contender that fails in here fills it in.
  virtual Measured run(const Batch& batch) = 0;

  const std::string name;
  const Family family;
  std::string version;  // empty, or of the library
  std::string missing;  // why it cannot be measured; empty when it can
};

// A Rival in this process, on the crew's threads and buffers. A rival that hangs ends the program
// with status 124.
class InProcess final : public Contender {
 public:
  // One per program, shared by all: each rank's buffers lie near the core that writes them first.
  struct Stage {
    Stage(Crew& its_crew, bool crowded, std::size_t max_bytes);
    Crew& crew;
    std::unique_ptr<Meeting> meeting;
    std::vector<Buffer> ins;
    std::vector<Buffer> outs;
  };

  InProcess(std::unique_ptr<Rival> rival, Stage& stage);
  bool takes(Collective collective, std::size_t bytes) const override {
    return rival_->takes(collective, bytes);
  }
  Measured run(const Batch& batch) override;

 private:
  std::unique_ptr<Rival> rival_;
  Stage& stage_;
};

struct Plan {
  Collective collective = Collective::all_reduce;
  int rounds = 9;
  int calls = 0;     // in a batch; 0: as many as take batch_us
  int warmups = -1;  // before them; -1: an eighth as many and two
  double batch_us = 2000;
  bool in_place = false;
};

struct Cell {
  std::vector<double> us;   // one per round; empty when the contender did not run
  std::uint64_t wrong = 0;  // elements, over all batches
  int calls = 0;            // in each batch
};

struct Row {
  std::size_t bytes = 0;
  Protocol protocol = Protocol::warm;
  int repeats = 0;
  std::vector<double> ping_pong_ns;  // before each round and after the last
  std::vector<Cell> cells;           // as the contenders
  std::vector<Limit> limits;         // one per round

  // The greatest change of the probe within the row, at least 1.
  double drift() const { return tools::drift(ping_pong_ns); }
  bool steady() const { return drift() <= tools::kSteady; }

  // The contender of these families with the least median; none when no such contender ran.
  std::optional<std::size_t> best(unsigned families,
                                  const std::vector<std::unique_ptr<Contender>>& contenders) const;

  // The median over the rounds of a's time over b's of the same round.
  double ratio(std::size_t a, std::size_t b) const;

  // The same of a's time over the limit.
  double limit_ratio(std::size_t a) const;
  // Of the rounds, the limit in the middle.
  Limit limit() const;
};

Row measure_row(std::vector<std::unique_ptr<Contender>>& contenders, const Plan& plan,
                std::size_t bytes, Protocol protocol, Crew& crew, LimitProbe& limits);

}  // namespace rankine::rivals
