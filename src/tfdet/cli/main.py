"""The entry point of `tfdet`: registers all commands, and converts errors to messages and exit codes."""

from __future__ import annotations

import gc
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode, TfdetError, from_os_error
from tfdet.base.extras import missing_extra
from tfdet.cli import (
    audit,
    bundle,
    check,
    environments,
    evidence,
    fleet,
    key,
    locate,
    prove,
    reproduce,
    run,
    site,
    status,
    vgpu,
)
from tfdet.cli.app import global_options
from tfdet.cli.layout import EVIDENCE, FIND, LOOK_UP, RUN, Command, Group

_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    LOOK_UP: (status.status, status.show, status.recipe, environments.envs, environments.doctor),
    RUN: (run.run, environments.build, reproduce.reproduce, bundle.bundle, vgpu.vgpu),
    FIND: (locate.locate, prove.prove, check.check, audit.audit),
    EVIDENCE: (site.site,),
}
_Commands = dict[str, Callable[..., None]]
_GROUPS: dict[str, tuple[str, str, type[Group], _Commands]] = {
    "fleet": (
        RUN,
        "Run the suite on many machines.",
        fleet.DefaultRunGroup,
        {"run": fleet.run, "status": fleet.status, "cancel": fleet.cancel},
    ),
    "evidence": (
        EVIDENCE,
        "Add and sign records of the evidence store.",
        Group,
        {"add": evidence.add, "sign": evidence.sign},
    ),
    "key": (EVIDENCE, "Create and print this machine's signing key.", Group, {"new": key.new, "show": key.show}),
}


def _application() -> typer.Typer:
    app = typer.Typer(
        cls=Group,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(global_options)
    for panel, commands in _COMMANDS.items():
        for command in commands:
            # The arguments of these commands contain the options of a user's program.
            has_program = command in (locate.locate, prove.prove, vgpu.vgpu)
            settings = {"ignore_unknown_options": has_program}
            app.command(cls=Command, context_settings=settings, rich_help_panel=panel)(command)
    for name, (panel, text, cls, subcommands) in _GROUPS.items():
        group = typer.Typer(cls=cls, no_args_is_help=True, help=text)
        for subcommand_name, command in subcommands.items():
            group.command(subcommand_name, cls=Command)(command)
        app.add_typer(group, name=name, rich_help_panel=panel)
    return app


app = _application()


def main() -> None:
    """Run the command line; print a TfdetError in two lines, and any other exception as an internal error."""
    gc.set_threshold(100_000, 20, 20)  # searching a million objects of records for cycles takes long, and finds none
    try:
        console.configure_streams()
        # `| head` ends tfdet as it ends other tools; but `global_options` changes this for commands that write files.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            app()
        finally:
            sys.stdout.flush()  # reports a full disk here, not when the interpreter exits
    except TfdetError as error:
        _exit_with(error)
    except KeyboardInterrupt:
        sys.exit(int(ExitCode.INTERRUPTED))
    except BrokenPipeError:
        sys.exit(int(ExitCode.OK))
    except OSError as error:
        console.drop_output()
        _exit_with(from_os_error(error))
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            _report_defect()
        _exit_with(missing)
    except Exception:
        _report_defect()


def _report_defect() -> NoReturn:
    traceback.print_exc()
    _exit_with(TfdetError("internal error of tfdet: please report it", "See the lines above."))


def _exit_with(error: TfdetError) -> NoReturn:
    console.print_error(error)
    sys.exit(int(error.code))
