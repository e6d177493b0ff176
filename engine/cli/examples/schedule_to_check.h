// schedule_to_check.h runs the function schedule(n) that `rankine check` requires in a C++ file
// (C++17 and later):
//
//   #include "schedule_to_check.h"
//
//   Schedule schedule(int n) {  // an all-gather along a ring
//     Schedule s{"all_gather", n};
//     for (int k = 0; k + 1 < n; ++k) {
//       s.round();
//       for (int r = 0; r < n; ++r) s.copy(r, (r + 1) % n, (r - k + n) % n);
//     }
//     return s;
//   }
//
// 'rankine check ring.cc' judges the schedules for several n. The main() of this file prints the
// schedule for the number of ranks in its argument: g++ ring.cc && ./a.out 8 | rankine check -
#pragma once

#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <string>
#include <vector>

// A block, or several that make one message: 3, {0, 1} or a vector.
struct Blocks {
  std::vector<int> numbers;
  Blocks(int one) : numbers{one} {}
  Blocks(std::initializer_list<int> several) : numbers(several) {}
  Blocks(std::vector<int> several) : numbers(several) {}
};

// The messages of a schedule, round by round. All reads of a round happen before its writes.
class Schedule {
 public:
  Schedule(std::string collective, int ranks) : collective_(collective), ranks_(ranks) {}

  // Optional values; less than 0 means the default.
  int root = -1, peer = -1, blocks = -1, planes = -1;
  bool other_bits = false;  // of all_reduce: ranks may add in other orders

  // Begins a round.
  void round() { rounds_.emplace_back(); }
  // Rank `to` keeps rank `from`'s blocks. The planes of reading and writing matter only if there
  // are several; `line` is always the default, the line of the call.
  void copy(int from, int to, Blocks what, int read_plane = 0, int write_plane = 0,
            int line = __builtin_LINE()) {
    send("copy", from, to, what, read_plane, write_plane, line);
  }
  // Rank `to` adds the blocks to its own.
  void add(int from, int to, Blocks what, int read_plane = 0, int write_plane = 0,
           int line = __builtin_LINE()) {
    send("reduce", from, to, what, read_plane, write_plane, line);
  }

  // Prints the schedule as JSON, the input of rankine check.
  void print(std::ostream& out) const {
    out << "{\"collective\": \"" << collective_ << "\", \"ranks\": " << ranks_;
    member(out, "root", root);
    member(out, "peer", peer);
    member(out, "blocks", blocks);
    member(out, "planes", planes);
    if (other_bits) out << ", \"other_bits\": true";
    out << ", \"transfers\": [";
    for (std::size_t k = 0; k < rounds_.size(); ++k) {
      out << (k > 0 ? ",\n[" : "\n[");
      for (std::size_t i = 0; i < rounds_[k].size(); ++i) {
        out << (i > 0 ? ", " : "") << rounds_[k][i];
      }
      out << "]";
    }
    out << "]}\n";
  }

 private:
  void send(const char* act, int from, int to, const Blocks& what, int read_plane, int write_plane,
            int line) {
    if (rounds_.empty()) round();
    std::string text = "{\"from\": " + std::to_string(from) + ", \"to\": " + std::to_string(to);
    text += ", \"what\": [";
    for (std::size_t i = 0; i < what.numbers.size(); ++i) {
      text += (i > 0 ? ", " : "") + std::to_string(what.numbers[i]);
    }
    text += "], \"act\": \"" + std::string(act) + "\"";
    if (read_plane != 0) text += ", \"what_plane\": " + std::to_string(read_plane);
    if (write_plane != 0) text += ", \"where_plane\": " + std::to_string(write_plane);
    rounds_.back().push_back(text + ", \"line\": " + std::to_string(line) + "}");
  }
  static void member(std::ostream& out, const char* name, int value) {
    if (value >= 0) out << ", \"" << name << "\": " << value;
  }

  std::string collective_;
  int ranks_;
  std::vector<std::vector<std::string>> rounds_;
};

Schedule schedule(int n);  // yours

int main(int count, char** arguments) {
  try {
    schedule(count > 1 ? std::atoi(arguments[1]) : 4).print(std::cout);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
