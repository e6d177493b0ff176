// One rank's handle of a communicator, and the collective calls: made by join() (communicator.h),
// by a Team (team.h). It is used by one thread at a time. Every rank makes the same calls in the
// same order, as in MPI and NCCL.
//
// Buffers belong to the caller, must stay valid until the call returns, need no alignment, and may
// be in place: all_reduce, reduce, broadcast and all_to_all with in == out; all_gather with in at
// the rank's own block of out; reduce_scatter with out at the rank's own block of in. all_reduce
// and all_to_all are in place on all ranks or on none; a rank that brings and gets nothing says so
// too, by equal pointers that are not null or by others.
//
// An all-reduce leaves the same bits on every rank, whatever the type, the algorithm, the transport
// and however its buffers lie: sums of floats are added up in one order, which does not depend on
// who adds (schedule.h). The algorithms that cannot say so in the catalogue (other_bits); they run
// where they are asked for by name, and are never chosen.
//
// What a rank gets is its own: its output may overlap with no buffer, input or output, of another
// rank in the same call, not even where both would store the same. (One input for all ranks is
// fine, and buffers that a call does not use, such as `out` where nothing is to be had, may be
// anything.) Ranks that share all the same are told, by a mismatch that ends the communicator,
//   - in the first call of a kind (of one plan): any two ranks, before either has a result;
//   - in later ones: two ranks one of which hears from the other directly (from everybody in one
//     shot, from a neighbour in a ring), of any overlap on direct transport, and on mailboxes and
//     boards where the other's output begins where a buffer of its own does. Ranks that were done
//     by then may have got wrong results, if only some share.
// A rank that has left the call already (such as the root of a small broadcast) is not looked at:
// its buffers may be another one's by now. Sharing that is not found out gives wrong results.
//
// Errors: communicator.h.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/api/call.h"
#include "engine/api/payload.h"
#include "engine/api/request.h"
#include "engine/base/status.h"

namespace rankine {

class Agenda;
class Communicator;
class RoundObserver;
struct CommunicatorShared;
struct MemberState;
struct SplitOptions;

class Member {
 public:
  ~Member();  // the rank leaves: others that still need it get Code::rank_lost
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Rank rank() const;
  int ranks() const;
  // Its communicator, which lives as long as its members do at least.
  Communicator& communicator() const;

  // Zeroes for n elements, near this rank: see payload.h for where, how long and for whom. No
  // collective, and what it refuses leaves the communicator as it is. Errors: invalid_argument for
  // an n whose bytes no pointers can tell apart, out_of_memory, forked.
  template <PayloadElement T>
  Result<Payload<T>> allocate(std::size_t n);

  // Any collective, untyped.
  Status call(const Call& call);
  // The same, and `observer` is told of every round (interpret.h). Slow.
  Status call(const Call& call, RoundObserver& observer);

  // Any collective, started and not waited for; or only made ready, to be started again and again
  // (request.h). Errors: those of call() that can be told before it begins; nothing is started
  // then.
  Result<Request> start(const Call& call);
  Result<Request> prepare(const Call& call);
  // Moves on whatever this thread has started, without waiting. Errors: forked.
  Status progress();

  // A message to one rank, from one rank: the call of these two alone. The messages that a rank
  // sends another one are received in the order in which they are sent; count and type must agree.
  // Short ones are on their way when send() returns, long ones have arrived. An error ends this
  // communicator too. Errors: a rank that there is not, and those of call().
  Status send(const void* data, std::size_t count, DataType type, Rank to,
              const CallOptions& options = {});
  Status recv(void* data, std::size_t count, DataType type, Rank from,
              const CallOptions& options = {});
  Result<Request> start_send(const void* data, std::size_t count, DataType type, Rank to,
                             const CallOptions& options = {});
  Result<Request> start_recv(void* data, std::size_t count, DataType type, Rank from,
                             const CallOptions& options = {});
  template <class T>
  Status send(std::span<const T> data, Rank to, const CallOptions& options = {});
  template <class T>
  Status recv(std::span<T> data, Rank from, const CallOptions& options = {});
  // Both at once: two ranks that send to each other first wait for nobody.
  Status exchange(const void* sent, std::size_t sent_count, Rank to, void* received,
                  std::size_t received_count, Rank from, DataType type,
                  const CallOptions& options = {});
  template <class T>
  Status exchange(std::span<const T> sent, Rank to, std::span<T> received, Rank from,
                  const CallOptions& options = {});
  // Messages and collectives that `calls` makes on members of this thread are started as they come
  // and all waited for at the end, so no order of theirs can deadlock; what they return until then
  // says only whether they could be started. Groups inside are part of the outer one. Returns the
  // first error. Where `calls` throws, what is under way ends its communicator.
  Status group(const std::function<void()>& calls);

