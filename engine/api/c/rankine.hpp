// Rankine for C++17: rankine.h with RAII owners, containers and exceptions, header-only.
//
//   rk::Communicator team(2);                        // or: rk::Member me(id, ranks, rank);
//   // on the thread that plays rank r:
//   std::vector<float> x(1000, 1.0F), sum(1000);
//   team[r].all_reduce(x, sum);
//
// A buffer is any object that std::data() and std::size() accept (vectors, arrays, spans), or
// rk::view(pointer, n). Inconsistent sizes are an Error before a byte moves. A failing function
// throws rk::Error, which has the result and the text; to get results instead, call the C functions
// with Member::get(). rankine.h has the contracts, also for threads and buffers.
#pragma once

#if __cplusplus < 201703L
#error "rankine.hpp needs C++17: compile with -std=c++17 or newer, or include rankine.h"
#else

#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202302L
#include <stdfloat>
#endif

#include "rankine.h"

namespace rk {

class Error : public std::runtime_error {
 public:
  Error(rkResult_t result, const char* text) : std::runtime_error(text), result_(result) {}
  rkResult_t result() const noexcept { return result_; }

 private:
  rkResult_t result_;
};

// Throws the error of a C function. Call it on the thread that called the function.
inline void check(rkResult_t result) {
  if (result != rkSuccess) throw Error(result, rkGetLastError(nullptr));
}

// The rkDataType_t of an element type. Specialise it for 16-bit floats of other libraries:
//   template <> struct rk::DataType<my::bfloat16> { static constexpr rkDataType_t value =
//   rkBfloat16; };
template <class T, class = void>
struct DataType {
  static_assert(std::is_integral_v<T> && sizeof(T) != 2,
                "no rkDataType_t for this element type: specialise rk::DataType");
  static constexpr rkDataType_t value =
      sizeof(T) == 1 ? (std::is_signed_v<T> ? rkInt8 : rkUint8)
                     : (sizeof(T) == 4 ? (std::is_signed_v<T> ? rkInt32 : rkUint32)
                                       : (std::is_signed_v<T> ? rkInt64 : rkUint64));
};
template <>
struct DataType<float> {
  static constexpr rkDataType_t value = rkFloat32;
};
template <>
struct DataType<double> {
  static constexpr rkDataType_t value = rkFloat64;
};
template <>
struct DataType<bool> {
  static constexpr rkDataType_t value = rkBool;
};
template <>
struct DataType<std::complex<float>> {
  static constexpr rkDataType_t value = rkComplex64;
};
template <>
struct DataType<std::complex<double>> {
  static constexpr rkDataType_t value = rkComplex128;
};

#ifdef __STDCPP_FLOAT16_T__
template <>
struct DataType<std::float16_t> {
  static constexpr rkDataType_t value = rkFloat16;
};
#endif
#ifdef __STDCPP_BFLOAT16_T__
template <>
struct DataType<std::bfloat16_t> {
  static constexpr rkDataType_t value = rkBfloat16;
};
#endif

template <class T>
class View {
 public:
  View(T* data, std::size_t size) : data_(data), size_(size) {}
  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  T* data_;
  std::size_t size_;
};
template <class T>
View<T> view(T* data, std::size_t size) {
  return View<T>(data, size);
}

// The element type of a buffer; undefined for other types, so overloads drop out.
template <class Buffer>
using ElementOf =
    std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<Buffer&>()))>>;

inline rkUniqueId unique_id() {
  rkUniqueId id;
  check(rkGetUniqueId(&id));
  return id;
}

inline int version() {
  int code = 0;
  check(rkGetVersion(&code));
  return code;
}

inline rkConfig_t default_config() { return RK_CONFIG_INITIALIZER; }
inline rkCallOptions_t default_call_options() { return RK_CALL_OPTIONS_INITIALIZER; }
inline rkRowSteps_t default_row_steps() { return RK_ROW_STEPS_INITIALIZER; }

