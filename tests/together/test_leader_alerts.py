"""That another server leads is told once, by the one that leads."""

from __future__ import annotations

from tests.contract.calls_kit import OWN, receiver
from tests.hands.kit import eventually
from tests.together.conftest import NewGroup


def test_another_leader_is_told_by_webhook(new_group: NewGroup) -> None:
    with receiver() as ear:
        group = new_group(2, alerts_url=ear.url, outbound_allow=OWN, alerts_kinds="leader_changed")
        before = group.the_leader()
        before.kill()
        after = group.the_leader()
        said = eventually(lambda: [each.said for each in ear.heard])
        assert [each["alert"]["kind"] for each in said] == ["leader_changed"]
        assert said[0]["alert"]["values"] == {"before": before.url, "now": after.url}
        after.restart()  # nothing has changed
        group.the_leader()
        assert len(ear.heard) == 1
