#include "engine/tools/network.h"

#include <fmt/format.h>

#include "algorithms/torus.h"
#include "engine/base/units.h"
#include "engine/network/network_file.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

// A parser's value where the option may also be absent.
template <class T, class Parse>
auto optionally(Parse parse) {
  return [parse](std::string_view argument, std::string_view text) -> Result<std::optional<T>> {
    const Result<T> value = parse(argument, text);
    if (!value.ok()) return value.status();
    return std::optional<T>(*value);
  };
}

Result<Rational> parse_beta(std::string_view argument, std::string_view text) {
  auto beta = parse_decimal(argument, text);
  if (!beta.ok() || !(*beta < 0)) return beta;
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are seconds per byte, not negative "
                  "(0: no limit)",
                  argument, text));
}

Result<std::optional<WiringKind>> read_wiring(std::string_view argument, std::string_view text) {
  if (const auto kind = parse_wiring(text)) return kind;
  return unknown_name(argument, text, wiring_names());
}

Result<std::optional<Routing>> read_routing(std::string_view argument, std::string_view text) {
  if (const auto routing = parse_routing(text)) return routing;
  return unknown_name(argument, text, routing_names());
}

// What the options say of links that messages share.
Status rewire(const NetworkArguments& arguments, Fabric& fabric) {
  if (arguments.hop) fabric.alpha_hop = *arguments.hop;
  if (arguments.routing) fabric.wiring.routing = *arguments.routing;
  if (arguments.wiring && *arguments.wiring != fabric.wiring.kind) {
    fabric.wiring = {.kind = *arguments.wiring, .routing = fabric.wiring.routing};
    if (!arguments.ports) open_ports(fabric);
  }
  if (arguments.spines) fabric.wiring.spines = *arguments.spines;
  if (!arguments.wiring) return {};
  const std::string_view kind = name_of(fabric.wiring.kind);
  if (fabric.ports == 0 && !fabric.wiring.is_grid()) {
    return invalid_argument(fmt::format(
        "--wiring is {}; --ports is needed with it, since a rank of network '{}' has as "
        "many as links",
        kind, fabric.name));
  }
  if (fabric.wiring.has_leaves() && fabric.group == 0) {
    return invalid_argument(
        fmt::format("--wiring is {}; --node-ranks is needed with it, 1 or more", kind));
  }
  if (fabric.wiring.kind == WiringKind::fat_tree && fabric.wiring.spines == 0) {
    return invalid_argument(fmt::format("--wiring is {}; --spines is needed with it, 1 to {}", kind,
                                        Wiring::kMostSpines));
  }
  return {};
}

}  // namespace

void add_network_arguments(Command app, NetworkArguments& arguments) {
  constexpr const char* kGroup = "Network";
  add_text(app, "--network", arguments.network, "NAME",
           "a preset (" + regime_names() + ") or a JSON file (plain)")
      .group(kGroup);
  add_argument(app, "--alpha", arguments.alpha, optionally<Rational>(parse_seconds), "TIME",
               "per message: 1us, 500ns")
      .group(kGroup);
  Option bandwidth =
      add_argument(app, "--bandwidth", arguments.beta, optionally<Rational>(parse_bandwidth),
                   "RATE", "per port and direction: 100GB/s, 800Gb/s")
          .group(kGroup);
  add_argument(app, "--beta", arguments.beta, optionally<Rational>(parse_beta), "SECONDS",
               "per byte, in place of a bandwidth: 1e-11; 0: no limit")
      .group(kGroup)
      .excludes(bandwidth);
  add_argument(app, "--ports", arguments.ports, optionally<int>(Whole{1, Fabric::kMostPorts}), "K",
               "messages that a rank sends, and receives, at once")
      .group(kGroup);
  app.add_flag("--multicast", arguments.multicast, "the switch can copy a message to many")
      .group(kGroup);
  app.add_flag("--alu", arguments.alu, "the switch can add messages up").group(kGroup);
  app.add_flag(
         "--permute", arguments.permute,
         "the switch carries all messages of a round in one operation: a port pays alpha once")
      .group(kGroup);
  add_argument(app, "--alpha-switch", arguments.alpha_switch, optionally<Rational>(parse_seconds),
               "TIME", "per hop through the switch; what it copies or adds up takes two")
      .group(kGroup);
  add_argument(
      app, "--node-ranks", arguments.group, optionally<int>(Whole{0, 1 << 14}), "N",
      "ranks per group (node) of the network, with slower links among groups; 0: one group")
      .group(kGroup);
  add_argument(app, "--between-alpha", arguments.between_alpha, optionally<Rational>(parse_seconds),
               "TIME", "per message among groups")
      .group(kGroup);
  add_argument(app, "--between-bandwidth", arguments.between_beta,
               optionally<Rational>(parse_bandwidth), "RATE", "among groups")
      .group(kGroup);
  add_argument(app, "--wiring", arguments.wiring, read_wiring, "KIND",
               "full, or links that messages share: ring, torus and mesh (--dims), hypercube, "
               "two_level (--node-ranks), fat_tree (--node-ranks, --spines)")
      .group(kGroup);
  add_argument(app, "--spines", arguments.spines, optionally<int>(Whole{1, Wiring::kMostSpines}),
               "N", "of a fat tree: switches above the groups, each with a link to every group")
      .group(kGroup);
  add_argument(app, "--routing", arguments.routing, read_routing, "NAME",
               "on rings and tori: minimal, both ways where they are as long; or one_way (minimal)")
      .group(kGroup);
  add_argument(app, "--hop", arguments.hop, optionally<Rational>(parse_seconds), "TIME",
               "per link that a message crosses, with the processing at its end: 200ns")
      .group(kGroup);
  add_argument(app, "--gamma", arguments.gamma, optionally<Rational>(parse_seconds), "TIME",
               "per byte that a rank adds to what it has: 5ps")
      .group(kGroup);
  add_argument(app, "--eta-alpha", arguments.eta_alpha, optionally<Rational>(parse_decimal),
               "FACTOR", "what contention makes of alpha: 1 or more (1)")
      .group(kGroup);
  add_argument(app, "--eta-beta", arguments.eta_beta, optionally<Rational>(parse_decimal), "PART",
               "what contention leaves of the bandwidth: up to 1 (1)")
      .group(kGroup);
  app.add_flag("--lower", arguments.lower,
               "turn multicasts and reductions in the switch into messages where it cannot do them")
      .group(kGroup);
}

