"""The fair queue for external clients: its settings, and the controller they may come from.

`config` reads the `config.json` of the slot handler that this service takes the place of;
`profiles` turns it into what the engine understands; `controller` asks for newer settings, and
`reporting` tells it how things go.
"""