// Steps on the rows of a rank's result.
class Epilogue {
 public:
  explicit Epilogue(const rkRowSteps_t& steps) { check(rkEpilogueCreate(&epilogue_, &steps)); }
  Epilogue(std::size_t row_elements, rkRowFunction_t function, void* context = nullptr) {
    check(rkEpilogueCreateFunction(&epilogue_, row_elements, function, context));
  }
  ~Epilogue() { rkEpilogueDestroy(epilogue_); }
  Epilogue(Epilogue&& other) noexcept : epilogue_(std::exchange(other.epilogue_, nullptr)) {}
  Epilogue& operator=(Epilogue&& other) noexcept {
    std::swap(epilogue_, other.epilogue_);
    return *this;
  }

  rkEpilogue_t get() const noexcept { return epilogue_; }
  // Applies the epilogue to rows without a collective.
  void apply(const void* rows, std::size_t count) {
    check(rkEpilogueApply(epilogue_, rows, count));
  }

 private:
  rkEpilogue_t epilogue_ = nullptr;
};

// One rank's handle and its calls.
class Member {
 public:
  Member() = default;
  explicit Member(rkComm_t comm) noexcept : comm_(comm) {}  // takes ownership
  Member(const rkUniqueId& id, int ranks, int rank, const rkConfig_t& config = default_config()) {
    check(rkCommInitRankConfig(&comm_, ranks, id, rank, &config));
  }
  ~Member() { rkCommDestroy(comm_); }
  Member(Member&& other) noexcept : comm_(other.release()) {}
  Member& operator=(Member&& other) noexcept {
    if (this != &other) {
      rkCommDestroy(comm_);
      comm_ = other.release();
    }
    return *this;
  }

  rkComm_t get() const noexcept { return comm_; }
  rkComm_t release() noexcept { return std::exchange(comm_, nullptr); }

  int rank() const {
    int rank = 0;
    check(rkCommUserRank(comm_, &rank));
    return rank;
  }
  int ranks() const {
    int ranks = 0;
    check(rkCommCount(comm_, &ranks));
    return ranks;
  }

  // Pins the calling thread, which plays this rank, according to rkConfig_t's placement.
  void pin_thread() { check(rkCommPinThread(comm_)); }
  // The CPU that this rank runs on; -1: its thread may run on several, or is not known yet.
  int cpu() const {
    int cpu = -1;
    check(rkCommCpu(comm_, &cpu));
    return cpu;
  }
  // The largest numbers of messages in flight at once so far, from this rank and to this rank, with
  // rkConfig_t's ports or on a modelled network.
  std::pair<int, int> ports_in_use() const {
    std::pair<int, int> most(0, 0);
    check(rkCommPortsInUse(comm_, &most.first, &most.second));
    return most;
  }

