"use strict";
// The start page's search: words of an op, a version, a solution; where both an op and a version fit, their cell.
(() => {
  const { documents, environments, solutions, sources } = window.tfdetSearch;
  const field = document.getElementById("q"), found = document.getElementById("found");
  const most = 12;
  const kindOf = (text) => text.match(/^[a-z]*/)[0];
  const kinds = [...new Set(environments.map(kindOf))];
  const meant = { tensorflow: "tf", pytorch: "torch" };
  const version = (word) => /^[a-z]*\d+(\.\d+)*(-.*)?$/.test(word) && ["", ...kinds].includes(kindOf(word));
  const environmentsOf = (word) => {
    const names = ["", ...kinds].map((kind) => kind + word);
    const exact = environments.filter((key) => names.includes(key) || key.startsWith("ngc" + word));
    return exact.length ? exact : environments.filter((key) => key.includes(word));
  };
  const texts = sources.map((source) => source.slice(0, 3).join(" ").toLowerCase());
  // Pages of the docs and their headings, where each word begins one of theirs: a few, for the ops are more.
  const mostDocuments = 5;
  const begins = (text) => { const low = " " + text.toLowerCase().replace(/[^a-z0-9]+/g, " "); return (word) => low.includes(" " + word); };
  const documentsOf = (words) => {
    const pages = [], parts = [];
    for (const [address, title, headings] of documents) {
      if (words.every(begins(title))) pages.push([address, title]);
      for (let at = 0; at < headings.length; at += 2)
        if (words.every(begins(`${title} ${headings[at]}`)) && words.some(begins(headings[at])))
          parts.push([`${address}#${headings[at + 1]}`, `${title}: ${headings[at]}`]);
    }
    return [...pages, ...parts].slice(0, mostDocuments);
  };
  const results = (query) => {
    const typed = query.toLowerCase().split(/[\s,]+/).filter(Boolean), words = typed.map((word) => meant[word] || word);
    const asked = words.filter((word) => kinds.includes(word)), rest = words.filter((word) => !kinds.includes(word));
    const versions = rest.filter(version), others = rest.filter((word) => !version(word));
    const fits = (key) => !asked.length || asked.includes(kindOf(key)) || (asked.includes("tf") && kindOf(key) === "ngc");
    const places = versions.length || asked.length ? (versions.length ? environmentsOf(versions[0]) : environments).filter(fits) : [];
    const list = versions.length ? [] : documentsOf(typed);
    if (!others.length) for (const place of places) list.push([`environments/${place}.html`, `environment ${place}`]);
    for (const [at, [key, title, , cells]] of sources.entries()) {
      if (!others.length || !others.every((word) => texts[at].includes(word))) continue;
      const there = places.filter((place) => cells.includes(environments.indexOf(place)));
      if (versions.length) for (const place of there) list.push([`cells/${place}/${key}.html`, `${title} in ${place}`]);
      else if (!asked.length || there.length) list.push([`sources/${key}.html`, title]);
    }
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
