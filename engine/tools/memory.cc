#include "engine/tools/memory.h"

#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

namespace rankine::tools {
namespace {

std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream stream(file);
  std::uint64_t value = 0;
  if (!(stream >> value)) return std::nullopt;  // absent, or "max"
  return value;
}

std::optional<std::uint64_t> meminfo(const std::string& root) {
  std::ifstream stream(root + "/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  for (std::string line; stream >> name >> kib; std::getline(stream, line)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory least{static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()), "unknown"};
  const auto consider = [&](std::optional<std::uint64_t> bytes, std::string why) {
    if (bytes && *bytes < least.bytes) least = {*bytes, std::move(why)};
  };
  consider(meminfo(root), "MemAvailable of /proc/meminfo");
  const auto cgroup = [&](const std::string& folder, const char* limit, const char* usage) {
    const auto most = number_in(root + folder + limit), used = number_in(root + folder + usage);
    if (!most) return;
    const std::uint64_t taken = used.value_or(0);
    consider(*most > taken ? *most - taken : 0, "the limit in " + folder + limit);
  };
  cgroup("/sys/fs/cgroup/", "memory.max", "memory.current");
  cgroup("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes");
  return least;
}

}  // namespace rankine::tools
