"""The package is a stack of layers: a file imports only from layers below its own.

The order is the one of docs/design.md. A new room gets a line in LAYERS; the first test fails
until it has one.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vaca

PACKAGE = Path(__file__).parents[1] / "src" / "vaca"

# Lowest first. A line may hold several rooms: they do not import one another.
# A room is one layer; its files may import one another as long as there is no cycle.
LAYERS: list[tuple[str, ...]] = [
    ("errors",),
    ("graph",),
    ("table",),
    ("model",),
    ("scm",),
    ("evaluation",),
    ("engines",),
    ("show",),
    ("trust",),
    ("fairness",),
    ("datasets",),
    ("interop",),
    ("reproduction",),
    ("commands",),
    ("__init__", "__main__"),
]
# A method may hand over to a higher layer, by an import inside the method: it is how
# `graph.plot()` reaches the pictures without the graph depending on them.
SHORTCUTS = {
    ("graph", "table"),
    ("graph", "show"),
    ("model", "show"),
    ("model", "trust"),
    ("show", "trust"),
}
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def module_name(path: Path) -> str:
    """'vaca.engines.flow' for src/vaca/engines/flow.py; 'vaca.engines' for its __init__."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


# What a name of the façade leads to: 'vaca.Shift' is in 'vaca.model.intervention'.
FACADE = {f"vaca.{name}": f"vaca.{home}" for name, home in vaca._HOME.items()}
MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def layer(module: str) -> str:
    """'engines' for 'vaca.engines.flow'; '__init__' for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imported(module: str) -> set[str]:
    """Every module of the package that a file imports, also inside functions.

    Left out are the shortcuts, and what a method imports from its own layer.
    """
    found = set()
    path = MODULES[module]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(inner) for function in functions for inner in ast.walk(function)}
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                stem = package.split(".")
                stem = stem[: len(stem) - node.level + 1]
                base = ".".join([*stem, base] if base else stem)
            # `from vaca import graph` names a module, `from vaca.graph import X` does not.
            names = [f"{base}.{alias.name}" for alias in node.names]
            targets = [FACADE.get(name, name if name in MODULES else base) for name in names]
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in FACADE:
            targets = [FACADE[ast.unparse(node)]]  # `import vaca; vaca.load(...)`
        else:
            continue
        found |= {
            target
            for target in targets
            if target.startswith("vaca.")  # `import vaca` itself loads nothing
            and not (
                id(node) in inside
                and (layer(module) == layer(target) or (layer(module), layer(target)) in SHORTCUTS)
            )
        }
    return found - {module}


def test_layers_name_every_module():
    missing = {layer(module) for module in MODULES} - RANK.keys()
    assert not missing, f"give these a place in LAYERS and in docs/design.md: {sorted(missing)}"


def test_layers_are_in_the_design_page():
    text = (PACKAGE.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    names = {layer(module) for module in MODULES} - {"__init__", "__main__"}
    missing = [name for name in sorted(names) if f"`{name}`" not in text]
    assert not missing, f"say in docs/design.md what these are for: {missing}"


def test_files_that_the_design_page_names_are_there():
    text = (PACKAGE.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z]+/[a-z_/]*(?:\.py)?)`", text)
    assert len(named) > 15
    places = (PACKAGE, PACKAGE.parent, PACKAGE.parents[1])
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_rows_of_the_design_page_are_whole():
    text = (PACKAGE.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    broken = [line for line in text.splitlines() if line.startswith("| ") and line[-1] != "|"]
    assert not broken, f"a row of a table is one line: {broken}"


def test_every_file_is_on_the_design_page():
    """A newcomer finds each file in the index, in the section of its room."""
    text = (PACKAGE.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    index = text.partition("## Where would I change")[2].partition("\nWords are used")[0]
    sections = re.split(r"^### ", index, flags=re.MULTILINE)[1:]
    rooms = {
        name: part for part in sections for name in re.findall("`([a-z]+)`", part.split("\n")[0])
    }
    files = [p for kind in ("py", "html", "js", "css") for p in PACKAGE.rglob(f"*.{kind}")]
    missing = []
    for path in sorted(files):
        place = path.relative_to(PACKAGE)
        if path.stem.startswith("__"):
            continue
        section = rooms[path.stem if len(place.parts) == 1 else place.parts[0]]
        if not re.search(f"[`/]{re.escape(path.name)}`", section):
            missing.append(str(place))
    assert not missing, f"say in docs/design.md what these are for: {missing}"


def test_tests_mirror_the_source():
    tests = Path(__file__).parent
    for path in sorted(tests.rglob("test_*.py")):
        folder = path.parent.relative_to(tests)
        if folder.parts:  # tests of the whole package stand at the top
            subject = path.stem.removeprefix("test_")
            home = PACKAGE / folder
            known = {home.name, *(p.stem for p in home.glob("*"))}
            assert subject in known, f"{path}: src/vaca/{folder} has no {subject}"


@pytest.mark.parametrize("module", MODULES)
def test_layers_imports_go_down(module):
    own = layer(module)
    if own == "__init__":
        return  # the façade imports everything, lazily
    upward = [
        target
        for target in sorted(imported(module))
        if layer(target) != own and RANK.get(layer(target), -1) >= RANK[own]
    ]
    assert not upward, f"{module} imports {upward}, which are not below it"


def test_layers_have_no_cycle():
    graph = {m: {t for t in imported(m) if t in MODULES} for m in MODULES if m != "vaca.__init__"}
    # A package's __init__ gathers its own files, and its files name the package only through it.
    order: dict[str, int] = {}

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in order:
            for target in sorted(graph.get(module, ())):
                visit(target, (*trail, module))
            order[module] = len(order)

    for module in graph:
        visit(module, ())
    assert len(order) == len(graph)


def loaded_after(code: str) -> set[str]:
    """Give the top-level modules that a fresh interpreter has loaded after running `code`."""
    report = "import sys; print('LOADED', *{name.split('.')[0] for name in sys.modules})"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("LOADED")]
    return set(line.split()[1:])


HEAVY = {"torch", "pandas", "scipy", "sklearn", "matplotlib", "zuko"}


def test_import_vaca_is_light():
    loaded = loaded_after("import vaca")
    assert "vaca" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["sample", "--help"], ["--version"]])
def test_command_line_help_is_light(arguments):
    loaded = loaded_after(
        "import sys, vaca.commands.app\n"
        f"sys.argv = ['vaca', *{arguments!r}]\n"
        "try:\n    vaca.commands.app.main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code"
    )
    assert not loaded & HEAVY
