// This header reads lists of CPU numbers in the kernel's notation ("0,2,4-7"), affinity masks, and
// the number of cores that the process may use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankine {

constexpr int kMaxCpus = 8192;  // the largest NR_CPUS for which x86-64 Linux can be built

struct CpuList {
  std::vector<int> cpus;  // in the order written
  std::string error;      // empty: well-formed
  bool ok() const { return error.empty(); }
};

// Reads "0,2,4-7": numbers and rising ranges, separated by commas, each in 0..kMaxCpus-1 and none
// twice. The error names the offending part and the expected form.
CpuList parse_cpu_list(std::string_view text);

// The inverse, with runs of neighbours folded: {0,2,4,5,6,7} -> "0,2,4-7". Keeps the order given.
std::string format_cpu_list(const std::vector<int>& cpus);

// The CPUs on which threads may run, as plain numbers.

// CPU numbers of a thread's affinity mask (already narrowed by a cpuset), rising. 0: the calling
// thread; a process id: its main thread. Empty if the kernel does not report the mask. A thread
// inherits its creator's mask, so call this before pinning any thread.
std::vector<int> allowed_cpus(int thread = 0);

// The calling thread's CPUs before pin_calling_thread() (placement.h) pinned it. Equals
// allowed_cpus() for a thread that is not pinned, or that other code has moved since.
std::vector<int> cpus_before_pin();
// For pin_calling_thread(): this thread now has only `cpu`, and had `before`.
void remember_pin(int cpu, std::vector<int> before) noexcept;

// 0 if the kernel reports the mask, otherwise the errno of its refusal. Does not allocate.
int affinity_error() noexcept;

// Restricts the calling thread to `cpus` (numbers in 0..kMaxCpus-1, others are ignored). Returns 0
// or the errno; on error the thread's mask is unchanged. Does not allocate.
int set_allowed_cpus(const int* cpus, int count) noexcept;

// The CPU budget is the number of cores that this process can really use: a container may show 64
// CPUs and pay for 2.

// The tightest CPU quota over a process's cgroup and all its ancestors.
struct CpuQuota {
  double cores;      // CPU seconds per second, > 0; may be below 1
  std::string file;  // the file that states it
};

// cgroup v2 cpu.max, "<quota|max> [<period>]" in microseconds -> cores; nullopt: no limit, or
// malformed.
std::optional<double> parse_cpu_max(const std::string& text);

// cgroup v1 cpu.cfs_quota_us (-1: no limit) and cpu.cfs_period_us -> cores; nullopt: no limit, or
// malformed.
std::optional<double> parse_cfs_quota(const std::string& quota_us, const std::string& period_us);

// A control group of processors that contains this process, with its folder.
struct CpuGroup {
  std::string folder;
  bool v2;
};

// The process's own groups, of v2 and of v1, from <root>/proc/self/cgroup and
// <root>/proc/self/mountinfo; empty: none is mounted.
std::vector<CpuGroup> cpu_groups(const std::string& root = "");

// Reads <root>/proc/self/cgroup and <root>/proc/self/mountinfo and then, under <root>, every limit
// from the process's cgroup up to the mount point, of v2 and of v1. nullopt: no limit found.
// Missing or malformed files count as no limit.
std::optional<CpuQuota> read_cpu_quota(const std::string& root = "");

// The CPUs that an affinity mask grants.
struct CpuGrant {
  int cores = 1;  // cores with at least one of its CPUs
  int cpus = 1;   // hardware threads, >= cores
};

struct CpuBudget {
  int cores;                      // usable cores, >= 1: the default number of ranks
  int cpus;                       // usable hardware threads, >= cores: more ranks take turns
  CpuGrant affinity;              // grant of the affinity mask alone
  std::optional<CpuQuota> quota;  // the tightest quota, if any
  std::string why;                // "2 cores: affinity mask (no CPU quota)", for reports
};

// The hardware threads of a CPU's core in Linux's sysfs under `root`: "0,64\n". A CPU that is
// missing there is a core.
std::string cpus_of_core(int cpu, const std::string& root);

// Hardware threads grouped into cores by cpus_of_core().
CpuGrant count_cores(const std::vector<int>& cpus, const std::string& root = "");

// Both numbers are min(granted, max(1, floor(quota))): with 2.5 cores, a third busy rank would be
// throttled.
CpuBudget combine_cpu_budget(const CpuGrant& affinity, const std::optional<CpuQuota>& quota);

// The budget of the calling thread, without its pin (placement.h). A thread inherits its creator's
// mask.
CpuBudget cpu_budget(const std::string& root = "");

// The number of hardware threads that the calling thread and these processes (ids) may use
// together: a launcher may have bound each process to its own CPU. A process that the kernel does
// not report adds nothing.
int cpus_among(const std::vector<int>& processes, const std::string& root = "");

}  // namespace rankine