  // The same bits on every rank, except the sign and payload of NaN results.
  template <class In, class Out, class T = ElementOf<In>, class = ElementOf<Out>>
  void all_reduce(const In& in, Out&& out, rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    must_have("out", std::size(out), std::size(in));
    check(rkAllReduce(std::data(in), std::data(out), std::size(in), DataType<T>::value, op, comm_));
  }
  template <class Buffer, class = ElementOf<Buffer>>
  void all_reduce(Buffer&& in_place, rkRedOp_t op = rkSum) {
    all_reduce(in_place, in_place, op);
  }
  template <class In, class Out, class T = ElementOf<In>, class = ElementOf<Out>>
  void all_reduce(const In& in, Out&& out, const Epilogue& epilogue, rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    must_have("out", std::size(out), std::size(in));
    check(rkAllReduceThen(std::data(in), std::data(out), std::size(in), DataType<T>::value, op,
                          epilogue.get(), comm_));
  }
  template <class Buffer, class = ElementOf<Buffer>>
  void all_reduce(Buffer&& in_place, const Epilogue& epilogue, rkRedOp_t op = rkSum) {
    all_reduce(in_place, in_place, epilogue, op);
  }
  // Ranks other than the root do not use out; there it may be empty.
  template <class In, class Out, class T = ElementOf<In>>
  void reduce(const In& in, Out&& out, int root, rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    if (rank() == root) must_have("out", std::size(out), std::size(in));
    check(rkReduce(std::data(in), std::data(out), std::size(in), DataType<T>::value, op, root,
                   comm_));
  }
  template <class Buffer, class T = ElementOf<Buffer>>
  void broadcast(Buffer&& data, int root) {
    check(rkBcast(std::data(data), std::size(data), DataType<T>::value, root, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void all_gather(const In& in, Out&& out) {
    same_type<T, Out>();
    must_have("out", std::size(out), all(std::size(in)));
    check(rkAllGather(std::data(in), std::data(out), std::size(in), DataType<T>::value, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void all_gather(const In& in, Out&& out, const Epilogue& epilogue) {
    same_type<T, Out>();
    must_have("out", std::size(out), all(std::size(in)));
    check(rkAllGatherThen(std::data(in), std::data(out), std::size(in), DataType<T>::value,
                          epilogue.get(), comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void reduce_scatter(const In& in, Out&& out, const Epilogue& epilogue, rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    must_have("in", std::size(in), all(std::size(out)));
    check(rkReduceScatterThen(std::data(in), std::data(out), std::size(out), DataType<T>::value, op,
                              epilogue.get(), comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void reduce_scatter(const In& in, Out&& out, rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    must_have("in", std::size(in), all(std::size(out)));
    check(rkReduceScatter(std::data(in), std::data(out), std::size(out), DataType<T>::value, op,
                          comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void scan(const In& in, Out&& out, rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    must_have("out", std::size(out), std::size(in));
    check(rkScan(std::data(in), std::data(out), std::size(in), DataType<T>::value, op, comm_));
  }
  // Rank 0 leaves out unchanged.
  template <class In, class Out, class T = ElementOf<In>>
  void exscan(const In& in, Out&& out, rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    if (rank() != 0) must_have("out", std::size(out), std::size(in));
    check(rkExscan(std::data(in), std::data(out), std::size(in), DataType<T>::value, op, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void all_to_all(const In& in, Out&& out) {
    same_type<T, Out>();
    const std::size_t count = std::size(in) / all(1);
    must_have("in", std::size(in), all(count));
    must_have("out", std::size(out), std::size(in));
    check(rkAllToAll(std::data(in), std::data(out), count, DataType<T>::value, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void gather(const In& in, Out&& out, int root) {
    same_type<T, Out>();
    if (rank() == root) must_have("out", std::size(out), all(std::size(in)));
    check(rkGather(std::data(in), std::data(out), std::size(in), DataType<T>::value, root, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void scatter(const In& in, Out&& out, int root) {
    same_type<T, Out>();
    if (rank() == root) must_have("in", std::size(in), all(std::size(out)));
    check(
        rkScatter(std::data(in), std::data(out), std::size(out), DataType<T>::value, root, comm_));
  }

  // With a count per rank, or per pair for all_to_all(); the caller must pass buffers of the right
  // size.
  template <class In, class Out, class T = ElementOf<In>>
  void all_gather(const In& in, Out&& out, const std::vector<std::size_t>& counts) {
    same_type<T, Out>();
    must_have("counts", counts.size(), all(1));
    check(
        rkAllGatherCounts(std::data(in), std::data(out), counts.data(), DataType<T>::value, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void reduce_scatter(const In& in, Out&& out, const std::vector<std::size_t>& counts,
                      rkRedOp_t op = rkSum) {
    same_type<T, Out>();
    must_have("counts", counts.size(), all(1));
    check(rkReduceScatterCounts(std::data(in), std::data(out), counts.data(), DataType<T>::value,
                                op, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void all_to_all(const In& in, Out&& out, const std::vector<std::size_t>& counts) {
    same_type<T, Out>();
    must_have("counts", counts.size(), all(all(1)));
    check(
        rkAllToAllCounts(std::data(in), std::data(out), counts.data(), DataType<T>::value, comm_));
  }
  // Displacements in bytes, one per rank, or an empty list for contiguous blocks.
  template <class In, class Out, class T = ElementOf<In>>
  void all_to_all(const In& in, const std::vector<std::size_t>& in_displacements, Out&& out,
                  const std::vector<std::size_t>& out_displacements,
                  const std::vector<std::size_t>& counts) {
    same_type<T, Out>();
    must_have("counts", counts.size(), all(all(1)));
    for (const auto* list : {&in_displacements, &out_displacements}) {
      if (!list->empty()) must_have("displacements", list->size(), all(1));
    }
    check(rkAllToAllDisplaced(
        std::data(in), in_displacements.empty() ? nullptr : in_displacements.data(), std::data(out),
        out_displacements.empty() ? nullptr : out_displacements.data(), counts.data(),
        DataType<T>::value, comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void gather(const In& in, Out&& out, int root, const std::vector<std::size_t>& counts) {
    same_type<T, Out>();
    must_have("counts", counts.size(), all(1));
    check(rkGatherCounts(std::data(in), std::data(out), counts.data(), DataType<T>::value, root,
                         comm_));
  }
  template <class In, class Out, class T = ElementOf<In>>
  void scatter(const In& in, Out&& out, int root, const std::vector<std::size_t>& counts) {
    same_type<T, Out>();
    must_have("counts", counts.size(), all(1));
    check(rkScatterCounts(std::data(in), std::data(out), counts.data(), DataType<T>::value, root,
                          comm_));
  }
  void barrier() { check(rkBarrier(comm_)); }

  template <class Buffer, class T = ElementOf<Buffer>>
  void send(const Buffer& data, int peer) {
    check(rkSend(std::data(data), std::size(data), DataType<T>::value, peer, comm_));
  }
  template <class Buffer, class T = ElementOf<Buffer>>
  void recv(Buffer&& data, int peer) {
    check(rkRecv(std::data(data), std::size(data), DataType<T>::value, peer, comm_));
  }
  // True if `peer` has begun a message to this rank; see rkHasMessage().
  bool has_message(int peer) {
    int has = 0;
    check(rkHasMessage(peer, comm_, &has));
    return has != 0;
  }
  // Returns a member; its get() is RK_COMM_NULL for RK_SPLIT_NOCOLOR. Not in a group.
  Member split(int color, int key) {
    rkComm_t part = nullptr;
    check(rkCommSplit(comm_, color, key, &part));
    if (part == nullptr && color != RK_SPLIT_NOCOLOR) {  // the group's end would write to `part`
      rkBarrier(nullptr);  // refused, so that the group makes none of its calls
      throw Error(rkInvalidUsage,
                  "split: a group is open; pass a Member that lives until the group has ended");
    }
    return Member(part);
  }
  // As above, also in a group: `part` must be empty, and must stay at its address until the split
  // has been waited for.
  void split(int color, int key, Member& part) {
    if (part.comm_ != nullptr)
      throw Error(rkInvalidArgument, "split: part already has a rank; pass an empty Member");
    check(rkCommSplit(comm_, color, key, &part.comm_));
  }

  // A member of a new communicator of the surviving ranks; see rkCommShrink().
  Member shrink() {
    rkComm_t part = nullptr;
    check(rkCommShrink(comm_, &part));
    return Member(part);
  }
  // A member of a new communicator of these ranks and new processes; see rkCommGrow().
  Member grow(int ranks, const rkUniqueId& id, const rkConfig_t* config = nullptr) {
    rkComm_t larger = nullptr;
    check(rkCommGrow(comm_, ranks, id, config, &larger));
    return Member(larger);
  }
  // The bitwise AND of the survivors' values; see rkCommAgree().
  unsigned int agree(unsigned int value) {
    unsigned int all = 0;
    check(rkCommAgree(comm_, value, &all));
    return all;
  }
  // Ends all calls of all ranks, from any thread; see rkCommRevoke().
  void revoke() { check(rkCommRevoke(comm_)); }

  void set_call_options(const rkCallOptions_t& options) {
    check(rkCommSetCallOptions(comm_, &options));
  }
  // The place in the program that makes the next calls; see rkCommSetCallSite().
  void set_call_site(const std::string& site) { check(rkCommSetCallSite(comm_, site.c_str())); }
  // Makes calls progress that this thread has started. Does not wait.
  void progress() { check(rkCommProgress(comm_)); }
  // The order requested in rkConfig_t; "" for none.
  std::string order() const {
    const char* order = nullptr;
    check(rkCommGetOrder(comm_, &order));
    return order;
  }
  void finalize() { check(rkCommFinalize(comm_)); }
  // May be called from any thread, so the rank's thread may be using the handle, which stays: later
  // calls on it are refused. A second abort() has no effect.
  void abort() {
    const rkResult_t result = rkCommAbort(comm_);
    if (result != rkInvalidArgument) check(result);
  }
  // As abort(), for signal handlers: async-signal-safe, without a text.
  rkResult_t abort_from_signal() noexcept { return rkCommAbortFromSignal(comm_); }
  // Reports that this rank cannot continue: all calls of all ranks end with rkRemoteError and this
  // text. From any thread.
  void fail(const std::string& why) { check(rkCommFail(comm_, why.c_str())); }
  // rkSuccess, or the reason why the communicator has ended, with its text in rkGetLastError().
  rkResult_t async_error() const {
    rkResult_t result = rkSuccess;
    check(rkCommGetAsyncError(comm_, &result));
    return result;
  }

  // Allocates n zeroed elements near this rank, until deallocate() or the member's end.
  template <class T>
  View<T> allocate(std::size_t n) {
    static_assert(std::is_trivially_copyable_v<T>, "memory of ranks is zeroes and copied as bytes");
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) n = static_cast<std::size_t>(-1) / sizeof(T);
    void* memory = nullptr;
    check(rkMemAlloc(comm_, &memory, n * sizeof(T)));
    return View<T>(static_cast<T*>(memory), n);
  }
  void deallocate(void* memory) { check(rkMemFree(comm_, memory)); }

  std::string flight_record() const {
    std::string text;
    for (std::size_t needed = 4096; text.size() < needed;) {  // the text may grow meanwhile
      text.resize(needed);
      check(rkCommFlightRecord(comm_, &text[0], text.size(), &needed));
      if (needed <= text.size()) {
        text.resize(needed - 1);
        break;
      }
    }
    return text;
  }
  double model_time() const {
    double seconds = 0;
    check(rkCommModelTime(comm_, &seconds));
    return seconds;
  }
  void compute(double seconds) { check(rkCommCompute(comm_, seconds)); }

 private:
  template <class T, class Out>
  static void same_type() {
    static_assert(std::is_same_v<T, ElementOf<Out>>, "in and out have different elements");
  }
  std::size_t all(std::size_t count) const { return count * static_cast<std::size_t>(ranks()); }
  template <class, class>
  friend class Experts;
  static void must_have(const char* name, std::size_t has, std::size_t needed) {
    if (has == needed) return;
    const std::string text = std::string(name) + " has " + std::to_string(has) +
                             " elements; allowed are " + std::to_string(needed) +
                             ", by the other buffer and the ranks";
    throw Error(rkInvalidArgument, text.c_str());
  }

  rkComm_t comm_ = nullptr;
};

// Started calls, from Group::async() or Group::prepare(). The destructor waits for calls in flight
// and ignores their errors.
class Request {
 public:
  Request() = default;                                                   // empty
  explicit Request(rkRequest_t request) noexcept : request_(request) {}  // takes ownership
  ~Request() { free(); }
  Request(Request&& other) noexcept : request_(other.release()) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      free();
      request_ = other.release();
    }
    return *this;
  }

  rkRequest_t get() const noexcept { return request_; }
  rkRequest_t release() noexcept { return std::exchange(request_, nullptr); }

  void start() { check(rkRequestStart(request_)); }
  void wait() { check(rkRequestWait(request_)); }
  // Returns true if the calls are over; wait() then returns at once.
  bool test() {
    int over = 0;
    check(rkRequestTest(request_, &over));
    return over == 1;
  }
  // Returns true if the calls were over in time; then they have been waited for.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> most) {
    int over = 0;
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(most);
    check(rkRequestWaitFor(request_, static_cast<std::int64_t>(milliseconds.count()), &over));
    return over == 1;
  }
  // The levels of order that all its calls keep: "coherent, by_rank".
  std::string orders() const {
    const char* orders = nullptr;
    check(rkRequestGetOrders(request_, &orders));
    return orders;
  }

 private:
  void free() noexcept {
    if (rkRequestFree(request_) != rkInvalidUsage) return;
    rkRequestWait(request_);
    rkRequestFree(request_);
  }

  rkRequest_t request_ = nullptr;
};

// Waits for requests of any ranks that this thread plays. Throws the first error; also then all
// requests have been waited for.
inline void wait_all(const std::vector<Request>& requests) {
  std::vector<rkRequest_t> all;
  all.reserve(requests.size());
  for (const Request& request : requests) all.push_back(request.get());
  check(rkRequestWaitAll(all.size(), all.data()));
}

// Collects the calls of this thread until end(), which starts them together. The destructor without
// end(), after an exception for example, also makes the calls, and ignores their errors.
class Group {
 public:
  Group() { check(rkGroupStart()); }
  ~Group() {
    if (open_) rkGroupEnd();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void end() {
    open_ = false;
    check(rkGroupEnd());
  }
  // In place of end(), for an outermost group: the calls are started, or only prepared, and not
  // waited for.
  Request async() { return end_by(rkGroupEndAsync); }
  Request prepare() { return end_by(rkGroupEndPrepare); }

 private:
  Request end_by(rkResult_t (*function)(rkRequest_t*)) {
    rkRequest_t request = nullptr;
    const rkResult_t result = function(&request);
    open_ = result == rkInvalidUsage;  // inside another group
    check(result);
    return Request(request);
  }

  bool open_ = true;
};

// Many small tensors, reduced in place as few large vectors; must be destroyed before its member.
// The destructor waits for pending tensors and ignores their errors.
class Buckets {
 public:
  explicit Buckets(Member& member, std::size_t bucket_bytes = 0) {
    check(rkBucketsCreate(&buckets_, bucket_bytes, member.get()));
  }
  ~Buckets() {
    if (rkBucketsDestroy(buckets_) != rkInvalidUsage) return;
    rkBucketsWait(buckets_);
    rkBucketsDestroy(buckets_);
  }
  Buckets(Buckets&& other) noexcept : buckets_(std::exchange(other.buckets_, nullptr)) {}
  Buckets& operator=(Buckets&&) = delete;

  template <class Tensor, class T = ElementOf<Tensor>>
  void add(Tensor&& tensor, rkRedOp_t op = rkSum) {
    check(rkBucketsAdd(buckets_, std::data(tensor), std::size(tensor), DataType<T>::value, op));
  }
  // For a tensor without data on this rank: the rank contributes zeros.
  template <class Tensor, class T = ElementOf<Tensor>>
  void add_unused(Tensor&& tensor, rkRedOp_t op = rkSum) {
    check(
        rkBucketsAddUnused(buckets_, std::data(tensor), std::size(tensor), DataType<T>::value, op));
  }
  void flush() { check(rkBucketsFlush(buckets_)); }
  void wait() { check(rkBucketsWait(buckets_)); }
  // Waits for the first `tensors` tensors added since the last wait().
  void wait_for(std::size_t tensors) { check(rkBucketsWaitFor(buckets_, tensors)); }
  std::size_t calls() const {
    std::size_t calls = 0;
    check(rkBucketsGetCalls(buckets_, &calls));
    return calls;
  }
  rkBuckets_t get() const noexcept { return buckets_; }

 private:
  rkBuckets_t buckets_ = nullptr;
};

// Collectives that go on without late or lost ranks. A call returns the ranks that have
// contributed; none: this rank has no result. See rkActiveCall().
class ActiveRanks {
 public:
  explicit ActiveRanks(Member& member,
                       std::chrono::microseconds wait = std::chrono::milliseconds(2),
                       std::size_t bytes = 65536) {
    check(rkActiveCreate(&active_, wait.count(), bytes, member.get()));
    int rank = 0, ranks = 0;
    const rkResult_t result = rkActiveGetRank(active_, &rank, &ranks);
    n_ = static_cast<std::size_t>(ranks);
    check(result);
  }
  ~ActiveRanks() { rkActiveDestroy(active_); }
  ActiveRanks(ActiveRanks&& other) noexcept
      : active_(std::exchange(other.active_, nullptr)), n_(other.n_) {}
  ActiveRanks& operator=(ActiveRanks&&) = delete;

  void wait_for(const std::vector<int>& ranks) {
    check(rkActiveWaitFor(active_, ranks.data(), ranks.size()));
  }
  template <class In, class Out>
  std::vector<int> all_reduce(const In& in, Out&& out, rkRedOp_t op = rkSum) {
    return call(rkCollAllReduce, in, out, 1, 1, op);
  }
  template <class Data>
  std::vector<int> broadcast(Data&& data, int root) {
    return call(rkCollBroadcast, data, data, 1, 1, rkSum, root);
  }
  template <class In, class Out>
  std::vector<int> all_gather(const In& in, Out&& out) {
    return call(rkCollAllGather, in, out, 1, n_);
  }
  template <class In, class Out>
  std::vector<int> reduce_scatter(const In& in, Out&& out, rkRedOp_t op = rkSum) {
    return call(rkCollReduceScatter, in, out, n_, 1, op);
  }
  template <class In, class Out>
  std::vector<int> all_to_all(const In& in, Out&& out) {
    return call(rkCollAllToAll, in, out, n_, n_);
  }
  rkActive_t get() const noexcept { return active_; }

 private:
  // The buffers have that many blocks.
  template <class In, class Out, class T = ElementOf<Out>>
  std::vector<int> call(rkCollective_t collective, const In& in, Out&& out, std::size_t in_blocks,
                        std::size_t out_blocks, rkRedOp_t op = rkSum, int root = 0) {
    static_assert(std::is_same_v<T, ElementOf<const In>>, "in and out have different elements");
    const std::size_t count = std::size(out) / out_blocks;
    if (count * out_blocks != std::size(out) || count * in_blocks != std::size(in)) {
      const std::string text = "in has " + std::to_string(std::size(in)) +
                               " elements and out has " + std::to_string(std::size(out)) +
                               "; allowed are " + std::to_string(in_blocks) + " and " +
                               std::to_string(out_blocks) + " equal blocks";
      throw Error(rkInvalidArgument, text.c_str());
    }
    const int* ranks = nullptr;
    std::size_t found = 0;
    check(rkActiveCall(active_, collective, std::data(in), std::data(out), count,
                       DataType<T>::value, op, root, &ranks, &found));
    return std::vector<int>(ranks, ranks + found);
  }

  rkActive_t active_ = nullptr;
  std::size_t n_ = 1;
};

// Tokens of T that go to the experts of a layer and return as results; must be destroyed before its
// member.
template <class T, class Result = T>
class Experts {
 public:
  Experts(Member& member, int experts, int choices, std::size_t row_elements,
          std::size_t capacity = 0)
      : choices_(static_cast<std::size_t>(choices)), row_elements_(row_elements) {
    check(rkExpertsCreate(&experts_, experts, choices, row_elements, DataType<T>::value,
                          DataType<Result>::value, capacity, member.get()));
  }
  ~Experts() { rkExpertsDestroy(experts_); }
  Experts(Experts&& other) noexcept
      : choices_(other.choices_),
        row_elements_(other.row_elements_),
        experts_(std::exchange(other.experts_, nullptr)) {}
  Experts& operator=(Experts&&) = delete;

  // Returns the number of rows of each of this rank's experts, valid until the next dispatch().
  template <class Tokens, class Indices, class Rows>
  View<const std::size_t> dispatch(const Tokens& tokens, const Indices& indices, Rows&& rows) {
    Member::same_type<T, const Tokens>();
    Member::same_type<T, Rows>();
    Member::same_type<std::int32_t, const Indices>();
    const std::size_t count = std::size(tokens) / row_elements_;
    Member::must_have("tokens", std::size(tokens), count * row_elements_);
    Member::must_have("indices", std::size(indices), count * choices_);
    tokens_ = 0;
    check(rkExpertsDispatch(experts_, std::data(tokens), std::data(indices), count, std::data(rows),
                            std::size(rows) / row_elements_));
    tokens_ = count;
    const View<const std::size_t> counts = get(rkExpertsGetCounts);
    arrived_ = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) arrived_ += counts.data()[i];
    return counts;
  }
  // weights: empty, or as many as indices.
  template <class Results, class Weights, class Out>
  void combine(const Results& results, const Weights& weights, Out&& out) {
    Member::same_type<Result, const Results>();
    Member::same_type<Result, Out>();
    Member::same_type<float, const Weights>();
    Member::must_have("results", std::size(results), arrived_ * row_elements_);
    Member::must_have("out", std::size(out), tokens_ * row_elements_);
    const bool is_weighted = std::size(weights) > 0;
    if (is_weighted) Member::must_have("weights", std::size(weights), tokens_ * choices_);
    check(rkExpertsCombine(experts_, std::data(results), is_weighted ? std::data(weights) : nullptr,
                           std::data(out)));
  }
  View<const std::size_t> dropped() const { return get(rkExpertsGetDropped); }
  rkExperts_t get() const noexcept { return experts_; }

 private:
  View<const std::size_t> get(rkResult_t (*list)(rkExperts_t, const std::size_t**,
                                                 std::size_t*)) const {
    const std::size_t* numbers = nullptr;
    std::size_t count = 0;
    check(list(experts_, &numbers, &count));
    return {numbers, count};
  }

  std::size_t choices_, row_elements_, tokens_ = 0, arrived_ = 0;  // of the latest dispatch()
  rkExperts_t experts_ = nullptr;
};

// All ranks of a communicator, one Member each, played by threads of the caller.
class Communicator {
 public:
  explicit Communicator(int ranks, const rkConfig_t& config = default_config()) {
    const std::size_t n = ranks > 0 ? static_cast<std::size_t>(ranks) : 1;
    // Not written before the library accepts this number of ranks.
    const std::unique_ptr<rkComm_t[]> comms(new rkComm_t[n]);
    members_.reserve(n);
    check(rkCommInitAllConfig(comms.get(), ranks, &config));
    for (std::size_t r = 0; r < n; ++r) members_.emplace_back(comms[r]);
  }

  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  // Throws std::out_of_range for an invalid rank.
  Member& operator[](int rank) { return members_.at(static_cast<std::size_t>(rank)); }

  // Calls f(member) for every rank, each on a new thread, and returns when all calls have returned.
  // If f throws, the calls of all other ranks end with rkRemoteError, with the rank and the
  // exception in the text; run() throws the first exception.
  template <class F>
  void run(const F& f) {
    std::mutex mutex;
    std::exception_ptr first;
    const auto fail = [&](Member& member, const char* why) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!first) first = std::current_exception();
      }
      rkCommFail(member.get(), why);
    };
    const auto play = [&](Member& member) noexcept {
      try {
        f(member);
      } catch (const std::exception& error) {
        fail(member, error.what());
      } catch (...) {
        fail(member, "it threw an exception of an unknown type");
      }
    };
    std::vector<std::thread> threads;
    try {
      threads.reserve(members_.size());
      for (Member& member : members_) {
        threads.emplace_back([&play, &member] { play(member); });
      }
    } catch (const std::exception& error) {  // the system refused a thread
      fail(members_.front(), error.what());
    }
    for (std::thread& thread : threads) thread.join();
    if (first) std::rethrow_exception(first);
  }

 private:
  std::vector<Member> members_;
};

}  // namespace rk

#endif  // C++17
