"use strict";
// What if, in the report: answers were computed beforehand; this picks one and draws it.
(() => {
  const { make, shown, show, sentence } = ladder;
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("whatif-data").textContent);
  const byName = new Map(data.columns.map((column) => [column.name, column]));
  let chosen = null; // reads the number of the setting from its control

  const answer = (person, name, stop) => {
    const { stops, answers } = data.causes[name];
    const place = person * stops.length + stop;
    const columns = {};
    for (const column of data.columns) {
      const before = data.people[person].before[column.name];
      const found = answers[column.name];
      const one = { before, after: before, role: "still" };
      if (column.name === name) Object.assign(one, { after: stops[stop], role: "set" });
      else if (found) {
        one.role = "reached";
        for (const key of Object.keys(found)) one[key] = found[key][place];
      }
      columns[column.name] = one;
    }
    return { columns };
  };

  const update = () => {
    const name = at("cause").value, person = Number(at("person").value), stop = chosen();
    const found = answer(person, name, stop);
    const column = byName.get(name); // a list of levels says for itself which is chosen
    at("said").textContent = column.levels ? "" : shown(column, data.causes[name].stops[stop]);
    at("sentence").textContent = sentence(data.columns, found, data.outcome);
    show(at("rungs"), data.columns, found);
  };

  const nearest = (stops, value) =>
    stops.reduce((best, stop, i) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? i : best), 0);

  // The control of a cause: a slider over its stops, or a list of its levels.
  const control = () => {
    const name = at("cause").value, column = byName.get(name), { stops } = data.causes[name];
    const before = data.people[Number(at("person").value)].before[name];
    const start = nearest(stops, before);
    const asked = data.start.cause === name ? data.start.stop : undefined;
    if (column.levels) {
      const select = make("select");
      select.setAttribute("aria-label", name);
      column.levels.forEach((level, code) => select.append(new Option(level, code)));
      select.value = asked ?? (start === stops.length - 1 ? 0 : stops.length - 1);
      chosen = () => Number(select.value);
      select.addEventListener("input", update);
      at("setting").replaceChildren(select);
      return;
    }
    const holder = make("div", "slider"), range = make("input");
    range.type = "range";
    range.min = 0; range.max = stops.length - 1; range.step = 1;
    range.value = asked ?? (start > stops.length / 2 ? Math.floor(stops.length / 4) : Math.ceil((3 * stops.length) / 4) - 1);
    range.setAttribute("aria-label", name);
    const last = stops.length - 1, wide = stops[last] - stops[0];
    for (const [from, to] of [[stops[0], column.low], [column.high, stops[last]]]) {
      if (to <= from) continue;
      const hatch = make("span", "hatch");
      hatch.style.left = (100 * (from - stops[0])) / wide + "%";
      hatch.style.width = (100 * (to - from)) / wide + "%";
      holder.append(hatch);
    }
    chosen = () => Number(range.value);
    range.addEventListener("input", () => {
      range.setAttribute("aria-valuetext", shown(column, stops[chosen()]));
      update();
    });
    range.setAttribute("aria-valuetext", shown(column, stops[chosen()]));
    holder.append(range);
    at("setting").replaceChildren(holder);
  };

  data.people.forEach((person, i) => at("person").append(new Option("row " + person.label, i)));
  for (const name of Object.keys(data.causes)) at("cause").append(new Option(name, name));
  if (data.start.cause) at("cause").value = data.start.cause;
  const again = () => { control(); update(); };
  at("person").addEventListener("input", again);
  at("cause").addEventListener("input", again);
  again();
  at("live").hidden = false;
  at("plain").classList.add("print-only");
})();
