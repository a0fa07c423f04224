"""Several servers on one store: one leads, and the others pass on what only it can answer.

`standing` knows who leads and takes over, `forwarding` passes requests on, `peers` lets one server
believe another, `front` is the door that stays while a server becomes the leader, and `absence` is
what clients of slots hear while nobody leads.
"""
