// How many cores this process can really use: a container may show 64 CPUs and pay for 2.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankine {

// The tightest CPU quota over a process's cgroup and all its ancestors.
struct CpuQuota {
  double cores;      // CPU seconds per second, > 0; may be below 1
  std::string file;  // the file that states it
};

// cgroup v2 cpu.max, "<quota|max> [<period>]" in microseconds -> cores; nullopt: no limit, or not
// readable so.
std::optional<double> parse_cpu_max(const std::string& text);

// cgroup v1 cpu.cfs_quota_us (-1: no limit) and cpu.cfs_period_us -> cores; nullopt as above.
std::optional<double> parse_cfs_quota(const std::string& quota_us, const std::string& period_us);

// A control group of processors that this process is in, as the folder in which it is seen.
struct CpuGroup {
  std::string folder;
  bool v2;
};

// The process's own groups, of v2 and of v1, by <root>/proc/self/cgroup and
// <root>/proc/self/mountinfo; empty: none is mounted.
std::vector<CpuGroup> cpu_groups(const std::string& root = "");

// Reads <root>/proc/self/cgroup and <root>/proc/self/mountinfo and then, under <root>, every limit
// from the process's cgroup up to the mount point, of v2 and of v1. nullopt: no limit found.
// Missing or malformed files count as no limit.
std::optional<CpuQuota> read_cpu_quota(const std::string& root = "");

// What an affinity mask grants.
struct CpuGrant {
  int cores = 1;  // that have at least one of its CPUs
  int cpus = 1;   // hardware threads, >= cores
};

struct CpuBudget {
  int cores;                      // usable cores, >= 1: how many ranks to start where nobody says
  int cpus;                       // usable hardware threads, >= cores: more ranks take turns
  CpuGrant affinity;              // what the affinity mask alone allows
  std::optional<CpuQuota> quota;  // the tightest quota, if any
  std::string why;                // "2 cores: affinity mask (no CPU quota)", for reports
};

// Hardware threads grouped into cores as Linux's sysfs tells, under `root`; a CPU of which it tells
// nothing counts as a core.
CpuGrant count_cores(const std::vector<int>& cpus, const std::string& root = "");

// Either number = min(granted, max(1, floor(quota))): with 2.5 cores a third busy rank would be
// throttled.
CpuBudget combine_cpu_budget(const CpuGrant& affinity, const std::optional<CpuQuota>& quota);

// The budget of the calling thread, without its pin (pin.h). It inherits its creator's mask.
CpuBudget cpu_budget(const std::string& root = "");

// The hardware threads that the calling thread and these processes, by their ids, may use between
// them: whoever starts processes may have bound each to a CPU of its own. Of a process that the
// kernel does not tell of nothing is added.
int cpus_among(const std::vector<int>& processes, const std::string& root = "");

}  // namespace rankine
