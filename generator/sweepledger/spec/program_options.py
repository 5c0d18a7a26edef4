"""How a Python program reads its arguments, by its source: the options that it has, and how each takes a value."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


class OptionKind(Enum):
    """How an option takes a value."""

    VALUE = auto()
    """`--x=1`."""
    SWITCH = auto()
    """`--x`, or nothing."""
    ON_OFF = auto()
    """`--x` or `--no-x`."""
    TRUTH = auto()
    """`--x=1`, where every text but the empty one is true: argparse with `type=bool`."""


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """What the source of a program says about its arguments."""

    kinds: Mapping[str, OptionKind]
    """By the option's name, without its hyphens."""
    is_complete: bool
    """Whether it has no other options."""
    has_hyphens: bool = True
    """False for programs that read `name=value`."""
    is_single: bool = False
    """Whether its options begin with one hyphen."""
    short_names: Mapping[str, str] = field(default_factory=dict)
    """Long names by the short ones, which two hyphens do not introduce."""

    def spelling(self, name: str) -> str | None:
        """Return the program's name of an option, whose words may be joined differently; None if it has none."""
        if name in self.short_names:
            return self.short_names[name]
        spellings = (name, name.replace("_", "-"), name.replace("-", "_"))
        return next((spelling for spelling in spellings if spelling in self.kinds), None)

    def macro(self, switches: Iterable[str]) -> str:
        """Return the macro by which the program gets its parameters, of which some are true or false."""
        if not self.has_hyphens:
            return "${args_no_hyphens}"
        if self.is_single:
            return "${args_single_hyphen}"
        kinds = {self.kinds.get(self.spelling(name) or name) for name in switches}
        return next((macro for kind, macro in SWITCH_MACROS.items() if kind in kinds), "${args}")


SWITCH_MACROS = {OptionKind.ON_OFF: "${args_switches}", OptionKind.SWITCH: "${args_no_boolean_flags}"}
UNKNOWN = ProgramOptions({}, is_complete=False)
OPEN_CALLS = frozenset(
    {
        "parse_known_args",
        "add_subparsers",
        "from_argparse_args",
        "LightningCLI",
        "HfArgumentParser",
        "Fire",
        "exec",
    }
)
"""Calls of a program that may have options which its own source does not name."""
SWITCHES = frozenset({"store_true", "store_false", "store_const", "count", "append_const"})


def read_options(source: str | bytes) -> ProgramOptions:
    """Return what the source of a program says about its arguments; `UNKNOWN` if that is nothing."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNKNOWN
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = {_called(call) for call in calls}
    if "hydra.main" in names | {_name(mark) for node in functions for mark in node.decorator_list}:
        return ProgramOptions({}, is_complete=False, has_hyphens=False)
    kinds: dict[str, OptionKind] = {}
    short_names: dict[str, str] = {}
    long_names = set[str]()
    hyphens = set[str]()
    for call in calls:
        if _called(call).rpartition(".")[2] in {"add_argument", "option", "Option"}:
            declared = [*_declared(call)]
            long = next((text[2:] for text, _ in declared if text.startswith("--")), None)
            for text, kind in declared:
                name = text.lstrip("-")
                kinds[name] = kind
                hyphens.add(text[: len(text) - len(name)])
                if long is not None and not text.startswith("--"):
                    short_names[name] = long
                elif long is not None:
                    long_names.add(name)
    # The functions and classes whose parameters and fields are options of Typer and Tyro.
    readers = ("typer.run", "tyro.cli")
    read = {_name(call.args[0]) for call in calls if call.args and _called(call).endswith(readers)}
    has_typer = any(_called(call).endswith("Typer") for call in calls)
    for node in ast.walk(tree):
        marks = getattr(node, "decorator_list", ()) if has_typer else ()
        is_read = getattr(node, "name", "") in read or any(_name(mark).endswith(".command") for mark in marks)
        for name, is_boolean in _fields(node) if is_read else ():
            kinds.setdefault(name.replace("_", "-"), OptionKind.ON_OFF if is_boolean else OptionKind.VALUE)
    opened = {name.rpartition(".")[2] for name in names} & OPEN_CALLS
    imported = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    is_single = hyphens == {"-"} and any(len(name) > 1 for name in kinds)
    short_names = {short: long for short, long in short_names.items() if short not in long_names}
    is_complete = bool(kinds) and not opened and not imported
    return ProgramOptions(kinds, is_complete, is_single=is_single, short_names=short_names)


def _called(call: ast.Call) -> str:
    return _name(call.func)


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, name):
            return f"{_name(value)}.{name}"
        case ast.Call(function):
            return _name(function)
    return ""


def _declared(call: ast.Call) -> Iterator[tuple[str, OptionKind]]:
    """Yield the options that one call declares, with their hyphens."""
    given = {word.arg: word.value for word in call.keywords}
    action = given.get("action")
    is_flag = given.get("is_flag")
    for argument in call.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            continue
        text, _, off = argument.value.partition("/")
        if not text.startswith("-"):
            continue
        kind = OptionKind.VALUE
        if off or (action is not None and _name(action).endswith("BooleanOptionalAction")):
            kind = OptionKind.ON_OFF
        elif (isinstance(action, ast.Constant) and action.value in SWITCHES) or (
            isinstance(is_flag, ast.Constant) and is_flag.value is True
        ):
            kind = OptionKind.SWITCH
        elif _name(given.get("type", call)) == "bool" and _called(call).endswith("add_argument"):
            kind = OptionKind.TRUTH
        yield text, kind


def _fields(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the parameters of a function or the fields of a class, and whether each is a boolean."""
    match node:
        case ast.FunctionDef():
            named = [(word.arg, word.annotation) for word in (*node.args.args, *node.args.kwonlyargs)]
        case ast.ClassDef():
            named = [
                (part.target.id, part.annotation)
                for part in node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
        case _:
            named = []
    for name, annotation in named:
        kind = annotation
        if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
            kind = annotation.slice.elts[0]  # Annotated[bool, …]
        yield name, kind is not None and _name(kind) == "bool"
