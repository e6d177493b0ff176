#include "numa/cpus.h"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "numa/system_calls.h"

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
          fmt::format("CPU list \"{}\": \"{}\" is no CPU and no range; allowed are numbers from 0 "
                      "to {} and rising ranges, such as \"0,2,4-7\"",
                      text, part, kMaxCpus - 1)};
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      if (seen[static_cast<std::size_t>(cpu)]) {
        return {{},
                fmt::format("CPU list \"{}\": CPU {} is listed twice; allowed is once", text, cpu)};
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

namespace {

// cpu_set_t holds 1024 CPUs; the kernel refuses to fill a mask shorter than its own, so this is the
// longest.
using Mask = std::array<cpu_set_t, kMaxCpus / CPU_SETSIZE>;

Mask empty_mask() {
  Mask mask;
  for (cpu_set_t& part : mask) CPU_ZERO(&part);
  return mask;
}

// 0, or the errno.
int read_mask(Mask& mask, int thread) noexcept {
  return system_calls().sched_getaffinity(thread, sizeof(mask), mask.data()) == 0 ? 0 : errno;
}

}  // namespace

std::vector<int> allowed_cpus(int thread) {
  Mask mask = empty_mask();
  std::vector<int> cpus;
  if (read_mask(mask, thread) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET(cpu % CPU_SETSIZE, &mask[static_cast<std::size_t>(cpu / CPU_SETSIZE)]))
      cpus.push_back(cpu);
  }
  return cpus;
}

namespace {

struct Pin {
  int cpu = -1;
  std::vector<int> before;
};
Pin& pin_of_this_thread() {
  thread_local Pin pin;
  return pin;
}

}  // namespace

std::vector<int> cpus_before_pin() {
  std::vector<int> cpus = allowed_cpus();
  const Pin& pin = pin_of_this_thread();
  return cpus.size() == 1 && cpus.front() == pin.cpu ? pin.before : cpus;
}

void remember_pin(int cpu, std::vector<int> before) noexcept {
  Pin& pin = pin_of_this_thread();
  pin.cpu = cpu;
  pin.before = std::move(before);
}

int affinity_error() noexcept {
  Mask mask = empty_mask();
  return read_mask(mask, 0);
}

int set_allowed_cpus(const int* cpus, int count) noexcept {
  Mask mask = empty_mask();
  for (int i = 0; i < count; ++i) {
    const int cpu = cpus[i];
    if (cpu < 0 || cpu >= kMaxCpus) continue;
    CPU_SET(cpu % CPU_SETSIZE, &mask[static_cast<std::size_t>(cpu / CPU_SETSIZE)]);
  }
  return system_calls().sched_setaffinity(0, sizeof(mask), mask.data()) == 0 ? 0 : errno;
}

