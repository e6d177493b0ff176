// The options that describe a model, what it runs on, and how it is mapped to ranks.
#pragma once

#include <optional>
#include <string>

#include "engine/read/count.h"
#include "engine/tools/arguments.h"
#include "engine/tools/plan/machine.h"
#include "engine/tools/plan/mapping.h"
#include "engine/tools/plan/model.h"

namespace rankine::tools {

struct PlanArguments {
  Model model;
  Machine machine = known_machines().front().machine;
  bool is_here = false;  // the machine is measured
  Mapping mapping;
  std::optional<int> sequence, bytes, batch, micro_batches, ranks;
  const Menu* menu = find_menu("nccl");
};

// MODEL, --machine, an option per axis, --nested, --ranks, --batch, --micro-batch, --micro-batches,
// --sequence, --bytes, --split-norms, --interleave, --order, --recompute, --zero, --router-skew,
// --capacity, --send-once, --gradient-bytes, --bucket and --menu.
void add_plan_arguments(Command app, PlanArguments& arguments,
                        const std::string& ranks_help = "of all: what the axes multiply to");

// The model as asked.
void set_model(PlanArguments& arguments);
// That, and the mapping as asked: micro-batches follow from --batch; and this machine is measured
// where it is the one that is asked for. Errors name the option, its value and the nearest that are
// allowed.
Status settle(PlanArguments& arguments);

// The help's lists of models and machines, with their sources.
std::string known_text();

}  // namespace rankine::tools
