"""Own data: folders and tars of PNG and JPEG, npz, colour idx, tokens. What is learnt tells that pictures and labels belong together."""
import io
import json
import struct
import tarfile

import numpy as np
import pytest
from PIL import Image

from conftest import weft

CLASSES = ("bird", "cat", "dog")


def picture(label, i, side=40):
    """A bright third, under noise: top, middle or bottom."""
    p = np.random.default_rng(label * 1000 + i).integers(0, 90, (side, side + 10, 3))
    p[label * side // 3:(label + 1) * side // 3] += 120
    return p.astype(np.uint8)


def encoded(label, i):
    b = io.BytesIO()
    Image.fromarray(picture(label, i)).save(b, "PNG" if i % 2 else "JPEG", **({} if i % 2 else {"quality": 90}))
    return b.getvalue(), "png" if i % 2 else "jpg"


def train(tmp_path, data, *flags):
    return weft("train", "mlp", "--size", 32, "--data", data, "--batch", 16, "--lr", 0.003, "--epochs", 6, "--no-compare", "--json", "--out",
                tmp_path / "run", "--overwrite", *flags)


def check(r, n_test):
    assert r.returncode == 0, r.stderr
    result = json.loads(r.stdout)
    assert result["test_accuracy"] > 0.9, result
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    for split, n in (("train", 40), ("test", 10)):
        for k, name in enumerate(CLASSES):
            (root / split / name).mkdir(parents=True)
            for i in range(n):
                data, end = encoded(k, i + (split == "test") * 500)
                (root / split / name / f"{i}.{end}").write_bytes(data)
    return root


def test_folder(folder, tmp_path):
    result = check(train(tmp_path, f"folder:{folder}", "--image-size", 24, "--no-augment"), 30)
    assert result["settings"]["image_size"] == 24 and result["settings"]["augment"] is False
    r = weft("predict", tmp_path / "run", folder / "test/cat/1.png", "--top", 1, "--measure", 0)
    assert r.returncode == 0 and '"cat"' in r.stdout, r.stdout + r.stderr
    r = weft("predict", tmp_path / "run", folder / "test", "--top", 1, "--measure", 0, "--json")
    assert r.returncode == 0 and len(json.loads(r.stdout)["answers"]) == 30, "folders of classes too: " + r.stderr
    r = weft("eval", tmp_path / "run", "--json")
    assert r.returncode == 0 and json.loads(r.stdout)["accuracy"] == pytest.approx(result["test_accuracy"]), r.stderr


def test_folder_without_a_test_set(folder, tmp_path):
    check(train(tmp_path, f"folder:{folder / 'train'}", "--image-size", 24), 0)
    (tmp_path / "dogs").mkdir()
    (tmp_path / "dogs" / "dog").symlink_to(folder / "test" / "dog")
    other = score(tmp_path / "run", "--data", f"folder:{tmp_path / 'dogs'}")  # all of them, of a class that keeps its number
    assert other["examples"] == 10 and other["accuracy"] > 0.8, other


def test_webdataset(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.USTAR_FORMAT) as t:
        for i in range(40):
            for k in range(3):
                data, end = encoded(k, i)
                for name, b in ((f"{i:03}{k}.{end}", data), (f"{i:03}{k}.cls", str(k).encode()), (f"{i:03}{k}.json", b"{}")):
                    info = tarfile.TarInfo(name)
                    info.size = len(b)
                    t.addfile(info, io.BytesIO(b))
    check(train(tmp_path, f"wds:{tmp_path / 'x.tar'}", "--image-size", 24), 0)
    cut = (tmp_path / "x.tar").read_bytes()[:3000]
    (tmp_path / "cut.tar").write_bytes(cut)
    r = train(tmp_path, f"wds:{tmp_path / 'cut.tar'}")
    assert r.returncode == 1 and "ends inside" in r.stderr


def arrays(n, first):
    y = np.arange(n) % 3
    return np.stack([np.asarray(Image.fromarray(picture(k, first + i)).resize((24, 24))) for i, k in enumerate(y)]), y


def test_npz_and_colour_idx(tmp_path):
    (x, y), (u, v) = arrays(120, 0), arrays(30, 500)
    np.savez(tmp_path / "x.npz", x_train=x, y_train=y[:, None], x_test=u, y_test=v[:, None].astype(np.uint8))
    check(train(tmp_path, f"npz:{tmp_path / 'x.npz'}"), 30)
    for stem, a in (("train-images-idx3", x), ("train-labels-idx1", y), ("t10k-images-idx3", u), ("t10k-labels-idx1", v)):
        head = struct.pack(f">BBBB{a.ndim}I", 0, 0, 8, a.ndim, *a.shape)
        (tmp_path / f"{stem}-ubyte").write_bytes(head + a.astype(np.uint8).tobytes())
    check(train(tmp_path, f"idx:{tmp_path}"), 30)
    np.savez(tmp_path / "bad.npz", x_train=x, y_train=y[:5], x_test=u, y_test=v)
    r = train(tmp_path, f"npz:{tmp_path / 'bad.npz'}")
    assert r.returncode == 1 and "y_train" in r.stderr


def test_pictures_without_test_pictures(tmp_path):
    """By Keras's names without x_test, with x_val, and with a column of labels: bytes and other numbers alike."""
    x, y = arrays(96, 0)
    for kind in (np.uint8, np.float32):
        pixels = x.astype(kind)
        for more in ({}, {"x_val": pixels[:20], "y_val": y[:20]}):
            for labels in (y, y[:, None]):
                given = {k: v.reshape(-1, *labels.shape[1:]) if k == "y_val" else v for k, v in more.items()}
                np.savez(tmp_path / "x.npz", x_train=pixels, y_train=labels, **given)
                r = weft("train", "mlp", "--size", 8, "--data", f"npz:{tmp_path / 'x.npz'}", "--batch", 16, "--steps", 2, "--no-compare")
                assert r.returncode == 0, (kind, sorted(given), labels.shape, r.stderr)
                assert ("test accuracy" in r.stderr + r.stdout) == bool(more), r.stderr


def test_tokens(tmp_path):
    np.tile(np.arange(50, dtype=np.uint16) * 7, 100).tofile(tmp_path / "x.bin")
    r = weft("train", "gpt2", "--size", 1, "--length", 16, "--batch", 4, "--steps", 2, "--data", f"tokens:{tmp_path / 'x.bin'}", "--no-compare", "--json")
    assert r.returncode == 0 and json.loads(r.stdout)["steps"] == 2, r.stderr


def test_what_is_wrong(folder, tmp_path):
    (tmp_path / "bad/a").mkdir(parents=True)
    (tmp_path / "bad/b").mkdir()
    for k in "ab":
        for i in range(30):
            (tmp_path / "bad" / k / f"{i}.png").write_bytes(encoded(0, 1)[0])
    (tmp_path / "bad/b/7.png").write_bytes(encoded(0, 1)[0][:200])
    r = train(tmp_path, f"folder:{tmp_path / 'bad'}")
    assert r.returncode == 1 and "7.png" in r.stderr and "damaged PNG" in r.stderr
    for data, say in ((f"folder:{tmp_path / 'nothing'}", "cannot open the folder"), (f"folder:{tmp_path / 'run'}", "for training"),
                      ("npz:/nowhere.npz", "/nowhere.npz")):
        (tmp_path / "run").mkdir(exist_ok=True)
        r = train(tmp_path, data)
        assert r.returncode == 1 and say in r.stderr, r.stderr
    r = weft("train", "mnist", "--data", "synthetic", "--image-size", 10, "--steps", 1)
    assert r.returncode == 2 and "does not read --image-size" in r.stderr


def test_csv(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(rng.normal(k, 0.15), 100 * rng.normal(-k, 0.15), f'"{name}, so called"') for _ in range(60) for k, name in enumerate(CLASSES)]
    (tmp_path / "t.csv").write_text("width,height,class\n" + "\n".join(f"{a:.4f},{b:.4f},{c}" for a, b, c in rows) + "\n")
    result = check(train(tmp_path, f"csv:{tmp_path / 't.csv'}", "--epochs", 30), 0)
    assert result["weights"] == 2 * 32 + 32 + 32 * 32 + 32 + 32 * 3 + 3
    r = weft("eval", tmp_path / "run", "--json")
    assert r.returncode == 0 and json.loads(r.stdout)["accuracy"] == pytest.approx(result["test_accuracy"]), r.stderr
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n1,2,3\n")
    r = train(tmp_path, f"csv:{tmp_path / 'bad.csv'}")
    assert r.returncode == 1 and "line 3 has 3 columns, the first has 2" in r.stderr
    (tmp_path / "word.csv").write_text("1,2\nx,3\n")
    r = train(tmp_path, f"csv:{tmp_path / 'word.csv'}")
    assert r.returncode == 1 and "line 2, column 1: 'x' is no finite number" in r.stderr


def table(path, classes, n, offset=0):
    """Rows of the classes in turn, told by the first number."""
    rng = np.random.default_rng(n)
    path.write_text("a,b,class\n" + "".join(f"{10 * CLASSES.index(k) + rng.normal() + offset:.4f},{rng.normal():.4f},{k}\n" for _ in range(n) for k in classes))
    return f"csv:{path}"


def score(*args):
    r = weft("eval", *args, "--json")
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def test_rows_that_come_in_turn(tmp_path):
    """Every tenth row is of one class here: what is held out is of all."""
    names = [*(f"r{k}" for k in range(10))]
    rng = np.random.default_rng(3)
    (tmp_path / "t.csv").write_text("".join(f"{10 * k + rng.normal():.4f},{rng.normal():.4f},{names[k]}\n" for _ in range(60) for k in range(10)))
    r = train(tmp_path, f"csv:{tmp_path / 't.csv'}", "--epochs", 40, "--lr", 0.01)
    assert r.returncode == 0 and json.loads(r.stdout)["test_accuracy"] > 0.8, r.stdout


def test_eval_of_another_table(tmp_path):
    """All its rows, by the training rows' means and names of classes."""
    r = train(tmp_path, table(tmp_path / "t.csv", CLASSES, 60), "--epochs", 30)
    assert r.returncode == 0, r.stderr
    other = score(tmp_path / "run", "--data", table(tmp_path / "o.csv", CLASSES[2:], 30))
    assert other["examples"] == 30 and other["accuracy"] > 0.95
    assert score(tmp_path / "run", "--data", table(tmp_path / "far.csv", CLASSES[:1], 30, offset=20))["accuracy"] < 0.05
    (tmp_path / "new.csv").write_text("a,b,class\n1,2,zebra\n1,2,zebra\n")
    r = weft("eval", tmp_path / "run", "--data", f"csv:{tmp_path / 'new.csv'}")
    assert r.returncode == 1 and "line 2: class 'zebra' is none of the training rows" in r.stderr
    r = train(tmp_path / "two", f"csv:{tmp_path / 't.csv'},{tmp_path / 'o.csv'}", "--epochs", 1)
    assert r.returncode == 0 and score(tmp_path / "two" / "run")["examples"] == 30, r.stderr


def test_columns_in_another_order(tmp_path):
    """They are found by their names, in predict, eval and a file of test rows; what has no names is taken as it stands."""
    rows = [line.split(",") for line in open(table(tmp_path / "t.csv", CLASSES, 60).removeprefix("csv:")).read().split()]
    assert train(tmp_path, f"csv:{tmp_path / 't.csv'}", "--epochs", 30).returncode == 0

    def write(name, order, first=0):
        text = "\n".join(",".join(["7" if i and k < 0 else "id" if k < 0 else row[k] for k in order]) for i, row in enumerate(rows) if i >= first)
        (tmp_path / name).write_text(text + "\n")
        return tmp_path / name

    def said(file):
        r = weft("predict", tmp_path / "run", file, "--measure", 0, "--json")
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout.replace(str(file), ""))

    want = said(write("ab.csv", (0, 1)))
    for order in ((1, 0), (2, 1, 0), (1, -1, 0)):
        assert said(write("other.csv", order)) == want, order
    assert said(write("none.csv", (0, 1), first=1)) == want
    turned = write("turned.csv", (2, 1, 0))
    assert score(tmp_path / "run", "--data", f"csv:{turned}")["accuracy"] > 0.95
    r = train(tmp_path / "two", f"csv:{tmp_path / 't.csv'},{turned}", "--epochs", 30)
    assert json.loads(r.stdout)["test_accuracy"] > 0.95, r.stderr
    assert weft("export", tmp_path / "run", "--to", tmp_path / "out").returncode == 0
    assert json.loads((tmp_path / "out" / "export.json").read_text())["columns"] == ["a", "b"]
    rows[0][1] = "c"
    r = weft("predict", tmp_path / "run", write("c.csv", (1, 0)))
    assert r.returncode == 1 and "the training rows have a column 'b', this has c, a" in r.stderr, r.stderr
    r = weft("eval", tmp_path / "run", "--data", f"csv:{write('c.csv', (0, 1))}")
    assert r.returncode == 1 and "the training rows have a" in r.stderr, r.stderr


