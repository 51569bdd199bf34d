#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/units.h"

namespace shardpack {

namespace {

constexpr std::chrono::milliseconds kInterval{167};  // six times a second

std::string amount(std::int64_t value, std::string_view unit) {
  return unit == "bytes" ? short_bytes(value) : short_count(value);
}

std::string rate(const StageRecord& stage) {
  if (stage.seconds <= 0) return "";
  return amount(static_cast<std::int64_t>(static_cast<double>(stage.done) / stage.seconds), stage.unit) + "/s";
}

std::string unit_suffix(const StageRecord& stage) { return stage.unit == "bytes" ? "" : " " + stage.unit; }

std::string clock_text(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// RssAnon of this process: what --memory is about. 0 when the system does not say.
std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key; status.ignore(1 << 10, '\n')) {
    std::int64_t kibibytes = 0;
    if (key == "RssAnon:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

ProgressStyle progress_style(When progress, bool quiet, bool verbose, int descriptor) {
  if (quiet || progress == When::never) return ProgressStyle::none;
  if (is_terminal(descriptor)) return ProgressStyle::bar;
  return verbose || progress == When::always ? ProgressStyle::lines : ProgressStyle::none;
}

std::string progress_text(const StageRecord& stage, int width) {
  constexpr int kCells = 24;
  std::string text;
  if (stage.total > 0) {
    const std::int64_t done = std::min(stage.done, stage.total);
    const double share = static_cast<double>(done) / static_cast<double>(stage.total);
    const auto full = static_cast<std::size_t>(share * kCells);
    text =
        fmt::format("{}  [{}{}] {:3} %  {} of {}{}", stage.name, std::string(full, '#'), std::string(kCells - full, '.'),
                    static_cast<int>(share * 100), amount(done, stage.unit), amount(stage.total, stage.unit), unit_suffix(stage));
    if (done > 0) text += fmt::format("  {}  {} left", rate(stage), clock_text(stage.seconds * (1 / share - 1)));
  } else {
    text = fmt::format("{}  {}{}  {}", stage.name, amount(stage.done, stage.unit), unit_suffix(stage), clock_text(stage.seconds));
  }
  // One column is left free: a full last line would make some terminals scroll.
  return text.substr(0, static_cast<std::size_t>(std::max(width - 1, 0)));
}

std::string finished_text(const StageRecord& stage) {
  std::string text =
      fmt::format("{}: {}{} in {:.1f} s", stage.name, amount(stage.done, stage.unit), unit_suffix(stage), stage.seconds);
  if (stage.seconds >= 0.05) text += fmt::format(" ({})", rate(stage));
  return text;
}

ProgressBar::ProgressBar(Console& console, ProgressStyle style, bool sample_memory)
    : console_(console), style_(style), sample_memory_(sample_memory) {
  if (style == ProgressStyle::bar || sample_memory) {
    watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  }
}

ProgressBar::~ProgressBar() { close(); }

void ProgressBar::close() {
  if (watcher_.joinable()) {
    watcher_.request_stop();
    watcher_.join();
  }
  console_.clear_status();
}

void ProgressBar::begin_stage(std::string_view name, std::int64_t total, std::string_view unit) {
  end_stage();
  const std::lock_guard lock(mutex_);
  stages_.push_back({.name = std::string(name), .unit = std::string(unit), .total = total, .done = 0, .seconds = 0});
  done_ = 0;
  began_ = Clock::now();
  running_ = true;
  if (style_ == ProgressStyle::lines) console_.line(fmt::format("shardpack: {} ...", name));
  wake_.notify_all();
}

void ProgressBar::end_stage() {
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  stages_.back() = running_stage();
  running_ = false;
  if (sample_memory_) sample_memory();
  if (style_ == ProgressStyle::lines) console_.line("shardpack: " + finished_text(stages_.back()));
  if (style_ == ProgressStyle::bar) console_.clear_status();
}

std::vector<StageRecord> ProgressBar::stages() const {
  const std::lock_guard lock(mutex_);
  return stages_;
}

StageRecord ProgressBar::running_stage() const {
  StageRecord stage = stages_.back();
  stage.done = done_.load(std::memory_order_relaxed);
  stage.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  return stage;
}

void ProgressBar::sample_memory() { peak_anonymous_ = std::max(peak_anonymous_.load(), anonymous_bytes()); }

void ProgressBar::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait(lock, stop, [&] { return running_; });
    wake_.wait_for(lock, stop, kInterval, [] { return false; });  // a stage shorter than that is not worth a flash
    if (!running_ || stop.stop_requested()) continue;
    if (sample_memory_) sample_memory();
    if (style_ == ProgressStyle::bar) console_.status(progress_text(running_stage(), terminal_width(console_.descriptor())));
  }
}

}  // namespace shardpack
