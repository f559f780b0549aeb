// Opens a place in place; without this file its link leads to a page of its own.
"use strict";
(() => {
  const form = document.getElementById("browse");
  if (!form) return;
  const words = form.dataset;

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function label(node) {
    if (!("chooses" in words) || !node.selectable || node.chosen) return element("span", "", node.title);
    const made = element("label");
    const box = element("input");
    Object.assign(box, { type: "checkbox", name: "place", value: node.id });
    made.append(box, ` ${node.title}`);
    return made;
  }

  function row(node) {
    const made = element("li");
    if (node.has_children) {
      const link = element("a", "kb-link", words.textOpen);
      link.href = `?${new URLSearchParams({ parent: node.id })}`;
      link.dataset.open = node.id;
      made.append(link, " ");
    }
    made.append(label(node));
    if ("chooses" in words && node.chosen) made.append(" ", element("span", "kb-badge kb-ok", words.textChosen));
    return made;
  }

  async function below(parent) {
    const list = element("ul", "kb-tree");
    try {
      const answer = await fetch(`${words.url}?${new URLSearchParams({ parent })}`, {
        headers: { Accept: "application/json" },
        credentials: "same-origin",
      });
      const level = await answer.json();
      if (level.error) list.append(element("li", "kb-error", level.error));
      else if (level.nodes.length) list.append(...level.nodes.map(row));
      else list.append(element("li", "kb-note", words.textEmpty));
    } catch {
      list.append(element("li", "kb-error", words.textFailed));
    }
    return list;
  }

  form.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-open]");
    if (!link || link.hasAttribute("aria-busy")) return;
    event.preventDefault();
    const item = link.closest("li");
    const open = item.querySelector(":scope > ul");
    if (open && !open.querySelector(".kb-error")) {
      open.hidden = !open.hidden; // what was chosen below stays chosen
      link.textContent = open.hidden ? words.textOpen : words.textClose;
      return;
    }
    open?.remove();
    link.setAttribute("aria-busy", "true");
    item.append(await below(link.dataset.open));
    link.removeAttribute("aria-busy");
    link.textContent = words.textClose;
  });
})();
