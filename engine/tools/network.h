// The options of subcommands that model a network: a preset or file, then what overrides it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/tools/arguments.h"
#include "engine/tools/network_text.h"

namespace rankine::tools {

struct NetworkArguments {
  std::string network;  // a preset's name or a file's; empty: plain_regime()
  std::optional<Rational> alpha, beta, alpha_switch, between_alpha, between_beta;
  std::optional<Rational> hop, gamma, eta_alpha, eta_beta;
  std::optional<int> ports, group, spines;
  std::optional<WiringKind> wiring;
  std::optional<Routing> routing;
  bool multicast = false, alu = false, permute = false;
  bool lower = false;  // rewrite what the network cannot do into messages

  bool operator==(const NetworkArguments&) const = default;
};

// --network, --lower, and what overrides members of the network: --alpha, --bandwidth or --beta,
// --ports, --multicast, --alu, --permute, --alpha-switch, --node-ranks, --between-alpha,
// --between-bandwidth, --wiring, --spines, --routing, --hop, --gamma, --eta-alpha and --eta-beta.
void add_network_arguments(Command app, NetworkArguments& arguments);

// The network that they describe, for any number of ranks: wired_for() comes next. --wiring leaves
// the ports of a grid open where --ports does not say. Errors name the option, its value and
// what is allowed.
Result<Fabric> network_of(const NetworkArguments& arguments);

// "dataflow" or "rounds".
Result<Sync> read_sync(std::string_view argument, std::string_view text);

// "preset or file"'s help: the presets, one per line, with their sources.
std::string describe_presets();

}  // namespace rankine::tools
