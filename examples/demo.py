"""A walk through vaca on the loan model: seeing, doing, imagining. Run by `make demo`.

It prints what it does, and writes a page with pictures that needs no other file.
"""

from __future__ import annotations

import argparse
import base64
import io
import time
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import scipy.stats as st

import vaca

OUTCOMES = ("loan_amount", "loan_duration", "income", "savings")

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>vaca: a walk through</title>
<style>
  :root { color-scheme: light; --ink: #1c2530; --soft: #5b6672; --line: #dfe4e8; --mark: #00695c; }
  * { box-sizing: border-box; }
  body { margin: 0; background: #f4f6f7; color: var(--ink);
         font: 17px/1.6 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
  header { background: var(--mark); color: #fff; padding: 2.4rem 1.2rem 2rem; }
  header > div, main { max-width: 58rem; margin: 0 auto; }
  h1 { margin: 0 0 .3rem; font-size: 2rem; line-height: 1.2; }
  header p { margin: 0; opacity: .92; }
  main { padding: 1.2rem; }
  section { background: #fff; border: 1px solid var(--line); border-radius: 10px;
            padding: 1.2rem 1.5rem 1.4rem; margin: 0 0 1.2rem; }
  h2 { margin: .1rem 0 .4rem; font-size: 1.3rem; }
  h2 span { color: var(--mark); margin-right: .4rem; }
  p { margin: .5rem 0; max-width: 44rem; }
  pre { background: #f4f6f7; border-left: 3px solid var(--mark); padding: .7rem .9rem;
        overflow-x: auto; font-size: .85rem; line-height: 1.45; border-radius: 0 6px 6px 0; }
  img { display: block; width: 100%; height: auto; margin: .8rem auto; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; font-size: .84rem; margin: .6rem 0; }
  th, td { padding: .3rem .55rem; text-align: right; border-bottom: 1px solid var(--line);
           white-space: nowrap; font-variant-numeric: tabular-nums; }
  th { font-weight: 600; color: var(--soft); }
  td:first-child, th:first-child { text-align: left; }
  td.moved { font-weight: 650; color: var(--mark); }
  footer { color: var(--soft); font-size: .85rem; padding: 0 .3rem 2rem; }
</style>
</head>
<body>
<header><div>
  <h1>From a graph to an answer</h1>
  <p>Seven columns of a loan application, and three kinds of question about them.</p>
</div></header>
<main>
{% for part in parts %}
<section>
  <h2><span>{{ loop.index }}</span>{{ part.title }}</h2>
  {% for text in part.texts %}<p>{{ text }}</p>{% endfor %}
  {% if part.code %}<pre>{{ part.code }}</pre>{% endif %}
  {% if part.table %}<div class="scroll"><table>
    <tr>{% for head in part.table[0] %}<th>{{ head }}</th>{% endfor %}</tr>
    {% for row in part.table[1] %}<tr>{% for cell, moved in row %}
      <td{% if moved %} class="moved"{% endif %}>{{ cell }}</td>{% endfor %}</tr>
    {% endfor %}</table></div>{% endif %}
  {% if part.picture %}<img style="max-width: {{ part.width }}rem" alt="{{ part.alt }}"
    src="data:image/svg+xml;base64,{{ part.picture }}">{% endif %}
  {% for text in part.after %}<p>{{ text }}</p>{% endfor %}
</section>
{% endfor %}
<footer>Made by vaca {{ version }} in {{ seconds }} s. The model's equations are known here, so every
number on this page is the truth up to the number of rows drawn.</footer>
</main>
</body>
</html>
"""


def say(text: str) -> None:
    print(text, flush=True)


def svg(picture: Any) -> str:
    figure = picture if hasattr(picture, "savefig") else picture.get_figure(root=True)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode()


def part(title: str, texts: list[str], **rest: Any) -> dict[str, Any]:
    blank = {"code": "", "table": None, "picture": "", "alt": "", "after": [], "width": 48}
    return {"title": title, "texts": texts, **blank, **rest}


def graph_part(scm: vaca.CausalModel) -> dict[str, Any]:
    graph = scm.graph
    say(f"1. The graph: {len(graph)} columns, {len(graph.edges)} arrows from cause to effect.")
    return part(
        "What causes what",
        [
            "An arrow says: may cause directly. A missing arrow says: does not. This much has to be "
            "known beforehand; no table contains it.",
        ],
        picture=svg(vaca.plot.plot_graph(graph)),
        alt="The causal graph of the loan model",
        width=44,
    )


def seeing_part(scm: vaca.CausalModel, people: Any) -> dict[str, Any]:
    slope = float(np.polyfit(people["income"], people["loan_duration"], 1)[0])
    effect = scm.effect("loan_duration", {"income": 1.0}, {"income": 0.0})
    say(
        f"2. Seeing is not doing: in the table, one more unit of income goes with {slope:+.2f} of "
        f"loan duration; raising income changes it by {effect.value:+.2f}."
    )
    return part(
        "Seeing is not doing",
        [
            f"In {len(people):,} sampled applications, each unit of income goes with {slope:+.2f} "
            "units of loan duration. Would a rise in pay lengthen people's loans?",
            f"No: the effect is {effect.value:+.2f}. Income does not cause the duration. Gender and "
            "age cause both, and that is what the table shows.",
        ],
        code=(
            'scm.effect("loan_duration", treatment={"income": 1}, control={"income": 0})\n'
            f"# {effect.value:g}, standard error {effect.standard_error:g}"
        ),
    )


def doing_part(scm: vaca.CausalModel, people: Any) -> dict[str, Any]:
    say("3. Doing: everyone's gender is set to 0, then to 1, and new people are drawn.")
    tables = {f"do(gender = {g})": scm.sample(len(people), {"gender": g}, seed=0) for g in (0, 1)}
    effects = {name: scm.effect(name, {"gender": 1}, {"gender": 0}) for name in OUTCOMES}
    for name, effect in effects.items():
        say(f"   {name}: {effect.value:+.2f} on average")
    return part(
        "Doing: an intervention",
        [
            "What would the population look like if everyone's gender were 0, and if it were 1? Each "
            "column that gender reaches moves; age, which it does not reach, stays as it is.",
        ],
        code='scm.sample(20_000, do={"gender": 1})',
        picture=svg(vaca.plot.plot_densities(people, tables, columns=["age", *OUTCOMES])),
        alt="Densities of five columns as observed and under two interventions",
        after=[
            "Average effects: "
            + ", ".join(f"{name.replace('_', ' ')} {e.value:+.2f}" for name, e in effects.items())
            + "."
        ],
    )


def imagining_part(scm: vaca.CausalModel, people: Any) -> dict[str, Any]:
    chosen = people[people["gender"] == 0].head(4)
    answer = scm.counterfactual(chosen, do={"gender": 1})
    gain = (answer["savings"] - chosen["savings"]).to_numpy()
    say(
        "4. Imagining: four people with gender 0, had it been 1. Their own savings would have "
        f"changed by {', '.join(f'{g:+.2f}' for g in gain)}: the same cause, different people."
    )
    rows = []
    for label in chosen.index:
        for name, table in (("was", chosen), ("would have been", answer)):
            moved = [name != "was" and table.at[label, c] != chosen.at[label, c] for c in chosen]
            cells = [f"{table.at[label, c]:.2f}".removesuffix(".00") for c in chosen]
            heads = [(f"row {label}, {name}", False)]
            rows.append(heads + list(zip(cells, moved, strict=True)))
    return part(
        "Imagining: a counterfactual",
        [
            "These are no longer new people but these very four. What the row says about each of "
            "them (how lucky, how thrifty) is recovered first and kept; then gender is set to 1 and "
            "the consequences follow. What changed is set in bold.",
        ],
        code='scm.counterfactual(people, do={"gender": 1})',
        table=(["", *(c.replace("_", " ") for c in chosen)], rows),
        picture=svg(vaca.plot.plot_person(chosen, answer, population=people)),
        alt="One person's row as it was and as it would have been",
        after=["The picture shows the first of the four."],
    )


def shifting_part(scm: vaca.CausalModel, people: Any) -> dict[str, Any]:
    say("5. More than setting a value: everyone ten years older than they are, and a policy.")

    def relief(rows: Any) -> Any:
        return np.where(rows["age"] < 0, 0.0, rows["age"] / 10)

    questions = {
        "do(age + 10)": {"age": vaca.Shift(10)},
        "a policy for loan_amount": {"loan_amount": relief},
    }
    tables = {name: scm.counterfactual(people, do=do) for name, do in questions.items()}
    return part(
        "Shifts and policies",
        [
            "An intervention may depend on the row: everyone ten years older than they are, or a "
            "rule that lends nothing above the average to the young and more with age.",
        ],
        code=(
            'scm.counterfactual(people, do={"age": vaca.Shift(10)})\n'
            'scm.counterfactual(people, do={"loan_amount": rule})   # rule: a function of the rows'
        ),
        picture=svg(vaca.plot.plot_population({"as it was": people, **tables})),
        alt="The population as it was, ten years older, and under a policy",
    )


def overview(scm: vaca.CausalModel, people: Any, path: Path) -> None:
    """Draw the picture of the README: a graph with an intervention above what it changes."""
    from matplotlib.figure import Figure
    from PIL import Image

    do = {"income": st.norm(4, 1)}
    above = Figure(figsize=(10, 3.4), layout="constrained")
    vaca.plot.plot_graph(scm.graph, ax=above.subplots(), do=do.keys())
    tables = {"do(income ~ normal around 4)": scm.sample(len(people), do, seed=0)}
    below = vaca.plot.plot_densities(people, tables, columns=["education", "income", "savings"])
    images = []
    for figure in (above, below):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130)
        images.append(Image.open(buffer).convert("RGB"))
    width = max(image.width for image in images)
    sheet = Image.new("RGB", (width, sum(image.height for image in images)), "white")
    top = 0
    for image in images:
        sheet.paste(image, ((width - image.width) // 2, top))
        top += image.height
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path, optimize=True)
    say(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A walk through vaca on the loan model.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the page")
    parser.add_argument("--picture", type=Path, help="only draw the README's picture to this file")
    arguments = parser.parse_args()
    start = time.perf_counter()
    scm = vaca.scms.load("loan")
    people = scm.sample(20_000, seed=0)
    if arguments.picture:
        overview(scm, people, arguments.picture)
        return
    say("The example: loan applications, made by a model whose equations are known.")
    parts = [
        graph_part(scm),
        seeing_part(scm, people),
        doing_part(scm, people),
        imagining_part(scm, people),
        shifting_part(scm, people),
    ]
    template = jinja2.Environment(autoescape=True).from_string(PAGE)
    seconds = round(time.perf_counter() - start, 1)
    html = template.render(parts=parts, version=vaca.__version__, seconds=seconds)
    arguments.out.mkdir(parents=True, exist_ok=True)
    page = arguments.out / "index.html"
    page.write_text(html, encoding="utf-8")
    say(f"\nDone in {seconds} s. Open {page} in a browser.")


if __name__ == "__main__":
    main()
