// Each case runs in a process of its own, for it ends by a signal.
#include "cli/signals.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "support/catch.h"

using namespace shardpack;

namespace {

constexpr std::chrono::milliseconds kTick{5};

/// How the child that runs `body` ends while `act` does something to it: its exit code, or minus the signal that killed it.
/// `act` is called once the child has written a byte to the descriptor that `body` is given.
template <class Body, class Act>
int end_of(Body body, Act act) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // a child that hangs is a failure, not a test that never ends
    body(ends[1]);
    ::_exit(0);
  }
  char ready = 0;
  REQUIRE(::read(ends[0], &ready, 1) == 1);
  act(child);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void tell_ready(int descriptor) { (void)!::write(descriptor, "!", 1); }

void wait_for(const std::stop_token& stop) {
  while (!stop.stop_requested()) std::this_thread::sleep_for(kTick);
}

}  // namespace

TEST_CASE("without a signal nothing happens, however soon the end comes") {
  for (int round = 0; round < 20; ++round) {
    CHECK(end_of(
              [](int ready) {
                StopSignals signals;
                tell_ready(ready);
                signals.raise_again();
              },
              [](pid_t) {}) == 0);
  }
}

TEST_CASE("a signal asks to stop, and is raised again after the work has unwound") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CHECK(end_of(
              [](int ready) {
                StopSignals signals;
                tell_ready(ready);
                wait_for(signals.token());
                signals.raise_again();
              },
              [&](pid_t child) { ::kill(child, signal); }) == -signal);
  }
}

TEST_CASE("work that ends well after a signal need not die of it") {
  CHECK(end_of(
            [](int ready) {
              StopSignals signals;
              tell_ready(ready);
              wait_for(signals.token());
            },
            [](pid_t child) { ::kill(child, SIGTERM); }) == 0);
}

TEST_CASE("a second signal kills at once") {
  CHECK(end_of(
            [](int ready) {
              const StopSignals signals;
              tell_ready(ready);
              for (;;) std::this_thread::sleep_for(kTick);  // never looks at the token
            },
            [](pid_t child) {
              ::kill(child, SIGINT);
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              CHECK(::kill(child, 0) == 0);
              int status = 0;
              CHECK(::waitpid(child, &status, WNOHANG) == 0);  // one alone does not
              ::kill(child, SIGINT);
            }) == -SIGINT);
}

TEST_CASE("what the parent ignores stays ignored") {
  CHECK(end_of(
            [](int ready) {
              std::signal(SIGHUP, SIG_IGN);
              StopSignals signals;
              ::raise(SIGHUP);
              ::kill(::getpid(), SIGHUP);
              std::this_thread::sleep_for(kTick * 10);
              tell_ready(ready);
              if (signals.token().stop_requested()) ::_exit(7);
            },
            [](pid_t) {}) == 0);
}

TEST_CASE("closed standard streams are occupied, so that no file takes their number") {
  CHECK(end_of(
            [](int ready) {
              const int kept = ::fcntl(ready, F_DUPFD, 10);
              for (const int descriptor : {0, 1, 2}) ::close(descriptor);
              occupy_standard_descriptors();
              char byte = 0;
              const bool read_fails = ::read(0, &byte, 1) < 0 && errno == EBADF;
              const bool write_fails = ::write(1, "x", 1) < 0 && errno == EBADF;
              const bool all_taken = ::open("/dev/null", O_RDONLY) > 2;
              tell_ready(kept);
              ::_exit(read_fails && write_fails && all_taken ? 0 : 7);
            },
            [](pid_t) {}) == 0);
}
