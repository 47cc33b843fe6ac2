"""What each device holds where shard_map(check_vma=False) says that devices have the same and they have not; prints JSON."""
import json

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
x = np.arange(8, dtype=np.float32)
called = lambda x: jax.pure_callback(lambda a: np.asarray(a) * 2, x, x)


def mapped(f, i, o):
    return jax.shard_map(f, mesh=mesh, in_specs=i, out_specs=o, check_vma=False)


programs = {
    "apart": mapped(lambda x: x * 2, P(("x", "y")), P()),
    "apart along one axis": mapped(lambda x: x * 2, P(("x", "y")), P("x")),
    "called back": mapped(called, P(("x", "y")), P("y")),
    "by number": mapped(lambda x: x + lax.axis_index("y"), P("x"), P("x")),
    "in a loop": mapped(lambda x: lax.fori_loop(0, 3, lambda i, x: x + lax.axis_index("x"), x), P("y"), P("y")),
    "summed along one axis": mapped(lambda x: lax.psum(x, "y"), P(("x", "y")), P()),
    "within": lambda x: mapped(called, P(), P(("x", "y")))(3 * mapped(lambda x: x + 1, P(("x", "y")), P())(x)),
    "alike": mapped(lambda x: lax.psum(x, ("x", "y")), P(("x", "y")), P()),
}
held = lambda y: [np.asarray(s.data).tolist() for s in y.addressable_shards]
out = {name: held(jax.jit(f)(x)) for name, f in programs.items()}

# Given to further programs.
y = jax.jit(programs["apart"])(x)
further = {
    "added": lambda y: y + 1,
    "cut": lambda y: lax.with_sharding_constraint(y * 2, NamedSharding(mesh, P("x"))),
    "mapped": mapped(lambda y: y + 1, P(), P(("x", "y"))),
    "summed": mapped(lambda y: lax.psum(y, ("x", "y")), P(), P()),
}
out["given on"] = {name: held(jax.jit(f)(y)) for name, f in further.items()}
out["twice"] = held(jax.jit(further["added"])(jax.jit(further["added"])(y)))
out["eager"] = held(jax.shard_map(called, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")))(x))
print(json.dumps(out))
