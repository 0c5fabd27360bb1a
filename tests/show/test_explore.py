"""The explorer: its answers are the library's, and it refuses whoever has no business there."""

import http.client
import json
import random
import socket
import threading

import pandas as pd
import pytest

import vaca
from tests.browsing import DESKTOP, PHONE, look, violations
from vaca.errors import VacaError

pytest.importorskip("uvicorn", reason='the explorer needs pip install "vaca[explore]"')
from vaca.show.explore import server
from vaca.show.explore.session import ROWS, Session
from vaca.show.whatif import ask_person, code_for, filter_rows, read_settings

SCM = vaca.scms.load("loan")
DATA = SCM.sample(300, seed=0)
EDUCATION = {"education": {"value": 0.5}}


class Live:
    """A server in a thread, and how to ask it."""

    def __init__(self, session):
        self.session, ready, box = session, threading.Event(), []

        def started(address, running):
            box.extend([address, running])
            ready.set()

        self.thread = threading.Thread(
            target=server.serve, args=(session,), kwargs={"started": started}, daemon=True
        )
        self.thread.start()
        assert ready.wait(60)
        self.address, self.running = box
        self.port = int(self.address.split(":")[2].split("/")[0])
        self.token = self.address.rstrip("/").rpartition("/")[2]

    def ask(self, path, body=None, *, method="POST", headers=None, token=None):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Content-Type": "application/json", **(headers or {})}
        content = body if isinstance(body, bytes) else json.dumps(body or {})
        line.request(method, f"/{self.token if token is None else token}/{path}", content, sent)
        reply = line.getresponse()
        text = reply.read().decode()
        line.close()
        return reply, text


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")

    def fit(model, graph, table):
        return vaca.AdditiveNoise(graph, schema=model.schema_).fit(table, progress=False)

    page = Live(Session(SCM, DATA, ("model", "loans.csv"), folder / "graph.txt", fit))
    yield page
    page.running.should_exit = True
    page.thread.join(20)


def test_a_person_is_the_one_of_the_library(live):
    reply, text = live.ask("api/person", {"row": 7, "settings": EDUCATION})
    assert reply.status == 200
    answer = json.loads(text)["columns"]
    truth = SCM.counterfactual(DATA.iloc[[7]], {"education": 0.5}, seed=0).iloc[0]
    for name in ("income", "savings"):
        assert answer[name]["after"] == truth[name]
        assert answer[name]["low"] <= answer[name]["after"] <= answer[name]["high"]
        assert answer[name]["role"] == "reached"
    kept = answer["gender"]["after"]
    assert answer["gender"] == {"before": kept, "after": kept, "role": "still"}
    assert answer["education"]["role"] == "set"


def test_the_code_gives_the_same_answer(live, tmp_path, monkeypatch):
    _, text = live.ask("api/person", {"row": 7, "settings": {"age": {"shift": 5}}})
    answer = json.loads(text)
    monkeypatch.chdir(tmp_path)
    DATA.to_csv("loans.csv", index=False)
    monkeypatch.setattr(vaca, "load", lambda name: SCM, raising=False)
    *setup, last = answer["code"]["python"].splitlines()
    names = {}
    exec("\n".join(setup), names)
    assert eval(last, names)["income"].iloc[0] == answer["columns"]["income"]["after"]
    assert answer["code"]["command"] == "vaca counterfactual model loans.csv --do age+=5"


@pytest.mark.filterwarnings("ignore::vaca.errors.SupportWarning")
def test_the_code_of_an_effect_gives_the_number_of_the_page(tmp_path, monkeypatch):
    """Also where a count on the way leaves the noise open: the page takes one draw for each row."""
    table = vaca.datasets.loan_applications().data.head(200)[["sex", "age", "children", "savings"]]
    graph = vaca.CausalGraph.from_edges([("age", "children"), ("children", "savings")], ["sex"])
    kinds = {"children": "count"}
    model = vaca.AdditiveNoise(graph, schema=kinds).fit(table, refits=2, progress=False)
    page = Session(model, table, ("model", "loans.csv"))
    answer = page.effect({"settings": {"age": {"shift": 5}}, "outcome": "savings"})
    monkeypatch.chdir(tmp_path)
    table.to_csv("loans.csv", index=False)
    model.save("model")
    *setup, last = answer["code"]["python"].splitlines()
    names = {}
    exec("\n".join(setup), names)
    found = eval(last.removeprefix("print(").removesuffix(")"), names)
    assert found.value == answer["value"]
    assert found.interval() == (answer["low"], answer["high"])
    assert answer["code"]["command"].endswith("--given loans.csv --draws 1")


