"""Tasks that weft writes for SkyPilot, read by SkyPilot's own parser and optimizer's schema: `make test-sky`.

    sky_check.py WEFT

Needs skypilot (tools/test_sky.sh makes a venv of its own); no account, nothing is rented."""
import os
import pathlib
import subprocess
import sys
import tempfile

import sky

PLANS = [("llama3-8b", "H100:16", []), ("llama3-70b", "H200:64", []), ("llama3-8b", "A100-80GB:8", ["--spot"]), ("gemma-2b", "tpu-v5e:16", []),
         ("llama3-8b", "tpu-v5p:64", []), ("llama3-8b", "tpu-v6e:16", ["--spot"])]


def main():
    weft = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        env = dict(os.environ, WEFT_RUNS=f"{folder}/runs.db")
        for i, (model, chips, more) in enumerate(PLANS):
            subprocess.run([weft, "plan", model, "--chips", chips, "--tokens", "1e9", "--emit", f"job{i}", "--json", *more], check=True, env=env,
                           stdout=subprocess.DEVNULL)
            subprocess.run([weft, "launch", "--engine", "sky", "--plan", f"job{i}", "--dir", f"run{i}", "--dry-run", *more], check=True, env=env,
                           stdout=subprocess.DEVNULL)
            for file in (f"job{i}/sky.yaml", f"run{i}/sky.yaml"):
                at = os.getcwd()
                os.chdir(pathlib.Path(file).parent)
                task = sky.Task.from_yaml(pathlib.Path(file).name)
                os.chdir(at)
                (resources,) = task.resources
                kind = next(iter(resources.accelerators))
                assert resources.use_spot == ("--spot" in more), file
                assert task.run and task.num_nodes >= 1, file
                print(f"{file}: {task.num_nodes} x {dict(resources.accelerators)}")
                want = chips.split(":")[0]
                assert kind.startswith("tpu-" if want.startswith("tpu") else want.split("-")[0]), (file, kind)
    print("SkyPilot", sky.__version__, "reads all tasks")


if __name__ == "__main__":
    main()
