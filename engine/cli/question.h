// Question and Answer carry one question to the model and its answer, in figures and in JSON. The
// header also declares nccl-tests' conventions for sizes and bandwidths, the available memory, and
// names of networks.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "engine/base/status.h"
#include "engine/cli/text.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/read/flow.h"

namespace rankine::tools {

// A size is the whole vector for all_reduce, broadcast, reduce, the scans and send_recv, all ranks'
// blocks together for all_gather, reduce_scatter, gather and scatter, and one rank's send buffer
// for all_to_all. A call's count is per block: this many times fewer.
inline std::size_t counts_per_size(Collective collective, int ranks) {
  return natural_blocks(collective, ranks) == 1 ? 1 : static_cast<std::size_t>(ranks);
}

// The size of natural blocks of `counts` bytes each (collective.h): the sum of all, for all_to_all
// the largest send buffer.
inline std::uint64_t size_of_counts(Collective collective, int ranks,
                                    std::span<const std::uint64_t> counts) {
  const std::size_t per_size =
      collective == Collective::all_to_all ? static_cast<std::size_t>(ranks) : counts.size();
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < counts.size(); i += per_size) {
    const auto part = counts.subspan(i, per_size);
    most = std::max(most, std::accumulate(part.begin(), part.end(), std::uint64_t{0}));
  }
  return most;
}

// The count of a call of at most `bytes`, rounded down; at least one element.
inline std::size_t count_for(Collective collective, int ranks, std::size_t bytes,
                             std::size_t element_bytes) {
  if (bytes == 0 || collective == Collective::barrier) return 0;
  const std::size_t count = bytes / element_bytes / counts_per_size(collective, ranks);
  return std::max<std::size_t>(1, count);
}

// busbw is algbw times this factor: the least load of the busiest link. Lu (Collective Algorithms,
// appendix D) has (N-1)/N for broadcast and calls that nccl-tests' convention; nccl-tests has 1,
// and so does Rankine.
inline double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_recv:
    case Collective::scan:  // one vector in and one out at all ranks but the first and the last
    case Collective::exscan:
      return 1;
    case Collective::barrier:
      return 0;
  }
  return 1;
}

// For helps and notes.
inline constexpr const char* kBusbwConvention =
    "busbw is algbw times nccl-tests' factor: 2(N-1)/N for all_reduce, (N-1)/N for all_gather, "
    "reduce_scatter, all_to_all, gather and scatter, 1 for broadcast, reduce and send_recv (Lu, "
    "Collective Algorithms, appendix D: (N-1)/N for broadcast, too). scan and exscan, which "
    "nccl-tests lacks: 1, since most ranks take one vector in and hand one on.\n";
inline constexpr const char* kPeakConvention =
    "eta: busbw over the peak, Lu's eta_beta; the peak is the bandwidth of all ports of a rank "
    "in one direction, ports times bandwidth, over the links within groups if there are groups.\n";

// The peak of a fabric made by wired_for(), in bytes per second; none if a link has no limit.
inline std::optional<double> peak_of(const Fabric& fabric) {
  const Rational beta = fabric.group == 1 ? fabric.between.beta : fabric.link.beta;
  if (beta == 0) return std::nullopt;
  return (Rational(fabric.ports) / beta).to_double();
}

// busbw over the peak, both in bytes per second; none without a peak.
inline std::optional<double> eta_of(double busbw, const std::optional<double>& peak) {
  if (!peak) return std::nullopt;
  return busbw / *peak;
}
inline std::string eta_text(const std::optional<double>& eta) {
  return eta ? fmt::format("{:.1f}%", *eta * 100) : "-";
}

// The memory that this process may still take.
struct AvailableMemory {
  std::uint64_t bytes = 0;  // 2^63 - 1: unknown
  std::string why;          // "MemAvailable of /proc/meminfo"
};

// The least of MemAvailable and the rest of the process's memory cgroup (v2 or v1, also at the root
// that a container sees). `root` is put before /proc and /sys.
AvailableMemory available_memory(const std::string& root = "");

