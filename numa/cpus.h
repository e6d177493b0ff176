// CPU numbers as the kernel writes them: "0,2,4-7".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankine {

constexpr int kMaxCpus = 8192;  // the largest NR_CPUS that x86-64 Linux can be built with

struct CpuList {
  std::vector<int> cpus;  // in the order written
  std::string error;      // empty: well-formed
  bool ok() const { return error.empty(); }
};

// Reads "0,2,4-7": numbers and rising ranges, separated by commas, each in 0..kMaxCpus-1 and none
// twice. The error names the offending part and what is expected.
CpuList parse_cpu_list(std::string_view text);

// The inverse, with runs of neighbours folded: {0,2,4,5,6,7} -> "0,2,4-7". Keeps the order given.
std::string format_cpu_list(const std::vector<int>& cpus);

// The CPUs on which threads may run, as plain numbers.

// CPU numbers of a thread's affinity mask (which a cpuset has already narrowed), rising. 0: the
// calling thread's; a process id: its main thread's. Empty when the kernel refuses to tell. A
// thread inherits its creator's mask, so ask before pinning anything.
std::vector<int> allowed_cpus(int thread = 0);

// The calling thread's, as they were before pin_calling_thread() (pin.h) pinned it; the same as
// allowed_cpus() for a thread that is not pinned, or that something else has moved since.
std::vector<int> cpus_before_pin();
// For pin_calling_thread(): this thread now has `cpu` alone, and had these before.
void remember_pin(int cpu, std::vector<int> before) noexcept;

// 0 where the kernel tells, else the errno with which it refuses. Does not allocate.
int affinity_error() noexcept;

// Restricts the calling thread to `cpus` (numbers in 0..kMaxCpus-1, others are ignored). Returns 0
// or the errno; on error the thread's mask is unchanged. Does not allocate.
int set_allowed_cpus(const int* cpus, int count) noexcept;

// How many cores this process can really use: a container may show 64 CPUs and pay for 2.

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
