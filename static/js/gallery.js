// Narrows the gallery while one types. Without this file the search is a request.
"use strict";
(() => {
  const form = document.getElementById("gallery-search");
  const input = form?.elements.q;
  // After a search by request only its results are on the page: the next one has to be a request too.
  if (!input || input.defaultValue) return;

  function narrow() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const category of document.querySelectorAll("[data-category]")) {
      let shown = 0;
      for (const card of category.querySelectorAll("[data-words]")) {
        card.hidden = !words.every((word) => card.dataset.words.includes(word));
        if (!card.hidden) shown += 1;
      }
      category.hidden = !shown;
      found += shown;
    }
    document.getElementById("gallery-empty").hidden = found > 0;
  }

  input.addEventListener("input", narrow);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    narrow();
  });
  if (input.value) narrow(); // typed before this file was there, or kept by the browser
})();