@pytest.mark.parametrize("text, says", [
    ("a,b,y\n1,2,0\n\n3,nan,1\n", "line 4, column 2 (b): 'nan' is no finite number"),
    ("a,b,y\n1,2,0\n1e999,3,1\n", "line 3, column 1 (a): '1e999'"),
    ("a,b,y\n\"1\n\",2,0\n-inf,3,1\n", "line 4, column 1 (a): '-inf'"),  # a quoted cell of two lines
    ("a,b,y\n1,2,0\n3,4,\n", "line 3, column 3 (y): '' is no label"),
    ("a,b,y\n1,2,0\n3,4,NaN\n", "line 3, column 3 (y): 'NaN' is no label"),
    ("a,b,y\n" + 20 * "1,2,0.5\n3,4,1.5\n", "are no classes"),
])
def test_csv_cells_that_are_no_numbers(text, says, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    r = train(tmp_path, f"csv:{tmp_path / 't.csv'}")
    assert r.returncode == 1 and says in r.stderr, r.stderr


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint16, np.int64, np.uint64])
def test_labels_of_any_whole_numbers(kind, tmp_path):
    x, y = arrays(120, 0)
    np.savez(tmp_path / "x.npz", pictures=x, classes=y.astype(kind))
    r = weft("train", "mlp", "--size", 8, "--data", f"npz:{tmp_path / 'x.npz'}", "--batch", 16, "--steps", 2, "--no-compare")
    assert r.returncode == 0, r.stderr


