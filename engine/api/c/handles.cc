#include "engine/api/c/handles.h"

#include <pthread.h>

#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/api/c/last_error.h"
#include "engine/base/numbers.h"

namespace rankine {

std::atomic<int> handlers_looking{0};

std::mutex& registry_lock() {
  static std::mutex lock;
  static const int registered =
      pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); },
                     [] {
                       handlers_looking.store(0, std::memory_order_relaxed);
                       lock.unlock();
                     });
  static_cast<void>(registered);
  return lock;
}

namespace {

// C functions cannot throw, so they return an error number.
void apply(const void* in, void* inout, std::size_t count, void* context) {
  const auto& operation = *static_cast<const CreatedOperation*>(context);
  const int result = operation.function(in, inout, count, operation.context);
  if (result != 0) {
    throw std::runtime_error("the operation returned " + std::to_string(result) + "; allowed is 0");
  }
}

rkRedOp_t keep(RankHandle& handle, std::shared_ptr<const CreatedOperation> operation) {
  if (handle.next_operation == std::numeric_limits<int>::max()) {
    throw Refusal{
        rkInvalidUsage,
        "this rank has created 2^31 operations, the most allowed; create a new communicator"};
  }
  handle.operations.emplace(handle.next_operation, std::move(operation));
  return static_cast<rkRedOp_t>(handle.next_operation++);
}

std::size_t factor_bytes(DataType type) {
  const bool small_float = type == DataType::f16 || type == DataType::bf16 ||
                           type == DataType::f8e4m3 || type == DataType::f8e5m2;
  return small_float ? sizeof(float) : size_of(type);
}

}  // namespace

void CreatedOperation::describe(Call& call, int type_number) const {
  if (function == nullptr) {
    call.type = row(kTypes, "type", type_number);
    if (call.type != type) {
      throw Refusal{rkInvalidArgument, "type is " + std::string(name_of(call.type)) +
                                           "; allowed is " + std::string(name_of(type)) +
                                           ", the type of op's factor"};
    }
    call.op = ReduceOp::sum;
    call.factor = factor.data();
    return;
  }
  if (type_number != rkOpaque) {
    throw Refusal{rkInvalidArgument,
                  "type is " + std::to_string(type_number) +
                      "; allowed with an operation of rkRedOpCreate is rkOpaque"};
  }
  call.type = DataType::raw;
  call.op = ReduceOp::user;
  call.user_op = &user_op;
  call.options.tag ^= tag;
}

}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkRedOpCreatePreMulSum(rkRedOp_t* op, const void* factor, rkDataType_t type,
                                  rkComm_t comm) noexcept {
  return guarded("rkRedOpCreatePreMulSum", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (op == nullptr) return is_null("op");
    if (factor == nullptr) return is_null("factor");
    auto made = std::make_shared<CreatedOperation>();
    made->type = row(kTypes, "type", type);
    if (made->type == DataType::b8)
      return invalid_argument("type is b8; allowed are all types but b8");
    std::memcpy(made->factor.data(), factor, factor_bytes(made->type));
    *op = keep(*handle, std::move(made));
    return {};
  });
}

rkResult_t rkRedOpCreate(rkRedOp_t* op, rkRedFunction_t function, size_t elementBytes,
                         int commutative, void* context, rkComm_t comm) noexcept {
  return guarded("rkRedOpCreate", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (op == nullptr) return is_null("op");
    if (function == nullptr) return is_null("function");
    if (elementBytes < 1 || elementBytes > kMostElementBytes) {
      return invalid_argument("elementBytes is " + std::to_string(elementBytes) +
                              "; allowed are 1 to " + std::to_string(kMostElementBytes));
    }
    if (commutative != 0 && commutative != 1) {
      return invalid_argument("commutative is " + std::to_string(commutative) +
                              "; allowed are 0 and 1");
    }
    auto made = std::make_shared<CreatedOperation>();
    made->function = function;
    made->context = context;
    made->user_op = {apply, made.get(), elementBytes, commutative == 1};
    if (!handle->among_processes) {
      made->tag = splitmix(reinterpret_cast<std::uintptr_t>(function));
    }
    *op = keep(*handle, std::move(made));
    return {};
  });
}

rkResult_t rkRedOpDestroy(rkRedOp_t op, rkComm_t comm) noexcept {
  return guarded("rkRedOpDestroy", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (handle->operations.erase(static_cast<int>(op)) == 1) return {};
    return invalid_argument("op is " + std::to_string(static_cast<int>(op)) +
                            "; allowed are operations that this rank has created");
  });
}

}  // extern "C"

namespace rankine {

rkComm_t add_rank(std::unique_ptr<Member> member, bool among_processes,
                  std::shared_ptr<Communicator> communicator) {
  auto handle = std::make_unique<RankHandle>();
  if (communicator == nullptr) {
    communicator = {std::shared_ptr<void>(), &member->communicator()};
  }
  handle->communicator = std::move(communicator);
  handle->member = std::move(member);
  handle->among_processes = among_processes;
  return HandleTable<RankHandle>::add(std::move(handle));
}

}  // namespace rankine
