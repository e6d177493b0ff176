#include "bench/rivals/table.h"

#include <cstdio>
#include <string>

#include "bench/rivals/clock.h"
#include "bench/rivals/kernels.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"

namespace rankine::rivals {
namespace {

constexpr int kColumn = 15;

std::string significant(double value) {
  char text[32];
  const int digits = value < 10 ? 3 : value < 100 ? 1 : 0;
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string padded(const std::string& text) {
  // The sign takes two bytes and one column.
  const int extra = text.find("\u00b1") == std::string::npos ? 0 : 1;
  char cell[64];
  std::snprintf(cell, sizeof(cell), " %*s", kColumn + extra, text.c_str());
  return cell;
}

std::string cell_text(const Cell& cell, const Contender& contender) {
  if (!contender.missing.empty()) return "missing";
  if (cell.us.empty()) return "-";
  if (cell.wrong > 0) return "WRONG";
  char text[48];
  std::snprintf(text, sizeof(text), "%s\u00b1%.0f%%", significant(median(cell.us)).c_str(),
                100 * relative_spread(cell.us));
  return text;
}

}  // namespace

void print_header(const Plan& plan, const Setup& setup, const Contenders& contenders,
                  const std::vector<LevelRates>& levels) {
  std::printf("# %s f32 sum %s, %d %s, cores", name_of(plan.collective).data(),
              plan.in_place ? "in place" : "out of place", setup.ranks,
              setup.processes ? "processes" : "ranks");
  for (const int cpu : setup.cpus) std::printf(" %d", cpu);
  std::printf("%s; loops: %s\n", setup.crowded ? " (crowded)" : "", kernels().name);
  std::printf(
      "# us per call: median of %d batches, +- half the interquartile range; a pair of stamps adds "
      "%.0f ns to fresh\n",
      plan.rounds, stamp_cost_ns());
  for (const auto& contender : contenders) {
    if (!contender->missing.empty()) {
      std::printf("# %s: missing: %s\n", contender->name.c_str(), contender->missing.c_str());
    } else if (!contender->version.empty()) {
      std::printf("# %s: %s\n", contender->name.c_str(), contender->version.c_str());
    }
  }
  std::printf("# GB/s per core, all at once: copy, add, read, read of what another wrote\n");
  for (const LevelRates& level : levels) {
    std::printf("#   %-4s %10s %7.1f %7.1f %7.1f %7.1f\n", level.level.c_str(),
                format_bytes(level.bytes).c_str(), level.copy, level.add, level.read,
                level.cross_read);
  }
  std::printf("# size(B) protocol ping-pong(ns)");
  for (const auto& contender : contenders) std::printf("%s", padded(contender->name).c_str());
  std::printf("%s", padded("limit").c_str());
  for (const Comparison& comparison : kComparisons)
    std::printf("%s", padded(comparison.title).c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void print_row(const Row& row, const Contenders& contenders) {
  std::printf("%9zu %8s %6.0f %6.0f%s", row.bytes,
              kProtocolNames[static_cast<int>(row.protocol)].data(), row.ping_pong_ns.front(),
              row.ping_pong_ns.back(), row.steady() ? " " : "~");
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::printf("%s", padded(cell_text(row.cells[i], *contenders[i])).c_str());
  }
  std::printf("%s", padded(significant(row.limit().us)).c_str());
  for (const Comparison& comparison : kComparisons) {
    const auto compared = compare(comparison, row, contenders);
    char text[16] = "-";
    if (compared) std::snprintf(text, sizeof(text), "%.2f", compared->ratio);
    std::printf("%s", padded(text).c_str());
  }
  if (row.repeats > 0)
    std::printf("  # repeated %d x%s", row.repeats, row.steady() ? "" : ", machine unsteady");
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace rankine::rivals
