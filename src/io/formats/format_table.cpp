// The one table of input formats, and how a file finds its row.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/nearest.h"
#include "base/units.h"
#include "io/byte_stream.h"
#include "io/formats/arrow_content.h"
#include "io/formats/foreign.h"
#include "io/formats/format.h"
#include "io/formats/jsonl.h"
#include "io/formats/readers.h"
#include "io/formats/sidecars.h"
#include "io/npy.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

constexpr std::size_t kHeadBytes = 4096;
constexpr std::int64_t kTooFewBytes = 8;  // to recognise any content by
constexpr std::size_t kEnoughText = 32;   // bytes; ids without a single control character among them are rare from here on

bool only_by_name(const FormatProbe&) { return false; }

/// One headerless file in 256 begins with '{'; none of them goes on as JSON.
bool matches_json_lines(const FormatProbe& probe) {
  const bool plausible = probe.file.path == "-" || probe.file.name.find("json") != std::string::npos ||
                         compression_of(probe.head) != Compression::none || is_textual(probe.head);
  return plausible && matches_jsonl(probe);
}

// Content that is hard to mistake first, then sidecars; JSON lines before raw files, which any file could be.
constexpr std::array kFormats{
    Format{{"llmc", "llm.c and modded-nanogpt .bin", "the end-of-text id that begins each document"}, matches_llmc, open_llmc},
    Format{{"hf", "Hugging Face save_to_disk folder", "rows"}, matches_hf, open_hf, true},
    Format{{"arrow", "Arrow IPC stream or file, Feather", "rows"}, matches_arrow, open_arrow, true},
    Format{{"parquet", "Parquet", "rows"}, matches_parquet, open_parquet, true},
    Format{
        {"npy", "NPY array of integers", "rows, a sidecar X.lengths.npy or X.offsets.npy, or --eos-id"}, matches_npy, open_npy},
    Format{
        {"megatron", "Megatron X.bin + X.idx", "documents or sequences of the index (--unit)"}, matches_megatron, open_megatron},
    Format{{"olmo", "OLMo and dolma headerless X.npy + X.csv.gz", "the .csv.gz, or --eos-id"}, matches_olmo, open_olmo},
    Format{{"datatrove", "datatrove F.ds + F.ds.index", "the index, or --eos-id"}, matches_datatrove, open_datatrove},
    Format{{"jsonl", "JSON lines, plain, .gz or .zst", "lines"}, matches_json_lines, open_jsonl, true},
    Format{{"nanogpt", "nanoGPT .bin: headerless, 16 bits", "--eos-id, or a sidecar X.lengths.npy or X.offsets.npy"},
           only_by_name,
           open_nanogpt},
    Format{{"raw", "headerless ids of --dtype", "--eos-id, or a sidecar X.lengths.npy or X.offsets.npy"}, matches_raw, open_raw},
};

const Format& format_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Format& format : kFormats) {
    if (format.summary.name == name) return format;
    names.emplace_back(format.summary.name);
  }
  const std::string near = nearest(name, names);
  throw Error(ErrorCode::usage, fmt::format("--format {}: {}the formats are {}", name,
                                            near.empty() ? "" : fmt::format("did you mean {}? ", near), fmt::join(names, ", ")));
}

bool is_headerless(const Format& format) { return format.summary.name == "raw" || format.summary.name == "nanogpt"; }

/// Read as raw ids, the header of these would become tokens. All are long enough never to be ids by chance.
void refuse_header_as_tokens(const FormatProbe& probe) {
  const bool npy = probe.head.starts_with(kNpyMagic);
  if (npy || matches_llmc(probe)) {
    throw Error(ErrorCode::usage,
                fmt::format("it has the header of {}, which would be read as tokens; leave --format out",
                            npy ? "an NPY file" : "an llm.c file"),
                probe.file.name);
  }
}

