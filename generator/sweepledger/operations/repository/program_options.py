"""How a program reads its arguments, by its source or its help text: its options, and how each takes a value."""

import ast
import re
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
    LIST = auto()
    """`--x 1 2`."""


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """A program's arguments, from its source or its help text."""

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

    def macros(self, own: Mapping[str, str | None]) -> tuple[str, ...]:
        """Return the macros by which the program gets its parameters: the most frequent one, then the exceptions.

        `own` has every parameter, with the macro that it needs; None: that of its kind, if it is true or false.
        """
        if not self.has_hyphens:
            return ("${args_no_hyphens}",)
        if self.is_single:
            return ("${args_single_hyphen}",)
        needed = {name: macro or SWITCH_MACROS.get(self.kind(name), ARGS) for name, macro in own.items()}
        usual = next((macro for macro in (*SWITCH_MACROS.values(), ARGS) if macro in needed.values()), ARGS)
        groups: dict[str, list[str]] = {}
        for name, macro in needed.items():
            if macro not in {usual, ARGS}:
                groups.setdefault(macro, []).append(name)
        others = tuple(f"{macro[:-1]}:{','.join(names)}}}" for macro, names in groups.items())
        is_left = len(own) > sum(map(len, groups.values()))
        return (usual, *others) if is_left or not others else others

    def kind(self, name: str) -> OptionKind | None:
        """Return how an option takes a value; None if it is unknown."""
        return self.kinds.get(self.spelling(name) or name)


ARGS = "${args}"
SWITCH_MACROS: Mapping[OptionKind | None, str] = {
    OptionKind.ON_OFF: "${args_switches}",
    OptionKind.SWITCH: "${args_no_boolean_flags}",
}
UNKNOWN = ProgramOptions({}, is_complete=False)
OPEN_CALLS = frozenset(
    {
        *("parse_known_args", "add_subparsers", "from_argparse_args", "LightningCLI", "HfArgumentParser"),
        *("Fire", "exec"),
    }
)
"""Calls of a program that may have options which its own source does not name."""
SWITCHES = frozenset({"store_true", "store_false", "store_const", "count", "append_const"})


def read_options(source: str | bytes) -> ProgramOptions:
    """Return a program's arguments from its source; `UNKNOWN` if the source declares none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNKNOWN
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = {_called(call) for call in calls}
    if "hydra.main" in names | {_name(mark) for node in functions for mark in node.decorator_list}:
        return ProgramOptions({}, is_complete=False, has_hyphens=False)
    declared = [
        [*_declared(call)]
        for call in calls
        if _called(call).rpartition(".")[2] in {"add_argument", "option", "Option"}
    ]
    # The functions and classes whose parameters and fields are options of Typer and Tyro.
    readers = ("typer.run", "tyro.cli")
    read = {_name(call.args[0]) for call in calls if call.args and _called(call).endswith(readers)}
    has_typer = any(_called(call).endswith("Typer") for call in calls)
    for node in ast.walk(tree):
        marks = getattr(node, "decorator_list", ()) if has_typer else ()
        is_read = getattr(node, "name", "") in read or any(_name(mark).endswith(".command") for mark in marks)
        declared += (
            [(f"--{name.replace('_', '-')}", OptionKind.ON_OFF if is_boolean else OptionKind.VALUE)]
            for name, is_boolean in (_fields(node) if is_read else ())
        )
    opened = {name.rpartition(".")[2] for name in names} & OPEN_CALLS
    imported = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    return _options(declared, is_complete=not opened and not imported)


def _options(declared: Iterable[Iterable[tuple[str, OptionKind]]], *, is_complete: bool) -> ProgramOptions:
    """Return the options of a program, by each spelling with hyphens."""
    kinds: dict[str, OptionKind] = {}
    short_names: dict[str, str] = {}
    long_names = set[str]()
    hyphens = set[str]()
    for spellings in map(list, declared):
        long = next((text[2:] for text, _ in spellings if text.startswith("--")), None)
        for text, kind in spellings:
            name = text.lstrip("-")
            kinds.setdefault(name, kind)
            hyphens.add(text[: len(text) - len(name)])
            if long is not None and not text.startswith("--"):
                short_names[name] = long
            elif long is not None:
                long_names.add(name)
    is_single = hyphens == {"-"} and any(len(name) > 1 for name in kinds)
    short_names = {short: long for short, long in short_names.items() if short not in long_names}
    return ProgramOptions(kinds, is_complete and bool(kinds), is_single=is_single, short_names=short_names)


OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
OTHER_SPELLING = re.compile(r"\s*[,/|]\s*(?=-)|\s+(?=--no-)")
VALUE = re.compile(r"(?:[ =]|\[=|\s+(?=<|[A-Z][A-Z0-9_]+(?:\s|$)))(?P<name><[^>]*>|\{[^}]*\}|[^\s,]+)")
MORE_VALUES = re.compile(r" \[[^\[\]]* \.\.\.\]")
PARTS_OF_PROGRAMS = re.compile(r"\{[\w,-]+\} \.\.\.|--print_config|COMMAND \[ARGS\]")
"""What shows that a text of help has not every option: subcommands, and options of classes."""


def read_help(text: str) -> ProgramOptions:
    """Return a program's arguments from its answer to `--help`; `UNKNOWN` if the answer lists none."""
    if "powered by hydra" in text.lower():
        return ProgramOptions({}, is_complete=False, has_hyphens=False)
    lines = (re.sub(r" \[ (--\S+) \]", r", \1", line.strip(" \t|│")) for line in text.splitlines())
    declared = [[*_spellings(line)] for line in lines if line.startswith("-")]
    is_usage = re.search(r"^\W*usage:", text, re.IGNORECASE | re.MULTILINE) is not None
    return _options(declared, is_complete=is_usage and not PARTS_OF_PROGRAMS.search(text))


def _spellings(line: str) -> Iterator[tuple[str, OptionKind]]:
    """Yield the spellings of the option at the beginning of a line of help, and how it takes a value."""
    names, kind = list[str](), OptionKind.SWITCH
    while match := OPTION.match(line):
        names.append(match[0])
        line = line[match.end() :]
        if (value := VALUE.match(line)) and not OTHER_SPELLING.match(line):
            line = line[value.end() :]
            kind = OptionKind.LIST if MORE_VALUES.match(line) else OptionKind.VALUE
            line = MORE_VALUES.sub("", line, 1)
        if between := OTHER_SPELLING.match(line):
            line = line[between.end() :]
        else:
            break
    if any(name.startswith("--no-") for name in names[1:]):
        names, kind = names[:1], OptionKind.ON_OFF
    yield from ((name, kind) for name in names)


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
        elif "nargs" in given and getattr(given["nargs"], "value", None) not in {None, "?", 1}:
            kind = OptionKind.LIST
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
