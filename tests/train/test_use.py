"""A trained network in use: eval, predict, generate against the same numbers reached another way."""
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from conftest import weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A run on made-up pictures, and its weights."""
    out = tmp_path_factory.mktemp("use") / "run"
    r = weft("train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 64, "--steps", 5, "--no-compare", "--out", out)
    assert r.returncode == 0, r.stderr
    from safetensors.numpy import load_file
    return out, load_file(out / "checkpoint.safetensors")


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    (folder / "text.txt").write_text(TEXT)
    runs = {}
    for model, size in (("gpt2", 2), ("lstm", 32)):
        runs[model] = folder / model
        r = weft("train", model, "--size", size, "--length", 24, "--data", f"text:{folder / 'text.txt'}", "--batch", 8, "--steps", 40,
                 "--lr", 0.003, "--no-compare", "--out", runs[model])
        assert r.returncode == 0, r.stderr
    return runs


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def forward(w, pixels):
    x = ((pixels.astype(np.float64) / 255 - 0.5) / 0.29).reshape(len(pixels), -1)
    for k in ("dense1", "dense2"):
        x = np.maximum(x @ w[k + "/kernel"] + w[k + "/bias"], 0)
    return softmax(x @ w["dense3/kernel"] + w["dense3/bias"])


def test_predict(pictures, tmp_path):
    run, w = pictures
    pixels = np.random.default_rng(1).integers(0, 256, (5, 28, 28)).astype(np.uint8)
    np.save(tmp_path / "many.npy", pixels)
    files = []
    for mode in ("L", "RGB", "RGBA", "P", "LA"):  # every kind of PNG holds the same grey picture
        files.append(tmp_path / f"{mode}.png")
        Image.fromarray(pixels[0]).convert(mode if mode != "P" else "RGB").save(files[-1])
    palette = Image.fromarray(pixels[0]).quantize(256) if hasattr(Image.Image, "quantize") else None
    palette.save(tmp_path / "palette.png")
    r = weft("predict", run, tmp_path / "many.npy", *files, "--top", 10, "--measure", 2, "--json")
    assert r.returncode == 0, r.stderr
    result = json.loads(r.stdout)
    want = forward(w, pixels[[0, 1, 2, 3, 4, 0, 0, 0, 0, 0]])
    assert len(result["answers"]) == 10
    for a, p in zip(result["answers"], want):
        got = {t["class"]: t["p"] for t in a["top"]}
        np.testing.assert_allclose([got[i] for i in range(10)], p, rtol=2e-3, atol=1e-5, err_msg=a["input"])
    assert result["latency_p99_s"] >= result["latency_p50_s"] > 0 and result["examples_per_s"] > 0
    plain = weft("predict", run, tmp_path / "palette.png", "--measure", 1)
    assert plain.returncode == 0 and "p50" in plain.stdout, plain.stderr


def test_a_folder_of_pictures(pictures, tmp_path):
    run, w = pictures
    pixels = np.random.default_rng(6).integers(0, 256, (3, 28, 28)).astype(np.uint8)
    (tmp_path / "some").mkdir()
    for i, p in enumerate(pixels):
        Image.fromarray(p).save(tmp_path / "some" / f"{i}.png")
    (tmp_path / "some" / "notes.txt").write_text("no picture")
    r = weft("predict", run, tmp_path / "some", "--top", 10, "--measure", 0, "--json")
    assert r.returncode == 0, r.stderr
    got = json.loads(r.stdout)["answers"]
    assert [a["input"].rsplit("/", 1)[1] for a in got] == ["0.png", "1.png", "2.png"]
    for a, p in zip(got, forward(w, pixels)):
        np.testing.assert_allclose([{t["class"]: t["p"] for t in a["top"]}[i] for i in range(10)], p, rtol=2e-3, atol=1e-5)
    (tmp_path / "none").mkdir()
    r = weft("predict", run, tmp_path / "none")
    assert r.returncode == 1 and "holds no pictures" in r.stderr


def test_arrays_without_a_picture(pictures, tmp_path):
    for shape in ((0, 28, 28), (0, 28, 28, 1), (3, 0, 28), (0, 0)):
        np.save(tmp_path / "e.npy", np.zeros(shape, np.uint8))
        r = weft("predict", pictures[0], tmp_path / "e.npy")
        assert r.returncode == 1 and "an empty array has no picture" in r.stderr, (shape, r)


def test_what_fails_prints_no_prompt(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    r = weft("train", "bert", "--size", 1, "--length", 16, "--data", f"text:{tmp_path / 'text.txt'}", "--batch", 4, "--steps", 1, "--no-compare",
             "--no-eval", "--out", tmp_path / "run")
    assert r.returncode == 0, r.stderr
    r = weft("generate", tmp_path / "run", "--prompt", "To be")
    assert r.returncode == 1 and r.stdout == "" and "makes no text" in r.stderr


@pytest.mark.parametrize("bits, mode", [(1, "1"), (16, "I;16"), (8, "interlaced")])
def test_other_png(bits, mode, pictures, tmp_path):
    run, w = pictures
    pixels = np.random.default_rng(2).integers(0, 256, (28, 28)).astype(np.uint8)
    if mode == "1":
        pixels = np.where(pixels > 127, 255, 0).astype(np.uint8)
        Image.fromarray(pixels).convert("1").save(tmp_path / "x.png")
    elif mode == "I;16":
        Image.fromarray(pixels.astype(np.uint16) << 8 | 7).save(tmp_path / "x.png")
    else:
        write_interlaced(tmp_path / "x.png", pixels)
        assert np.array_equal(np.asarray(Image.open(tmp_path / "x.png")), pixels)
    r = weft("predict", run, tmp_path / "x.png", "--top", 10, "--measure", 0, "--json")
    assert r.returncode == 0, r.stderr
    got = {t["class"]: t["p"] for t in json.loads(r.stdout)["answers"][0]["top"]}
    np.testing.assert_allclose([got[i] for i in range(10)], forward(w, pixels[None])[0], rtol=2e-3, atol=1e-5)


def write_interlaced(path, pixels):
    """Pillow reads Adam7 and does not write it."""
    import struct
    import zlib
    raw = b""
    for x, y, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        for row in pixels[y::dy, x::dx]:
            raw += b"\0" + row.tobytes()

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    h, w = pixels.shape
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 1)) +
                     chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def test_pictures_of_other_sizes(pictures, tmp_path):
    """Cut from the middle and made smaller by averages: a picture of constant blocks comes out as it was."""
    run, w = pictures
    pixels = np.random.default_rng(3).integers(0, 8, (7, 7)).astype(np.uint8) * 30
    small = np.kron(pixels, np.ones((4, 4), np.uint8))
    Image.fromarray(np.pad(np.kron(small, np.ones((3, 3), np.uint8)), ((0, 0), (30, 30)))).save(tmp_path / "wide.png")
    r = weft("predict", run, tmp_path / "wide.png", "--top", 10, "--measure", 0, "--json")
    assert r.returncode == 0, r.stderr
    got = {t["class"]: t["p"] for t in json.loads(r.stdout)["answers"][0]["top"]}
    np.testing.assert_allclose([got[i] for i in range(10)], forward(w, small[None])[0], atol=0.05)


def test_eval(pictures):
    run, _ = pictures
    r = weft("eval", run, "--json")
    assert r.returncode == 0, r.stderr
    result, want = json.loads(r.stdout), json.loads((run / "result.json").read_text())
    assert result["loss"] == pytest.approx(want["test_loss"], rel=1e-5) and result["accuracy"] == pytest.approx(want["test_accuracy"], rel=1e-6)
    assert result["examples"] == 512


@pytest.mark.parametrize("model", ["gpt2", "lstm"])
@pytest.mark.parametrize("flags", [["--temperature", 0], ["--temperature", 0.8, "--top-k", 12, "--seed", 4], ["--top-p", 0.7]])
def test_generate_with_and_without_cache(model, flags, writer):
    """The same text; more tokens than the network's length, too."""
    got = []
    for extra in ([], ["--no-cache"]):
        r = weft("generate", writer[model], "--prompt", "To be, or not to be, tha", "--tokens", 40, "--json", *flags, *extra)
        assert r.returncode == 0, r.stderr
        got.append(json.loads(r.stdout)["tokens"])
    assert got[0] == got[1] and len(got[0]) == 40
    if flags[1] == 0:
        assert model == "lstm" or len(set(got[0])) > 3


