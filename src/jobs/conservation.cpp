#include "jobs/conservation.h"

#include <fmt/format.h>

#include "base/wide.h"
#include "shardpack/error.h"

namespace shardpack {

namespace {

void require(bool holds, std::string_view excuse, std::string_view what) {
  if (holds) return;
  if (!excuse.empty()) throw Error(ErrorCode::bad_data, excuse);
  throw Error(ErrorCode::internal, fmt::format("{}; if no input was changed meanwhile, please report it", what));
}

}  // namespace

void check_equal_sums(const Fingerprint& before, const Fingerprint& after, std::string_view excuse) {
  require(before == after, excuse, "the written tokens are not the tokens that were scanned");
}

void check_conservation(const Manifest& manifest, std::string_view excuse) {
  Int128 sequences = manifest.sequences, tokens = manifest.tokens, loss_tokens = manifest.loss_tokens;
  for (std::size_t cause = 0; cause < manifest.removed.size(); ++cause) {
    if (cause == static_cast<std::size_t>(RemovalCause::padding)) continue;  // was never part of the source tokens
    if (cause != static_cast<std::size_t>(RemovalCause::truncated)) sequences += manifest.removed[cause].sequences;
    tokens += manifest.removed[cause].tokens;
    loss_tokens += manifest.removed[cause].loss_tokens;
  }
  require(sequences == manifest.source_sequences, excuse, "source sequences differ from packed plus removed ones");
  require(tokens == Int128{manifest.source_tokens} + manifest.added_bos + manifest.added_eos, excuse,
          "source plus added tokens differ from packed plus removed ones");
  if (manifest.holds_tokens())  // else no token was read a second time
    check_equal_sums(manifest.source_fingerprint, *manifest.packed_fingerprint + *manifest.removed_fingerprint, excuse);
  require(loss_tokens == manifest.source_loss_tokens, excuse, "source loss tokens differ from packed plus removed ones");
}

}  // namespace shardpack
