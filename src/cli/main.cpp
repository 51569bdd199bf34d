// The tool: streams and signals are set up, then everything is in app.cpp.
#include <malloc.h>

#include <csignal>

#include "cli/app.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  shardpack::occupy_standard_descriptors();
  // A closed pipe, a file beyond `ulimit -f`: errors of write(), which knows what to do about them.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
#ifdef __GLIBC__
  // Blocks of a few MiB come and go all the time: keep their pages instead of giving them back and clearing them anew.
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
  shardpack::StopSignals signals;
  const int code = shardpack::run_application(argc, argv, signals.token());
  if (code == shardpack::kStopped) signals.raise_again();
  return code;
}
