"""Blocks and trees: impulses, sums by brute force, likelihood ratios, chunks and checkpoints."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from skldp.collaborative._grid import HALF_STEPS, LARGEST_SUM, STEPS
from skldp.collaborative._noise import NoiseLaw
from skldp.collaborative._releases import BlockReleases, TreeReleases, block_sizes, make_releases

KEY = b"r" * 32


class Interrupted(Exception):
    pass


class NoNoise:
    """Counts draws, and adds nothing."""

    def __init__(self, n_quantities=2):
        self.n_quantities = n_quantities
        self.drawn = []

    def draw(self, key, agents, indices):
        self.drawn += list(zip(agents.tolist(), indices.tolist(), strict=True))
        return np.zeros((self.n_quantities, agents.size), dtype=np.int64)


class Interrupting(NoNoise):
    """Fails when it is asked for the `number`-th time."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def draw(self, key, agents, indices):
        self.number -= 1
        if self.number == 0:
            raise Interrupted
        return super().draw(key, agents, indices) + 1000


def laplace(n_appearances=1, epsilon=1.0, with_squares=True):
    return NoiseLaw("laplace", epsilon, 0.0, n_appearances, with_squares)


def build(kind, n_agents, *, n_quantities=2, first=3, growth=2.0, horizon=31):
    if kind == "blocks":
        releases = BlockReleases(first, growth, n_quantities)
    else:
        releases = TreeReleases(horizon, n_quantities)
    releases.add_agents(n_agents)
    return releases


def random_rows(rng, n_rows, n_agents, missing=0.3):
    steps = rng.integers(-HALF_STEPS, HALF_STEPS + 1, (n_rows, n_agents))
    return steps, rng.uniform(size=steps.shape) >= missing


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def transcript(kind, values, law, key=KEY, **options):
    """Everything one agent publishes, row by row: the new sums of each row."""
    releases = build(kind, 1, **options)
    published = []
    for value in values:
        before = releases.n_released[0]
        releases.extend(np.array([[value]]), np.ones((1, 1), dtype=bool), law, key)
        released = releases.released()
        if kind == "blocks":
            new = slice(before, releases.n_released[0])
            published += list(zip(released.sums[0, new], released.squares[0, new], strict=True))
        else:  # the node that ends here is the one on the lowest level in use
            n = int(releases.n_released[0])
            level = (n & -n).bit_length() - 1
            node = releases.noised[:, level, 0]
            published.append((node[0] / STEPS, node[1] / HALF_STEPS**2))
    return np.array(published).reshape(-1, 2)


@pytest.mark.parametrize("position", [0, 1, 7, 14, 30])
@pytest.mark.parametrize("kind", ["blocks", "tree"])
def test_an_impulse_is_in_one_block_or_one_node_a_level(kind, position):
    """Noise off; the change of all that is published, in widths: 1, or d and √d at most."""
    quiet = np.zeros(31, dtype=np.int64)
    loud = quiet.copy()
    loud[position] = HALF_STEPS  # half a width
    moved = transcript(kind, loud, NoNoise()) - transcript(kind, quiet, NoNoise())
    sums = moved[:, 0] / 0.5
    if kind == "blocks":
        # 3 + 6 + 12 = 21 observations are published; the last ten are not.
        expected = 1.0 if position < 21 else 0.0
        assert np.abs(sums).sum() == expected
        assert np.linalg.norm(sums) == expected
        return
    n_nodes = np.count_nonzero(sums)
    assert n_nodes <= 5
    assert np.abs(sums).sum() == n_nodes
    assert np.linalg.norm(sums) == pytest.approx(math.sqrt(n_nodes))


def test_the_first_observation_is_in_a_node_of_each_level():
    quiet = np.zeros(31, dtype=np.int64)
    loud = quiet.copy()
    loud[0] = HALF_STEPS
    moved = transcript("tree", loud, NoNoise()) - transcript("tree", quiet, NoNoise())
    sums = moved[:, 0] / 0.5
    assert np.abs(sums).sum() == 5
    assert np.linalg.norm(sums) == pytest.approx(math.sqrt(5))


