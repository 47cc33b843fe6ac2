"""PyTorch/XLA finds this package by its entry point, which only an installed one has. Where it is run from a source tree,
Python is told of one."""
import importlib.metadata
import sys


class _Distribution(importlib.metadata.Distribution):
    _TEXTS = {"METADATA": "Metadata-Version: 2.1\nName: weft-source-tree\nVersion: 0\n",
              "entry_points.txt": "[torch_xla.plugins]\nweft = weft.torch.plugin:entry\n"}

    def read_text(self, filename):
        return self._TEXTS.get(filename)

    def locate_file(self, path):
        return path


class _Finder(importlib.metadata.DistributionFinder):
    def find_spec(self, name, path=None, target=None):
        return None

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        return [_Distribution()] if context.name in (None, "weft-source-tree") else []


def offer_entry_point():
    """Before torch_xla is imported."""
    if not any(e.value.startswith("weft.") for e in importlib.metadata.entry_points(group="torch_xla.plugins")):
        sys.meta_path.append(_Finder())
