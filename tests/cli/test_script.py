"""A Python script in place of a program. The Python that runs it is a stand-in here: tests/doors/torch has the real one."""
import sys

from conftest import weft

PROGRAM = """module @step { func.func @main(%w: tensor<256x256xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  %1 = stablehlo.subtract %w, %0 : tensor<256x256xf32>
  return %1 : tensor<256x256xf32> } }
"""


def stand_in(tmp_path, body):
    """A program that is started as Python would be."""
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\nimport sys\n{body}")
    python.chmod(0o755)
    script = tmp_path / "train.py"
    script.write_text("")
    return {"WEFT_PYTHON": str(python)}, script


def test_step_of_a_script(tmp_path):
    env, script = stand_in(tmp_path, f"assert sys.argv[1:4] == ['-m', 'weft.torch', '--capture'] and sys.argv[5].endswith('train.py')\n"
                                     f"print('epoch 0')\nopen(sys.argv[4], 'w').write({PROGRAM!r})\n")
    program = tmp_path / "train.mlir"
    program.write_text(PROGRAM)
    got = weft("estimate", script, "--chip", "A100-80GB", "--json", env=env)
    want = weft("estimate", program, "--chip", "A100-80GB", "--json")
    assert got.returncode == 0, got.stderr
    assert "epoch 0" in got.stderr  # what a script prints is not the answer
    assert got.stdout.replace("train.py", "train.mlir") == want.stdout


def test_own_arguments(tmp_path):
    """What follows -- is the script's."""
    env, script = stand_in(tmp_path, f"assert sys.argv[6:] == ['--chip', '8', 'x']\nopen(sys.argv[4], 'w').write({PROGRAM!r})\n")
    r = weft("estimate", script, "--chip", "A100-80GB", "--", "--chip", "8", "x", env=env)
    assert r.returncode == 0, r.stderr


def test_script_that_fails(tmp_path):
    env, script = stand_in(tmp_path, "sys.exit('no such model')\n")
    r = weft("estimate", script, "--chip", "A100-80GB", env=env)
    assert r.returncode == 1
    assert "no such model" in r.stderr and "no training step was captured" in r.stderr


def test_no_script_no_python(tmp_path):
    r = weft("estimate", tmp_path / "gone.py", "--chip", "A100-80GB")
    assert r.returncode == 1 and "gone.py" in r.stderr
    _, script = stand_in(tmp_path, "")
    r = weft("estimate", script, "--chip", "A100-80GB", env={"WEFT_PYTHON": str(tmp_path / "nowhere")})
    assert r.returncode == 1 and "WEFT_PYTHON" in r.stderr


def test_donated_without_a_successor(tmp_path):
    """An argument that is only said to be donated, as PyTorch/XLA's are, may make room for a result of another shape."""
    program = tmp_path / "step.mlir"
    program.write_text("""module @step { func.func @main(%w: tensor<4096xf32> {jax.buffer_donor = true}) -> tensor<1x4096xf32> {
  %0 = stablehlo.add %w, %w : tensor<4096xf32>
  %1 = stablehlo.reshape %0 : (tensor<4096xf32>) -> tensor<1x4096xf32>
  return %1 : tensor<1x4096xf32> } }
""")
    r = weft("profile", program, "--device", "cpu")
    assert r.returncode == 0, r.stderr
