// Shows the verdict of a check beside its button, without leaving the page.
"use strict";
(() => {
  const form = document.querySelector("form[data-check]");
  const verdict = document.getElementById("check-verdict");
  if (!form || !verdict) return;
  const button = form.querySelector("button");

  function tell(message, reached) {
    verdict.textContent = message;
    verdict.classList.toggle("kb-error", !reached);
    verdict.hidden = !message;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    tell("…", true);
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body: new FormData(form),
        headers: { Accept: "application/json" },
        credentials: "same-origin",
      });
      const found = await answer.json();
      tell(found.message, found.reached);
    } catch {
      tell(form.dataset.textFailed, false);
    } finally {
      button.disabled = false;
    }
  });
})();
