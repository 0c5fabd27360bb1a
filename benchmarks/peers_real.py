"""DoWhy, EconML and DoubleML at their documented defaults on tables with known answers.

They want other versions of scipy than each other, so they run in an environment of their own:

    python -m venv peers && peers/bin/pip install dowhy econml doubleml
    peers/bin/pip install --no-deps causaldata causallib
    peers/bin/python benchmarks/peers_real.py results/real/peers.json [table ...]

What is done is kept in the file and not done again. `docs/real-tables.md` reads it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

#: Loaded by path: the environment of the peers has not what the rest of vaca needs.
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
_SOURCE = Path(sys.path[0]) / "vaca" / "reproduction" / "real_tables.py"
_spec = importlib.util.spec_from_file_location("real_tables", _SOURCE)
assert _spec is not None
assert _spec.loader is not None
real = importlib.util.module_from_spec(_spec)
sys.modules["real_tables"] = real
_spec.loader.exec_module(real)

Answers = dict[str, tuple[float, float | None, float | None]]


def numbers(table: Any) -> pd.DataFrame:
    """Covariates as numbers: levels one-hot, without the first."""
    x = table.data[list(table.covariates)]
    return pd.get_dummies(x, columns=list(table.levels), drop_first=True).astype(float)


def dowhy_regression(table: Any) -> Answers:
    """Linear regression, the estimator of DoWhy's first example."""
    estimate = _dowhy(table, "backdoor.linear_regression", "ate")
    low, high = np.ravel(estimate.get_confidence_intervals())[:2]
    answer = (float(estimate.value), float(low), float(high))
    return {"everyone": answer, "treated": answer}


def dowhy_weighting(table: Any) -> Answers:
    """Weighting by propensity scores; its intervals need a bootstrap and are left out."""
    found = {}
    for whom, units in (("everyone", "ate"), ("treated", "att")):
        estimate = _dowhy(table, "backdoor.propensity_score_weighting", units)
        found[whom] = (float(estimate.value), None, None)
    return found


def _dowhy(table: Any, method: str, units: str) -> Any:
    from dowhy import CausalModel

    x = numbers(table)
    x.columns = [f"c{i}" for i in range(x.shape[1])]
    frame = x.assign(
        treatment=table.data[table.treatment].astype(bool), outcome=table.data[table.outcome]
    )
    model = CausalModel(
        data=frame, treatment="treatment", outcome="outcome", common_causes=list(x.columns)
    )
    # The default looks through all sets of causes, which takes hours with eighty of them.
    estimand = model.identify_effect(
        proceed_when_unidentifiable=True, method_name="maximal-adjustment"
    )
    return model.estimate_effect(estimand, method_name=method, target_units=units)


def econml_linear(table: Any) -> Answers:
    """`LinearDML` with a discrete treatment, else by default."""
    from econml.dml import LinearDML

    return _econml(table, LinearDML(discrete_treatment=True, random_state=0))


def econml_forest(table: Any) -> Answers:
    """`CausalForestDML` with a discrete treatment, else by default."""
    from econml.dml import CausalForestDML

    return _econml(table, CausalForestDML(discrete_treatment=True, random_state=0))


def _econml(table: Any, estimator: Any) -> Answers:
    x = numbers(table).to_numpy()
    t = table.data[table.treatment].to_numpy(dtype=int)
    estimator.fit(table.data[table.outcome].to_numpy(dtype=float), t, X=x)
    found = {}
    for whom, rows in (("everyone", slice(None)), ("treated", t == 1)):
        answer = estimator.ate_inference(X=x[rows])
        low, high = answer.conf_int_mean()
        found[whom] = tuple(float(np.ravel(v)[0]) for v in (answer.mean_point, low, high))
    return found


def doubleml_irm(table: Any) -> Answers:
    """`DoubleMLIRM` with the random forests of its getting-started page."""
    from doubleml import DoubleMLData, DoubleMLIRM
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    x = numbers(table).to_numpy()
    y = table.data[table.outcome].to_numpy(dtype=float)
    t = table.data[table.treatment].to_numpy(dtype=float)
    data = DoubleMLData.from_arrays(x, y, t)
    forest = {"n_estimators": 500, "max_features": "sqrt", "max_depth": 5, "random_state": 0}
    found = {}
    for whom, score in (("everyone", "ATE"), ("treated", "ATTE")):
        np.random.seed(0)  # noqa: NPY002 (the package draws its folds from the global generator)
        irm = DoubleMLIRM(
            data, RandomForestRegressor(**forest), RandomForestClassifier(**forest), score=score
        )
        irm.fit()
        low, high = irm.confint().to_numpy()[0]
        found[whom] = (float(irm.coef[0]), float(low), float(high))
    return found


METHODS = {
    "DoWhy, linear regression": (dowhy_regression, "dowhy"),
    "DoWhy, propensity weighting": (dowhy_weighting, "dowhy"),
    "EconML, LinearDML": (econml_linear, "econml"),
    "DoubleML, IRM with forests": (doubleml_irm, "doubleml"),
    "EconML, CausalForestDML": (econml_forest, "econml"),
}


def main(path: Path, names: list[str]) -> None:
    """Measure what the file does not hold yet."""
    records = json.loads(path.read_text()) if path.exists() else []
    done = {(r["table"], r["method"]) for r in records}
    for method, (measure, package) in METHODS.items():  # from the quickest on
        for name in names:
            if (name, method) in done:
                continue
            table = real.load_real(name)
            begin = time.process_time()
            record: dict[str, Any] = {"table": name, "method": method}
            try:
                answers = measure(table)
            except Exception as error:  # a failure of a peer is a result too
                record["error"] = f"{type(error).__name__}: {error}"[:200]
            else:
                record["answers"] = {
                    whom: dict(zip(("value", "low", "high"), answer, strict=True))
                    for whom, answer in answers.items()
                }
            record["seconds"] = round(time.process_time() - begin, 1)
            record["version"] = importlib.metadata.version(package)
            print(record, flush=True)
            records.append(record)
            path.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    wanted = sys.argv[2:] or [name for name in real.real_names() if name != "nhefs-gaps"]
    main(Path(sys.argv[1]), wanted)
