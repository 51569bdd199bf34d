#include "cli/app.h"

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>

#include "base/units.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/versions.h"
#include "shardpack/error.h"
#include "shardpack/thread_pool.h"

namespace shardpack {

namespace {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return kExitUsage;
    case ErrorCode::bad_data:
      return kExitBadData;
    case ErrorCode::io:
    case ErrorCode::limit:
      return kExitIo;
    case ErrorCode::cancelled:
      return kStopped;
    case ErrorCode::internal:
      return kExitInternal;
  }
  return kExitInternal;
}

/// Pages of text that are asked for instead of a command. \return false when none is
bool print_page(const Request& request) {
  const Settings& settings = request.settings;
  switch (settings.page) {
    case Page::none:
      return false;
    case Page::version:
      write_standard_output(version_line());
      break;
    case Page::brief:
      write_standard_output(request.has_command ? brief_page(settings.command) : overview_page());
      break;
    case Page::full:
      write_standard_output(request.has_command ? full_page(settings.command) : overview_page());
      break;
  }
  return true;
}

int run_request(const Request& request, Console& console, Log& log, const std::stop_token& stop) {
  const Settings& settings = request.settings;
  if (print_page(request)) return kExitDone;
  if (!request.has_command) {
    console.line(overview_page());
    return kExitUsage;
  }
  if (settings.print_config) {
    write_standard_output(config_text(settings.command, request.given));
    return kExitDone;
  }
  check_settings(settings);
  check_side_files(settings);
  if (settings.parallelism.tensor > 1 && !settings.parallelism.sequence) {
    log.warn(fmt::format("--tp {} changes nothing without --sp (sequence parallelism)", settings.parallelism.tensor));
  }

  const std::stop_callback say_so(stop, [&log] { log.info("stopping and cleaning up; once more kills at once"); });
  ThreadPool pool(settings.threads);
  ProgressBar progress(console, progress_style(settings.progress, settings.quiet, settings.verbose, console.descriptor()),
                       !settings.stats_file.empty());
  Session session{.settings = settings,
                  .console = console,
                  .progress = progress,
                  .log = log,
                  .context = {.pool = pool,
                              .stop = stop,
                              .progress = progress,
                              .diagnostics = log,
                              .memory_bytes = settings.memory_bytes,
                              .memory_limit = settings.memory_limit,
                              .temp_dir = settings.temp_dir}};
  log.debug(fmt::format("{} threads, {} for blocks in flight", pool.threads(), short_bytes(settings.memory_bytes)));
  const Outcome outcome = run_command(session);

  check_standard_output();
  if (!settings.pack.dry_run) write_side_files(settings, outcome.facts, progress, pool.threads(), !outcome.negative);
  return outcome.negative ? kExitNegative : kExitDone;
}

}  // namespace

int run_application(int argc, const char* const* argv, const std::stop_token& stop) {
  Console console(STDERR_FILENO);
  auto log = std::make_unique<Log>(console, false, false, wants_color(When::automatic, STDERR_FILENO));
  try {
    const Request request = parse_arguments(argc, argv);
    const Settings& settings = request.settings;
    log = std::make_unique<Log>(console, settings.quiet, settings.verbose, wants_color(settings.color, STDERR_FILENO));
    return run_request(request, console, *log, stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) {
      log->info(error.what());  // as was asked for
    } else {
      log->error(error.what());
    }
    return exit_code(error.code());
  } catch (const std::bad_alloc&) {
    log->error("out of memory; a smaller --memory, --partition-tokens or --threads helps");
    return kExitIo;
  } catch (const std::filesystem::filesystem_error& error) {
    log->error(error.what());
    return kExitIo;
  } catch (const std::exception& error) {
    log->error(fmt::format("internal error: {}; please report it", error.what()));
    return kExitInternal;
  }
}

}  // namespace shardpack
