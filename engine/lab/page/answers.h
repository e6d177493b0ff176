// Answers the page's requests in JSON. A request is one object; its member `ask` is one of
//
//   catalogue   the entries of the catalogue, its collectives, networks and parameters; with
//   `ranks`
//               also the values of the formulas
//   simulate    one question (a request of rankine simulate --batch) and its answer, with rounds,
//               coefficients of alpha and beta, and the question in words
//   messages    a question's messages: rows of `columns` as numbers
//   curve       `questions` over `over` (bytes or ranks), at `values`: as numbers the times of all
//               questions, then the values of the catalogue's formulas; the fastest, crossovers
//   play        the contents of every rank after every round, and whether the schedule is proved;
//               `edits` change the schedule before (states_of(), edited())
//   plan        a training step mapped to ranks (ask_plan()): times, memory, collectives, and as
//               numbers the passes of the pipeline
//   buckets     the times of sizes of gradient buckets (ask_buckets())
//   check       a judgement of a schedule or a pipeline's order that a visitor wrote (ask_check())
//   formula     the tasks with a formula as their answer, or a formula's judgement (ask_formula())
//
// parts.h describes the functions. The answer has the members below, or only `error`, with the
// tool's error text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankine::tools {

struct PageAnswer {
  std::string json;  // one line without its end
  // Data that would be long as text. NaN: no number, because the question is refused.
  std::vector<double> numbers{};
};

// A pure function; may be called from any number of threads at once. `json` is always an object.
PageAnswer answer_page(std::string_view request);

}  // namespace rankine::tools
