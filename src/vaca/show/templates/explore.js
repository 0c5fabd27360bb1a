"use strict";
// The explorer: sends what is set to the server beside it, and draws what comes back.
(() => {
  const { make, number, shown, show, sentence } = ladder;
  const at = (id) => document.getElementById(id);
  let model, edges, answers = {}, settings = {}, filters = {}, asked = 0, picked = null;

  const ask = async (name, body = {}) => {
    const reply = await fetch("api/" + name, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const type = reply.headers.get("content-type") || "";
    const answer = type.startsWith("application/json") ? await reply.json() : { error: await reply.text() };
    if (!reply.ok) throw new Error(answer.error || "The question could not be answered.");
    return answer;
  };

  // ------------------------------------------------------------------ what is set

  const control = (column) => {
    const field = make("fieldset", "off");
    const legend = make("legend"), label = make("label"), box = make("input");
    box.type = "checkbox";
    box.dataset.set = column.name;
    label.append(box, " ", column.name);
    legend.append(label);
    field.append(legend);
    const take = (on, setting) => {
      box.checked = on;
      field.classList.toggle("off", !on);
      if (on) settings[column.name] = setting();
      else delete settings[column.name];
      later();
    };
    let setting;
    if (column.levels) {
      const select = make("select", "value");
      select.setAttribute("aria-label", column.name);
      column.levels.forEach((level, code) => select.append(new Option(level, code)));
      setting = () => ({ level: Number(select.value) });
      select.addEventListener("input", () => take(true, setting));
      field.append(select);
      field.factual = (value) => { select.value = value; };
    } else {
      const holder = make("div", "slider"), range = make("input"), value = make("input", "value");
      range.type = "range";
      value.type = "number";
      for (const input of [range, value]) input.setAttribute("aria-label", column.name);
      range.min = column.min; range.max = column.max; range.step = column.step;
      value.step = "any";
      for (const [from, to] of [[column.min, column.low], [column.high, column.max]]) {
        if (to <= from) continue;
        const hatch = make("span", "hatch"), wide = column.max - column.min;
        hatch.style.left = (100 * (from - column.min)) / wide + "%";
        hatch.style.width = (100 * (to - from)) / wide + "%";
        holder.append(hatch);
      }
      holder.append(range);
      setting = () => ({ value: Number(value.value) });
      range.addEventListener("input", () => { value.value = range.value; take(true, setting); });
      value.addEventListener("input", () => {
        if (value.value === "" || !Number.isFinite(Number(value.value))) return;
        range.value = value.value;
        take(true, setting);
      });
      const row = make("div", "row");
      row.append(value);
      field.append(holder, row);
      field.factual = (number_) => { range.value = number_; value.value = number_; };
    }
    box.addEventListener("input", () => take(box.checked, setting));
    field.column = column.name;
    return field;
  };

  const reset = () => {
    settings = {};
    for (const field of at("settings").children) {
      field.classList.add("off");
      field.querySelector("input[type=checkbox]").checked = false;
    }
    later();
  };

  // ------------------------------------------------------------------ answers

  let timer;
  const later = () => { clearTimeout(timer); timer = setTimeout(answer, 60); };

  const answer = async () => {
    const mine = ++asked;
    const row = Math.min(model.rows - 1, Math.max(0, Math.round(Number(at("row").value) || 0)));
    const outcome = at("outcome").value;
    try {
      const person = await ask("person", { row, settings });
      if (mine !== asked) return; // a later question is under way
      answers.person = person;
      show(at("rungs"), model.columns, person);
      at("answer").textContent = sentence(model.columns, person, outcome);
      at("outside").hidden = !person.outside.length;
      at("outside").textContent = "Outside the data: " + person.outside.join("; ") + ". Read it as an extrapolation.";
      at("person-python").textContent = person.code.python;
      at("person-command").textContent = person.code.command;
      for (const field of at("settings").children) {
        if (!(field.column in settings)) field.factual(person.columns[field.column].before);
      }
      if (!Object.keys(settings).length) {
        at("charts").replaceChildren();
        at("effect").textContent = "Set something to see the population before and after.";
        at("all-python").textContent = at("all-command").textContent = "";
        return;
      }
      const population = await ask("population", { settings, filter: filters });
      if (mine !== asked) return;
      answers.population = population;
      at("charts").replaceChildren(...model.columns.filter((c) => population.columns[c.name]).map((c) => chart(c, population)));
      const effect = await ask("effect", { settings, filter: filters, outcome });
      if (mine !== asked) return;
      answers.effect = effect;
      at("effect").textContent = effect.sentence.replace("for everyone", "for these " + population.rows.toLocaleString("en"));
      at("effect").dataset.value = effect.value;
      at("all-python").textContent = effect.code.python;
      at("all-command").textContent = effect.code.command;
    } catch (error) {
      if (mine === asked) at(answers.person ? "effect" : "answer").textContent = error.message;
    }
  };

  const svg = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const chart = (column, population) => {
    const one = population.columns[column.name], high = 96, wide = 260;
    const most = Math.max(...one.before, ...one.after) || 1;
    const figure = make("figure");
    let words;
    const picture = svg("svg", { viewBox: "0 0 260 118", role: "img" });
    if (column.levels) {
      const step = wide / column.levels.length;
      one.before.forEach((share, i) => {
        for (const [value, kind, shift] of [[share, "before", 0.12], [one.after[i], "bar-after", 0.5]]) {
          const tall = ((high - 18) * value) / most;
          picture.append(svg("rect", { class: kind, x: step * (i + shift), y: high - tall, width: step * 0.34, height: tall }));
        }
        const name = column.levels[i];
        picture.append(svg("text", { class: "faint", x: step * (i + 0.5), y: 112, "text-anchor": "middle" }, name.length * 6.3 > step ? name.slice(0, Math.max(1, Math.floor(step / 6.3) - 1)) + "…" : name));
      });
      words = column.levels.map((level, i) => level + " " + Math.round(100 * one.before[i]) + " → " + Math.round(100 * one.after[i]) + " %").join(", ");
    } else {
      const step = wide / one.before.length;
      let line = "M0 " + high;
      one.before.forEach((count, i) => {
        const tall = ((high - 6) * count) / most, top = high - ((high - 6) * one.after[i]) / most;
        picture.append(svg("rect", { class: "before", x: i * step, y: high - tall, width: step + 0.3, height: tall }));
        line += "V" + top + "h" + step;
      });
      picture.append(svg("path", { class: "after", d: line + "V" + high }));
      picture.append(svg("text", { class: "faint", x: 0, y: 112 }, number(one.edges[0])), svg("text", { class: "faint", x: wide, y: 112, "text-anchor": "end" }, number(one.edges[1])));
      words = "mean " + number(one.means[0]) + " → " + number(one.means[1]);
    }
    picture.append(svg("path", { class: "axis", d: "M0 " + high + "H" + wide }));
    picture.setAttribute("aria-label", column.name + ", before (grey) and after (orange): " + words);
    figure.append(make("figcaption", "", column.name + ": " + words), picture);
    return figure;
  };

  // ------------------------------------------------------------------ subgroups

  const filterInputs = () => {
    const column = model.columns.find((c) => c.name === at("filter-column").value);
    at("filter-add").disabled = !column;
    if (!column) return at("filter-value").replaceChildren();
    if (column.levels) {
      const select = make("select");
      select.setAttribute("aria-label", "level of " + column.name);
      column.levels.forEach((level, code) => select.append(new Option(level, code)));
      at("filter-value").replaceChildren(select);
    } else {
      const ends = [column.low, column.high].map((value, i) => {
        const input = make("input");
        input.type = "number"; input.step = "any"; input.value = value;
        input.setAttribute("aria-label", column.name + (i ? " at most" : " at least"));
        return input;
      });
      at("filter-value").replaceChildren("from ", ends[0], " to ", ends[1]);
    }
  };

  const addFilter = () => {
    const column = model.columns.find((c) => c.name === at("filter-column").value);
    const values = [...at("filter-value").querySelectorAll("select, input")].map((e) => Number(e.value));
    filters[column.name] = column.levels ? { levels: values } : { low: values[0], high: values[1] };
    drawFilters();
  };

  const drawFilters = () => {
    at("filters").replaceChildren(
      ...Object.entries(filters).map(([name, filter]) => {
        const column = model.columns.find((c) => c.name === name);
        const words = column.levels ? filter.levels.map((c) => column.levels[c]).join(" or ") : number(filter.low) + " to " + number(filter.high);
        const button = make("button", "", name + ": " + words + " ✕");
        button.type = "button";
        button.setAttribute("aria-label", "No longer only " + name + " " + words);
        button.addEventListener("click", () => { delete filters[name]; drawFilters(); });
        return button;
      }),
    );
    later();
  };

  // ------------------------------------------------------------------ the graph

  const has = (list, edge) => list.some(([a, b]) => a === edge[0] && b === edge[1]);

  // A way along the arrows, or null: with it a new arrow back would close a circle.
  const way = (list, from, to) => {
    const before = new Map([[from, null]]), open = [from];
    while (open.length) {
      const node = open.shift();
      if (node === to) {
        const path = [];
        for (let n = to; n !== null; n = before.get(n)) path.unshift(n);
        return path;
      }
      for (const [a, b] of list) if (a === node && !before.has(b)) { before.set(b, a); open.push(b); }
    }
    return null;
  };

  const says = (text) => { at("graph-says").textContent = text; };

  const change = (next, [from, to], done) => {
    const circle = way(next, to, from);
    if (from === to) return says("An arrow needs two different ends.");
    if (circle) return says("That would close a circle: " + [from, ...circle].join(" → ") + ". A cause cannot be its own effect.");
    edges = [...next, [from, to]];
    redraw(done);
  };

  const addArrow = (from, to) =>
    has(edges, [from, to]) ? says("There is an arrow from " + from + " to " + to + " already.")
      : change(edges, [from, to], from + " → " + to + " added. Answers change after a new fit.");
  const without = (edge) => edges.filter(([a, b]) => a !== edge[0] || b !== edge[1]);

  const redraw = async (words) => {
    try {
      drawGraph(await ask("graph", { edges }));
      says(words || "");
    } catch (error) { says(error.message); }
  };

  const drawGraph = (graph) => {
    edges = graph.edges;
    const X = 165, Y = 62, W = 128, H = 36;
    const xs = graph.nodes.map((n) => n.x), ys = graph.nodes.map((n) => n.y);
    const left0 = Math.min(...xs), top = Math.min(...ys, ...graph.routes.flat().map((p) => p[1]));
    const wide = (Math.max(...xs) - left0) * X + W + 8, tall = (Math.max(...ys, ...graph.routes.flat().map((p) => p[1])) - top) * Y + H + 24;
    const spot = new Map(graph.nodes.map((n) => [n.name, [(n.x - left0) * X + 4, (n.y - top) * Y + 12]]));
    const picture = svg("svg", { viewBox: "0 0 " + wide + " " + tall, width: wide, role: "img", "aria-label": "Causal graph with " + edges.length + " arrows: " + edges.map((e) => e.join(" to ")).join(", ") });
    const tip = svg("marker", { id: "tip", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto" });
    tip.append(svg("path", { class: "tip", d: "M0 0L10 5L0 10z" }));
    picture.append(tip);
    // Past a layer an arrow runs level, between layers it swings: so it meets no box on its way.
    const line = (edge, kind, route) => {
      const [x1, y1] = spot.get(edge[0]), [x2, y2] = spot.get(edge[1]);
      let at = [x1 + W, y1 + H / 2], d = "M" + at;
      const swing = (to) => { const middle = (at[0] + to[0]) / 2; d += "C" + [middle, at[1], middle, to[1], ...to]; at = to; };
      for (const [x, y] of route) {
        const left = (x - left0) * X + 4, level = (y - top) * Y + 12 + H / 2;
        swing([left, level]);
        d += "H" + (left + W);
        at = [left + W, level];
      }
      if (x2 > x1) swing([x2, y2 + H / 2]);
      else d = "M" + [x1 + W / 2, y1 + H] + "L" + [x2 + W / 2, y2];
      picture.append(svg("path", { class: "edge " + kind, d, "marker-end": "url(#tip)" }));
    };
    for (const edge of graph.fitted) if (!has(edges, edge)) line(edge, "gone", []);
    edges.forEach((edge, i) => line(edge, has(graph.fitted, edge) ? "" : "new", graph.routes[i]));
    for (const node of graph.nodes) {
      const [x, y] = spot.get(node.name), group = svg("g", { class: "node" });
      group.append(svg("rect", { class: "box" + (picked === node.name ? " chosen" : ""), x, y, width: W, height: H, rx: 8 }));
      const name = node.name.length > 17 ? node.name.slice(0, 16) + "…" : node.name;
      group.append(svg("text", { x: x + W / 2, y: y + H / 2 + 5, "text-anchor": "middle" }, name));
      group.addEventListener("click", () => {
        if (picked === null) { picked = node.name; says("An arrow from " + node.name + " to … click its effect."); drawGraph(graph); }
        else { const from = picked; picked = null; drawGraph(graph); if (from !== node.name) addArrow(from, node.name); else says(""); }
      });
      picture.append(group);
    }
    at("picture").replaceChildren(picture);
    at("arrows").replaceChildren(...edges.map((edge) => {
      const item = make("li", "", edge[0] + " → " + edge[1] + " ");
      for (const [word, act] of [
        ["Remove", () => { edges = without(edge); redraw(edge.join(" → ") + " removed. Answers change after a new fit."); }],
        ["Reverse", () => change(without(edge), [edge[1], edge[0]], edge[1] + " → " + edge[0] + " now. Answers change after a new fit.")],
      ]) {
        const button = make("button", "", word);
        button.type = "button";
        button.setAttribute("aria-label", word + " the arrow from " + edge[0] + " to " + edge[1]);
        button.addEventListener("click", act);
        item.append(button);
      }
      return item;
    }));
  };

  const checkGraph = async () => {
    at("check").disabled = true;
    says("Testing what the graph claims …");
    try {
      const found = await ask("check", { edges });
      says("What the data say about this graph: " + found.verdict + ".");
      const lines = found.parts.map((one) => one.part + " (" + one.verdict + "): " + one.words);
      const items = [...lines, ...found.arrows].map((words) => make("li", "", words));
      at("check-says").replaceChildren(...items);
      at("check-says").hidden = false;
    } catch (error) { says(error.message); }
    at("check").disabled = false;
  };

  const saveGraph = async () => {
    try { says("Saved to " + (await ask("save", { edges })).saved + "."); } catch (error) { says(error.message); }
  };

  const refit = async () => {
    try {
      let job = await ask("refit", { edges });
      at("refit").disabled = true;
      while (job.state === "running") {
        says("Fitting to the new graph: " + Math.round(job.seconds) + " s …");
        await new Promise((done) => setTimeout(done, 500));
        job = await ask("status");
      }
      if (job.state === "failed") says("The fit failed: " + job.error);
      else { await begin(); says("Fitted: all answers are of this graph now. To keep it, save the graph and run vaca fit."); }
    } catch (error) { says(error.message); }
    at("refit").disabled = false;
  };

  // ------------------------------------------------------------------ downloads

  const download = (name, content) => {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(content, null, 2)], { type: "application/json" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // ------------------------------------------------------------------ start

  const begin = async () => {
    model = await ask("start");
    settings = {}; filters = {}; picked = null;
    const rows = model.all_rows > model.rows ? model.rows.toLocaleString("en") + " of " + model.all_rows.toLocaleString("en") + " rows" : model.rows.toLocaleString("en") + " rows";
    at("about").textContent = model.engine + " from " + model.names[0] + ", " + rows + " of " + model.names[1] + (model.refits ? "; bands cover " + model.refits + " refits" : "");
    document.title = "What if? " + model.names[0];
    at("row").max = model.rows - 1;
    at("settings").replaceChildren(...model.columns.map(control));
    at("outcome").replaceChildren(...model.columns.filter((c) => c.parents.length).map((c) => new Option(c.name, c.name)));
    at("outcome").value = at("outcome").lastElementChild ? at("outcome").lastElementChild.value : "";
    at("filter-column").replaceChildren(new Option("no limit", ""), ...model.columns.map((c) => new Option(c.name, c.name)));
    const nodes = [...new Set(model.columns.map((c) => c.node))];
    for (const id of ["from", "to"]) at(id).replaceChildren(...nodes.map((n) => new Option(n, n)));
    if (nodes.length > 1) at("to").value = nodes[1];
    at("refit").hidden = !model.can_fit;
    at("save").hidden = !model.graph_file;
    filterInputs(); drawFilters();
    drawGraph(model.graph);
    await answer();
  };

  const move = (by) => { at("row").value = (Number(at("row").value) + by + model.rows) % model.rows; later(); };
  at("before").addEventListener("click", () => move(-1));
  at("next").addEventListener("click", () => move(1));
  at("random").addEventListener("click", () => move(1 + Math.floor(Math.random() * (model.rows - 1))));
  at("row").addEventListener("input", later);
  at("outcome").addEventListener("input", later);
  at("reset").addEventListener("click", reset);
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("filter-column").addEventListener("input", filterInputs);
  at("filter-add").addEventListener("click", addFilter);
  at("add").addEventListener("click", () => addArrow(at("from").value, at("to").value));
  at("check").addEventListener("click", checkGraph);
  at("save").addEventListener("click", saveGraph);
  at("refit").addEventListener("click", refit);
  at("undo").addEventListener("click", () => { edges = model.graph.fitted; redraw("Back to the fitted graph."); });
  at("person-save").addEventListener("click", () => download("person.json", { settings, ...answers.person }));
  at("all-save").addEventListener("click", () => download("population.json", { settings, filters, effect: answers.effect, ...answers.population }));
  begin().catch((error) => { at("about").textContent = error.message; });
})();