// out_of_memory if less than `needed` plus `spare` bytes are available. The text for "buffers" of
// "2 ranks": "2 ranks need 1 GiB of buffers; available are ...".
Status check_memory(std::size_t needed, std::string_view what, std::string_view who,
                    std::size_t spare = 0);

// "scale_out (1 port, 1.5 us, 50 GB/s)", for a fabric made by wired_for().
std::string describe(const Fabric& fabric);

// "torus 4x4, 200 ns per hop", for a fabric made by wired_for(); empty if messages share no link
// and cross no hop.
std::string describe_wiring(const Fabric& fabric);

// One question to the model: an algorithm with its parameters, a size and a network.
struct Question {
  const Algorithm* algorithm = nullptr;
  Params params{};          // segments 0: the best number for this network and size; no dims: the
                            // dims of a torus network
  std::uint64_t bytes = 0;  // M
  Fabric fabric{};
  SimulateOptions options{};
  Fidelity fidelity = Fidelity::eq1;  // used by simulate
  bool lower = false;                 // rewrite transfers that the network cannot do into messages
};

// M for a size of `bytes` that is common to all collectives: 0 for a barrier, which has no vector.
inline std::size_t vector_bytes(Collective collective, std::size_t bytes) {
  return collective == Collective::barrier ? 0 : bytes;
}

// A question made ready: parameters with their defaults, and the schedule that they make.
struct Prepared {
  Params params;
  Schedule schedule;
  CollectiveSpec goal;
};

// Requires a network and parameters made by wire(). Errors: the algorithm's errors, and
// best_segments()' errors.
Result<Prepared> prepare(const Question& question);

// Sets blocks of these sizes in place of M, which follows from them. Requires an algorithm and
// ranks. Errors: check_counts().
Status take_counts(Question& question, std::vector<std::uint64_t> counts);

// "all_reduce of 1 MiB among 8 ranks on plain (1 port, 1 us, 100 GB/s)"
std::string describe(const Question& question);

// A weight (see Pricing) in bytes; whole if the weight is a whole number of bytes.
double bytes_of(std::int64_t weight, std::int64_t weight_per_byte);

// Reads a request of simulate's batch. Errors name the member, its value and the allowed values.
Result<Question> read_question(const Json& request);

// The network members allowed at the top level of a request: "ports, alpha, bandwidth".
std::string request_network_members();

// A request with the members of that question, and with `params` as used.
Json question_json(const Question& question, const Params& params);

struct CarriedTimes {
  double seconds = 0;
  std::vector<double> round_end{};
};

struct Answer {
  Question question;
  Params params;
  Simulation result;
  std::optional<CarriedTimes> carried{};  // for fidelities other than eq1, in place of the times in
                                          // `result`

  double seconds() const { return carried ? carried->seconds : result.seconds; }
  double algbw() const;               // bytes per second; 0 where no time passes
  double busbw() const;               // see bus_factor()
  std::optional<double> eta() const;  // busbw over the network's peak
  double round_end(std::size_t k) const {
    return carried ? carried->round_end[k]
                   : nearest_double(result.round_end[k], result.ticks_per_second);
  }
};

Result<Answer> answer(Question question);

std::int64_t greatest(const std::vector<std::int64_t>& values);  // 0 for an empty vector
// If messages share links: the round with the greatest load of a link, and the greatest load over
// all rounds. Loads are in halves of weights.
const RoundTraffic& busiest_round(const Simulation& r);
double congestion_max(const Simulation& r);
int hops_max(const Simulation& r);
double bytes_of_load(Int128 load, std::int64_t per_byte);

// The question's members and the result's members; with `rounds` also each round's.
Json to_json(const Answer& answer, bool rounds);

// Answers one request of a batch as one line of JSON without its end: the request's members, then
// the result's. For an invalid request the line has the request's members, `line` (`number`, from
// 1) and `error`. rankine simulate --help lists all members.
struct BatchAnswer {
  std::string line;
  bool ok = false;
};
BatchAnswer answer_request(std::string_view line, std::size_t number);

}  // namespace rankine::tools
