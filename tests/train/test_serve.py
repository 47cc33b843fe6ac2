"""weft serve: the answers are predict's and generate's, requests that come together share batches, errors are JSON."""
import concurrent.futures
import json
import signal
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image

from conftest import BUILD, ROOT, weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60


class Server:
    def __init__(self, run, *flags):
        self.process = subprocess.Popen([str(BUILD / "weft"), "serve", str(run), "--port", "0", *map(str, flags)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert "http://" in line, self.process.stderr.read()
        self.url = line.split()[-1].rstrip("/")

    def ask(self, path, body=None, kind=None):
        try:
            call = urllib.request.Request(self.url + path, body, {"Content-Type": kind} if kind else {})
            with urllib.request.urlopen(call, timeout=60) as r:
                return r.status, json.loads(r.read())
        except urllib.error.HTTPError as e:
            return e.code, json.loads(e.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        _, self.said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and "latency p50" in self.said, self.said


def test_pictures(tmp_path):
    run = tmp_path / "run"
    r = weft("train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 64, "--steps", 5, "--no-compare", "--no-eval", "--out", run)
    assert r.returncode == 0, r.stderr
    bodies, files = [], []
    for i in range(12):
        files.append(tmp_path / f"{i}.png")
        Image.fromarray(np.random.default_rng(i).integers(0, 256, (28, 28)).astype(np.uint8)).save(files[-1])
        bodies.append(files[-1].read_bytes())
    want = json.loads(weft("predict", run, *files, "--top", 2, "--measure", 0, "--json").stdout)["answers"]
    with Server(run, "--top", 2, "--wait-ms", 200, "--batch", 8) as s:
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            got = list(pool.map(lambda b: s.ask("/predict", b), bodies))
        for (status, answer), w in zip(got, want):
            assert status == 200 and [t["class"] for t in answer["top"]] == [t["class"] for t in w["top"]]
            assert answer["top"][0]["p"] == pytest.approx(w["top"][0]["p"], rel=1e-3)
        m = s.ask("/metrics")[1]
        assert m["examples"] == 12 and m["batches"] < 12 and m["latency_p99_s"] >= m["latency_p50_s"] > 0
        assert s.ask("/health") == (200, {"status": "ok"})
        assert s.ask("/")[1]["shape"] == [28, 28, 1]
        for path, body, status, say in (("/nothing", None, 404, "there is no GET /nothing"), ("/predict", b"no picture", 415, "nor a JPEG: text"),
                                        ("/predict", b"{}", 415, "nor a JPEG: JSON"), ("/predict", b"GIF89a...", 415, "nor a JPEG: a GIF"),
                                        ("/predict", b"", 400, "empty"),
                                        ("/predict", bodies[0][:60], 400, "damaged PNG"), ("/generate", b"{}", 415, "makes no text")):
            code, answer = s.ask(path, body)
            assert code == status and say in answer["error"]["message"] and answer["error"]["code"], answer
        form = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + bodies[0] + b"\r\n--x--\r\n"
        code, answer = s.ask("/predict", form, "multipart/form-data; boundary=x")
        assert code == 415 and "a form" in answer["error"]["message"] and "--data-binary" in answer["error"]["hint"]


def test_text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    run = tmp_path / "run"
    r = weft("train", "gpt2", "--size", 1, "--length", 16, "--data", f"text:{tmp_path / 'text.txt'}", "--batch", 4, "--steps", 20, "--no-compare",
             "--no-eval", "--out", run)
    assert r.returncode == 0, r.stderr
    want = json.loads(weft("generate", run, "--prompt", "To be", "--tokens", 10, "--seed", 7, "--json").stdout)["text"]
    with Server(run, "--batch", 2) as s:
        status, answer = s.ask("/generate", json.dumps({"prompt": "To be", "tokens": 10, "seed": 7}).encode())
        assert status == 200 and answer["text"] == want and answer["tokens"] == 10
        assert len(s.ask("/predict", json.dumps({"text": "To b"}).encode())[1]["top"]) == 5
        for body, say in ((b"{", '"prompt"'), (b'{"prompt": ""}', "no tokens"), (b'{"prompt": "a", "tokens": -1}', '"tokens" wants')):
            status, answer = s.ask("/generate", body)
            assert status == 400 and say in answer["error"]["message"]
        for body, say in ((b'{"text": ""}', "no tokens"), (b"To be", "no JSON object"), (b'{"prompt": "a"}', 'no string "text"')):
            status, answer = s.ask("/predict", body)
            assert status == 400 and say in answer["error"]["message"], answer


def test_wrong_address(tmp_path):
    r = weft("serve", tmp_path)
    assert r.returncode == 1 and "checkpoint.safetensors" in r.stderr


def test_masks(tmp_path):
    """What fills each [MASK], as weft predict says it."""
    (tmp_path / "text.txt").write_text(TEXT)
    r = weft("train", "bert", "--size", 1, "--length", 24, "--data", f"text:{tmp_path / 'text.txt'}", "--tokenizer", ROOT / "tests" / "train" / "tokens" / "uncased",
             "--batch", 4, "--steps", 5, "--lr", 0.01, "--no-compare", "--no-eval", "--out", tmp_path / "run")
    assert r.returncode == 0, r.stderr
    one, two = "to be or not to [MASK]", "to [MASK] or not [MASK] be"
    want = {t: json.loads(weft("predict", tmp_path / "run", t, "--top", 3, "--measure", 0, "--json").stdout)["answers"] for t in (one, two)}
    with Server(tmp_path / "run", "--top", 3) as s:
        answers = {t: s.ask("/predict", json.dumps({"text": t}).encode())[1] for t in (one, two)}
        code, answer = s.ask("/predict", b'{"text": "to be"}')
        assert code == 400 and "no [MASK]" in answer["error"]["message"]
    for got, w in zip([answers[one], *answers[two]["masks"]], [*want[one], *want[two]]):
        assert [t["name"] for t in got["top"]] == [t["name"] for t in w["top"]]
        assert got["top"][0]["p"] == pytest.approx(w["top"][0]["p"], rel=1e-3)
