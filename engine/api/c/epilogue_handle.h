// What a rkEpilogue_t stands for.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/api/c/handle_table.h"
#include "engine/api/c/rankine.h"
#include "engine/api/epilogues.h"

namespace rankine {

// Steps or a function of the caller's. The engine's `context` points into it, so it stays where it
// is, and calls that have it keep it.
class CreatedEpilogue : public Epilogue {
 public:
  explicit CreatedEpilogue(RowEpilogue steps);
  CreatedEpilogue(rkRowFunction_t function, std::size_t elements, void* function_context);
  CreatedEpilogue(const CreatedEpilogue&) = delete;
  CreatedEpilogue& operator=(const CreatedEpilogue&) = delete;

 private:
  std::unique_ptr<RowEpilogue> steps_;
  rkRowFunction_t function_ = nullptr;
  void* function_context_ = nullptr;
};

struct EpilogueHandle {
  using Handle = rkEpilogue_t;
  static constexpr std::uint32_t kKind = std::uint32_t{1} << 30;
  static constexpr HandleWords kWords = {
      "epilogue is NULL", "epilogue is none, or one that has been destroyed",
      "epilogue is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the one whose epilogue this is"};

  std::shared_ptr<const CreatedEpilogue> epilogue;
};

using BorrowedEpilogue = Borrowed<EpilogueHandle>;

}  // namespace rankine