  // The ranks that say the same color become a communicator of their own, ordered by key, and by
  // rank where keys are equal (split.h): a call of all ranks. Nothing for kNoColor. Errors: a color
  // below that, options that are out of range or (mismatch) not those of all ranks, and call()'s.
  Result<std::unique_ptr<Member>> split(int color, int key, const SplitOptions& options);
  Result<std::unique_ptr<Member>> split(int color, int key);

  // On a modelled network (network.h): seconds of the model from the communicator's beginning until
  // this rank's last message had ended, and its own work; and work of its own that takes so long,
  // from when its last call ended. At full speed 0, and an error.
  double model_time() const;
  Status compute(double seconds);

  // What such a call would get: "ring, mailbox transport", "double_tree, P = 8, direct transport".
  Result<std::string> plan_of(const Call& call);

  // out[i] = in of all ranks, reduced. Sizes must agree.
  template <class T>
  Status all_reduce(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});
  template <class T>
  Status all_reduce(std::span<T> in_place, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});
  // out = the ranks' inputs one after the other: ranks() * in.size() elements.
  template <class T>
  Status all_gather(std::span<const T> in, std::span<T> out, const CallOptions& options = {});
  // out = this rank's block of the reduced inputs: in has ranks() * out.size() elements.
  template <class T>
  Status reduce_scatter(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::sum,
                        const CallOptions& options = {});
  // Everyone's data = the root's.
  template <class T>
  Status broadcast(std::span<T> data, Rank root, const CallOptions& options = {});
  // out at the root = in of all ranks, reduced; elsewhere out is not used and may be empty.
  template <class T>
  Status reduce(std::span<const T> in, std::span<T> out, Rank root, ReduceOp op = ReduceOp::sum,
                const CallOptions& options = {});
  // Block d of in goes to rank d, which puts it at the place of the sender: in and out have ranks()
  // blocks of the same size.
  template <class T>
  Status all_to_all(std::span<const T> in, std::span<T> out, const CallOptions& options = {});
  // out at the root = the ranks' inputs one after the other; elsewhere out may be empty.
  template <class T>
  Status gather(std::span<const T> in, std::span<T> out, Rank root,
                const CallOptions& options = {});
  // out = this rank's block of the root's in; elsewhere in may be empty.
  template <class T>
  Status scatter(std::span<const T> in, std::span<T> out, Rank root,
                 const CallOptions& options = {});
  // The receiver's data = the sender's. All ranks call it; the others' data are not touched.
  template <class T>
  Status send_recv(std::span<T> data, Rank from, Rank to, const CallOptions& options = {});
  // Returns when all ranks have called it.
  Status barrier(const CallOptions& options = {});

  // With one count per rank, zeros included (all_gather, reduce_scatter, gather, scatter), or one
  // per pair, [from * ranks() + to] (all_to_all). Counts must be the same on all ranks; buffers
  // hold what the rank gives and gets, without gaps.
  template <class T>
  Status with_counts(Collective collective, std::span<const T> in, std::span<T> out,
                     std::span<const std::size_t> counts, Rank root = 0,
                     ReduceOp op = ReduceOp::sum, const CallOptions& options = {});

 private:
  friend class Communicator;
  friend class Buckets;
  friend class Request;
  friend class Team;
  Member(std::shared_ptr<CommunicatorShared> shared, Rank rank, std::shared_ptr<Agenda> agenda);
  // For what makes calls of many: this rank cannot make its next one, so nobody else shall wait for
  // it. Returns the reason.
  Status give_up(Status reason);
  template <class Run>
  Status run(const Call& call, Run run);
  Status call_among_others(const Call& call);
  Status settle(Result<Request> request);
  struct Message {
    void* data;
    std::size_t count;
    DataType type;
    Rank peer;
    const CallOptions& options;
  };
  Result<Request> start_message(const Message& message, bool sends);
  Result<Member*> end_of_pair(Rank peer, bool sends);
  // `calls`: it will be started at once.
  Result<Request> bind(const Call& call, bool calls);
  Status size_mismatch(std::string_view what, std::size_t got, std::size_t allowed) const;
  // Whether buffers of so many elements are what a call with counts needs of this rank.
  Status check_sizes(const Call& call, std::size_t in, std::size_t out) const;
  Result<PayloadMemory> allocate_elements(std::size_t n, std::size_t element_bytes);

  std::shared_ptr<MemberState> state_;
};

template <PayloadElement T>
Result<Payload<T>> Member::allocate(std::size_t n) {
  auto memory = allocate_elements(n, sizeof(T));
  if (!memory.ok()) return memory.status();
  return Payload<T>(std::move(*memory), n);
}

