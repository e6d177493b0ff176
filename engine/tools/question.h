// One question to the model: an algorithm with its parameters, a size and a network. What simulate,
// cost and run have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "algorithms/catalogue.h"
#include "engine/read/flow.h"
#include "engine/read/simulate.h"
#include "engine/tools/arguments.h"
#include "engine/tools/network.h"

namespace rankine::tools {

struct Question {
  const Algorithm* algorithm = nullptr;
  Params params{};          // segments 0: the best number for this network and size; no dims: those
                            // of a torus network
  std::uint64_t bytes = 0;  // M
  Fabric fabric{};
  SimulateOptions options{};
  Fidelity fidelity = Fidelity::eq1;  // of simulate
  bool lower = false;                 // rewrite what the network cannot do into messages
};

// A question made ready: parameters with their defaults, and the schedule that they make.
struct Prepared {
  Params params;
  Schedule schedule;
  Goal goal;
};

// Fills in what network and parameters leave to each other: wired_for(), and the network's dims for
// algorithms on tori where nobody names any. Errors: those of wired_for().
Status wire(Question& question);

// Of a question that wire() has seen. Errors: what the algorithm refuses, and what best_segments()
// does.
Result<Prepared> prepare(const Question& question);

// send_recv goes to the next rank where nobody says to whom.
inline constexpr Rank kNoPeer = -1;
inline void set_peer(Params& params) {
  if (params.peer == kNoPeer) params.peer = (params.root + 1) % params.ranks;
}

// The options that describe questions.
struct QuestionArguments {
  std::optional<Collective> collective;
  std::string algorithms;
  std::string skips;  // as skips_for() reads it
  Params params{.ranks = 8, .peer = kNoPeer};
  std::size_t bytes = std::size_t{1} << 20;
  NetworkArguments network;
  Sync sync = Sync::dataflow;
};

// The collective, --algo, --ranks, --root, --peer, --segments, --group, --aggregation,
// --levels, --skips and --dims. Returns the first, for who requires it.
CLI::Option* add_algorithm_arguments(CLI::App& app, QuestionArguments& arguments);
// --bytes and --sync; the network's options come by add_network_arguments().
void add_model_arguments(CLI::App& app, QuestionArguments& arguments);

// One question per algorithm named; needs a collective. Where all are asked for, those that refuse
// are left out, with the reason in `notes`. Errors name the option, its value and what is allowed.
Result<std::vector<Question>> questions_of(const QuestionArguments& arguments,
                                           std::vector<std::string>& notes);
// The same where one algorithm only is allowed.
Result<Question> question_of(const QuestionArguments& arguments);

// "4 of segments" and "auto", which is 0.
Result<int> read_segments(std::string_view argument, std::string_view text);

// "all_reduce of 1 MiB among 8 ranks on plain (1 port, 1 us, 100 GB/s)"
std::string describe(const Question& question);

// A weight (see Pricing) in bytes: a whole number where it is one.
double bytes_of(std::int64_t weight, std::int64_t weight_per_byte);

}  // namespace rankine::tools
