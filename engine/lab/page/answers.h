// What the page asks the engine, in JSON: one object, whose member `ask` names one of
//
//   catalogue   the lines of the catalogue, its collectives, networks and parameters; `ranks`: with
//               what the formulas come to
//   simulate    one question (a request of rankine simulate --batch) and its answer, with rounds,
//               coefficients of alpha and beta, and the question in words
//   messages    a question's messages: rows of `columns` as numbers
//   curve       `questions` over `over` (bytes or ranks), at `values`: as numbers the times of all
//               questions, then what the catalogue's formulas come to; who is fastest, crossovers
//   play        what every rank holds after every round (states.h), and whether that is proved;
//               `edits` (edits.h) change the schedule before that
//   plan        a training step mapped to ranks (plans.h): times, memory, collectives, and as
//               numbers the passes of the pipeline
//   buckets     what the size of gradient buckets costs (plans.h)
//   check       what a schedule that somebody wrote is worth, or a pipeline's order (tasks.h)
//   formula     the tasks that have a formula as their answer, or what one is worth (tasks.h)
//
// The answer has the members below, or only `error`, whose text is that of the tool.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankine::tools {

struct PageAnswer {
  std::string json;  // one line without its end
  // What would be long as text. Not a number: there is none, since the question is refused.
  std::vector<double> numbers{};
};

// A pure function; may be called from any number of threads at once. `json` is always an object.
PageAnswer answer_page(std::string_view request);

}  // namespace rankine::tools
