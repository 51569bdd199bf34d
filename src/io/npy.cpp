#include "io/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/units.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

// Only headers of structures with thousands of fields are longer; none of those hold token ids.
constexpr std::int64_t kMaxHeaderBytes = 1 << 20;

/// Reader of the Python dict literal that an NPY header is.
class DictReader {
 public:
  DictReader(std::string_view text, std::int64_t text_begin, const std::string& shown)
      : text_(text), text_begin_(text_begin), shown_(shown) {}

  NpyHeader read() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = description();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        fail("each of the keys descr, fortran_order and shape once");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail("nothing after the dictionary");
    if (!descr || !fortran_order || !shape) fail("the keys descr, fortran_order and shape");
    NpyHeader header;
    header.descr = *std::move(descr);
    header.fortran_order = *fortran_order;
    header.shape = *std::move(shape);
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    throw Error(ErrorCode::bad_data, fmt::format("damaged NPY header: expected {}", expected), shown_,
                fmt::format("byte {}", with_commas(text_begin_ + static_cast<std::int64_t>(at_))));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    skip_spaces();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("'{}'", wanted));
  }
  std::string quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a quoted name");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a closing quote");
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  /// A string, or the list of a structured type: kept as text, up to its closing bracket.
  std::string description() {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != '[') return quoted();
    const std::size_t begin = at_;
    int depth = 0;
    do {
      if (at_ == text_.size()) fail("']'");
      depth += text_[at_] == '[';
      depth -= text_[at_] == ']';
      ++at_;
    } while (depth > 0);
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool boolean() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    fail("True or False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!accept(')')) {
      result.push_back(whole_number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }
  std::int64_t whole_number() {
    skip_spaces();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const std::int64_t digit = text_[at_] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) fail("a shape below 2^63");
      value = 10 * value + digit;
      ++at_;
    }
    if (at_ == begin) fail("a whole number from 0");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote (3L, 4L)
    return value;
  }

  std::string_view text_;
  std::int64_t text_begin_;  // bytes, in the file
  const std::string& shown_;
  std::size_t at_ = 0;
};

[[noreturn]] void fail_truncated(std::int64_t file_bytes, const std::string& shown) {
  throw Error(ErrorCode::bad_data, "the NPY header is not complete: the file was cut short", shown,
              fmt::format("byte {}", with_commas(file_bytes)));
}

/// Where the header's text lies, from the first 12 bytes.
struct HeaderExtent {
  std::int64_t text_begin = 0, text_bytes = 0;
};
HeaderExtent header_extent(std::string_view head, std::int64_t file_bytes, const std::string& shown) {
  if (head.substr(0, kNpyMagic.size()) != kNpyMagic) {
    throw Error(ErrorCode::bad_data, "not an NPY file: it does not begin with \\x93NUMPY", shown);
  }
  const auto byte = [&](std::size_t i) { return static_cast<std::int64_t>(static_cast<unsigned char>(head[i])); };
  if (head.size() < 10) fail_truncated(file_bytes, shown);
  const std::int64_t major = byte(6);
  if (major < 1 || major > 3) {
    throw Error(ErrorCode::bad_data, fmt::format("NPY version {}.{}; versions 1.0 to 3.0 are known", major, byte(7)), shown);
  }
  HeaderExtent extent{10, byte(8) | byte(9) << 8};
  if (major > 1) {
    if (head.size() < 12) fail_truncated(file_bytes, shown);
    extent = {12, extent.text_bytes | byte(10) << 16 | byte(11) << 24};
  }
  if (extent.text_begin + extent.text_bytes > file_bytes) fail_truncated(file_bytes, shown);
  if (extent.text_bytes > kMaxHeaderBytes) {
    throw Error(ErrorCode::bad_data,
                fmt::format("an NPY header of {} bytes; arrays of token ids have about 100", with_commas(extent.text_bytes)),
                shown);
  }
  return extent;
}

struct NumberDescr {
  ValueType type;
  bool big_endian;
  bool boolean;  // a byte of 0 or 1
};
std::optional<NumberDescr> number_descr(std::string_view descr) {
  bool big_endian = false;
  if (!descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos) {
    big_endian = descr.front() == '>';
    descr.remove_prefix(1);
  }
  if (descr == "b1") return NumberDescr{ValueType::u8, false, true};
  for (const ValueTypeInfo& candidate : kValueTypes) {
    if (candidate.numpy.substr(1) == descr) return NumberDescr{candidate.type, big_endian && candidate.bytes > 1, false};
  }
  return std::nullopt;
}

}  // namespace

