#include "engine/fabric/fabric.h"

namespace rankine {
namespace {

Fraction ns(std::int64_t n) { return {n, 1'000'000'000}; }
Fraction gigabytes_per_second(std::int64_t g) { return {1, g * 1'000'000'000}; }

const std::vector<Regime>& all() {
  static const std::vector<Regime> kRegimes = {
      {"scale_up",
       {.name = "scale_up", .ports = 1, .link = {ns(500), gigabytes_per_second(900)}},
       "NVLink 5 class: 0.5 us, 900 GB/s (collective-algorithms note, section 1)"},
      {"nvl72",
       {.name = "nvl72",
        .ports = 1,
        .link = {ns(500), gigabytes_per_second(900)},
        .multicast = true,
        .alu = true,
        .alpha_switch = ns(100)},
       "72 GPUs on one switch layer with multicast and reduction in the switch"},
      {"pcie",
       {.name = "pcie", .ports = 1, .link = {ns(1000), gigabytes_per_second(64)}},
       "PCIe 5.0 x16 through the host: 64 GB/s per direction"},
      {"scale_out",
       {.name = "scale_out", .ports = 1, .link = {ns(1500), gigabytes_per_second(50)}},
       "InfiniBand NDR: 1 to 2 us, 400 Gb/s per port"},
      {"scale_out_2",
       {.name = "scale_out_2", .ports = 2, .link = {ns(1500), gigabytes_per_second(50)}},
       "the same with two rails"},
      {"torus_link",
       {.name = "torus_link", .ports = 2, .link = {ns(1700), gigabytes_per_second(100)}},
       "TPU-like: 1.5 us per message, 800 Gb/s, 100 ns link and 100 ns hop (Trivance, section 5)"},
      {"two_level",
       {.name = "two_level",
        .ports = 1,
        .link = {ns(500), gigabytes_per_second(900)},
        .group = 8,
        .between = {ns(1500), gigabytes_per_second(50)}},
       "8 GPUs per node on NVLink, InfiniBand between nodes (collectives lesson)"},
      {"switch",
       {.name = "switch",
        .ports = 1,
        .link = {ns(500), gigabytes_per_second(900)},
        .multicast = true,
        .alu = true,
        .alpha_switch = ns(150)},
       "a switch with multicast and ALU, 100 to 200 ns per hop"},
  };
  return kRegimes;
}

}  // namespace

std::span<const Regime> regimes() { return all(); }

const Regime* find_regime(std::string_view name) {
  for (const Regime& regime : all()) {
    if (regime.name == name) return &regime;
  }
  return nullptr;
}

std::string regime_names() {
  std::string names;
  for (const Regime& regime : all()) {
    if (!names.empty()) names += ", ";
    names += regime.name;
  }
  return names;
}

Status check_fabric(const Fabric& fabric) {
  if (fabric.ports < 1) {
    return invalid_argument("ports is " + std::to_string(fabric.ports) + "; at least 1 is needed");
  }
  if (fabric.group < 0) {
    return invalid_argument("group is " + std::to_string(fabric.group) +
                            "; allowed are 0 (none) and more");
  }
  const auto check = [](std::string_view what, Fraction value) -> Status {
    if (!(value < 0)) return {};
    return invalid_argument(std::string(what) + " is " + value.to_string() +
                            "; it may not be negative");
  };
  Status status = check("alpha", fabric.link.alpha);
  if (status.ok()) status = check("beta", fabric.link.beta);
  if (status.ok()) status = check("alpha between groups", fabric.between.alpha);
  if (status.ok()) status = check("beta between groups", fabric.between.beta);
  if (status.ok()) status = check("alpha_switch", fabric.alpha_switch);
  return status;
}

}  // namespace rankine
