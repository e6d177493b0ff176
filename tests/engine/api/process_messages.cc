// Messages between two ranks that are processes.
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/request.h"
#include "tests/engine/api/process_play.h"

namespace rankine::testing_processes {
namespace {

using Data = std::vector<std::int32_t>;

Data message(Rank from, Rank to, int number, std::size_t count) {
  Data data(count);
  std::iota(data.begin(), data.end(), from * 1'000'000 + to * 10'000 + number * 100);
  return data;
}

Status wrong(const std::string& where) { return {Code::remote_error, "wrong data " + where}; }

// From the first to the last over all others.
Status relay(Member& me, std::size_t count) {
  for (int i = 0; i < 20; ++i) {
    Data data(count);
    if (me.rank() == 0) data = message(0, 1, i, count);
    if (me.rank() > 0) {
      if (Status s = me.recv(std::span(data), me.rank() - 1); !s.ok()) return s;
      if (data != message(0, 1, i, count)) return wrong("in a relay");
    }
    if (me.rank() + 1 < me.ranks()) {
      if (Status s = me.send(std::span<const std::int32_t>(data), me.rank() + 1); !s.ok()) return s;
    }
  }
  return {};
}

// Waited for at once and not, and started again.
Status round_a_ring(Member& me, std::size_t count) {
  const int n = me.ranks();
  const Rank right = (me.rank() + 1) % n, left = (me.rank() + n - 1) % n;
  Data mine(count), theirs(count);
  auto sent = me.prepared().send(mine, right);
  if (!sent.ok()) return sent.status();
  for (int i = 0; i < 5; ++i) {
    const Data next = message(me.rank(), right, i, count);
    std::copy(next.begin(), next.end(), mine.begin());  // what was prepared is where it was
    const Data wanted = message(left, me.rank(), i, count);
    if (Status s = sent->start(); !s.ok()) return s;
    if (Status s = me.recv(std::span(theirs), left); !s.ok()) return s;
    if (Status s = sent->wait(); !s.ok()) return s;
    if (theirs != wanted) return wrong("of a prepared message");
    theirs.assign(count, 0);
    const std::span<const std::int32_t> given(mine);
    if (Status s = me.exchange(given, right, std::span(theirs), left); !s.ok()) return s;
    if (theirs != wanted) return wrong("of an exchange");
  }
  return {};
}

// Everybody sends everybody something, itself included, in an order of its own, with a collective
// among it.
Status all_to_all_at_random(Member& me) {
  const int n = me.ranks();
  const auto size = static_cast<std::size_t>(n);
  std::mt19937 own(static_cast<unsigned>(me.rank())), same(3);
  for (int turn = 0; turn < 20; ++turn) {
    const std::size_t count = std::size_t{1} << same() % 17;
    std::vector<Data> sent, got(size, Data(count));
    for (Rank r = 0; r < n; ++r) sent.push_back(message(me.rank(), r, turn, count));
    std::vector<int> order(2 * size + 1);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), own);
    std::int32_t one = 1, sum = 0;
    const Status status = me.group([&] {
      for (const int what : order) {
        const auto peer = static_cast<std::size_t>(what % n);
        if (what == 2 * n) {
          me.all_reduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1))
              .throw_if_error();
        } else if (what < n) {
          me.send(std::span<const std::int32_t>(sent[peer]), what % n).throw_if_error();
        } else {
          me.recv(std::span(got[peer]), what % n).throw_if_error();
        }
      }
    });
    if (!status.ok()) return status;
    if (sum != n) return wrong("of a sum");
    for (Rank r = 0; r < n; ++r) {
      if (got[static_cast<std::size_t>(r)] != message(r, me.rank(), turn, count)) {
        return wrong("from rank " + std::to_string(r));
      }
    }
  }
  return {};
}

int messages(const Given& given) {
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  // What fits in a line, in a slot, and in neither; scratch that has to grow, and move.
  for (const std::size_t count : {0u, 1u, 12u, 500u, 5'000u, 300'000u}) {
    if (Status s = relay(me, count); !s.ok()) return say(s);
    if (Status s = round_a_ring(me, count); !s.ok()) return say(s);
  }
  if (Status s = all_to_all_at_random(me); !s.ok()) return say(s);
  return say(me.barrier());
}

// What is on its way when its sender ends arrives; what it has not sent does not.
int message_outlives(const Given& given) {
  const Joined joined = join(given.options());
  const Data data = message(0, 1, 0, 10);
  if (given.rank == 0) return say(joined.member->send(std::span<const std::int32_t>(data), 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Data got(10);
  if (Status s = joined.member->recv(std::span(got), 0); !s.ok()) return say(s);
  if (got != data) return say(wrong("of one that has ended"));
  return say(joined.member->recv(std::span(got), 0));
}

// The last rank comes, and does something else than rank 0 waits for.
int instead_of_sending(const Given& given, const std::function<Status(Joined&)>& other,
                       std::chrono::milliseconds timeout = std::chrono::minutes(2)) {
  Joined joined = join(given.options());
  joined.member->barrier().throw_if_error();
  Data got(1000);
  const CallOptions options{.timeout = timeout};
  if (!given.is_last()) {
    // Rank 1 has nothing to do with the last one: rank 0 tells it.
    return say(joined.member->recv(std::span(got), given.rank == 0 ? given.ranks - 1 : 0, options));
  }
  return say(other(joined));
}

// Everybody sends to everybody as long as the others are there.
int messages_until_killed(const Given& given) {
  if (given.is_last()) be_killed_after(given.at, given.signal);
  auto made = meet(given.options());
  if (!made.ok()) return say(made.status());
  const auto member = (*made)->join(given.rank).value();
  Status status;
  for (std::size_t count = 1; status.ok(); count = count * 3 % 100'003) {
    status = round_a_ring(*member, count);
  }
  return say(status);
}

}  // namespace

const Plays& message_plays() {
  static const Plays all = {
      {"messages", messages},
      {"message_outlives", message_outlives},
      {"messages_killed_at", messages_until_killed},
      {"dies_instead_of_sending",
       [](const Given& given) {
         return instead_of_sending(given, [](Joined&) {
           _exit(0);
           return Status();
         });
       }},
      {"leaves_instead_of_sending",
       [](const Given& given) {
         return instead_of_sending(given, [](Joined& joined) {
           joined.member.reset();
           // It stays, so that it is not its end that is noticed.
           while (joined.communicator->health().ok()) {
             std::this_thread::sleep_for(std::chrono::milliseconds(5));
           }
           return joined.communicator->health();
         });
       }},
      {"sends_less",
       [](const Given& given) {
         return instead_of_sending(given, [](Joined& joined) {
           const Data less(999);
           Status status = joined.member->send(std::span<const std::int32_t>(less), 0);
           while (status.ok()) status = joined.member->barrier();
           return status;
         });
       }},
      {"aborts_instead_of_sending",
       [](const Given& given) {
         return instead_of_sending(given, [](Joined& joined) {
           joined.communicator->abort("enough");
           return joined.communicator->health();
         });
       }},
      {"does_not_send",
       [](const Given& given) {
         return instead_of_sending(
             given, [](Joined& joined) { return joined.member->barrier(); },
             std::chrono::milliseconds(300));
       }},
  };
  return all;
}

}  // namespace rankine::testing_processes
