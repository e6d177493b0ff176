// Reads Chakra execution traces (MLCommons; schema/protobuf/et_def.proto of
// github.com/mlcommons/chakra) and plans a trace as a step: computations take their recorded times,
// collectives take the times of this catalogue on a machine's network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/base/status.h"
#include "engine/lab/planner/machine.h"
#include "engine/lab/planner/step.h"

namespace rankine::tools {

// A node of a trace: work of one rank that begins when the nodes in `after` have ended.
struct TraceNode {
  // Each place does one node at a time.
  enum class Place : unsigned char { processor, accelerator, network };

  std::uint64_t id = 0;
  Place place = Place::accelerator;
  double seconds = 0;  // except on the network
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;             // of a rank's input of the collective
  std::vector<std::uint64_t> after{};  // ids (data_deps)
};

// Reads a file in the protobuf form (.et) or in the JSON of chakra_jsonizer; its beginning tells
// which. Operations of the host (is_cpu_op) run on the processor, also if they call a collective;
// loads and stores of memory run on the accelerator. Errors: invalid_argument with the number of
// the message (or the line of JSON), or with the id of the node, and the reason.
Result<std::vector<TraceNode>> read_chakra(std::string_view text);

// Plans the step in which each of mapping.ranks() ranks does the nodes of the trace, all ranks at
// the same time. `mapping` has one axis, dp. A place begins the ready node with the lowest id.
// `hidden` of a collective is the time for which the accelerator works meanwhile. Errors: nodes
// that wait for each other, and the errors of Prices.
Result<StepPlan> plan_trace(const std::vector<TraceNode>& nodes, const Mapping& mapping,
                            const Machine& machine, Prices& prices);

}  // namespace rankine::tools
