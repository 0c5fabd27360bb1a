"use strict";
// A row as it was and as it would have been: a rung for each column, and the answer in a sentence.
// The report and the explorer share it. Values are numbers, or codes of levels.
const ladder = (() => {
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // A number as people write it: separators, no exponent, three digits that count.
  const number = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e15 || size < 1e-9)) return value.toExponential(2);
    const digits = size >= 1000 || size === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(size)));
    const text = size.toLocaleString("en", { maximumFractionDigits: Math.min(digits, 11) });
    return value < 0 && /[1-9]/.test(text) ? "−" + text : text;
  };
  const shown = (column, value) =>
    column.levels ? column.levels[value] : number(value) + (column.unit ? " " + column.unit : "");

  // Where a value stands on its rail, in percent.
  const place = (column, value) => {
    if (column.levels) return (100 * (value + 0.5)) / column.levels.length;
    const at = (100 * (value - column.min)) / (column.max - column.min || 1);
    return Math.min(100, Math.max(0, at));
  };

  const mark = (rail, className, left, width) => {
    const element = make("span", className);
    element.style.left = left + "%";
    if (width !== undefined) element.style.width = width + "%";
    rail.append(element);
    return element;
  };

  const drawRail = (column, one) => {
    const rail = make("div", "rail");
    if (!column.levels) {
      const low = place(column, column.low), high = place(column, column.high);
      if (low > 0) mark(rail, "out", 0, low);
      if (high < 100) mark(rail, "out", high, 100 - high);
      if (one.low !== undefined && one.high > one.low) {
        const from = place(column, one.low);
        mark(rail, "band", from, Math.max(place(column, one.high) - from, 0.6));
      }
    } else if (one.shares) {
      one.shares.forEach((share, code) => {
        if (share > 0) mark(rail, "share", place(column, code)).style.height = 50 * share + "%";
      });
    }
    mark(rail, "fact", place(column, one.before));
    if (one.role !== "still") mark(rail, "cf", place(column, one.after));
    return rail;
  };

  const range = (column, one) => {
    if (one.role !== "reached") return "";
    if (one.shares) {
      const share = one.shares[one.after];
      return share < 0.995 ? Math.round(100 * share) + " % sure" : "";
    }
    return one.high > one.low ? number(one.low) + " to " + number(one.high) : "";
  };

  // Fill the body of a table with the rungs of an answer.
  const show = (body, columns, answer) => {
    body.replaceChildren(
      ...columns.map((column) => {
        const one = answer.columns[column.name];
        const row = make("tr", one.role);
        row.dataset.column = column.name;
        const head = make("th", "", column.name);
        head.scope = "row";
        const track = make("td", "track");
        track.setAttribute("aria-hidden", "true");
        track.append(drawRail(column, one));
        const was = make("td", "was", shown(column, one.before));
        const would = make("td", "would");
        if (one.role === "still") {
          would.textContent = "unchanged";
        } else {
          would.append(make("b", "", shown(column, one.after)));
          const words = range(column, one);
          if (words) would.append(make("span", "range", words));
        }
        would.dataset.value = one.after;
        row.append(head, track, was, would);
        return row;
      }),
    );
  };

  const list = (words) =>
    words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " and " + words.at(-1);

  const change = (column, one) => {
    const words = range(column, one);
    const said = shown(column, one.after);
    const same = said === shown(column, one.before);
    return column.name + (same ? " would still be " : " would have been ") + said +
      (words ? " (" + words + ")" : "") + (same ? "" : " instead of " + shown(column, one.before));
  };

  // The answer in a sentence: what was set, and what that does to the outcome.
  const sentence = (columns, answer, outcome) => {
    const of = (role) => columns.filter((c) => answer.columns[c.name].role === role);
    const set = of("set");
    if (!set.length) return "Nothing is set: this is the person as they were.";
    const had = list(set.map((c) => c.name + " been " + shown(c, answer.columns[c.name].after)));
    const reached = of("reached");
    const chosen = reached.find((c) => c.name === outcome) || reached.at(-1);
    if (!chosen) return "Had " + had + ", nothing else would have changed: no arrow leads on.";
    const other = columns.find((c) => c.name === outcome);
    const kept = other && other !== chosen && answer.columns[outcome].role === "still"
      ? outcome + " would not have changed, as no arrow leads there; " : "";
    return "Had " + had + ", " + kept + change(chosen, answer.columns[chosen.name]) + ".";
  };

  return { make, number, shown, place, show, sentence };
})();