def test_seed_and_truncation(writer):
    def tokens(*flags):
        r = weft("generate", writer["gpt2"], "--prompt", "To be", "--tokens", 16, "--json", *flags)
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout)["tokens"]
    best = tokens("--temperature", 0)
    assert tokens("--top-k", 1) == best and tokens("--top-p", 1e-6) == best
    assert tokens("--seed", 2, "--temperature", 2) != tokens("--seed", 3, "--temperature", 2)
    assert tokens("--seed", 2, "--temperature", 2) == tokens("--seed", 2, "--temperature", 2)


@pytest.mark.parametrize("args, say", [
    (["eval", "/nowhere"], "/nowhere"), (["predict", "RUN", "/nowhere.png"], "/nowhere.png"), (["generate", "RUN", "--prompt", "x"], "makes no text"),
    (["generate", "RUN"], "--prompt"), (["predict", "RUN", "TEXT"], "neither a PNG nor a JPEG"), (["eval", "RUN", "--data", "text:TEXT"], "other inputs")])
def test_wrong_use(args, say, pictures, tmp_path):
    text = tmp_path / "text"
    text.write_text(TEXT)
    args = [{"RUN": pictures[0], "TEXT": text, "text:TEXT": f"text:{text}"}.get(a, a) for a in args]
    r = weft(*args)
    assert r.returncode in (1, 2) and say in r.stderr, r.stderr


