"""BERT pre-training data as the usual preparation makes it, and a packed row of it as the reference packers lay it out: one loop
over the sequences of the row, which knows nothing of shardpack but which sequences share a row. Needs no packages."""
import collections
import json
import random

from preset_oracle import npy

ROW = 64
Words = collections.namedtuple("Words", "cls sep mask first last")

FIELDS = ("input_ids", "input_mask", "token_type_ids", "position_ids", "masked_lm_positions", "masked_lm_ids",
          "masked_lm_weights", "next_sentence_positions", "next_sentence_labels", "next_sentence_weights")


def make_records(count, seed, longest=ROW, shortest=5, words=Words(101, 102, 103, 1000, 30000)):
    """As the usual preparation makes them: [CLS] a [SEP] b [SEP], 15 % of the tokens masked, positions ascending."""
    draw = random.Random(seed)
    records = []
    for _ in range(count):
        length = draw.choice([shortest, longest, draw.randint(shortest, longest), draw.randint(shortest, longest)])
        ids = [words.cls] + [draw.randint(words.first, words.last) for _ in range(length - 2)] + [words.sep]
        middle = draw.randint(2, length - 2)
        ids[middle] = words.sep
        candidates = [i for i, token in enumerate(ids) if token not in (words.cls, words.sep)]
        masked = sorted(draw.sample(candidates, min(len(candidates), max(1, round(0.15 * length)))))
        original = [ids[i] for i in masked]
        for i in masked:
            ids[i] = draw.choice([words.mask] * 8 + [ids[i], draw.randint(words.first, words.last)])
        records.append({
            "input_ids": ids,
            "token_type_ids": [int(i > middle) for i in range(length)],
            "masked_lm_positions": masked,
            "masked_lm_ids": original,
            "next_sentence_labels": draw.randint(0, 1),
        })
    return records


def load(path):
    """A list of the values, or of rows of them."""
    values, shape = npy(path)
    return values if len(shape) == 1 else [values[row * shape[1]:(row + 1) * shape[1]] for row in range(shape[0])]


def shards_of(out):
    """For each shard of a native or a hidden folder: rows of (record, first token, tokens, added)."""
    hidden = out / ".shardpack"
    folder = hidden if hidden.exists() else out
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["shards"]:
        shard = folder / entry["folder"]
        offsets, lengths, source = (load(shard / f"{name}.npy") for name in ("row_offsets", "seq_lengths", "seq_source"))
        path = shard / "seq_added.npy"
        added = load(path) if path.exists() else [0] * len(lengths)
        rows = [[(source[s][1], source[s][2], lengths[s] - (added[s] & 1) - (added[s] >> 1), added[s])
                 for s in range(offsets[row], offsets[row + 1])] for row in range(entry["rows"])]
        yield manifest, entry, shard, rows


def cut(record, first, tokens):
    """What is left of a record when only these tokens are."""
    kept = [i for i, place in enumerate(record["masked_lm_positions"]) if first <= place < first + tokens]
    return {
        **record, "input_ids": record["input_ids"][first:first + tokens],
        "token_type_ids": record["token_type_ids"][first:first + tokens],
        "masked_lm_positions": [record["masked_lm_positions"][i] - first for i in kept],
        "masked_lm_ids": [record["masked_lm_ids"][i] for i in kept],
    }


def reference_row(members, width, depth):
    """One packed row by the reference: fields of the sequences one after the other, numbered from 1, filled up with 0."""
    fields = collections.defaultdict(list)
    offset = 0
    for number, record in enumerate(members, 1):
        length = len(record["input_ids"])
        fields["input_ids"] += record["input_ids"]
        fields["input_mask"] += [number] * length
        fields["token_type_ids"] += record["token_type_ids"]
        fields["position_ids"] += list(range(length))
        fields["masked_lm_positions"] += [place + offset for place in record["masked_lm_positions"]]
        fields["masked_lm_ids"] += record["masked_lm_ids"]
        fields["masked_lm_weights"] += [number] * len(record["masked_lm_positions"])
        fields["next_sentence_positions"].append(offset)
        fields["next_sentence_labels"].append(record["next_sentence_labels"])
        fields["next_sentence_weights"].append(number)
        offset += length
    widths = {"masked": width, "next_s": depth}
    return {name: values + [0] * (widths.get(name[:6], ROW) - len(values)) for name, values in fields.items()}
