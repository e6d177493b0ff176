// A number for each of N ranks, kept as straight pieces over neighbouring ranks. Where all ranks do
// the same with blocks of two sizes, times and weights differ between ranks in a few places only,
// so a function over a million ranks has a handful of pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rankine {

// T: a signed whole number; no value, and no sum or difference of two values, may overflow it. A
// value type, for one thread.
template <class T>
class ByRank {
 public:
  struct Piece {
    int first;  // up to the next one's
    T value;    // at the first
    T slope;    // from rank to rank
  };

  ByRank() = default;
  ByRank(int ranks, T value) : ranks_(ranks), pieces_{{0, value, 0}} {}
  // What append() is called for next begins at rank 0.
  explicit ByRank(int ranks) : ranks_(ranks) { pieces_.reserve(8); }

  // `count` ranks more. Pieces that continue the last one become part of it.
  void append(int count, T value, T slope) {
    if (count <= 0) return;
    const int first = filled_;
    filled_ += count;
    if (count == 1) slope = 0;
    if (!pieces_.empty()) {
      Piece& last = pieces_.back();
      const int before = first - last.first;
      const T step = before == 1 ? value - last.value : last.slope;
      const bool continues = last.value + step * before == value;
      if (continues && (count == 1 || slope == step)) {
        last.slope = step;
        return;
      }
    }
    pieces_.push_back({first, value, slope});
  }

  int ranks() const { return ranks_; }
  std::size_t pieces() const { return pieces_.size(); }
  std::size_t bytes() const { return sizeof(*this) + pieces_.capacity() * sizeof(Piece); }

  // visit(first, count, value, slope) for each piece.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      visit(pieces_[i].first, end_of(i) - pieces_[i].first, pieces_[i].value, pieces_[i].slope);
    }
  }
  T greatest() const {
    T most = pieces_.front().value;
    for_each([&](int, int count, T value, T slope) {
      most = std::max({most, value, value + slope * (count - 1)});
    });
    return most;
  }

  // Rank r has what rank r + by had, round the ring; 0 <= by < N.
  ByRank turned(int by) const {
    if (by == 0 || pieces_.size() == 1) {
      if (by == 0 || pieces_.front().slope == 0) return *this;
    }
    ByRank out(ranks_);
    const auto take = [&](int from, int to) {
      for_each([&](int first, int count, T value, T slope) {
        const int begin = std::max(first, from), end = std::min(first + count, to);
        out.append(end - begin, value + slope * (begin - first), slope);
      });
    };
    take(by, ranks_);
    take(0, by);
    return out;
  }

  // factor f + constant.
  ByRank scaled(T factor, T constant) const {
    ByRank out = *this;
    for (Piece& piece : out.pieces_) {
      piece.value = piece.value * factor + constant;
      piece.slope *= factor;
    }
    return out;
  }
  friend ByRank operator+(const ByRank& a, const ByRank& b) {
    ByRank out(a.ranks_);
    together(a, b, [&out](int count, T va, T sa, T vb, T sb) {
      out.append(count, va + vb, sa + sb);
    });
    return out;
  }
  // Of each rank the greater of both, and the lesser.
  static ByRank greater(const ByRank& a, const ByRank& b) { return picked(a, b, true); }
  static ByRank lesser(const ByRank& a, const ByRank& b) { return picked(a, b, false); }

  bool operator==(const ByRank& other) const {
    bool same = true;
    together(*this, other, [&same](int count, T va, T sa, T vb, T sb) {
      same = same && va == vb && (count == 1 || sa == sb);
    });
    return same;
  }

 private:
  int end_of(std::size_t i) const { return i + 1 < pieces_.size() ? pieces_[i + 1].first : ranks_; }

  // visit(count, value and slope of a, of b) for stretches in which both are straight.
  template <class Visit>
  static void together(const ByRank& a, const ByRank& b, const Visit& visit) {
    std::size_t i = 0, j = 0;
    for (int at = 0; at < a.ranks_;) {
      const int end = std::min(a.end_of(i), b.end_of(j));
      const Piece &p = a.pieces_[i], &q = b.pieces_[j];
      visit(end - at, p.value + p.slope * (at - p.first), p.slope,
            q.value + q.slope * (at - q.first), q.slope);
      if (end == a.end_of(i)) ++i;
      if (end == b.end_of(j)) ++j;
      at = end;
    }
  }

  static ByRank picked(const ByRank& a, const ByRank& b, bool greater) {
    ByRank out(a.ranks_);
    together(a, b, [&](int count, T va, T sa, T vb, T sb) {
      // The one that is picked at the first rank, and how many ranks it stays so.
      const bool a_first = greater ? va >= vb : va <= vb;
      const T lead = a_first == greater ? va - vb : vb - va;  // not negative
      const T change = a_first == greater ? sa - sb : sb - sa;
      int stays = count;
      if (change < 0 && lead + change * (count - 1) < 0) stays = static_cast<int>(lead / -change) + 1;
      out.append(stays, a_first ? va : vb, a_first ? sa : sb);
      const T other = a_first ? vb + sb * stays : va + sa * stays;
      out.append(count - stays, other, a_first ? sb : sa);
    });
    return out;
  }

  int ranks_ = 0, filled_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace rankine
