"""scripts/install_dependencies.sh, with an apt of its own that knows what the tests write."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ["apt-cache", "apt-get", "awk", "bash", "dpkg", "dpkg-query", "env", "grep", "id", "sed"]
NOBODY = 65534


class Machine:
    """A Debian release, what is installed of it, and the commands of a user who is not root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ["admin/info", "bin", "cache/archives/partial", "lists/partial", "repository"]:
            (folder / name).mkdir(parents=True)
        self.install()
        for name in NEEDED:
            (folder / "bin" / name).symlink_to(shutil.which(name) or "")
        shutil.copy(ROOT / "scripts/install_dependencies.sh", folder)
        (folder / "sources.list").write_text(f"deb [trusted=yes] copy:{folder}/repository ./\n")
        (folder / "apt.conf").write_text(
            f'Dir::Etc::SourceList "{folder}/sources.list";\n'
            'Dir::Etc::SourceParts "/dev/null";\n'
            'Dir::Etc::PreferencesParts "/dev/null";\n'
            f'Dir::State "{folder}";\n'
            f'Dir::State::status "{folder}/admin/status";\n'
            f'Dir::Cache "{folder}/cache";\n'
            'APT::Sandbox::User "";\n'
        )

    @property
    def environment(self) -> "dict[str, str]":
        return {
            "APT_CONFIG": str(self.folder / "apt.conf"),
            "DPKG_ADMINDIR": str(self.folder / "admin"),
            "HOME": str(self.folder),
            "PATH": str(self.folder / "bin"),
        }

    def install(self, *packages: str) -> None:
        stanza = (
            "Package: {}\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n"
            "Maintainer: a <a@b.c>\nDescription: d\n\n"
        )
        (self.folder / "admin/status").write_text("".join(map(stanza.format, packages)))

    def release(self, *packages: str) -> None:
        stanza = "Package: {0}\nVersion: 1\nArchitecture: all\nFilename: ./{0}.deb\nSize: 1\n\n"
        (self.folder / "repository/Packages").write_text("".join(map(stanza.format, packages)))
        subprocess.run(
            ["apt-get", "update"],
            env={**os.environ, **self.environment, "PATH": os.environ["PATH"]},
            check=True,
            capture_output=True,
        )

    def begin(self, *groups: str) -> "subprocess.Popen[str]":
        for path in [self.folder, *self.folder.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))
        root = os.getuid() == 0
        return subprocess.Popen(
            [shutil.which("bash") or "bash", self.folder / "install_dependencies.sh", *groups],
            env=self.environment,
            cwd=self.folder,
            user=NOBODY if root else None,
            extra_groups=[] if root else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *groups: str) -> "subprocess.CompletedProcess[str]":
        run = self.begin(*groups)
        stdout, stderr = run.communicate()
        return subprocess.CompletedProcess(run.args, run.returncode, stdout, stderr)

    def add(self, name: str, *lines: str) -> None:
        """A command in place of the real one."""
        path = self.folder / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text("#!/bin/sh\n" + "".join(text + "\n" for text in lines))
        path.chmod(0o755)


@pytest.fixture
def machine() -> "Iterator[Machine]":
    # Not below tmp_path, which another user cannot read.
    with tempfile.TemporaryDirectory() as folder:
        yield Machine(Path(folder))


def line(done: "subprocess.CompletedProcess[str]") -> "list[str]":
    """The packages of the line to run."""
    assert done.returncode == 1
    assert done.stderr.startswith(
        "packages are missing, and there is neither root nor sudo; help: "
    )
    (found,) = [text.split() for text in done.stderr.splitlines() if text.startswith("    ")]
    assert found[:2] == ["apt-get", "install"]
    return found[2:]


def test_without_root_and_sudo_the_line_to_run_is_printed(machine: Machine) -> None:
    machine.release()
    names = line(machine.run("build"))
    assert {"g++", "zlib1g-dev", "libwebp-dev", "python3-venv"} < set(names)
    machine.install(*names[1:])
    assert line(machine.run("build")) == names[:1]
    machine.install(*names)
    done = machine.run("build")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("there", ["libclang-rt-dev", "libclang-rt-14-dev"])
def test_the_name_that_the_release_has_is_taken(machine: Machine, there: str) -> None:
    machine.release(there)
    names = line(machine.run("test"))
    assert [name for name in names if name.startswith("libclang-rt")] == [there]


def test_either_name_counts_as_installed(machine: Machine) -> None:
    machine.release("libclang-rt-dev", "libclang-rt-14-dev")
    machine.install("libclang-rt-14-dev")
    assert not [name for name in line(machine.run("test")) if name.startswith("libclang-rt")]


def test_where_julia_comes_from(machine: Machine) -> None:
    machine.release()
    assert "julia is in Debian 11" in machine.run("julia").stderr
    machine.release("julia")
    assert "Debian 11" not in machine.run("julia").stderr


def test_a_group_that_is_not_there(machine: Machine) -> None:
    machine.release()
    done = machine.run("biuld")
    assert done.returncode == 2
    assert done.stderr.startswith("no group biuld; the groups: ")


def test_a_machine_without_apt(machine: Machine) -> None:
    (machine.folder / "bin/apt-get").unlink()
    done = machine.run("build")
    assert done.returncode == 1
    assert "README.md has the line for Fedora" in done.stderr


def test_two_runs_take_turns(machine: Machine) -> None:
    machine.release("julia", "g++")
    for name in ["flock", "mkdir", "rmdir", "sleep"]:
        (machine.folder / "bin" / name).symlink_to(shutil.which(name) or "")
    machine.add("sudo", 'exec "$@"')
    # As the real one: it fails while another one runs.
    folder = machine.folder / "busy"
    folder.mkdir()
    machine.add("apt-get", f"mkdir {folder}/one || exit 100", "sleep 0.3", f"rmdir {folder}/one")
    folder.chmod(0o777)
    runs = [machine.begin("julia"), machine.begin("build")]
    outputs = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
