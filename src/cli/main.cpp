// The tool: streams and signals are set up, then everything is in app.cpp.
#include <malloc.h>

#include <csignal>

#include "cli/app.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  shardpack::occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), which knows what to do about it
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
