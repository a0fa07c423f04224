"""What the documents show must work: every block in them is run, validated, or says why not."""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from headway.api.config import Config
from headway.apps.alerts.settings import AlertSettings
from tests.documents.blocks import DOCUMENTS, ROOT, Block, blocks_in, complaints, read_blocks
from tests.documents.following import Following, following

BLOCKS = {path: blocks_in(path) for path in DOCUMENTS}
NEEDED = {tool for tool in ("curl", "jq") if shutil.which(tool) is None}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if BLOCKS[path]], ids=name_of)
def test_the_document_can_be_followed(path: Path) -> None:
    with following() as reader:
        for block in BLOCKS[path]:
            follow(reader, block)


def follow(reader: Following, block: Block) -> None:
    missing = [tool for tool in NEEDED if tool in block.text]
    if missing:
        pytest.skip(f"there is no {missing[0]} here")
    try:
        reader.follow(block)
    except Exception as error:
        error.add_note(f"in {block.place}")
        raise


def test_no_block_is_left_out_without_a_word() -> None:
    said = [each for blocks in BLOCKS.values() for block in blocks for each in complaints(block)]
    assert said == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```\nls\n```\n", "its language is ''"),
        ("```ruby\nputs\n```\n", "its language is 'ruby'"),
        ("<!-- not run: no -->\n```sh\nls\n```\n", "say in a few words why"),
        ("<!-- skip: it is slow -->\n```sh\nls\n```\n", "nobody knows what skip means"),
        ("<!-- for: ruby -->\n```toml\na = 1\n```\n", "nobody knows what is read for ruby"),
        ("```python ignore\n1\n```\n", "nobody knows what 'ignore' means"),
    ],
)
def test_a_block_that_would_be_left_out_is_noticed(text: str, complaint: str) -> None:
    [block] = read_blocks(ROOT / "some.md", text)
    [said] = complaints(block)
    assert complaint in said


PARSED = "<!-- only parsed: asks a site -->\n"
MODEL = "<!-- for: simulate -->\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```python\nprint(1)  # 2\n```\n", "prints '1', but is said to print '2'"),
        ("```python\nprint(1)\n```\n", "it prints"),
        ("```sh\nheadway jobs no-such-command\n```\n", "ends with 2"),
        ("```sh\nfalse | true\nfalse\ntrue\n```\n", "ends with 1"),
        ("```console\n$ echo one\ntwo\n```\n", "prints\none"),
        ("```toml\n[server]\nno_such_setting = 1\n```\n", "no_such_setting"),
        ("```toml\n[upstream.x]\nno_such_setting = 1\n```\n", "no_such_setting"),
        ("```toml\n[alerts]\nno_such_setting = 1\n```\n", "no_such_setting"),
        (f"{MODEL}```toml\n[upstream.x]\nno_such_setting = 1\n```\n", "no_such_setting"),
        (f"{MODEL}```toml\n[[tenant]]\nno_such_setting = 1\n```\n", "no_such_setting"),
        ("```json\n{\n```\n", "Expecting property name"),
        (f"{PARSED}```sh\nheadway feeds add --no-such-option x\n```\n", "ends with 1"),
        (f"{PARSED}```sh\ncurl -s localhost:8000/api/no/such\n```\n", "no GET /api/no/such"),
        ("```sh\npip install 'headway[no-such-extra]'\n```\n", "no extra no-such-extra"),
        ("```sh\nmake no-such-target\n```\n", "no target no-such-target"),
    ],
)
def test_a_block_that_is_wrong_is_noticed(text: str, why: str) -> None:
    [block] = read_blocks(ROOT / "some.md", text)
    with following() as reader, pytest.raises(Exception, match=re.escape(why)):
        reader.follow(block)


def settings_in(guide: str, table: str) -> dict[str, Any]:
    """Those that a block of the guide shows, the longest if there are several."""
    blocks = (b for b in BLOCKS[ROOT / "docs/guides" / guide] if b.language == "toml")
    found = (tomllib.loads(block.text).get(table, {}) for block in blocks)
    return dict(max(found, key=len))


def test_every_setting_of_a_server_stands_in_its_guide_with_its_default() -> None:
    defaults = {each.name: each.default for each in fields(Config)}
    shown = settings_in("server.md", "server")

    assert {name: tuple(v) if isinstance(v, list) else v for name, v in shown.items()} == defaults


def test_every_setting_of_alerts_stands_in_its_guide() -> None:
    shown = settings_in("operating.md", "alerts")

    assert shown.keys() == {each.name for each in fields(AlertSettings)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"
