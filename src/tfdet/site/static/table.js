"use strict";
// The big table: cells from columns of numbers, what is chosen in the address.
(() => {
  const { words, titles, apis, solutions } = window.tfdetWords;
  const coded = ["environment", "source", "solution", "device", "verdict", "backing", "claim", "audit"];
  const rows = [];
  for (let shard = 0; window["tfdetCells" + shard]; shard++) {
    const columns = window["tfdetCells" + shard], names = Object.keys(columns);
    for (let at = 0; at < columns.environment.length; at++) {
      const row = { id: rows.length };
      for (const name of names) row[name] = columns[name][at];
      rows.push(row);
    }
  }
  // What differs comes first, with its solutions: cells that share environment, source and device stay together.
  const together = (row) => `${row.environment}.${row.source}.${row.device}`;
  const differing = new Set(rows.filter((row) => words.verdict[row.verdict] === "nondeterministic").map(together));
  rows.sort((one, other) => differing.has(together(other)) - differing.has(together(one)));
  const byId = (id) => document.getElementById(id);
  const symbols = { "nondeterministic": "✗", "schedule-independent": "∎", "deterministic": "✓", "too few runs": "?", "not shown to differ": "≈",
    "raises": "!", "failed": "#", "stale": "~", "unsupported": "–" };
  const never = "never run";
  const page = (row) => `cells/${words.environment[row.environment]}/${words.source[row.source]}.html` +
    `#${words.device[row.device]}.${words.solution[row.solution]}`;

  // How cells look: never as markup of what they say.
  const text = (name) => (cell) => {
    const shown = document.createElement("span");
    shown.textContent = words[name][cell.getValue()];
    return shown;
  };
  // A code and, below it, what it stands for; a line may break after its dots and underscores.
  const solution = (cell) => {
    const shown = document.createElement("span"), name = document.createElement("small");
    for (const part of solutions[cell.getValue()].split(/(?<=[._])/)) name.append(part, document.createElement("wbr"));
    shown.append(words.solution[cell.getValue()], name);
    return shown;
  };
  const link = (cell) => {
    const row = cell.getData(), shown = document.createElement("a");
    shown.href = page(row);
    shown.tabIndex = -1;
    shown.textContent = words.source[row.source];
    shown.title = titles[row.source];
    return shown;
  };
  const verdict = (cell) => {
    const row = cell.getData(), word = words.verdict[row.verdict], shown = document.createElement("span");
    shown.className = "verdict " + words.kind[row.kind];
    shown.textContent = word ? `${symbols[word]} ${word}` : words.claim[row.claim] ? `claimed: ${words.claim[row.claim]}`
      : words.backing[row.backing] === "audited" ? `audited: ${words.audit[row.audit]}` : never;
    return shown;
  };
  const backing = (cell) => {
    const word = words.backing[cell.getValue()], shown = document.createElement("span");
    shown.className = word ? "backing " + word : "";
    shown.textContent = word;
    return shown;
  };
  const atMost = (share) => share === null ? "" : `≤ ${(share * 100).toPrecision(2)} %`;
  const percent = (cell) => atMost(cell.getValue());
  const ratio = (cell) => cell.getValue() === null ? "" : `× ${cell.getValue()}`;
  const count = (cell) => cell.getValue() || "";
  // The number of runs and, below it, how often a difference may occur at most, if none was seen.
  const runs = (cell) => {
    const shown = document.createElement("span"), bound = document.createElement("small");
    bound.textContent = atMost(cell.getData().bound);
    shown.append(count(cell), bound);
    return shown;
  };

  const plain = { headerTooltip: true };
  const number = { ...plain, hozAlign: "right", sorter: "number", sorterParams: { alignEmptyValues: "bottom" } };
  const columns = [
    { title: "Environment", field: "environment", formatter: text("environment"), width: 136, ...plain },
    { title: "Source", field: "source", formatter: link, minWidth: 200, widthGrow: 2, ...plain },
    { title: "Solution", field: "solution", formatter: solution, minWidth: 188, widthGrow: 1, ...plain },
    { title: "Device", field: "device", formatter: text("device"), width: 116, ...plain },
    { title: "Verdict", field: "verdict", formatter: verdict, width: 208, ...plain },
    { title: "Backing", field: "backing", formatter: backing, width: 118, ...plain },
    { title: "Differed", field: "differed", formatter: count, width: 98, ...number },
    { title: "Runs", field: "runs", formatter: runs, width: 80, ...number },
    { title: "Time", field: "time", formatter: ratio, width: 80, ...number },
    { title: "Bound", field: "bound", formatter: percent, width: 92, visible: false, ...number },
    { title: "Claim", field: "claim", formatter: text("claim"), width: 150, visible: false, ...plain },
    { title: "Audit", field: "audit", formatter: text("audit"), width: 150, visible: false, ...plain },
    { title: "Machines", field: "machines", formatter: count, width: 100, visible: false, ...number },
  ].map((column) => ({ sorter: "number", headerSortTristate: true, resizable: true, ...column }));
  const asText = (name) => (value) => coded.includes(name) ? words[name][value] : value ?? "";
  for (const column of columns) column.accessorDownload = asText(column.field);

  // What is chosen, and the address that says so.
  const filters = ["verdict", "device", "environment", "solution", "backing"];
  const groups = ["environment", "source", "solution", "device", "verdict", "backing"];
  const hidden = columns.filter((column) => column.visible === false).map((column) => column.field);
  const fresh = () => ({ q: "", group: "", sort: "", hide: hidden.join("."), ...Object.fromEntries(filters.map((name) => [name, ""])) });
  const chosen = fresh();
  const read = () => {
    Object.assign(chosen, fresh());
    for (const [name, value] of new URLSearchParams(location.hash.slice(1)))
      if (Object.hasOwn(chosen, name)) chosen[name] = value;
    if (!groups.includes(chosen.group)) chosen.group = "";
  };
  const written = () => {
    const said = new URLSearchParams(), usual = fresh();
    for (const name of Object.keys(chosen)) if (chosen[name] !== usual[name]) said.set(name, chosen[name]);
    return said.toString();
  };
  const remember = () => history.replaceState(null, "", "#" + written());

  // A word of the search fits a row by what one of its numbers means: looked up once a word, not once a row.
  const fits = (name, word) => words[name].map((value, at) => {
    const more = name === "source" ? ` ${titles[at]} ${apis[at]}` : name === "verdict" && !value ? never : "";
    return (value + more).toLowerCase().includes(word);
  });
  const searched = ["environment", "source", "solution", "device", "verdict", "backing", "claim"];
  const exact = (name, word) => words[name].map((value) => value.toLowerCase() === word);
  const matcher = () => {
    const tests = [];
    for (const word of chosen.q.toLowerCase().split(/\s+/).filter(Boolean)) {
      const whole = searched.map((name) => [name, exact(name, word)]).filter(([, some]) => some.includes(true));
      const parts = whole.length ? whole : searched.map((name) => [name, fits(name, word)]);
      tests.push((row) => parts.some(([name, some]) => some[row[name]]));
    }
    for (const name of filters) {
      if (!chosen[name]) continue;
      const code = words[name].indexOf(chosen[name] === never ? "" : chosen[name]);
      tests.push((row) => row[name] === code);
    }
    return (row) => tests.every((test) => test(row));
  };

  const table = new Tabulator("#table", {
    data: rows, columns, index: "id", layout: "fitColumns", height: "100%", rowHeight: 62, placeholder: "no such cell",
    columnDefaults: { vertAlign: "middle" }, groupStartOpen: true,
    groupHeader: (value, number) => {
      const shown = document.createElement("span");
      shown.textContent = `${words[chosen.group]?.[value] || never}: ${number.toLocaleString("en")} cells`;
      return shown;
    },
  });
  const showCount = () => {
    byId("count").textContent = `${table.getDataCount("active").toLocaleString("en")} of ${rows.length.toLocaleString("en")} cells`;
  };
  // Each of these goes through all rows: not where nothing changes.
  let grouped = "", filtered = false;
  const filter = () => {
    const narrowed = Boolean(chosen.q.trim()) || filters.some((name) => chosen[name]);
    if (narrowed) table.setFilter(matcher());
    else if (filtered) table.clearFilter();
    filtered = narrowed;
    showCount();
  };
  const group = () => {
    if (chosen.group !== grouped) table.setGroupBy(chosen.group || false);
    grouped = chosen.group;
  };
  const apply = () => {
    byId("q").value = chosen.q;
    for (const name of filters) byId("f-" + name).value = chosen[name];
    byId("group").value = chosen.group;
    const away = chosen.hide.split(".");
    for (const column of columns) {
      const shown = !away.includes(column.field), box = byId("c-" + column.field);
      if (shown !== box.checked) table[shown ? "showColumn" : "hideColumn"](column.field);
      box.checked = shown;
    }
    group();
    const [field, direction] = chosen.sort.split("-");
    if (columns.some((column) => column.field === field)) table.setSort(field, direction === "desc" ? "desc" : "asc");
    else if (table.getSorters().length) table.clearSort();
    filter();
  };

  const options = (select, values, all) => {
    for (const value of ["", ...values]) {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = value || all;
      select.append(option);
    }
  };
  for (const name of filters) {
    options(byId("f-" + name), words[name].map((word) => word || (name === "verdict" ? never : "")).filter(Boolean), "any");
    byId("f-" + name).addEventListener("change", (event) => { chosen[name] = event.target.value; remember(); filter(); });
  }
  options(byId("group"), groups, "nothing");
  byId("group").addEventListener("change", (event) => {
    chosen.group = event.target.value; remember(); group();
  });
  byId("q").addEventListener("input", (event) => { chosen.q = event.target.value; remember(); filter(); });
  for (const column of columns) {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = column.visible !== false;
    box.id = "c-" + column.field;
    box.addEventListener("change", () => {
      table[box.checked ? "showColumn" : "hideColumn"](column.field);
      chosen.hide = columns.map((one) => one.field).filter((field) => !byId("c-" + field).checked).join(".");
      remember();
    });
    label.append(box, column.title);
    byId("columns").append(label);
  }
  byId("share").addEventListener("click", (event) => window.tfdetCopy(event.target, location.href));
  byId("export").addEventListener("click", () => table.download("csv", "tfdet-cells.csv"));
  byId("reset").addEventListener("click", () => { Object.assign(chosen, fresh()); remember(); apply(); });
  addEventListener("hashchange", () => { read(); apply(); });

  // Rows by keyboard.
  let active = null;
  const choose = (row) => {
    if (!row) return;
    if (active) active.getElement().classList.remove("active");
    active = row;
    table.scrollToRow(row, "nearest", false).catch(() => {}).then(() => row.getElement().classList.add("active"));
  };
  const step = (down) => {
    if (active && active.getElement().isConnected) choose(down ? active.getNextRow() : active.getPrevRow());
    else choose(table.getRows("visible")[0]);
  };
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); byId("q").focus(); }
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (!typing || event.target.id === "q")) {
      event.preventDefault();
      step(event.key === "ArrowDown");
    } else if (event.key === "Enter" && active && !/^(A|BUTTON|SUMMARY)$/.test(event.target.tagName)) location.href = page(active.getData());
  });

  table.on("dataSorted", (sorters) => {
    if (!window.tfdetReady) return;
    chosen.sort = sorters.length ? `${sorters[0].field}-${sorters[0].dir}` : "";
    remember();
  });
  // The library leaves a part without a role between the grid and its rows, which a screen reader stumbles over.
  const name = () => {
    byId("table").removeAttribute("aria-owns");
    byId("table").setAttribute("aria-label", "every cell");
    byId("table").querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
    byId("table").querySelector(".tabulator-table").setAttribute("role", "presentation");
  };
  table.on("tableBuilt", () => {
    name();
    read();
    apply();
    window.tfdetReady = true;
    document.body.dataset.ready = "yes";
  });
  window.tfdetTable = table;
})();
