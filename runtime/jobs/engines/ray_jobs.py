"""Runs a job array as tasks of Ray on two local workers, and kills the worker of one task in the middle
(docs/scale.md).

ray_jobs.py SPELTER FOLDER SHARDS OPTION...
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

import ray

spelter, folder, shards = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
options = sys.argv[4:]


@ray.remote(num_cpus=1, max_retries=3)
def shard(number: int) -> str:
    """Runs a shard; the first attempt at shard 2 dies with its worker."""
    file = folder / f"{number}.jsonl"
    process = subprocess.Popen(
        [spelter, *options, "--shard", f"{number}/{shards}", "--results", str(file)],
        stdout=subprocess.DEVNULL,
    )
    first = folder / f"first-{number}"
    if number == 2 and not first.exists():
        first.touch()
        while process.poll() is None and (not file.exists() or file.read_bytes().count(b"\n") <= 5):
            time.sleep(0.01)
        process.kill()
        process.wait()
        os.kill(os.getpid(), signal.SIGKILL)
    if process.wait() != 0:
        raise RuntimeError(f"shard {number} ended with status {process.returncode}")
    return str(file)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
files = ray.get([shard.remote(number) for number in range(1, shards + 1)])
assert (folder / "first-2").exists(), "no worker was killed"
print(f"Ray: {len(files)} shards, one worker killed")