Result<Fabric> network_of(const NetworkArguments& arguments) {
  Fabric fabric = plain_regime().fabric;
  if (!arguments.network.empty()) {
    auto found = find_network("--network", arguments.network);
    if (!found.ok()) return found.status();
    fabric = *found;
  }
  const bool has_between = !(fabric.between.alpha == 0 && fabric.between.beta == 0);
  if (arguments.alpha) fabric.link.alpha = *arguments.alpha;
  if (arguments.beta) fabric.link.beta = *arguments.beta;
  if (arguments.ports) fabric.ports = *arguments.ports;
  if (arguments.gamma) fabric.gamma = *arguments.gamma;
  for (Link* link : {&fabric.link, &fabric.between}) {
    if (arguments.eta_alpha) link->eta_alpha = *arguments.eta_alpha;
    if (arguments.eta_beta) link->eta_beta = *arguments.eta_beta;
  }
  if (arguments.alpha_switch) fabric.alpha_switch = *arguments.alpha_switch;
  if (arguments.group) fabric.group = *arguments.group;
  if (arguments.between_alpha) fabric.between.alpha = *arguments.between_alpha;
  if (arguments.between_beta) fabric.between.beta = *arguments.between_beta;
  Status status = rewire(arguments, fabric);
  if (!status.ok()) return status;
  fabric.multicast |= arguments.multicast;
  fabric.alu |= arguments.alu;
  fabric.permute |= arguments.permute;
  if (fabric.group == 0 && (arguments.between_alpha || arguments.between_beta)) {
    return invalid_argument(fmt::format(
        "{} is of the links among groups, and network '{}' has one group; --node-ranks is needed "
        "with it, 1 or more",
        arguments.between_alpha ? "--between-alpha" : "--between-bandwidth", fabric.name));
  }
  if (fabric.group > 0 && !has_between && !(arguments.between_alpha && arguments.between_beta)) {
    return invalid_argument(
        fmt::format("--node-ranks is {}; --between-alpha and "
                    "--between-bandwidth are needed with it",
                    fabric.group));
  }
  const bool changed = arguments.alpha || arguments.beta || arguments.ports ||
                       arguments.alpha_switch || arguments.group || arguments.between_alpha ||
                       arguments.between_beta || arguments.multicast || arguments.alu ||
                       arguments.permute || arguments.wiring || arguments.spines ||
                       arguments.routing || arguments.hop || arguments.gamma ||
                       arguments.eta_alpha || arguments.eta_beta;
  if (changed) fabric.name += " (changed)";
  status = check_fabric(fabric);
  if (!status.ok()) return status;
  return fabric;
}

Result<Sync> read_sync(std::string_view argument, std::string_view text) {
  if (const auto sync = parse_sync(text)) return *sync;
  constexpr std::string_view kNames[] = {"dataflow", "rounds"};
  return unknown_name(argument, text, kNames);
}

std::string describe_presets() {
  std::string text;
  for (const Regime& regime : regimes()) {
    text += fmt::format("  {:<17}  {}\n", regime.name, regime.source);
  }
  return text;
}

}  // namespace rankine::tools
