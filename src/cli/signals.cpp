#include "cli/signals.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

namespace shardpack {

namespace {

void die_by(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  std::raise(signal);  // to this thread: the waiter must not take it
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  // What the parent chose to ignore stays ignored: nohup, and background jobs of a shell without job control.
  for (const int signal : {SIGINT, SIGHUP}) {
    if (!is_ignored(signal)) sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  waiter_ = std::thread([this] { wait_for_signals(); });
}

StopSignals::~StopSignals() {
  closing_ = true;
  pthread_kill(waiter_.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread): blocked, and waited for
  waiter_.join();
}

void StopSignals::wait_for_signals() {
  for (;;) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals_, &info);
    if (signal < 0) continue;                         // EINTR: a debugger, a stop and continue
    if (closing_ && info.si_pid == getpid()) return;  // the destructor's
    if (received_.exchange(signal) != 0) die_by(signal);
    stop_.request_stop();
  }
}

void StopSignals::raise_again() {
  if (const int signal = received_; signal != 0) die_by(signal);
}

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // Opened the wrong way round, so that reading or writing fails as it would on the closed one; the lowest free number is
    // this one, for the lower ones are taken by now. Messages on standard error may vanish: nobody listens.
    (void)!::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

}  // namespace shardpack