std::int64_t NpyHeader::elements() const {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      throw Error(ErrorCode::bad_data, fmt::format("the NPY shape ({}) has 2^63 elements or more", fmt::join(shape, ", ")));
    }
  }
  return product;
}

NpyHeader parse_npy_header(std::string_view head, std::int64_t file_bytes, const std::string& shown) {
  const HeaderExtent extent = header_extent(head, file_bytes, shown);
  const auto text_begin = static_cast<std::size_t>(extent.text_begin);
  const auto text_bytes = static_cast<std::size_t>(extent.text_bytes);
  if (head.size() < text_begin + text_bytes) fail_truncated(static_cast<std::int64_t>(head.size()), shown);

  NpyHeader header = DictReader(head.substr(text_begin, text_bytes), extent.text_begin, shown).read();
  header.data_begin = extent.text_begin + extent.text_bytes;

  if (const std::optional<NumberDescr> number = number_descr(header.descr)) {
    // Divided, not multiplied: the shape is only a claim, and its bytes may leave 63 bits.
    const std::int64_t bytes = info(number->type).bytes;
    const std::int64_t held = file_bytes - header.data_begin;
    std::int64_t elements = 0;
    try {
      elements = header.elements();
    } catch (const Error& error) {
      throw Error(ErrorCode::bad_data, error.message(), shown);
    }
    if (held % bytes != 0 || held / bytes != elements) {
      throw Error(ErrorCode::bad_data,
                  fmt::format("the header says shape ({}) of {}, {} elements of {} bytes, but {} bytes of data follow; the file "
                              "was cut short or damaged",
                              fmt::join(header.shape, ", "), header.descr, with_commas(elements), bytes, with_commas(held)),
                  shown, fmt::format("byte {}", with_commas(file_bytes)));
    }
  }
  return header;
}

NpyHeader read_npy_header(const File& file) {
  const std::int64_t file_bytes = file.size();
  std::string head(12, '\0');
  head.resize(file.read_some_at(0, std::as_writable_bytes(std::span(head))));
  const HeaderExtent extent = header_extent(head, file_bytes, file.shown());
  head.resize(static_cast<std::size_t>(extent.text_begin + extent.text_bytes));
  file.read_at(0, std::as_writable_bytes(std::span(head)));
  return parse_npy_header(head, file_bytes, file.shown());
}

bool holds_numbers(const NpyHeader& header) { return number_descr(header.descr).has_value(); }

ValueType value_type(const NpyHeader& header, const std::string& shown, bool& big_endian) {
  if (const std::optional<NumberDescr> number = number_descr(header.descr)) {
    big_endian = number->big_endian;
    return number->type;
  }
  return static_cast<ValueType>(integer_type(header, shown, big_endian));
}

IdType integer_type(const NpyHeader& header, const std::string& shown, bool& big_endian) {
  const std::optional<NumberDescr> number = number_descr(header.descr);
  if (number && !number->boolean && number->type <= ValueType::i64) {
    big_endian = number->big_endian;
    return static_cast<IdType>(number->type);  // the same order
  }
  const std::size_t kind_at = header.descr.find_first_not_of("<>|=");
  const char kind = kind_at == std::string::npos ? '\0' : header.descr[kind_at];
  std::string_view holds = "something other than integers";
  if (kind == 'O') holds = "Python objects (pickled), which only Python can read; save integer arrays, or JSON lines instead";
  if (kind == 'f' || kind == 'c') holds = "floating-point numbers; convert them to integers first";
  if (kind == 'b') holds = "booleans";
  if (kind == 'U' || kind == 'S') holds = "text; tokenize it first";
  if (kind == '[' || kind == 'V') holds = "structures; save the token ids as an array of their own";
  throw Error(ErrorCode::bad_data, fmt::format("expected integers, but descr '{}' says the array holds {}", header.descr, holds),
              shown);
}

std::string make_npy_header(std::string_view descr, const std::vector<std::int64_t>& shape) {
  const std::string_view quote = descr.front() == '[' ? "" : "'";  // the list of a structure's fields stands bare
  std::string text = fmt::format("{{'descr': {}{}{}, 'fortran_order': False, 'shape': ({}{}), }}", quote, descr, quote,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t fixed = kNpyMagic.size() + 4;                      // magic, version, length of the text
  const std::size_t total = (fixed + text.size() + 1 + 63) / 64 * 64;  // the text ends in a newline
  text.resize(total - fixed - 1, ' ');
  text.push_back('\n');

  std::string header(kNpyMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace shardpack