def test_a_group_before_and_after(live):
    men = {"gender": {"levels": [1]}, "age": {"low": -5, "high": 5}}
    question = {"settings": EDUCATION, "filter": men}
    answer = json.loads(live.ask("api/population", question)[1])
    rows = DATA[(DATA["gender"] == SCM.schema_["gender"].levels[1]) & DATA["age"].between(-5, 5)]
    assert answer["rows"] == len(rows) < len(DATA)
    truth = SCM.counterfactual(rows, {"education": 0.5}, seed=0)
    assert answer["columns"]["income"]["means"] == [rows["income"].mean(), truth["income"].mean()]
    assert sum(answer["columns"]["income"]["after"]) == len(rows)
    assert "gender" not in answer["columns"]
    effect = json.loads(live.ask("api/effect", {**question, "outcome": "income"})[1])
    means = answer["columns"]["income"]["means"]
    assert effect["value"] == pytest.approx(means[1] - means[0])
    assert effect["low"] <= effect["value"] <= effect["high"]
    assert "If education had been 0.5 for everyone, income would be" in effect["sentence"]
    assert "between(-5, 5)" in effect["code"]["python"]


def test_the_data_say_what_they_think_of_a_graph(live):
    edges = [list(edge) for edge in SCM.graph.edges]
    cut = [edge for edge in edges if edge != ["income", "savings"]]
    answer = json.loads(live.ask("api/check", {"edges": cut})[1])
    assert answer["verdict"] == "bad"
    assert any("income" in words and "savings" in words for words in answer["arrows"])


def test_the_graph_is_checked_and_saved(live):
    edges = [list(edge) for edge in SCM.graph.edges]
    assert json.loads(live.ask("api/graph", {"edges": edges})[1])["edges"] == edges
    reply, text = live.ask("api/graph", {"edges": [*edges, ["savings", "gender"]]})
    assert reply.status == 422 and "cycle" in json.loads(text)["error"]
    reply, text = live.ask("api/save", {"edges": edges[1:]})
    assert json.loads(text) == {"saved": "graph.txt"}
    saved = vaca.CausalGraph.read(live.session.graph_file)
    assert set(saved.edges) == {tuple(edge) for edge in edges[1:]}


def test_a_fit_to_another_graph(tmp_path):
    found = {}

    def fit(model, graph, table):
        found["graph"] = graph
        return model

    session = Session(SCM, DATA, graph_file=tmp_path / "graph.txt", fit=fit)
    assert session.refit({"edges": [["age", "income"]]})["state"] in ("running", "done")
    while session.status({})["state"] == "running":
        pass
    assert session.status({}) == {"state": "done"}
    assert found["graph"].edges == (("age", "income"),)
    with pytest.raises(VacaError, match="known SCM"):
        Session(SCM, DATA).refit({"edges": []})
    with pytest.raises(VacaError, match="no file to save"):
        Session(SCM, DATA).save({"edges": []})


def test_a_large_table_is_explored_by_some_of_its_rows():
    many = pd.concat([DATA] * (ROWS // len(DATA) + 2), ignore_index=True)
    session = Session(SCM, many)
    assert session.start({})["rows"] == ROWS and session.start({})["all_rows"] == len(many)
    place = session.positions[5]
    assert session.data.iloc[5].equals(many.iloc[place])
    assert f"df.iloc[[{place}]]" in session.person({"row": 5})["code"]["python"]


# ---------------------------------------------------------------------- who may ask


def test_only_the_token_opens(live):
    for token in ("", "x", live.token[:-1], live.token + "x", live.token.lower()):
        reply, text = live.ask("", token=token, method="GET")
        assert reply.status == 403 and "vaca explore" in text
    assert live.ask("", method="GET")[0].status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "evil.example:80"}, {"Origin": "http://evil.example"}],
)
def test_foreign_hosts_and_sites_are_refused(live, headers):
    assert live.ask("api/person", {}, headers=headers)[0].status == 403


def test_headers_are_strict(live):
    for path, method in (("", "GET"), ("nothing", "GET"), ("api/start", "POST")):
        headers = live.ask(path, method=method)[0].headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/page.css", "api/../ladder.js",
     "page.css", "api/_fit", "api/__init__", "api/model", "graph.txt", "//etc/passwd", "%00"],
)  # fmt: skip
def test_no_path_leads_outside(live, path):
    for method in ("GET", "POST"):
        reply, text = live.ask(path, method=method)
        assert reply.status in (403, 404, 405)
        assert "root:" not in text and len(text) < 200


def test_wrong_questions_are_refused_in_words(live):
    bad = [
        ("person", {"row": -1}), ("person", {"row": 10**9}), ("person", {"row": "0"}),
        ("person", {"row": True}), ("person", {"settings": []}),
        ("person", {"settings": {"agee": {"value": 1}}}), ("person", {"settings": {"age": 1}}),
        ("person", {"settings": {"age": {"value": "1"}}}),
        ("person", {"settings": {"age": {"value": 1e300}}}),
        ("person", {"settings": {"age": {"value": 1, "shift": 2}}}),
        ("person", {"settings": {"gender": {"level": 2}}}),
        ("person", {"settings": {"gender": {"level": 0.5}}}),
        ("population", {"filter": {"age": {"low": 1}}}), ("population", {"filter": 3}),
        ("population", {"filter": {"age": {"low": 1000, "high": 2000}}}),
        ("population", {"filter": {"gender": {"levels": [9]}}}),
        ("effect", {"outcome": "income"}), ("effect", {"outcome": None, "settings": EDUCATION}),
        ("graph", {}), ("graph", {"edges": [["age"]]}), ("graph", {"edges": [["age", "../x"]]}),
        ("graph", {"edges": [["age", "age"]]}), ("refit", {"edges": 1}), ("save", {"edges": "a"}),
    ]  # fmt: skip
    for name, body in bad:
        reply, text = live.ask(f"api/{name}", body)
        assert reply.status == 422, (name, body, text)
        assert json.loads(text)["error"]
    for body, status in ((b"{", 400), (b"[]", 400), (b"[" * 100_000, 400), (b'{"row": NaN}', 400),
                         (b"\xff\xfe", 400), (b" " * (server.MOST_BYTES + 1), 413)):  # fmt: skip
        assert live.ask("api/person", body)[0].status == status
    assert live.ask("api/person", {}, headers={"Content-Type": "text/plain"})[0].status == 415


