// Shows only the fields that belong to what is chosen. Without this file all of them are shown.
"use strict";
(() => {
  const form = document.getElementById("connection-form");
  if (!form) return;

  function follow(select) {
    for (const part of form.querySelectorAll(`[data-of="${CSS.escape(select.dataset.switch)}"]`)) {
      part.hidden = part.dataset.when !== select.value;
    }
  }

  for (const legend of form.querySelectorAll("[data-without-script]")) legend.hidden = true;
  for (const select of form.querySelectorAll("select[data-switch]")) {
    follow(select);
    select.addEventListener("change", () => follow(select));
  }
})();