[[noreturn]] void fail_unidentified(const FormatProbe& probe) {
  if (probe.head.size() >= kEnoughText && is_textual(probe.head)) {
    throw Error(ErrorCode::bad_data,
                "holds text, not token ids: tokenize it first, for instance to JSON lines with input_ids, a sequence a line",
                probe.file.name);
  }
  if (probe.bytes < kTooFewBytes) {
    throw Error(ErrorCode::bad_data,
                fmt::format("{} bytes are too few to know a format by: cut short? (for headerless ids give --dtype and --eos-id)",
                            probe.bytes),
                probe.file.name, fmt::format("byte {}", probe.bytes));
  }
  const std::string_view what = probe.file.path.ends_with(".npy")
                                    ? "a .npy file without an NPY header, as OLMo and dolma write them, but without its .csv.gz"
                                    : "nothing in it says how its token ids are stored";
  throw Error(ErrorCode::usage,
              fmt::format("{}; for headerless ids give --dtype u16 (or u8, u32, i32, i64), and --eos-id N or a sidecar "
                          "X.lengths.npy or X.offsets.npy, X being its name without suffix",
                          what),
              probe.file.name);
}

/// The bytes that detection sees, and how many there are in all.
struct Head {
  std::string bytes;
  std::int64_t file_bytes = 0;
};
Head read_head(const InputFile& file) {
  Head head;
  if (file.path == "-") {
    head.bytes = peek_standard_input(kHeadBytes);
    head.file_bytes = static_cast<std::int64_t>(head.bytes.size());
    return head;
  }
  const File opened(file.path, File::Mode::read, file.name);
  head.file_bytes = opened.size();
  head.bytes.resize(kHeadBytes);
  head.bytes.resize(opened.read_some_at(0, std::as_writable_bytes(std::span(head.bytes))));
  return head;
}

const Format& detect(const FormatProbe& probe, const ReadOptions& options) {
  const Format& raw = kFormats.back();
  if (probe.bytes == 0 && options.dtype) return raw;  // no ids at all, as a headerless file may well hold
  for (const Format& format : kFormats) {
    if (!is_headerless(format) && format.matches(probe)) return format;
  }
  if (const std::string reason = refusal(probe); !reason.empty()) throw Error(ErrorCode::bad_data, reason, probe.file.name);
  if (options.dtype || raw.matches(probe)) return raw;
  fail_unidentified(probe);
}

}  // namespace

bool FormatProbe::beside(std::string_view suffix) const {
  std::error_code ignored;
  return std::filesystem::exists(file.path + std::string(suffix), ignored);
}

bool FormatProbe::replaced(std::string_view suffix, std::string_view by) const {
  if (!file.path.ends_with(suffix)) return false;
  std::error_code ignored;
  return std::filesystem::exists(file.path.substr(0, file.path.size() - suffix.size()).append(by), ignored);
}

std::span<const Format> input_formats() { return kFormats; }

std::span<const FormatSummary> input_format_summaries() {
  static const std::vector<FormatSummary> summaries = [] {
    std::vector<FormatSummary> result;
    result.reserve(std::size(kFormats));
    for (const Format& format : kFormats) result.push_back(format.summary);
    return result;
  }();
  return summaries;
}

const Format& detect_format(const InputFile& file, const ReadOptions& options) {
  const Format* const named = options.format.empty() ? nullptr : &format_named(options.format);
  if (named == nullptr) {
    if (const std::string missing = missing_data_file_of(file.path); !missing.empty()) {
      throw Error(ErrorCode::io, fmt::format("its data file {} is not there", std::filesystem::path(missing).filename().string()),
                  file.name);
    }
  }
  const Head head = read_head(file);
  const FormatProbe probe{file, head.bytes, head.file_bytes};
  if (named != nullptr && is_headerless(*named)) refuse_header_as_tokens(probe);
  const Format& format = named != nullptr ? *named : detect(probe, options);
  if (file.path == "-" && format.summary.name != "jsonl") {
    throw Error(ErrorCode::usage, "only JSON lines can be read from standard input; give other formats as files", file.name);
  }
  return format;
}

}  // namespace shardpack
