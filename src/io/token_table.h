// The token ids of one file, in as many stretches as the file keeps them in. Every input format is brought to this, with record
// boundaries beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/close_reads.h"
#include "io/file.h"
#include "io/value_table.h"
#include "shardpack/fingerprint.h"
#include "shardpack/group_key.h"
#include "shardpack/item.h"
#include "shardpack/types.h"

namespace shardpack {

struct TokenTable {
  /// Tokens that lie one after the other.
  struct Stretch {
    std::int64_t first = 0;        ///< number of its first token in the table
    std::int64_t begin_bytes = 0;  ///< where that lies in the file
  };

  std::shared_ptr<const File> file;  ///< the data file itself, or the spool that its tokens were decoded into
  std::vector<Stretch> stretches;    ///< ascending by `first`, the first at 0; none without tokens
  std::int64_t tokens = 0;
  IdType type = IdType::u16;
  bool big_endian = false;
  bool decoded = false;  ///< they lie in a spool

  /// Add `count` tokens that lie at `begin_bytes`; they are one stretch with those before where they follow them in the file.
  void append(std::int64_t count, std::int64_t begin_bytes);

  /// How NumPy calls what lies in the data file; "" for decoded ids, and where there are none.
  std::string numpy_type() const;

  /// Where tokens [first, first + count) lie in the data file, in ids from its first byte; nothing where they do not lie there
  /// together.
  std::optional<std::int64_t> place_in_file(std::int64_t first, std::int64_t count) const;

  /// Read tokens [first, first + out.size()) as stored values. \throws Error{bad_data} for a negative id or one above
  /// 2^32 - 1, naming file and token; Error{io}. Thread-safe.
  void read(std::int64_t first, std::span<std::uint32_t> out) const;
  /// The same into 16 bits; an id above 65,535 is Error{bad_data}.
  void read(std::int64_t first, std::span<std::uint16_t> out) const;
  /// The same for many ranges, ascending as a rule, into `ids`. What lies close together in the file is read at once.
  void read(std::span<const TableRange> ranges, std::uint32_t* ids) const;
  void read(std::span<const TableRange> ranges, std::uint16_t* ids) const;

  /// The same from the stored bytes of tokens [first, first + out.size()), at hand already.
  void decode(std::int64_t first, std::span<const std::byte> stored, std::span<std::uint32_t> out) const;

  /// The first of these stored bytes' ids that is negative or above 2^32 - 1, as text: what decode() would throw for.
  struct BadId {
    std::int64_t token = 0;
    std::string value;
  };
  std::optional<BadId> first_bad(std::int64_t first, std::span<const std::byte> stored) const;
};

/// What to say of a value in a column of token ids that is none.
std::string bad_id_message(const std::string& column, std::int64_t index, const std::string& value);

/// What a pass over the tokens finds.
struct TokenFacts {
  std::int64_t id_min = 0, id_max = -1;
  Fingerprint fingerprint;
  std::string hash;  ///< XXH3-128 of the data file followed by its sidecars
};

/// Values of the group column: the number of each record's value, -1 where it has none, and the values by number.
struct GroupColumn {
  std::vector<std::int32_t> of_record;
  std::vector<GroupKey> keys;
};

/// What a format's reader returns for one data file.
struct OpenedShard {
  TokenTable ids;
  std::vector<std::int64_t> record_begin;  ///< tokens; records + 1 entries, the first 0, ascending, the last ids.tokens
  std::string ids_column;                  ///< records with named columns: faults name it and the row; else empty
  std::vector<std::string> files;          ///< paths of the data file and then its sidecars: what `bytes` and `hash` cover
  GroupColumn groups;                      ///< empty without a group column
  std::int64_t null_records = 0;
  RemovedCount padding;                  ///< positions with attention_mask 0, left out of the table
  std::vector<ColumnTable> columns;      ///< carried along, ascending by name
  std::vector<std::string> not_carried;  ///< columns that are not
  std::vector<std::string> warnings;     ///< one line each, for Diagnostics
  /// Set by formats that had to decode every token to find the boundaries; the scan pass reads the others itself.
  std::optional<TokenFacts> facts;
};

}  // namespace shardpack
