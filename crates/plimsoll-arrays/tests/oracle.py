"""Reads arrays with zarr-python, tensorstore and zarrs and holds them against plain numpy; writes some for the other direction.

    oracle.py read FOLDER     every NAME.zarr of cases.json against NAME.raw; levels computed again; OME metadata checked
    oracle.py write FOLDER    NAME.zarr and NAME.raw of every type, codec and cut, and their names in cases.json
"""

import itertools
import json
import pathlib
import sys
import warnings

import numpy as np
import tensorstore
import yaozarrs
import zarr
import zarrs

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def read_zarr(root, path):
    node = zarr.open(str(root), mode="r")
    return np.asarray((node[path] if path else node)[...])


def read_zarrs(root, path):
    # The same front, but shards, codecs and chunks are those of the Rust crate. Where it cannot read something it hands
    # over to the other, with a warning, which is an error here.
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}):
        return read_zarr(root, path)


def read_tensorstore(root, path):
    kvstore = {"driver": "file", "path": str(root / path) + "/"}
    return np.asarray(tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, open=True).result().read().result())


def windows(array, halved):
    """The windows of one level: each with its elements in row-major order, as a list of arrays and the count of each."""
    shape = [-(-size // 2) if half else size for size, half in zip(array.shape, halved)]
    for index in np.ndindex(*shape):
        cut = tuple(slice(2 * at, 2 * at + 2) if half else slice(at, at + 1) for at, half in zip(index, halved))
        yield index, array[cut].reshape(-1)


def mean(window):
    if window.dtype.kind in "iu":
        total = sum(int(value) for value in window)
        return (2 * total + len(window)) // (2 * len(window))
    wide = window.astype(np.float32 if window.dtype == np.float16 else np.float64)
    total = wide[0]
    for value in wide[1:]:
        total = total + value
    return total / wide.dtype.type(len(window))


REDUCTIONS = {
    "mean": mean,
    "min": lambda window: np.sort(window)[0],
    "max": lambda window: np.sort(window)[-1],
    "median": lambda window: np.sort(window)[(len(window) - 1) // 2],
    "second-highest": lambda window: np.sort(window)[max(len(window) - 2, 0)],
}


def reduced(array, halved, reduction):
    shape = [-(-size // 2) if half else size for size, half in zip(array.shape, halved)]
    out = np.empty(shape, array.dtype)
    with np.errstate(all="ignore"):
        for index, window in windows(array, halved):
            out[index] = REDUCTIONS[reduction](window)
    return out


def check(case, folder):
    root = folder / f"{case['name']}.zarr"
    raw = (folder / f"{case['name']}.raw").read_bytes()
    expected = np.frombuffer(raw, case["data_type"]).reshape(case["shape"])
    for number, level in enumerate(case["levels"]):
        if number > 0:
            expected = reduced(expected, level["halved"], case["reduction"])
        for read in (read_zarr, read_zarrs, read_tensorstore):
            got = read(root, level["path"])
            what = f"{case['name']} level {number} by {read.__name__}"
            assert got.dtype == expected.dtype and got.shape == expected.shape, f"{what}: {got.dtype} {got.shape}"
            if number == 0:
                assert got.tobytes() == raw, f"{what}: other bytes"
            else:
                np.testing.assert_array_equal(got, expected, err_msg=what)
    if case["is_group"]:
        yaozarrs.validate_zarr_store(str(root))


def read(folder):
    cases = json.loads((folder / "cases.json").read_text())
    for case in cases:
        check(case, folder)
    print(f"{len(cases)} arrays read by zarr {zarr.__version__}, zarrs {zarrs.__version__} and tensorstore")


CODECS = [
    ("none", None),
    ("zstd", zarr.codecs.ZstdCodec(level=3)),
    ("gzip", zarr.codecs.GzipCodec(level=5)),
    *(
        (f"blosc-{cname}-{shuffle}", zarr.codecs.BloscCodec(cname=cname, clevel=5, shuffle=shuffle))
        for cname in ("lz4", "zstd")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    ),
]


def write(folder):
    names = []
    random = np.random.default_rng(14)
    for data_type, (codec, compressor), sharded in itertools.product(TYPES, CODECS, (False, True)):
        shape, chunk = ((45, 70, 33), (40, 64, 32)) if data_type == "uint16" else ((9, 21, 19), (2, 8, 8))
        elements = (random.integers(0, 100, shape) * (random.random(shape) < 0.3)).astype(data_type)
        name = f"{data_type}-{codec}-{'sharded' if sharded else 'chunks'}"
        array = zarr.create_array(
            str(folder / f"{name}.zarr"),
            shape=shape,
            chunks=chunk,
            shards=tuple(2 * size for size in chunk) if sharded else None,
            dtype=data_type,
            compressors=compressor,
            fill_value=3,
        )
        array[...] = elements
        (folder / f"{name}.raw").write_bytes(elements.tobytes())
        names.append(name)
    (folder / "cases.json").write_text(json.dumps(names))
    print(f"{len(names)} arrays written by zarr {zarr.__version__}")


if __name__ == "__main__":
    warnings.simplefilter("error")
    {"read": read, "write": write}[sys.argv[1]](pathlib.Path(sys.argv[2]))
