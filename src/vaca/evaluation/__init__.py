r"""How near a model's answers are to the truth: one row for every question asked.

`evaluate` compares two causal models, a model and the truth, by their `noise`, `abduct` and
`simulate` alone. It asks both the same questions and scores the answers:

- observational: rows drawn from both;
- interventional: rows drawn from both under ``do(node = value)``, one node at a time;
- counterfactual: factual rows drawn from the truth, answered by both. The true answer is
  ``truth.simulate(u, do)`` with the noise ``u`` that made the row, the model's answer is
  ``model.simulate(model.abduct(x), do)``.

Only the descendants of the intervened node are scored. Columns are standardised with the mean and
sd of the training rows; categories are not: a binary column counts as 0 and 1, any other category
as one indicator for each level.

**Two protocols.** ``paper`` follows the definitions in the text of the paper: every non-leaf node
is set to mean + {-1, -1/2, 0, 1/2, 1} sd, MMD is averaged over resamples of independent rows.
``published`` follows what the published figures measure: mean + {-1, 1/10, 1/2, 1} sd rounded to
two decimals, one MMD of 1000 rows drawn with replacement, counterfactual errors that are norms and
not squares, and a StdE with an unpaired distance mixed in, which is far from zero even for a
perfect model. A category is set to each of its levels in both.

**Floor.** Every score comes with the score that the truth itself gets when it is evaluated in the
model's place with fresh noise. A ratio of 1 is a perfect model.
"""

from __future__ import annotations

from vaca.evaluation.against_truth import evaluate
from vaca.evaluation.result import METRICS, Evaluation

__all__ = ["METRICS", "Evaluation", "evaluate"]
