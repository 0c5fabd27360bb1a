"""Cheap models for the tests of experiments; made by name in other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from vaca.model.causal_model import CausalModel


class Blind(CausalModel):
    """Every column on its own: a model that learned no dependence at all."""

    def __init__(self, graph, schema, seed=0, *, seconds=0.0, fail=False, mark=None, die=0):
        self.graph = graph
        self.schema_ = schema
        self.seed = seed
        self.seconds = seconds
        self.fail = fail
        self.mark = mark
        self.die = die

    def fit(self, data, validation=None, *, progress=None, checkpoint=None):
        if self.mark is not None:  # one file for each time a fit starts
            folder = Path(self.mark)
            starts = len(list(folder.iterdir()))
            (folder / f"{os.getpid()}-{time.time_ns()}").touch()
            if starts < self.die:
                os.kill(os.getpid(), signal.SIGKILL)
        if self.fail:
            raise RuntimeError("made to fail")
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            time.sleep(0.01)
        rows = self.schema_.encode(data)
        self.mean_ = {c: v.mean() for c, v in rows.items()}
        self.sd_ = {c: v.std() for c, v in rows.items()}
        return self

    def noise(self, n, rng):
        return {c: rng.normal(size=n) for c in self.schema_}

    def abduct(self, x, rng=None):
        return {c: (v - self.mean_[c]) / self.sd_[c] for c, v in x.items()}

    def simulate(self, u, do):
        return {c: do.get(c, self.mean_[c] + self.sd_[c] * u[c]) for c in self.schema_}


def blind(graph, schema, seed=0, **config):
    """The factory that runs name."""
    return Blind(graph, schema, seed, **config)
