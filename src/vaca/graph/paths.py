"""Orders and paths of a directed acyclic graph, in time that grows with nodes and arrows.

Nodes are numbers here: positions in the order in which they were given.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

#: Parents of each node, by number.
Parents = Sequence[Sequence[int]]


def children_of(parents: Parents) -> list[list[int]]:
    """The direct effects of each node, in order."""
    children: list[list[int]] = [[] for _ in parents]
    for node, direct in enumerate(parents):
        for parent in direct:
            children[parent].append(node)
    return children


def topological_order(parents: Parents) -> list[int]:
    """Causes before effects, always taking the earliest node that can be taken.

    With a cycle, the nodes on it and below it are left out.
    """
    children, missing = children_of(parents), [len(direct) for direct in parents]
    ready = [node for node, count in enumerate(missing) if not count]
    order: list[int] = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for child in children[node]:
            missing[child] -= 1
            if not missing[child]:
                heapq.heappush(ready, child)
    return order


def find_cycle(parents: Parents, order: Sequence[int]) -> list[int]:
    """A cycle, causes first and its first node again at the end; `order` lacks its nodes."""
    waiting = set(range(len(parents))).difference(order)
    # Every waiting node has a waiting parent, so walking upwards must meet itself.
    place = {min(waiting): 0}
    path = [min(waiting)]
    while True:
        parent = next(p for p in parents[path[-1]] if p in waiting)
        if parent in place:
            return [*path[place[parent] :], parent][::-1]
        place[parent] = len(path)
        path.append(parent)


def depths(parents: Parents, order: Sequence[int]) -> list[int]:
    """Edges on the longest path that leads to each node; 0 for a root."""
    depth = [0] * len(parents)
    for node in order:
        depth[node] = max((depth[parent] + 1 for parent in parents[node]), default=0)
    return depth


def depth_layers(parents: Parents) -> list[list[int]]:
    """Nodes by the length of the longest path that leads to them; roots first.

    >>> depth_layers([[], [0], [0, 1], []])
    [[0, 3], [1], [2]]
    """
    depth = depths(parents, topological_order(parents))
    layers: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for node, level in enumerate(depth):
        layers[level].append(node)
    return layers


class Reach:
    """Who can be reached from whom along arrows: one search per question, in little memory.

    Inside, nodes are numbered by their place in a topological order, so that answers come in it.
    """

    def __init__(self, parents: Parents, order: Sequence[int]) -> None:
        from scipy.sparse import csr_matrix

        self.order = np.asarray(order, dtype=np.int64)
        self.rank = np.empty_like(self.order)
        self.rank[self.order] = np.arange(len(order))
        ends = [(p, node) for node, direct in enumerate(parents) for p in direct]
        pairs = self.rank[np.asarray(ends, dtype=np.int64).reshape(-1, 2)]
        ones, shape = np.ones(len(pairs), dtype=np.int8), (len(order), len(order))
        self._down = csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=shape)
        self._up = csr_matrix((ones, (pairs[:, 1], pairs[:, 0])), shape=shape)

    def below(self, node: int) -> np.ndarray:
        """The nodes that a node reaches, without itself, in topological order."""
        return self._search(self._down, node)

    def above(self, node: int) -> np.ndarray:
        """The nodes that reach a node, without itself, in topological order."""
        return self._search(self._up, node)

    def _search(self, matrix: object, node: int) -> np.ndarray:
        from scipy.sparse.csgraph import breadth_first_order

        found = breadth_first_order(matrix, self.rank[node], return_predecessors=False)
        return self.order[np.sort(found[1:])]

    def longest_distance(self) -> int:
        """The largest distance between two connected nodes: one search from each node."""
        from scipy.sparse.csgraph import breadth_first_order

        longest = 0
        for start in range(len(self.order)):
            found, before = breadth_first_order(self._down, start)
            last, distance = int(found[-1]), 0  # a search by levels ends with a farthest node
            while last != start:
                last, distance = int(before[last]), distance + 1
            longest = max(longest, distance)
        return longest
