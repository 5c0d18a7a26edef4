"""A search space of Ray Tune in a Python file, which is parsed and never executed."""

import ast
import sys
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange import spec_parts
from sweepledger.exchange.conversion import ForeignFormat, Imported, Loss, LossList
from sweepledger.exchange.fields import is_count, show_value
from sweepledger.formats.foreign_yaml import ForeignError, require_size
from sweepledger.structs.values import is_number

TOOL = "Ray Tune"
MAX_BYTES = 1024 * 1024
MAX_EXPONENT = 1024
MOST_LINES = 5
"""Lines that a message names."""
SEARCHES = {
    "OptunaSearch": "tpe",
    "HyperOptSearch": "tpe",
    "TuneBOHB": "tpe",
    "BayesOptSearch": "bayes",
    "AxSearch": "bayes",
}
SCHEDULERS = frozenset(
    {
        "ASHAScheduler", "AsyncHyperBandScheduler", "HyperBandScheduler", "HyperBandForBOHB", "MedianStoppingRule",
        "PopulationBasedTraining", "PB2",
    }
)  # fmt: skip
TUNE = "tune"
"""The name of Ray Tune's module, under which its functions are called."""
CONFIG_CALLS = frozenset({"TuneConfig", "run"})
TUNER = "Tuner"


