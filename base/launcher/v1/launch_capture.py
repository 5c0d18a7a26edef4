"""Captures what a program logs to W&B or MLflow as lines of JSON in $SWEEP_RESULT: its `sitecustomize`."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Nothing:
    """Anything that a package has which is not installed: it does nothing, and returns itself."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass

    def __call__(self, *arguments: Any, **_options: Any) -> Any:
        """Return what is decorated, if this is used as a decorator."""
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __getitem__(self, _key: object) -> Any:
        return self

    def __setitem__(self, _key: object, _value: object) -> None:
        pass

    def __lt__(self, _other: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0

    def __str__(self) -> str:
        return ""


class MetricLog:
    """Appends metrics to $SWEEP_RESULT. An error is one line on stderr, and never the program's."""

    def __init__(self) -> None:
        self.step = 0
        self.has_failed = False

    def guard(self, work: Any, *arguments: Any) -> None:
        """Do work, whatever happens to it."""
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001 - the program has to go on
            if not self.has_failed:
                self.has_failed = True
                self.say(f"metrics may not be captured: {type(error).__name__}: {error}")

    def say(self, message: str) -> None:
        """Write one line to stderr, if it is open."""
        if sys.stderr is not None:
            sys.stderr.write("launch.py: " + " ".join(message.split()) + "\n")

    def log(self, data: Any = None, step: Any = None, commit: Any = None, *_rest: Any) -> None:
        """Take the arguments of W&B's log: without a step, each call is one."""
        if step is not None:
            self.step = int(step)
        self.write(self.flat(data or {}), self.step)
        if commit or (commit is None and step is None):
            self.step += 1

    def flat(self, data: Any, prefix: str = "") -> Any:
        """Return nested values under dotted names, as W&B shows them."""
        values = {}
        for name, value in dict(data).items():
            if isinstance(value, dict):
                values.update(self.flat(value, f"{prefix}{name}."))
            else:
                values[f"{prefix}{name}"] = value
        return values

    def write(self, values: Any, step: Any) -> None:
        """Append one line with those values that are numbers."""
        import json

        numbers = {str(name): self.number(value) for name, value in values.items()}
        line = {name: number for name, number in numbers.items() if number is not None}
        if not line:
            return
        if step is not None:
            line["step"] = int(step)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        file = os.open(os.environ["SWEEP_RESULT"], flags, 0o644)
        try:
            os.write(file, (json.dumps(line) + "\n").encode())
        finally:
            os.close(file)

    def number(self, value: Any) -> Any:
        """Return the number that a value is, also in an array of one; None if it is none."""
        if value is None or isinstance(value, (bool, str, Nothing)):
            return None
        if isinstance(value, (int, float)):
            return value
        try:
            return float(value.item())
        except Exception:  # noqa: BLE001 - pictures, tables and arrays are not metrics
            return None

    def set_values(self, config: Any) -> None:
        """Give a W&B config the values of the trial that it lacks."""
        import json

        with open(os.environ["SWEEP_TRIAL"], encoding="utf-8") as file:
            values = json.load(file)
        existing = dict(config)
        config.update({name: value for name, value in values.items() if name not in existing})
        for name, value in values.items():
            if name in existing and existing[name] != value:
                self.say(f"wandb.config has {name}={existing[name]!r}, and the trial has {value!r}")


class StandInConfig(dict):  # type: ignore[type-arg]
    """The `config` of a W&B run."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def update(self, values: Any = (), **_options: Any) -> None:  # type: ignore[override]
        """Add values, also those of an argparse.Namespace."""
        dict.update(self, values if isinstance(values, dict) else vars(values) if values else {})

    def setdefaults(self, values: Any) -> None:
        """Add values that are not set."""
        for name, value in values.items():
            self.setdefault(name, value)

    def as_dict(self) -> Any:
        """Return a copy."""
        return dict(self)


class StandInRun(Nothing):
    """A run of W&B."""

    def __init__(self, log: MetricLog) -> None:
        super().__init__()
        self.config, self.summary, self.metric_log = StandInConfig(), StandInConfig(), log
        self.id = self.name = os.environ.get("SWEEP_TRIAL_ID", "trial")

    def log(self, *arguments: Any, **options: Any) -> None:
        """Capture metrics."""
        options.pop("sync", None)
        self.metric_log.guard(lambda: self.metric_log.log(*arguments, **options))

    def finish(self, *_arguments: Any, **_options: Any) -> None:
        """End the run."""


class StandInModule(type(sys)):  # type: ignore[misc]
    """A module of a package that is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


def fill_stand_in(module: Any, log: MetricLog) -> None:
    """Give a stand-in the functions that are captured."""
    if module.__name__ == "mlflow":
        module.log_metric = module.log_metrics = Nothing()
        patch_mlflow(module, log)
    if module.__name__ != "wandb":
        return
    run = StandInRun(log)

    def init(*_arguments: Any, config: Any = None, **_options: Any) -> StandInRun:
        log.step = 0
        log.guard(run.config.update, config)
        log.guard(log.set_values, run.config)
        module.run = run
        return run

    module.init, module.log, module.finish, module.run = init, run.log, run.finish, None
    module.config, module.summary, module.Run = run.config, run.summary, StandInRun


def patch_wandb(module: Any, log: MetricLog) -> None:
    """Let the installed W&B log here, too."""
    import functools

    def captured(original: Any) -> Any:
        @functools.wraps(original)
        def run_log(*arguments: Any, **options: Any) -> Any:
            taken = {name: options[name] for name in ("data", "step", "commit") if name in options}
            own = arguments if is_bound else arguments[1:]
            log.guard(lambda: log.log(*own[:3], **taken))
            return original(*arguments, **options)

        is_bound = getattr(original, "__self__", None) is not None or original.__name__ == "<lambda>"
        return run_log

    original_init = module.init

    @functools.wraps(original_init)
    def init(*arguments: Any, **options: Any) -> Any:
        log.step = 0
        run = original_init(*arguments, **options)
        log.guard(log.set_values, run.config)
        if "log" in vars(run):  # a disabled run has functions of its own
            run.log = module.log = captured(run.log)
        return run

    run_type = module.sdk.wandb_run.Run
    run_type.log = captured(run_type.log)
    module.init = init


def patch_mlflow(module: Any, log: MetricLog) -> None:
    """Let MLflow's functions log here, too."""
    original_metric, original_metrics = module.log_metric, module.log_metrics

    def log_metric(key: Any, value: Any, step: Any = None, *arguments: Any, **options: Any) -> Any:
        log.guard(log.write, {key: value}, step)
        return original_metric(key, value, step, *arguments, **options)

    def log_metrics(metrics: Any, step: Any = None, *arguments: Any, **options: Any) -> Any:
        log.guard(log.write, metrics, step)
        return original_metrics(metrics, step, *arguments, **options)

    module.log_metric, module.log_metrics = log_metric, log_metrics


class PatchingLoader:
    """Loads a package as its own loader does, and then changes it."""

    def __init__(self, loader: Any, log: MetricLog) -> None:
        self.loader, self.log = loader, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Any:
        """Create the module."""
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run the module, and change its functions."""
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.log.guard(patch_wandb if module.__name__ == "wandb" else patch_mlflow, module, self.log)


class CapturingFinder:
    """Finds W&B and MLflow, or stand-ins for them."""

    def __init__(self) -> None:
        self.log = MetricLog()
        self.stand_ins: Any = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a captured package."""
        root = name.partition(".")[0]
        if root not in ("wandb", "mlflow") or (name != root and root not in self.stand_ins):
            return None
        from importlib.machinery import ModuleSpec

        finders = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in finders) if name == root else ()
        spec = next((spec for spec in specs if spec), None)
        if spec and spec.origin:  # without one, it is a folder such as W&B's own output
            spec.loader = PatchingLoader(spec.loader, self.log)  # type: ignore[assignment]
            return spec
        if self.is_probe():
            return None
        self.stand_ins.add(root)
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def is_probe(self) -> bool:
        """Return whether a library only checks whether the package is installed: it gets the truth."""
        frame: Any = sys._getframe(1)  # noqa: SLF001
        for _ in range(5):
            frame = frame and frame.f_back
            if (
                frame
                and frame.f_code.co_name == "find_spec"
                and frame.f_globals["__name__"] == "importlib.util"
            ):
                return True
        return False

    def create_module(self, spec: Any) -> Any:
        """Create a stand-in."""
        return StandInModule(spec.name)

    def exec_module(self, module: Any) -> None:
        """Fill a stand-in."""
        fill_stand_in(module, self.log)


def install_capture() -> None:
    """Capture what this process logs, and run the sitecustomize that this one hides."""
    if os.environ.get("SWEEP_RESULT"):
        sys.meta_path.insert(0, CapturingFinder())
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in sys.path if os.path.abspath(path) != here]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec and spec.loader:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    install_capture()
