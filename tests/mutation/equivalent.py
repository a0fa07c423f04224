"""Changes that change nothing anybody could see: by the expression that is changed, whatever it is
changed into, with the reason.
"""

from __future__ import annotations

# That they go is promised, since nothing may grow for ever; how soon is not.
TIDIED = "how many stale entries are left before they are tidied away is a matter of cost"
SORTS_LAST = "any number beyond the classes of traffic sorts last"

EQUIVALENT: dict[str, str] = {
    "lines.py:Flow.remove: 2 * self.size + 16": TIDIED,
    "lines.py:Flow.remove: 2 * self.size": TIDIED,
    "lines.py:Flow.remove: 16": TIDIED,
    "standing.py:_with: len(heap) - 1": TIDIED,
    "standing.py:_with: 64": TIDIED,
    "places.py:Places.stand: len(waiters) - 1": TIDIED,
    "places.py:Places.stand: 64": TIDIED,
    "lifetimes.py:Lifetimes._set_deadline: 2 * len(self.tickets) + 64": TIDIED,
    "lifetimes.py:Lifetimes._set_deadline: 2 * len(self.tickets)": TIDIED,
    "lifetimes.py:Lifetimes._set_deadline: 64": TIDIED,
    "order.py:FairQueue.enter: 2 * len(self.groups) + 16": TIDIED,
    "order.py:FairQueue.enter: 2 * len(self.groups)": TIDIED,
    "order.py:FairQueue.enter: 16": TIDIED,
    "order.py:Shares._sweep_if_many: 3 * (len(self.accounts) + len(self.debts)) + FEW": TIDIED,
    "order.py:Shares._sweep_if_many: 3 * (len(self.accounts) + len(self.debts))": TIDIED,
    "order.py:Shares._sweep_if_many: 3": TIDIED,
    "places.py:Places.key_of: 9": SORTS_LAST,
}
