"""What a person's editor sees: the type checker on a small user's file."""

import json
import subprocess
import sys
from pathlib import Path

import vaca

CHECKER = [sys.executable, "-m", "basedpyright", "--outputjson"]
SOURCE = Path(__file__).parents[1] / "src"
# A line marked `wrong` must be an error and no other line may be: a name that is Any has no errors.
USER = """
import pandas as pd
import vaca

df = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]})
graph = vaca.CausalGraph.from_edges([("x", "y")])
flow: vaca.CausalFlow = vaca.CausalFlow(graph, steps=10).fit(df)
number: int = vaca.CausalFlow(graph).fit(df)  # wrong
vaca.CausalFlow(graph, stepps=10)  # wrong
path: str = vaca.load("model")  # wrong
vaca.load("model").sample(3).head()
best: int = vaca.auto(df, graph)  # wrong
effect = flow.effect("y", {"x": 1.0})
half: float = effect.value / 2
effect.valeu  # wrong
groups: vaca.Effect = flow.effect("y", {"x": 1.0}, by="x")  # wrong
flow.effect("y", {"x": 1.0}, by="x").describe()
rows: int = flow.counterfactual(df, {"x": 0.0})  # wrong
paper: int = vaca.VACA.paper("loan")  # wrong
scm: vaca.StructuralCausalModel = vaca.scms.load("loan")
vaca.plot.pairs_of_nothing()  # wrong
"""


def test_the_type_checker_knows_the_names_of_the_package(tmp_path):
    (tmp_path / "user.py").write_text(USER, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(SOURCE)], "typeCheckingMode": "standard"}), encoding="utf-8"
    )
    found = subprocess.run(
        [*CHECKER, "-p", str(tmp_path), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [d for d in json.loads(found.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    lines = {d["range"]["start"]["line"] for d in errors}
    wrong = {k for k, line in enumerate(USER.splitlines()) if line.endswith("# wrong")}
    assert lines == wrong, [(d["range"]["start"]["line"], d["message"]) for d in errors]


def test_every_name_of_the_package_has_a_type():
    text = (SOURCE / "vaca" / "__init__.py").read_text(encoding="utf-8")
    missing = [name for name in vaca.__all__ if f" as {name}\n" not in text]
    assert missing == ["__version__"], "import these under TYPE_CHECKING in src/vaca/__init__.py"
