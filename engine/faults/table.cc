#include "engine/faults/fault.h"

namespace rankine::faults {
namespace {

using enum Grain;

bool brings_data(Collective collective) { return collective != Collective::barrier; }
// In an all-reduce, every rank waits for every other.
bool is_all_reduce(Collective collective) { return collective == Collective::all_reduce; }
bool is_send_recv(Collective collective) { return collective == Collective::send_recv; }
bool is_pipelined(Collective collective) {
  return find_algorithm(collective, "double_tree") != nullptr;
}
bool takes_epilogues(Collective collective) {
  return is_all_reduce(collective) || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather;
}
bool reduces_data(Collective collective) { return reduces(collective) && brings_data(collective); }

// clang-format off
constexpr Fault kFaults[] = {
    {.number = 1, .name = "stall", .what = "a rank stalls inside a call",
     .how = "asleep or busy before a round, or held in a signal handler anywhere; mostly until "
            "all other ranks have the error, sometimes until they have left",
     .documented = {Code::timeout}, .grain = algorithm, .play = inject_stall},
    {.number = 2, .name = "leave", .what = "a rank leaves",
     .how = "its member is destroyed before the call, or its thread ends inside",
     .documented = {Code::rank_lost}, .grain = algorithm, .play = inject_leave},
    {.number = 3, .name = "throw", .what = "a rank's function throws",
     .how = "before the call, after one, or by an observer inside; if ranks are processes, the "
            "unwinding stack destroys its member",
     .documented = {Code::remote_error}, .more_of_processes = {Code::rank_lost}, .grain = algorithm,
     .play = inject_throw},
    {.number = 4, .name = "count_differs", .what = "a rank's count differs",
     .how = "one more, one less, five times as many",
     .documented = {Code::mismatch}, .grain = algorithm, .applies = brings_data,
     .play = inject_count_differs},
    {.number = 5, .name = "type_differs", .what = "a rank's type differs",
     .how = "another type",
     .documented = {Code::mismatch}, .grain = algorithm, .applies = brings_data,
     .play = inject_type_differs},
    {.number = 6, .name = "operation_differs", .what = "a rank's operation differs",
     .how = "another operation",
     .documented = {Code::mismatch}, .grain = algorithm, .applies = reduces_data,
     .play = inject_operation_differs},
    {.number = 7, .name = "root_differs", .what = "a rank's root differs",
     .how = "another root",
     .documented = {Code::mismatch}, .grain = algorithm, .applies = has_root,
     .play = inject_root_differs},
    {.number = 8, .name = "collective_differs", .what = "a rank calls another collective",
     .how = "instead of this one, or two in another order",
     .documented = {Code::mismatch}, .grain = algorithm, .play = inject_collective_differs},
    {.number = 9, .name = "never_calls", .what = "a rank never calls",
     .how = "after none, one or two good calls",
     .documented = {Code::timeout}, .grain = algorithm, .play = inject_never_calls},
    {.number = 10, .name = "bad_arguments", .what = "arguments that are not allowed",
     .how = "null, overlapping, overflowing, unknown and out of range; on all ranks, then on one",
     .documented = {Code::invalid_argument, Code::timeout}, .grain = collective,
     .play = inject_bad_arguments},
    {.number = 11, .name = "abort", .what = "abort() is called",
     .how = "by another thread, by two, by a signal handler (twice, or in the midst of malloc), "
            "in the last round",
     .documented = {Code::aborted}, .grain = algorithm, .play = inject_abort},
    {.number = 12, .name = "out_of_memory", .what = "an allocation fails",
     .how = "the k-th operator new, alone or with all later ones (every k up to 4 ranks); the "
            "k-th mmap; if ranks are processes, the k-th operator new of one rank",
     .documented = {Code::out_of_memory}, .more_of_processes = {Code::timeout}, .grain = collective,
     .play = inject_allocation},
    {.number = 13, .name = "no_threads", .what = "threads are refused",
     .how = "RLIMIT_NPROC: EAGAIN for the k-th thread of a team; if ranks are processes, for the "
            "progress_core of one rank",
     .documented = {Code::system}, .grain = ranks, .poisons = true, .play = inject_thread_creation},
    {.number = 14, .name = "fork", .what = "the process forks",
     .how = "between calls and in the midst of them; the child calls",
     .documented = {Code::forked}, .grain = collective, .play = inject_fork},
    {.number = 15, .name = "signals", .what = "signals at 1 kHz on every rank",
     .how = "timer_create, a handler without SA_RESTART",
     .grain = algorithm, .play = inject_signals},
    {.number = 16, .name = "few_cores", .what = "more ranks than cores",
     .how = "all ranks on one core, then on two",
     .grain = algorithm, .sets_options = true, .play = inject_few_cores},
    {.number = 17, .name = "quota", .what = "a CPU quota of 0.2",
     .how = "a new control group, v1 or v2",
     .grain = collective, .poisons = true, .play = inject_quota},
    {.number = 18, .name = "cpuset", .what = "fewer CPUs than asked for, and forbidden ones",
     .how = "an affinity mask of one CPU; EINVAL for pinning; if ranks are processes, a mask of "
            "one CPU for one rank, and then a progress_core that does not exist",
     .documented = {Code::invalid_argument}, .grain = collective, .play = inject_cpuset},
    {.number = 19, .name = "refused_calls", .what = "the kernel refuses to bind and to pin",
     .how = "a seccomp filter: EPERM for mbind, set_mempolicy, get_mempolicy, sched_setaffinity, "
            "sometimes membarrier and sched_getaffinity; if ranks are processes, also "
            "pidfd_open, and one exits",
     .more_of_processes = {Code::rank_lost}, .grain = collective, .poisons = true,
     .play = inject_refused_calls},
    {.number = 20, .name = "bad_memory_wishes",
     .what = "a node that does not exist, no huge pages, no locked memory",
     .how = "arenas on node 999, EINVAL for madvise, RLIMIT_MEMLOCK 0 (nothing locks memory)",
     .grain = collective, .play = inject_bad_memory_wishes},
    {.number = 21, .name = "topology", .what = "hwloc fails, lies or describes another machine",
     .how = "EINVAL for loading; HWLOC_SYNTHETIC, understood and not",
     .threads_only = "only a team reads the machine's topology, to pin its threads; processes "
                     "are pinned by their launcher",
     .grain = collective, .play = inject_topology},
    {.number = 22, .name = "instruction_set", .what = "an older processor",
     .how = "RANKINE_ISA; all types and operations whose results are exact",
     .grain = collective, .poisons = true, .applies = reduces_data, .play = inject_instruction_set},
    {.number = 23, .name = "clocks",
     .what = "clocks that jump, and networks that cost nothing or too much",
     .how = "alpha or beta 0, an hour per byte, 2^126 s, -1 s; the process is stopped under a "
            "wall clock; if ranks are processes, one is stopped and goes on, before or after the "
            "deadline",
     .documented = {Code::invalid_argument}, .more_of_processes = {Code::timeout},
     .grain = collective, .play = inject_clocks},
    {.number = 24, .name = "counters", .what = "counters run over their ends",
     .how = "they start at 2^32 - 3, 2^31 - 40 and so on",
     .grain = algorithm, .play = inject_counters},
    {.number = 25, .name = "unwritable_record",
     .what = "a flight record cannot be written to its place",
     .how = "a pipe, /dev/full, a link, folders, no permission, a file limit; names and texts "
            "that are no UTF-8",
     .documented = {Code::timeout, Code::aborted}, .more_of_processes = {Code::system},
     .grain = ranks, .applies = is_all_reduce, .play = inject_unwritable_record},
    {.number = 26, .name = "absurd_waits", .what = "wait policies that stay awake for ever",
     .how = "2^32 probes, yields and spins of 100 s and 292 years; ended by a deadline, and by "
            "abort() without one",
     .documented = {Code::timeout, Code::aborted}, .grain = collective, .play = inject_absurd_waits},
    {.number = 27, .name = "fork_after_calls", .what = "a rank's thread forks after its calls",
     .how = "the child's one thread is a rank of a new communicator, and lets the other ranks "
            "wait in a call",
     .grain = collective, .play = inject_fork_after_calls},
    {.number = 28, .name = "child_destroys",
     .what = "forked children destroy their inherited communicator",
     .how = "while the parent's ranks plan, or while one of them has stopped with the lock of "
            "planning; if ranks are processes, children of one",
     .documented = {Code::forked}, .grain = ranks, .play = inject_child_destroys},
    {.number = 29, .name = "thread_exit", .what = "a rank's function calls pthread_exit()",
     .how = "before the call or after one; if ranks are processes, also inside, by a system "
            "call, and the process goes on",
     .documented = {Code::rank_lost}, .grain = collective, .play = inject_thread_exit},
    {.number = 30, .name = "thread_cancel", .what = "a rank's thread is cancelled",
     .how = "by another thread while it sleeps, or while it is inside a call",
     .documented = {Code::rank_lost}, .grain = collective, .play = inject_thread_cancel},
    {.number = 31, .name = "process_exit", .what = "a rank's function calls exit()",
     .how = "the team is a static object; the other ranks wait in a call, or sleep; if ranks are "
            "processes, the member is a static object, or lives until the process ends",
     .more_of_processes = {Code::rank_lost}, .grain = collective, .play = inject_process_exit},
    {.number = 32, .name = "shared_buffers", .what = "ranks share buffers",
     .how = "one output for all, one buffer in place for all, another rank's input as output, "
            "two outputs that overlap; if ranks are processes, ordinary memory or another rank's "
            "payload passed as shared, or the option missing on one rank",
     .documented = {Code::mismatch}, .more_of_processes = {Code::invalid_argument},
     .grain = algorithm, .sets_options = true, .applies = all_hear_from_all, .play = inject_shared_buffers},
    {.number = 33, .name = "long_planning", .what = "planning past the deadline",
     .how = "the maximum of segments, a deadline of 1 to 5 ms; abort() meanwhile; plan_of() on "
            "one rank",
     .documented = {Code::timeout, Code::aborted}, .grain = collective, .applies = is_pipelined,
     .play = inject_long_planning},
    {.number = 34, .name = "started_calls",
     .what = "a rank fails while calls are started and not waited for",
     .how = "waited for, tested, waited for a while, prepared, in group(), with a barrier "
            "behind; a rank leaves, never calls, makes another call, throws, or destroys its "
            "member with its requests",

     .documented = {Code::rank_lost, Code::timeout, Code::mismatch, Code::remote_error, Code::aborted},
     .grain = algorithm, .play = inject_started_calls},
    {.number = 35, .name = "misused_requests",
     .what = "requests are started twice, waited for twice, destroyed",
     .how = "on all ranks: each misuse is refused and the call goes on; then a rank destroys a "
            "request in flight",
     .documented = {Code::aborted, Code::invalid_argument}, .grain = collective,
     .play = inject_misused_requests},
    {.number = 36, .name = "messages", .what = "one end of a message fails",
     .how = "it leaves, never comes, has another count or type; both send first, in group()",
     .documented = {Code::rank_lost, Code::timeout, Code::mismatch}, .grain = ranks,
     .applies = is_send_recv, .play = inject_messages},
    {.number = 37, .name = "groups", .what = "groups of ranks end, or are never made",
     .how = "a color below -1, a rank that does not come to split, abort() of the whole with "
            "requests on several groups in different orders, abort() of a group, a member "
            "destroyed early",
     .documented = {Code::timeout, Code::aborted, Code::rank_lost}, .grain = ranks,
     .applies = is_all_reduce, .play = inject_groups},
    {.number = 38, .name = "user_operations",
     .what = "operations of the user throw or differ; factors",
     .how = "on one rank, in the k-th call of the operation; another function, another size; "
            "factors with an operation that takes none, on one rank, while the other ranks wait "
            "for it",
     .documented = {Code::remote_error, Code::mismatch, Code::timeout}, .grain = algorithm,
     .applies = reduces_data, .play = inject_user_operations},
    {.number = 39, .name = "epilogues", .what = "an epilogue throws, or ranks' rows differ",
     .how = "on one rank, at the k-th row; rows of another size, or none; rows of no elements on "
            "one rank, while the other ranks wait for it",
     .documented = {Code::remote_error, Code::mismatch, Code::timeout}, .grain = algorithm,
     .applies = takes_epilogues, .play = inject_epilogues},
    {.number = 40, .name = "killed", .what = "a rank's process is killed",
     .how = "by one of the 25 signals that end a process, at any time; sometimes while the ranks "
            "meet",
     .documented = {Code::rank_lost, Code::timeout}, .grain = algorithm, .processes_only = true,
     .play = inject_killed},
    {.number = 41, .name = "gone", .what = "a rank's process exits",
     .how = "between two calls, or before a round of one; sometimes its forked child lives on",
     .documented = {Code::rank_lost}, .grain = algorithm, .processes_only = true,
     .play = inject_gone},
    {.number = 42, .name = "stopped", .what = "a rank's process stops for ever",
     .how = "SIGSTOP at any time, between two calls, or before a round of one",
     .documented = {Code::timeout, Code::rank_lost}, .grain = algorithm, .processes_only = true,
     .play = inject_stopped},
    {.number = 43, .name = "exec", .what = "a rank's process becomes another program",
     .how = "between two calls, or before a round of one",
     .documented = {Code::rank_lost}, .grain = algorithm, .processes_only = true,
     .play = inject_exec},
    {.number = 44, .name = "cycles",
     .what = "ranks' processes are killed one after the other, and replaced",
     .how = "25 times, by each signal in turn, at any time; the remaining ranks go on without "
            "it, then with its successor under the same name, and have no more descriptors, "
            "threads and mappings than after the first time",
     .documented = {Code::rank_lost, Code::timeout}, .grain = ranks, .processes_only = true,
     .play = inject_cycles},
    {.number = 45, .name = "no_room", .what = "/dev/shm is full",
     .how = "a file system of 64 MiB in a mount namespace, full at once or in a later call",
     .documented = {Code::out_of_memory}, .grain = collective, .poisons = true,
     .processes_only = true, .play = inject_no_room},
    {.number = 46, .name = "limits", .what = "processes have low resource limits",
     .how = "RLIMIT_AS, RLIMIT_FSIZE or RLIMIT_NOFILE before the meeting, for one rank or all; "
            "or descriptors are closed after the meeting, and another file gets their numbers",
     .documented = {Code::system, Code::out_of_memory, Code::timeout}, .grain = collective,
     .processes_only = true, .play = inject_limits},
    {.number = 47, .name = "strangers", .what = "a process that does not belong to the others",
     .how = "another number of ranks, costs, options, variables, tuning table, instruction set, "
            "host, boot id, pid namespace, version; it comes first, last or between; the name "
            "belongs to another user's file, a file of all users, a folder, a pipe, a link, or "
            "another file",
     .documented = {Code::mismatch, Code::system}, .grain = collective, .poisons = true,
     .processes_only = true, .play = inject_incompatible_peers},
    {.number = 48, .name = "finalize", .what = "a rank says that it makes no more calls",
     .how = "before the call or after one; that call has ended or is still in flight",
     .documented = {Code::rank_lost}, .grain = algorithm, .play = inject_finalize},
    {.number = 49, .name = "abandon",
     .what = "a rank's thread throws or ends between calls, and its member stays",
     .how = "the thread is the caller's, and its exception is kept, as std::async does",
     .documented = {Code::rank_lost}, .grain = algorithm, .play = inject_abandon},
    {.number = 50, .name = "group_after_whole",
     .what = "ranks call on groups of a communicator that has ended",
     .how = "abort() of the whole, with a text or as signal handlers do; on groups, and groups "
            "of groups, as soon as a rank has the error",
     .documented = {Code::aborted}, .grain = collective, .play = inject_group_after_whole},
    {.number = 51, .name = "grow", .what = "a communicator grows, and ranks fail",
     .how = "the new rank or a member is killed in the meeting; the new rank has other options or "
            "a member's number, or does not come; members ask for different ranks, or have 1 ms; "
            "the name belongs to another file; then a second attempt succeeds",
     .documented = {Code::rank_lost, Code::timeout, Code::mismatch, Code::invalid_argument,
                    Code::system},
     .grain = collective, .processes_only = true, .play = inject_grow},
};
// clang-format on

}  // namespace

std::span<const Fault> faults() { return kFaults; }

}  // namespace rankine::faults
