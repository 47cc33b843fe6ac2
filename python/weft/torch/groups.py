"""torch.distributed in replicas that are threads of one process: what it keeps for a process (the default group, ranks, names), once for
each replica.

Private parts of PyTorch that are used: `distributed.distributed_c10d._world`.
"""
import threading
import types

import torch.distributed as dist

NAMES = 1 << 20  # groups that a replica may number, so that no two have one name


def _world(index):
    return types.SimpleNamespace(default_pg=None, pg_map={}, pg_names={}, pg_group_ranks={}, pg_backend_config={}, group_count=NAMES * index,
                                 tags_to_pg={}, pg_to_tag={}, pg_coalesce_state={})


class Worlds:
    """In the place of distributed_c10d._world. own(): the key of the replica whose thread it is asked in; None: of none, as in the threads of
    autograd, which see the first replica's."""

    def __init__(self, own, outside):
        vars(self).update(own=own, outside=outside, of={}, lock=threading.Lock())

    def _mine(self):
        key = self.own()
        with self.lock:
            if key is None:
                return next(iter(self.of.values()), self.outside)
            if key not in self.of:
                self.of[key] = _world(len(self.of))
            return self.of[key]

    def __getattr__(self, name):
        return getattr(self._mine(), name)

    def __setattr__(self, name, value):
        setattr(self._mine(), name, value)

    @property
    def pg_config_info(self):
        return []


def install(own):
    c10d = getattr(dist, "distributed_c10d", None)
    if c10d is not None and hasattr(c10d, "_world"):
        outside = c10d._world.outside if isinstance(c10d._world, Worlds) else c10d._world
        c10d._world = Worlds(own, outside)
