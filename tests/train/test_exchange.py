"""Weights to and from other programs: exported networks give the same numbers in JAX, PyTorch and Keras; weights that transformers made
give here what they give there. What is not installed is skipped."""
import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT, weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60


def trained(folder, model, *args):
    run = folder / model
    r = weft("train", model, "--steps", 2, "--no-compare", "--no-eval", "--batch", 2, "--out", run, *args)
    assert r.returncode == 0, r.stderr
    out = folder / f"{model}-export"
    r = weft("export", run, "--to", out, "--batch", 3)
    assert r.returncode == 0, r.stderr
    return run, out


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    (folder / "text.txt").write_text(TEXT)
    text = ["--data", f"text:{folder / 'text.txt'}", "--length", 8, "--size", 2]
    pictures = ["--data", "synthetic"]
    return {"mnist": trained(folder, "mnist", *pictures), "mlp": trained(folder, "mlp", *pictures, "--size", 16, "--ema", 0.5),
            "gpt2": trained(folder, "gpt2", *text), "bert": trained(folder, "bert", *text), "davidnet": trained(folder, "davidnet", *pictures)}


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem + path.parent.name.replace("-", "_"), path)
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    return m


def example(out):
    about = json.loads((out / "export.json").read_text())
    rng = np.random.default_rng(2)
    shape = about["input"]["shape"]
    if about["input"]["type"] == "ui8":
        return rng.integers(0, 256, shape).astype(np.uint8)
    return rng.integers(0, 200, shape).astype(np.int32)


def in_weft(out, x, tmp_path):
    """The exported program on weft's CPU device."""
    np.savez(tmp_path / "in.npz", in0=x)
    r = weft("run", out / "forward.mlirbc", "--device", "cpu", "--in", tmp_path / "in.npz", "--out", tmp_path / "out.npz")
    assert r.returncode == 0, r.stderr
    return np.load(tmp_path / "out.npz")["out0"]


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-5 * np.abs(want).max() + 1e-6)


def test_the_program_is_what_predict_computes(made, tmp_path):
    run, out = made["mlp"]  # with averages of the weights: they are what counts
    x = example(out)
    np.save(tmp_path / "x.npy", x)
    r = weft("predict", run, tmp_path / "x.npy", "--top", 10, "--measure", 0, "--json")
    assert r.returncode == 0, r.stderr
    z = in_weft(out, x, tmp_path)
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    for a, row in zip(json.loads(r.stdout)["answers"], p):
        close(np.array([t["p"] for t in sorted(a["top"], key=lambda t: t["class"])]), row)


@pytest.mark.parametrize("model", ["mnist", "gpt2"])
def test_jax(model, made, tmp_path):
    out = made[model][1]
    x = example(out)
    code = f"import sys, numpy as np; sys.path.insert(0, {str(out)!r}); import load_jax; np.save(sys.argv[1], load_jax.load()(np.load(sys.argv[2])))"
    np.save(tmp_path / "x.npy", x)
    subprocess.run([sys.executable, "-c", code, tmp_path / "y.npy", tmp_path / "x.npy"], check=True, env={"JAX_PLATFORMS": "cpu"})
    close(np.load(tmp_path / "y.npy"), in_weft(out, x, tmp_path))


@pytest.mark.parametrize("model", ["mnist", "mlp", "davidnet", "gpt2", "bert"])
def test_pytorch(model, made, tmp_path, capfd):
    torch = pytest.importorskip("torch")
    if model in ("gpt2", "bert"):
        pytest.importorskip("transformers")
    out = made[model][1]
    x = example(out)
    with torch.no_grad():
        got = module(out / "load_pytorch.py").load()(torch.tensor(x).long() if x.dtype == np.int32 else torch.tensor(x))
    close(got.numpy(), in_weft(out, x, tmp_path))
    assert "token_id" not in capfd.readouterr().err, "no end of text beyond the vocabulary"


