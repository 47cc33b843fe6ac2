"""A Slurm of its own on this machine: two slurmd and a slurmctld, without munge or a database; stopped by close()."""
import os
import shutil
import socket
import subprocess
import time

CONF = """
ClusterName=weft
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=3
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={port0} CPUs=2 RealMemory=1000
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs=2 RealMemory=1000
PartitionName=all Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    def __init__(self, folder):
        """Raises RuntimeError with the reason when none can be started here."""
        self.daemons = []
        for need in ("slurmctld", "slurmd", "sbatch", "srun"):
            if not shutil.which(need):
                raise RuntimeError(f"no {need} here (tools/setup.sh jobs)")
        (folder / "state").mkdir()
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(host=socket.gethostname().split(".")[0], dir=folder, user=os.environ.get("USER") or "root",
                                    port=free_port(), port0=free_port(), port1=free_port()))
        self.env = {"SLURM_CONF": str(conf)}
        try:
            self.start(folder)
        except BaseException:
            self.close()
            raise

    def start(self, folder):
        env = dict(os.environ, **self.env)
        for cmd in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "n0"], ["slurmd", "-D", "-N", "n1"]):
            with open(folder / "daemons.log", "a") as log:
                self.daemons.append(subprocess.Popen(cmd, env=env, stdout=log, stderr=log, start_new_session=True))
        for _ in range(150):
            time.sleep(0.2)
            if any(d.poll() is not None for d in self.daemons):
                break
            said = subprocess.run(["sinfo", "-h", "-o", "%D %T"], env=env, capture_output=True, text=True).stdout
            if said.strip() == "2 idle":
                return
        raise RuntimeError("Slurm does not start here: " + (folder / "daemons.log").read_text()[-300:])

    def run(self, *args):
        return subprocess.run(args, env=dict(os.environ, **self.env), capture_output=True, text=True, timeout=60).stdout

    def close(self):
        for d in reversed(self.daemons):
            d.terminate()
        for d in self.daemons:
            try:
                d.wait(10)
            except subprocess.TimeoutExpired:
                d.kill()
