// What a rkComm_t stands for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/c/created_operation.h"
#include "engine/api/c/handle_table.h"
#include "engine/api/c/rankine.h"
#include "engine/api/communicator.h"

namespace rankine {

// Call options that own what they name.
struct OwnedCallOptions {
  std::string algorithm;
  std::vector<int> dims, skips, levels;
  CallOptions options;  // its views are of the members above
};

struct RankHandle {
  using Handle = rkComm_t;
  static constexpr std::uint32_t kKind = 0;
  static constexpr HandleWords kWords = {
      "comm is NULL", "comm is no communicator's handle, or one that has been destroyed",
      "comm is in a call of another thread; a rank's handle is used by one thread at a time",
      "this process was forked from the one whose rank this is; make a communicator of its own"};

  // These outlive the member, with which the calls end that are under way.
  std::shared_ptr<Communicator> communicator;
  std::map<const void*, Payload<std::byte>> memory{};  // of rkMemAlloc()
  std::map<int, std::shared_ptr<const CreatedOperation>> operations{};
  std::unique_ptr<Member> member;
  std::shared_ptr<const OwnedCallOptions> call_options{};  // none: the engine's choice
  int next_operation = rkNumOps;
  bool finalized = false;
  bool among_processes = false;  // functions of the ranks' lie elsewhere in each of them

  // How its calls are done.
  CallOptions options() const {
    return call_options != nullptr ? call_options->options : CallOptions();
  }
};

using BorrowedRank = Borrowed<RankHandle>;

// Of a member that keeps its communicator, or of these two. May throw std::bad_alloc.
rkComm_t add_rank(std::unique_ptr<Member> member, bool among_processes,
                  std::shared_ptr<Communicator> communicator = nullptr);

}  // namespace rankine
