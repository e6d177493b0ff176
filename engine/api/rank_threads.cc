#include "engine/api/rank_threads.h"

#include <map>
#include <mutex>

#include "engine/run/process_wide.h"

namespace rankine {
namespace {

constexpr int kMostTries = 1000;

Atomic<int> threads{0};

struct Book {
  std::mutex mutex;
  std::map<int, int> members;  // by thread
};

// A number: whoever reads it finds the right one sooner or later.
void tell(const Book& book) {
  threads.store(static_cast<int>(book.members.size()), std::memory_order_relaxed);
}

}  // namespace

bool RankThreads::add(int thread) {
  Book& book = process_wide<Book>();
  std::map<int, int> page;  // made before the lock is taken, under which nobody shall stand still
  page.emplace(thread, 0);
  std::unique_lock lock(book.mutex, std::try_to_lock);
  for (int i = 0; !lock.owns_lock() && i < kMostTries; ++i) {
    yield_cpu();
    static_cast<void>(lock.try_lock());
  }
  if (!lock.owns_lock()) return false;
  ++book.members.insert(page.extract(thread)).position->second;
  tell(book);
  return true;
}

void RankThreads::remove(int thread) noexcept {
  Book& book = process_wide<Book>();
  const std::lock_guard lock(book.mutex);
  const auto found = book.members.find(thread);
  if (found == book.members.end()) return;
  if (--found->second == 0) book.members.erase(found);
  tell(book);
}

const Atomic<int>& RankThreads::count() noexcept { return threads; }

}  // namespace rankine