@pytest.mark.parametrize("x, y, says", [
    (np.zeros((0, 24, 24), np.uint8), np.zeros(0, np.int32), "holds no example"),
    (np.zeros((30, 4), np.complex64), np.zeros(30, np.int32), "is of complex<f32>"),
    (np.zeros((30, 4), np.float32), np.full(30, 2**31, np.int64), "more than 32 bits: 2147483648"),
    (np.zeros((30, 4), np.float32), np.full(30, 2**64 - 1, np.uint64), "more than 32 bits"),
])
def test_arrays_that_are_none(x, y, says, tmp_path):
    np.savez(tmp_path / "x.npz", x=x, y=y)
    r = train(tmp_path, f"npz:{tmp_path / 'x.npz'}")
    assert r.returncode == 1 and says in r.stderr, r.stderr


@pytest.mark.parametrize("channels", [1, 2, 4, 13])
def test_pictures_of_any_channels(channels, tmp_path):
    """Each channel has a mean and a deviation of its own, in training and in use."""
    rng = np.random.default_rng(channels)
    y = rng.integers(0, 3, 400)
    x = rng.integers(0, 60, (400, 8, 8, channels)) + np.arange(channels) * 10
    x[np.arange(400), :, :, -1] += 25 * y[:, None, None]
    np.savez(tmp_path / "d.npz", x_train=x[:320].astype(np.uint8), y_train=y[:320], x_test=x[320:].astype(np.uint8), y_test=y[320:])
    r = train(tmp_path, f"npz:{tmp_path / 'd.npz'}", "--epochs", 15)
    assert r.returncode == 0, r.stderr
    result = json.loads(r.stdout)
    assert result["mean"] == pytest.approx((x[:320] / 255).mean((0, 1, 2)), rel=1e-5) and result["std"] == pytest.approx((x[:320] / 255).std((0, 1, 2)), rel=1e-4)
    assert result["test_accuracy"] > 0.9
    e = weft("eval", tmp_path / "run", "--json")
    assert json.loads(e.stdout)["loss"] == pytest.approx(result["test_loss"], rel=1e-5), e.stderr


def test_too_many_channels(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((40, 8, 8, 17), np.uint8), y=np.zeros(40, np.int64))
    r = train(tmp_path, f"npz:{tmp_path / 'd.npz'}")
    assert r.returncode == 1 and "17 channels of bytes, at most 16" in r.stderr, r.stderr
