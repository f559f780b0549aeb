// Keeps up to date what changes by itself: `data-live-url` names where its present state is asked for.
"use strict";
(() => {
  const INTERVAL_MS = 2000;

  function isBusy() {
    const focused = document.activeElement;
    return Boolean(focused && focused.matches("input, select, textarea"));
  }

  function show(element, state) {
    element.innerHTML = state.html; // rendered and escaped by the server
    if (state.changing) return;
    element.removeAttribute("data-changing");
    if (!isBusy()) window.location.reload(); // buttons and lists around it change too
  }

  async function ask(element) {
    try {
      const answer = await fetch(element.dataset.liveUrl, {
        headers: { Accept: "application/json" },
        credentials: "same-origin",
      });
      if (answer.ok) show(element, await answer.json());
      else if (answer.status === 404) element.removeAttribute("data-changing");
    } catch {
      // The network is away; the next round tries again.
    }
  }

  async function poll() {
    if (!document.hidden) {
      await Promise.all([...document.querySelectorAll("[data-live-url][data-changing]")].map(ask));
    }
    window.setTimeout(poll, INTERVAL_MS);
  }

  window.setTimeout(poll, INTERVAL_MS);
})();