@pytest.mark.parametrize("with_squares", [False, True])
@pytest.mark.parametrize("epsilon", [0.2, 3.0])
@pytest.mark.parametrize("kind", ["blocks", "tree"])
def test_the_whole_transcript_loses_at_most_epsilon(kind, epsilon, with_squares):
    """The likelihood ratio of Laplace noise is at most the sum of changes over scales, exactly."""
    law = laplace(5 if kind == "tree" else 1, epsilon, with_squares)
    rng = np.random.default_rng(0)
    worst = Fraction(0)
    ends = [-HALF_STEPS, HALF_STEPS]
    for trial in range(40):
        values = rng.integers(-HALF_STEPS, HALF_STEPS + 1, 31)
        other = values.copy()
        position = 0 if trial < 10 else rng.integers(31)
        if trial % 2:
            values[position], other[position] = ends
        else:
            other[position] = rng.integers(-HALF_STEPS, HALF_STEPS + 1)
        change = transcript(kind, values, NoNoise()) - transcript(kind, other, NoNoise())
        steps = np.rint(np.abs(change) * [STEPS, HALF_STEPS**2]).astype(object)
        # Pairs (sum, sum of squares), or the sums alone.
        loss = sum(
            Fraction(int(a)) / scale
            for pair in steps
            for a, scale in zip(pair, law.parameters, strict=False)
        )
        worst = max(worst, loss)
        assert loss <= Fraction(epsilon)
    assert worst == Fraction(epsilon)  # two ends, at the most exposed place


@pytest.mark.parametrize("chunk", [1, 4, 1000])
@pytest.mark.parametrize("kind", ["blocks", "tree"])
def test_sums_are_those_of_brute_force(kind, chunk):
    rng = np.random.default_rng(1)
    steps, observed = random_rows(rng, 40, 6, missing=0.4)
    releases = build(kind, 6, horizon=40)
    for start in range(0, 40, chunk):
        rows = slice(start, start + chunk)
        releases.extend(steps[rows], observed[rows], NoNoise(), None)
    released = releases.released()
    for agent in range(6):
        values = steps[observed[:, agent], agent]
        if kind == "tree":
            assert released.sizes[agent, 0] == len(values)
            assert released.sums[agent, 0] == values.sum() / STEPS
            assert released.squares[agent, 0] == (values**2).sum() / HALF_STEPS**2
            assert released.noise_copies[agent, 0] == bin(len(values)).count("1")
            assert released.n_released[agent] == len(values)
            continue
        sizes = block_sizes(len(values), 3, 2.0)
        assert released.sizes[agent].tolist() == sizes.tolist() + [0] * (
            released.sizes.shape[1] - len(sizes)
        )
        ends = np.cumsum(sizes)
        for block, (start, end) in enumerate(zip(ends - sizes, ends, strict=True)):
            assert released.sums[agent, block] == values[start:end].sum() / STEPS
            squares = (values[start:end] ** 2).sum() / HALF_STEPS**2
            assert released.squares[agent, block] == squares
        assert released.n_released[agent] == len(sizes)


@pytest.mark.parametrize("kind", ["blocks", "tree"])
def test_rows_may_come_in_any_chunks_and_through_a_checkpoint(kind):
    rng = np.random.default_rng(2)
    law = laplace(7 if kind == "tree" else 1)
    steps, observed = random_rows(rng, 100, 5)
    once = build(kind, 5, horizon=100)
    once.extend(steps, observed, law, KEY)
    pieces = build(kind, 5, horizon=100)
    cuts = [0, 1, 2, 30, 31, 77, 100]
    for start, end in itertools.pairwise(cuts):
        pieces.extend(steps[start:end], observed[start:end], law, KEY)
        pieces = pickle.loads(pickle.dumps(pieces))
    assert same(once.released(), pieces.released())


@pytest.mark.parametrize("kind", ["blocks", "tree"])
def test_what_was_published_is_never_noised_again(kind):
    """Secure noise: whatever comes later, published sums stay as they are."""
    rng = np.random.default_rng(3)
    law = laplace(6 if kind == "tree" else 1)
    steps, observed = random_rows(rng, 60, 4, missing=0)
    releases = build(kind, 4, horizon=60)
    seen = {}
    for row in range(60):
        releases.extend(steps[row : row + 1], observed[row : row + 1], law, None)
        releases = pickle.loads(pickle.dumps(releases))
        n = int(releases.n_released[0])
        for place in range(n if kind == "blocks" else 6):
            if kind == "tree" and not n >> place & 1:
                continue
            name = place if kind == "blocks" else ((n >> place) << place, place)
            values = (
                releases.noised[:, :, place] if kind == "blocks" else releases.noised[:, place]
            )
            if name in seen:
                np.testing.assert_array_equal(values, seen[name])
            seen[name] = values.copy()
    assert len(seen) == (4 if kind == "blocks" else 60)


def test_each_node_and_block_is_drawn_once():
    rng = np.random.default_rng(4)
    for kind in ("blocks", "tree"):
        law = NoNoise()
        releases = build(kind, 3, horizon=50)
        steps, observed = random_rows(rng, 50, 3, missing=0.2)
        for row in range(50):
            releases.extend(steps[row : row + 1], observed[row : row + 1], law, None)
        assert len(set(law.drawn)) == len(law.drawn) == releases.n_released.sum()