def test_a_thousand_malformed_requests(live):
    rng = random.Random(0)
    good = f"POST /{live.token}/api/person HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n"
    good += "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    refused = 0
    for _ in range(1000):
        broken = bytearray(good.encode())
        for _ in range(rng.randint(1, 12)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if rng.random() < 0.3:
            broken = broken[: rng.randrange(len(broken))]
        with socket.create_connection(("127.0.0.1", live.port), timeout=30) as line:
            line.sendall(bytes(broken))
            line.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := line.recv(65536):
                answer += piece
        first = answer.split(b"\r\n", 1)[0]
        assert first == b"" or first.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")), first
        assert b"Traceback" not in answer
        refused += not first.startswith(b"HTTP/1.1 2")
    assert refused > 200
    assert live.ask("api/person", {"row": 1})[0].status == 200


# ---------------------------------------------------------------------- in a browser


@pytest.mark.browser
@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "light"), (DESKTOP, "dark")]
)
def test_the_keyboard_gives_the_librarys_number(live, browser, size, scheme):
    with look(browser, live.address, size, color_scheme=scheme) as view:
        view.wait_for_selector("#rungs tr")
        slider = view.locator("input[type=range][aria-label=age]")
        slider.focus()
        view.keyboard.press("ArrowRight")
        view.wait_for_selector("tr.set[data-column=age]")
        age = float(slider.input_value())
        cell = view.locator("tr[data-column=income] .would")
        truth = SCM.counterfactual(DATA.iloc[[0]], {"age": age}, seed=0)["income"].iloc[0]
        assert float(cell.get_attribute("data-value")) == truth
        assert "Had age been " in view.inner_text("#answer")
        assert "unchanged" in view.inner_text("tr[data-column=gender]")
        view.wait_for_selector("#charts svg[aria-label^=income]")
        view.wait_for_selector("#effect[data-value]")


@pytest.mark.browser
def test_the_graph_can_be_drawn(live, browser):
    with look(browser, live.address) as view:
        view.wait_for_selector("#picture svg")
        view.select_option("#from", "savings")
        view.select_option("#to", "gender")
        view.click("#add")
        assert "close a circle: savings → gender → " in view.inner_text("#graph-says")
        view.select_option("#from", "gender")
        view.select_option("#to", "age")
        view.click("#add")
        view.wait_for_selector(".edge.new")
        view.click("#save")
        view.wait_for_selector("#graph-says:has-text('Saved')")
    assert ("gender", "age") in vaca.CausalGraph.read(live.session.graph_file).edges


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_use_it(live, browser, scheme):
    def prepare(view):
        view.wait_for_selector("#rungs tr")
        view.locator("input[type=range][aria-label=education]").press("ArrowRight")
        view.wait_for_selector("#effect[data-value]")
        for summary in view.locator("summary").all():
            summary.click()

    assert violations(browser, live.address, prepare, color_scheme=scheme) == []


def test_names_with_odd_letters_stay_data():
    code = code_for("my model", "it's.csv", {"a b": "x; rm -rf /"}, row=0)
    assert (
        code["command"] == "vaca counterfactual 'my model' 'it'\"'\"'s.csv' --do 'a b=x; rm -rf /'"
    )


def test_other_columns_of_a_node_keep_their_values():
    graph = vaca.CausalGraph.from_edges([("g", "y")], columns={"g": ("a", "b")})
    table = pd.DataFrame({"a": [1.1, 2.2] * 40, "b": [3.5, 4.5, 5.5, 6.5] * 20})
    table["y"] = table["a"] + table["b"]
    model = vaca.AdditiveNoise(graph).fit(table, progress=False)
    do, plain = read_settings({"a": {"value": 9}}, model, table.iloc[[1]])
    assert plain == {"a": 9} and do["g"]["b"].tolist() == [4.5]
    answer = ask_person(model, table.iloc[[1]], {"a": {"value": 1.5}})
    assert answer["columns"]["a"]["after"] == 1.5 and answer["columns"]["b"]["after"] == 4.5
    assert filter_rows(model, table, {"b": {"low": 3, "high": 5}}).sum() == 40
