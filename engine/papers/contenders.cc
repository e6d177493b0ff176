#include "engine/papers/contenders.h"

namespace rankine::reproduce {
namespace {

constexpr Contender kContenders[] = {
    {"Bucket", "", "bucket"},
    {"Recursive doubling", "torus_doubling_latency", "torus_doubling", true},
    {"Swing", "swing_latency", "swing", true},
    {"Bruck", "bruck_ternary_latency", "bruck_ternary"},
    // At the paper's distances: by shorter ones it would stay ahead longer than the text says.
    {"Trivance", "trivance_latency", "trivance_powers"},
};

}  // namespace

std::string_view letter_of(Form form) { return form == Form::latency ? "L" : "B"; }

std::span<const Contender> contenders() { return kContenders; }

const Contender& trivance() { return *find_contender("Trivance"); }

const Contender* find_contender(std::string_view name) {
  for (const Contender& each : kContenders) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace rankine::reproduce
