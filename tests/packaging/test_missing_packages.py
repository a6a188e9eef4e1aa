"""What a build says where packages are missing: all of them at once, and the line for each tool."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MESON = shutil.which("meson")
# What the line in README.md has beside what the sources ask for: the tools that start a build. By
# dpkg-dev Meson knows the folder of libraries: without it, lib64, where Debian looks for none.
TOOLS = {
    "apt-get": {"dpkg-dev", "meson", "ninja-build", "python3-venv"},
    "dnf": {"meson", "ninja-build"},
}


def setup(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    assert MESON, "meson is not there"
    options = ["-Dtests=disabled", "-Dman=disabled", *arguments]
    return subprocess.run(
        [MESON, "setup", folder, ROOT, *options],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def packages(text: str, tool: str) -> "list[str]":
    """The packages of the one line that runs `tool`."""
    (line,) = re.findall(rf"sudo {tool} install (.*)", text)
    return line.split()


def missing(text: str) -> "list[str]":
    (line,) = re.findall(r"ERROR: Problem encountered: missing: (.*)", text)
    return line.split(", ")


# The configuration of the Python that runs Meson, but for the folder of its headers.
HEADERLESS = """\
import importlib
import sys

name = f"_sysconfigdata_{sys.abiflags}_{sys.platform}_{sys.implementation._multiarch}"
build_time_vars = dict(importlib.import_module(name).build_time_vars, INCLUDEPY="/no/headers")
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output where there is no compiler, no pkg-config, no library, and no header of Python."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "empty").mkdir()
    (folder / "headerless.py").write_text(HEADERLESS)
    done = setup(
        folder / "build",
        "-Dpython=enabled",
        PATH=str(folder / "empty"),
        PYTHONPATH=str(folder),
        _PYTHON_SYSCONFIGDATA_NAME="headerless",
    )
    assert done.returncode == 1
    return done.stdout


@pytest.mark.parametrize("tool", ["apt-get", "dnf"])
def test_a_bare_machine_gets_the_line_of_the_readme(bare: str, tool: str) -> None:
    said = packages(bare, tool)
    readme = packages((ROOT / "README.md").read_text(), tool)
    assert len(said) == len(set(said)) == 31
    assert set(readme) == set(said) | TOOLS[tool]
    assert len(readme) == len(set(readme))


def test_the_script_installs_the_line_of_the_readme() -> None:
    script = (ROOT / "scripts/install_dependencies.sh").read_text()
    (group,) = re.findall(r'\[build\]="([^"]*)"', script)
    assert group.split() == packages((ROOT / "README.md").read_text(), "apt-get")


def test_the_debian_package_is_built_with_the_same_libraries() -> None:
    control = (ROOT / "debian/control").read_text()
    (group,) = re.findall(r"^Build-Depends: (.*?)^\S", control, re.MULTILINE | re.DOTALL)
    depends = {re.split(r"[ (\[]", entry.strip())[0] for entry in group.split(",")}
    readme = set(packages((ROOT / "README.md").read_text(), "apt-get"))
    # Every Debian machine that builds packages has a compiler and dpkg-dev; meson brings ninja.
    assert readme - depends == {"dpkg-dev", "g++", "ninja-build", "python3-venv"}


def test_libraries_that_pkg_config_does_not_find_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = setup(tmp_path / "build", PKG_CONFIG_LIBDIR=str(tmp_path / "empty"), PKG_CONFIG_PATH="")
    assert done.returncode == 1
    looked = re.findall(r"^Run-time dependency (\S+) found: (NO|YES)", done.stdout, re.MULTILINE)
    assert len(looked) == 29  # msgpack has two names
    absent = {name for name, found in looked if found == "NO"} - {"msgpack-c"}
    if "Library bz2 found: YES" in done.stdout:
        absent -= {"bzip2"}
    if "Library gif found: YES" in done.stdout:
        absent -= {"libgif"}
    assert {name.split()[0] for name in missing(done.stdout)} == absent
    assert len(absent) >= 8
    assert {"libjpeg >= 2.1", "libcurl >= 7.85"} <= set(missing(done.stdout))
    assert len(packages(done.stdout, "apt-get")) == len(packages(done.stdout, "dnf")) == len(absent)


def without(folder: Path, *names: str) -> str:
    """A folder with the pkg-config files of this machine but those of `names`."""
    path = subprocess.run(
        ["pkg-config", "--variable=pc_path", "pkg-config"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    folder.mkdir()
    for place in path.strip().split(":"):
        for file in Path(place).glob("*.pc"):
            if file.stem not in names and not (folder / file.name).exists():
                (folder / file.name).symlink_to(file)
    return str(folder)


def optional_libraries(text: str) -> "dict[str, str]":
    (section,) = re.findall(r"^  Optional libraries\n((?:    .*\n)+)", text, re.MULTILINE)
    return {
        name.strip(): value.strip()
        for name, value in (line.split(":", 1) for line in section.splitlines())
    }


def test_a_build_without_optional_libraries_says_what_that_costs(tmp_path: Path) -> None:
    left_out = ("libisal", "libwebp", "sndfile", "libavformat", "libcurl", "libarchive")
    found = without(tmp_path / "found", *left_out)
    done = setup(tmp_path / "build", "-Dpython=disabled", PKG_CONFIG_LIBDIR=found)
    assert done.returncode == 0, done.stdout
    said = optional_libraries(done.stdout)
    assert said["gzip"].startswith("zlib, which takes 1.3 times")
    assert said["gzip"].endswith("packages: libisal-dev (Debian, Ubuntu), isa-l-devel (Fedora)")
    assert said["WebP"].startswith("none: images in WebP are errors; packages: libwebp-dev ")
    assert said["WAV, FLAC, MP3, Opus"].startswith(
        "none: these sounds are errors; packages: libsndfil"
    )
    assert said["MP4, Matroska, WebM, AVI"].startswith("none: videos, their sounds, and Vorbis ")
    assert said["7z, cpio, RAR, ISO 9660"].startswith("none: shards in these formats are errors; ")
    assert said["HTTP"].startswith("none: http:// and https:// URLs are errors; packages: ")
    assert said["HTTP"].endswith(" libcurl4-openssl-dev (Debian, Ubuntu), libcurl-devel (Fedora)")


def test_a_build_with_optional_libraries_names_them(tmp_path: Path) -> None:
    done = setup(tmp_path / "build", "-Disal=disabled")
    assert done.returncode == 0, done.stdout
    said = optional_libraries(done.stdout)
    assert said["gzip"].endswith("; switched off by -Disal=disabled")
    assert re.fullmatch(r"libwebp \d[\d.]*", said["WebP"])
    assert re.fullmatch(r"libcurl \d[\d.]*", said["HTTP"])
    assert re.fullmatch(r"libarchive \d[\d.]*", said["7z, cpio, RAR, ISO 9660"])


def test_an_optional_library_that_was_asked_for_is_named_alone(tmp_path: Path) -> None:
    found = without(tmp_path / "found", "libisal")
    done = setup(tmp_path / "build", "-Disal=enabled", PKG_CONFIG_LIBDIR=found)
    assert done.returncode == 1
    assert missing(done.stdout) == ["libisal"]
    assert packages(done.stdout, "apt-get") == ["libisal-dev"]


def test_an_optional_library_is_named_beside_a_needed_one(tmp_path: Path) -> None:
    found = without(tmp_path / "found", "libisal", "libxxhash")
    done = setup(tmp_path / "build", PKG_CONFIG_LIBDIR=found)
    assert done.returncode == 1
    assert missing(done.stdout) == ["libxxhash", "libisal"]
