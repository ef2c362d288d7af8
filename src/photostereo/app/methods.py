"""The methods and their parameters, as the page's form needs them: from the same declarations as the command line."""

from __future__ import annotations

from typing import Any


def method_facts() -> list[dict[str, Any]]:
    """All methods, with name, title, what they are for, and their parameters."""
    from photostereo.solver.methods import find_method, method_names

    methods = (find_method(name) for name in method_names())
    return [
        {
            "name": method.name,
            "title": method.title,
            "assumes": method.assumes,
            "parameters": [
                {
                    "name": parameter.name,
                    "default": parameter.show_default(),
                    "expects": parameter.expects,
                    "meaning": parameter.doc,
                    "minimum": parameter.minimum,
                    "maximum": parameter.maximum,
                }
                for parameter in method.parameters
            ],
        }
        for method in methods
    ]
