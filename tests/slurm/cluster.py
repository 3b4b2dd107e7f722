"""cluster: a real two-node SLURM on this machine, of its own: its own folder, ports, key and munge socket.

A requeued job waits until its credential has expired (two minutes by default): here five seconds. It never touches a SLURM or munge that is already here. `with Cluster() as c: c.run("sinfo")`; it is always shut down.
"""
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

CONF = """
ClusterName=palcheck
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1
MinJobAge=3600
KillWait=5
UnkillableStepTimeout=120
InactiveLimit=0
OverTimeLimit=0
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/slurmd-%n.log
TmpFS={folder}/tmp-%n
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs={cpus}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs={cpus}
PartitionName=main Nodes=n[1-2] Default=YES OverSubscribe=YES MaxTime=60 State=UP
"""
PROGRAMS = ["slurmctld", "slurmd", "sbatch", "scontrol", "munged", "mungekey"]


def missing():
    """What this machine lacks for it."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None] + ([] if os.geteuid() == 0 else ["root"])


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    try:
        for s in held:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


class Cluster:
    def __init__(self, cpus=2):
        self.folder = tempfile.mkdtemp(prefix="pal-slurm-")
        os.chmod(self.folder, 0o755)
        self.cpus = cpus
        self.daemons = []
        self.env = dict(os.environ, SLURM_CONF=f"{self.folder}/slurm.conf", PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        for name in list(self.env):
            if name.startswith(("SLURM_", "SBATCH_", "SRUN_")) and name != "SLURM_CONF":
                del self.env[name]

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _daemon(self, *command):
        with open(f"{self.folder}/{os.path.basename(command[0])}.out", "ab") as log:
            self.daemons.append(subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))

    def _start(self):
        folder, host = self.folder, socket.gethostname().split(".")[0]
        for name in ("state", "tmp-n1", "tmp-n2", "spool-n1", "spool-n2"):
            os.mkdir(f"{folder}/{name}")
        ctld, n1, n2 = free_ports(3)
        with open(f"{folder}/slurm.conf", "w") as f:
            f.write(CONF.format(folder=folder, host=host, ctld=ctld, n1=n1, n2=n2, cpus=self.cpus, user=getpass.getuser()))
        subprocess.run(["mungekey", "--create", "--keyfile", f"{folder}/munge.key"], check=True, env=self.env)
        self._daemon("munged", "--foreground", "--force", "--num-threads=2", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket",
                     f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed")
        self.wait(lambda: os.path.exists(f"{folder}/munge.socket"), 20, "munged gives no socket")
        self._daemon("slurmctld", "-D", "-f", f"{folder}/slurm.conf")
        for node in ("n1", "n2"):
            self._daemon("slurmd", "-D", "-N", node, "-f", f"{folder}/slurm.conf")
        self.wait(lambda: self.run("sinfo", "-h", "-o", "%D %t", check=False).stdout.split() == ["2", "idle"], 60, "the two nodes do not come up")

    def __exit__(self, *_):
        if self.daemons:
            self.run("scancel", "--state=PENDING", "--user", getpass.getuser(), check=False)
            self.run("scancel", "--signal=KILL", "--user", getpass.getuser(), check=False)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()
        for pid in self._left_over():   # job steps outlive their slurmd
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def _left_over(self):
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/environ", "rb") as f:
                    if entry.isdigit() and self.env["SLURM_CONF"].encode() in f.read() and int(entry) != os.getpid():
                        yield int(entry)
            except (FileNotFoundError, NotADirectoryError, PermissionError, ProcessLookupError):
                pass

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} within {seconds} s\n{self.logs()}")
            time.sleep(0.2)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(f"{self.folder}/{name}", errors="replace") as f:
                    text += f"--- {name}\n" + "".join(f.readlines()[-15:])
        return text

    def run(self, *command, cwd=None, check=True):
        done = subprocess.run(command, env=self.env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)} gave exit code {done.returncode}:\n{done.stdout}")
        return done

    def state(self, job):
        """The job's state, such as RUNNING, and how often it was queued again."""
        text = self.run("scontrol", "-o", "show", "job", job, check=False).stdout
        fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
        return fields.get("JobState", ""), int(fields.get("Restarts", "0"))
