#include "engine/faults/fatal_signals.h"

#include <csignal>
#include <ctime>
#include <vector>

namespace rankine::faults {

std::span<const int> fatal_signals() {
  static const std::vector<int> all = {
      SIGHUP,    SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,  SIGBUS,    SIGFPE,  SIGKILL,
      SIGUSR1,   SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,  SIGSTKFLT, SIGXCPU, SIGXFSZ,
      SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSYS,  SIGRTMIN, SIGRTMAX};
  return all;
}

bool send_me_soon(int signal, int delay_us) {
  std::signal(signal, SIG_DFL);  // whoever started us may ignore it
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  timer_t timer{};
  const itimerspec soon{{0, 0}, {0, 1 + delay_us * 1'000}};
  return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
         timer_settime(timer, 0, &soon, nullptr) == 0;
}

}  // namespace rankine::faults
