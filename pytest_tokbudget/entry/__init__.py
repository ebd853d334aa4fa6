"""The pytest side: options, settings, marker, fixture, gate and wiring.

The only room that imports pytest (``launching/worker_plugin.py`` apart, which runs inside a worker's
pytest). ``wiring.py`` alone knows the concrete probes, stores, launchers and renderers.
"""
