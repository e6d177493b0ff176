// The C functions of memory, flight records and modelled time.
#include <algorithm>
#include <cstring>
#include <string>

#include "engine/api/c/last_error.h"
#include "engine/api/c/rank_handle.h"
#include "engine/api/c/rankine.h"

using namespace rankine;

extern "C" {

rkResult_t rkMemAlloc(rkComm_t comm, void** memory, size_t bytes) noexcept {
  return guarded("rkMemAlloc", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (memory == nullptr) return invalid_argument("memory is NULL");
    auto made = handle->member->allocate<std::byte>(bytes);
    if (!made.ok()) {
      return {made.status().code(),
              "bytes is " + std::to_string(bytes) + ": " + made.status().text()};
    }
    void* const base = made->span().data();
    handle->memory.emplace(base, std::move(*made));
    *memory = base;
    return {};
  });
}

rkResult_t rkMemFree(rkComm_t comm, void* memory) noexcept {
  return guarded("rkMemFree", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (memory == nullptr || handle->memory.erase(memory) == 1) return {};
    return invalid_argument("memory is not what rkMemAlloc gave to this rank, or was given back");
  });
}

rkResult_t rkCommFlightRecord(rkComm_t comm, char* text, size_t size, size_t* needed) noexcept {
  return guarded("rkCommFlightRecord", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::reader);
    if (text == nullptr && size > 0) {
      return invalid_argument("text is NULL; " + std::to_string(size) + " bytes are to be written");
    }
    const std::string record = handle->communicator->flight_record();
    if (size > 0) {
      const std::size_t n = std::min(record.size(), size - 1);
      std::memcpy(text, record.data(), n);
      text[n] = 0;
    }
    if (needed != nullptr) *needed = record.size() + 1;
    return {};
  });
}

rkResult_t rkCommModelTime(rkComm_t comm, double* seconds) noexcept {
  return guarded("rkCommModelTime", [&]() -> Status {
    const BorrowedRank handle(comm, BorrowedRank::As::caller);
    if (seconds == nullptr) return invalid_argument("seconds is NULL");
    *seconds = handle->member->model_time();
    return {};
  });
}

rkResult_t rkCommCompute(rkComm_t comm, double seconds) noexcept {
  return guarded("rkCommCompute", [&]() -> Status {
    return BorrowedRank(comm, BorrowedRank::As::caller)->member->compute(seconds);
  });
}

}  // extern "C"