namespace {

constexpr long long kDefaultPeriodUs = 100000;

std::optional<std::string> read_file(const std::string& path) {
  constexpr std::size_t kLimit = 16 << 20;  // mountinfo may have many thousand lines
  SmallFile file = read_small_file(path, kLimit);
  if (!file.ok()) return std::nullopt;
  return std::move(file.text);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

bool has_word(const std::string& comma_list, const std::string& word) {
  const std::vector<std::string> parts = split(comma_list, ',');
  return std::find(parts.begin(), parts.end(), word) != parts.end();
}

std::optional<long long> parse_integer(const std::string& text) {
  long long value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> cores_of(std::optional<long long> quota_us,
                               std::optional<long long> period_us) {
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

// mountinfo writes a space as \040, and escapes tab, line end and backslash in octal too.
std::string unescape(const std::string& text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct Mount {
  bool v2;
  std::string shown_root;  // the cgroup visible at `point`; a container may see only its own
  std::string point;
};

// man proc_pid_mountinfo: id parent major:minor root point options [tags] - type source
// super-options
std::optional<Mount> parse_mount(const std::string& line) {
  const std::vector<std::string> fields = words(line);
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() < 6 || fields.end() - dash < 4) return std::nullopt;
  const bool v2 = dash[1] == "cgroup2";
  const bool v1_cpu = dash[1] == "cgroup" && has_word(dash[3], "cpu");
  if (!v2 && !v1_cpu) return std::nullopt;
  return Mount{v2, unescape(fields[3]), unescape(fields[4])};
}

// man cgroups: "0::<path>" for v2, "<n>:<controllers>:<path>" for v1.
std::optional<std::string> own_cgroup(const std::string& proc_cgroup, bool v2) {
  for (const std::string& line : split(proc_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool matches =
        v2 ? line.compare(0, first, "0") == 0 && controllers.empty() : has_word(controllers, "cpu");
    if (matches) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The process's cgroup as seen from the mount point: "" is the mount point itself; otherwise
// "/a/b".
std::string path_below(const Mount& mount, const std::string& cgroup) {
  const std::string root = mount.shown_root == "/" ? "" : mount.shown_root;
  const bool inside = cgroup.compare(0, root.size(), root) == 0 &&
                      (cgroup.size() == root.size() || cgroup[root.size()] == '/');
  if (!inside || cgroup.find("/..") != std::string::npos) return "";  // not visible from here
  std::string below = cgroup.substr(root.size());
  while (!below.empty() && below.back() == '/') below.pop_back();
  return below;
}

std::optional<CpuQuota> quota_in(const std::string& directory, bool v2) {
  const std::string file = directory + (v2 ? "/cpu.max" : "/cpu.cfs_quota_us");
  const std::optional<std::string> text = read_file(file);
  if (!text) return std::nullopt;
  const std::optional<double> cores =
      v2 ? parse_cpu_max(*text)
         : parse_cfs_quota(*text, read_file(directory + "/cpu.cfs_period_us").value_or(""));
  if (!cores) return std::nullopt;
  return CpuQuota{*cores, file};
}

// Calls visit(mount, path below its point) for the process's own group in each mounted hierarchy.
template <class Visit>
void for_each_group(const std::string& root, const Visit& visit) {
  const std::string proc_cgroup = read_file(root + "/proc/self/cgroup").value_or("");
  const std::string mountinfo = read_file(root + "/proc/self/mountinfo").value_or("");
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::optional<Mount> mount = parse_mount(line);
    if (!mount) continue;
    const std::optional<std::string> cgroup = own_cgroup(proc_cgroup, mount->v2);
    if (cgroup) visit(*mount, path_below(*mount, *cgroup));
  }
}

}  // namespace

std::optional<double> parse_cpu_max(const std::string& text) {
  const std::vector<std::string> fields = words(text);
  if (fields.empty() || fields.size() > 2) return std::nullopt;  // "max" is no integer: no limit
  return cores_of(parse_integer(fields[0]),
                  fields.size() == 2 ? parse_integer(fields[1]) : kDefaultPeriodUs);
}

std::optional<double> parse_cfs_quota(const std::string& quota_us, const std::string& period_us) {
  const std::vector<std::string> quota = words(quota_us);
  const std::vector<std::string> period = words(period_us);
  if (quota.size() != 1 || period.size() > 1) return std::nullopt;
  return cores_of(parse_integer(quota[0]),
                  period.empty() ? kDefaultPeriodUs : parse_integer(period[0]));
}

std::vector<CpuGroup> cpu_groups(const std::string& root) {
  std::vector<CpuGroup> groups;
  for_each_group(root, [&](const Mount& mount, const std::string& below) {
    groups.push_back({root + mount.point + below, mount.v2});
  });
  return groups;
}

std::optional<CpuQuota> read_cpu_quota(const std::string& root) {
  std::optional<CpuQuota> tightest;
  for_each_group(root, [&](const Mount& mount, std::string below) {
    // a child may ask for more than its parent grants: the parent's quota still counts
    while (true) {
      const std::optional<CpuQuota> quota = quota_in(root + mount.point + below, mount.v2);
      if (quota && (!tightest || quota->cores < tightest->cores)) tightest = quota;
      if (below.empty()) break;
      below.resize(below.rfind('/'));
    }
  });
  return tightest;
}

std::string cpus_of_core(int cpu, const std::string& root) {
  const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/", root, cpu);
  std::optional<std::string> siblings = read_file(folder + "core_cpus_list");
  if (!siblings) siblings = read_file(folder + "thread_siblings_list");  // before Linux 5.10
  return siblings && !siblings->empty() ? *siblings : fmt::format("{}\n", cpu);
}

CpuGrant count_cores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus) cores.insert(cpus_of_core(cpu, root));
  return {std::max(1, static_cast<int>(cores.size())), std::max(1, static_cast<int>(cpus.size()))};
}

CpuBudget combine_cpu_budget(const CpuGrant& affinity, const std::optional<CpuQuota>& quota) {
  CpuBudget budget{affinity.cores, affinity.cpus, affinity, quota, ""};
  const auto counted = [](int n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  if (quota) {
    // A quota may be larger than any int.
    const int most = std::max(1, static_cast<int>(std::min<double>(quota->cores, affinity.cpus)));
    budget.cores = std::min(budget.cores, most);
    budget.cpus = std::min(budget.cpus, most);
  }
  const std::string head = counted(budget.cores, "core") + ": ";
  // With one hardware thread per core, omit the hardware threads.
  const std::string threads =
      affinity.cpus == affinity.cores ? "" : counted(affinity.cpus, "hardware thread") + ", ";
  if (!quota) {
    budget.why = head + fmt::format("affinity mask ({}no CPU quota)", threads);
  } else if (quota->cores < affinity.cores) {
    budget.why = head + fmt::format("CPU quota {:.2f} in {} (affinity mask: {}{})", quota->cores,
                                    quota->file, affinity.cores,
                                    affinity.cpus == affinity.cores
                                        ? ""
                                        : ", " + counted(affinity.cpus, "hardware thread"));
  } else {
    budget.why = head + fmt::format("affinity mask ({}CPU quota: {:.2f} in {})", threads,
                                    quota->cores, quota->file);
  }
  return budget;
}

CpuBudget cpu_budget(const std::string& root) {
  const std::vector<int> cpus = cpus_before_pin();
  CpuGrant affinity = count_cores(cpus, root);
  if (cpus.empty()) {  // the kernel does not report the mask
    affinity.cpus = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    affinity.cores = affinity.cpus;
  }
  return combine_cpu_budget(affinity, read_cpu_quota(root));
}

int cpus_among(const std::vector<int>& processes, const std::string& root) {
  const std::vector<int> ours = cpus_before_pin();
  if (ours.empty()) return cpu_budget(root).cpus;  // the kernel does not report the mask
  std::set<int> all(ours.begin(), ours.end());
  for (const int process : processes) {
    const std::vector<int> theirs = allowed_cpus(process);
    all.insert(theirs.begin(), theirs.end());
  }
  const auto cpus = static_cast<int>(all.size());
  return combine_cpu_budget({.cores = cpus, .cpus = cpus}, read_cpu_quota(root)).cpus;
}

}  // namespace rankine
