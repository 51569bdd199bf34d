#include "cli/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <mutex>

#include "base/printable.h"

namespace shardpack {

namespace {

/// "error: " and its like, in colour where that helps; an info line is a plain note.
class Prefix final : public spdlog::custom_flag_formatter {
 public:
  explicit Prefix(bool color) : color_(color) {}

  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const auto append = [&](std::string_view text) { out.append(text.data(), text.data() + text.size()); };
    switch (message.level) {
      case spdlog::level::err:
        append(color_ ? "\x1b[1;31merror:\x1b[0m " : "error: ");
        break;
      case spdlog::level::warn:
        append(color_ ? "\x1b[1;33mwarning:\x1b[0m " : "warning: ");
        break;
      case spdlog::level::debug:
        append(color_ ? "\x1b[2mdebug:\x1b[0m " : "debug: ");
        break;
      default:
        break;
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Prefix>(color_); }

 private:
  bool color_;
};

/// Hands whole lines to the console, which keeps them off the progress line.
class ConsoleSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit ConsoleSink(Console& console) : console_(console) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    console_.line(std::string_view(line.data(), line.size()));
  }
  void flush_() override {}

  Console& console_;
};

}  // namespace

struct Log::Logger {
  spdlog::logger logger;
};

Log::Log(Console& console, bool quiet, bool verbose, bool color)
    : logger_(new Logger{spdlog::logger("shardpack", std::make_shared<ConsoleSink>(console))}) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::local, std::string());
  formatter->add_flag<Prefix>('*', color).set_pattern("shardpack: %*%v");
  logger_->logger.set_formatter(std::move(formatter));
  logger_->logger.set_level(quiet ? spdlog::level::err : verbose ? spdlog::level::debug : spdlog::level::info);
}
Log::~Log() = default;

// The lines are data (they hold file names): never a format string.
void Log::error(std::string_view line) { logger_->logger.log(spdlog::level::err, "{}", printable(line)); }
void Log::warn(std::string_view line) { logger_->logger.log(spdlog::level::warn, "{}", printable(line)); }
void Log::info(std::string_view line) { logger_->logger.log(spdlog::level::info, "{}", printable(line)); }
void Log::debug(std::string_view line) { logger_->logger.log(spdlog::level::debug, "{}", printable(line)); }

}  // namespace shardpack
