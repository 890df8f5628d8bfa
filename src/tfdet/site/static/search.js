"use strict";
// The start page's search: words of an op, a version, a solution; where both an op and a version fit, their cell.
(() => {
  const { environments, solutions, sources } = window.tfdetSearch;
  const field = document.getElementById("q"), found = document.getElementById("found");
  const most = 12;
  const version = (word) => word.match(/^(tf|ngc|torch)?\d+(\.\d+)*(-.*)?$/);
  const environmentsOf = (word) => {
    const names = [word, "tf" + word, "torch" + word];
    const exact = environments.filter((key) => names.includes(key) || key.startsWith("ngc" + word));
    return exact.length ? exact : environments.filter((key) => key.includes(word));
  };
  const texts = sources.map((source) => source.slice(0, 3).join(" ").toLowerCase());
  const results = (query) => {
    const words = query.toLowerCase().split(/[\s,]+/).filter((word) => word && !["tf", "tensorflow", "pytorch"].includes(word));
    const versions = words.filter(version), others = words.filter((word) => !version(word));
    const places = versions.length ? environmentsOf(versions[0]) : [];
    const keys = others.length ? sources.filter((source, at) => others.every((word) => texts[at].includes(word))) : [];
    const list = [];
    for (const [key, title, , cells] of keys) {
      for (const place of places)
        if (cells.includes(environments.indexOf(place))) list.push([`cells/${place}/${key}.html`, `${title} in ${place}`]);
      if (!places.length) list.push([`sources/${key}.html`, title]);
    }
    if (!others.length) for (const place of places) list.push([`environments/${place}.html`, `environment ${place}`]);
    for (const [key, name] of solutions)
      if (others.length && others.every((word) => `${key} ${name}`.toLowerCase().includes(word)))
        list.push([`solutions/${key}.html`, `solution ${key}: ${name}`]);
    return list;
  };
  const show = () => {
    const query = field.value.trim(), list = query ? results(query) : [];
    const items = list.slice(0, most).map(([address, text]) => {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = address;
      link.textContent = text;
      item.append(link);
      return item;
    });
    if (query) {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = "table.html#q=" + encodeURIComponent(query);
      link.textContent = list.length > most ? `${list.length - most} more; all in the table` : "look in the table";
      item.append(link);
      items.push(item);
    }
    found.replaceChildren(...items);
  };
  field.addEventListener("input", show);
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const first = found.querySelector("a");
    if (first) location.href = first.href;
  });
  show();
})();
