#include "engine/tools/network_text.h"

#include <fmt/format.h>

#include "algorithms/torus.h"
#include "engine/base/units.h"

namespace rankine::tools {

std::string describe(const Fabric& fabric) {
  std::string network = fmt::format("{}, {}, {}",
                                    fabric.ports == 0 ? "a port per link" : counted(fabric.ports, "port"),
                                    format_duration(fabric.link.latency().to_double()),
                                    format_bandwidth(fabric.link.per_byte()));
  if (fabric.two_level()) {
    network += fmt::format("; {}, {} between groups of {}",
                           format_duration(fabric.between.latency().to_double()),
                           format_bandwidth(fabric.between.per_byte()), fabric.group);
  }
  if (const std::string wiring = describe_wiring(fabric); !wiring.empty()) {
    network += "; " + wiring;
  }
  if (fabric.multicast || fabric.alu) {
    network += fmt::format("; {} in the switch, {} per hop",
                           fabric.multicast && fabric.alu ? "multicast and reduction"
                           : fabric.multicast             ? "multicast"
                                                          : "reduction",
                           format_duration(fabric.alpha_switch.to_double()));
  }
  if (fabric.permute) network += "; a switch that permutes";
  if (!(fabric.gamma == 0)) {
    network += fmt::format("; {} per byte added", format_duration(fabric.gamma.to_double()));
  }
  if (!fabric.places.empty()) {
    network += fmt::format("; {} at {}", counted(fabric.places.size(), "rank"),
                           counted(fabric.size, "place"));
  }
  if (!fabric.odd.empty()) {
    network += fmt::format("; {}", counted(fabric.odd.size(), "odd link"));
  }
  return fmt::format("{} ({})", fabric.name, network);
}

std::string describe_wiring(const Fabric& fabric) {
  const Wiring& wiring = fabric.wiring;
  std::string text;
  switch (wiring.kind) {
    case WiringKind::full:
      break;
    case WiringKind::ring:
      text = "ring";
      break;
    case WiringKind::torus:
    case WiringKind::mesh:
      text = name_of(wiring.kind);
      if (!wiring.dims.empty()) text += " " + dims_text(wiring.dims);
      break;
    case WiringKind::hypercube:
      text = "hypercube";
      break;
    case WiringKind::two_level:
      text = "one link up and down per group";
      break;
    case WiringKind::fat_tree:
      text =
          fmt::format("{}, a link up and down per group to each", counted(wiring.spines, "spine"));
      break;
  }
  if (wiring.routing == Routing::one_way) text += ", one way";
  if (!(fabric.alpha_hop == 0)) {
    text += fmt::format("{}{} per hop", text.empty() ? "" : ", ",
                        format_duration(fabric.alpha_hop.to_double()));
  }
  return text;
}

}  // namespace rankine::tools
