"""Messages between columns: many are summed in one product, with the same sum."""

import pytest
import torch

from vaca.engines.nn import messages
from vaca.engines.nn.messages import Trunk


@pytest.mark.parametrize("edges", [[(j, i) for i in (0, 1) for j in range(2, 8)], [(2, 0)]])
def test_many_messages_add_up_to_the_same(edges, monkeypatch):
    trunks = []
    lines = torch.ones(len(edges), 4, 2)
    for many in (0, 10**9):
        monkeypatch.setattr(messages, "MANY", many)
        generator = torch.Generator().manual_seed(0)
        trunk = Trunk(edges, 2, 4, 5, 1, torch.zeros(2, 1, 3), generator, direct=lines)
        trunks.append(trunk.double())
    fast, slow = trunks
    assert fast._many is not None and slow._many is None
    with torch.no_grad():
        for trunk in trunks:
            trunk.straight.weight.fill_(0.3)
            trunk.direct.copy_(torch.linspace(-1.0, 1.0, trunk.direct.numel()).view_as(lines))
    h = torch.randn(8, 7, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(fast(h), slow(h))
    fast(h).square().sum().backward()
    slow(h).square().sum().backward()
    torch.testing.assert_close(fast.message.weight.grad, slow.message.weight.grad)


def test_what_acts_directly_is_added_where_it_is_allowed():
    edges, h = [(1, 0), (2, 0)], torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(1))
    lines = torch.zeros(2, 4, 2)
    lines[0, 0, 1] = 1.0
    plain, direct = (
        Trunk(edges, 1, 4, 5, 1, torch.zeros(1, 1, 3), torch.Generator().manual_seed(0), direct=d)
        for d in (None, lines)
    )
    torch.testing.assert_close(direct(h), plain(h))
    with torch.no_grad():
        direct.direct.fill_(2.0)
    expected = plain(h)
    expected[0, :, 1] += 2.0 * h[1, :, 0]
    torch.testing.assert_close(direct(h), expected)
    torch.testing.assert_close(direct.some(h.transpose(0, 1), [0]), expected)
    alone = direct.some(h.transpose(0, 1), [0], messages=False)
    torch.testing.assert_close(alone, plain.some(h.transpose(0, 1), [0], messages=False))


def test_no_targets_at_all():
    trunk = Trunk([], 0, 4, 5, 1, torch.zeros(0, 1, 3), None)
    assert trunk(torch.zeros(2, 7, 4)).shape == (0, 7, 3)
