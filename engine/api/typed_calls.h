// The collective calls and messages on elements of a type, written once for all who make calls: a
// Member, which waits (Answer: Status), and Async, which starts or prepares them (Result<Request>).
//
// Beside spans they take vectors, arrays and whatever else spellings.h knows, and reduce by what
// reduction.h offers. Sizes of buffers must agree with each other and the number of ranks; else
// invalid_argument says which does not.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/api/call.h"
#include "engine/api/reduction.h"
#include "engine/api/spellings.h"
#include "engine/base/status.h"

namespace rankine {

// What the sizes of two arguments have to do with each other.
Status size_mismatch(std::string_view what, std::size_t got, std::size_t allowed, int ranks);
// Whether buffers of so many elements are what a call with counts needs of that rank.
Status check_sizes(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out);

// Whether buffers of so many bytes hold all blocks of a call with displacements. Errors: a buffer
// that ends before one of them does, and what is wrong with the call but for null.
Status check_reach(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out);

// A message to another rank, or from one.
struct Message {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::f32;
  Rank peer = 0;
  bool sends = true;
};

// A Caller has rank(), ranks(), submit(const Call&) and submit(const Message&, const CallOptions&).
template <class Caller, class Answer>
class TypedCalls : public Spellings<TypedCalls<Caller, Answer>> {
 public:
  using Base = Spellings<TypedCalls<Caller, Answer>>;
  using Base::all_reduce, Base::all_gather, Base::reduce_scatter, Base::broadcast, Base::reduce,
      Base::all_to_all, Base::gather, Base::scatter, Base::send_recv, Base::send, Base::recv,
      Base::scan, Base::exscan;
  // Not deduced from, so that whatever a Reduction is made of may be given.
  template <class T>
  using By = std::type_identity_t<Reduction<T>>;

