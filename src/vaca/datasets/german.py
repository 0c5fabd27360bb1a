"""German Credit: 1000 loan applicants, with the causal graph used in the paper."""

from __future__ import annotations

import io

import pandas as pd

from vaca.datasets.dataset import Dataset, read_shipped
from vaca.graph.dag import CausalGraph
from vaca.table.schema import Schema

SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"

#: Position in the original file -> column name, in the order of the frame.
_COLUMNS = {
    8: "sex",
    12: "age",
    4: "credit_amount",
    2: "repayment_history",
    0: "checking_account",
    5: "savings",
    14: "housing",
    20: "credit_risk",
}

#: The original codes, in words. The order is the order of the levels.
_LEVELS: dict[str, dict[str, str]] = {
    "sex": {"A92": "female", "A91": "male", "A93": "male", "A94": "male"},
    "repayment_history": {
        "A34": "critical account",
        "A33": "past delays",
        "A32": "existing credits paid duly",
        "A31": "all paid duly at this bank",
        "A30": "no credits taken or all paid duly",
    },
    "checking_account": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "no checking account",
    },
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "credit_risk": {"2": "bad", "1": "good"},
}

_DESCRIPTION = """\
Statlog (German Credit Data), 1000 applicants for a loan at a German bank, 700 of them good risks
and 300 bad ones. 690 men and 310 women; the file records sex together with marital status.

Columns: sex; age in years; credit_amount in Deutsche Mark; repayment_history, the applicant's
record with earlier credits (attribute 3 of the file, "credit history"); checking_account and
savings, the state of the accounts; housing. Target: credit_risk, "good" or "bad".

The causal graph is the one of the VACA paper after Chiappa (2019): sex and age are causes of
R = {credit_amount, repayment_history} and of H = {checking_account, savings, housing}; the columns
within a node may be related in any way. The graph is an assumption. It leaves out income,
occupation and all else that may stand behind these columns.

Source: Hofmann, H. (1994), UCI Machine Learning Repository, https://doi.org/10.24432/C5NC77,
CC BY 4.0. The shipped file is the original; level names are this package's wording of its codes.
"""


def german_credit() -> Dataset:
    """German Credit as `Dataset`: 1000 applicants, the paper's causal graph, target credit_risk.

    Returns
    -------
    Dataset
        `data` has sex, age, credit_amount, repayment_history, checking_account, savings, housing;
        `graph` the nodes sex, age, R (credit amount, repayment history) and H (checking account,
        savings, housing) with sex, age -> R, H.

    Examples
    --------
    >>> german = german_credit()
    >>> german.data["sex"].value_counts().to_dict()
    {'male': 690, 'female': 310}
    >>> german.graph.parents("H")
    ('sex', 'age')
    """
    raw = pd.read_csv(
        io.StringIO(read_shipped("german.data", SHA256)), sep=" ", header=None, dtype=str
    )
    frame = pd.DataFrame({name: raw[at] for at, name in _COLUMNS.items()})
    for name, words in _LEVELS.items():
        levels = list(dict.fromkeys(words.values()))
        frame[name] = pd.Categorical(frame[name].map(words), categories=levels)
    frame[["age", "credit_amount"]] = frame[["age", "credit_amount"]].astype("int64")
    graph = CausalGraph(
        {"sex": [], "age": [], "R": ["sex", "age"], "H": ["sex", "age"]},
        {
            "R": ["credit_amount", "repayment_history"],
            "H": ["checking_account", "savings", "housing"],
        },
    )
    target = frame.pop("credit_risk")
    # Age looks like a count; the paper takes it as continuous, and it is never a small number.
    schema = Schema.infer(frame, graph, {"age": "continuous", "credit_amount": "continuous"})
    return Dataset("german_credit", frame, graph, schema, target, "good", _DESCRIPTION)
