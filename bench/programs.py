"""Programs that nobody tuned weft for, as people write them in JAX: PROGRAMS[name]() gives a function and its arguments.

A name that ends in _grad is the value and the gradient of a loss. None is a row of workloads.py in other words; the sizes are odd on
purpose. untuned.py measures them."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def normal(*shape, seed=0, scale=1.0):
    return jnp.asarray(scale * np.random.default_rng(seed + sum(shape)).standard_normal(shape), jnp.float32)


def integers(low, high, *shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(low, high, shape), jnp.int32)


def with_grad(loss):
    return lambda *arguments: jax.value_and_grad(loss)(*arguments)


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)


# ---- networks ----

@program
def wavenet_grad():
    weights = [normal(2, 32, 64, seed=i, scale=0.1) for i in range(6)]

    def loss(weights, x):
        for i, w in enumerate(weights):
            y = lax.conv_general_dilated(x, w, (1,), [(2**i, 0)], rhs_dilation=(2**i,), dimension_numbers=("NWC", "WIO", "NWC"))
            a, b = jnp.split(y, 2, -1)
            x = x + jnp.tanh(a) * jax.nn.sigmoid(b)
        return jnp.mean(x**2)
    return with_grad(loss), (weights, normal(4, 2048, 32))


@program
def audio_conv_grad():
    params = [normal(9, 1, 32, scale=0.2), normal(9, 32, 64, scale=0.05), normal(9, 64, 64, scale=0.05), normal(64, 10, scale=0.1)]

    def loss(params, x):
        for w in params[:3]:
            x = jax.nn.relu(lax.conv_general_dilated(x, w, (4,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")))
        return jnp.mean((x.mean(1) @ params[3])**2)
    return with_grad(loss), (params, normal(8, 8000, 1))


@program
def gru_odd_grad():
    params = normal(61, 219, scale=0.1), normal(73, 219, scale=0.1), jnp.zeros(219)

    def loss(params, x):
        def cell(h, now):
            r, z, n = jnp.split(now @ params[0] + params[2], 3, -1)
            a, b, c = jnp.split(h @ params[1], 3, -1)
            r, z = jax.nn.sigmoid(r + a), jax.nn.sigmoid(z + b)
            h = (1 - z) * jnp.tanh(n + r * c) + z * h
            return h, h
        return jnp.mean(lax.scan(cell, jnp.zeros((19, 73)), x)[1]**2)
    return with_grad(loss), (params, normal(37, 19, 61))


@program
def graph_attention_grad():
    sender, receiver = integers(0, 1000, 12000), integers(0, 1000, 12000, seed=1)
    params = normal(64, 64, scale=0.1), normal(64, scale=0.1), normal(64, seed=1, scale=0.1)

    def loss(params, x):
        h = x @ params[0]
        e = jax.nn.leaky_relu((h @ params[1])[sender] + (h @ params[2])[receiver], 0.2)
        w = jnp.exp(e - jax.ops.segment_max(e, receiver, 1000)[receiver])
        total = jax.ops.segment_sum(w, receiver, 1000)
        y = jax.ops.segment_sum(h[sender] * (w / total[receiver])[:, None], receiver, 1000)
        return jnp.mean(jax.nn.elu(y)**2)
    return with_grad(loss), (params, normal(1000, 64))


@program
def relative_bias_grad():
    params = normal(192, 576, scale=0.05), normal(192, 192, scale=0.05), normal(6, 393, scale=0.1)
    distance = jnp.arange(197)[:, None] - jnp.arange(197)[None] + 196

    def loss(params, x):
        q, k, v = (t.reshape(4, 197, 6, 32).transpose(0, 2, 1, 3) for t in jnp.split(x @ params[0], 3, -1))
        a = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 32**0.5 + params[2][:, distance], -1)
        return jnp.mean(((a @ v).transpose(0, 2, 1, 3).reshape(4, 197, 192) @ params[1])**2)
    return with_grad(loss), (params, normal(4, 197, 192))


@program
def swin_grad():
    params = normal(96, 288, scale=0.05), normal(96, 96, scale=0.05), normal(96, 384, scale=0.05), normal(384, 96, scale=0.05)

    def windows(x):
        return x.reshape(2, 8, 7, 8, 7, 96).transpose(0, 1, 3, 2, 4, 5).reshape(128, 49, 96)

    def image(w):
        return w.reshape(2, 8, 8, 7, 7, 96).transpose(0, 1, 3, 2, 4, 5).reshape(2, 56, 56, 96)

    def loss(params, x):
        for shift in (0, 3):
            w = windows(jnp.roll(x, (-shift, -shift), (1, 2)))
            q, k, v = (t.reshape(128, 49, 3, 32).transpose(0, 2, 1, 3) for t in jnp.split(w @ params[0], 3, -1))
            a = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 32**0.5, -1) @ v
            a = image(a.transpose(0, 2, 1, 3).reshape(128, 49, 96) @ params[1])
            x = x + jnp.roll(a, (shift, shift), (1, 2))
            x = x + jax.nn.gelu(layer_norm(x) @ params[2]) @ params[3]
        return jnp.mean(x**2)
    return with_grad(loss), (params, normal(2, 56, 56, 96))


@program
def coupling_flow_grad():
    params = [(normal(32, 128, seed=i, scale=0.1), normal(128, 64, seed=i, scale=0.05)) for i in range(6)]

    def loss(params, x):
        logdet = 0
        for a, b in params:
            u, v = x[:, :32], x[:, 32:]
            s, t = jnp.split(jnp.tanh(u @ a) @ b, 2, -1)
            s = jnp.tanh(s)
            logdet = logdet + s.sum(-1)
            x = jnp.concatenate([v * jnp.exp(s) + t, u], -1)
        return jnp.mean(0.5 * (x**2).sum(-1) - logdet)
    return with_grad(loss), (params, normal(512, 64))


@program
def state_space_grad():
    params = normal(64, 16, scale=0.2), normal(64, 16, seed=1, scale=0.2), normal(64, 64, scale=0.1), normal(64, 16, seed=2)

    def loss(params, x):
        dt = jax.nn.softplus(x @ params[2])
        decay = jnp.exp(dt[..., None] * -jnp.exp(params[3]))
        into = (dt * x)[..., None] * (x @ params[0])[:, :, None, :]

        def step(h, now):
            h = now[0] * h + now[1]
            return h, jnp.einsum("bdn,bn->bd", h, now[2])
        time_first = [t.swapaxes(0, 1) for t in (decay, into, x @ params[1])]
        return jnp.mean(lax.scan(step, jnp.zeros((2, 64, 16)), time_first)[1]**2)
    return with_grad(loss), (params, normal(2, 256, 64))


@program
def int8_network():
    weights = [integers(-128, 128, *s).astype(jnp.int8) for s in ((784, 512), (512, 512), (512, 10))]

    def run(weights, x):
        for w in weights[:-1]:
            sums = lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
            x = jnp.clip(jnp.round(jax.nn.relu(sums * 2e-4)), -128, 127).astype(jnp.int8)
        return lax.dot_general(x, weights[-1], (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    return run, (weights, integers(-128, 128, 64, 784).astype(jnp.int8))


@program
def f8_linear():
    def rounded(t, scale):
        return jnp.clip(t * scale, -448, 448).astype(jnp.float8_e4m3fn).astype(jnp.float32) / scale
    return lambda w, x: jnp.mean((rounded(x, 16.0) @ rounded(w, 256.0))**2), (normal(512, 512, scale=0.05), normal(256, 512))


# ---- sequences, states, chances ----

@program
def kalman_grad():
    seen = 0.5 * normal(3, 6)

    def loss(motion, y):
        def step(state, now):
            m, p = motion @ state[0], motion @ state[1] @ motion.T + 0.1 * jnp.eye(6)
            s = seen @ p @ seen.T + 0.2 * jnp.eye(3)
            gain, e = jnp.linalg.solve(s, seen @ p).T, now - seen @ m
            likely = -0.5 * (e @ jnp.linalg.solve(s, e) + jnp.linalg.slogdet(s)[1])
            return (m + gain @ e, p - gain @ s @ gain.T), likely
        return lax.scan(step, (jnp.zeros(6), jnp.eye(6)), y)[1].sum()
    return with_grad(loss), (jnp.eye(6) + 0.01 * normal(6, 6), normal(200, 3))


@program
def hidden_markov_grad():
    emit, seen = normal(64, 100), integers(0, 100, 16, 300)

    def loss(move):
        la, lb = jax.nn.log_softmax(move, -1), jax.nn.log_softmax(emit, -1)

        def one(seen):
            def step(a, now):
                return jax.nn.logsumexp(a[:, None] + la, 0) + lb[:, now], None
            return jax.nn.logsumexp(lax.scan(step, jnp.full(64, -np.log(64.0)), seen)[0])
        return jax.vmap(one)(seen).sum()
    return with_grad(loss), (normal(64, 64),)


@program
def hamiltonian_monte_carlo():
    x, y = normal(500, 20), (normal(500) > 0).astype(jnp.float32)

    def log_density(w):
        z = x @ w
        return jnp.sum(y * z - jax.nn.softplus(z)) - 0.5 * w @ w

    def run(key, w):
        def leap(state, _):
            w, p = state
            p = p + 0.005 * jax.grad(log_density)(w)
            w = w + 0.01 * p
            return (w, p + 0.005 * jax.grad(log_density)(w)), None

        def step(w, key):
            start, accept = jax.random.split(key)
            p = jax.random.normal(start, w.shape)
            (w2, p2), _ = lax.scan(leap, (w, p), None, length=5)
            change = log_density(w2) - 0.5 * p2 @ p2 - log_density(w) + 0.5 * p @ p
            w = jnp.where(jnp.log(jax.random.uniform(accept)) < change, w2, w)
            return w, w
        return lax.scan(step, w, jax.random.split(key, 40))[1].mean(0)
    return run, (jax.random.key(0), jnp.zeros(20))


@program
def beam_search():
    def run(logits):
        def one(logits):
            def step(score, now):
                best, at = lax.top_k((score[:, None] + jax.nn.log_softmax(now, -1)).reshape(-1), 5)
                return best, at
            return lax.scan(step, jnp.zeros(5), logits)
        return jax.vmap(one)(jnp.broadcast_to(logits[:, :, None], (8, 50, 5, 1000)))
    return run, (normal(8, 50, 1000),)


@program
def linear_recurrence_grad():
    def loss(a, b):
        joined = lax.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b), axis=1)
        return jnp.sum(joined[1]**2)
    return with_grad(loss), (jax.nn.sigmoid(normal(8, 1024, 64)), normal(8, 1024, 64, seed=3))


@program
def edit_distance():
    def one(a, b):
        def row(above, letter):
            def column(left, now):
                up, corner, other = now
                cost = jnp.minimum(jnp.minimum(left + 1, up + 1), corner + (letter != other))
                return cost, cost
            first = above[0] + 1
            return jnp.concatenate([first[None], lax.scan(column, first, (above[1:], above[:-1], b))[1]]), None
        return lax.scan(row, jnp.arange(101), a)[0][-1]
    return jax.vmap(one), (integers(0, 4, 64, 100), integers(0, 4, 64, 100, seed=1))


# ---- numbers, matrices, signals ----

@program
def gaussian_process_grad():
    y = normal(300)

    def loss(scales, x):
        z = x * jnp.exp(scales)
        k = jnp.exp(-0.5 * ((z[:, None] - z[None])**2).sum(-1)) + 0.1 * jnp.eye(300)
        low = jnp.linalg.cholesky(k)
        return 0.5 * y @ jax.scipy.linalg.cho_solve((low, True), y) + jnp.log(jnp.diag(low)).sum()
    return with_grad(loss), (jnp.zeros(8), normal(300, 8))


@program
def small_inverses_grad():
    def loss(a, b):
        return jnp.sum(jnp.linalg.inv(a) @ a) + jnp.sum(jnp.linalg.solve(a, b[..., None])) + jnp.sum(jnp.linalg.det(a))
    return with_grad(loss), (normal(4096, 4, 4) + 3 * jnp.eye(4), normal(4096, 4))


@program
def small_exponentials_grad():
    return with_grad(lambda a: jnp.sum(jax.scipy.linalg.expm(a))), (normal(128, 6, 6, scale=0.3),)


@program
def tridiagonal():
    def run(low, middle, high, b):
        return lax.linalg.tridiagonal_solve(low.at[:, 0].set(0), middle, high.at[:, -1].set(0), b)
    return run, (normal(64, 512, scale=0.1), 2 + normal(64, 512, scale=0.1), normal(64, 512, seed=1, scale=0.1), normal(64, 512, 1))


@program
def einsum_chain_grad():
    def loss(a, b, c, d):
        return jnp.sum(jnp.einsum("iaj,jbk,kcl,lia->bc", a, b, c, d)**2)
    return with_grad(loss), (normal(32, 48, 24), normal(24, 40, 16), normal(16, 30, 12), normal(12, 32, 48))


@program
def sparse_matvec_grad():
    from jax.experimental import sparse
    at = jnp.stack([integers(0, 4000, 60000), integers(0, 4000, 60000, seed=1)], 1)

    def loss(data, v):
        return jnp.sum((sparse.BCOO((data, at), shape=(4000, 4000)) @ v)**2)
    return with_grad(loss), (normal(60000), normal(4000))


@program
def spectral_filter_grad():
    def loss(x):
        f = jnp.fft.rfft(x)
        return jnp.sum(jnp.fft.irfft(f * jnp.exp(-1e-4 * jnp.arange(f.shape[-1])**2))**2)
    return with_grad(loss), (normal(16, 1024),)


@program
def mel_spectrogram():
    at, mel, window = jnp.arange(98)[:, None] * 160 + jnp.arange(400), jnp.abs(normal(201, 40)), jnp.hanning(400).astype(jnp.float32)
    return lambda x: jnp.log(jnp.abs(jnp.fft.rfft(x[:, at] * window))**2 @ mel + 1e-6), (normal(4, 16000),)


@program
def histograms():
    def run(x, w):
        return jnp.bincount(x, length=256), jnp.bincount(x, w, length=256), jnp.histogram(w, 64)[0]
    return run, (integers(0, 256, 500000), normal(500000))


@program
def quantiles():
    def run(x):
        return jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=1), jnp.sort(x, 0), jnp.take_along_axis(x, jnp.argsort(x, 1), 1)
    return run, (normal(256, 1000),)


# ---- images, grids, particles ----

@program
def augmentation():
    grid = jnp.stack(jnp.meshgrid(jnp.arange(64.0), jnp.arange(64.0), indexing="ij"), -1) - 31.5

    def one(image, angle, key):
        c, s = jnp.cos(angle), jnp.sin(angle)
        at = grid @ jnp.array([[c, -s], [s, c]]) + 31.5
        y = jnp.stack([jax.scipy.ndimage.map_coordinates(image[..., i], [at[..., 0], at[..., 1]], 1, mode="nearest") for i in range(3)], -1)
        return jax.image.resize(jnp.where(jax.random.bernoulli(key), y[:, ::-1], y), (48, 48, 3), "linear")

    def run(images, angles):
        return jax.vmap(one)(images, angles, jax.random.split(jax.random.key(1), 32))
    return run, (normal(32, 64, 64, 3), normal(32, scale=0.2))


@program
def median_filter():
    def run(x):
        padded = jnp.pad(x, 1, mode="edge")
        return jnp.median(jnp.stack([padded[i:i + 128, j:j + 128] for i in range(3) for j in range(3)], -1), -1)
    return run, (normal(128, 128),)


@program
def life_by_convolution():
    kernel = jnp.ones((3, 3)).at[1, 1].set(0)

    def run(x):
        def step(x, _):
            n = jax.scipy.signal.convolve2d(x, kernel, mode="same")
            return ((n == 3) | ((n == 2) & (x == 1))).astype(jnp.float32), None
        return lax.scan(step, x, None, length=20)[0]
    return run, (integers(0, 2, 256, 256).astype(jnp.float32),)


@program
def wave_grad():
    def loss(u):
        def step(state, _):
            u, before = state
            p = jnp.pad(u, 1)
            bend = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u
            return (2 * u - before + 0.1 * bend, u), None
        return jnp.sum(lax.scan(step, (u, u), None, length=30)[0][0]**2)
    return with_grad(loss), (normal(128, 128),)


@program
def heat_3d():
    def run(u):
        def step(u, _):
            i = u[1:-1, 1:-1, 1:-1]
            around = (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:]
                      + u[1:-1, 1:-1, :-2])
            return u.at[1:-1, 1:-1, 1:-1].set(i + 0.1 * (around - 6 * i)), None
        return lax.scan(step, u, None, length=20)[0]
    return run, (normal(64, 64, 64),)


@program
def lattice_boltzmann():
    moves = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    weight, e = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4), jnp.array(moves, jnp.float32)

    def run(f):
        def step(f, _):
            f = jnp.stack([jnp.roll(f[i], moves[i], (0, 1)) for i in range(9)])
            rho = f.sum(0)
            u = jnp.einsum("qd,qxy->dxy", e, f) / rho
            eu = jnp.einsum("qd,dxy->qxy", e, u)
            rest = weight[:, None, None] * rho * (1 + 3 * eu + 4.5 * eu**2 - 1.5 * (u**2).sum(0))
            return f + 0.8 * (rest - f), None
        return lax.scan(step, f, None, length=20)[0]
    return run, (jnp.ones((9, 128, 128)) / 9 + 0.01 * normal(9, 128, 128),)


@program
def ray_marching():
    def distance(p):
        return jnp.minimum(jnp.linalg.norm(jnp.mod(p + 1, 2) - 1, axis=-1) - 0.5, p[..., 1] + 1.5)

    def run(eye):
        u = jnp.linspace(-1, 1, 128)
        d = jnp.stack(jnp.broadcast_arrays(u[None, :], u[:, None], jnp.ones((128, 128))), -1)
        d = d / jnp.linalg.norm(d, axis=-1, keepdims=True)
        t = lax.fori_loop(0, 48, lambda _, t: t + distance(eye + t[..., None] * d), jnp.zeros((128, 128)))
        normals = jax.vmap(jax.vmap(jax.grad(distance)))(eye + t[..., None] * d)
        return jnp.clip((normals * jnp.array([0.5, 0.7, -0.5])).sum(-1), 0, 1)
    return run, (jnp.array([0.3, 0.2, -3.0]),)


@program
def lennard_jones():
    def energy(x):
        d = x[:, None] - x[None]
        d = d - 8 * jnp.round(d / 8)
        i = 1 / ((d**2).sum(-1) + 100 * jnp.eye(256))**3
        return 2 * jnp.sum(i * i - i)

    def run(x):
        def step(state, _):
            x, v = state
            v = v - 1e-4 * jax.grad(energy)(x)
            return (x + 1e-2 * v, v), None
        return lax.scan(step, (x, jnp.zeros_like(x)), None, length=10)[0][0]
    return run, (8 * jax.random.uniform(jax.random.key(0), (256, 3)),)


@program
def runge_kutta_grad():
    def loss(w, y):
        def step(y, _, h=0.05):
            def f(y):
                return jnp.tanh(y @ w)
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3)), None
        return jnp.mean(lax.scan(step, y, None, length=40)[0]**2)
    return with_grad(loss), (normal(16, 16, scale=0.2), normal(256, 16))


@program
def sinkhorn_grad():
    def loss(cost):
        def turn(state, _):
            u = -jax.nn.logsumexp(state[1][None] - cost / 0.1, 1)
            return (u, -jax.nn.logsumexp(u[:, None] - cost / 0.1, 0)), None
        u, v = lax.scan(turn, (jnp.zeros(256), jnp.zeros(256)), None, length=20)[0]
        return jnp.sum(jnp.exp(u[:, None] + v[None] - cost / 0.1) * cost)
    return with_grad(loss), (jnp.abs(normal(256, 256)),)
