"""The command line: ``python -m skldp``."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from skldp.cli import _estimate, _plan, _reproduce

__all__ = ["main"]

_COMMANDS = (_plan, _estimate, _reproduce)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (--help tells more)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The command line after the name of the program; None takes that of the process.

    Returns
    -------
    int
        Exit status: 0, or 2 for wrong arguments or input, which are one line on stderr; where a
        command compares something, 1 if that does not hold. After an interruption 130, and 141
        where nobody reads the output any more, as shells have it.

    Raises
    ------
    SystemExit
        Where arguments do not parse, or help was asked for.
    """
    parser = _Parser(prog="skldp", description="Differential privacy as scikit-learn estimators.")
    subparsers = parser.add_subparsers(required=True, metavar="command")
    for command in _COMMANDS:
        command.add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()  # so that what cannot be written is noticed here
    except KeyboardInterrupt:
        print("skldp: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _drop_output()
        return 141
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"skldp: error: {message}", file=sys.stderr)
        return 2
    return status


def _drop_output() -> None:
    """Send what stdout still holds nowhere, or the interpreter complains about it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
