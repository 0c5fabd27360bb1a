"""The causal graph: nodes, parents, order and paths, and the files it is read from."""

from vaca.graph.dag import CausalGraph

__all__ = ["CausalGraph"]
