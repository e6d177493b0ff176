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

// Where the next rank from `from` on is that is in, or is not; `ranks`: nowhere.
std::uint32_t next(std::span<const std::uint64_t> bits, std::uint32_t from, bool in,
                   std::uint32_t ranks) {
  for (std::uint32_t w = from / 64; w < bits.size(); ++w) {
    std::uint64_t found = in ? bits[w] : ~bits[w];
    if (w == from / 64) found &= ~std::uint64_t{0} << (from % 64);
    if (found != 0) {
      return std::min(ranks, 64 * w + static_cast<std::uint32_t>(std::countr_zero(found)));
    }
  }
  return ranks;
}

std::uint64_t hash_of(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) hash = mixed(hash + word);
  return hash;
}

}  // namespace

ContributionPool::Parts ContributionPool::parts_of(Set set) const {
  Parts parts;
  if (set == kEmpty) return parts;
  if (is_interval(set)) {
    const std::uint32_t end = first(set) + count(set);
    if (end > ranks_) parts.push_back({0, end - ranks_});
    parts.push_back({first(set), std::min(end, ranks_)});
    return parts;
  }
  const auto words = words_of(set);
  if (is_bits(words)) {
    append_parts_of_bits(words, parts);
  } else {
    for (const std::uint64_t word : words) parts.push_back({first(word), count(word)});
  }
  return parts;
}

void ContributionPool::append_parts_of_bits(std::span<const std::uint64_t> bits,
                                            Parts& parts) const {
  for (std::uint32_t r = next(bits, 0, true, ranks_); r < ranks_;) {
    const std::uint32_t end = next(bits, r, false, ranks_);
    parts.push_back({r, end});
    r = next(bits, end, true, ranks_);
  }
}

std::vector<Rank> ContributionPool::members(Set set) const {
  std::vector<Rank> out;
  for (const Part& part : parts_of(set)) {
    for (std::uint32_t r = part.first; r < part.end; ++r) out.push_back(static_cast<Rank>(r));
  }
  return out;
}

std::string ContributionPool::to_string(Set set) const { return text_of(parts_of(set)); }

std::string ContributionPool::common(Set a, Set b) const {
  const Parts of_b = parts_of(b);
  Parts both;
  auto other = of_b.begin();
  for (const Part& part : parts_of(a)) {
    while (other != of_b.end() && other->end <= part.first) ++other;
    for (auto at = other; at != of_b.end() && at->first < part.end; ++at) {
      both.push_back({std::max(part.first, at->first), std::min(part.end, at->end)});
    }
  }
  return text_of(both);
}

ContributionPool::Set ContributionPool::rotated_part_by_part(Set set, const Rotation& rotation,
                                                             Rank by) {
  const bool on_ring = rotation.dims().size() == 1;  // where neighbours stay neighbours
  Words bits(words_, 0);
  for (const Part& part : parts_of(set)) {
    const std::uint32_t step = on_ring ? part.end - part.first : 1;
    for (std::uint32_t r = part.first; r < part.end; r += step) {
      const auto to = static_cast<std::uint32_t>(rotation.rotated(static_cast<Rank>(r), by));
      set_range(bits, to, std::min(to + step, ranks_));
      if (to + step > ranks_) set_range(bits, 0, to + step - ranks_);
    }
  }
  return set_of(bits);
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
  if (size_of(a) + size_of(b) >= words_) {
    write_bits(a, left_);
    write_bits(b, right_);
    for (std::size_t w = 0; w < words_; ++w) {
      if (disjoint && (left_[w] & right_[w]) != 0) return kOverlap;
      left_[w] |= right_[w];
    }
    return set_of(left_);
  }
  const Parts of_a = parts_of(a), of_b = parts_of(b);
  Parts all(of_a.size() + of_b.size());
  std::merge(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), all.begin(),
             [](const Part& x, const Part& y) { return x.first < y.first; });
  auto last = all.begin();
  for (auto part = last + 1; part != all.end(); ++part) {
    if (disjoint && part->first < last->end) return kOverlap;
    if (part->first <= last->end) {
      last->end = std::max(last->end, part->end);
    } else {
      *++last = *part;
    }
  }
  all.erase(last + 1, all.end());
  return set_of(all);
}

void ContributionPool::write_bits(Set set, Words& bits) const {
  if (!is_interval(set) && is_bits(words_of(set))) {
    bits.assign(words_of(set).begin(), words_of(set).end());
    return;
  }
  bits.assign(words_, 0);
  for (const Part& part : parts_of(set)) set_range(bits, part.first, part.end);
}

ContributionPool::Set ContributionPool::set_of(const Parts& parts) {
  if (parts.empty()) return kEmpty;
  const Part& front = parts.front();
  const Part& back = parts.back();
  if (parts.size() == 1) return interval(front.first, front.end - front.first);
  if (parts.size() == 2 && front.first == 0 && back.end == ranks_) {
    return interval(back.first, back.end - back.first + front.end);
  }
  if (parts.size() < words_) {
    Words words;
    for (const Part& part : parts) words.push_back(std::uint64_t{part.first} << 32 | part.end);
    return keep(words);
  }
  Words bits(words_, 0);
  for (const Part& part : parts) set_range(bits, part.first, part.end);
  return keep(bits);
}

ContributionPool::Set ContributionPool::set_of(const Words& bits) {
  std::size_t parts = 0;
  std::uint64_t carry = 0;
  for (const std::uint64_t word : bits) {
    parts += static_cast<std::size_t>(std::popcount(word & ~(word << 1 | carry)));
    carry = word >> 63;
  }
  if (parts > 2 && parts >= words_) return keep(bits);  // no interval
  Parts few;
  append_parts_of_bits(bits, few);
  return set_of(few);
}

ContributionPool::Set ContributionPool::keep(std::span<const std::uint64_t> words) {
  if (2 * (sets_.size() + 1) > index_.size()) {
    std::vector<std::uint32_t> larger(std::max(kSmallestTable, 2 * index_.size()), 0);
    for (const std::uint32_t entry : index_) {
      if (entry == 0) continue;
      std::size_t i = hash_of(sets_[entry - 1]) & (larger.size() - 1);
      while (larger[i] != 0) i = (i + 1) & (larger.size() - 1);
      larger[i] = entry;
    }
    index_.swap(larger);
  }
  std::size_t i = hash_of(words) & (index_.size() - 1);
  for (; index_[i] != 0; i = (i + 1) & (index_.size() - 1)) {
    const auto kept = sets_[index_[i] - 1];
    if (std::equal(words.begin(), words.end(), kept.begin(), kept.end())) {
      return kKept | (index_[i] - 1);
    }
  }
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < words.size()) {
    const std::size_t before = chunks_.empty() ? kSmallestTable : chunks_.back().capacity();
    chunks_.emplace_back().reserve(std::max(words.size(), 2 * before));
  }
  Words& chunk = chunks_.back();
  chunk.insert(chunk.end(), words.begin(), words.end());
  sets_.emplace_back(chunk.data() + chunk.size() - words.size(), words.size());
  index_[i] = static_cast<std::uint32_t>(sets_.size());
  return kKept | (sets_.size() - 1);
}

std::string ContributionPool::text_of(const Parts& parts) {
  std::string out = "{";
  for (const Part& part : parts) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(part.first);
    const std::uint32_t last = part.end - 1;
    if (last > part.first) out += (last == part.first + 1 ? ", " : "..") + std::to_string(last);
  }
  return out + "}";
}

}  // namespace rankine
