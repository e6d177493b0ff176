#include "numa/cpu_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>

namespace rankine {
namespace {

std::optional<int> parse_cpu(std::string_view text) {
  int cpu = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, cpu);
  if (text.empty() || error != std::errc{} || stop != end || cpu < 0 || cpu >= kMaxCpus)
    return std::nullopt;
  return cpu;
}

}  // namespace

CpuList parse_cpu_list(std::string_view text) {
  CpuList result;
  std::vector<bool> seen(kMaxCpus, false);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t dash = part.find('-', 1);
    const std::optional<int> first = parse_cpu(part.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : parse_cpu(part.substr(dash + 1));
    if (!first || !last || *first > *last) {
      return {
          {},
          fmt::format("CPU list \"{}\": \"{}\" is neither a number in 0..{} nor a rising range of "
                      "them; expected something like \"0,2,4-7\"",
                      text, part, kMaxCpus - 1)};
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      if (seen[static_cast<std::size_t>(cpu)]) {
        return {
            {},
            fmt::format("CPU list \"{}\": CPU {} is listed twice; each may stand once", text, cpu)};
      }
      seen[static_cast<std::size_t>(cpu)] = true;
      result.cpus.push_back(cpu);
    }
    begin = end + 1;
  }
  return result;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == first ? fmt::format("{}", cpus[first])
                          : fmt::format("{}-{}", cpus[first], cpus[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace rankine