@pytest.mark.parametrize("model", ["mnist", "mlp"])
def test_keras(model, made, tmp_path):
    pytest.importorskip("keras")
    out = made[model][1]
    x = example(out)
    close(np.asarray(module(out / "load_keras.py").load()(x)), in_weft(out, x, tmp_path))


def transformer(kind):
    t = pytest.importorskip("transformers")
    if kind == "gpt2":
        return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=256, n_layer=2, n_embd=128, n_head=2))
    if kind == "bert":
        return t.BertForMaskedLM(t.BertConfig(vocab_size=257, num_hidden_layers=2, hidden_size=128, num_attention_heads=2, intermediate_size=512))
    return t.LlamaForCausalLM(t.LlamaConfig(vocab_size=256, num_hidden_layers=2, hidden_size=128, num_attention_heads=2, num_key_value_heads=2,
                                            intermediate_size=384, rms_norm_eps=1e-5, rope_theta=1e4, tie_word_embeddings=True))


@pytest.mark.parametrize("kind", ["gpt2", "bert", "llama"])
def test_import_of_transformers(kind, tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    net = transformer(kind).eval()
    with torch.no_grad():  # biases and scales that are not what they begin with
        for p in net.parameters():
            p.add_(0.02 * torch.randn_like(p))
    net.save_pretrained(tmp_path / "hub")
    r = weft("import", kind, tmp_path / "hub/model.safetensors", "--to", tmp_path / "run", "--size", 2, "--length", 12)
    assert r.returncode == 0, r.stderr
    r = weft("export", tmp_path / "run", "--to", tmp_path / "out")
    assert r.returncode == 0, r.stderr
    x = example(tmp_path / "out")
    with torch.no_grad():
        want = net(torch.tensor(x).long()).logits.numpy()
    close(in_weft(tmp_path / "out", x, tmp_path), want)
    if kind == "bert":
        return
    prompt = "To be"
    ids = torch.tensor([list(prompt.encode())])
    with torch.no_grad():
        for _ in range(6):
            ids = torch.cat([ids, net(ids).logits[:, -1:].argmax(-1)], 1)
    r = weft("generate", tmp_path / "run", "--prompt", prompt, "--tokens", 6, "--temperature", 0, "--json")
    assert r.returncode == 0, r.stderr
    assert json.loads(r.stdout)["tokens"] == ids[0, 5:].tolist()


CONFIG = {"gpt2": {"n_head": 2, "n_layer": 2, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "scale_attn_weights": True},
          "bert": {"num_attention_heads": 2, "num_hidden_layers": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "tie_word_embeddings": True}}


@pytest.mark.parametrize("kind, key, value, says", [
    ("gpt2", "n_head", 4, "n_head 4, weft's 'gpt2' 2"),
    ("gpt2", "layer_norm_epsilon", 1e-6, "layer_norm_epsilon 1e-06"),
    ("gpt2", "activation_function", "relu", "activation_function 'relu'"),
    ("gpt2", "activation_function", "gelu_pytorch_tanh", None),
    ("gpt2", "scale_attn_by_inverse_layer_idx", True, "scale_attn_by_inverse_layer_idx true"),
    ("bert", "num_attention_heads", 8, "num_attention_heads 8"),
    ("bert", "hidden_act", "gelu_new", "hidden_act 'gelu_new'"),
    ("bert", "position_embedding_type", "relative_key", "position_embedding_type 'relative_key'"),
])
def test_import_of_another_network_of_the_same_shapes(kind, key, value, says, made, tmp_path):
    """Heads, epsilons, activations and positions are in config.json alone: another network is refused, not computed as weft's."""
    weights = made[kind][1] / "pytorch.safetensors"
    for file in ("hub", "hub/model.safetensors"):
        (tmp_path / "hub").mkdir(exist_ok=True)
        (tmp_path / "hub/model.safetensors").write_bytes(weights.read_bytes())
        (tmp_path / "hub/config.json").write_text(json.dumps(CONFIG[kind] | {key: value}))
        r = weft("import", kind, tmp_path / file, "--to", tmp_path / "run", "--length", 8, "--size", 2, "--overwrite")
        if says:
            assert r.returncode == 1 and says in r.stderr and not (tmp_path / "run").exists(), r.stderr
        else:
            assert r.returncode == 0, r.stderr


def test_import_of_a_head_of_its_own(made, tmp_path):
    from safetensors.numpy import load_file, save_file
    weights = load_file(made["gpt2"][1] / "pytorch.safetensors")
    table = weights["transformer.wte.weight"]
    for head, status in ((table, 0), (table + 1, 1)):
        save_file(weights | {"lm_head.weight": head}, tmp_path / "x.safetensors")
        r = weft("import", "gpt2", tmp_path / "x.safetensors", "--to", tmp_path / "run", "--length", 8, "--size", 2)
        assert r.returncode == status and ("head of its own" in r.stderr) == bool(status), r.stderr


def test_import_says_what_is_missing(tmp_path):
    from safetensors.numpy import save_file
    save_file({"transformer.wte.weight": np.zeros((256, 128), np.float32)}, tmp_path / "x.safetensors")
    r = weft("import", "gpt2", tmp_path / "x.safetensors", "--to", tmp_path / "run", "--size", 2)
    assert r.returncode == 1 and "transformer.wpe.weight" in r.stderr


def halves(folder, to):
    """The weights of a folder in two files and an index."""
    import shutil

    from safetensors.numpy import load_file, save_file
    shutil.copytree(folder, to)
    w = load_file(to / "model.safetensors")
    (to / "model.safetensors").unlink()
    names = {n: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, n in enumerate(sorted(w))}
    for f in set(names.values()):
        save_file({n: w[n] for n in names if names[n] == f}, to / f)
    (to / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def test_folder_of_a_hub(made, tmp_path):
    """Depth, tokenizer and weights of a folder, in one file or several, as of the file with all said by flags."""
    import shutil
    hub = tmp_path / "hub"
    shutil.copytree(TOKENS / "gpt2", hub)
    (tmp_path / "text.txt").write_text(TEXT)
    r = weft("train", "gpt2", "--size", 2, "--length", 16, "--data", f"text:{tmp_path / 'text.txt'}", "--tokenizer", hub, "--steps", 2, "--batch", 2,
             "--no-compare", "--no-eval", "--out", tmp_path / "made")
    assert r.returncode == 0, r.stderr
    assert weft("export", tmp_path / "made", "--to", tmp_path / "out").returncode == 0
    shutil.copy(tmp_path / "out" / "pytorch.safetensors", hub / "model.safetensors")
    (hub / "config.json").write_text('{"n_layer": 2, "n_embd": 128}')
    halves(hub, tmp_path / "parts")
    said = {}
    for name, what, flags in (("file", hub / "model.safetensors", ["--size", 2, "--tokenizer", hub]), ("folder", hub, []), ("parts", tmp_path / "parts", [])):
        r = weft("import", "gpt2", what, "--to", tmp_path / name, *flags)
        assert r.returncode == 0, r.stderr
        r = weft("generate", tmp_path / name, "--prompt", "To be", "--tokens", 12, "--json")
        assert r.returncode == 0, r.stderr
        said[name] = json.loads(r.stdout)["text"]
    assert said["file"] == said["folder"] == said["parts"]
    r = weft("train", "gpt2", "--init", tmp_path / "folder", "--data", f"text:{tmp_path / 'text.txt'}", "--length", 16, "--steps", 2, "--batch", 2, "--no-compare",
             "--no-eval")
    assert r.returncode == 0 and "begins with 28 of 28 tensors" in r.stderr and "size 2" in r.stderr, r.stderr


def test_folders_that_are_none(made, tmp_path):
    out = made["gpt2"][1]

    def refused(what, *words):
        r = weft("import", "gpt2", what, "--to", tmp_path / "no")
        assert r.returncode == 1 and all(w in r.stderr for w in words), r.stderr
    refused(tmp_path, "neither model.safetensors nor model.safetensors.index.json")
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../b.safetensors"}}')
    refused(tmp_path, "tensor 'a' is in no file")
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    refused(tmp_path, "has no weight_map")
    (tmp_path / "weights.bin").write_bytes(b"PK" * 50)
    refused(tmp_path / "weights.bin", "pickle of PyTorch")
    refused(out / "pytorch.safetensors", "is f32 (256, 128), 'wte/table' needs floats (256, 768)", "--size N")


TOKENS = ROOT / "tests" / "train" / "tokens"
MASKED = "Weft [MASK] a Straße: one [MASK] more"


def filled(run):
    """The likeliest words for each mask, and how likely."""
    r = weft("predict", run, MASKED, "--top", 20, "--measure", 0, "--json")
    assert r.returncode == 0, r.stderr
    return [{t["class"]: t["p"] for t in a["top"]} for a in json.loads(r.stdout)["answers"]]


def test_word_pieces(tmp_path):
    """Trained on a text in word pieces; what fills up an example changes no answer."""
    (tmp_path / "text.txt").write_text(TEXT)
    r = weft("train", "bert", "--size", 2, "--length", 24, "--data", f"text:{tmp_path / 'text.txt'}", "--tokenizer", TOKENS / "uncased" / "vocab.txt",
             "--batch", 4, "--steps", 8, "--lr", 1e-3, "--no-compare", "--no-eval", "--out", tmp_path / "long")
    assert r.returncode == 0, r.stderr
    assert (tmp_path / "long" / "vocab.txt").exists()
    r = weft("eval", tmp_path / "long", "--json")
    assert r.returncode == 0, r.stderr
    r = weft("export", tmp_path / "long", "--to", tmp_path / "out")
    assert r.returncode == 0, r.stderr
    r = weft("import", "bert", tmp_path / "out" / "pytorch.safetensors", "--to", tmp_path / "short", "--size", 2, "--length", 18,
             "--tokenizer", tmp_path / "long")
    assert r.returncode == 0, r.stderr
    long, short = filled(tmp_path / "long"), filled(tmp_path / "short")
    assert len(long) == 2 and long[0] != long[1]
    for a, b in zip(long, short):
        assert a == pytest.approx(b, rel=1e-4)
    r = weft("predict", tmp_path / "long", "no mask here")
    assert r.returncode == 1 and "no [MASK]" in r.stderr


@pytest.mark.parametrize("kind", ["uncased/vocab.txt", "cased"])
def test_masks_as_transformers(kind, tmp_path):
    torch = pytest.importorskip("torch")
    t = pytest.importorskip("transformers")
    tokens = t.BertTokenizerFast(tokenizer_file=str(TOKENS / kind.split("/")[0] / "tokenizer.json"), do_lower_case=kind != "cased")
    torch.manual_seed(1)
    net = t.BertForMaskedLM(t.BertConfig(vocab_size=len(tokens), num_hidden_layers=2, hidden_size=128, num_attention_heads=2,
                                         intermediate_size=512, initializer_range=0.1)).eval()
    net.save_pretrained(tmp_path / "hub")
    r = weft("import", "bert", tmp_path / "hub/model.safetensors", "--to", tmp_path / "run", "--size", 2, "--length", 40,
             "--tokenizer", TOKENS / kind)
    assert r.returncode == 0, r.stderr
    ids = tokens(MASKED, return_tensors="pt")
    assert ids["input_ids"][0, 0] == tokens.cls_token_id
    with torch.no_grad():
        p = net(**ids).logits[0].softmax(-1).numpy()
    places = (ids["input_ids"][0] == tokens.mask_token_id).nonzero()[:, 0].tolist()
    got = filled(tmp_path / "run")
    assert len(got) == len(places) == 2
    for place, a in zip(places, got):
        assert a == pytest.approx({k: p[place, k] for k in a}, rel=2e-3)
        assert max(a, key=a.get) == p[place].argmax()
