"""Shards written by NumPy, Python's csv, json and gzip, zstd and an independent Megatron writer come out as they went in.

    read_test.py READ_SHARDS_BINARY
"""
import csv
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import megatron_writer

READER = sys.argv[1]
EOS = 11
RANDOM = np.random.RandomState(7)


def sequences(ids, with_eos=False, count=40):
    """Of many lengths, some empty unless a delimiter ends each."""
    result = []
    for length in RANDOM.randint(0, 60, count):
        sequence = [int(i) for i in RANDOM.randint(EOS + 1, ids, length)]
        result.append(sequence + [EOS] if with_eos else sequence)
    return result


def flat(seqs, dtype):
    return np.concatenate([np.asarray(s, dtype) for s in seqs])


def lengths(seqs, dtype):
    return np.array([len(s) for s in seqs], dtype)


def read(*arguments, stdin=subprocess.DEVNULL):
    done = subprocess.run([READER, *map(str, arguments)], stdin=stdin, stdout=subprocess.PIPE, check=True, universal_newlines=True)
    return [[int(i) for i in line.split()] for line in done.stdout.splitlines()]


def refused(expected, *arguments):
    done = subprocess.run([READER, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 1 and expected in done.stderr, (expected, done)


def check_megatron(folder):
    for layout, codes in megatron_writer.CODES.items():
        for dtype in codes:
            if dtype[1] == "f":
                continue
            seqs = sequences(120 if dtype[-1] == "1" else 30_000)
            megatron_writer.write(folder / "m", seqs, dtype, layout=layout)
            assert read(folder / "m.bin") == seqs, (layout, dtype)
    seqs = sequences(50_000)
    megatron_writer.write(folder / "d", seqs, documents=[0, 3, 3, 39, 40])
    joined = [sum(seqs[0:3], []), [], sum(seqs[3:39], []), seqs[39]]
    assert read(folder / "d") == joined
    assert read("--unit", "sequence", folder / "d.idx") == seqs
    megatron_writer.write(folder / "f", [[1.0, 2.0]], "<f4")
    refused("floating-point", folder / "f.bin")
    megatron_writer.write(folder / "stale", seqs, documents=[0, 3, 39])
    refused("document index ends at sequence 39 of 40", folder / "stale.bin")


def check_npy(folder):
    for dtype in ["u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", ">u2", ">i4", ">i8"]:
        rows = RANDOM.randint(0, 100, (9, 13)).astype(dtype)
        np.save(folder / "rows.npy", rows)
        assert read(folder / "rows.npy") == rows.tolist(), dtype
        with open(folder / "v2.npy", "wb") as out:
            np.lib.format.write_array(out, rows, version=(2, 0))
        assert read(folder / "v2.npy") == rows.tolist()
        seqs = sequences(100)
        np.save(folder / "flat.npy", flat(seqs, dtype))
        np.save(folder / "flat.lengths.npy", lengths(seqs, ">i4" if dtype[0] == ">" else "<u2"))
        assert read(folder / "flat.npy") == seqs
    np.save(folder / "off.npy", flat(seqs, "<u2"))
    np.save(folder / "off.offsets.npy", np.concatenate([[0], np.cumsum(lengths(seqs, "<i8"))]))
    assert read(folder / "off.npy") == seqs
    ended = sequences(60_000, with_eos=True)
    np.save(folder / "eos.npy", flat(ended, "<u2"))
    assert read("--eos-id", EOS, folder / "eos.npy") == ended

    np.save(folder / "fortran.npy", np.asfortranarray(rows))
    refused("Fortran", folder / "fortran.npy")
    np.save(folder / "objects.npy", np.array([[1, 2], [3]], dtype=object), allow_pickle=True)
    refused("pickle", folder / "objects.npy")
    np.save(folder / "floats.npy", np.ones((2, 2)))
    refused("floating-point", folder / "floats.npy")
    np.save(folder / "fields.npy", np.zeros(3, [("a", "<i4"), ("b", "<f8")]))
    refused("structures", folder / "fields.npy")
    np.savez(folder / "archive.npz", rows=rows)
    refused("ZIP", folder / "archive.npz")


def check_olmo(folder):
    seqs = sequences(50_000)
    memmap = np.memmap(folder / "o.npy", "<u2", "w+", shape=(sum(map(len, seqs)),))
    memmap[:] = flat(seqs, "<u2")
    memmap.flush()
    ends = np.cumsum(lengths(seqs, "<i8"))
    with gzip.open(folder / "o.csv.gz", "wt", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        for i, (end, seq) in enumerate(zip(ends, seqs)):
            writer.writerow([end - len(seq), end, f'doc "{i}",\nof a café', "src/a.json.gz", i])
    assert read(folder / "o.npy") == seqs


def check_streams(folder):
    seqs = sequences(50_000)
    flat(seqs, "<u2").tofile(folder / "f.ds")
    np.cumsum(lengths(seqs, "<u8")).astype("<u8").tofile(folder / "f.ds.index")
    assert read(folder / "f.ds") == seqs

    ended = sequences(50_000, with_eos=True)
    flat(ended, "<u2").tofile(folder / "raw.bin")
    assert read("--dtype", "u16", "--eos-id", EOS, folder / "raw.bin") == ended
    assert read("--format", "nanogpt", "--eos-id", EOS, folder / "raw.bin") == ended
    refused("--dtype", folder / "raw.bin")

    begun = [[50_256] + seq for seq in sequences(50_000)]
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, sum(map(len, begun))
    (folder / "llmc.bin").write_bytes(header.tobytes() + flat(begun, "<u2").tobytes())
    assert read(folder / "llmc.bin") == begun


def check_json_lines(folder):
    seqs = sequences(2 ** 32)
    # NaN is what Python writes for a missing float; a column that is not read may hold it.
    lines = [json.dumps({"text": "caf\u00e9 \n \"", "score": float("nan"), "input_ids": seq}, ensure_ascii=i % 2 == 0)
             for i, seq in enumerate(seqs)]
    text = "\n".join(lines).encode()
    plain = folder / "x.jsonl"
    plain.write_bytes(text)
    assert read(plain) == seqs
    plain.write_text("\r\n".join(lines), encoding="utf-8-sig", newline="")
    assert read(plain) == seqs

    members = folder / "x.jsonl.gz"
    for begin in range(0, len(text), 1000):  # Python appends a member; lines run across them
        with gzip.open(members, "ab") as out:
            out.write(text[begin:begin + 1000])
    assert read(members) == seqs
    with open(members, "rb") as stdin:
        assert read("-", stdin=stdin) == seqs
    cut = folder / "cut.jsonl.gz"
    cut.write_bytes(members.read_bytes()[:-1])
    refused("the file is cut short", cut)

    if shutil.which("zstd"):
        frames = folder / "x.jsonl.zst"
        with open(frames, "wb") as out:
            for begin in range(0, len(text), 1000):
                out.write(subprocess.run(["zstd", "-q", "-c"], input=text[begin:begin + 1000], stdout=subprocess.PIPE, check=True).stdout)
        assert read(frames) == seqs
    else:
        print("skipped: no zstd tool to write frames with")

    padded = folder / "padded.jsonl"
    rows = np.zeros((len(seqs), 60), "i8")
    mask = np.zeros((len(seqs), 60), "i8")
    for row, seq in enumerate(seqs):
        rows[row, :len(seq)], mask[row, :len(seq)] = seq, 1
    padded.write_text("".join(json.dumps({"attention_mask": m, "input_ids": r}) + "\n" for r, m in zip(rows.tolist(), mask.tolist())))
    assert read(padded) == seqs
    padded.write_text(json.dumps({"input_ids": rows[0].astype(float).tolist()}) + "\n")
    refused("written without a fraction", padded)


with tempfile.TemporaryDirectory() as temporary:
    for check in (check_megatron, check_npy, check_olmo, check_streams, check_json_lines):
        place = pathlib.Path(temporary) / check.__name__
        place.mkdir()
        check(place)
