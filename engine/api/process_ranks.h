// Ranks that are processes, as their communicators have them: where what they share lies, and what
// a crossbar asks of them (rank_processes.h).
//
// Each process has a communicator of its own, with its own plans, tables and members; lines,
// boards, mailboxes, records and scratch are those of all.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/api/process_arena.h"
#include "engine/api/process_lobby.h"
#include "engine/base/status.h"
#include "engine/run/board.h"
#include "engine/run/crossbar.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_processes.h"
#include "numa/residency.h"

namespace rankine {

class ProcessRanks final : public RankProcesses {
 public:
  struct Shape {
    std::uint32_t board_stride = 0;
    std::uint32_t slots = 0, slot_stride = 0;  // of a mailbox
  };
  // Until all are there, and what this rank needs from the start is its own. Throws std::bad_alloc.
  static Result<std::shared_ptr<ProcessRanks>> meet(const ProcessLobby::Meeting& meeting,
                                                    const Shape& shape);
  // What this rank shares is as it is to be: until all have come so far.
  Status begin() { return lobby_.be_ready(); }
  // It cannot come so far: tells all.
  Status fail(const Status& reason) noexcept { return lobby_.fail(reason); }

  Rank self() const noexcept { return self_; }
  LinesMemory lines() const noexcept { return {at(layout_.lines)}; }
  std::byte* records() const noexcept { return at(layout_.of_rank(0) + layout_.records); }
  std::size_t record_stride() const noexcept { return layout_.rank_bytes; }
  // Zeroed, in all processes the same. What is this rank's is to be set up by this process.
  Board board(Rank of) const noexcept;
  Mailbox mailbox(Rank from, Rank to) const noexcept;
  // The algorithm's name, by its line in the catalogue, where all processes find it.
  const char* name_of_line(std::size_t line) const noexcept;

  // This rank's scratch, which has room for so many bytes then and stays where it is.
  Result<std::byte*> scratch(std::size_t bytes);
  // Its posts and records.
  MemoryRange range(Rank r) const noexcept { return {at(layout_.of_rank(r)), layout_.rank_bytes}; }

  bool is_here(Rank r) const noexcept override { return r == self_; }
  int process_of(Rank r) const noexcept override { return lobby_.process_of(r); }
  bool has_ended(Rank r) const noexcept override { return lobby_.has_ended(r); }
  Atomic<bool>& aborted() const noexcept override { return lobby_.page().ending.ended(); }
  SlowWaits* slow_waits() const noexcept override {
    return reinterpret_cast<SlowWaits*>(at(layout_.slow_waits));
  }
  void say_why(Code code, const char* text) noexcept override {
    lobby_.page().ending.say(code, text);
  }
  Status why() const noexcept override { return lobby_.page().ending.why(); }

 private:
  ProcessRanks(const ProcessLobby::Meeting& meeting, const Shape& shape);
  Status take_memory();
  void write_names() noexcept;
  std::byte* at(std::size_t offset) const noexcept { return lobby_.base() + offset; }

  const Rank self_;
  const int ranks_;
  const Shape shape_;
  const ProcessLayout layout_;
  ProcessLobby lobby_;
  std::size_t scratch_taken_ = 0;
};

}  // namespace rankine
