from sweepledger.render.manifest import merge, merge_all


def test_mappings_merge_and_lists_without_names_are_replaced() -> None:
    base = {"a": {"b": 1, "c": 2}, "tolerations": [{"key": "x"}], "command": ["one", "two"]}

    merged = merge(base, {"a": {"c": 3}, "tolerations": [{"key": "y"}], "command": ["three"]})

    assert merged == {"a": {"b": 1, "c": 3}, "tolerations": [{"key": "y"}], "command": ["three"]}


def test_named_things_merge_by_name_and_mounts_by_their_path() -> None:
    base = {
        "containers": [
            {
                "name": "trial",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
                "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
            }
        ]
    }
    partial = {
        "containers": [
            {
                "name": "trial",
                "env": [{"name": "C", "value": "3"}, {"name": "B", "value": "2"}],
                "volumeMounts": [{"name": "v", "mountPath": "/b", "subPath": "x"}],
            }
        ]
    }

    assert merge(base, partial) == {
        "containers": [
            {
                "name": "trial",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "value": "2"},
                    {"name": "C", "value": "3"},
                ],
                "volumeMounts": [
                    {"name": "v", "mountPath": "/a"},
                    {"name": "v", "mountPath": "/b", "subPath": "x"},
                ],
            }
        ]
    }


def test_neither_side_is_changed_or_shared() -> None:
    base, partial = {"a": {"b": [1]}, "volumes": [{"name": "x"}]}, {"volumes": [{"name": "y", "z": {}}]}

    merged = merge_all(base, partial, {"d": 1})
    merged["a"]["b"].append(2)
    merged["volumes"][1]["z"]["new"] = 1

    assert base == {"a": {"b": [1]}, "volumes": [{"name": "x"}]}
    assert partial == {"volumes": [{"name": "y", "z": {}}]}
