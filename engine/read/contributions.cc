#include "engine/read/contributions.h"

#include <algorithm>
#include <bit>

namespace rankine {
namespace {

constexpr std::size_t kSmallestTable = 64;

// The finaliser of MurmurHash3: every bit of the input reaches every bit of the output.
std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

void set_range(std::vector<std::uint64_t>& bits, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t i = from; i < to;) {
    const std::uint32_t in_word = i % 64, here = std::min(64 - in_word, to - i);
    const std::uint64_t ones = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    bits[i / 64] |= ones << in_word;
    i += here;
  }
}

}  // namespace

std::vector<Rank> ContributionPool::members(Set set) const {
  Bits bits;
  write_bits(set, bits);
  std::vector<Rank> out;
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    if ((bits[r / 64] >> (r % 64)) & 1) out.push_back(static_cast<Rank>(r));
  }
  return out;
}

std::string ContributionPool::to_string(Set set) const {
  Bits bits;
  write_bits(set, bits);
  return text_of(bits);
}

std::string ContributionPool::common(Set a, Set b) const {
  Bits left, right;
  write_bits(a, left);
  write_bits(b, right);
  for (std::size_t w = 0; w < words_; ++w) left[w] &= right[w];
  return text_of(left);
}

ContributionPool::Set ContributionPool::rotated_one_by_one(Set set, const Rotation& rotation,
                                                           Rank by) {
  Bits bits(words_, 0);
  for (const Rank r : members(set)) {
    const auto to = static_cast<std::size_t>(rotation.rotated(r, by));
    bits[to / 64] |= std::uint64_t{1} << (to % 64);
  }
  return intern(bits);
}

ContributionPool::Set ContributionPool::remembered(Set a, Set b, bool disjoint) {
  if (a > b) std::swap(a, b);
  std::vector<Remembered>& table = sums_[disjoint];
  std::size_t& held = sums_held_[disjoint];
  if (2 * (held + 1) > table.size()) {
    std::vector<Remembered> larger(std::max(kSmallestTable, 2 * table.size()));
    for (const Remembered& entry : table) {
      if (entry.a == kEmpty) continue;
      std::size_t i = mixed(entry.a + mixed(entry.b)) & (larger.size() - 1);
      while (larger[i].a != kEmpty) i = (i + 1) & (larger.size() - 1);
      larger[i] = entry;
    }
    table.swap(larger);
  }
  std::size_t i = mixed(a + mixed(b)) & (table.size() - 1);
  while (table[i].a != kEmpty) {
    if (table[i].a == a && table[i].b == b) return table[i].result;
    i = (i + 1) & (table.size() - 1);
  }
  const Set result = computed(a, b, disjoint);
  table[i] = {a, b, result};
  ++held;
  return result;
}

ContributionPool::Set ContributionPool::computed(Set a, Set b, bool disjoint) {
  write_bits(a, left_);
  write_bits(b, right_);
  for (std::size_t w = 0; w < words_; ++w) {
    if (disjoint && (left_[w] & right_[w]) != 0) return kOverlap;
    left_[w] |= right_[w];
  }
  return intern(left_);
}

void ContributionPool::write_bits(Set set, Bits& bits) const {
  if (!is_interval(set)) {
    const std::size_t at = static_cast<std::size_t>(set & ~kInterned) * words_;
    bits.assign(store_.begin() + static_cast<std::ptrdiff_t>(at),
                store_.begin() + static_cast<std::ptrdiff_t>(at + words_));
    return;
  }
  bits.assign(words_, 0);
  const std::uint32_t end = first(set) + count(set);
  set_range(bits, first(set), std::min(end, ranks_));
  if (end > ranks_) set_range(bits, 0, end - ranks_);
}

ContributionPool::Set ContributionPool::intern(const Bits& bits) {
  // An interval has one rank that is in while the one before it is not.
  std::uint32_t size = 0, begins = 0, first = 0;
  const std::uint32_t final_rank = ranks_ - 1;
  std::uint64_t carry = (bits[final_rank / 64] >> (final_rank % 64)) & 1;
  for (std::size_t w = 0; w < words_; ++w) {
    const std::uint64_t begin = bits[w] & ~((bits[w] << 1) | carry);
    carry = bits[w] >> 63;
    size += static_cast<std::uint32_t>(std::popcount(bits[w]));
    begins += static_cast<std::uint32_t>(std::popcount(begin));
    if (begin != 0)
      first =
          static_cast<std::uint32_t>(64 * w) + static_cast<std::uint32_t>(std::countr_zero(begin));
  }
  if (begins <= 1) return size == 0 ? kEmpty : interval(first, size);

  std::uint64_t hash = 0;
  for (const std::uint64_t word : bits) hash = mixed(hash + word);
  if (2 * (interned_ + 1) > index_.size()) {
    std::vector<std::uint32_t> larger(std::max(kSmallestTable, 2 * index_.size()), 0);
    for (const std::uint32_t entry : index_) {
      if (entry == 0) continue;
      std::uint64_t entry_hash = 0;
      for (std::size_t w = 0; w < words_; ++w) {
        entry_hash = mixed(entry_hash + store_[(entry - 1) * words_ + w]);
      }
      std::size_t i = entry_hash & (larger.size() - 1);
      while (larger[i] != 0) i = (i + 1) & (larger.size() - 1);
      larger[i] = entry;
    }
    index_.swap(larger);
  }
  std::size_t i = hash & (index_.size() - 1);
  for (; index_[i] != 0; i = (i + 1) & (index_.size() - 1)) {
    const std::size_t at = (index_[i] - 1) * words_;
    if (std::equal(bits.begin(), bits.end(), store_.begin() + static_cast<std::ptrdiff_t>(at))) {
      return kInterned | (index_[i] - 1);
    }
  }
  store_.insert(store_.end(), bits.begin(), bits.end());
  index_[i] = static_cast<std::uint32_t>(++interned_);
  return kInterned | (interned_ - 1);
}

std::string ContributionPool::text_of(const Bits& bits) const {
  std::string out = "{";
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    const auto has = [&](std::uint32_t i) {
      return i < ranks_ && ((bits[i / 64] >> (i % 64)) & 1) != 0;
    };
    if (!has(r)) continue;
    std::uint32_t last = r;
    while (has(last + 1)) ++last;
    if (out.size() > 1) out += ", ";
    out += std::to_string(r);
    if (last > r) out += (last == r + 1 ? ", " : "..") + std::to_string(last);
    r = last;
  }
  return out + "}";
}

}  // namespace rankine
