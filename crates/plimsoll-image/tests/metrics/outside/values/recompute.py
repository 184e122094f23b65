"""Recomputes the tables beside this file with published tools. See README.md; no test runs this."""

import sys
from importlib.metadata import version

import numpy as np

EXPONENTS = [0.0448, 0.2856, 0.3001, 0.2363, 0.1333]


def dice(state):
    """The same numbers as `pairs::random`."""
    while True:
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        yield state >> 8


def drawn(width, height):
    """The same picture as `drawn::drawn`."""
    rolls = dice(0x2545F491)
    out = np.zeros((height, width, 3), np.int64)
    for y in range(height):
        for x in range(width):
            wave = abs((5 * x + 3 * y) % 64 - 32) * 2 - 32
            disc = (8 * x - 3 * width) ** 2 + (8 * y - 3 * height) ** 2 < (2 * min(width, height)) ** 2
            lines = (x // 3 + y // 5) % 4 == 0 and 5 * x > 3 * width
            base = [20 + 200 * x // width, 40 + 180 * y // height, 30 + 150 * (width - x) // width + 60 * y // height]
            for channel in range(3):
                value = [220, 90, 60][channel] if disc else base[channel] * 2 // 5 if lines else base[channel] + wave
                out[y, x, channel] = min(max(value + next(rolls) % 9 - 4, 0), 255)
    return out


def sheet(width, height):
    """The same picture as `drawn::sheet`."""
    y, x = np.mgrid[:height, :width]
    inked = ((x // 7 + y // 11) % 5 < 2) & (x % 7 < 3) & (y % 11 < 6)
    return np.repeat(np.where(inked, 30, 255)[:, :, None], 3, axis=2)


def noisy(image, most=12):
    rolls = dice(0x9E3779B9)
    moved = [sample + next(rolls) % (2 * most + 1) - most for sample in image.ravel().tolist()]
    return np.clip(np.array(moved), 0, 255).reshape(image.shape)


def blurred(image):
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    height, width, _ = image.shape
    return sum(padded[dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)) // 9


def blocky(image):
    out = image.copy()
    for top in range(0, image.shape[0], 8):
        for left in range(0, image.shape[1], 8):
            block = image[top : top + 8, left : left + 8]
            mean = block.sum(axis=(0, 1)) // (block.shape[0] * block.shape[1])
            out[top : top + 8, left : left + 8] = (block + 2 * mean) // 3
    return out


def pairs(width, height):
    scene = drawn(width, height)
    yield "noise", scene, noisy(scene)
    yield "blur", scene, blurred(scene)
    yield "blocks", scene, blocky(scene)
    yield "darker", scene, scene * 3 // 4
    yield "inverted", scene, 255 - scene
    page = sheet(width, height)
    yield "sheet-noise", page, noisy(page)
    yield "sheet-blur", page, blurred(page)


def luma(image):
    return (image @ np.array([0.299, 0.587, 0.114])) / 255.0


def scales(width, height):
    count, side = 0, min(width, height)
    while count < 5 and side >= 11:
        count, side = count + 1, (side + 1) // 2
    return count


def tensors(reference, distorted):
    import torch

    return [torch.from_numpy(luma(image))[None, None] for image in (reference, distorted)]


def by_skimage(reference, distorted):
    from skimage.metrics import structural_similarity

    call = dict(gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=1.0)
    return structural_similarity(luma(reference), luma(distorted), **call)


def by_pytorch_msssim(reference, distorted):
    import pytorch_msssim

    return pytorch_msssim.ms_ssim(*tensors(reference, distorted), data_range=1.0).item()


def by_piq_msssim(reference, distorted):
    import piq
    import torch

    weights = torch.tensor(EXPONENTS[: scales(*reference.shape[:2])], dtype=torch.float64)
    return piq.multi_scale_ssim(*tensors(reference, distorted), data_range=1.0, scale_weights=weights).item()


def by_tensorflow(reference, distorted):
    import tensorflow

    lumas = [luma(image)[None, :, :, None] for image in (reference, distorted)]
    images = [tensorflow.constant(plane, tensorflow.float32) for plane in lumas]
    return float(tensorflow.image.ssim_multiscale(*images, max_val=1.0)[0])


def by_piq_iwssim(reference, distorted):
    import piq
    import torch

    weights = torch.tensor(EXPONENTS[: scales(*reference.shape[:2])], dtype=torch.float64)
    reference, distorted = tensors(reference, distorted)
    return piq.information_weighted_ssim(distorted, reference, data_range=1.0, scale_weights=weights).item()


WINDOW = "gaussian_weights=True, sigma=1.5, use_sample_covariance=False"
SSIM = f"structural_similarity(luma, luma, {WINDOW}, data_range=1.0)"
FEWER = "scale_weights=as many of the published five as the image has scales"
TOOLS = {
    "skimage": (by_skimage, "scikit-image", SSIM, "ssim", [(11, 11), (64, 48), (131, 97), (320, 240)]),
    "pytorch": (by_pytorch_msssim, "pytorch-msssim", "ms_ssim(luma, luma, data_range=1.0), float64", "ms_ssim",
                [(176, 192), (320, 240)]),
    "piq": (by_piq_msssim, "piq", f"multi_scale_ssim(luma, luma, data_range=1.0, {FEWER}), float64", "ms_ssim_fewer",
            [(32, 40), (64, 48), (112, 96)]),
    "tensorflow": (by_tensorflow, "tensorflow-cpu", "tf.image.ssim_multiscale(luma, luma, max_val=1.0), float32",
                   "ms_ssim_odd", [(161, 175), (333, 201)]),
    "piq-iwssim": (by_piq_iwssim, "piq",
                   f"information_weighted_ssim(distorted, reference, data_range=1.0, {FEWER}), float64",
                   "iwssim", [(32, 40), (64, 48), (97, 131), (161, 175), (320, 240)]),
}

for name in sys.argv[1:]:
    tool, package, call, file, sizes = TOOLS[name]
    with open(f"{sys.path[0]}/{file}.tsv", "w") as out:
        print(f"# {package} {version(package)}: {call}", file=out)
        print("width\theight\tpair\tscore", file=out)
        for width, height in sizes:
            for pair, reference, distorted in pairs(width, height):
                if (package, pair) == ("piq", "inverted"):
                    continue  # piq takes a negative scale for a positive one in iwssim; in ms-ssim it gives 0 anyway
                print(f"{width}\t{height}\t{pair}\t{tool(reference, distorted):.9f}", file=out)
