#!/usr/bin/env python3
"""Carries the recorded facts of a Kubernetes release into this directory, in the form that the crate reads.

    crates/kinds/data/carry.py DIRECTORY

In: types.json, resources.json and bootstrap.json of the given directory, and supplement.json beside this file.
Out: types.txt, resources.txt, columns.txt and bootstrap.txt. The first lines of each say how to read it.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

TYPES = """\
# The types of Kubernetes v1.36, written by carry.py. A type: `@name [group version kind]`, `-` for the core group.
# A field: name, node, protobuf number (after those of the inlined messages), then words and `= default`.
# Nodes: a scalar, a type, `!` an atomic type; `[]` a list (`[=]` a set, `[a,b]` a map by these keys, `[*]` a
# protobuf message of its own), `{}` a map (`{!}` an atomic one).
"""
RESOURCES = """\
# The resources that Kubernetes v1.36 serves, written by carry.py, in the order of discovery.
# `@group version resource singular kind scope`, `-` for the core group. `store group version prefix`: the version
# that the real server stores, and the directory of its keys. `sub name group version kind verbs`, `- -` for its
# own group and version.
"""
COLUMNS = """\
# The columns that the real server shows, written by carry.py: `@group version resource`, then `type format priority
# name`. The columns that are served lie with the kinds; a test compares them with these.
"""
BOOTSTRAP = """\
# The objects that a new cluster holds, written by carry.py: `@path`, then one object to a line.
"""

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    META + "Time": "time",
    META + "MicroTime": "micro-time",
    META + "FieldsV1": "fields-v1",
    META + "Patch": "json",
    EXTENSIONS + "JSON": "json",
    EXTENSIONS + "JSONSchemaPropsOrArray": "schema-or-list",
    EXTENSIONS + "JSONSchemaPropsOrBool": "schema-or-bool",
    EXTENSIONS + "JSONSchemaPropsOrStringArray": "schema-or-strings",
}
# Lists that Go gave a name, and protobuf therefore a message.
MESSAGES = ("v1.Verbs", "v1.ExtraValue")

# Where the real server stores another version than the first it serves
# (pkg/kubeapiserver/default_storage_factory_builder.go), or shares the storage of another group.
STORED = {
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): ("admissionregistration.k8s.io", "v1beta1"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): ("admissionregistration.k8s.io", "v1beta1"),
    ("events.k8s.io", "events"): ("", "v1"),
}
PREFIXES = {
    ("", "replicationcontrollers"): "controllers",
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "services"): "services/specs",
    ("networking.k8s.io", "ingresses"): "ingress",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
    ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
}


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def scalar(shape):
    match shape.get("type"), shape.get("format"):
        case "string", None: return "string"
        case "string", "byte": return "bytes"
        case "boolean", None: return "bool"
        case "integer", ("int32" | "int64") as width: return width
        case "number", "double": return "double"
        case "any", None: return "json"
    raise SystemExit(f"no node for {shape}")


def node(shape, types, go=""):
    if "ref" in shape:
        ref = shape["ref"]
        if ref in SCALARS:
            return SCALARS[ref]
        atomic = shape.get("mapType", types[ref].get("mapType")) == "atomic"
        return ("!" if atomic else "") + ref
    if "items" in shape:
        match shape.get("listType"):
            case "set": kind = "="
            case "map": kind = ",".join(shape["listMapKeys"])
            case _: kind = "*" if go in MESSAGES else ""
        return f"[{kind}]{node(shape['items'], types)}"
    if "values" in shape:
        atomic = "!" if shape.get("mapType") == "atomic" else ""
        return f"{{{atomic}}}{node(shape['values'], types, go.rpartition(']')[2])}"
    return scalar(shape)


def is_struct(shape):
    return "ref" in shape


def field_line(name, field, types, go, type_meta):
    go_type, within = go.get(name, ("", ""))
    words = [name, node(field, types, go_type)]
    if type_meta and name in ("kind", "apiVersion"):
        within = "TypeMeta"
    elif "proto" in field:
        words.append("/".join(str(number) for number in [*field.get("via", []), field["proto"]]))
    if field.get("pointer"):
        words.append("pointer")
    # Go never omits a struct, unless told `omitzero`, as it is in this one place.
    if field.get("always") or is_struct(field) and not field.get("pointer") and name != "creationTimestamp":
        words.append("always")
    if field.get("required"):
        words.append("required")
    strategies = field.get("patchStrategy", "").split(",")
    words += [word for word in ("replace", "merge", "retainKeys") if word in strategies]
    if "patchMergeKey" in field:
        words.append("key=" + field["patchMergeKey"])
    if go_type:
        words.append("go=" + go_type)
    if within:
        words.append("in=" + within)
    if "default" in field:
        words += ["=", compact(field["default"])]
    return " ".join(words)


def carry_types(types, supplement):
    types |= supplement["types"]
    types |= {name: types[same] for name, same in supplement["same"].items()}
    types[META + "DeleteOptions"]["gvk"] = {"group": "meta.k8s.io", "version": "v1", "kind": "DeleteOptions"}
    out = TYPES
    for name in sorted(types):
        if name in SCALARS:
            continue
        gvk = types[name].get("gvk")
        out += " ".join(["@" + name] + ([gvk["group"] or "-", gvk["version"], gvk["kind"]] if gvk else [])) + "\n"
        go = supplement["go"].get(supplement["same"].get(name, name), {})
        for field, what in types[name].get("fields", {}).items():
            out += field_line(field, what, types, go, gvk is not None) + "\n"
    return out


def carry_resources(groups):
    out = RESOURCES
    for group in groups:
        for version in group["versions"]:
            for what in version["resources"]:
                out += resource_lines(group["group"], group["versions"][0]["version"], version["version"], what)
    return out


def resource_lines(group, preferred, version, what):
    name = what["resource"]
    words = [group or "-", version, name, what["singularResource"], what["kind"], what["scope"]]
    lines = ["@" + " ".join(words), "verbs " + " ".join(what["verbs"])]
    for key, word in ("shortNames", "short"), ("categories", "categories"):
        if key in what:
            lines.append(" ".join([word, *what[key]]))
    if "get" in what["verbs"] and name != "componentstatuses":
        at = STORED.get((group, name), (group, preferred))
        lines.append(f"store {at[0] or '-'} {at[1]} {PREFIXES.get((group, name), name)}")
    for sub in what.get("subresources", []):
        kind = sub["kind"]
        own = not kind["version"]
        at = ["-", "-"] if own else [kind["group"] or "-", kind["version"]]
        lines.append(" ".join(["sub", sub["name"], *at, kind["kind"], *sub["verbs"]]))
    return "\n".join(lines) + "\n"


def carry_columns(groups):
    out = COLUMNS
    for group in groups:
        for version in group["versions"]:
            for what in version["resources"]:
                if "columns" in what:
                    out += f"@{group['group'] or '-'} {version['version']} {what['resource']}\n"
                for column in what.get("columns", []):
                    out += f"{column['type']} {column['format'] or '-'} {column['priority']} {column['name']}\n"
    return out


def carry_bootstrap(paths, groups):
    kinds = {
        (group["group"], version["version"], what["resource"]): what["kind"]
        for group in groups for version in group["versions"] for what in version["resources"]
    }
    out = BOOTSTRAP
    for path, objects in paths.items():
        _, root, *parts = path.split("/")
        group, version, resource = ["", *parts] if root == "api" else parts
        head = {"kind": kinds[group, version, resource], "apiVersion": f"{group}/{version}".lstrip("/")}
        out += f"@{path}\n" + "".join(compact(head | object) + "\n" for object in objects)
    return out


def main():
    def read(*path):
        with open(os.path.join(*path), encoding="utf-8") as file:
            return json.load(file)

    def write(name, text):
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            file.write(text)

    facts = sys.argv[1]
    groups = read(facts, "resources.json")
    write("types.txt", carry_types(read(facts, "types.json"), read(HERE, "supplement.json")))
    write("resources.txt", carry_resources(groups))
    write("columns.txt", carry_columns(groups))
    write("bootstrap.txt", carry_bootstrap(read(facts, "bootstrap.json"), groups))


if __name__ == "__main__":
    main()
