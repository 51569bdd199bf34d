"""Writes Megatron's indexed dataset, X.bin and X.idx, from the published layout and from nothing of shardpack.

    megatron_writer.write(prefix, sequences, dtype="<u2", documents=None, layout="megatron")

`documents` are the numbers of the sequences at which documents begin, and the end; default: one a sequence. `layout` is one of
megatron, neox, deepspeed (the same bytes but for the type codes) and fairseq (no document index).
"""
import struct

import numpy as np

MAGIC = b"MMIDIDX\x00\x00"
CODES = {
    "megatron": {"|u1": 1, "|i1": 2, "<i2": 3, "<i4": 4, "<i8": 5, "<f8": 6, "<f4": 7, "<u2": 8},
    "neox": {"|u1": 1, "|i1": 2, "<i2": 3, "<i4": 4, "<i8": 5, "<f4": 6, "<f8": 7, "<u2": 8},
    "deepspeed": {"|u1": 1, "|i1": 2, "<i2": 3, "<i4": 4, "<i8": 5, "<u2": 6, "<u4": 7, "<u8": 8},
    "fairseq": {"|u1": 1, "|i1": 2, "<i2": 3, "<i4": 4, "<i8": 5, "<f8": 7, "<u2": 8, "<u4": 9, "<u8": 10},
}


def write(prefix, sequences, dtype="<u2", documents=None, layout="megatron"):
    arrays = [np.asarray(sequence, dtype) for sequence in sequences]
    with open(f"{prefix}.bin", "wb") as data:
        for array in arrays:
            data.write(array.tobytes())
    lengths = np.array([len(array) for array in arrays], "<i4")
    ends = np.cumsum([array.nbytes for array in arrays], dtype="<i8")
    places = np.concatenate([np.zeros(min(1, len(ends)), "<i8"), ends[:-1]])
    with open(f"{prefix}.idx", "wb") as index:
        index.write(MAGIC + struct.pack("<QBQ", 1, CODES[layout][dtype], len(arrays)))
        if layout == "fairseq":
            index.write(lengths.tobytes() + places.tobytes())
            return
        starts = np.arange(len(arrays) + 1, dtype="<i8") if documents is None else np.array(documents, "<i8")
        index.write(struct.pack("<Q", len(starts)) + lengths.tobytes() + places.tobytes() + starts.tobytes())
