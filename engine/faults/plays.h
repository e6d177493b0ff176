// How each fault of the table is played: one function per fault, one file per family. All have the
// contract of Fault::play.
#pragma once

#include "engine/faults/fault.h"

namespace rankine::faults {

// ranks_that_fail.cc
void play_stall(const FaultCase& test, Tally& tally);
void play_leave(const FaultCase& test, Tally& tally);
void play_throw(const FaultCase& test, Tally& tally);
void play_never_calls(const FaultCase& test, Tally& tally);
void play_thread_exit(const FaultCase& test, Tally& tally);
void play_thread_cancel(const FaultCase& test, Tally& tally);
void play_finalize(const FaultCase& test, Tally& tally);
void play_abandon(const FaultCase& test, Tally& tally);
// mismatches.cc
void play_count_differs(const FaultCase& test, Tally& tally);
void play_type_differs(const FaultCase& test, Tally& tally);
void play_operation_differs(const FaultCase& test, Tally& tally);
void play_root_differs(const FaultCase& test, Tally& tally);
void play_collective_differs(const FaultCase& test, Tally& tally);
// bad_arguments.cc
void play_bad_arguments(const FaultCase& test, Tally& tally);
// shared_buffers.cc
void play_shared_buffers(const FaultCase& test, Tally& tally);
// aborts.cc
void play_abort(const FaultCase& test, Tally& tally);
// allocations.cc
void play_allocation(const FaultCase& test, Tally& tally);
// threads_and_forks.cc
void play_thread_creation(const FaultCase& test, Tally& tally);
void play_fork(const FaultCase& test, Tally& tally);
void play_fork_after_calls(const FaultCase& test, Tally& tally);
void play_child_destroys(const FaultCase& test, Tally& tally);
void play_process_exit(const FaultCase& test, Tally& tally);
// crowded.cc
void play_signals(const FaultCase& test, Tally& tally);
void play_few_cores(const FaultCase& test, Tally& tally);
void play_quota(const FaultCase& test, Tally& tally);
// refusals.cc
void play_cpuset(const FaultCase& test, Tally& tally);
void play_refused_calls(const FaultCase& test, Tally& tally);
void play_bad_memory_wishes(const FaultCase& test, Tally& tally);
void play_topology(const FaultCase& test, Tally& tally);
// numbers.cc
void play_instruction_set(const FaultCase& test, Tally& tally);
void play_clocks(const FaultCase& test, Tally& tally);
void play_counters(const FaultCase& test, Tally& tally);
// records.cc
void play_unwritable_record(const FaultCase& test, Tally& tally);
// requests.cc
void play_started_calls(const FaultCase& test, Tally& tally);
void play_misused_requests(const FaultCase& test, Tally& tally);
// messages_and_groups.cc
void play_messages(const FaultCase& test, Tally& tally);
void play_groups(const FaultCase& test, Tally& tally);
void play_group_after_whole(const FaultCase& test, Tally& tally);
// user_operations.cc
void play_user_operations(const FaultCase& test, Tally& tally);
// epilogues.cc
void play_epilogues(const FaultCase& test, Tally& tally);
// waits.cc
void play_absurd_waits(const FaultCase& test, Tally& tally);
// processes_that_end.cc
void play_killed(const FaultCase& test, Tally& tally);
void play_gone(const FaultCase& test, Tally& tally);
void play_stopped(const FaultCase& test, Tally& tally);
void play_exec(const FaultCase& test, Tally& tally);
// cycles.cc
void play_cycles(const FaultCase& test, Tally& tally);
// no_room.cc
void play_no_room(const FaultCase& test, Tally& tally);
void play_limits(const FaultCase& test, Tally& tally);
// strangers.cc
void play_strangers(const FaultCase& test, Tally& tally);
// planning.cc
void play_long_planning(const FaultCase& test, Tally& tally);

}  // namespace rankine::faults
