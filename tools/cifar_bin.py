#!/usr/bin/env python3
"""CIFAR-10 as records of JPEG images -> the original's binary files.

    python3 tools/cifar_bin.py cifar10-jpeg.rec.xz DIR      (needs Pillow)

A record is 1 byte label, 2 bytes little-endian length, JPEG of 32 x 32 RGB; 50,000 for training, then 10,000 for testing.
Writes DIR/data_batch_1.bin ... data_batch_5.bin and test_batch.bin: label, then 1024 red, 1024 green, 1024 blue bytes an image.
`weft train` reads either form (--data cifar10:DIR, --data cifar10:FILE.rec.xz), with the same pixels."""
import hashlib
import io
import lzma
import pathlib
import sys

from PIL import Image


def records(data):
    at = 0
    while at < len(data):
        n = int.from_bytes(data[at + 1:at + 3], "little")
        yield data[at], data[at + 3:at + 3 + n]
        at += 3 + n


def planes(label, jpeg):
    image = Image.open(io.BytesIO(jpeg)).convert("RGB")
    assert image.size == (32, 32), image.size
    return bytes([label]) + b"".join(image.getchannel(c).tobytes() for c in "RGB")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(pathlib.Path, sys.argv[1:])
    data = source.read_bytes()
    images = [planes(*r) for r in records(lzma.decompress(data) if data[:6] == b"\xfd7zXZ\0" else data)]
    if len(images) != 60000:
        sys.exit(f"{source}: {len(images)} images, not 60000")
    target.mkdir(parents=True, exist_ok=True)
    names = [f"data_batch_{i + 1}.bin" for i in range(5)] + ["test_batch.bin"]
    for i, name in enumerate(names):
        (target / name).write_bytes(b"".join(images[10000 * i:10000 * (i + 1)]))
    print(f"{target}: 60,000 images, sha256 {hashlib.sha256(b''.join(images)).hexdigest()}")


if __name__ == "__main__":
    main()
