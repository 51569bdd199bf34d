#!/usr/bin/env python3
"""What users of packed data have hit elsewhere, on the very inputs that showed it: tests/cases.md says which case is which.
Arrow and Parquet need pyarrow; everything else is read with the standard library. Usage: cases_test.py SHARDPACK [CASE ...]"""
import json
import pathlib
import random
import struct
import sys
import tempfile

from preset_oracle import NONE, npy, run, write_jsonl

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

TOOL = sys.argv[1]
EOS = 2


# ---- packing and reading -------------------------------------------------------------------------------------------------------

class Packed:
    """`records` (lists of ids, or dicts) packed into rows of `length` as NumPy arrays: rows as lists of segments' ids."""

    def __init__(self, work, records, length, *options):
        out = pack(work, records, length, *options)
        self.manifest = json.loads((out / "manifest.json").read_text())
        self.rows, self.slots, self.sources, self.segment_ids, self.columns = [], [], [], [], {}
        for shard in self.manifest["shards"]:
            here = out / shard["folder"]
            values = {path.stem: npy(path)[0] for path in here.glob("*.npy")}
            offsets, lengths = values["row_offsets"], values["seq_lengths"]
            slots = values.get("seq_slots", lengths)
            assert len(slots) == len(lengths) == offsets[-1]
            for row, (begin, end) in enumerate(zip(offsets, offsets[1:])):
                place, segments = row * length, []
                for s in range(begin, end):
                    segments.append(values["input_ids"][place:place + lengths[s]])
                    place += slots[s]
                assert place <= (row + 1) * length
                self.rows.append(segments)
            self.slots += slots if "seq_slots" in values else []
            self.sources += [tuple(values["seq_source"][3 * s:3 * s + 3]) for s in range(len(lengths))]
            self.segment_ids += values["segment_ids"]
            for name, column in values.items():
                self.columns[name] = self.columns.get(name, []) + column

    def sequences(self):
        """Of all rows, in the sources' order."""
        segments = [ids for row in self.rows for ids in row]
        return [ids for _, ids in sorted(zip(self.sources, segments))]

    def removed(self, cause, what="tokens"):
        return self.manifest["removed"][cause][what]


def pack(work, records, length, *options, expect=0, name=None):
    """The output folder; of a run that must fail, what it says."""
    number = len(list(work.iterdir()))
    if not isinstance(records, pathlib.Path):
        source = work / f"in{number}.jsonl"
        write_jsonl(source, [record if isinstance(record, dict) else {"input_ids": record} for record in records])
        records = source
    out = work / f"out{number}"
    done = run(TOOL, "pack", records, "-L", length, "-o", out, "-q", *options, expect=expect)
    if expect != 0:
        assert not out.exists()
        return done.stderr
    return out


def refused(work, records, length, *options, expect=3):
    return pack(work, records, length, *options, expect=expect)


