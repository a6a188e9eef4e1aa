"""What the packages of each language say of themselves, and the files that they carry."""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LICENSE = (ROOT / "LICENSE").read_text()
CRATES = ["shardfeed", "shardfeed-sys"]


def cargo(*arguments: str) -> str:
    # tests/run.sh has it in the PATH.
    command = shutil.which("cargo") or str(Path.home() / ".cargo/bin/cargo")
    return subprocess.run(
        [command, *arguments, "--offline", "--allow-dirty"],
        cwd=ROOT / "bindings/rust",
        env={**os.environ, "DOCS_RS": "1"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_has_its_readme_and_license(crate: str) -> None:
    files = cargo("package", "--list", "-p", crate).split()
    assert {"README.md", "LICENSE", "Cargo.toml", "src/lib.rs"} <= set(files)
    assert (ROOT / "bindings/rust" / crate / "LICENSE").read_text() == LICENSE


def test_links_are_files_in_a_packed_crate(tmp_path: Path) -> None:
    target = f"--target-dir={tmp_path}"
    cargo("package", "-p", "shardfeed-sys", "--no-verify", target)
    (crate,) = tmp_path.glob("package/*.crate")
    with tarfile.open(crate) as archive:
        folder = crate.stem
        for name, source in [("LICENSE", "LICENSE"), ("vendor/meson.build", "meson.build")]:
            file = archive.extractfile(f"{folder}/{name}")
            assert file is not None
            assert file.read() == (ROOT / source).read_bytes()


def test_the_julia_package_has_its_license_and_readme() -> None:
    # A copy: Julia's registries take this folder alone, and a link would lead out of it.
    package = ROOT / "bindings/julia/ShardFeed"
    assert not (package / "LICENSE").is_symlink()
    assert (package / "LICENSE").read_text() == LICENSE
    assert (package / "README.md").read_text().startswith("# ShardFeed\n")


def test_the_readme_of_the_crate_has_the_line_of_the_repository() -> None:
    def packages(page: Path) -> "set[str]":
        (line,) = re.findall(r"sudo apt-get install (.*)", page.read_text())
        return set(line.split())

    repository = packages(ROOT / "README.md")
    crate = packages(ROOT / "bindings/rust/shardfeed/README.md")
    # The crate builds no command.
    assert repository - crate == {"dpkg-dev", "libcli11-dev", "python3-dev", "python3-venv"}
    assert crate < repository


def test_the_debian_copyright_has_the_license() -> None:
    text = (ROOT / "debian/copyright").read_text()
    (body,) = re.findall(r"^License: BSD-3-Clause\n((?: .*\n)+)", text, re.MULTILINE)
    words = body.replace("\n .\n", "\n").split()
    assert words == LICENSE.split("\n\n", 2)[2].split()


def fields(path: str) -> "dict[str, str]":
    """The fields of the first paragraph of a Debian control file."""
    paragraph = (ROOT / path).read_text().split("\n\n")[0]
    return dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))


def test_all_packages_name_the_same_address_or_none() -> None:
    """A public address of the sources is in every package; so long as there is none, in no one."""
    source = fields("debian/control")
    watch = (ROOT / "debian/watch").read_text()
    python = (ROOT / "pyproject.toml").read_text()
    rust = (ROOT / "bindings/rust/Cargo.toml").read_text()
    addresses = {
        "debian/control, Homepage": source.get("Homepage"),
        "debian/control, Vcs-Browser": source.get("Vcs-Browser"),
        "debian/control, Vcs-Git": source.get("Vcs-Git"),
        "debian/watch": next(iter(re.findall(r"^https://\S+", watch, re.MULTILINE)), None),
        "pyproject.toml": next(iter(re.findall(r'^Repository = "(.*)"', python, re.M)), None),
        "Cargo.toml": next(iter(re.findall(r'^repository = "(.*)"', rust, re.M)), None),
    }
    if addresses["Cargo.toml"]:
        for crate in CRATES:
            manifest = (ROOT / "bindings/rust" / crate / "Cargo.toml").read_text()
            assert "repository.workspace = true" in manifest
    there = {place: address for place, address in addresses.items() if address}
    assert not there or set(there) == set(addresses)
    shortest = min(there.values(), key=len, default="")
    assert all(address.startswith(shortest) for address in there.values())
    assert not any(re.search(r"\bexample\b", address) for address in there.values())


def test_the_maintainer_is_the_same_everywhere() -> None:
    maintainer = fields("debian/control")["Maintainer"]
    assert maintainer.startswith("shardfeed developers <")
    (signature,) = re.findall(
        r"^ -- (.*?)  ", (ROOT / "debian/changelog").read_text(), re.MULTILINE
    )
    assert signature == maintainer
    assert fields("debian/copyright")["Upstream-Contact"] == maintainer
