// A question to the model, answered, in figures and in JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tools/parameters_json.h"
#include "engine/tools/question.h"

namespace rankine::tools {

struct CarriedTimes {
  double seconds = 0;
  std::vector<double> round_end{};
};

struct Answer {
  Question question;
  Params params;
  Simulation result;
  std::optional<CarriedTimes> carried{};  // of another fidelity than eq1, in place of the times in
                                          // `result`

  double seconds() const { return carried ? carried->seconds : result.seconds; }
  double algbw() const;               // bytes per second; 0 where no time passes
  double busbw() const;               // metrics.h
  std::optional<double> eta() const;  // busbw over the network's peak
  double round_end(std::size_t k) const {
    return carried ? carried->round_end[k]
                   : nearest_double(result.round_end[k], result.ticks_per_second);
  }
};

Result<Answer> answer(Question question);

std::int64_t greatest(const std::vector<std::int64_t>& values);  // 0 of none
// Where messages share links: the round whose busiest link carries most, and the most of all
// rounds. Loads are in halves of weights.
const RoundTraffic& busiest_round(const Simulation& r);
double congestion_max(const Simulation& r);
int hops_max(const Simulation& r);
double bytes_of_load(Int128 load, std::int64_t per_byte);

void add_result(const Answer& answer, Json& line);
// The question's members and the result's; with `rounds` each round's as well.
Json to_json(const Answer& answer, bool rounds);

// One request of a batch, answered as one line of JSON without its end: the request's own members,
// then the result's; for a request that cannot be answered, its members, `line` (`number`, from 1)
// and `error`. rankine simulate --help lists all members.
struct BatchAnswer {
  std::string line;
  bool ok = false;
};
BatchAnswer answer_request(std::string_view line, std::size_t number);

}  // namespace rankine::tools