def test_two_copies_of_a_checkpoint_have_unrelated_noise():
    releases = build("blocks", 1)
    row, seen = np.zeros((2, 1), dtype=np.int64), np.ones((2, 1), dtype=bool)
    releases.extend(row, seen, laplace(), None)
    one, other = (pickle.loads(pickle.dumps(releases)) for _ in range(2))
    for resumed in (one, other):
        resumed.extend(row[:1], seen[:1], laplace(), None)
    assert one.released().sums[0, 0] != other.released().sums[0, 0]


@pytest.mark.parametrize("kind", ["blocks", "tree"])
def test_agents_may_come_late(kind):
    rng = np.random.default_rng(5)
    law = laplace(6 if kind == "tree" else 1)
    steps, observed = random_rows(rng, 40, 5)
    observed[:20, 3:] = False
    whole = build(kind, 5, horizon=40)
    whole.extend(steps, observed, law, KEY)
    late = build(kind, 3, horizon=40)
    late.extend(steps[:20, :3], observed[:20, :3], law, KEY)
    late.add_agents(2)
    late.extend(steps[20:], observed[20:], law, KEY)
    assert same(whole.released(), late.released())


def test_an_exhausted_horizon_raises_before_anything_changes():
    releases = build("tree", 2, horizon=10)
    releases.extend(np.ones((9, 2), dtype=np.int64), np.ones((9, 2), bool), NoNoise(), None)
    before = pickle.dumps(releases)
    releases.check(np.array([1, 1]))
    with pytest.raises(ValueError, match=r"horizon is exhausted.*for 10 .* have 11"):
        releases.check(np.array([1, 2]))
    assert pickle.dumps(releases) == before


@pytest.mark.parametrize(("kind", "number"), [("blocks", 1), ("blocks", 2), ("tree", 1)])
def test_interrupted_rows_leave_no_trace(kind, number):
    """Or the same rows, given again, would be in two sums: twice the privacy loss."""
    rng = np.random.default_rng(6)
    steps, observed = random_rows(rng, 30, 4)
    releases = build(kind, 4)
    releases.extend(steps[:5], observed[:5], NoNoise(), None)
    before = releases.released()
    with pytest.raises(Interrupted):
        releases.extend(steps[5:], observed[5:], Interrupting(number), None)
    assert same(releases.released(), before)
    releases.extend(steps[5:], observed[5:], NoNoise(), None)
    straight = build(kind, 4)
    straight.extend(steps, observed, NoNoise(), None)
    assert same(releases.released(), straight.released())


@pytest.mark.parametrize("kind", ["blocks", "tree"])
def test_a_shallow_copy_can_take_the_place_of_what_came_later(kind):
    rng = np.random.default_rng(7)
    steps, observed = random_rows(rng, 30, 4)
    law = laplace(5 if kind == "tree" else 1)
    releases = build(kind, 4)
    releases.extend(steps[:12], observed[:12], law, KEY)
    snapshot, before = copy.copy(releases), releases.released()
    releases.extend(steps[12:], observed[12:], law, b"o" * 32)
    assert same(snapshot.released(), before)
    snapshot.extend(steps[12:], observed[12:], law, KEY)
    straight = build(kind, 4)
    straight.extend(steps, observed, law, KEY)
    assert same(snapshot.released(), straight.released())


@pytest.mark.parametrize(("first", "growth"), [(1, 1.0), (3, 1.5), (32, 2.0), (5, 3.7)])
def test_block_sizes_follow_their_rule(first, growth):
    sizes = block_sizes(3000, first, growth)
    assert sizes[0] == first
    for size, following in itertools.pairwise(sizes):
        assert following == math.ceil(growth * size)
    rest = 3000 - sizes.sum()
    assert 0 <= rest < math.ceil(growth * sizes[-1])


def test_blocks_end_to_grow_where_sums_would_overflow():
    sizes = block_sizes(4 * LARGEST_SUM, LARGEST_SUM // 2 + 1, 2.0)
    assert sizes.tolist() == [LARGEST_SUM // 2 + 1, LARGEST_SUM, LARGEST_SUM, LARGEST_SUM]
    assert LARGEST_SUM * HALF_STEPS**2 < 2**63
    assert block_sizes(LARGEST_SUM + 2, 2, 1e308).tolist() == [2, LARGEST_SUM]


def test_no_squares_where_nobody_wants_them():
    releases = make_releases(3, 2.0, None, n_quantities=1)
    releases.add_agents(2)
    law = laplace(with_squares=False)
    releases.extend(np.ones((9, 2), dtype=np.int64), np.ones((9, 2), dtype=bool), law, KEY)
    assert releases.released().squares is None
    assert releases.released().sums.shape == (2, 2)