@dataclass(frozen=True, slots=True)
class RayDomain:
    """A call of Ray Tune's search space API."""

    function: str
    arguments: tuple[Any, ...]
    line: int


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for the only search space of a Python file. Raises ForeignError."""
    tree = _parsed(content)
    space = _space(tree)
    values = dict(_leaves(space, ()))
    losses = LossList(_outside(tree, space))
    names = spec_parts.parameter_names(values, losses)
    parameters = {names[foreign]: _keys(foreign, value, losses) for foreign, value in values.items()}
    search, replicates = _search(tree, values, parameters, losses)
    spec = spec_parts.search_spec(search, name, losses)
    if replicates > 1:
        spec["replicates"] = replicates
        losses.add(f"num_samples: {replicates}", "repeats the grid; written as replicates")
    why = f"is in the Python file itself; written as {spec_parts.CODE_DIR}/{spec_parts.PROGRAM}"
    losses.add("program", f"{why}: read the values from arguments there")
    spec |= {"program": spec_parts.PROGRAM} | spec_parts.run_keys(
        search, {"code": {"path": spec_parts.CODE_DIR}}
    )
    return Imported(spec, tuple(losses))


def _parsed(content: bytes) -> ast.Module:
    require_size(content, MAX_BYTES)
    try:
        with warnings.catch_warnings(action="ignore"):  # what Python thinks of the file is not for our user
            tree = ast.parse(content)
            functions, modules = _imported(tree)
            for node in ast.walk(tree):
                match node:
                    case ast.Call(ast.Name(name)) if name in functions:
                        node.func = ast.Attribute(ast.Name(TUNE), functions[name])
                    case ast.Call(ast.Attribute(ast.Name(name), function)) if name in modules:
                        node.func = ast.Attribute(ast.Name(TUNE), function)
            return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise ForeignError(f"must be a Python file: {type(error).__name__}", line=line) from error


def _imported(tree: ast.Module) -> tuple[dict[str, str], set[str]]:
    """Return the functions of Ray Tune by their names in the file, and the names of its module there."""
    functions: dict[str, str] = {}
    modules: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom("ray", names):
                modules |= {alias.asname or TUNE for alias in names if alias.name == TUNE}
            case ast.ImportFrom(str(module), names) if f"{module}.".startswith("ray.tune."):
                functions |= {
                    alias.asname or alias.name: alias.name
                    for alias in names
                    if alias.name in FUNCTIONS or alias.name in {*CONFIG_CALLS, TUNER}
                }
            case ast.Import(names):
                modules |= {alias.asname for alias in names if alias.name == "ray.tune" and alias.asname}
            case ast.Assign([ast.Name(name)], ast.Name(value)) if value in functions:
                functions[name] = functions[value]
    return functions, modules


def _space(tree: ast.Module) -> ast.Dict:
    """Return the outermost dict with calls of Ray Tune. Raises ForeignError unless there is one."""
    spaces = [node for node in ast.walk(tree) if _as_dict(node) and any(map(_is_domain, ast.walk(node)))]
    inner = {id(node) for space in spaces for node in ast.walk(space) if node is not space}
    outer = [space for node in spaces if id(node) not in inner and (space := _as_dict(node))]
    if len(outer) != 1:
        lines = ", ".join(str(space.lineno) for space in outer[:MOST_LINES]) or "none"
        raise ForeignError(
            f"must have one search space, a dict with calls such as tune.uniform(0, 1), got lines: {lines}",
            hint="copy the dict alone into a file"
            if outer
            else "a space that code makes is not read: write it as a dict of literals and such calls",
        )
    return outer[0]


def _as_dict(node: ast.AST) -> ast.Dict | None:
    """Return `{key: value}` or `dict(key=value)` as a dict; None for other code."""
    match node:
        case ast.Dict():
            return node
        case ast.Call(ast.Name("dict"), [], [_, *_] as keywords) if all(keyword.arg for keyword in keywords):
            display = ast.Dict(
                [ast.Constant(keyword.arg) for keyword in keywords], [keyword.value for keyword in keywords]
            )
            return ast.copy_location(display, node)
        case _:
            return None


def _outside(tree: ast.Module, space: ast.Dict) -> Iterator[Loss]:
    """Yield a loss for calls outside the dict, such as those that add a key to it later."""
    inside = {id(node) for node in ast.walk(space)}
    calls = [node for node in ast.walk(tree) if _is_domain(node) and id(node) not in inside]
    lines = sorted({node.lineno for node in calls if isinstance(node, ast.Call)})
    if lines:
        shown = ", ".join(map(str, lines[:MOST_LINES])) + (" and more" if lines[MOST_LINES:] else "")
        yield Loss(
            f"calls of tune in lines {shown}",
            f"are not in the dict of line {space.lineno}; add those that belong to the search space",
        )


def _is_domain(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _function(node) in FUNCTIONS


def _function(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(ast.Name("tune"), attribute):
            return attribute
        case ast.Attribute(ast.Attribute(ast.Name("ray"), "tune"), attribute):
            return attribute
        case ast.Attribute(_, attribute) | ast.Name(attribute):
            return attribute if attribute in {"TuneConfig", *SCHEDULERS, *SEARCHES} else ""
        case _:
            return ""


def _calls(tree: ast.Module, functions: Collection[str]) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _function(node) in functions)


def _leaves(space: ast.Dict, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield each value of the space with its dotted name: a RayDomain, or a literal."""
    for key, value in zip(space.keys, space.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise ForeignError("keys of the search space must be texts in quotes", line=space.lineno)
        here = (*path, key.value)
        mapping = _as_dict(value)
        if mapping and mapping.keys:
            yield from _leaves(mapping, here)
        else:
            yield ".".join(here), _value(value)


def _value(node: ast.expr) -> Any:
    """Return a literal or a RayDomain, without executing anything. Raises ForeignError for other code."""
    if isinstance(node, ast.Call):
        function = _function(node)
        if function not in FUNCTIONS:
            raise _code(node)
        named = {keyword.arg: _value(keyword.value) for keyword in node.keywords}
        order = FUNCTIONS[function]
        given = [_value(argument) for argument in node.args]
        rest = [named[key] for key in order[len(given) :] if key in named]
        if len(given) + len(rest) != len(order):
            raise ForeignError(f"tune.{function} must have {', '.join(order)}", line=node.lineno)
        return RayDomain(function, (*given, *rest), node.lineno)
    match node:
        case ast.Constant(bool() | int() | float() | str() | None as value):
            return value
        case ast.List(items) | ast.Tuple(items):
            return [_value(item) for item in items]
        case ast.UnaryOp(ast.USub(), operand):
            return -_number(operand)
        case ast.BinOp(left, operator, right):
            return _arithmetic(_number(left), operator, _number(right), node.lineno)
        case ast.Dict():
            return {
                str(_value(key)): _value(value)
                for key, value in zip(node.keys, node.values, strict=True)
                if key
            }
        case _:
            raise _code(node)


def _number(node: ast.expr) -> int | float:
    value = _value(node)
    if not is_number(value):
        raise _code(node)
    return value


def _arithmetic(left: float, operator: ast.operator, right: float, line: int) -> int | float:
    try:
        match operator:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                return left / right
            case ast.Pow() if abs(right) <= MAX_EXPONENT and abs(left) <= MAX_EXPONENT:
                power = left**right
                if isinstance(power, int | float):
                    return power
    except ArithmeticError as error:
        raise ForeignError(f"must be a number: {error}", line=line) from error
    raise ForeignError("must be simple arithmetic of numbers", line=line)


def _code(node: ast.expr) -> ForeignError:
    hint = "no code of the file is executed; write the values as literals, or as tune.choice([…])"
    return ForeignError(f"{ast.unparse(node)[:60]!r} is code", line=node.lineno, hint=hint)


RANGES = {
    "uniform": (("lower", "upper"), "uniform"),
    "loguniform": (("lower", "upper"), "log_uniform_values"),
    "randn": (("mean", "sd"), "normal"),
    "randint": (("lower", "upper"), "uniform"),
    "lograndint": (("lower", "upper"), "log_uniform_values"),
}
"""Arguments and distribution; with `q` before the name, also of numbers that are rounded."""
FUNCTIONS = {
    **{name: arguments for name, (arguments, _) in RANGES.items()},
    **{f"q{name}": (*arguments, "q") for name, (arguments, _) in RANGES.items()},
    "choice": ("categories",),
    "grid_search": ("values",),
}


def _keys(name: str, value: Any, losses: LossList) -> dict[str, Any]:
    match value:
        case RayDomain("choice" | "grid_search", (list(items),), line):
            values = [_plain(name, item) for item in items]
            return spec_parts.listed_keys(values, f"parameter {name}", losses, line=line)
        case RayDomain(function, (low, high, *q), line):
            for number in (low, high, *q):
                # A whole number may be too large for a float, and NaN compares with none.
                if not is_number(number) or not abs(number) <= sys.float_info.max:
                    raise ForeignError(f"{name} must have finite numbers, got {number!r:.60}", line=line)
        case RayDomain(function, _, line):
            raise ForeignError(f"{name}: tune.{function} must have a list", line=line)
        case _:
            return {"value": spec_parts.spec_value(_plain(name, value), f"parameter {name}", losses)}
    if function in {"randint", "lograndint"}:
        # Their upper end is excluded, as in Python's ranges, unless q is given.
        return spec_parts.range_keys(low, high - 1, is_log=function == "lograndint", is_whole=True)
    rounding = {"q": q[0]} if q else {}
    kind = RANGES[function.removeprefix("q") if q else function][1]
    keys = {"distribution": f"q_{kind}" if q else kind}
    if kind == "normal":
        return keys | {"mu": low, "sigma": high} | rounding
    if low == high:
        return {"value": low}
    if q:
        losses.add(f"parameter {name}", "rounding to q can leave the range in Ray; here values stay inside")
    return keys | {"min": low, "max": high} | rounding


def _plain(name: str, value: Any) -> Any:
    """Return a value outside the search space. Raises ForeignError."""
    items = [value]
    for item in items:  # grows meanwhile
        if isinstance(item, RayDomain):
            hint = "write it as a parameter of its own"
            raise ForeignError(f"{name} is a search space inside a value", hint=hint)
        items += item if isinstance(item, list) else item.values() if isinstance(item, dict) else ()
    return value


def _search(
    tree: ast.Module, values: dict[str, Any], parameters: dict[str, Any], losses: LossList
) -> tuple[spec_parts.ForeignSearch, int]:
    config: dict[str, Any] = {}
    code: dict[str, str] = {}
    for key, value in _tune_config(tree, code, losses):
        if config.setdefault(key, value) != value:
            why = f"is of another run in the file; {show_value(config[key])} is written"
            losses.add(f"{key}: {show_value(value)}", why)
    domains = [value for value in values.values() if isinstance(value, RayDomain)]
    drawn = [domain for domain in domains if domain.function != "grid_search"]
    crossed = [domain for domain in domains if domain.function == "grid_search"]
    samples, at_once = (
        value if is_count(value := config.get(key)) else None
        for key in ("num_samples", "max_concurrent_trials")
    )
    runs = any(_calls(tree, {*CONFIG_CALLS, TUNER}))
    if runs and drawn and not any(loss.part.startswith("num_samples") for loss in losses) and samples is None:
        losses.add("num_samples", "the file names none; written as 1, Ray's default: set run_cap")
    algorithm = config.get("search_alg")
    method = SEARCHES.get(str(algorithm), "random")
    if algorithm is not None and algorithm not in SEARCHES:
        losses.add(f"search_alg: {algorithm}", "is not a method here; written as random")
    # Before TuneConfig had them, schedulers and searches did.
    beside = _of_schedulers(tree) | {key: value for key, value in config.items() if value is not None}
    metric, mode = (
        value if isinstance(value := beside.get(key), str) else None for key in ("metric", "mode")
    )
    if crossed and not drawn:
        search = spec_parts.ForeignSearch(TOOL, "grid", parameters, metric, mode, at_once=at_once, code=code)
        return search, samples or 1
    # A file that runs nothing, but only has the space, leaves the number to the one that does.
    cap = samples or (1 if runs else None)
    if crossed and cap is None:
        losses.add("grid_search", "is crossed with draws in Ray; here all values are drawn")
    elif crossed and cap is not None:
        for domain in crossed:
            cap *= max(1, len(domain.arguments[0]) if isinstance(domain.arguments[0], list) else 1)
        losses.add("grid_search", f"is crossed with {samples or 1} draws in Ray; here all {cap} are drawn")
    search = spec_parts.ForeignSearch(TOOL, method, parameters, metric, mode, cap, at_once=at_once, code=code)
    return search, 1


def _tune_config(tree: ast.Module, code: dict[str, str], losses: LossList) -> Iterator[tuple[str, Any]]:
    """Yield the options of TuneConfig or tune.run; calls as their names."""
    for call in _calls(tree, CONFIG_CALLS):
        for keyword in call.keywords:
            match keyword.arg, keyword.value:
                case "metric" | "mode" | "num_samples" | "max_concurrent_trials", ast.Constant(value):
                    yield str(keyword.arg), value
                case "search_alg", ast.Call(function):
                    yield "search_alg", ast.unparse(function).rpartition(".")[2]
                case "config" | "param_space", _:
                    pass
                case "num_samples", value:
                    why = "is not a number in the file; written as 1, Ray's default: set run_cap"
                    losses.add(f"num_samples: {show_value(ast.unparse(value))}", why)
                case "metric" | "mode" as key, value:
                    written = "metric" if key == "metric" else "metric.goal"
                    code[written] = f"{key}: {show_value(ast.unparse(value))}"
                case key, _:
                    losses.add(f"{key}", "is not converted")


def _of_schedulers(tree: ast.Module) -> dict[str, str]:
    """Return metric and mode of a scheduler or a search algorithm: those of the first call that has them."""
    named: dict[str, str] = {}
    for call in _calls(tree, {*SCHEDULERS, *SEARCHES}):
        for keyword in call.keywords:
            match keyword.arg, keyword.value:
                case "metric" | "mode" as key, ast.Constant(str(text)):
                    named.setdefault(key, text)
    return named


FORMAT = ForeignFormat("ray", "a Python file with one dict of calls such as tune.uniform(0, 1)", read=read)
