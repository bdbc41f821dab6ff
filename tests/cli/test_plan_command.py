"""`python -m skldp plan`: the table against the formulas, and errors of one line."""

import json
import re

import numpy as np
import pytest

from skldp.channels import Channel
from skldp.cli import main
from skldp.metrics import compare_mechanisms, expected_l1_loss, suggest_parameters, users_needed


def plan(*more, epsilon="1", users="100000", categories="256"):
    return ["plan", "--epsilon", epsilon, "--users", users, "--categories", categories, *more]


def test_the_table_holds_what_the_formulas_say(capsys):
    assert main(plan("--target", "0.2")) == 0
    text = capsys.readouterr().out
    uniform = np.full(256, 1 / 256)
    found = {}
    for line in text.splitlines():
        match = re.match(r"[* ] (k-RR|k-RAPPOR|O-RR|O-RAPPOR) .* (\S+) +(\S+) +([\d,]+)$", line)
        if match:
            found[match[1]] = (float(match[2]), int(match[4].replace(",", "")))
    mechanisms = compare_mechanisms(1.0, 100_000, 256, open_alphabet=False)
    assert set(found) == set(mechanisms)
    for name, (channel, _) in mechanisms.items():
        loss, users = found[name]
        assert loss == pytest.approx(expected_l1_loss(channel, uniform, 100_000), rel=1e-3)
        assert users == users_needed(channel, 256, 0.2)
        assert expected_l1_loss(channel, uniform, users) <= 0.2
        assert expected_l1_loss(channel, uniform, users - 1) > 0.2


@pytest.mark.parametrize("open_alphabet", [False, True])
def test_the_suggested_channel_is_that_of_the_library(tmp_path, capsys, open_alphabet):
    path = tmp_path / "channel.json"
    more = ["--channel", str(path), *(["--open"] if open_alphabet else [])]
    assert main(plan(*more)) == 0
    channel = Channel.from_dict(json.loads(path.read_text()))
    assert channel == suggest_parameters(1.0, 100_000, 256, open_alphabet).channel
    marked = re.search(r"^\* (\S+) ", capsys.readouterr().out, re.MULTILINE)[1]
    expected = suggest_parameters(1.0, 100_000, 256, open_alphabet, mechanism=marked)
    assert expected.channel == channel


def test_an_open_alphabet_leaves_fixed_ones_out(capsys):
    main(plan("--open"))
    text = capsys.readouterr().out
    assert "O-RR" in text and "k-RR" not in text and "k-RAPPOR" not in text


def test_users_beyond_eighteen_digits_are_no_error(capsys):
    assert main(plan(epsilon="1e-9", categories="16")) == 0
    lines = capsys.readouterr().out.splitlines()[2:7]
    assert [line.endswith("> 10^18") for line in lines] == [False, True, True, True, True]
    assert len({*map(len, lines)}) == 1  # aligned


def test_the_figure_is_written(tmp_path):
    path = tmp_path / "plan.png"
    assert main(plan("--plot", str(path), categories="16")) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (plan(epsilon="-1"), "epsilon must be at least 0"),
        (plan(epsilon="nan"), "epsilon must be finite"),
        (plan(epsilon="0"), "epsilon"),
        (plan(users="0"), "n_users must be at least 1"),
        (plan(categories="1"), "n_categories must be at least 2"),
        (plan("--target", "0"), "--target must be positive"),
        (plan("--open", categories="10000000"), "candidates are too many"),
        (plan("--plot", "/nowhere/at/all.png", categories="16"), "nowhere"),
    ],
)
def test_errors_are_one_line_and_a_status(arguments, message, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_arguments_that_do_not_parse_end_with_status_two(capsys):
    with pytest.raises(SystemExit) as ended:
        main(plan(users="many"))
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert "many" in shown and shown.count("\n") == 1
