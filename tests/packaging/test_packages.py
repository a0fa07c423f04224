"""What is shipped: a wheel and an archive of the source, with all that the program needs."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    for what in ("wheel", "sdist"):
        code = f"from flit_core.buildapi import build_{what} as build; build({str(out)!r})"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    return out


def in_the_package() -> set[str]:
    """Everything below src that is not made by Python itself."""
    source = ROOT / "src"
    return {
        str(path.relative_to(source))
        for path in (source / "headway").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_every_file_of_the_package(built: Path) -> None:
    """Queries, pages and styles too: without one of them a server fails only when it is asked."""
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert in_the_package() - names == set()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]


def test_the_archive_of_the_source_can_be_built_and_tested(built: Path) -> None:
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"pyproject.toml", "requirements.lock", "Makefile", "README.md", "LICENSE"} <= names
    assert {"requirements-dev.lock", "tests/packaging/test_packages.py", ".ci/run"} <= names
    assert {f"src/{name}" for name in in_the_package()} - names == set()


# The locks


def locked(name: str) -> dict[str, str]:
    """By package, its version, its marker and its hashes."""
    text = re.sub(r"\n    #.*", "", (ROOT / name).read_text("utf-8"))
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    return {each.partition("==")[0]: each for each in entries}


def test_both_locks_are_of_one_resolution() -> None:
    run, dev = locked("requirements.lock"), locked("requirements-dev.lock")
    assert run.keys() < dev.keys()
    for name, entry in run.items():
        assert "--hash=sha256:" in entry
        assert entry.partition("==")[2].split()[0] == dev[name].partition("==")[2].split()[0]


def test_what_a_user_runs_is_whole_and_has_nothing_of_tests() -> None:
    names = locked("requirements.lock").keys()
    assert {"apsw", "uvicorn", "psycopg-binary", "yt-dlp"} <= names
    assert not {"celery", "redis", "opentelemetry-sdk", "pytest", "mypy", "playwright"} & names
    assert len(names) <= 45
    for name in names:
        try:
            needed = requires(name) or []
        except PackageNotFoundError:  # for another system
            continue
        for each in needed:
            if ";" not in each:
                found = re.match(r"[\w.-]+", each)
                assert found is not None
                assert re.sub(r"[-_.]+", "-", found[0]).lower() in names, f"{name} needs {each}"


def test_celery_that_is_not_installed_names_its_extra() -> None:
    code = "import sys; sys.modules['celery'] = None; import headway.celery"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: headway.celery needs Celery, which is not installed; "
        "pip install 'headway[celery]'"
    )


# Installed


def addresses(output: Iterator[str]) -> str:
    for line in output:
        if line.startswith("Headway is at "):
            return line.split()[-1]
    raise AssertionError("the server has ended before it said where it is")


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_is_installed_in_a_clean_environment_and_serves(
    built: Path, tmp_path: Path, kind: str
) -> None:
    [package] = built.glob(kind)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(package)], check=True)
    server = subprocess.Popen(
        [str(python), "-m", "headway", "serve", "--port", "0"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = addresses(iter(server.stdout))
        for path in ("/readyz", "/", "/static/page/main.js", "/api/queue/stats", "/openapi.json"):
            with urllib.request.urlopen(url + path, timeout=30) as answer:
                assert answer.status == 200
    finally:
        server.terminate()
        assert server.wait(60) == 0
        assert server.stdout is not None
        server.stdout.close()
