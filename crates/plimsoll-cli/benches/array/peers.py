"""The peers of the benchmark `array`: each writes what it is asked to, and prints what that took.

    peers.py acquire|tensorstore|zarrs ASKED    writes, and prints seconds, cpu, stall and peak as JSON
    peers.py check                              reads what was written with zarr-python and compares, for each line asked
    peers.py make TYPE COUNT FILE               elements like a detector's
    peers.py ready                              nothing, if every package is there
"""

import json
import pathlib
import resource
import sys
import time

import numpy as np


def make(data_type, count, file):
    with open(file, "wb") as out:
        rng = np.random.default_rng(7)
        for begin in range(0, count, 1 << 22):
            at = np.arange(begin, min(begin + (1 << 22), count))
            top = 90 if data_type == "uint8" else 3000
            values = top * (1.1 + np.sin(at / 97.0) * 0.6 + np.sin(at / 40009.0) * 0.4) / 2.2 + rng.normal(0, 4, at.shape)
            out.write(np.clip(values, 0, None).astype(data_type).tobytes())


def asked(text):
    asked = json.loads(text)
    row = asked["row"]
    count = asked["bytes"] // np.dtype(row["data_type"]).itemsize
    elements = np.fromfile(asked["input"], row["data_type"], count).reshape(-1, *row["step"])
    return row, elements, pathlib.Path(asked["output"])


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))


class Watch:
    def __init__(self):
        with open("/proc/self/clear_refs", "w") as forget:
            forget.write("5")
        self.before = resident("VmRSS:")
        self.stall, self.begin, self.cpu = 0.0, time.perf_counter(), cpu()

    def append(self, append, data):
        begun = time.perf_counter()
        append(data)
        self.stall = max(self.stall, time.perf_counter() - begun)

    def end(self):
        took = {"seconds": time.perf_counter() - self.begin, "cpu": cpu() - self.cpu, "stall": self.stall}
        print(json.dumps({**took, "peak": max(0, resident("VmHWM:") - self.before)}))


def acquire(row, elements, output):
    import acquire_zarr as az

    settings = None
    if row["codec"] == "blosc-lz4":
        settings = az.CompressionSettings(
            compressor=az.Compressor.BLOSC1, codec=az.CompressionCodec.BLOSC_LZ4, level=5, shuffle=1
        )
    names = ["t", "z", "y", "x"] if len(row["step"]) == 3 else ["t", "y", "x"]
    sizes = zip(names, [0, *row["step"]], row["chunk"], row["shard"])
    dimensions = [
        az.Dimension(
            name=name,
            kind=az.DimensionType.TIME if name == "t" else az.DimensionType.SPACE,
            array_size_px=size,
            chunk_size_px=chunk,
            shard_size_chunks=shard // chunk,
        )
        for name, size, chunk, shard in sizes
    ]
    array = {"dimensions": dimensions, "data_type": getattr(az.DataType, row["data_type"].upper()), "compression": settings}
    if row["has_levels"]:
        array["downsampling_method"] = az.DownsamplingMethod.MEAN
    watch = Watch()
    streams = [
        az.ZarrStream(az.StreamSettings(arrays=[az.ArraySettings(**array)], store_path=str(output / str(at)), overwrite=True))
        for at in range(row["arrays"])
    ]
    flat = elements.reshape(-1)
    piece = (row["append"] or elements[0].nbytes) // elements.itemsize
    for begin in range(0, len(flat), piece):
        data = flat[begin : begin + piece]
        data = data.reshape(-1, *row["step"]) if row["append"] is None else data
        for stream in streams:
            watch.append(stream.append, data)
    for stream in streams:
        stream.close()
    watch.end()


