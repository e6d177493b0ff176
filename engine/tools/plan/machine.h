// What computes: how fast a rank multiplies and reaches its memory, and the network between ranks.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine::tools {

// Rates are what programs reach, not what data sheets promise.
struct Machine {
  std::string name = "custom";
  double flops = 0;             // per second, of large matrix products
  double memory_bandwidth = 0;  // bytes per second
  double pass_seconds = 0;      // of a layer's pass beside products and memory: launching, waiting
  double memory_bytes = 0;      // of a rank
  Fabric network{};             // all ranks'
};

struct KnownMachine {
  Machine machine;
  std::string_view source;
};
std::span<const KnownMachine> known_machines();
const KnownMachine* find_known_machine(std::string_view name);  // or nullptr

// A known machine's name, or a JSON file: {"preset": "a100", "flops": 2.4e14, "memory_bandwidth":
// 1.5e12, "pass_seconds": 5e-5, "memory_bytes": 8.5e10, "network": NAME or object}. Errors name the
// member, its value and what is allowed.
Result<Machine> find_machine(std::string_view argument, const std::string& name_or_path);
Result<Machine> parse_machine(std::string_view json, std::string_view name);

}  // namespace rankine::tools
