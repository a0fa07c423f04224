"""What the core decides in the simulated world is what it decided when somebody last looked: who
goes, when, with which fence, and what is said about it. `python -m tests.sim.test_histories` shows
it as it is now.

The checkers say whether a history is right. This says that it is still the same: they would not
notice somebody who waits a little longer than before, and nobody would have meant it.
"""

from __future__ import annotations

from random import Random

import pytest

from headway.core import Core, memory
from headway.core.order import Account
from tests.sim.world import TENANTS, UPSTREAMS, World

STEPS = 400
EVERY = 5  # steps between two looks at everything
SOME = 15  # tickets that are asked why they wait
KNOWN = {
    100: "00231550ca97637b8bee7acb2736f92f",
    101: "de718e9cae945b7d329c6fc6e8f16c20",
    102: "acf218c6d05a60794b53167de050108c",
    103: "63bb1a81a814e1e6c64675119c8d591c",
    104: "39a005c0134d7123b0fea4b0559c139c",
    105: "df44828df947a478dd6276a8b29c6360",
    106: "66ba69f19f656774789e4609fe0ed5fa",
    107: "1af365733a90359d1bbab19845ae8956",
    108: "3c00082c01406cb9c3140508e53cab4c",
    109: "6533677bd82efc6bee60cfef362706ab",
    110: "fec64c51dca483ffbcfe17f52ddeec4f",
    111: "51cb62449d30fc6c0ba7eed44b4352fe",
    112: "cf8207e7e411234d6436e30eef4586cf",
    113: "b2b72ecd44a27a888058d96e53eb24f1",
    114: "6dd7779205c73e641762649319a96f9f",
    115: "10f35a197c0301b909fbb86c029fe593",
    116: "47c482a1a1cbcc9c8f1c6a6676bd30dd",
    117: "f7150f09503ce008df4bb61495017ac6",
    118: "c88230ccfd51f437bebd0b36db1cc111",
    119: "b3be18a7e7c2dc69e019cb6aee2769f8",
    120: "9eb16507418b2937818938afbeae9bc6",
    121: "90041835e26323df3e007ecee5e73221",
    122: "dfc5d28faaa8b532de87b16cadf9f915",
    123: "d32a6ad38d9846b59b2901c196fa0cf5",
    124: "2460941ba8f107db46510c3652cdc1aa",
    125: "7e7653e0197a304861b77a5f356322ad",
    126: "a0e4ed284502b779ba4078ac9a5a5ffe",
    127: "5a88c8e5f96b6f76fa1c768fee001505",
    128: "cab04cdb81646615988ee4662f79be4c",
    129: "aeb6a6dea93400f3f53c3a816dd5b442",
}


class Watched(World):
    """Notes what is said as well as what is done: why somebody waits, when to ask again, and what
    a restart would be told.
    """

    def settle(self) -> None:
        super().settle()
        self.note(self.core.next_wakeup())
        touched = self.core.admission.touched
        self.note(sorted(memory.address_of(gate) for gate in touched))  # what would be stored now
        touched.clear()
        if self.steps % EVERY == 0:
            for id in list(self.model.tickets)[:SOME]:
                self.note(self.core.explain(id, self.now))
            for gate in list(self.core.admission.atlas.all_gates()):
                address = memory.address_of(gate)
                self.note(address, memory.dump(self.core, gate))
                self.note(memory.remembers(self.core, address))
                self.note(gate.room, gate.spare, gate.opens_at, gate.reserved_for)
            for name in UPSTREAMS:
                self.note(self.core.gates.grants_seen(name))
                self.note(*(self.core.gates.waiting(name, tenant) for tenant in TENANTS))
            self.note(len(self.core.admission.atlas.keys))
            for account in self.accounts():
                tempo = account.tempo
                self.note(account.name, account.weight, account.used, len(account.leases))
                self.note(tempo and (tempo.grants, tempo.gap_s, tempo.last_at, tempo.waiting))
            self.note([each.permit.waited_s for each in self.model.held.values()])
        if self.steps % (8 * EVERY) == 0:
            self.restart()

    def accounts(self) -> list[Account]:
        gates = self.core.admission.atlas.all_gates()
        return [gate for gate in gates if isinstance(gate, Account)]

    def restart(self) -> None:
        """Another core is told what this one remembers, and says the same."""
        fresh = Core(self.core.policies, rng=Random(1))
        for gate in list(self.core.admission.atlas.all_gates()):
            kept = memory.dump(self.core, gate)
            if kept is not None:
                memory.load(fresh, memory.address_of(gate), kept, self.now)
        for gate in list(fresh.admission.atlas.all_gates()):
            self.note(memory.address_of(gate), memory.dump(fresh, gate), gate.opens_at)
            self.note(len(gate.leases))
        self.note(fresh.next_wakeup())
        fresh.advance(self.now + 3.0)
        self.note([len(gate.leases) for gate in fresh.admission.atlas.all_gates()])

    def note(self, *said: object) -> None:
        self.history.update(repr(said).encode())


def digest(seed: int) -> str:
    world = Watched(seed)
    world.run(STEPS)
    return world.history.hexdigest()


@pytest.mark.parametrize("seed", KNOWN)
def test_the_history_is_the_one_that_was_looked_at(seed: int) -> None:
    assert digest(seed) == KNOWN[seed], "if you mean it: python -m tests.sim.test_histories"


if __name__ == "__main__":
    for number in KNOWN:
        print(f'    {number}: "{digest(number)}",')