template <class T>
Status Member::all_reduce(std::span<const T> in, std::span<T> out, ReduceOp op,
                          const CallOptions& options) {
  if (in.size() != out.size()) return size_mismatch("out", out.size(), in.size());
  return call({.collective = Collective::all_reduce,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .op = op,
               .options = options});
}

template <class T>
Status Member::all_reduce(std::span<T> in_place, ReduceOp op, const CallOptions& options) {
  return all_reduce(std::span<const T>(in_place), in_place, op, options);
}

template <class T>
Status Member::all_gather(std::span<const T> in, std::span<T> out, const CallOptions& options) {
  const std::size_t all = in.size() * static_cast<std::size_t>(ranks());
  if (out.size() != all) return size_mismatch("out", out.size(), all);
  return call({.collective = Collective::all_gather,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .options = options});
}

template <class T>
Status Member::reduce_scatter(std::span<const T> in, std::span<T> out, ReduceOp op,
                              const CallOptions& options) {
  const std::size_t all = out.size() * static_cast<std::size_t>(ranks());
  if (in.size() != all) return size_mismatch("in", in.size(), all);
  return call({.collective = Collective::reduce_scatter,
               .in = in.data(),
               .out = out.data(),
               .count = out.size(),
               .type = data_type_of<T>,
               .op = op,
               .options = options});
}

template <class T>
Status Member::broadcast(std::span<T> data, Rank root, const CallOptions& options) {
  return call({.collective = Collective::broadcast,
               .in = data.data(),
               .out = data.data(),
               .count = data.size(),
               .type = data_type_of<T>,
               .root = root,
               .options = options});
}

template <class T>
Status Member::reduce(std::span<const T> in, std::span<T> out, Rank root, ReduceOp op,
                      const CallOptions& options) {
  if (rank() == root && out.size() != in.size()) return size_mismatch("out", out.size(), in.size());
  return call({.collective = Collective::reduce,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .op = op,
               .root = root,
               .options = options});
}

template <class T>
Status Member::all_to_all(std::span<const T> in, std::span<T> out, const CallOptions& options) {
  const auto n = static_cast<std::size_t>(ranks());
  if (in.size() % n != 0) return size_mismatch("in", in.size(), in.size() / n * n);
  if (out.size() != in.size()) return size_mismatch("out", out.size(), in.size());
  return call({.collective = Collective::all_to_all,
               .in = in.data(),
               .out = out.data(),
               .count = in.size() / n,
               .type = data_type_of<T>,
               .options = options});
}

template <class T>
Status Member::gather(std::span<const T> in, std::span<T> out, Rank root,
                      const CallOptions& options) {
  const std::size_t all = in.size() * static_cast<std::size_t>(ranks());
  if (rank() == root && out.size() != all) return size_mismatch("out", out.size(), all);
  return call({.collective = Collective::gather,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .root = root,
               .options = options});
}

template <class T>
Status Member::scatter(std::span<const T> in, std::span<T> out, Rank root,
                       const CallOptions& options) {
  const std::size_t all = out.size() * static_cast<std::size_t>(ranks());
  if (rank() == root && in.size() != all) return size_mismatch("in", in.size(), all);
  return call({.collective = Collective::scatter,
               .in = in.data(),
               .out = out.data(),
               .count = out.size(),
               .type = data_type_of<T>,
               .root = root,
               .options = options});
}

template <class T>
Status Member::send_recv(std::span<T> data, Rank from, Rank to, const CallOptions& options) {
  return call({.collective = Collective::send_recv,
               .in = data.data(),
               .out = data.data(),
               .count = data.size(),
               .type = data_type_of<T>,
               .root = from,
               .peer = to,
               .options = options});
}

template <class T>
Status Member::send(std::span<const T> data, Rank to, const CallOptions& options) {
  return send(data.data(), data.size(), data_type_of<T>, to, options);
}

template <class T>
Status Member::recv(std::span<T> data, Rank from, const CallOptions& options) {
  return recv(data.data(), data.size(), data_type_of<T>, from, options);
}

template <class T>
Status Member::exchange(std::span<const T> sent, Rank to, std::span<T> received, Rank from,
                        const CallOptions& options) {
  return exchange(sent.data(), sent.size(), to, received.data(), received.size(), from,
                  data_type_of<T>, options);
}

template <class T>
Status Member::with_counts(Collective collective, std::span<const T> in, std::span<T> out,
                           std::span<const std::size_t> counts, Rank root, ReduceOp op,
                           const CallOptions& options) {
  const Call request{.collective = collective,
                     .in = in.data(),
                     .out = out.data(),
                     .type = data_type_of<T>,
                     .op = op,
                     .root = root,
                     .counts = counts,
                     .options = options};
  Status status = check_sizes(request, in.size(), out.size());
  return status.ok() ? call(request) : status;
}

}  // namespace rankine
