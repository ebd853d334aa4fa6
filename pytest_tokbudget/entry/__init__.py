"""The pytest side: options, settings, marker, fixture, gate and wiring.

The only room that imports pytest, in the controller and inside a worker. ``wiring.py`` alone knows
the concrete probes, stores, launchers and renderers.
"""
