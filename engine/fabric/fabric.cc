#include "engine/fabric/fabric.h"

namespace rankine {
namespace {

Rational ns(std::int64_t n) { return {n, 1'000'000'000}; }
Rational gigabytes_per_second(std::int64_t g) { return {1, g * Int128{1'000'000'000}}; }

const std::vector<Regime>& all() {
  static const std::vector<Regime> kRegimes = {
      {"plain",
       {.name = "plain", .ports = 1, .link = {ns(1000), gigabytes_per_second(100)}},
       "1 us, 100 GB/s: the worked example of the ring and tree chapter (crossover point)"},
      {"scale_up",
       {.name = "scale_up", .ports = 1, .link = {ns(500), gigabytes_per_second(900)}},
       "NVLink 5 class, 0.5 us and 900 GB/s (Lu, Collective Algorithms, 5.3 and B.3)"},
      {"nvl72",
       {.name = "nvl72",
        .ports = 1,
        .link = {ns(500), gigabytes_per_second(900)},
        .multicast = true,
        .alu = true,
        .alpha_switch = ns(100)},
       "72 ranks on one NVSwitch layer that multicasts and adds: scale_up with hops of 100 ns, the "
       "lower end of 100 to 200 ns (Lu, 3.3, 4.3 and 5.3)"},
      {"switch",
       {.name = "switch",
        .ports = 1,
        .link = {ns(500), gigabytes_per_second(900)},
        .multicast = true,
        .alu = true,
        .alpha_switch = ns(150)},
       "the same with hops of 150 ns, the middle of that range"},
      {"pcie",
       {.name = "pcie", .ports = 1, .link = {ns(1000), gigabytes_per_second(63)}},
       "PCIe 5.0 x16: 16 lanes of 32 GT/s in 128b/130b code are 63 GB/s; 1 us is an assumption"},
      {"scale_out",
       {.name = "scale_out", .ports = 1, .link = {ns(1500), gigabytes_per_second(50)}},
       "InfiniBand: 1 to 2 us (Lu, appendix A), one port of 50 GB/s (collectives lesson)"},
      {"scale_out_2",
       {.name = "scale_out_2", .ports = 2, .link = {ns(1500), gigabytes_per_second(50)}},
       "the same with two rails; 2 to 8 are common (Lu, C.4)"},
      {"torus_link",
       {.name = "torus_link", .ports = 2, .link = {ns(1700), gigabytes_per_second(100)}},
       "neighbours on a ring of 800 Gb/s links: 1.5 us per step, 100 ns of link and 100 ns of hop "
       "(Trivance, section 6)"},
      {"two_level",
       {.name = "two_level",
        .ports = 1,
        .link = {ns(500), gigabytes_per_second(450)},
        .group = 8,
        .between = {ns(1500), gigabytes_per_second(50)}},
       "8 GPUs per node, InfiniBand between nodes (collectives lesson; its 900 GB/s of NVLink "
       "count "
       "both directions, its 50 GB/s one)"},
      {"two_level_chapter",
       {.name = "two_level_chapter",
        .ports = 1,
        .link = {ns(1000), gigabytes_per_second(600)},
        .group = 8,
        .between = {ns(5000), gigabytes_per_second(100)}},
       "8 GPUs per node, 1 us and 600 GB/s; 5 us and 100 GB/s between nodes (ring and tree "
       "chapter, "
       "exercise 3)"},
  };
  return kRegimes;
}

Status not_negative(std::string_view member, Rational value) {
  if (!(value < 0)) return {};
  return invalid_argument(std::string(member) + " is " + value.to_string() +
                          "; it may not be negative");
}

}  // namespace

std::span<const Regime> regimes() { return all(); }

const Regime* find_regime(std::string_view name) {
  for (const Regime& regime : all()) {
    if (regime.name == name) return &regime;
  }
  return nullptr;
}

const Regime& plain_regime() { return all().front(); }

std::string regime_names() {
  std::string names;
  for (const Regime& regime : all()) {
    if (!names.empty()) names += ", ";
    names += regime.name;
  }
  return names;
}

Status check_fabric(const Fabric& fabric) {
  if (fabric.ports < 1 || fabric.ports > Fabric::kMostPorts) {
    return invalid_argument("ports is " + std::to_string(fabric.ports) + "; allowed are 1 to " +
                            std::to_string(Fabric::kMostPorts));
  }
  if (fabric.group < 0) {
    return invalid_argument("group is " + std::to_string(fabric.group) +
                            "; allowed are 0 (none) and more");
  }
  Status status = not_negative("alpha", fabric.link.alpha);
  if (status.ok()) status = not_negative("beta", fabric.link.beta);
  if (status.ok()) status = not_negative("between.alpha", fabric.between.alpha);
  if (status.ok()) status = not_negative("between.beta", fabric.between.beta);
  if (status.ok()) status = not_negative("alpha_switch", fabric.alpha_switch);
  return status;
}

}  // namespace rankine