  // out[i] = in of all ranks, reduced. Sizes must agree.
  template <class T>
  Answer all_reduce(std::span<const T> in, std::span<T> out, const By<T>& op = ReduceOp::sum,
                    const CallOptions& options = {}) {
    if (in.size() != out.size()) return mismatch("out", out.size(), in.size());
    return caller().submit(reducing(Collective::all_reduce, in, out, in.size(), op, options));
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer
      all_reduce(std::span<T> in_place, const By<T>& op = ReduceOp::sum,
                 const CallOptions& options = {}) {
    return all_reduce(std::span<const T>(in_place), in_place, op, options);
  }
  // Sums, with options: me.all_reduce(x, {.epilogue = &norm}).
  template <class T>
  Answer all_reduce(std::span<const T> in, std::span<T> out, const CallOptions& options) {
    return all_reduce(in, out, ReduceOp::sum, options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer
      all_reduce(std::span<T> in_place, const CallOptions& options) {
    return all_reduce(in_place, ReduceOp::sum, options);
  }
  // out = the ranks' inputs one after the other: ranks() * in.size() elements.
  template <class T>
  Answer all_gather(std::span<const T> in, std::span<T> out, const CallOptions& options = {}) {
    const std::size_t all = in.size() * n();
    if (out.size() != all) return mismatch("out", out.size(), all);
    return caller().submit(Call{.collective = Collective::all_gather,
                                .in = in.data(),
                                .out = out.data(),
                                .count = in.size(),
                                .type = data_type_of<T>,
                                .options = options});
  }
  // out = this rank's block of the reduced inputs: in has ranks() * out.size() elements.
  template <class T>
  Answer reduce_scatter(std::span<const T> in, std::span<T> out, const By<T>& op = ReduceOp::sum,
                        const CallOptions& options = {}) {
    const std::size_t all = out.size() * n();
    if (in.size() != all) return mismatch("in", in.size(), all);
    return caller().submit(reducing(Collective::reduce_scatter, in, out, out.size(), op, options));
  }
  template <class T>
  Answer reduce_scatter(std::span<const T> in, std::span<T> out, const CallOptions& options) {
    return reduce_scatter(in, out, ReduceOp::sum, options);
  }
  // Everyone's data = the root's.
  template <class T>
  requires(!std::is_const_v<T>) Answer
      broadcast(std::span<T> data, Rank root, const CallOptions& options = {}) {
    return caller().submit(Call{.collective = Collective::broadcast,
                                .in = data.data(),
                                .out = data.data(),
                                .count = data.size(),
                                .type = data_type_of<T>,
                                .root = root,
                                .options = options});
  }
  // out at the root = in of all ranks, reduced; elsewhere out is not used and may be empty.
  template <class T>
  Answer reduce(std::span<const T> in, std::span<T> out, Rank root, const By<T>& op = ReduceOp::sum,
                const CallOptions& options = {}) {
    if (caller().rank() == root && out.size() != in.size()) {
      return mismatch("out", out.size(), in.size());
    }
    Call call = reducing(Collective::reduce, in, out, in.size(), op, options);
    call.root = root;
    return caller().submit(call);
  }
  // out at rank r = in of ranks 0 to r, reduced in the order of the ranks. Sizes must agree. in and
  // out are one or lie apart, on each rank as it likes.
  template <class T>
  Answer scan(std::span<const T> in, std::span<T> out, const By<T>& op = ReduceOp::sum,
              const CallOptions& options = {}) {
    return prefix(Collective::scan, in, out, op, options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer scan(std::span<T> in_place, const By<T>& op = ReduceOp::sum,
                                            const CallOptions& options = {}) {
    return scan(std::span<const T>(in_place), in_place, op, options);
  }
  // out at rank r = in of ranks 0 to r - 1, reduced in the order of the ranks. Rank 0 hears nobody:
  // its out is left as it is, as with MPI, and may be empty.
  template <class T>
  Answer exscan(std::span<const T> in, std::span<T> out, const By<T>& op = ReduceOp::sum,
                const CallOptions& options = {}) {
    return prefix(Collective::exscan, in, out, op, options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer
      exscan(std::span<T> in_place, const By<T>& op = ReduceOp::sum,
             const CallOptions& options = {}) {
    return exscan(std::span<const T>(in_place), in_place, op, options);
  }
  // Block d of in goes to rank d, which puts it at the place of the sender: in and out have ranks()
  // blocks of the same size.
  template <class T>
  Answer all_to_all(std::span<const T> in, std::span<T> out, const CallOptions& options = {}) {
    if (in.size() % n() != 0) return mismatch("in", in.size(), in.size() / n() * n());
    if (out.size() != in.size()) return mismatch("out", out.size(), in.size());
    return caller().submit(Call{.collective = Collective::all_to_all,
                                .in = in.data(),
                                .out = out.data(),
                                .count = in.size() / n(),
                                .type = data_type_of<T>,
                                .options = options});
  }
  // With a count per pair, [from * ranks() + to], the same on all ranks, and blocks that lie where
  // this rank says (call.h): me.all_to_all(in, out, counts, {.in = to_each, .out = from_each}).
  template <class T>
  Answer all_to_all(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                    const Displacements& displacements, const CallOptions& options = {}) {
    const Call request{.collective = Collective::all_to_all,
                       .in = in.data(),
                       .out = out.data(),
                       .type = data_type_of<T>,
                       .counts = counts,
                       .displacements = &displacements,
                       .options = options};
    Status status =
        check_reach(request, caller().rank(), caller().ranks(), in.size_bytes(), out.size_bytes());
    if (!status.ok()) return status;
    return caller().submit(request);
  }
  // out at the root = the ranks' inputs one after the other; elsewhere out may be empty.
  template <class T>
  Answer gather(std::span<const T> in, std::span<T> out, Rank root,
                const CallOptions& options = {}) {
    const std::size_t all = in.size() * n();
    if (caller().rank() == root && out.size() != all) return mismatch("out", out.size(), all);
    return caller().submit(Call{.collective = Collective::gather,
                                .in = in.data(),
                                .out = out.data(),
                                .count = in.size(),
                                .type = data_type_of<T>,
                                .root = root,
                                .options = options});
  }
  // out = this rank's block of the root's in; elsewhere in may be empty.
  template <class T>
  Answer scatter(std::span<const T> in, std::span<T> out, Rank root,
                 const CallOptions& options = {}) {
    const std::size_t all = out.size() * n();
    if (caller().rank() == root && in.size() != all) return mismatch("in", in.size(), all);
    return caller().submit(Call{.collective = Collective::scatter,
                                .in = in.data(),
                                .out = out.data(),
                                .count = out.size(),
                                .type = data_type_of<T>,
                                .root = root,
                                .options = options});
  }
  // The receiver's data = the sender's. All ranks call it; the others' data are not touched.
  template <class T>
  requires(!std::is_const_v<T>) Answer
      send_recv(std::span<T> data, Rank from, Rank to, const CallOptions& options = {}) {
    return caller().submit(Call{.collective = Collective::send_recv,
                                .in = data.data(),
                                .out = data.data(),
                                .count = data.size(),
                                .type = data_type_of<T>,
                                .root = from,
                                .peer = to,
                                .options = options});
  }

  // With one count per rank, zeros included (all_gather, reduce_scatter, gather, scatter), or one
  // per pair, [from * ranks() + to] (all_to_all). Counts must be the same on all ranks; buffers
  // hold what the rank gives and gets, without gaps.
  template <class T>
  Answer with_counts(Collective collective, std::span<const T> in, std::span<T> out,
                     std::span<const std::size_t> counts, Rank root = 0,
                     const By<T>& op = ReduceOp::sum, const CallOptions& options = {}) {
    Call request = reducing(collective, in, out, 0, op, options);
    request.root = root;
    request.counts = counts;
    Status status = check_sizes(request, caller().rank(), caller().ranks(), in.size(), out.size());
    if (!status.ok()) return status;
    return caller().submit(request);
  }

  // A message to one rank, from one rank: the call of these two alone (Member).
  template <class T>
  Answer send(std::span<const T> data, Rank to, const CallOptions& options = {}) {
    return caller().submit(Message{const_cast<T*>(data.data()), data.size(), data_type_of<T>, to},
                           options);
  }
  template <class T>
  requires(!std::is_const_v<T>) Answer
      recv(std::span<T> data, Rank from, const CallOptions& options = {}) {
    return caller().submit(Message{data.data(), data.size(), data_type_of<T>, from, false},
                           options);
  }

 private:
  template <class T>
  Answer prefix(Collective collective, std::span<const T> in, std::span<T> out, const By<T>& op,
                const CallOptions& options) {
    const bool no_result = collective == Collective::exscan && caller().rank() == 0 && out.empty();
    if (!no_result && in.size() != out.size()) return mismatch("out", out.size(), in.size());
    return caller().submit(reducing(collective, in, out, in.size(), op, options));
  }
  template <class T>
  static Call reducing(Collective collective, std::span<const T> in, std::span<T> out,
                       std::size_t count, const By<T>& op, const CallOptions& options) {
    return {.collective = collective,
            .in = in.data(),
            .out = out.data(),
            .count = count,
            .type = op.type(),
            .op = op.op(),
            .user_op = op.user_op(),
            .factor = op.factor(),
            .options = options};
  }
  Caller& caller() { return static_cast<Caller&>(*this); }
  std::size_t n() { return static_cast<std::size_t>(caller().ranks()); }
  Answer mismatch(std::string_view what, std::size_t got, std::size_t allowed) {
    return size_mismatch(what, got, allowed, caller().ranks());
  }
};

}  // namespace rankine
