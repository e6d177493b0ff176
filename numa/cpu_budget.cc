#include "numa/cpu_budget.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <sstream>
#include <vector>

#include "engine/base/small_file.h"
#include "numa/affinity.h"

namespace rankine {
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

// mountinfo writes a space as \040, and likewise tab, line end and backslash.
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
  std::string shown_root;  // the cgroup that stands at `point`; a container may see only its own
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

// The process's cgroup as seen from the mount point: "" is the mount point itself, else "/a/b".
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

// visit(mount, path below its point) for the process's own group of each mounted hierarchy.
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
    while (true) {  // a child may ask for more than its parent grants: the parent still counts
      const std::optional<CpuQuota> quota = quota_in(root + mount.point + below, mount.v2);
      if (quota && (!tightest || quota->cores < tightest->cores)) tightest = quota;
      if (below.empty()) break;
      below.resize(below.rfind('/'));
    }
  });
  return tightest;
}

CpuGrant count_cores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/", root, cpu);
    std::optional<std::string> siblings = read_file(folder + "core_cpus_list");
    if (!siblings) siblings = read_file(folder + "thread_siblings_list");  // before Linux 5.10
    cores.insert(siblings && !siblings->empty() ? *siblings : fmt::format("{}\n", cpu));
  }
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
  // Where there is one hardware thread per core, they need no word.
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
  if (cpus.empty()) {  // the kernel does not tell
    affinity.cpus = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    affinity.cores = affinity.cpus;
  }
  return combine_cpu_budget(affinity, read_cpu_quota(root));
}

int cpus_among(const std::vector<int>& processes, const std::string& root) {
  const std::vector<int> ours = cpus_before_pin();
  if (ours.empty()) return cpu_budget(root).cpus;  // the kernel tells nothing
  std::set<int> all(ours.begin(), ours.end());
  for (const int process : processes) {
    const std::vector<int> theirs = allowed_cpus(process);
    all.insert(theirs.begin(), theirs.end());
  }
  const auto cpus = static_cast<int>(all.size());
  return combine_cpu_budget({.cores = cpus, .cpus = cpus}, read_cpu_quota(root)).cpus;
}

}  // namespace rankine
