#include "engine/api/rank_threads.h"

#include <map>
#include <mutex>

#include "engine/run/process_wide.h"

namespace rankine {
namespace {

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

void RankThreads::add(int thread) {
  Book& book = process_wide<Book>();
  const std::lock_guard lock(book.mutex);
  ++book.members[thread];
  tell(book);
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