def rows_for(work, preset, records, length, *options):
    """The rows that a trainer reads, as dicts."""
    out = pack(work, records, length, "--for", preset, "--as", "parquet", *options)
    return [row for path in sorted(out.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def of_lengths(*lengths):
    """Sequences of these lengths, no two tokens equal."""
    records, begin = [], 3
    for n in lengths:
        records.append(list(range(begin, begin + n)))
        begin += n
    return records


# ---- tokens lost, duplicated or over the cap -----------------------------------------------------------------------------------

def one_stream_keeps_its_content(work):
    """1: counts matched while a batch was read twice. Six rows of two, in batches of three, sliced too."""
    records = [[n, n + 1] for n in range(1, 13, 2)]
    packed = Packed(work, records, 4, "--packer", "concat", "--order", "input")
    assert [sum(row, []) for row in packed.rows] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    if pa:
        kind = pa.list_(pa.int64())
        table = pa.Table.from_batches([pa.record_batch([pa.array([[0], [0, 0], *part], kind).slice(2)], ["input_ids"])
                                       for part in (records[:3], records[3:])])
        with pa.OSFile(str(work / "sliced.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        again = Packed(work, work / "sliced.arrow", 4, "--packer", "concat", "--order", "input")
        assert again.rows == packed.rows


def overlong_is_a_choice(work):
    """2, 3, 7, 8, 9, 14, 20, 21: nothing is cut, split or dropped that was not asked for, and what is says how much."""
    for lengths, cap in (((4, 2, 3, 1), 3), ((2, 4, 5, 1), 1), ((13, 11), 10), ((10, 65), 64), ((21,), 20), ((9, 1), 8)):
        said = refused(work, of_lengths(*lengths), cap)
        assert f"{sum(n > cap for n in lengths)} of {len(lengths)}" in said and "--overlong" in said, said
        for packer in ("auto", "ffd", "concat", "sequential"):
            more = () if packer == "concat" else ("--packer", packer)
            over = sum(max(0, n - cap) for n in lengths)
            cut = Packed(work, of_lengths(*lengths), cap, "--overlong", "truncate", *more)
            assert cut.sequences() == [ids[:cap] for ids in of_lengths(*lengths)] and cut.removed("truncated") == over
            assert max(len(ids) for ids in cut.sequences()) == cap
            dropped = Packed(work, of_lengths(*lengths), cap, "--overlong", "drop", *more)
            assert dropped.sequences() == [ids for ids in of_lengths(*lengths) if len(ids) <= cap]
            assert dropped.removed("dropped") == sum(n for n in lengths if n > cap)
    split = Packed(work, of_lengths(13, 11), 10, "--overlong", "split")
    assert sum(split.sequences(), []) == sum(of_lengths(13, 11), [])
    assert sorted(first for _, _, first in split.sources) == [0, 0, 10, 10]  # which pieces are tails is on record
    assert Packed(work, of_lengths(20), 20).rows == [of_lengths(20)]
    edge = Packed(work, of_lengths(63, 64, 65, 192), 64, "--overlong", "split")
    assert sorted(map(len, edge.sequences())) == [1, 63, 64, 64, 64, 64, 64]


def empty_records_change_nothing(work):
    """4, 5, 36, 90: a record without tokens moves no offset and is no segment; nothing but such records is a valid output."""
    with_empty = Packed(work, [[3, 4, 5, 6, 7], [], [8, 9, 10, 11, 12, 13, 14]], 4, "--overlong", "split")
    without = Packed(work, [[3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14]], 4, "--overlong", "split")
    assert with_empty.rows == without.rows and with_empty.removed("empty", "sequences") == 1
    assert all(ids for row in with_empty.rows for ids in row)
    cut = Packed(work, of_lengths(6, 0, 1), 4, "--overlong", "truncate")
    assert sorted(map(len, cut.sequences())) == [1, 4]
    assert Packed(work, [[], []], 4).rows == []
    if pa:
        pq.write_table(pa.table({"input_ids": pa.array([[], []], pa.list_(pa.int64()))}), work / "empty.parquet")
        for preset, container in (("hf", "arrow"), ("hf", "parquet"), ("trl", "parquet")):
            out = pack(work, work / "empty.parquet", 4, "--for", preset, "--as", container)
            if container == "parquet":
                table = pq.read_table(next(out.glob("*.parquet")))
                assert table.num_rows == 0 and pa.types.is_list(table.schema.field("input_ids").type)


def small_and_uneven_totals(work):
    """11, 12, 18, 19, 89: the last row, part of a row and the last sequence stay; a row never holds more than its slots."""
    assert Packed(work, of_lengths(3, 4), 64).rows[0] in (of_lengths(3, 4), of_lengths(3, 4)[::-1])
    assert len(Packed(work, of_lengths(3, 3, 3, 3), 6).rows) == 2
    eight = Packed(work, of_lengths(*[7] * 8), 8)
    assert len(eight.rows) == 8 and all(len(row) == 1 for row in eight.rows)
    for cap, rows in ((4, 3), (64, 1)):
        packed = Packed(work, of_lengths(3, 4, 2), cap, "--packer", "concat", "--order", "input", "--overlong", "split")
        assert sum(sum(packed.rows, []), []) == sum(of_lengths(3, 4, 2), []) and len(packed.rows) == rows


def noisy_sums_stay_below_the_cap(work):
    """93: 5,000 lengths of 16 to 2,048 in rows of 4,096."""
    draw = random.Random(1)
    packed = Packed(work, [[7] * draw.randint(16, 2048) for _ in range(5000)], 4096)
    assert max(sum(map(len, row)) for row in packed.rows) <= 4096 and sum(map(len, packed.rows)) == 5000


# ---- boundaries, masks, positions ----------------------------------------------------------------------------------------------

def eos_inside_is_no_boundary(work):
    """24, 80: every turn of a chat ends in EOS; boundaries come from lengths."""
    chat = [5, EOS, 6, EOS, 7, EOS]
    packed = Packed(work, [chat, [8, EOS]], 8, "--eos-id", EOS)
    assert sorted(map(len, packed.sequences())) == [2, 6] and packed.sequences()[0] == chat
    if pa:
        (row,) = rows_for(work, "hf", [chat, [8, EOS]], 8, "--eos-id", EOS)
        assert sorted(row["position_ids"]) == sorted([0, 1, 2, 3, 4, 5, 0, 1])
        (row,) = rows_for(work, "trl", [chat, [8, EOS]], 8, "--eos-id", EOS)
        assert sorted(row["seq_lengths"]) == [2, 6]


def one_sequence_has_boundaries_too(work):
    """29, 30, 31, 37: a row of a single sequence, full or not, states its length; padding is marked and no sequence."""
    for n in (64, 40):
        packed = Packed(work, of_lengths(n), 64)
        assert packed.columns["seq_lengths"] == [n] and packed.columns["row_offsets"] == [0, 1]
        assert packed.segment_ids == [1] * n + [0] * (64 - n)
        if not pa:
            continue
        assert rows_for(work, "trl", of_lengths(n), 64)[0]["seq_lengths"] == [n]
        row = rows_for(work, "torchtune", of_lengths(n), 64)[0]
        assert row["seq_lens"] == ([64] if n == 64 else [40, 24]) and row["labels"][n - 1:] == [NONE] * (65 - n)
        row = rows_for(work, "bridge", of_lengths(n), 64, "--eos-id", EOS)[0]
        assert row["seq_start_id"] == [0] and len(row["input_ids"]) == n


def true_and_padded_lengths(work):
    """32, 33, 81, 83: both are there, equally many, where they differ; the multiple is on record."""
    packed = Packed(work, of_lengths(3, 2, 4), 12, "--segment-multiple", 4)
    assert sorted(packed.columns["seq_lengths"]) == [2, 3, 4] and packed.slots == [4, 4, 4]
    assert packed.manifest["plan"]["segment_multiple"] == 4
    assert packed.sequences() == of_lengths(3, 2, 4)
    assert Packed(work, of_lengths(3, 2, 4), 12, "--cp", 2).manifest["plan"]["segment_multiple"] == 4
    assert Packed(work, of_lengths(3, 2, 4), 12).slots == []


def the_cap_counts_what_is_said(work):
    """34, 97: three documents of 5 in rows of 12: Bridge's collator makes 4 targets of each, and three fit; elsewhere two do. A
    stored length is never rounded up behind one's back: files that cannot say where gaps are refuse a multiple."""
    assert len(Packed(work, of_lengths(5, 5, 5), 12).rows) == 2
    assert "slots" not in refused(work, of_lengths(17), 24, "--for", "bridge", "--eos-id", EOS, "--segment-multiple", 8, expect=2)
    if pa:
        (row,) = rows_for(work, "bridge", of_lengths(5, 5, 5), 12, "--eos-id", EOS)
        assert row["seq_start_id"] == [0, 5, 10] and len(row["input_ids"]) == 15
        assert len(rows_for(work, "trl", of_lengths(5, 5, 5), 12)) == 2


def many_short_documents(work):
    """41: rows of 32,768 tokens in documents of 16 carry lengths, not masks of rows squared."""
    out = pack(work, of_lengths(*[16] * 4096), 32768, "--id-dtype", "u32")
    assert sum(path.stat().st_size for path in out.rglob("*.npy")) < 16 * 4096 * 12


def numbers_have_their_own_column(work):
    """43, 44: padding is 0 among segment ids, and its token id is on record; a mask of 0 and 1 is never numbered."""
    packed = Packed(work, [[5, 6], [7, 8]], 5, "--pad-id", 9)
    assert packed.segment_ids == [1, 1, 2, 2, 0] and packed.manifest["ids"]["pad_id"] == 9
    if pa:
        (row,) = rows_for(work, "mlm", [[5, 6], [7, 8]], 5)
        assert row["segment_ids"] == [1, 1, 2, 2, 0] and "attention_mask" not in row
        for preset in ("hf", "trl", "axolotl"):
            assert "attention_mask" not in rows_for(work, preset, [[5, 6], [7, 8]], 5)[0]


# ---- labels and loss weights ---------------------------------------------------------------------------------------------------

def labels_do_not_cross_boundaries(work):
    """45: documents [a b] [c d]: b does not learn c."""
    records = [[11, 12], [21, 22]]
    if pa:
        (row,) = rows_for(work, "torchtune", records, 4)
        assert row["labels"] in ([12, NONE, 22, NONE], [22, NONE, 12, NONE])
        for preset in ("hf", "axolotl"):
            (row,) = rows_for(work, preset, records, 4)
            assert [row["labels"][i] for i in (0, 2)] == [NONE, NONE] and row["labels"][1] == row["input_ids"][1]
        (row,) = rows_for(work, "maxtext", records, 4)
        assert [row["targets_segmentation"][i] for i in (1, 3)] == [0, 0]


def the_first_answer_token_is_learnt(work):
    """47: a prompt of 3 and an answer of 2; the token before the answer learns its first, wherever the trainer shifts."""
    labelled = [{"input_ids": [11, 12, 13, 14, 15], "labels": [NONE, NONE, NONE, 14, 15]}]
    masked = [{"input_ids": [11, 12, 13, 14, 15], "loss_mask": [0, 0, 0, 1, 1]}]
    for records in (labelled, masked) if pa else ():
        assert rows_for(work, "hf", records, 5)[0]["labels"] == [NONE, NONE, NONE, 14, 15]
        assert rows_for(work, "trl", records, 5)[0]["labels"] == [NONE, NONE, NONE, 14, 15]
        assert rows_for(work, "torchtune", records, 5)[0]["labels"] == [NONE, NONE, 14, 15, NONE]
        assert rows_for(work, "bridge", records, 5, "--eos-id", EOS)[0]["loss_mask"] == [0, 0, 1, 1, 0]
        assert rows_for(work, "maxtext", records, 5)[0]["targets_segmentation"] == [0, 0, 1, 1, 0]


def eos_at_the_true_end_alone(work):
    """48: 265 tokens in pieces of 32: EOS ends the last piece, and no piece is longer than the row."""
    packed = Packed(work, of_lengths(265), 32, "--overlong", "split", "--append-eos", "--eos-id", EOS)
    pieces = packed.sequences()
    assert [ids[-1] == EOS for ids in pieces] == [False] * (len(pieces) - 1) + [True]
    assert max(map(len, pieces)) == 32 and sum(pieces, []) == of_lengths(265)[0] + [EOS]
    assert packed.manifest["added"]["eos"] == 1


def padding_and_last_tokens_weigh_nothing(work):
    """49: a short document in a long row."""
    for preset, column, none in (("torchtune", "labels", NONE), ("maxtext", "targets_segmentation", 0)) if pa else ():
        (row,) = rows_for(work, preset, of_lengths(3), 8)
        assert [value != none for value in row[column]] == [True, True] + [False] * 6
    if pa:
        (row,) = rows_for(work, "bridge", of_lengths(3), 8, "--eos-id", EOS)
        assert row["loss_mask"] == [1, 1, 0]
    assert "--seq-length" in refused(work, of_lengths(3), 0, expect=2)
    assert all(len(row) == 1 for row in Packed(work, of_lengths(1, 1, 1), 8, "-K", 1).rows)


def labels_of_whole_documents(work):
    """50: a scalar column named labels is carried by sequence, and takes no part in the loss."""
    records = [{"input_ids": [3, 4, 5], "labels": 1}, {"input_ids": [6, 7], "labels": 0}]
    packed = Packed(work, records, 8)
    (column,) = packed.manifest["columns"]
    assert (column["name"], column["per"]) == ("labels", "sequence")
    assert [packed.columns["labels"][k] for k in sorted(range(2), key=lambda k: packed.sources[k])] == [1, 0]
    if pa:
        (row,) = rows_for(work, "hf", records, 8)
        assert row["labels"].count(NONE) == 8 - 3  # the ids are the labels, but for two first tokens and padding


def nothing_to_learn_takes_no_slots(work):
    """52: sequences whose labels are all -100 are left out when asked to, and counted."""
    records = [{"input_ids": [3, 4], "labels": [NONE, NONE]}, {"input_ids": [5, 6, 7], "labels": [NONE, 6, 7]}]
    assert len(Packed(work, records, 8).sequences()) == 2
    packed = Packed(work, records, 8, "--drop-unlabeled")
    assert packed.sequences() == [[5, 6, 7]] and packed.removed("unlabeled", "sequences") == 1


def a_true_eos_is_no_padding(work):
    """53: a document that ends in EOS twice, and one of nothing else, where padding is EOS too."""
    records = [[11, EOS, EOS], [EOS, EOS]]
    assert Packed(work, records, 8, "--pad-id", EOS, "--eos-id", EOS).sequences() == records
    if pa:
        (row,) = rows_for(work, "bridge", records, 8, "--eos-id", EOS)
        assert row["seq_start_id"] in ([0, 3], [0, 2]) and sorted(row["input_ids"]) == [EOS] * 4 + [11]
        assert sum(row["loss_mask"]) == 3


def shifted_labels_are_named(work):
    """94: labels [2, 3, -100] of tokens [1, 2, 3] are those of the next token: said once, they come out right everywhere, are
    verified against the source, and go back as they were. 0 is a token like any other."""
    records = [{"input_ids": [1, 2, 3], "labels": [2, 3, NONE]}, {"input_ids": [4, 0, 5], "labels": [0, NONE, NONE]}]
    choice = ("--columns", "labels:token:target-shifted")
    assert Packed(work, records, 6, *choice).manifest["loss"]["tokens"] == 3
    for preset, expected in (("hf", ([NONE, 2, 3], [NONE, 0, NONE])), ("torchtune", ([2, 3, NONE], [0, NONE, NONE]))) if pa else ():
        out = pack(work, records, 6, "--for", preset, "--as", "parquet", *choice)
        (row,) = pq.read_table(next(out.glob("*.parquet"))).to_pylist()
        assert row["labels"] in (expected[0] + expected[1], expected[1] + expected[0]), (preset, row)
        run(TOOL, "verify", out, "-q")
        run(TOOL, "unpack", out, "-o", work / f"back-{preset}", "-q")
        back = [json.loads(line) for line in next((work / f"back-{preset}").glob("*.jsonl")).read_text().splitlines()]
        assert back == records


# ---- types, columns, groups ----------------------------------------------------------------------------------------------------

def ids_never_wrap(work):
    """61: 65,536 and 119,546 do not fit 16 bits: stored in 32, refused in 16."""
    packed = Packed(work, [[65536, 119546, 3]], 4)
    assert packed.sequences() == [[65536, 119546, 3]] and packed.manifest["ids"]["dtype"] == "u32"
    assert "119,546" in refused(work, [[65536, 119546, 3]], 4, "--id-dtype", "u16")
    assert Packed(work, [[65535]], 4).manifest["ids"]["dtype"] == "u16"


def raw_ids_of_another_width_show(work):
    """62: 32-bit ids in a file without a header: the width is asked for, and another one gives twice the tokens."""
    raw = work / "ids.raw"
    raw.write_bytes(struct.pack("<6I", 11, 12, EOS, 13, 14, EOS))
    options = ("--format", "raw", "--eos-id", EOS)
    assert Packed(work, raw, 4, *options, "--dtype", "u32").sequences() == [[11, 12, EOS], [13, 14, EOS]]
    wrong = json.loads(run(TOOL, "scan", raw, *options, "--dtype", "u16", "--json").stdout)
    assert wrong["tokens"] == 12 and "dtype" in run(TOOL, "scan", raw, "--format", "raw", "--eos-id", EOS, expect=2).stderr


def pairs_and_keys(work):
    """75: chosen and rejected share a row; rows never mix two values of a key."""
    records = [{"input_ids": ids, "topic": n // 2 % 2} for n, ids in enumerate(of_lengths(3, 4, 2, 5, 1, 4, 3, 3))]
    packed = Packed(work, records, 8, "--keep-together", 2)
    of_row = [row for row, segments in enumerate(packed.rows) for _ in segments]
    row_of = {record: of_row[k] for k, (_, record, _) in enumerate(packed.sources)}
    assert all(row_of[n] == row_of[n + 1] for n in range(0, 8, 2))
    packed = Packed(work, records, 8, "--group-column", "topic")
    of_row = [row for row, segments in enumerate(packed.rows) for _ in segments]
    topics = [set() for _ in packed.rows]
    for k, (_, record, _) in enumerate(packed.sources):
        topics[of_row[k]].add(records[record]["topic"])
    assert all(len(one) == 1 for one in topics)


def tokens_alone_are_enough(work):
    """86: nothing but ids, and labels where the trainer wants them."""
    assert Packed(work, [[1, 2, 3]], 4).sequences() == [[1, 2, 3]]
    for preset in ("hf", "trl", "axolotl", "torchtune", "maxtext") if pa else ():
        assert len(rows_for(work, preset, [[1, 2, 3]], 4)) == 1


CASES = [
    one_stream_keeps_its_content, overlong_is_a_choice, empty_records_change_nothing, small_and_uneven_totals,
    noisy_sums_stay_below_the_cap, eos_inside_is_no_boundary, one_sequence_has_boundaries_too, true_and_padded_lengths,
    the_cap_counts_what_is_said, many_short_documents, numbers_have_their_own_column, labels_do_not_cross_boundaries,
    the_first_answer_token_is_learnt, eos_at_the_true_end_alone, padding_and_last_tokens_weigh_nothing,
    labels_of_whole_documents, nothing_to_learn_takes_no_slots, a_true_eos_is_no_padding, shifted_labels_are_named,
    ids_never_wrap, raw_ids_of_another_width_show, pairs_and_keys, tokens_alone_are_enough,
]


def main():
    if pa is None:
        print("without pyarrow: what trainers read is not looked at")
    for case in CASES:
        if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            case(pathlib.Path(folder))
        print(f"{case.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
