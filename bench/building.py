"""Builds the measuring programs, and the environment of the readers in Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import corpora

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILT = corpora.DATA / "build"
PROGRAMS = HERE / "programs"
WARNINGS = ["-std=c99", "-O3", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic"]


def note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def packaged(name: str) -> list[str]:
    """What the compiler must be told of a library."""
    command = ["pkg-config", "--cflags", "--libs", name]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.split()


def compile_program(name: str, extra: list[str]) -> Path:
    BUILT.mkdir(parents=True, exist_ok=True)
    target = BUILT / name
    source = PROGRAMS / f"{name}.c"
    subprocess.run(
        [os.environ.get("CC", "cc"), *WARNINGS, "-o", str(target), str(source), *extra], check=True
    )
    return target


def compile_with_package(name: str, package: str) -> Path | None:
    try:
        extra = packaged(package)
    except (OSError, subprocess.CalledProcessError):
        note(f"pkg-config does not find {package}; {name} is left out")
        return None
    return compile_program(name, extra)


def build_with_shardfeed(name: str, build: Path) -> Path | None:
    library = build / "libshardfeed.so"
    if not library.exists():
        note(f"{library} is not there; shardfeed from C is left out (--build names the directory)")
        return None
    try:
        listed = json.loads((build / "meson-info/intro-buildoptions.json").read_text())
        options = {option["name"]: option["value"] for option in listed}
        if options["buildtype"] != "release" or options["b_sanitize"] not in ("none", [], ["none"]):
            note(f"{build} is not a release build; its figures mean nothing")
    except (OSError, ValueError, KeyError):
        note(f"{build} does not look like a meson build; taking the library as it is")
    place = str(build)
    link = [f"-I{ROOT / 'include'}", f"-L{place}", f"-Wl,-rpath,{place}", "-lshardfeed"]
    return compile_program(name, link)


def build_rust(crate: str, build: Path | None = None) -> Path | None:
    """`build` is the meson build directory for a crate that uses the library."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo/bin"))
    if cargo is None:
        note(f"no cargo; {crate} is left out")
        return None
    command = [cargo, "build", "--release", "--locked", "--quiet"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(BUILT / "rust")}
    if build is not None:
        if not (build / "libshardfeed.so").exists():
            note(f"{build / 'libshardfeed.so'} is not there; {crate} is left out")
            return None
        environment["SHARDFEED_LIB_DIR"] = str(build)
        environment["RUSTFLAGS"] = f"-Clink-arg=-Wl,-rpath,{build}"
    done = subprocess.run(command, cwd=PROGRAMS / crate, env=environment, check=False)
    if done.returncode != 0:
        note(f"cargo build failed; {crate} is left out")
        return None
    return BUILT / "rust/release" / crate


def julia_command(build: Path) -> list[str] | None:
    """What runs the walk in Julia, with shardfeed's package and the library of `build`."""
    julia = shutil.which("julia")
    if julia is None:
        note("no julia; its rows are left out")
        return None
    place = [
        f"SHARDFEED_LIB={build / 'libshardfeed.so.0'}",
        f"JULIA_LOAD_PATH={ROOT / 'bindings/julia'}:@stdlib",
        f"JULIA_DEPOT_PATH={BUILT / 'julia'}",
    ]
    return ["env", *place, julia, "--startup-file=no", str(PROGRAMS / "shardfeed_walk.jl")]


def own_python(reinstall: bool) -> Path:
    """The interpreter of bench/.venv, which is made on first use."""
    python = HERE / ".venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HERE / ".venv")], check=True)
        requirements = str(HERE / "requirements.txt")
        subprocess.run([*pip_install(python), "-r", requirements], check=True)
    missing = "shardfeed" not in importable(python, ("shardfeed",))
    if (reinstall or missing) and (ROOT / "pyproject.toml").exists():
        # The version does not change from one build to the next; pip would keep the old one.
        uninstall = [str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "shardfeed"]
        subprocess.run(uninstall, check=False, stderr=subprocess.DEVNULL)
        if subprocess.run([*pip_install(python), str(ROOT)], check=False).returncode != 0:
            note("shardfeed's Python package could not be installed")
    return python


def pip_install(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def importable(python: Path, modules: tuple[str, ...]) -> frozenset[str]:
    def works(module: str) -> bool:
        command = [str(python), "-c", f"import {module}"]
        return subprocess.run(command, cwd="/", check=False, capture_output=True).returncode == 0

    return frozenset(filter(works, modules))
