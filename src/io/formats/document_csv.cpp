#include "io/formats/document_csv.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"
#include "io/byte_stream.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::size_t kMaxFieldBytes = 64;  // of the two that are kept; no number is longer

/// Takes the bytes of a CSV file one by one and notes each document.
class DocumentCsv {
 public:
  DocumentCsv(const InputFile& csv, std::int64_t tokens) : csv_(csv), tokens_(tokens) {}

  void take(char c) {
    if (quoted_) {
      if (c == '\n') ++line_;
      // A doubled quote leaves and enters again at once, which keeps a comma or newline after it inside.
      if (c == '"') {
        quoted_ = false;
      } else {
        keep(c);
      }
      return;
    }
    if (c == '"') {
      quoted_ = true;
      line_has_text_ = true;
    } else if (c == ',') {
      ++field_;
      line_has_text_ = true;
    } else if (c == '\n') {
      end_record();
      first_line_ = ++line_;
    } else if (c != '\r') {
      keep(c);
      line_has_text_ = true;
    }
  }

  std::vector<std::int64_t> finish() {
    if (quoted_) fail("a quoted field is not closed: the file was cut short");
    end_record();  // the last line may lack its newline
    return std::move(record_begin_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::bad_data, message, csv_.name, fmt::format("line {}", with_commas(first_line_)));
  }

  void keep(char c) {
    if (field_ < fields_.size() && fields_[field_].size() < kMaxFieldBytes) fields_[field_].push_back(c);
  }

  std::int64_t number(const std::string& text, std::string_view what) const {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < 0) {
      fail(fmt::format("expected the {} of a document as a whole number of tokens, found '{}'", what, text));
    }
    return value;
  }

  void end_record() {
    if (line_has_text_) {
      if (field_ == 0) fail("expected start,end: one field only");
      const std::int64_t start = number(fields_[0], "start");
      const std::int64_t end = number(fields_[1], "end");
      const std::int64_t expected = record_begin_.back();
      if (start != expected) {
        fail(fmt::format("the document starts at token {}, but the one before ends at {}: {}", with_commas(start),
                         with_commas(expected), start < expected ? "they overlap" : "there is a hole"));
      }
      if (end < start)
        fail(fmt::format("the document ends at token {}, before its start {}", with_commas(end), with_commas(start)));
      if (end > tokens_) {
        fail(fmt::format("the document ends at token {}, but the array holds {} tokens", with_commas(end), with_commas(tokens_)));
      }
      record_begin_.push_back(end);
    }
    fields_[0].clear();
    fields_[1].clear();
    field_ = 0;
    line_has_text_ = false;
  }

  const InputFile& csv_;
  std::int64_t tokens_;
  std::vector<std::int64_t> record_begin_{0};
  std::array<std::string, 2> fields_;  // start and end
  std::size_t field_ = 0;
  bool quoted_ = false, line_has_text_ = false;
  std::int64_t line_ = 1, first_line_ = 1;  // of the byte, of the record
};

}  // namespace

std::vector<std::int64_t> read_document_csv(const InputFile& csv, std::int64_t tokens) {
  ByteStream stream(csv.path, csv.name);
  DocumentCsv documents(csv, tokens);
  std::vector<std::byte> buffer(64 << 10);
  while (const std::size_t bytes = stream.read(buffer)) {
    for (const std::byte c : std::span(buffer).first(bytes)) documents.take(static_cast<char>(c));
  }
  return documents.finish();
}

}  // namespace shardpack
