#include "engine/tools/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "engine/base/units.h"

#ifdef __EMSCRIPTEN__  // the page has no files
#include <emscripten/heap.h>
#endif

namespace rankine::tools {
namespace {

[[maybe_unused]] std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream stream(file);
  std::uint64_t value = 0;
  if (!(stream >> value)) return std::nullopt;  // absent, or "max"
  return value;
}

// The number behind a name at the beginning of a line.
[[maybe_unused]] std::optional<std::uint64_t> field_in(const std::string& file, std::string_view field) {
  std::ifstream stream(file);
  std::string name;
  std::uint64_t value = 0;
  for (std::string rest; stream >> name >> value; std::getline(stream, rest)) {
    if (name == field) return value;
  }
  return std::nullopt;
}

[[maybe_unused]] std::optional<std::uint64_t> in_bytes(std::optional<std::uint64_t> kib) {
  if (kib) *kib *= 1024;
  return kib;
}

}  // namespace

AvailableMemory available_memory([[maybe_unused]] const std::string& root) {
#ifdef __EMSCRIPTEN__
  return {emscripten_get_heap_max(), "the page's heap"};
#else
  AvailableMemory least{static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
                        "unknown"};
  const auto consider = [&](std::optional<std::uint64_t> bytes, std::string why) {
    if (bytes && *bytes < least.bytes) least = {*bytes, std::move(why)};
  };
  consider(in_bytes(field_in(root + "/proc/meminfo", "MemAvailable:")),
           "MemAvailable of /proc/meminfo");
  const auto cgroup = [&](const std::string& folder, const char* limit, const char* usage) {
    const auto most = number_in(root + folder + limit), used = number_in(root + folder + usage);
    if (!most) return;
    // Files that nobody has read lately count as used, and are given up first.
    const std::uint64_t taken = used.value_or(0);
    const std::uint64_t files =
        std::min(taken, field_in(root + folder + "memory.stat", "inactive_file").value_or(0));
    const std::uint64_t kept = taken - files;
    consider(*most > kept ? *most - kept : 0, "the limit in " + folder + limit);
  };
  cgroup("/sys/fs/cgroup/", "memory.max", "memory.current");
  cgroup("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes");
  return least;
#endif
}

Status check_memory(std::size_t needed, std::string_view what, std::string_view who,
                    std::size_t spare) {
  const AvailableMemory available = available_memory();
  if (spare <= available.bytes && needed <= available.bytes - spare) return {};
  return {Code::out_of_memory,
          fmt::format("{} must have {} of {}; available are {} ({})", who, format_bytes(needed), what,
                      format_bytes(available.bytes), available.why)};
}

}  // namespace rankine::tools
