"""Reports and Codes keep their description through whole rows, and through nothing else."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, train_test_split
from sklearn.utils import resample, shuffle

from skldp import ChannelError, FrequencyEstimator
from skldp.channels import Alphabet, Codes, KRRChannel, ProductChannel, RapporChannel, Reports

CHANNEL = ProductChannel([KRRChannel(1.0, 3), KRRChannel(2.0, 4)])


@pytest.fixture
def reports():
    rng = np.random.default_rng(0)
    return CHANNEL.randomize(rng.integers(0, 3, (40, 2)), random_state=0)


KEPT = {
    "slice": lambda r: r[3:9],
    "step": lambda r: r[::-2],
    "ellipsis": lambda r: r[...],
    "list": lambda r: r[[4, 1, 1]],
    "index array": lambda r: r[np.array([5, 0])],
    "mask": lambda r: r[np.arange(40) % 3 == 0],
    "rows and all columns": lambda r: r[2:5, :],
    "rows and ellipsis": lambda r: r[[1, 2], ...],
    "take": lambda r: r.take([1, 2], axis=0),
    "np.take": lambda r: np.take(r, [1, 2], axis=0),
    "copy": lambda r: r.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda r: pickle.loads(pickle.dumps(r)),
    "concatenate": lambda r: np.concatenate([r, r[:3]]),
    "vstack": lambda r: np.vstack([r, r]),
    "vstack by name": lambda r: np.vstack(tup=[r, r]),
    "concatenate from the end": lambda r: np.concatenate([r, r], axis=-2),
    "np.take by name": lambda r: np.take(a=r, indices=[1, 2], axis=0),
    "np.take by position": lambda r: np.take(r, [1, 2], 0, None, "clip"),
    "split by name": lambda r: np.split(ary=r, indices_or_sections=4)[0],
    "array_split by name": lambda r: np.array_split(r, indices_or_sections=3)[0],
    "pandas mask": lambda r: r[pd.Series(np.arange(40) < 5)],
    "array_split": lambda r: np.array_split(r, 3)[1],
    "split": lambda r: np.split(r, 4)[3],
    "shuffle": lambda r: shuffle(r, random_state=0),
    "resample": lambda r: resample(r, random_state=0),
    "train_test_split": lambda r: train_test_split(r, random_state=0)[1],
}

LOST = {
    "one row": lambda r: r[0],
    "one column": lambda r: r[:, 0],
    "swapped columns": lambda r: r[:, ::-1],
    "chosen columns": lambda r: r[:, [1, 0]],
    "two-dimensional mask": lambda r: r[r > 0],
    "transpose": lambda r: r.T,
    "np.flip": lambda r: np.flip(r, axis=1),
    "split of columns": lambda r: np.split(r, 2, axis=1)[0],
    "column_stack": lambda r: np.column_stack([r, r]),
    "np.flip of both": lambda r: np.flip(r),
    "np.sort": lambda r: np.sort(r, axis=0),
    "np.roll": lambda r: np.roll(r, 1, axis=1),
    "arithmetic": lambda r: r + 1,
    "comparison": lambda r: r == 1,
    "astype": lambda r: r.astype(np.int64),
    "reshape": lambda r: r.reshape(20, 4),
    "hstack": lambda r: np.hstack([r, r]),
    "concatenate all": lambda r: np.concatenate([r, r], axis=None),
    "take of columns": lambda r: r.take([1, 0], axis=1),
    "concatenate with a plain array": lambda r: np.concatenate([r, np.asarray(r)]),
    "concatenate behind a plain array": lambda r: np.concatenate([np.asarray(r), r]),
    "vstack behind a row": lambda r: np.vstack([[0, 0], r]),
    "concatenate as bool": lambda r: np.concatenate([r, r], dtype=bool, casting="unsafe"),
    "concatenate into out": lambda r: np.concatenate([r, r], out=np.empty((80, 2), np.uint8)),
    "take into out": lambda r: np.take(r, [0], axis=0, out=np.empty((1, 2), np.uint8)),
    "take of all": lambda r: np.take(r, [0, 1]),
    "structured view": lambda r: r.view([("a", np.uint8)]),
    "asarray": np.asarray,
    "where": lambda r: np.where(r > 1, r, 0),
    "repeat": lambda r: np.repeat(r, 2, axis=0),
    "swapaxes": lambda r: r.swapaxes(0, 1),
    "view": lambda r: r.view(np.uint8),
}


@pytest.mark.parametrize("operation", KEPT.values(), ids=KEPT.keys())
def test_rows_keep_their_channel(reports, operation):
    rows = operation(reports)
    assert isinstance(rows, Reports) and rows.channel == CHANNEL
    assert FrequencyEstimator().fit(rows).channel_ == CHANNEL


@pytest.mark.parametrize("operation", LOST.values(), ids=LOST.keys())
def test_anything_else_loses_it_and_is_refused(reports, operation):
    rest = operation(reports)
    assert getattr(rest, "channel", None) is None
    with pytest.raises((ChannelError, ValueError)):
        FrequencyEstimator().fit(rest)


def test_a_square_batch_of_bits_transposed_is_refused():
    channel = RapporChannel(1.0, 6)
    square = channel.randomize(np.arange(6), random_state=0)
    assert square.shape == (6, 6)
    with pytest.raises(ChannelError, match="carries no channel"):
        FrequencyEstimator().fit(square.T)


def test_rows_of_two_channels_do_not_mix(reports):
    other = ProductChannel([KRRChannel(1.0, 3), KRRChannel(2.5, 4)])
    joined = np.concatenate([reports, other.randomize(np.zeros((3, 2), int))])
    assert getattr(joined, "channel", None) is None
    codes = Codes([[0, 1]], [Alphabet(3), Alphabet(4)])
    assert getattr(np.concatenate([reports, codes]), "channel", None) is None


def test_reports_cannot_be_changed_in_place(reports):
    for change in (
        lambda: reports.sort(axis=0),
        lambda: reports.__setitem__((slice(None), [0, 1]), reports[:, [1, 0]]),
        lambda: np.add(reports, 1, out=reports),
        lambda: reports.__iadd__(1),
        lambda: np.random.default_rng(0).shuffle(reports),
        lambda: np.add.at(reports, (0, 0), 1),
    ):
        with pytest.raises(ValueError, match="read-only"):
            change()
    assert np.array(reports).flags.writeable


def test_results_of_numpy_are_plain(reports):
    assert type(reports + 1) is np.ndarray
    assert type(np.sort(reports, axis=0)) is np.ndarray
    assert type(reports[0]) is np.ndarray
    assert reports.sum() == np.asarray(reports).sum()
    assert reports.max(axis=0).shape == (2,)


def test_joblib_hash_tells_channels_apart(reports):
    other = Reports(np.array(reports), ProductChannel([KRRChannel(1.5, 3), KRRChannel(2.0, 4)]))
    same = Reports(np.array(reports), CHANNEL)
    assert joblib.hash(reports) == joblib.hash(same)
    assert joblib.hash(reports) != joblib.hash(other)
    assert joblib.hash(reports[3:]) != joblib.hash(other[3:])
    unpickled = pickle.loads(pickle.dumps(reports))
    assert joblib.hash(unpickled) == joblib.hash(reports)


def test_joblib_dump_keeps_the_channel(reports, tmp_path):
    joblib.dump(reports, tmp_path / "reports")
    assert joblib.load(tmp_path / "reports").channel == CHANNEL


def test_cross_validation_keeps_the_channel(reports):
    for train, test in KFold(4).split(reports):
        assert reports[train].channel == reports[test].channel == CHANNEL


def test_reports_from_storage_are_checked():
    with pytest.raises(ChannelError, match="shape"):
        Reports([[0, 1, 2]], CHANNEL)
    with pytest.raises(ChannelError, match="larger"):
        Reports([[0, 4]], CHANNEL)
    with pytest.raises(ChannelError, match="Negative"):
        Reports([[0, -1]], CHANNEL)
    assert Reports([[0.0, 3.0]], CHANNEL).tolist() == [[0, 3]]


def test_reports_do_not_share_the_callers_buffer():
    channel, buffer, batches = KRRChannel(1.0, 3), np.zeros((4, 1), np.uint8), []
    for symbol in range(3):
        buffer[:] = symbol
        batches.append(Reports(buffer, channel))
    assert FrequencyEstimator().fit(np.concatenate(batches)).counts_.tolist() == [4, 4, 4]


def test_masked_reports_are_refused():
    masked = np.ma.masked_array([[0], [1]], mask=[[False], [True]])
    for fit in (
        FrequencyEstimator(KRRChannel(1.0, 3)).fit,
        lambda X: Reports(X, KRRChannel(1.0, 3)),
    ):
        with pytest.raises(ChannelError, match="masked"):
            fit(masked)
    whole = np.ma.masked_array([[0], [1]], mask=False)
    assert FrequencyEstimator(KRRChannel(1.0, 3)).fit(whole).n_reports_ == 2


def test_codes_are_described_and_not_private():
    codes = KRRChannel(1.0, 2, ("no", "yes")).encode(["yes", "no", "maybe"])
    assert codes.tolist() == [[1], [0], [-1]]
    assert codes[:2].encoding == (Alphabet(2, ("no", "yes")),)
    assert pickle.loads(pickle.dumps(codes)).encoding == codes.encoding
    with pytest.raises(ChannelError, match="not private"):
        FrequencyEstimator().fit(codes)
    with pytest.raises(ChannelError, match="not private"):
        FrequencyEstimator(channel=KRRChannel(1.0, 2)).fit(codes)
    with pytest.raises(ChannelError, match="another alphabet"):
        KRRChannel(1.0, 2).randomize(codes[:2])
    with pytest.raises(ValueError, match="shape"):
        Codes([[0, 1]], [Alphabet(3)])


def test_reports_are_not_randomized_again(reports):
    with pytest.raises(ChannelError, match="private already"):
        CHANNEL.randomize(reports)