def test_what_answers_cost(tmp_path):
    """advise on an exported network: answers a second and money for a million of them, cheaper in batches."""
    r = weft("train", "mlp", "--size", 32, "--data", "synthetic", "--steps", 1, "--batch", 8, "--no-compare", "--no-eval", "--out", tmp_path / "run")
    assert r.returncode == 0 and weft("export", tmp_path / "run", "--to", tmp_path / "out").returncode == 0, r.stderr
    cost = []
    for batch in (1, 64):
        p = weft("advise", tmp_path / "out/forward.mlirbc", "--chip", "T4", "--batch", batch)
        head, row = re.search(r"\n( +devices fits .*)\n(  T4 .*)\n", p.stdout).groups()
        assert head.split()[-5:] == ["time", "examples/s", "$", "a", "million"], p.stdout
        rate, usd = float(row.split()[-2]), float(row.split()[-1].strip("$"))
        assert usd == pytest.approx(0.526 / 3600 / rate * 1e6, rel=0.05)
        cost.append(usd)
    assert cost[1] < cost[0] / 5


def test_without_test_examples(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", images=rng.integers(0, 256, (16, 32, 32, 3)).astype(np.uint8), labels=rng.integers(0, 2, (16, 32, 32)))
    r = weft("train", "unet", "--size", 2, "--data", f"npz:{tmp_path / 'd.npz'}", "--batch", 4, "--steps", 1, "--no-compare", "--out", tmp_path / "run")
    assert r.returncode == 0, r.stderr
    r = weft("eval", tmp_path / "run")
    assert r.returncode == 1 and "holds no test examples" in r.stderr, r.stderr
    np.savez(tmp_path / "other.npz", images=rng.integers(0, 256, (6, 32, 32, 3)).astype(np.uint8), labels=rng.integers(0, 2, (6, 32, 32)))
    r = weft("eval", tmp_path / "run", "--data", f"npz:{tmp_path / 'other.npz'}", "--json")  # all of them
    assert r.returncode == 0 and json.loads(r.stdout)["examples"] == 6, r.stderr
    r = weft("serve", tmp_path / "run", "--port", 0)
    assert r.returncode == 1 and "a class for each pixel" in r.stderr, r.stderr


def test_a_network_of_two_arrays(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    r = weft("train", "dlrm", "--size", 50, "--data", "synthetic", "--batch", 16, "--steps", 1, "--no-compare", "--no-eval", "--out", run)
    assert r.returncode == 0, r.stderr
    np.save(tmp_path / "x.npy", np.zeros((2, 13), np.float32))
    for verb in (["predict", run, tmp_path / "x.npy"], ["serve", run, "--port", 0]):
        r = weft(*verb)
        assert r.returncode == 1 and "takes several arrays" in r.stderr and "weft export" in r.stderr, r.stderr
    r = weft("export", run, "--to", out, "--batch", 4)
    assert r.returncode == 0 and [x["name"] for x in json.loads((out / "export.json").read_text())["inputs"]] == ["dense", "ids"], r.stderr
    rng = np.random.default_rng(0)
    x = {"in0": rng.standard_normal((4, 13), np.float32), "in1": rng.integers(0, 50, (4, 26), np.int32)}
    np.savez(tmp_path / "in.npz", **x)
    r = weft("run", out / "forward.mlirbc", "--in", tmp_path / "in.npz", "--out", tmp_path / "y.npz")
    assert r.returncode == 0, r.stderr
    code = "import sys, numpy as np, load_jax; x = np.load(sys.argv[1]); np.save(sys.argv[2], load_jax.load()(x['in0'], x['in1']))"
    subprocess.run([sys.executable, "-c", code, tmp_path / "in.npz", tmp_path / "j.npy"], check=True, env={"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(out)})
    np.testing.assert_allclose(np.load(tmp_path / "j.npy"), np.load(tmp_path / "y.npz")["out0"], rtol=1e-4, atol=1e-5)
