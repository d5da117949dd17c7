"""The program `kafka-durability`: how it starts and ends. Its commands are in `durability.cli.commands`."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from durability.cli.exit_status import DONE, INCOMPLETE, REACHED
from durability.errors import AuditError
from durability.plain import plain_lines

PROGRAM = "kafka-durability"


class Commands(TyperGroup):
    """Ends the program with a command's status.

    Any exception gives 2, because 1 means that --fail-on is reached. An AuditError is printed without a traceback.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called. An option that is given twice is refused, because only its last value would count."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            its_own = command.context_class(command, info_name=name, parent=ctx)
            order = command.make_parser(its_own).parse_args(args=list(rest))[2]
            for param in order:
                if param.param_type_name == "option" and not param.multiple and order.count(param) > 1:
                    its_own.fail(f"{param.opts[0]} is given {order.count(param)} times, and takes one value")
        return name, command, rest

    def invoke(self, ctx: Any) -> NoReturn:
        """Run a command. Ctrl-C and SIGTERM exit at once, without waiting for threads that read from a broker."""
        from durability.cli.console import Console
        from durability.runtime import processes

        processes.exit_on_sigterm()
        status: int | None = INCOMPLETE
        try:
            status = super().invoke(ctx)
        except AuditError as error:
            Console().error(str(error))
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            _leave(128 + signal.SIGINT)
        except SystemExit as stopped:
            _leave(stopped.code if isinstance(stopped.code, int) and stopped.code != REACHED else INCOMPLETE)
        except BrokenPipeError:  # the reader of standard output has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            _leave(INCOMPLETE)
        except Exception as error:
            # typer prints its own message for a wrong option or --help.
            if hasattr(error, "exit_code"):
                raise
            print(plain_lines(traceback.format_exc()), file=sys.stderr)
        raise typer.Exit(status or DONE)


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


app = typer.Typer(
    name=PROGRAM,
    cls=Commands,
    help="Audits the durability of Apache Kafka clusters: which topics may lose acknowledged writes or stop accepting them when "
    "brokers or racks fail, and what fixes it.",
    epilog=f"Start with `{PROGRAM} audit`: without options it starts a small cluster with deliberate mistakes and audits it.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with local variables could show a password.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from durability.resources import NAME

        typer.echo(f"{PROGRAM} {version(NAME)}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Options of the program itself. The text above the commands is in `app`."""