def tensorstore(row, elements, output):
    import tensorstore as ts

    packing = {
        "none": [],
        "zstd": [{"name": "zstd", "configuration": {"level": 3}}],
        "gzip": [{"name": "gzip", "configuration": {"level": 6}}],
        "blosc-lz4": [
            {
                "name": "blosc",
                "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": elements.itemsize},
            }
        ],
    }[row["codec"]]
    inner = [{"name": "bytes", "configuration": {"endian": "little"}}, *packing]
    # Levels as a user of it would have them made: by its own averages of what is written.
    factors = [1, 2, 4] if row["has_levels"] else [1]

    def create(path, factor):
        shape = [len(elements), *(-(-size // factor) for size in row["step"])]
        chunk, shard = row["chunk"], [row["shard"][0], *(-(-size // factor) for size in row["shard"][1:])]
        shard = [-(-size // part) * part for size, part in zip(shard, chunk)]
        metadata = {
            "shape": shape,
            "data_type": row["data_type"],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}},
            "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": chunk, "codecs": inner}}],
        }
        kvstore = {"driver": "file", "path": f"{path}/", "file_io_sync": False}
        return ts.open({"driver": "zarr3", "kvstore": kvstore, "metadata": metadata}, create=True).result()

    def write(level, factor, piece, data):
        if factor > 1:
            data = ts.downsample(ts.array(data), [1, *([factor] * len(row["step"]))], "mean")
        return level[piece].write(data)

    watch = Watch()
    below = ["/0", "/1", "/2"] if row["has_levels"] else [""]
    stores = [
        [create(f"{output / str(at)}{path}", factor) for path, factor in zip(below, factors)] for at in range(row["arrays"])
    ]
    # Whole shards: what suits it best. Two at a time, so that one is packed while the other is written.
    under_way = []
    for begin in range(0, len(elements), row["shard"][0]):
        piece = slice(begin, begin + row["shard"][0])
        for levels in stores:
            for level, factor in zip(levels, factors):
                watch.append(lambda data: under_way.append(write(level, factor, piece, data)), elements[piece])
            while len(under_way) > 2 * len(factors):
                # Whoever appends waits here, so it counts as an append that takes long.
                watch.append(lambda writing: writing.result(), under_way.pop(0))
    for writing in under_way:
        writing.result()
    watch.end()


def zarrs(row, elements, output):
    import zarr
    import zarrs as _

    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True})
    packing = {
        "none": None,
        "zstd": zarr.codecs.ZstdCodec(level=3),
        "gzip": zarr.codecs.GzipCodec(level=6),
        "blosc-lz4": zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=elements.itemsize),
    }[row["codec"]]
    watch = Watch()
    arrays = [
        zarr.create_array(
            str(output / str(at)),
            shape=elements.shape,
            dtype=elements.dtype,
            chunks=row["chunk"],
            shards=row["shard"],
            compressors=packing,
            zarr_format=3,
        )
        for at in range(row["arrays"])
    ]
    for begin in range(0, len(elements), row["shard"][0]):
        piece = slice(begin, begin + row["shard"][0])
        for array in arrays:
            watch.append(lambda data: array.__setitem__(piece, data), elements[piece])
    watch.end()


def differs(row, elements, output):
    """What is wrong with what was written; nothing if it is the same."""
    import zarr

    for at in range(row["arrays"]):
        folder = output / str(at)
        is_array = (folder / "zarr.json").exists() and "shape" in json.loads((folder / "zarr.json").read_text())
        array = zarr.open_array(str(folder if is_array else folder / "0"), mode="r")
        if array.shape != elements.shape or array.dtype != elements.dtype:
            return f"array {at}: {array.shape} of {array.dtype}"
        for begin in range(0, len(elements), row["shard"][0]):
            piece = slice(begin, begin + row["shard"][0])
            if not np.array_equal(array[piece], elements[piece]):
                return f"array {at}, from step {begin} on"
    return None


def ready():
    import acquire_zarr as _, tensorstore as _, zarr as _, zarrs as _


def check():
    for line in sys.stdin:
        print(differs(*asked(line)) or "same", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1] in ("check", "ready"):
        globals()[sys.argv[1]]()
    else:
        globals()[sys.argv[1]](*asked(sys.argv[2]))
