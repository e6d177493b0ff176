// What a rkComm_t stands for, and how the C functions come by it.
//
// A handle is a number: which slot of a table that only grows, and which of the communicators that
// lay there one after the other. So whatever is given as a handle can be looked up without being
// followed; one that has been destroyed is told from the one that came after it. A slot's state is
// one word, in which whoever uses the handle counts: a compare-and-swap before a call and a
// subtraction after it keep two threads out of one rank's handle, and keep it alive in a call while
// another thread aborts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/c/created_operation.h"
#include "engine/api/c/rankine.h"
#include "engine/api/communicator.h"
#include "engine/run/process_owned.h"

namespace rankine {

// Call options that own what they name.
struct OwnedCallOptions {
  std::string algorithm;
  std::vector<int> dims, skips, levels;
  CallOptions options;  // its views are of the members above
};

struct RankHandle {
  std::shared_ptr<Communicator> communicator;  // outlives the member
  std::unique_ptr<Member> member;
  std::unique_ptr<const OwnedCallOptions> call_options{};  // none: the engine's choice
  std::map<const void*, Payload<std::byte>> memory{};      // of rkMemAlloc()
  std::map<int, std::shared_ptr<const CreatedOperation>> operations{};
  int next_operation = rkNumOps;
  bool finalized = false;
};

// Errors: out of memory, as an exception.
rkComm_t add_handle(std::unique_ptr<RankHandle> handle);

struct HandleSlot {
  // The generation in the upper half, then who is at it.
  static constexpr std::uint64_t kDoomed = std::uint64_t{1} << 31;  // goes with its last user
  static constexpr std::uint64_t kBusy = std::uint64_t{1} << 30;    // one thread makes calls
  static constexpr std::uint64_t kReader = 1;                       // others look

  std::atomic<std::uint64_t> state{0};
  std::atomic<HomeProcess> home{};
  std::unique_ptr<RankHandle> handle;
  std::uint32_t index = 0;
};

// A handle in use. Throws a Refusal: of what is no handle (rkInvalidArgument), what was made before
// a fork (rkForked), and what another thread makes a call on (rkInvalidUsage).
class Borrowed {
 public:
  enum class As : std::uint64_t { caller = HandleSlot::kBusy, reader = HandleSlot::kReader };
  Borrowed(rkComm_t comm, As as);
  ~Borrowed();
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  RankHandle* operator->() const { return slot_->handle.get(); }
  // The handle ends when its last user, at the latest this one, is done.
  void doom();

 private:
  HandleSlot* slot_;
  As as_;
};

// In a forked child: an inherited handle is forgotten, and what it stands for left alone. False: it
// is of this process, or none.
bool forget_inherited(rkComm_t comm) noexcept;

}  // namespace rankine
