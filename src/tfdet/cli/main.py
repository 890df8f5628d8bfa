"""The entry point: all commands, and what becomes of an error."""

from __future__ import annotations

import signal
import sys
import traceback
from typing import NoReturn

import typer

from tfdet.base import console
from tfdet.base.errors import Exit, TfdetError, from_system
from tfdet.cli import audit, bundle, check, evidence, fleet, host, key, locate, rebuild, run, site, tables, vgpu
from tfdet.cli.app import every_command

_COMMANDS = (
    host.doctor, host.envs, host.build, run.run, tables.status, tables.show, tables.recipe, rebuild.rebuild,
    audit.audit, locate.locate, bundle.bundle, vgpu.vgpu, site.site, check.check,
)  # fmt: skip


def _application() -> typer.Typer:
    app = typer.Typer(
        no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    app.callback()(every_command)
    for command in _COMMANDS:
        own_words = command in (locate.locate, vgpu.vgpu)  # a user's program has options of its own
        app.command(context_settings={"ignore_unknown_options": own_words})(command)
    store = typer.Typer(no_args_is_help=True, help="The evidence store, matrix/evidence.")
    store.command("add")(evidence.add)
    store.command("sign")(evidence.sign)
    app.add_typer(store, name="evidence")
    keys = typer.Typer(no_args_is_help=True, help="The key by which this machine signs its records.")
    keys.command("new")(key.new)
    keys.command("show")(key.show)
    app.add_typer(keys, name="key")
    fleets = typer.Typer(cls=fleet.RunUnlessNamed, no_args_is_help=True, help="The suite on many machines.")
    fleets.command("run")(fleet.run)
    fleets.command("status")(fleet.status)
    fleets.command("cancel")(fleet.cancel)
    app.add_typer(fleets, name="fleet")
    return app


app = _application()


def main() -> None:
    """An expected error is an exit code and two lines, any other a defect of ours."""
    try:
        console.prepare()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us as it ends any tool; but see every_command
        try:
            app()
        finally:
            sys.stdout.flush()  # a full disk is told here, not by the interpreter at its end
    except TfdetError as error:
        _end(error)
    except KeyboardInterrupt:
        sys.exit(int(Exit.INTERRUPTED))
    except BrokenPipeError:
        sys.exit(int(Exit.OK))
    except OSError as error:
        _end(from_system(error))
    except Exception:
        traceback.print_exc()
        _end(TfdetError("a defect of tfdet: please report it", "The lines above tell where."))


def _end(error: TfdetError) -> NoReturn:
    console.complain(error)
    sys.exit(int(error.code))
