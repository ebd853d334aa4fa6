"""A small, faithful DFlash training pipeline: frozen targets feed drafters through a queue.

One process. *Target* workers run a frozen decoder and hand its hidden states on; a post-processing
step packs, casts and copies them to the host; a bounded queue holds them; *drafter* workers train a
block-diffusion drafter on them. ``python -m examples.dflash --steps 50`` runs it alone,
``test_throughput.py`` measures it, ``python -m examples.dflash.gate`` judges it.
"""
