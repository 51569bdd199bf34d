#include "io/journal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "base/hash.h"
#include "io/json.h"
#include "io/manifest_parts.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::size_t kHashDigits = 32;
constexpr bool kOnOneLine = true;

std::string line_of(const std::string& record) { return fmt::format("{} {}\n", hash_hex(record), record); }

/// The record of the line at the front of `text`, which is taken off; empty when the line is not whole.
std::string_view take_record(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || end <= kHashDigits || text[kHashDigits] != ' ') return {};
  const std::string_view record = text.substr(kHashDigits + 1, end - kHashDigits - 1);
  if (text.substr(0, kHashDigits) != hash_hex(record)) return {};
  text.remove_prefix(end + 1);
  return record;
}

std::string identity_record(const RunIdentity& identity) {
  JsonWriter json;
  json.begin_object(kOnOneLine);
  for (const auto& [name, value] : identity) json.member(name, value);
  json.end_object();
  return json.take();
}

RunIdentity read_identity(std::string_view record, const std::string& path) {
  RunIdentity identity;
  for (const auto& [name, value] : Json::parse(record, path).members()) identity.emplace_back(name, value.as_string());
  return identity;
}

std::string shard_record(const ManifestShard& shard) {
  JsonWriter json;
  json.begin_array(kOnOneLine);
  write_shard(json, shard);
  json.end_array();
  return json.take();
}

ManifestShard read_shard_record(std::string_view record, const std::string& path) {
  ManifestNames alone;  // a shard that was redone is there twice
  return read_shard(Json::parse(record, path).at(0), alone);
}

}  // namespace

std::string difference(const RunIdentity& then, const RunIdentity& now) {
  std::map<std::string_view, std::string_view> was(then.begin(), then.end());
  std::vector<std::string> differences;
  for (const auto& [name, value] : now) {
    const auto found = was.find(name);
    const std::string_view before = found == was.end() ? "not there" : found->second;
    if (before != value && before != kNotKnownYet && value != kNotKnownYet)
      differences.push_back(fmt::format("{} was {} and is {}", name, before, value));
  }
  constexpr std::size_t kNamed = 3;
  const std::size_t named = std::min(differences.size(), kNamed);
  std::string text =
      fmt::format("{}", fmt::join(differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (differences.size() > named) text += fmt::format(", and {} more", differences.size() - named);
  return text;
}

Journal::Journal(const File& file) : file_(file) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;
  std::string text(static_cast<std::size_t>(std::min(file.size(), kMaxBytes)), '\0');
  text.resize(file.read_some_at(0, std::as_writable_bytes(std::span(text))));

  std::string_view rest = text;
  try {
    std::string_view record = take_record(rest);
    if (record.empty()) return;
    identity_ = read_identity(record, file.shown());
    begun_ = true;
    do {
      end_ = static_cast<std::int64_t>(text.size() - rest.size());
      record = take_record(rest);
      if (record.empty()) break;
      if (record.front() == '{') {
        closing_ = record;
      } else {
        shards_.push_back(read_shard_record(record, file.shown()));
        closing_.clear();  // something was done again
      }
    } while (true);
  } catch (const Error&) {  // of a version that writes something else: its lines do not count either
  }
}

void Journal::begin(const RunIdentity& identity) {
  file_.truncate(0);
  end_ = 0;
  shards_.clear();
  closing_.clear();
  identity_ = identity;
  begun_ = true;
  append(identity_record(identity));
}

void Journal::add(const ManifestShard& shard) {
  append(shard_record(shard));
  shards_.push_back(shard);
  closing_.clear();
}

void Journal::close(const std::string& record) {
  append(record);
  closing_ = record;
}

void Journal::append(const std::string& record) {
  const std::string line = line_of(record);
  file_.truncate(end_);  // a line that was cut short goes first
  file_.write_at(end_, std::as_bytes(std::span(line)));
  file_.sync();
  end_ += static_cast<std::int64_t>(line.size());
}

}  // namespace shardpack
