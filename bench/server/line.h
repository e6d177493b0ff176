// Two ends between which messages of plain bytes go both ways, whole and in order, among threads
// and processes. An end is used by one thread at a time for hearing, by any number for saying.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace rankine::server {

class Line {
 public:
  // Errors: throws Error (system).
  static std::pair<Line, Line> make();

  // For a process that nobody forks from this one: this end, which is the other's from then on, to
  // whoever of the same user collects it at that path, where no file is yet. Both wait for one
  // another, up to that long. Errors: throws Error (system).
  void hand_over(const std::string& path, std::chrono::milliseconds within);
  static Line collect(const std::string& path, std::chrono::milliseconds within);

  Line(Line&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Line& operator=(Line&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~Line() { hang_up(); }

  // False: nobody is there any more. say() waits where much has not been heard yet.
  template <class Message>
  bool say(const Message& message) const {
    return send(&message, sizeof(message));
  }
  // Waits for a message. False: nobody is there, and all has been heard.
  template <class Message>
  bool hear(Message& message) const {
    return receive(&message, sizeof(message));
  }
  // Whether hear() would return now, or within that time.
  bool has_news(std::chrono::milliseconds within) const;
  // The other end hears that, once no copy of this one is left in a forked process.
  void hang_up();

 private:
  explicit Line(int socket) : socket_(socket) {}
  bool send(const void* bytes, std::size_t n) const;
  bool receive(void* bytes, std::size_t n) const;

  int socket_;
};

}  // namespace rankine::server
