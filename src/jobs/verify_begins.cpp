#include "jobs/verify_begins.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace shardpack {

std::string begin_fault(std::int64_t begin, const PlacedPiece& piece, const ManifestSource& from, const SequenceSource* source) {
  const std::int64_t ids = from.id_bytes() > 0 ? from.bytes / from.id_bytes() : 0;
  const auto fault = [&](const std::string& what) { return fmt::format("seq_begin is {}: {}", with_commas(begin), what); };
  const bool nowhere = begin == -1,
             possible = begin >= 0 && piece.tokens > 0 && piece.tokens <= ids && begin <= ids - piece.tokens;
  if (!nowhere && !possible) return fault(fmt::format("{} has no {} ids there", from.name, with_commas(piece.tokens)));
  if (source == nullptr) return "";
  const std::int64_t place = source->place_in_file(piece.sequence, piece.first_token, piece.tokens).value_or(-1);
  return begin == place ? "" : fault(fmt::format("its tokens lie at {}", with_commas(place)));
}

void read_in_sources(std::span<const PlacedPiece> pieces, const SequenceSource& source, const FingerprintRecount& recount,
                     RowFacts& facts) {
  std::vector<TokenRequest> requests;
  std::int64_t tokens = 0;
  for (const PlacedPiece& piece : pieces) {
    requests.push_back({piece.sequence, piece.first_token, piece.tokens, tokens});
    tokens += piece.tokens;
  }
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(tokens));
  source.read_block(requests, IdType::u32, ids.data());
  std::span<const std::uint32_t> left(ids);
  for (const PlacedPiece& piece : pieces) {
    const auto own = left.first(static_cast<std::size_t>(piece.tokens));
    left = left.subspan(own.size());
    if (own.empty()) continue;
    const auto [least, greatest] = std::minmax_element(own.begin(), own.end());
    facts.add_ids(*least, *greatest);
    facts.fingerprint += recount.of(piece.sequence, piece.first_token, own);
  }
}

}  // namespace shardpack
