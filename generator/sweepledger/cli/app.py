"""The command `sweep`: its table of commands, its own options, and the handling of usage errors."""

import gc
import inspect
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.models import CommandInfo

from sweepledger import __version__, garbage_collection
from sweepledger.cli import response
from sweepledger.cli.options import FormatOption

VERBS = (
    *("new", "import", "schema", "validate", "plan", "try", "run", "generate", "check", "submit", "status"),
    *("list", "why", "results", "best", "show", "logs", "log", "compare", "site", "retry", "cancel"),
    *("rename", "delete", "verify", "export", "sync"),
)
"""Each command of `sweep`, in the order of use: `verbs/` has a module of its name."""

CLUSTER_VERBS = (
    *("init", "pin", "data", "bootstrap", "doctor", "upgrade", "local", "collect", "next", "pause"),
    *("resume", "scale", "budget", "metrics", "expire"),
)
"""Each command of `sweep cluster`, in the order of use."""

SUMMARY = "Sweeps as reviewed commits: spec in, batch out; results in, commit out."

MODULE_NAMES = {"import": "import_", "list": "list_", "next": "next_", "try": "try_"}
"""Modules of verbs that Python has another use for."""
PACKAGES = {"sweep": "verbs", "cluster": "verbs.cluster"}
"""The package with the verbs of each group."""


class PlainValues:
    """Converts defaults and texts. For other types, Typer loads Pydantic, which takes a sixth of `validate`."""

    convert = TyperOption.get_runtime_param

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value for a verb. Raises Typer's BadParameter."""
        kind, is_list = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        if not is_list and isinstance(kind, type) and isinstance(value, kind):
            return value
        if kind == list[str] and type(value) is tuple and {*map(type, value)} <= {str}:
            return [*value]
        return PlainValues.convert(self.parameter).coerce(value, param=param, ctx=ctx)


def _plain_values(parameter: Any) -> Any:
    return PlainValues(parameter)


for _parameter in (TyperOption, TyperArgument):
    _parameter.get_runtime_param = _plain_values  # type: ignore[assignment, method-assign]


class VerbGroup(TyperGroup):
    """A group of commands. The module of a verb is imported when the verb runs: `sweep --help` must be instant.

    The first line of the module is the verb's summary, and its docstring the help. Its function of the same name
    takes the options, apart from `--format`, and returns the response.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.package = PACKAGES[self.name or "sweep"]
        verbs = VERBS if self.name == "sweep" else CLUSTER_VERBS
        self.late = {*verbs}
        commands = (
            TyperCommand(verb, short_help=self.summary(verb), rich_markup_mode=None) for verb in verbs
        )
        self.commands = {**dict(zip(verbs, commands, strict=True)), **self.commands}

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; Typer's text of one takes two of the forty lines of a terminal."""
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if isinstance(parameter, TyperOption) and parameter.name == "show_completion":
                parameter.help = "Show completion for the current shell."
        return parameters

    def load(self, name: str) -> None:
        """Import the module of a verb, and make the verb's command from it."""
        if name in self.late:
            self.late.remove(name)
            module_name = MODULE_NAMES.get(name, name)
            with garbage_collection.paused():
                module = import_module(f"sweepledger.{self.package}.{module_name}")
            gc.freeze()  # a collection would look at all that the modules define
            path = name if self.name == "sweep" else f"{self.name} {name}"
            callback = _answering(path, getattr(module, module_name))
            info = CommandInfo(name, callback=callback, help=inspect.getdoc(module))
            self.commands[name] = typer.main.get_command_from_info(
                info, pretty_exceptions_short=False, rich_markup_mode=None
            )

    def summary(self, name: str) -> str:
        """Return the first line of the module of a verb, without importing it."""
        folder = Path(__file__).parents[1] / self.package.replace(".", "/")
        with (folder / f"{MODULE_NAMES.get(name, name)}.py").open(encoding="utf-8") as module:
            return module.readline().strip('"\n')

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, with its options."""
        if args:
            self.load(args[0])
        return super().resolve_command(ctx, args)


def _answering(command: str, verb: Callable[..., response.Response]) -> Callable[..., None]:
    """Return the callback of a verb, which also takes the format, opens the workspace, and prints the response."""
    parameters = dict(inspect.signature(verb).parameters)
    has_workspace, has_form = bool(parameters.pop("workspace", None)), "form" in parameters
    form = inspect.Parameter(
        "form", inspect.Parameter.KEYWORD_ONLY, default=response.Format.TEXT, annotation=FormatOption
    )
    parameters.setdefault("form", form)

    def callback(form: str, **options: Any) -> None:
        def work() -> response.Response:
            if has_workspace:
                from sweepledger.operations.repository.workspace import Workspace

                options["workspace"] = Workspace.find(response.current_folder())
            return verb(**options, **({"form": form} if has_form else {}))

        is_json = form == response.Format.JSON
        response.respond(command, response.Format.JSON if is_json else response.Format.TEXT, work)

    callback.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    callback.__annotations__ = {name: option.annotation for name, option in parameters.items()}
    return callback


def all_commands() -> VerbGroup:
    """Return `sweep` with the options of all its commands, whose modules are imported."""
    group = typer.main.get_command(app)
    assert isinstance(group, VerbGroup)
    cluster = group.commands["cluster"]
    assert isinstance(cluster, VerbGroup)
    for verbs in (group, cluster):
        for name in verbs.commands:
            verbs.load(name)
    return group


def _group(name: str, summary: str) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=VerbGroup,
        help=summary,
        no_args_is_help=True,
        rich_markup_mode=None,  # its boxes would not leave a row for each command of a terminal
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


app = _group("sweep", SUMMARY)
app.add_typer(_group("cluster", "Set up a team's repository and its cluster, and operate them."))


def _print_version(requested: bool) -> None:
    if requested:
        print(f"sweepledger {__version__}")
        raise typer.Exit


@app.callback(help=SUMMARY)
def sweep(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Take the options of `sweep` itself."""


def main() -> None:
    """Run `sweep`, and exit with the code of its response."""
    # SIGTERM is handled as Ctrl-C is: trials are ended, and the terminal is restored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # With a hundred thousand trials in memory, the default thresholds spend a fifth of the time on collection.
    gc.set_threshold(200_000, 20, 20)
    code = 0
    with response.ignore_broken_pipe():
        code = _run_command_line(sys.argv[1:])
    # At its end, Python would search hundreds of modules for cycles: a fifth of the time of their imports.
    gc.freeze()
    sys.exit(code)


def _run_command_line(arguments: list[str]) -> int:
    try:
        code = app(arguments, prog_name="sweep", standalone_mode=False)
    except typer.Exit as exit_:
        code = exit_.exit_code
    except typer.Abort:
        code = response.EXIT_INTERRUPTED
    except SystemExit:  # Typer and Rich exit like this if the reader of the help closed the pipe
        code = 0
    except typer.TyperException as error:
        # Typer's own parser of choices adds "Value error, ", which means nothing to the user.
        message = error.format_message().replace(": Value error, ", ": ", 1)
        path = context.command_path if (context := getattr(error, "ctx", None)) else "sweep"
        code = response.report_usage_error(arguments, path, message)
    return code if isinstance(code, int) else 0
