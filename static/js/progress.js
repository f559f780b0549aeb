// Keeps the state of unfinished documents on the page up to date.
"use strict";
(() => {
  const INTERVAL_MS = 2000;
  const MOST = 100;
  const home = () => document.querySelector("[data-progress-url]");

  function isVisible(element) {
    const box = element.getBoundingClientRect();
    return box.bottom > 0 && box.top < window.innerHeight;
  }

  function show(id, state) {
    for (const element of document.querySelectorAll(`[data-document-state="${CSS.escape(id)}"]`)) {
      element.innerHTML = state.html; // rendered and escaped by the server
      if (!state.changing) {
        element.removeAttribute("data-changing");
        if (element.hasAttribute("data-reload") && !document.querySelector("form :focus")) {
          window.location.reload();
        }
      }
    }
    for (const name of ["coverage", "chunks"]) {
      for (const element of document.querySelectorAll(`[data-live-${name}="${CSS.escape(id)}"]`)) {
        element.textContent = state[name];
      }
    }
  }

  async function poll() {
    const elements = [...document.querySelectorAll("[data-document-state][data-changing]")];
    const ids = elements.filter(isVisible).slice(0, MOST).map((element) => element.dataset.documentState);
    if (ids.length && home() && !document.hidden) {
      const query = new URLSearchParams(ids.map((id) => ["id", id]));
      try {
        const answer = await fetch(`${home().dataset.progressUrl}?${query}`, {
          headers: { Accept: "application/json" },
          credentials: "same-origin",
        });
        if (answer.ok) {
          const { documents } = await answer.json();
          for (const [id, state] of Object.entries(documents)) show(id, state);
          for (const id of ids) {
            if (!(id in documents)) {
              document.querySelectorAll(`[data-document-state="${CSS.escape(id)}"]`)
                .forEach((element) => element.removeAttribute("data-changing"));
            }
          }
        }
      } catch {
        // The network is away; the next round tries again.
      }
    }
    window.setTimeout(poll, INTERVAL_MS);
  }

  window.setTimeout(poll, INTERVAL_MS);
})();
