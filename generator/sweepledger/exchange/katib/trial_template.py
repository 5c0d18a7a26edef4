"""Katib's trial template of either version as the trial of a spec."""

import re
from collections.abc import Sequence

from sweepledger.exchange.conversion import Loss, LossList
from sweepledger.exchange.fields import Fields
from sweepledger.exchange.katib.parameters import ImportedParameter
from sweepledger.exchange.kubernetes import ARGS, NO_HYPHENS, ImportedTrial
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import environment_name

CONDITIONS = {
    "successCondition": 'status.conditions.#(type=="Complete")#|#(status=="True")#',
    "failureCondition": 'status.conditions.#(type=="Failed")#|#(status=="True")#',
}
"""Katib's default conditions for a Job, which also apply to trials here."""

CODE_LOSS = Loss(
    "the code of the trial",
    f"Katib's trials run the code in their image; here they run a folder of this repository: used {CODE_DIR}",
)


def read_trial_template(
    template: Fields, parameters: Sequence[ImportedParameter], *, result_file: str | None = None
) -> ImportedTrial:
    """Return the trial of `spec.trialTemplate`, in either version. Raises ForeignError.

    The program writes its metrics to `result_file`, if that is given.
    """
    trial = ImportedTrial({}, result_file)
    if template.data.get("goTemplate") is not None:
        _go_template(template.inner("goTemplate"), parameters, trial)
    else:
        _structured(template, parameters, trial)
    for key, usual in CONDITIONS.items():
        if template.data.get(key) == usual:
            template.taken.add(key)
    if trial.command is None:
        why = f"the command of the trial is not in the file; used {CODE_DIR}/{PROGRAM}: write your command"
        trial.losses.add(template.path, why)
    elif ARGS not in trial.command and NO_HYPHENS not in trial.command:
        variables = {parameter.name: environment_name(parameter.name) for parameter in parameters}
        trial.losses += [
            Loss(f"parameters: {name}", f"the command does not pass it; the program can read ${variable}")
            for name, variable in variables.items()
            if f"${{envvar:{variable}}}" not in " ".join(trial.command)
        ]
    trial.losses.append(CODE_LOSS)
    return trial


def _structured(template: Fields, parameters: Sequence[ImportedParameter], trial: ImportedTrial) -> None:
    names = {parameter.foreign: parameter.name for parameter in parameters}
    declared: dict[str, str] = {}
    for entry in template.each("trialParameters"):
        name, reference = entry.text("name"), entry.text("reference")
        if name is not None and reference in names:
            declared[name] = names[reference]
        elif name is not None:
            trial.losses.add(f"{entry.path}: {name}", f"refers to {reference}, which is not a parameter")
        entry.taken.add("description")
    _config_map(template, "configMap", trial)
    trial.names, trial.primary = declared, template.text("primaryContainerName")
    if template.data.get("trialSpec") is not None:
        trial.read_manifest(template.inner("trialSpec"))


def _go_template(template: Fields, parameters: Sequence[ImportedParameter], trial: ImportedTrial) -> None:
    _config_map(template, "templateSpec", trial)
    raw = template.text("rawTemplate")
    if raw is not None:
        path = template.at("rawTemplate")
        text = _plain_manifest(raw, [parameter.foreign for parameter in parameters], path, trial.losses)
        try:
            manifest = foreign_yaml.load(text.encode(), version="go")
        except ForeignError as error:
            trial.losses.add(path, f"cannot be parsed after its loop is replaced by a macro: {error}")
        else:
            trial.read_manifest(template.child(manifest, path))


def _config_map(template: Fields, key: str, trial: ImportedTrial) -> None:
    reference = template.inner(key)
    if reference.data:
        parts = ("configMapNamespace", "configMapName", "templatePath")
        where = "/".join(str(reference.take(part)) for part in parts if reference.data.get(part) is not None)
        trial.losses.add(f"{reference.path}: {where}", "the manifest is only in the cluster")


ACTION = re.compile(r"\{\{-?\s*(?P<action>[^}]*?)\s*-?\}\}")
BLOCK = re.compile(r"^\s*(?:\{\{-?\s*(?:with|range|end|else)[^}]*\}\}\s*)+$")
PAIR = re.compile(r"(?P<dashes>-*)\{\{-?\s*\.Name\s*-?\}\}=\{\{-?\s*\.Value\s*-?\}\}")


def _plain_manifest(text: str, foreign_names: Sequence[str], path: str, losses: LossList) -> str:
    """Return a v1alpha3 Go template as plain YAML: its loop over the parameters becomes a macro."""
    dashed = all(name.startswith("--") for name in foreign_names)

    def pair(match: re.Match[str]) -> str:
        if dashed or match["dashes"]:
            return ARGS
        if any(name.startswith("-") for name in foreign_names):
            losses.add(f"{path}: {match[0]}", f"written {ARGS}, which puts -- before every name")
            return ARGS
        return NO_HYPHENS

    def action(match: re.Match[str]) -> str:
        if match["action"] in {".Trial", ".NameSpace"}:
            return "trial"
        losses.add(f"{path}: {match[0]}", "an action of the template that has no counterpart; left out")
        return ""

    lines = [PAIR.sub(pair, line) for line in text.splitlines() if not BLOCK.match(line)]
    return "\n".join(ACTION.sub(action, line) for line in lines) + "\n"
