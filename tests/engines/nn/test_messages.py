"""Messages between columns: many are summed in one product, with the same sum."""

import pytest
import torch

from vaca.engines.nn import messages
from vaca.engines.nn.messages import Trunk


@pytest.mark.parametrize("edges", [[(j, i) for i in (0, 1) for j in range(2, 8)], [(2, 0)]])
def test_many_messages_add_up_to_the_same(edges, monkeypatch):
    trunks = []
    for many in (0, 10**9):
        monkeypatch.setattr(messages, "MANY", many)
        generator = torch.Generator().manual_seed(0)
        trunks.append(Trunk(edges, 2, 4, 5, 1, torch.zeros(2, 1, 3), generator).double())
    fast, slow = trunks
    assert fast._many is not None and slow._many is None
    with torch.no_grad():
        for trunk in trunks:
            trunk.straight.weight.fill_(0.3)
    h = torch.randn(8, 7, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(fast(h), slow(h))
    fast(h).square().sum().backward()
    slow(h).square().sum().backward()
    torch.testing.assert_close(fast.message.weight.grad, slow.message.weight.grad)


def test_no_targets_at_all():
    trunk = Trunk([], 0, 4, 5, 1, torch.zeros(0, 1, 3), None)
    assert trunk(torch.zeros(2, 7, 4)).shape == (0, 7, 3)
