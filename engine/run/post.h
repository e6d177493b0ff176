// What a rank writes before data that others wait for, in a slot of a mailbox or a half of a board:
// everything that says whose call the data belong to.
//
//   flag | note | mark | fingerprint      then the data
#pragma once

#include <cstdint>

#include "engine/run/plan.h"
#include "engine/run/wait.h"

namespace rankine {

struct PostHeader {
  Atomic<std::uint32_t> flag{0};  // one past the number of what stands here
  // Of a message: its bytes, less than 64 KiB. On a board: the upper half of the poster's
  // RankState::past; were all its calls before ours as well?
  std::uint16_t note = 0;
  Mark mark;  // of the writer's buffers
  std::uint64_t fingerprint = 0;
};
static_assert(sizeof(PostHeader) == kPostHeader);

// The writer lets the data be seen, as those of its call.
[[gnu::always_inline]] inline void post(Waiter& waiter, PostHeader& header, std::uint32_t flag,
                                        std::uint16_t note) noexcept {
  will_write(&header.note, sizeof(PostHeader) - sizeof(header.flag));
  header.note = note;
  if (kComparesCalls) {
    header.mark = waiter.marks.own;
    header.fingerprint = waiter.fingerprint;
  }
  publish(*waiter.crossbar, waiter.rank, header.flag, flag);  // pairs with wait_for_post()
}

// Until the writer has posted so much, in a call that is ours too. False: aborted.
[[gnu::always_inline]] inline bool wait_for_post(Waiter& waiter, const PostHeader& header,
                                                 std::uint32_t flag, Rank writer,
                                                 int round) noexcept {
  return wait_for_call(waiter, header.flag, flag, writer, round, [&header] {
    will_read(&header.note, sizeof(PostHeader) - sizeof(header.flag));
    return header.fingerprint;
  });
}

}  // namespace rankine
