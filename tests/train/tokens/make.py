"""Makes the golden files beside it: small vocabularies from text of our own, and what the `tokenizers` package (which
transformers' BertTokenizer and GPT2Tokenizer run on) makes of cases.txt with them.

    pip install tokenizers && python tests/train/tokens/make.py
"""
import json
import pathlib

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CASES = (HERE / "cases.txt").read_bytes().decode().split("\n====\n")
TEXT = [p.read_text(encoding="utf-8") for p in sorted((HERE.parents[2] / "docs" / "guide").glob("*.md"))] + CASES


def bert(lower, **how):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower, **how)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(TEXT, trainers.WordPieceTrainer(vocab_size=700, special_tokens=SPECIAL, show_progress=False))
    return t


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=600, show_progress=False,
                                                    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def main():
    ids = {}
    kinds = {"uncased": bert(True), "cased": bert(False), "accents": bert(True, strip_accents=False, handle_chinese_chars=False),
             "gpt2": gpt2()}
    for name, t in kinds.items():
        (HERE / name).mkdir(exist_ok=True)
        t.save(str(HERE / name / "tokenizer.json"), pretty=False)
        ids[name] = [t.encode(c, add_special_tokens=False).ids for c in CASES]
    kinds["gpt2"].model.save(str(HERE / "gpt2"))
    for name in ("uncased", "cased"):  # the older form of the same
        kinds[name].model.save(str(HERE / name))
    (HERE / "ids.json").write_text(json.dumps(ids) + "\n")


if __name__ == "__main__":
    main()
